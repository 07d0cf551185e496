"""The usual action, where nothing is known to be better."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import MDP, LearnedPosterior, StepPolicy, optimize, read_transitions
from surefoot.certificates.search import KEPT
from surefoot.certificates.usual import keep_usual, keep_usual_by_step, usual_rows


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
    changed = keep_usual(mdp, rows, visits, caution=1.64)
    assert changed[0] == (1 if kept else 0)
    assert changed[1:].tolist() == [2, 4]


def test_without_caution_the_better_mean_stays():
    mdp = bets((0.6, 0.5))
    visits = np.array([1, 200, 0, 0, 0, 0])
    assert keep_usual(mdp, np.array([0, 2, 4]), visits, caution=0.0).tolist() == [0, 2, 4]


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
    found = keep_usual_by_step(mdp, policy, visits, caution=1.64)
    # At the last step both pay the same, for sure: then nothing speaks against the chosen one.
    expected = [1 if kept else 0] * 4 + [0]
    assert [int(found.actions_at(step)[0]) for step in range(5)] == expected
