"""The backtest of a run: visits, and what the second half of a log can say."""

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.curse import WHOLE, balanced_halves
from surefoot.certificates.evidence import Curse
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.held_out import backtest
from surefoot.data.buckets import BucketCounts, deal
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.visits import visits_of

NO_LUCK = Curse(mean=0.0, spread=0.0)
HELD = next(i for i in range(16) if i not in balanced_halves(1, seed=0)[0])


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_visits_are_those_of_a_dense_solve(discount):
    mdp = sf.garnet(30, 3, 4, discount=discount, rng=np.random.default_rng(2)).mdp
    policy = np.random.default_rng(3).integers(3, size=30)
    played = mdp.to_arrays().transitions[np.arange(30), policy]
    wanted = np.linalg.solve(np.eye(30) - discount * played.T, mdp.initial)
    found = visits_of(mdp, check_policy(mdp, policy))
    assert np.all(found <= wanted + 1e-12)  # summed up to a rest
    assert np.abs(wanted - found).sum() <= 1e-6 * wanted.sum()


def outcome(counts, parts):
    posterior = sf.LearnedPosterior(counts)
    mdp = posterior.to_mdp(discount=0.9)
    log = LogBuckets.of(posterior, mdp, counts, parts, costs=False, delta=0.05)
    return backtest(log, counts, parts, NO_LUCK, np.random.default_rng(0), seed=0)


def garnet_log(seed):
    domain = sf.garnet(10, 2, 4, discount=0.9, rng=np.random.default_rng(5))
    log = domain.log(episodes=30, rng=np.random.default_rng(seed))
    return sf.read_transitions(log, episode="episode", step="step")


def test_a_log_of_one_world_passes():
    p_values = []
    for seed in range(6):
        counts = garnet_log(seed)
        found = outcome(counts, deal(counts, seed))
        assert found.new_successors is not None
        p_values.append(found.p_value)
    assert sum(p < 0.05 for p in p_values) <= 2


def moved(counts, parts, chosen):
    """Put all transitions of some entries into the held-out half."""
    late = np.isin(parts.entry, np.flatnonzero(chosen))
    bucket = np.where(late, HELD, parts.bucket)
    order = np.lexsort((bucket, parts.entry))
    fields = {
        name: getattr(parts, name)[order]
        for name in ("entry", "count", "reward_mean", "reward_var")
    }
    return BucketCounts(bucket=bucket[order], **fields)


def test_successors_that_only_the_second_half_saw_are_noticed():
    counts = garnet_log(0)
    start = counts.row_start[:-1]
    first = np.zeros(counts.num_entries, dtype=bool)
    first[start[np.diff(counts.row_start) > 1]] = True
    found = outcome(counts, moved(counts, deal(counts, 0), first))
    assert found.new_successors.seen > 2 * found.new_successors.expected
    assert found.failed


def two_arms(wins):
    """One state that pays where it stays; ``wins`` of 400 stay in each half."""
    support = np.array([[[True, True]], [[True, False]]])
    counts = np.array([[[sum(wins), 800 - sum(wins)]], [[100, 0]]])
    made = sf.Counts.from_arrays(counts, support=support, rewards=[[[1.0, 0.0]], [[0.0, 0.0]]])
    own = balanced_halves(1, seed=0)[0][0]
    each = [(0, own, wins[0]), (0, HELD, wins[1]), (1, own, 400 - wins[0])]
    each += [(1, HELD, 400 - wins[1]), (2, own, 50), (2, HELD, 50)]
    entry, bucket, count = np.array(each)[np.lexsort(np.array(each).T[1::-1])].T
    parts = BucketCounts(
        entry=entry, bucket=bucket, count=count, reward_mean=made.reward_mean[entry],
        reward_var=made.reward_var[entry],
    )  # fmt: skip
    mdp = made.to_mdp(discount=0.5, prior=1.0)
    log = LogBuckets.of(sf.DirichletPosterior(made), mdp, made, parts, costs=False, delta=0.05)
    return lambda curse: backtest(log, made, parts, curse, np.random.default_rng(0), seed=0)


def test_worse_steps_than_expected_are_noticed_and_luck_is_allowed_for():
    even, worse = two_arms((200, 200)), two_arms((240, 160))
    assert even(NO_LUCK).new_successors is None  # all successors are declared
    assert even(NO_LUCK).advantage.p_value == pytest.approx(0.5, abs=0.1)
    found = worse(NO_LUCK)
    assert found.failed
    assert found.advantage.statistic < 0
    # The curse is that of the whole log; a half has more luck, by the same factor.
    lucky = worse(Curse(mean=abs(found.advantage.statistic) * WHOLE, spread=0.0))
    assert lucky.advantage.p_value == pytest.approx(0.5, abs=0.03)  # by a thousand draws
    assert not lucky.failed
