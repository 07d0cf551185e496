"""A log in halves, tested by whoever is there: this process, or workers."""

import numpy as np

import surefoot as sf
from surefoot.certificates import curse
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.held_out import luck_and_backtest
from surefoot.data.buckets import NUM_BUCKETS, deal


def what_halves_say():
    """Return what halves of a log say, in all digits: luck, new successors, steps, rewards."""
    domain = sf.garnet(10, 2, 4, discount=0.9, rng=np.random.default_rng(5))
    log = domain.log(episodes=30, rng=np.random.default_rng(0))
    log["reward"] = np.random.default_rng(1).random(len(log["reward"]))
    counts = sf.read_transitions(log, episode="episode", step="step", reward_range=(0.0, 1.0))
    posterior, parts = sf.LearnedPosterior(counts), deal(counts, 0)
    mdp = posterior.to_mdp(discount=0.9)
    halves = LogBuckets.of(posterior, mdp, counts, parts, costs=False, delta=0.05)
    policy = halves.choose(halves.half(np.arange(NUM_BUCKETS)))
    luck, held = luck_and_backtest(halves, counts, parts, policy, np.random.default_rng(0), seed=0)
    again = curse.curse_of_choosing(halves, policy, seed=0)
    assert (again.mean, again.spread) == (luck.mean, luck.spread)
    assert None not in (held.new_successors, held.advantage, held.rewards)
    return luck.differences.tolist(), repr(luck), repr(held)
