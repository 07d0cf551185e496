"""The published numbers: complete, and consistent where the paper is."""

import math
from dataclasses import replace

import numpy as np
import pytest

from surefoot.domains import riverswim
from surefoot.studies.published import (
    DELTAS,
    IMPROVEMENT,
    METHODS,
    NOMINAL,
    SUMMARY,
    SUMMARY_METHODS,
    Method,
    normalised_loss,
    printed_loss,
    published_guarantee,
)
from surefoot.studies.reproduction import nominal_return


def test_every_cell_is_there():
    assert len(METHODS) == 10
    for domain in NOMINAL:
        for method in METHODS:
            for delta in DELTAS:
                assert published_guarantee(domain, method, delta) is not None
    assert published_guarantee("garnet", METHODS[0], 0.05) is None


def test_guarantees_fall_with_confidence_and_stay_below_nominal():
    for domain, nominal in NOMINAL.items():
        for method in METHODS:
            half, strict = (published_guarantee(domain, method, delta) for delta in DELTAS)
            assert strict <= half < nominal


@pytest.mark.parametrize("basis", SUMMARY)
def test_summaries_follow_from_the_appendix_where_the_paper_is_consistent(basis):
    """Cart-pole, the optimised population column and machine's uniform one do not follow."""
    for domain, losses in SUMMARY[basis].items():
        for (norm, weights), loss in zip(SUMMARY_METHODS, losses, strict=True):
            guarantee = published_guarantee(domain, Method(basis, norm, weights), 0.05)
            agrees = abs(normalised_loss(domain, guarantee) - loss) < 0.035
            known = (
                domain == "cartpole"
                or (basis, domain, weights) == ("bayesian", "population", "analytic")
                or (basis, domain, weights) == ("bayesian", "machine", "uniform")
            )
            assert agrees or known


def test_titles():
    assert Method("frequentist", "linf", "analytic").title == "L-infinity H, analytic"


@pytest.mark.parametrize("basis", SUMMARY)
def test_the_printed_improvements_are_those_of_the_l1_rows(basis):
    """Of all five domains; the L-infinity rows, or both norms, give other numbers."""

    def improvement(norms):
        ratios = [
            printed_loss(domain, Method(basis, norm, "uniform"), 0.05)
            / printed_loss(domain, Method(basis, norm, "analytic"), 0.05)
            for domain in NOMINAL
            for norm in norms
        ]
        return round(math.prod(ratios) ** (1 / len(ratios)), 1)

    assert improvement(["l1"]) == IMPROVEMENT[basis]
    assert improvement(["linf"]) != IMPROVEMENT[basis]
    assert improvement(["l1", "linf"]) != IMPROVEMENT[basis]


def test_printed_losses_are_those_of_delta_005():
    assert printed_loss("machine", Method("bayesian", "l1", "uniform"), 0.05) == 1.56
    assert printed_loss("machine", Method("bayesian", "l1", "uniform"), 0.5) is None
    assert printed_loss("machine", Method("bayesian", "l1", "socp"), 0.05) is None
    assert printed_loss("garnet", Method("bayesian", "l1", "uniform"), 0.05) is None


def test_the_nominal_return_belongs_to_a_uniform_start():
    """The caption's start, the second or third state, gives another number."""
    mdp = riverswim().mdp
    assert nominal_return(mdp) == pytest.approx(NOMINAL["riverswim"], abs=0.1)
    stated = replace(mdp, initial=np.array([0.0, 0.5, 0.5, 0.0, 0.0, 0.0]))
    assert nominal_return(stated) == pytest.approx(59901, abs=0.5)
