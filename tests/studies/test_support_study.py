"""The study behind the default support: its parts, and its verdict in small."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from surefoot.data.support import DEFAULT_SUPPORT, UNSEEN_PRIOR
from surefoot.data.transitions import read_transitions
from surefoot.domains import inventory, machine_replacement, riverswim
from surefoot.model.mdp import MDP
from surefoot.studies import support, true_models
from surefoot.studies.__main__ import app
from surefoot.studies.support_choices import CHOICES, per_entry, per_row, with_unseen


def test_returns_solve_the_linear_system():
    rng = np.random.default_rng(0)
    size = 6
    draws = rng.dirichlet(np.ones(size), size=(3, size))
    reward, initial = rng.normal(size=(size, 1, size)), rng.dirichlet(np.ones(size))
    mdp = MDP.from_arrays(draws[0][:, None], reward, discount=0.97, initial=initial)
    found = support._returns(mdp, np.arange(size), draws.reshape(3, -1))
    for drawn, one in zip(draws, found, strict=True):
        gain = (drawn * reward[:, 0]).sum(axis=1)
        value = np.linalg.solve(np.eye(size) - 0.97 * drawn, gain)
        assert one == pytest.approx(initial @ value, rel=1e-12)


def test_optimal_rows_attain_the_known_optimum():
    mdp = machine_replacement().mdp
    assert support._true_return(mdp, support.optimal_rows(mdp)) == pytest.approx(-16.8136, abs=1e-4)


def test_a_log_shows_what_was_seen_and_nothing_else():
    declared = inventory().simulate(3, np.random.default_rng(0))
    log = true_models.as_logged(declared)
    assert not log.declared
    assert log.num_entries == np.count_nonzero(declared.count)
    assert log.count.sum() == declared.count.sum()
    np.testing.assert_allclose(log.reward_mean, declared.reward_mean[declared.count > 0])


def test_reference_is_calibrated_and_the_default_holds():
    """Knowing the successors the claim fails 5% of the time; guessed from the row, far more."""
    choices = (per_entry("true"), per_entry("observed"), with_unseen(UNSEEN_PRIOR, "worst"))
    cells = support.coverage(
        riverswim(), 5, 300, delta=0.05, rng=np.random.default_rng(0), choices=choices, draws=199
    )
    reference, observed, default = cells
    assert 1e-3 < binom.cdf(reference.failures, 300, 0.05) < 1 - 1e-3
    assert observed.rate > 0.15
    assert not observed.holds
    assert default.holds
    assert default.claimed < reference.claimed


def test_the_default_is_among_the_choices():
    assert any(
        c.support == DEFAULT_SUPPORT and f"{UNSEEN_PRIOR:g} unseen, worst" in c.prior
        for c in CHOICES
    )


def test_choices_spread_their_prior():
    counts = true_models.as_logged(riverswim().simulate(5, np.random.default_rng(0)))
    placed = counts.on_support("action")
    total = np.add.reduceat(per_row("action").parameters(placed), placed.row_start[:-1])
    np.testing.assert_allclose(total, 1.0)
    placed = counts.on_support("unseen")
    prior = with_unseen(0.5).parameters(placed)
    assert set(prior[placed.successor == placed.unseen]) == {0.5}
    assert set(prior[placed.successor != placed.unseen]) == {1.0}


def cell(choice, domain, failures, claimed):
    return support.ChoiceResult(
        domain=domain, samples=5, choice=choice, delta=0.05, replications=100, failures=failures,
        claimed=claimed, achieved=1.0, optimal=2.0,
    )  # fmt: skip


def test_the_tightest_that_holds_everywhere_wins():
    loose, tight, broken = with_unseen(1.0), with_unseen(0.5), per_entry("action")
    cells = [
        cell(choice, domain, failures, claimed)
        for choice, failures, claimed in ((loose, 0, 0.1), (tight, 4, 0.5), (broken, 30, 1.5))
        for domain in ("one", "two")
    ]
    assert support.tightest(cells) is tight
    assert support.tightest(cells[-2:]) is None
    lines = list(support.table(cells))
    assert "| one | 5 | 0.0% | 4.0% | **30.0%** |" in lines
    assert "| two | 5 | 0.1 | 0.5 | 1.5 | 2 |" in lines


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="at least 19"):
        support.coverage(riverswim(), 5, 1, delta=0.05, rng=np.random.default_rng(0), draws=18)


def test_command_prints_the_table():
    arguments = ["support", "--domain", "riverswim", "--samples", "5", "--replications", "1"]
    shown = CliRunner().invoke(app, arguments)
    assert "| unseen: 1 each, 0.5 unseen, worst |" in shown.stdout
    assert "Tightest choice" in shown.stdout
    assert "done after" in shown.stderr


def test_reading_the_log_gives_the_same_counts():
    """The study skips the file; a real log of the same transitions says the same."""
    declared = inventory().simulate(5, np.random.default_rng(1))
    rows = np.repeat(np.arange(declared.num_entries), declared.count)
    rows = np.random.default_rng(2).permutation(rows)
    row = declared.entry_row[rows]
    log = pd.DataFrame(
        {
            "state": declared.row_state[row],
            "action": declared.row_action[row],
            "next_state": declared.successor[rows],
            "reward": declared.reward_mean[rows],
        }
    )
    read = read_transitions(log).on_support()
    skipped = true_models.as_logged(declared).on_support()
    for name in ("state_start", "row_action", "row_start", "successor", "count", "reward_mean"):
        np.testing.assert_allclose(getattr(read, name), getattr(skipped, name), err_msg=name)
    assert read.unseen == skipped.unseen == 31
