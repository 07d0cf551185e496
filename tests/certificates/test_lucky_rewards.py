"""What a policy owes to lucky rewards: its lead where rows are alike, nothing where they differ."""

from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.lucky_rewards import lucky_rewards
from surefoot.data.counts import Counts

ROWS, TRIES = 40, 25


def arms(paid: Any, **options: Any) -> Counts:
    """Return counts of one action in many states: state ``k`` shows ``paid[k]``, and ends."""
    rows, tries = paid.shape
    log = {"state": np.repeat(np.arange(rows), tries), "action": np.zeros(rows * tries, dtype=int),
           "next_state": np.full(rows * tries, rows), "reward": paid.ravel()}  # fmt: skip
    return sf.read_transitions(log, **options).on_support("observed")


def seen(rng: np.random.Generator, mean: Any) -> Any:
    """Return losses of 20 with probability .05, around means."""
    struck = rng.random((ROWS, TRIES)) < 0.05
    return np.broadcast_to(mean, (ROWS, TRIES)) - 20.0 * struck


def played_best(counts: Counts) -> tuple[Any, Any]:
    """Return a model, and plays of the row that looks best."""
    mdp = counts.to_mdp(discount=0.5, prior=1.0)
    worth = np.add.reduceat(mdp.probability * mdp.entry_reward, mdp.row_start[:-1])[:ROWS]
    return mdp, np.eye(1, mdp.num_rows, int(np.argmax(worth))).ravel()


def test_rows_that_are_alike_owe_their_lead_to_luck() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(5):
        counts = arms(seen(rng, 1.0), reward_range=(-20.0, 1.0))
        mdp, plays = played_best(counts)
        found.append(lucky_rewards(mdp, counts, plays))
    # The best of 40 rows met no loss: it shows 1, and a step brings 0 on average.
    assert 0.6 < np.mean(found) < 1.1


def test_rows_that_differ_keep_theirs() -> None:
    rng = np.random.default_rng(2)
    means = np.linspace(0.0, 60.0, ROWS)[:, None]
    counts = arms(seen(rng, means), reward_range=(-20.0, 60.0))
    mdp, plays = played_best(counts)
    # Means scatter by 18 and their errors are .9: .2% of the way from 60 to the middle.
    assert lucky_rewards(mdp, counts, plays) < 0.5


def test_it_goes_with_the_difference_of_plays() -> None:
    counts = arms(seen(np.random.default_rng(3), 1.0), reward_range=(-20.0, 1.0))
    mdp, plays = played_best(counts)
    one = lucky_rewards(mdp, counts, plays)
    assert lucky_rewards(mdp, counts, 3.0 * plays) == pytest.approx(3.0 * one)
    assert lucky_rewards(mdp, counts, plays - plays) == 0.0
    assert lucky_rewards(mdp, counts, -plays) == 0.0  # who avoids a lucky row owes it nothing


@pytest.mark.parametrize("options", [{"rewards": "normal"}, {}])
def test_rewards_that_regress_in_draws_or_are_known_owe_nothing(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    rewards = seen(rng, 1.0) if options else np.tile(rng.random((ROWS, 1)), (1, TRIES))
    counts = arms(rewards, **options)
    mdp, plays = played_best(counts)
    assert lucky_rewards(mdp, counts, plays) == 0.0
