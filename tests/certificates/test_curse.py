"""The curse of choosing: there where luck was chosen, gone where there is no choice."""

import numpy as np
import pytest

from surefoot.certificates.curse import balanced_halves, curse_of_choosing, summarize
from surefoot.data.buckets import deal
from surefoot.data.counts import Counts

ARMS = 30


def bandit(rng: np.random.Generator, chances: np.ndarray, tries: int) -> Counts:
    """From state 0, each arm leads to state 1 with its chance."""
    wins = rng.binomial(tries, chances)
    counts = np.zeros((2, len(chances), 2), dtype=int)
    counts[0, :, 0], counts[0, :, 1] = tries - wins, wins
    return Counts.from_arrays(counts)


def shares(counts: Counts) -> np.ndarray:
    """The observed share of successes of each arm; 0 where it was not tried."""
    wins, tries = np.zeros(ARMS), np.zeros(ARMS)
    np.add.at(tries, counts.entry_action, counts.count)
    np.add.at(wins, counts.entry_action, counts.count * (counts.successor == 1))
    return wins / np.maximum(tries, 1)


def measured(counts: Counts, seed: int, *, fixed: bool = False) -> float:
    return curse_of_choosing(
        counts, deal(counts, seed), seed=seed,
        choose=lambda half: 0 if fixed else int(np.argmax(shares(half))),
        value=lambda arm, half: float(shares(half)[arm]),
    ).differences.mean()  # fmt: skip


def test_equal_arms_show_the_luck_of_the_best() -> None:
    """Thirty equal arms, halves of 50 tries: the best of thirty is two deviations lucky."""
    found = [
        measured(bandit(np.random.default_rng(i), np.full(ARMS, 0.5), 100), i) for i in range(15)
    ]
    deviation = np.sqrt(0.25 / 50)
    # Whole-log noise is shared by the halves, whose own luck is sqrt(1/50 - 1/100) each way.
    assert 1.0 * deviation < np.mean(found) < 3.0 * deviation


def test_no_choice_no_curse() -> None:
    found = [
        measured(bandit(np.random.default_rng(i), np.full(ARMS, 0.5), 100), i, fixed=True)
        for i in range(15)
    ]
    assert abs(np.mean(found)) < 1e-12  # each pair is used both ways


def test_halves_are_balanced_distinct_and_keyed() -> None:
    halves = balanced_halves(16, seed=4)
    assert halves == balanced_halves(16, seed=4)
    assert halves != balanced_halves(16, seed=5)
    assert len(set(halves)) == 16
    assert all(len(set(half)) == 8 and 0 in half for half in halves)
    with pytest.raises(ValueError, match="6435"):
        balanced_halves(7000, seed=0)


def test_negative_means_are_no_bonus_and_nonsense_is_refused() -> None:
    curse = summarize(np.array([-1.0, -3.0]))
    assert curse.mean == 0.0
    assert curse.spread == pytest.approx(np.sqrt(2 + 2))  # one pair: its error is not known better
    with pytest.raises(ValueError, match="finite"):
        summarize(np.array([1.0, np.nan]))
