"""The published numbers: complete, and consistent where the paper is."""

import pytest

from surefoot.studies.published import (
    DELTAS,
    METHODS,
    NOMINAL,
    SUMMARY,
    SUMMARY_METHODS,
    Method,
    normalised_loss,
    published_guarantee,
)


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
