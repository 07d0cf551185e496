"""The backtest: fails as often as its level where the model is right, more where it is not."""

import numpy as np
import pytest
from scipy import stats

import surefoot as sf
from surefoot.certificates import backtest
from surefoot.certificates.backtest import (
    advantage,
    held_out_rewards,
    new_successors,
    newly_seen,
)
from surefoot.certificates.evidence import Advantage, Backtest, NewSuccessors
from surefoot.data.counts import Counts


def test_new_successors_follow_their_predictive_law() -> None:
    """P-values under the model's own law are at least uniform."""
    parameters = np.array([[0.5, 1.0, 2.0], [5.0, 20.0, 8.0]])
    trials = np.array([30, 12, 50])
    p_values = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        seen = rng.binomial(trials, rng.beta(*parameters))
        p_values.append(new_successors(trials, seen, rng, beta=parameters).p_value)
    assert sum(p < 0.1 for p in p_values) <= stats.binom.isf(0.001, 120, 0.1)
    assert sum(p < 0.5 for p in p_values) >= stats.binom.ppf(0.001, 120, 0.3)  # not always 1


def test_draws_and_parameters_agree() -> None:
    rng = np.random.default_rng(0)
    parameters = np.array([[2.0, 1.0], [6.0, 3.0]])
    draws = rng.beta(parameters[0], parameters[1], size=(4000, 2))
    exact = new_successors([20, 20], [9, 8], rng, beta=parameters)
    drawn = new_successors([20, 20], [9, 8], rng, draws=draws)
    assert drawn.expected == pytest.approx(exact.expected, rel=0.02)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.03)


def test_many_rows_are_normal_and_agree_with_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    beta, trials = np.tile([[1.0], [9.0]], 150), np.full(150, 6)
    seen = np.repeat([0, 1], [40, 110])
    fast = new_successors(trials, seen, np.random.default_rng(0), beta=beta)
    monkeypatch.setattr(backtest, "ENOUGH_ROWS", np.inf)
    slow = new_successors(trials, seen, np.random.default_rng(0), beta=beta)
    assert fast.expected == slow.expected == pytest.approx(90)
    assert fast.p_value == pytest.approx(slow.p_value, abs=0.02)


def test_thousands_of_drawn_rows_are_normal_and_agree_with_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    draws = rng.beta(1.0, 30.0, size=(200, 400))
    trials = rng.integers(5, 30, 400)
    seen = rng.binomial(trials, draws[0])
    simulated = new_successors(trials, seen, rng, draws=draws)
    monkeypatch.setattr(backtest, "MOST_SIMULATED", 100)
    monkeypatch.delattr(backtest, "_simulated")
    normal = new_successors(trials, seen, rng, draws=draws)
    assert normal.expected == simulated.expected
    assert normal.p_value == pytest.approx(simulated.p_value, abs=0.03)
    none = new_successors(trials, trials, rng, draws=draws)
    assert none.p_value is not None
    assert none.p_value < 0.001


def test_too_little_mass_is_found() -> None:
    found = new_successors([100], [15], np.random.default_rng(0), beta=[[1.0], [60.0]])
    assert found.p_value < 0.005
    assert Backtest(new_successors=found, advantage=None).failed


def test_rows_and_successors_are_matched_by_id() -> None:
    known = Counts.from_arrays([[[3, 0, 1], [0, 0, 0]], [[0, 2, 0], [5, 0, 0]], [[0, 0, 0]] * 2])
    held = Counts.from_arrays([[[1, 2, 3], [4, 0, 0]], [[0, 0, 0], [0, 0, 6]], [[1, 0, 0]] * 2])
    row, trials, new = newly_seen(known, held)
    assert row.tolist() == [0, 2]  # (0, 0) and (1, 1); the others were not played in both
    assert trials.tolist() == [6, 6]
    assert new.tolist() == [2, 6]


