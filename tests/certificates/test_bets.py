"""The bound for a mean holds as often as it says, for what it says, and is not loose."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from surefoot.certificates.bets import mean_above

RNG = np.random.default_rng
REPLICATIONS = 300


def allowed(delta: float) -> int:
    """The number of failures that a bound at ``delta`` exceeds in one case of a thousand."""
    return int(stats.binom.isf(0.001, REPLICATIONS, delta))


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: (rng.random(40) < 0.9, 0.9),
        lambda rng: (rng.random(60) < 0.03, 0.03),
        lambda rng: (rng.beta(0.2, 0.6, 50), 0.25),
        lambda rng: (rng.exponential(0.3, 100), 0.3),  # no upper limit is needed
        lambda rng: (rng.random(50) < np.linspace(0.1, 0.9, 50), 0.5),
    ],
    ids=["often", "rare", "beta", "unbounded", "not identical"],
)
def test_wrong_no_more_often_than_claimed(draw: Callable, delta: float) -> None:
    broken = 0
    for seed in range(REPLICATIONS):
        values, mean = draw(RNG(seed))
        broken += mean_above(values, delta=delta, scale=1.0) > mean
    assert broken <= allowed(delta)


def learner(seed: int, size: int = 80) -> tuple[np.ndarray, float]:
    """Behaviour that goes on with the arm that paid: returns, and the mean of what to expect."""
    rng = RNG(seed)
    arms, paid, tried = np.array([0.2, 0.8]), np.ones(2), np.full(2, 2.0)
    values, expected = np.empty(size), np.empty(size)
    for i in range(size):
        arm = rng.integers(2) if rng.random() < 0.1 else int(np.argmax(paid / tried))
        values[i], expected[i] = rng.random() < arms[arm], arms[arm]
        paid[arm] += values[i]
        tried[arm] += 1
    return values, float(expected.mean())


@pytest.mark.parametrize("upper", [False, True])
def test_holds_for_behaviour_that_learns(upper: bool) -> None:
    broken = 0
    for seed in range(REPLICATIONS):
        values, mean = learner(seed)
        if upper:
            broken += 1 - mean_above(1 - values, delta=0.1, scale=1.0) < mean
        else:
            broken += mean_above(values, delta=0.1, scale=1.0) > mean
    assert broken <= allowed(0.1)


@pytest.mark.parametrize(("size", "most"), [(50, 0.170), (200, 0.112)])
def test_as_tight_as_measured_on_frozen_lake(size: int, most: float) -> None:
    """Discounted returns with mean .064: .160 and .107 were found; empirical Bernstein .35, .15."""
    ends = []
    for seed in range(100):
        rng = RNG(seed)
        values = (rng.random(size) < 0.087) * 0.95 ** rng.integers(5, 8, size)
        ends.append(1 - mean_above(1 - values, delta=0.05, scale=1.0))
    assert np.mean(ends) < most


def test_is_the_root_of_the_mixture() -> None:
    """Against the definition, by hand: one number, any scale."""
    bound = mean_above([2.0] * 30, delta=0.1, scale=3.0)
    bets = np.sqrt(2 * np.log(10) / 30) / (3.0 * 0.25 * 4.0 ** -np.arange(7))
    weights = np.array([64, 32, 16, 8, 4, 2, 1]) / 127
    evidence = weights @ ((1 + 2 * bets) / (1 + bets * bound)) ** 30
    assert evidence == pytest.approx(10, rel=1e-9)


def test_more_doubt_allowed_is_a_higher_bound_and_scale_is_a_unit() -> None:
    values = RNG(3).random(100)
    bounds = [mean_above(values, delta=delta, scale=1.0) for delta in (0.001, 0.01, 0.1)]
    assert sorted(bounds) == bounds
    assert bounds[-1] < values.mean()
    assert mean_above(values * 1e6, delta=0.01, scale=1e6) == pytest.approx(1e6 * bounds[1])


@pytest.mark.parametrize(
    ("values", "delta", "scale", "match"),
    [
        ([-1.0], 0.1, 1.0, "0 or more"),
        ([np.nan], 0.1, 1.0, "0 or more"),
        ([1.0], 0.0, 1.0, "delta"),
        ([1.0], 0.1, np.nan, "scale"),
    ],
)
def test_bad_input_is_refused(values: list, delta: float, scale: float, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        mean_above(values, delta=delta, scale=scale)


def test_nothing_is_known_from_nothing() -> None:
    assert mean_above([], delta=0.1, scale=1.0) == 0.0
    assert mean_above([0.0, 0.0], delta=0.1, scale=5e-324) == 0.0
