"""What transitions never seen pay where rewards scatter: averages, at their lower end."""

import numpy as np
import pytest

from surefoot import read_transitions
from surefoot.data.additive import FEWEST_TESTS, Transitions
from surefoot.data.noisy_rewards import fit_noisy

STATES, ACTIONS, TRIES = 12, 2, 8


def world(rng, depends):
    """Rows of some successors; what they pay depends on the row, and on the next state."""
    chance = rng.dirichlet(np.full(STATES, 0.4), (STATES, ACTIONS))
    pays = rng.random((STATES, ACTIONS))[:, :, None] + depends * rng.random(STATES)
    return chance, pays


def log_of(chance, pays, rng, scale):
    state, action = np.divmod(np.repeat(np.arange(STATES * ACTIONS), TRIES), ACTIONS)
    after = (rng.random(len(state))[:, None] > chance[state, action].cumsum(axis=1)).sum(axis=1)
    reward = pays[state, action, after] + scale * rng.normal(size=len(state))
    return {"state": state, "action": action, "reward": reward, "next_state": after}


def of_unseen(counts, chance, pays):
    """Return what unseen successors pay on average: as predicted, and in truth."""
    states = np.array([*counts.state_labels[:STATES], -1], dtype=np.int64)
    actions = np.array(counts.action_labels, dtype=np.int64)
    state, after = states[counts.entry_state], states[counts.successor]
    which = (counts.count == 0) & (state >= 0) & (after >= 0)
    where = state[which], actions[counts.entry_action[which]], after[which]
    weight = chance[where]
    return weight @ counts.reward_mean[which] / weight.sum(), weight @ pays[where] / weight.sum()


@pytest.mark.parametrize("depends", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("declared", [False, True])
def test_on_average_predictions_lie_below_the_truth_and_above_the_lowest_reward(depends, declared):
    rng = np.random.default_rng(4)
    above = 0
    for _ in range(40):
        chance, pays = world(rng, depends)
        log = log_of(chance, pays, rng, 0.5)
        more = {"reward_range": (-3.0, 9.0)} if declared else {}
        counts = read_transitions(log, **more).on_support("learned")
        predicted, true = of_unseen(counts, chance, pays)
        above += predicted > true
        assert predicted > (-3.0 if declared else log["reward"].min())
    assert above <= 2  # of 40; averages are taken at their lower end


def test_a_state_that_is_costly_to_enter_is_costly_for_rows_that_have_not_entered_it():
    rows = np.repeat(np.arange(60), 4)
    after = np.tile([0, 1, 2, 3], 60)
    kept = ~((after == 3) & (rows < 40))  # the others have entered the costly state 3
    paid = np.where(after == 3, -5.0, 1.0) + 0.1 * np.random.default_rng(0).normal(size=240)
    shown = Transitions(rows, 0 * rows, after, np.full(240, -1)).where(kept)
    size = np.where(after == 0, 1, 5)[kept]
    found = fit_noisy(shown, paid[kept], np.zeros(kept.sum()), size, (60, 1, 4))
    asked = Transitions(*np.array([[0, 1], [0, 0], [3, 3], [-1, -1]]))
    assert np.all(found.predict(asked, np.full(2, -9.0)) < -4.5)
    np.testing.assert_array_equal(found.predict(asked, np.full(2, -1.0)), -1.0)


def test_nothing_is_said_of_states_that_no_row_compares_and_by_few_tests():
    rows = np.repeat(np.arange(FEWEST_TESTS), 2)
    after = np.tile([0, 1], FEWEST_TESTS)
    shown = Transitions(rows, 0 * rows, after, np.full(len(rows), -1))
    size, paid = np.tile([1, 3], FEWEST_TESTS), np.tile([1.0, 2.0], FEWEST_TESTS)
    sizes = (FEWEST_TESTS, 1, 3)
    found = fit_noisy(shown, paid, 0 * paid, size, sizes)
    asked = Transitions(*np.array([[0], [0], [2], [-1]]))
    assert np.isnan(found.predict(asked, np.zeros(1))).all()
    fewer = rows < FEWEST_TESTS - 1
    assert fit_noisy(shown.where(fewer), paid[fewer], 0 * paid[fewer], size[fewer], sizes) is None