def test_advantage_has_its_level_and_its_power() -> None:
    weight, spread, number = (
        np.array([3.0, 1.0, 0.5]),
        np.array([1.0, 4.0, 0.25]),
        np.array([40, 9, 3]),
    )
    alarms = {0.0: 0, -0.8: 0}
    for seed in range(400):
        noise = np.random.default_rng(seed).normal(size=3) * np.sqrt(spread / number)
        for shift in alarms:
            found = advantage(weight, np.ones(3), spread, 1 + shift + noise, number)
            alarms[shift] += found.p_value < 0.05
    assert alarms[0.0] <= stats.binom.isf(0.001, 400, 0.05)
    assert alarms[0.0] >= stats.binom.ppf(0.001, 400, 0.05)
    assert alarms[-0.8] > 300


def test_rows_that_showed_no_spread_are_not_judged() -> None:
    found = advantage([1.0, 3.0], [1.0, 2.0], [0.0, 0.0], [0.5, 2.0], [4, 4])
    assert found == Advantage(statistic=0.0, error=0.0, uncovered=0.25, p_value=None)


def test_the_two_tests_share_the_level() -> None:
    new = NewSuccessors(seen=5, expected=4.0, tried=50, p_value=0.008)
    low = Advantage(statistic=-1.0, error=0.5, uncovered=0.1, p_value=0.02)
    assert not Backtest(new_successors=new, advantage=low).failed
    assert Backtest(new_successors=new, advantage=low).p_value == 0.016
    assert Backtest(new_successors=new, advantage=None).failed
    assert Backtest(new_successors=None, advantage=None).p_value is None
    assert not Backtest(new_successors=None, advantage=None).failed


def test_shapes_and_numbers_are_checked() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="must be"):
        new_successors([1, 2], [1], rng, draws=[[0.1, 0.1]])
    with pytest.raises(ValueError, match="between 0 and trials"):
        new_successors([1], [2], rng, draws=[[0.1], [0.2]])
    with pytest.raises(ValueError, match="once"):
        new_successors([1], [1], rng)


def noisy_halves(model: str, seed: int, less: float = 0.0) -> tuple[sf.Counts, sf.Counts]:
    """Return two halves of a log with rewards that scatter; the second brings less."""
    rng = np.random.default_rng(seed)
    state = rng.integers(3, size=600)
    log = {
        "state": state, "action": np.zeros(600, dtype=int), "next_state": (state + 1) % 3,
        "reward": rng.normal(size=600) - np.where(np.arange(600) < 300, 0.0, less),
    }  # fmt: skip
    bounds = (-10.0, 10.0) if model == "bounded" else None
    first, second = (
        sf.read_transitions(
            {name: values[part] for name, values in log.items()},
            rewards=model,  # type: ignore[arg-type]
            reward_range=bounds,
        )
        for part in (slice(0, 300), slice(300, 600))
    )
    return first, second


@pytest.mark.parametrize("model", ["bounded", "normal"])
def test_held_out_rewards_have_their_level_and_their_power(model: str) -> None:
    rng = np.random.default_rng(0)
    level = [held_out_rewards(*noisy_halves(model, seed), rng) for seed in range(30)]
    assert sum(found.p_value < 0.05 for found in level if found) <= 5
    power = [held_out_rewards(*noisy_halves(model, seed, less=1.0), rng) for seed in range(5)]
    assert all(found is not None and found.p_value < 0.01 for found in power)
    assert power[0] is not None
    assert power[0].statistic < -0.5


def test_a_mass_that_is_a_little_small_is_tolerated() -> None:
    draws = np.full((100, 500), 0.05)
    seen = np.full(500, 0)
    seen[: int(500 * 100 * 0.055) // 10] = 10  # 5.5% where 5% were expected
    rng = np.random.default_rng(0)
    strict = new_successors(np.full(500, 100), seen, rng, draws=draws)
    assert strict.p_value < 0.001
    kind = new_successors(np.full(500, 100), seen, rng, draws=draws, tolerated=0.2)
    assert kind.p_value > 0.5
    assert kind.expected == strict.expected
