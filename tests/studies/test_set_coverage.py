"""The coverage study in small, and that it can fail."""

import numpy as np
import pytest
from typer.testing import CliRunner

from surefoot.ambiguity.sets import contains
from surefoot.calibration.concentration import clopper_pearson
from surefoot.calibration.frequentist import frequentist_set
from surefoot.data.counts import Counts
from surefoot.domains import riverswim
from surefoot.model.mdp import MDP
from surefoot.studies.__main__ import app
from surefoot.studies.chance import most_failures, refutes
from surefoot.studies.set_coverage import CASES, study, table

SLOW = ("searched", "passes")
"""These run in the command only; their steps are tested elsewhere."""


def small_study(cases, **options):
    return study(
        riverswim(discount=0.9), samples=20, replications=60, delta=0.05,
        rng=np.random.default_rng(7), cases=cases, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tallies():
    return small_study([case for case in CASES if not any(word in case.name for word in SLOW)])


def test_every_claim_holds(tallies):
    assert [tally.case.name for tally in tallies if tally.case.proven and tally.refuted] == []
    assert all(tally.replications == 60 for tally in tallies)


def test_promises_are_worth_something_and_are_kept_on_average(tallies):
    for tally in tallies:
        assert np.mean(tally.promised) < np.mean(tally.earned)
    by_name = {tally.case.name: np.mean(tally.promised) for tally in tallies}
    assert by_name["weighted_l1"] < by_name["clopper_pearson"]
    assert by_name["L1, uniform, all rows"] < by_name["L1, uniform"] < by_name["L1, uniform, joint"]


def test_budgets_shrunk_by_thirty_percent_are_found_out():
    names = ("L1, uniform", "L1, uniform, joint, marginal rule", "L-infinity, uniform")
    shrunk = small_study([case for case in CASES if case.name in names], shrink=0.7)
    assert len(shrunk) == len(names)
    assert all(tally.outside_refuted for tally in shrunk)


def test_the_limit_is_the_one_stated():
    assert not refutes(35, 400, 0.05)
    assert refutes(36, 400, 0.05)
    assert most_failures(400, 0.05) == 35


def test_the_table_marks_what_is_refuted(tallies):
    tallies[0].outside, kept = 30, tallies[0].outside
    lines = list(table(tallies))
    tallies[0].outside = kept
    assert "**30/60**" in lines[2]
    assert len(lines) == len(tallies) + 2


def test_the_command_answers_with_its_verdict():
    options = ["set-coverage", "--domain", "riverswim", "--replications", "40"]
    options += ["--only", "L1, uniform, joint"]
    held = CliRunner().invoke(app, options)
    assert (held.exit_code, "all claims hold" in held.output) == (0, True)
    broken = CliRunner().invoke(app, [*options, "--shrink", "0.4"])
    assert (broken.exit_code, "refuted" in broken.output) == (1, True)


def test_logging_that_stops_when_it_likes_needs_its_share_of_the_level():
    # An adversary samples one fair coin until the box for a fixed number of samples misses it.
    delta, most = 0.05, 400
    rng = np.random.default_rng(3)
    mdp = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    n = np.arange(1, most + 1)
    missed = {True: 0, False: 0}
    for _ in range(300):
        heads = np.cumsum(rng.random(most) < 0.5)
        low, high = clopper_pearson(heads, n, delta / 4)
        out = np.flatnonzero((low > 0.5) | (high < 0.5))
        stop = out[0] if len(out) else most - 1
        count = np.array([heads[stop], n[stop] - heads[stop], 50])
        counts = Counts.on_rows_of(mdp, count)
        for fixed in missed:
            box = frequentist_set(
                counts, mdp, delta=delta, kind="clopper_pearson", fixed_design=fixed
            )
            missed[fixed] += int(not contains(box, mdp.probability).all())
    assert refutes(missed[True], 300, delta)
    assert missed[False] <= 0.05 * 300
