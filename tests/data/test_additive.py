"""Rewards by pattern: found exactly, refused on a contradiction, silent on what is unknown."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import beta

from surefoot import DirichletPosterior, certify, read_transitions, solve
from surefoot.data.additive import (
    FEWEST_TESTS,
    SURE,
    SteadyRewards,
    Transitions,
    fit_additive,
    fit_steady,
    predict_by_less,
)


def bipartite(rng, rows, states, share=0.5):
    """Return entries ``(row, successor)`` of a random log, each once."""
    row, successor = np.nonzero(rng.random((rows, states)) < share)
    return row, successor


@pytest.mark.parametrize("seed", range(4))
def test_rewards_of_an_inventory_are_recovered(seed):
    """Orders cost by row, what is left in stock pays by next state: whole cents."""
    rng = np.random.default_rng(seed)
    f, h = rng.integers(-900, 0, 30) / 100, rng.integers(0, 500, 12) / 100
    row, successor = bipartite(rng, 30, 12)
    fit = fit_additive(row, successor, f[row] + h[successor], 30, 12)
    rows, states = np.divmod(np.arange(30 * 12), 12)
    np.testing.assert_allclose(fit.predict(rows, states), f[rows] + h[states], atol=1e-12)
    assert fit.tests == len(row) - 30 - 12 + 1


def test_one_contradiction_refuses_all():
    rng = np.random.default_rng(5)
    row, successor = bipartite(rng, 20, 10)
    reward = (row * 0.25 + successor**2).astype(float)
    assert fit_additive(row, successor, reward, 20, 10) is not None
    for entry in rng.integers(0, len(row), 10):
        wrong = reward.copy()
        wrong[entry] += 1e-4
        assert fit_additive(row, successor, wrong, 20, 10) is None


def test_rounding_is_no_contradiction():
    rng = np.random.default_rng(6)
    f, h = rng.normal(size=200) * 1e3, rng.normal(size=50) * 1e-2
    row, successor = bipartite(rng, 200, 50, share=0.1)
    reward = (f[row] + h[successor]) * (1 + 2e-16 * rng.integers(-2, 3, len(row)))
    fit = fit_additive(row, successor, reward, 200, 50)
    np.testing.assert_allclose(fit.predict(row, successor), reward, atol=1e-9)


def test_exact_in_fractions():
    """Terms of thirds: what floating point predicts is the fraction, rounded."""
    f, h = [Fraction(i, 3) for i in range(8)], [Fraction(-j, 7) for j in range(6)]
    row, successor = np.divmod(np.arange(0, 48)[np.arange(48) % 5 != 0], 6)
    reward = np.array([float(f[r] + h[t]) for r, t in zip(row, successor, strict=True)])
    fit = fit_additive(row, successor, reward, 8, 6)
    left = np.arange(0, 48, 5)
    expected = [float(f[k // 6] + h[k % 6]) for k in left]
    np.testing.assert_allclose(fit.predict(left // 6, left % 6), expected, rtol=0, atol=1e-14)


def test_disconnected_parts_say_nothing_of_each_other():
    """Rows 0-4 enter states 0-4, rows 5-9 states 5-9; row 10 and state 10 are in no transition."""
    pairs = [(r, t) for r in range(10) for t in range(10) if r // 5 == t // 5 and (r + t) % 6]
    row, successor = np.array(pairs).T
    fit = fit_additive(row, successor, 1.0 * row - 3.0 * successor, 11, 11)
    inside = fit.predict(np.array([0, 6]), np.array([0, 6]))
    np.testing.assert_allclose(inside, [0.0, 6.0 - 18.0])
    across = fit.predict(np.array([0, 6, 10, 0, 10]), np.array([5, 0, 3, 10, 10]))
    assert np.isnan(across).all()


def test_too_few_tests_are_not_believed():
    # Two rows of n states: n - 1 redundant transitions.
    for states, believed in ((FEWEST_TESTS, False), (FEWEST_TESTS + 1, True)):
        row, successor = np.divmod(np.arange(2 * states), states)
        fit = fit_additive(row, successor, row + 2.0 * successor, 2, states)
        assert (fit is not None) == believed
    nothing = np.zeros(0, dtype=np.int64)
    assert fit_additive(nothing, nothing, np.zeros(0), 2, 2) is None


def stock_log(noise=0.0, odd=0.0):
    """Stock 0-8, orders 0-2, demand 0-3; the reward is paid on what is left, orders cost."""
    rng = np.random.default_rng(7)
    stock, order = rng.integers(0, 9, 250), rng.integers(0, 3, 250)
    left = np.clip(stock + order - rng.integers(0, 4, 250), 0, 8)
    reward = -0.7 * order * (1 + stock % 2) + 0.3 * left**1.5 + noise * rng.normal(size=250)
    reward[17] += odd
    return {"state": stock, "action": order, "reward": reward, "next_state": left}


def truth(counts, e):
    stock, order, left = (
        np.array((*counts.state_labels[:9], np.nan), dtype=float)[counts.entry_state[e]],
        np.array(counts.action_labels, dtype=float)[counts.entry_action[e]],
        np.array((*counts.state_labels[:9], np.nan), dtype=float)[counts.successor[e]],
    )
    return -0.7 * order * (1 + stock % 2) + 0.3 * left**1.5


def unseen_entries(counts):
    """Entries between states of the log that never happened."""
    known = (counts.entry_state < 9) & (counts.successor < 9)
    return np.flatnonzero((counts.count == 0) & known)


def test_learned_support_fills_rewards_by_the_pattern():
    counts = read_transitions(stock_log()).on_support("learned")
    unseen = unseen_entries(counts)
    assert len(unseen) > 20
    np.testing.assert_allclose(counts.reward_mean[unseen], truth(counts, unseen), atol=1e-9)
    assert np.all(counts.reward_var[unseen] == 0)
    # What is left are the entries of the unseen state: they keep the lowest reward of the log.
    foreign = (counts.successor == counts.unseen) & (counts.entry_state < 9)
    assert np.all(counts.reward_mean[foreign] == counts.report.lowest_reward)
    assert counts.report.filled_rewards == np.count_nonzero(foreign)


@pytest.mark.parametrize("change", [{"noise": 0.1}, {"noise": 1e-6}, {"odd": 0.5}])
def test_a_log_that_contradicts_the_pattern_predicts_by_averages(change):
    counts = read_transitions(stock_log(**change)).on_support("learned")
    unseen = unseen_entries(counts)
    lowest = counts.reward_low[counts.entry_action[unseen]]
    assert np.all(counts.reward_mean[unseen] >= lowest)
    assert not np.allclose(counts.reward_mean[unseen], truth(counts, unseen))
    assert counts.reward_mean[unseen].mean() < truth(counts, unseen).mean()


@pytest.mark.parametrize("change", [{"noise": 0.1}, {"odd": 0.5}])
def test_without_a_prior_it_keeps_the_lowest_reward_of_the_action(change):
    every = np.indices((9, 3, 9)).reshape(3, -1)
    pairs = dict(zip(("state", "action", "next_state"), every, strict=True))
    counts = read_transitions(stock_log(**change)).on_support(pairs, steady=False)
    unseen = np.flatnonzero((counts.count == 0) & (counts.entry_state < 9))
    lowest = counts.reward_low[counts.entry_action[unseen]]
    np.testing.assert_array_equal(counts.reward_mean[unseen], lowest)


@pytest.mark.parametrize(("change", "low"), [({"noise": 0.1}, True), ({}, False)])
def test_predictions_at_their_lower_end_are_no_costs(change, low):
    every = np.indices((9, 3, 9)).reshape(3, -1)
    pairs = dict(zip(("state", "action", "next_state"), every, strict=True))
    counts = read_transitions(stock_log(**change)).on_support(pairs, steady=True)
    assert counts.report.filled_rewards == 0
    assert counts.report.filled_low == low
    posterior, mdp = DirichletPosterior(counts, 1.0), counts.to_mdp(discount=0.9, prior=1.0)
    if low:
        with pytest.raises(ValueError, match="best case"):
            certify(solve(mdp).policy, posterior, mdp, delta=0.1, draws=200, objective="min",
                    rng=np.random.default_rng(0))  # fmt: skip


def test_seen_rewards_stay_as_they_are():
    plain = read_transitions(stock_log())
    placed = plain.on_support("learned")
    np.testing.assert_array_equal(placed.reward_mean[placed.count > 0], plain.reward_mean)


def steady_by_definition(row, successor, kind, reward, count, rows):
    """Exceptions, tests and what rows pay, one row after the other."""
    states, kinds, tests, failed = set(), set(), 0, 0
    pays = np.full(rows, np.nan)
    for r in range(rows):
        here = np.flatnonzero(row == r)
        if len(here) == 0:
            continue
        values = sorted(set(reward[here].tolist()))
        heavy = [(np.sum(reward[here] == v), count[here][reward[here] == v].sum()) for v in values]
        usual = values[max(range(len(values)), key=lambda k: heavy[k])]
        if len(values) == 1:
            pays[r] = usual
        odd = here[reward[here] != usual]
        states |= set(successor[odd].tolist())
        kinds |= set(kind[odd].tolist()) - {-1}
        for j in here[count[here] == 1]:
            rest = np.setdiff1d(here, [j])
            if len(rest) and len(set(reward[rest].tolist())) == 1 and len(here) > 2:
                tests += 1
                failed += int(reward[j] != reward[rest[0]])
    return states, kinds, tests, failed, pays


@pytest.mark.parametrize("seed", range(6))
def test_steady_rewards_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    row, successor = bipartite(rng, 40, 12, share=0.4)
    row, successor = row[np.bincount(row)[row] > 2], successor[np.bincount(row)[row] > 2]
    kind = rng.integers(-1, 6, len(row))
    reward = np.where(rng.random(len(row)) < 0.08, rng.integers(-9, 0, len(row)), row % 5).astype(
        float
    )
    count = np.where(rng.random(len(row)) < 0.3, 1, 100 + np.arange(len(row)))  # no equals
    found = fit_steady(Transitions(row, 0 * row, successor, kind), reward, count, 40)
    states, kinds, tests, failed, pays = steady_by_definition(
        row, successor, kind, reward, count, 40
    )
    assert set(found.states.tolist()) == states
    assert set(found.kinds.tolist()) == kinds
    assert found.share == pytest.approx(beta.isf(0.05, failed + 1, tests - failed))
    np.testing.assert_array_equal(found.row, pays)


def test_exceptions_cost_their_share_of_the_way_down_and_known_ones_all_of_it():
    found = SteadyRewards(np.array([4.0, np.nan]), np.array([7]), np.array([3]), 0.25)
    asked = Transitions(*np.array([[0, 0, 0, 1], [0, 0, 0, 0], [1, 7, 1, 1], [-1, -1, 3, -1]]))
    paid = found.predict(asked, np.array([-8.0, -8.0, -8.0, -8.0]))
    np.testing.assert_array_equal(paid, [1.0, np.nan, np.nan, np.nan])
    low = found.predict(asked, np.full(4, 9.0))
    assert low[0] == 4.0  # the lowest reward lies above: nothing is added


def test_too_few_singletons_say_nothing_about_exceptions():
    once = np.ones(FEWEST_TESTS - 1, dtype=int)
    rows = np.repeat(np.arange(FEWEST_TESTS - 1), 2)
    count = np.stack([3 * once, once], axis=1).ravel()
    shown = Transitions(rows, 0 * rows, np.tile([0, 1], FEWEST_TESTS - 1), np.full(len(rows), -1))
    assert fit_steady(shown, np.ones(len(rows)), count, FEWEST_TESTS - 1) is None


def nearly_steady(rng, *, exceptions):
    """A log of steps around a circle, each paid by its state; some pay -10, wherever they lead."""
    state = rng.integers(0, 20, 600)
    step = rng.choice([1, 2, 3, 4, 5], 600, p=[0.5, 0.3, 0.1, 0.06, 0.04])
    reward = np.where(rng.random(600) < exceptions, -10.0, 0.5 * (state % 4))
    first = {}  # one reward for each transition
    key = state * 20 + (state + step) % 20
    for k, r in zip(key.tolist(), reward.tolist(), strict=True):
        first.setdefault(k, r)
    return {
        "state": state,
        "action": np.zeros(600, int),
        "reward": np.array([first[k] for k in key.tolist()]),
        "next_state": (state + step) % 20,
    }


def test_a_log_with_few_exceptions_charges_their_share_and_one_with_many_the_lowest():
    few = read_transitions(nearly_steady(np.random.default_rng(0), exceptions=0.01))
    many = read_transitions(nearly_steady(np.random.default_rng(0), exceptions=0.6))
    placed = {name: one.on_support("learned") for name, one in (("few", few), ("many", many))}
    for name, counts in placed.items():
        unseen = (counts.count == 0) & (counts.successor != counts.unseen)
        paid = counts.reward_mean[unseen]
        assert unseen.sum() > 10
        assert paid.min() >= -10.0
        between = (paid > -10.0) & (paid < 0.0)  # a state that pays nothing, less a share
        assert between.any() == (name == "few")


def test_declared_successors_keep_the_lowest_reward_of_the_action():
    """Sets without a prior may put all their weight on the one exception."""
    few = read_transitions(nearly_steady(np.random.default_rng(0), exceptions=0.01))
    state, following = np.divmod(np.arange(400), 20)
    listed = {"state": state, "action": np.zeros(400, int), "next_state": following}
    counts = few.on_support(listed)
    unseen = counts.count == 0
    assert unseen.sum() > 100
    np.testing.assert_array_equal(counts.reward_mean[unseen], -10.0)


def test_with_a_prior_declared_successors_pay_what_their_row_always_paid_less_exceptions():
    few = read_transitions(nearly_steady(np.random.default_rng(0), exceptions=0.01))
    state, following = np.divmod(np.arange(400), 20)
    listed = {"state": state, "action": np.zeros(400, int), "next_state": following}
    declared, learned = few.on_support(listed, steady=True), few.on_support("learned")
    paid = dict(
        zip(
            zip(learned.entry_state.tolist(), learned.successor.tolist(), strict=True),
            learned.reward_mean.tolist(), strict=True,
        )
    )  # fmt: skip
    unseen = np.flatnonzero(declared.count == 0)
    places = zip(
        declared.entry_state[unseen].tolist(), declared.successor[unseen].tolist(), strict=True
    )
    both = [
        (mean, paid[place])
        for mean, place in zip(declared.reward_mean[unseen].tolist(), places, strict=True)
        if place in paid
    ]
    assert len(both) > 10
    assert max(mean for mean, _ in both) > -1.0
    np.testing.assert_allclose(*zip(*both, strict=True))  # as where the support is learned


def test_rewards_that_depend_on_less_are_known_across_parts() -> None:
    """Two actions lead to states of their own, which pay: no transition connects the two.

    A row that never entered the other's states has no additive prediction for them. All rows agree
    that the next state alone pays, so it is expected to, less what exceptions may have been missed.
    """
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(40), 3)
    action = row % 2
    successor = np.concatenate([2 * rng.permutation(5)[:3] + r % 2 for r in range(40)])
    pays = np.arange(10.0)
    shown = Transitions(row, action, successor, np.full(len(row), -1))
    asked = Transitions(*np.array([[0, 1, 0], [0, 1, 0], [1, 2, 8], [-1, -1, -1]]))
    sizes = (40, 10)
    reward = pays[successor]
    fit = fit_additive(row, successor, reward, *sizes)
    assert fit is not None
    assert np.isnan(fit.predict(asked.row, asked.successor)[:2]).all()
    least = np.full(3, -2.0)
    found = predict_by_less(shown, reward, asked, least, sizes)
    missed = betaincinv(1.0, len(row) - 10, SURE)
    assert found == pytest.approx((1 - missed) * pays[[1, 2, 8]] + missed * least)
    # One transition that pays something else, and the next state says nothing any more.
    odd = reward.copy()
    odd[0] -= 0.5
    assert np.isnan(predict_by_less(shown, odd, asked, least, sizes)).all()


def test_of_patterns_that_all_agree_the_least_counts() -> None:
    """Some rows pay 5 and lead to one set of states, others 1 and lead to another."""
    row = np.repeat(np.arange(20), 2)
    successor = np.tile([0, 1], 20) + 2 * (row >= 10)
    reward = np.where(row < 10, 5.0, 1.0)
    shown = Transitions(row, 0 * row, successor, np.full(40, -1))
    asked = Transitions(*np.array([[0, 10], [0, 0], [2, 0], [-1, -1]]))
    found = predict_by_less(shown, reward, asked, np.zeros(2), (20, 4))
    assert (found < 1.0).all()  # 5 by the row and 1 by the next state; or the other way round
    assert (found > 0.8).all()
