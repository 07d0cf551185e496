"""The usual action, where nothing is known to be better."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import MDP, LearnedPosterior, StepPolicy, optimize, read_transitions
from surefoot.certificates.plays import row_values, standard_error
from surefoot.certificates.search import KEPT
from surefoot.certificates.usual import (
    chosen_at,
    ends_by_counts,
    ends_by_draws,
    keep_usual,
    keep_usual_by_step,
    lost_by_regression,
    regression,
    usual_rows,
)


def bets(pays):
    """Return a model of one state and an end: each action pays off with a chance of its own."""
    chances = np.array(pays)
    transitions = np.zeros((3, len(chances), 3))
    transitions[0, :, 1], transitions[0, :, 2] = chances, 1 - chances
    transitions[1, :, 1] = transitions[2, :, 2] = 1.0
    rewards = np.zeros((3, len(chances), 3))
    rewards[0, :, 1] = 1.0
    return MDP.from_arrays(transitions, rewards, discount=0.9, initial=[1.0, 0, 0])


@pytest.mark.parametrize(
    ("tries", "kept"),
    [
        ((10, 200), True),  # .6 after ten tries is not surely better than .5
        ((2000, 20_000), False),  # after two thousand it is
        ((200, 10), False),  # the better one is the usual one
        ((10, 10), False),  # nothing is usual
    ],
)
def test_departures_must_be_surely_better(tries, kept):
    mdp = bets((0.6, 0.5))
    visits = np.array([*tries, 0, 0, 0, 0])
    rows = np.array([0, 2, 4])
    changed = keep_usual(mdp, rows, visits, ends_by_counts(mdp, visits, 1.64))
    assert changed[0] == (1 if kept else 0)
    assert changed[1:].tolist() == [2, 4]


def test_without_caution_the_better_mean_stays():
    mdp = bets((0.6, 0.5))
    visits = np.array([100, 200, 0, 0, 0, 0])
    ends = ends_by_counts(mdp, visits, 0.0)
    assert keep_usual(mdp, np.array([0, 2, 4]), visits, ends).tolist() == [0, 2, 4]


@pytest.mark.parametrize(("tries", "kept"), [(100, False), (10, True)])
def test_few_tries_regress_to_the_mean_of_their_state(tries, kept):
    """Twelve actions of which one looks best; the usual one was tried a thousand times."""
    chances = (0.5, 0.7, *np.linspace(0.2, 0.55, 10))
    mdp = bets(chances)
    visits = np.array([1000, *[tries] * 11, *[0] * 24])
    ends = ends_by_counts(mdp, visits, 1.0)
    _, lower, regressed = ends(np.zeros(3))
    assert lower[1] > lower[0]  # by itself it is surely better
    assert (regressed[1] <= regressed[0]) == kept
    chosen = keep_usual(mdp, np.array([1, 12, 24]), visits, ends)
    assert chosen[0] == (0 if kept else 1)


def test_regression_by_its_definition():
    """Variance of the actions from all states, weights by precision, and what stays of a row."""
    rng = np.random.default_rng(0)
    mdp = MDP.from_arrays(
        np.tile(np.eye(4), (3, 1, 1)).swapaxes(0, 1), np.zeros((4, 3)), discount=0.5
    )
    visits = np.array([5, 0, 9, 3, 3, 3, 0, 0, 7, 1, 2, 0])
    mean, error = rng.normal(size=12), rng.uniform(0.2, 0.6, 12)
    center, kept = regression(mdp, visits, mean, error)
    own = [np.flatnonzero((mdp.row_state == s) & (visits > 0)) for s in range(4)]
    several = [rows for rows in own if len(rows) > 1]
    freedom = sum(len(rows) - 1 for rows in several)
    apart = sum(((mean[rows] - mean[rows].mean()) ** 2).sum() for rows in several)
    explained = sum((error[rows] ** 2).sum() * (1 - 1 / len(rows)) for rows in several)
    variance = max(0.0, apart * (1 + np.sqrt(2 / freedom)) - explained) / freedom
    assert variance > 0
    for rows in several:
        weight = 1 / (variance + error[rows] ** 2)
        np.testing.assert_allclose(center[rows], weight @ mean[rows] / weight.sum())
        np.testing.assert_allclose(kept[rows], variance * weight)
    alone = np.setdiff1d(np.arange(12), np.concatenate(several))
    np.testing.assert_array_equal(kept[alone], 1.0)
    np.testing.assert_array_equal(center[alone], mean[alone])


def test_the_policy_is_chosen_for_five_percent_whatever_the_promise_may_risk():
    counts = read_transitions(log_of_bets(np.random.default_rng(0)), terminal="terminal")
    posterior = LearnedPosterior(counts)
    mdp = posterior.to_mdp(discount=0.9)
    made = [
        optimize(
            posterior, mdp, delta=delta, draws=500, rng=np.random.default_rng(1), keep_usual=True,
            choose_delta=chosen_at(delta),
        )
        for delta in (0.05, 0.2)
    ]  # fmt: skip
    assert [one.percentile for one in made[0].candidates] == [
        one.percentile for one in made[1].candidates
    ]
    assert np.array_equal(made[0].policy, made[1].policy)
    assert made[0].certificate.lower_bound < made[1].certificate.lower_bound


def test_the_usual_row_is_the_first_of_those_tried_most():
    mdp = bets((0.6, 0.5))
    assert usual_rows(mdp, np.array([3, 3, 0, 1, 0, 0])).tolist() == [0, 3, 4]


def log_of_bets(rng):
    """A thousand tries of a fair bet, and twelve of another, of which eight were won."""
    won = np.concatenate((rng.permutation(1000) < 500, np.arange(12) < 8))
    return {
        "state": ["play"] * 1012,
        "action": ["fair"] * 1000 + ["other"] * 12,
        "reward": won.astype(float),
        "next_state": np.where(won, "won", "lost"),
        "terminal": np.ones(1012, bool),
    }


def test_optimize_keeps_what_was_usual_and_says_so():
    counts = read_transitions(log_of_bets(np.random.default_rng(0)), terminal="terminal")
    posterior = LearnedPosterior(counts)
    mdp = posterior.to_mdp(discount=0.9)
    state, other = counts.state_labels.index("play"), counts.action_labels.index("other")
    made = {
        keep: optimize(
            posterior, mdp, delta=0.05, draws=500, rng=np.random.default_rng(1), keep_usual=keep
        )
        for keep in (False, True)
    }
    found = made[True]
    assert made[False].candidates[0].policy[state] == other  # which looks better on average
    assert found.policy[state] != other
    assert found.certificate.has("usual_kept") == (made[False].policy[state] == other)
    assert [c.selected for c in found.candidates].count(True) == 1
    assert found.candidates[-1].name.endswith(KEPT) == found.candidates[-1].selected


@pytest.mark.parametrize(("tries", "kept"), [((10, 200), True), ((2000, 20_000), False)])
def test_by_step_the_usual_action_is_kept_at_every_step_where_it_is_unsure(tries, kept):
    """By the definition, step by step, on a chain of bets that are played again and again."""
    chance = np.array([0.6, 0.5])
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 0], transitions[0, :, 1] = chance, 1 - chance
    transitions[1, :, 1] = 1.0
    made = MDP.from_arrays(transitions, [[1.0, 1.0], [0, 0]], discount=0.99)
    mdp = replace(made, discount=1.0, horizon=5)
    policy = StepPolicy.from_array(np.zeros((5, 2), dtype=int))
    visits = np.array([*tries, 0, 0])
    found = keep_usual_by_step(mdp, policy, visits, ends_by_counts(mdp, visits, 1.64))
    # At the last step both pay the same, for sure: then nothing speaks against the chosen one.
    expected = [1 if kept else 0] * 4 + [0]
    assert [int(found.actions_at(step)[0]) for step in range(5)] == expected


def test_ends_by_draws_are_those_of_the_drawn_rows():
    mdp = bets((0.6, 0.5))
    rng = np.random.default_rng(0)
    draws = np.tile(mdp.probability, (200, 1))
    win = rng.beta(6, 4, 200)
    draws[:, 0], draws[:, 1] = win, 1 - win
    gains = np.add.reduceat(draws * mdp.entry_reward, mdp.row_start[:-1], axis=1)
    visits = np.array([12, 1000, 0, 0, 0, 0])
    value = np.array([0.0, 3.0, 1.0])
    mean, lower, regressed = ends_by_draws(mdp, visits, draws, gains, 2.0)(value)
    assert mean[0] == pytest.approx(0.6 * (1 + 0.9 * 3) + 0.4 * 0.9)
    assert lower[0] == pytest.approx(mean[0] - 2 * np.std(win * (1 + 0.9 * 2)))
    np.testing.assert_allclose(lower[1:], mean[1:])
    assert (
        lower[0] < regressed[0] <= mean[0]
    )  # towards the other, which is known exactly, and surer


def test_departures_from_a_clear_practice_lose_what_regression_takes():
    chances = (0.5, 0.7, *np.linspace(0.2, 0.55, 10))
    mdp = bets(chances)
    visits = np.array([1000, *[10] * 11, *[0] * 24])
    mean, deviation = row_values(mdp, np.zeros(mdp.num_entries))
    error = standard_error(deviation, visits)
    lost = lost_by_regression(mdp, visits, mean, error)
    center, kept = regression(mdp, visits, mean, error)
    regressed = center + kept * (mean - center)
    assert lost[1] == pytest.approx((mean[1] - mean[0]) - (regressed[1] - regressed[0]))
    assert lost[1] > 0.05
    assert lost[0] == 0.0
    even = np.array([25, *[10] * 11, *[0] * 24])  # no clear practice
    np.testing.assert_array_equal(lost_by_regression(mdp, even, mean, error)[:12], 0.0)
