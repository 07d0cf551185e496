"""The curse of choosing: there where luck was chosen, gone where there is no choice."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from surefoot.certificates.curse import (
    WHOLE,
    Loss,
    _departures,
    _larger,
    _regressing,
    _returns_on,
    balanced_halves,
    curse_of_choosing,
    curse_of_preferring,
    flattery,
    summarize,
)
from surefoot.certificates.evidence import Curse
from surefoot.certificates.halves import LogBuckets, as_seen
from surefoot.certificates.usual import CLEAR, PREFERRED, usual_rows
from surefoot.data.buckets import NUM_BUCKETS, deal
from surefoot.data.counts import Counts
from surefoot.domains import riverswim
from surefoot.model.step_policy import StepPolicy
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import evaluate, solve

ARMS, TRIES = 30, 100


def bandit(seed: int, arms: int) -> Counts:
    """From state 0 each arm wins (state 1, which pays 1) or loses (state 2), half and half."""
    wins = np.random.default_rng(seed).binomial(TRIES, 0.5, size=arms)
    counts = np.zeros((3, arms, 3), dtype=int)
    counts[0, :, 1], counts[0, :, 2] = wins, TRIES - wins
    support = counts > 0
    support[1, 0, 1] = support[2, 0, 2] = True
    rewards = np.zeros(counts.shape)
    rewards[0, :, 1] = 1.0
    return Counts.from_arrays(counts, support=support, rewards=rewards)


def divided(seed: int, arms: int) -> LogBuckets:
    counts = bandit(seed, arms)
    mdp = counts.to_mdp(discount=0.0, prior=1.0, initial=[1.0, 0.0, 0.0])
    posterior = DirichletPosterior(counts)
    return LogBuckets.of(posterior, mdp, counts, deal(counts, seed), costs=False, delta=0.05)


def measured(seed: int, arms: int = ARMS) -> Curse:
    return curse_of_choosing(divided(seed, arms), seed=seed)


def test_what_was_not_chosen_by_its_value_has_no_luck_to_lose() -> None:
    """The best of equal arms is as lucky beside a given arm; an arm beside itself is not."""
    first = np.zeros(3, dtype=int)
    found = [curse_of_preferring(divided(seed, ARMS), first, seed=seed) for seed in range(15)]
    deviation = np.sqrt(0.25 / (TRIES / 2))
    assert 1.6 * deviation < np.mean([one.mean for one in found]) / WHOLE < 2.4 * deviation
    alone = curse_of_preferring(divided(0, 1), first, seed=0)
    assert (alone.mean, alone.spread) == (0.0, 0.0)


def test_luck_goes_with_departures() -> None:
    """A policy that departs more often than those of halves owes more to luck than they do."""
    counts = riverswim().simulate(8, np.random.default_rng(3))
    mdp, posterior = counts.to_mdp(discount=0.95, prior=1.0), DirichletPosterior(counts)
    log = LogBuckets.of(posterior, mdp, counts, deal(counts, 3), costs=False, delta=0.05)
    given, opposite = np.ones(6, dtype=int), np.zeros(6, dtype=int)
    plain = curse_of_preferring(log, given, seed=3)
    halves = [np.array(half) for half in balanced_halves(6, seed=3)]
    sides = [side for half in halves for side in (half, np.setdiff1d(np.arange(NUM_BUCKETS), half))]
    theirs = np.mean([np.sum(log.choose(log.half(side)) != given) for side in sides])
    assert 0 < theirs < 6
    assert plain.spread > 0
    found = curse_of_preferring(log, given, opposite, seed=3)
    assert found.mean == pytest.approx(plain.mean * 6 / theirs)
    assert found.spread == pytest.approx(plain.spread * 6 / theirs)
    assert curse_of_preferring(log, given, given, seed=3).mean == plain.mean


def test_departures_that_no_half_makes_are_charged_by_regression() -> None:
    """An arm tried seven times beside one tried three hundred times: most halves leave it alone."""
    counts = np.zeros((3, 3, 3), dtype=int)
    counts[0, :, 1], counts[0, :, 2] = [150, 6, 2], [150, 1, 5]
    support = counts > 0
    support[1, 0, 1] = support[2, 0, 2] = True
    rewards = np.zeros(counts.shape)
    rewards[0, :, 1] = 1.0
    made = Counts.from_arrays(counts, support=support, rewards=rewards)
    mdp = made.to_mdp(discount=0.0, prior=1.0, initial=[1.0, 0.0, 0.0])
    log = LogBuckets.of(
        DirichletPosterior(made), mdp, made, deal(made, 3), costs=False, delta=0.05,
        keeps_usual=True,
    )  # fmt: skip
    usual, lucky = np.zeros(3, dtype=np.int64), np.array([1, 0, 0])
    sides = [
        side
        for half in map(np.array, balanced_halves(6, seed=3))
        for side in (half, np.setdiff1d(np.arange(NUM_BUCKETS), half))
    ]
    theirs = np.mean([log.choose(log.half(side))[0] != 0 for side in sides])
    assert theirs < 0.5
    lost = _regressing(log, lucky, usual, clear=CLEAR)
    assert _regressing(log, lucky, usual, clear=1) == lost  # nothing else departs
    gained = evaluate(mdp, lucky).return_upper - evaluate(mdp, usual).return_lower
    assert 0.02 < lost < gained
    plain, charged = (curse_of_choosing(log, policy, seed=3) for policy in (usual, lucky))
    assert charged.mean == pytest.approx(max(plain.mean + (1 - theirs) * lost, lost))
    assert charged.spread == plain.spread


@pytest.mark.parametrize("scatter", [0.0, 0.3])
def test_departures_of_equal_actions_are_luck(scatter: float) -> None:
    """Forty states with six actions: where actions differ by chance alone, all advantage is luck.

    Where they really differ, most of it stays.
    """
    rng = np.random.default_rng(5)
    states, actions = 40, 6
    size = states + 2
    counts = np.zeros((size, actions, size), dtype=int)
    for state in range(states):
        tries = rng.permutation([40, 30, 20, 20, 15, 10])
        chance = np.clip(0.5 + scatter * rng.normal(size=actions), 0.02, 0.98)
        wins = rng.binomial(tries, chance)
        counts[state, :, states], counts[state, :, states + 1] = wins, tries - wins
    support = np.zeros(counts.shape, dtype=bool)
    support[:states, :, states:] = True
    support[states, 0, states] = support[states + 1, 0, states + 1] = True
    rewards = np.zeros(counts.shape)
    rewards[:states, :, states] = 1.0
    made = Counts.from_arrays(counts, support=support, rewards=rewards)
    first = np.append(np.full(states, 1 / states), [0.0, 0.0])
    mdp = made.to_mdp(discount=0.0, prior=1.0, initial=first)
    log = LogBuckets.of(DirichletPosterior(made), mdp, made, deal(made, 3), costs=False, delta=0.05)
    policy = np.asarray(solve(mdp).policy, dtype=np.int64)
    usual = np.asarray(mdp.row_action[usual_rows(mdp, log.whole.visits)])
    gained = evaluate(mdp, policy).return_lower - evaluate(mdp, usual).return_lower
    lost = _regressing(log, policy, usual, clear=1)
    assert lost > 0.85 * gained if scatter == 0.0 else lost < 0.2 * gained
    preferred = _regressing(log, policy, usual, clear=PREFERRED)
    assert lost > preferred > 0.5 * lost  # not where another was tried nearly as often
    assert curse_of_preferring(log, usual, policy, seed=3).mean >= preferred


def test_departures_at_any_step_count() -> None:
    mdp = riverswim().mdp
    given = np.ones(6, dtype=int)
    by_step = np.ones((4, 6), dtype=int)
    assert _departures(mdp, StepPolicy.from_array(by_step), given) == 0
    by_step[0, 2] = by_step[1, 2] = by_step[2, 5] = 0  # not at the last step
    assert _departures(mdp, StepPolicy.from_array(by_step), given) == 2
    assert _departures(mdp, np.array([0, 1, 1, 1, 1, 1]), given) == 1


def test_equal_arms_show_the_luck_of_the_best() -> None:
    """Thirty equal arms, halves of 50 tries: the best of thirty is two deviations lucky."""
    found = np.mean([measured(seed).mean for seed in range(15)]) / WHOLE
    deviation = np.sqrt(0.25 / (TRIES / 2))
    assert 1.6 * deviation < found < 2.4 * deviation


def test_without_a_choice_only_the_prior_flatters() -> None:
    """One arm: what the halves differ by cancels, what the prior adds to both is found."""
    counts = bandit(0, arms=1)
    wins, curse = int(counts.count[0]), measured(0, arms=1)
    assert len(curse.differences) == 12
    assert abs(curse.differences).max() > 0.01
    # The prior is worth two tries, one of them won; a half has 50 of its own, more or less.
    flattered = WHOLE * (TRIES - 2 * wins) / TRIES / (TRIES / 2 + 2)
    assert curse.mean == pytest.approx(max(0.0, flattered), abs=2e-3)


def test_hardly_tried_rows_of_the_policy_are_charged_as_lucky_ones() -> None:
    """An arm that won its only try is chosen: no half can test it, but others show the luck."""
    counts = bandit(3, arms=ARMS)
    number = counts.count.copy()
    number[counts.entry_row == 0] = [1, 0]
    few = replace(counts, count=number)
    mdp = few.to_mdp(discount=0.0, prior=1.0, initial=[1.0, 0.0, 0.0])
    log = LogBuckets.of(
        DirichletPosterior(few), mdp, few, deal(few, 3), costs=False, delta=0.05
    )  # fmt: skip
    thin, thick = np.zeros(3, dtype=np.int64), np.array([1, 0, 0])
    plain = curse_of_choosing(log, seed=3).mean
    assert curse_of_choosing(log, thick, seed=3).mean == plain
    charged = curse_of_choosing(log, thin, seed=3).mean - plain
    deviation = np.sqrt(2 / 9) / np.sqrt(2)  # of a row with one try, two thirds by the prior
    assert deviation < charged < 3 * deviation


def test_halves_are_balanced_distinct_and_keyed() -> None:
    halves = balanced_halves(16, seed=4)
    assert halves == balanced_halves(16, seed=4)
    assert halves != balanced_halves(16, seed=5)
    assert len(set(halves)) == 16
    assert all(len(set(half)) == 8 and 0 in half for half in halves)
    with pytest.raises(ValueError, match="6435"):
        balanced_halves(7000, seed=0)


def test_the_error_counts_pairs_and_negative_means_are_no_bonus() -> None:
    """The two differences of a pair are one piece of evidence."""
    curse = summarize(np.array([-1.0, -3.0, 0.0, -2.0, -2.0, 2.0]))
    assert curse.mean == 0.0
    assert curse.spread == pytest.approx(WHOLE * np.std([-2.0, -1.0, 0.0], ddof=1) / np.sqrt(3))


def test_what_cannot_be_valued_is_not_taken_for_no_luck() -> None:
    """A difference that is no number counts against the promise, as much as there is."""
    for odd in (np.nan, np.inf, -np.inf):
        assert summarize(np.array([0.1, odd, 0.2, 0.1])).mean == np.inf


def test_frequencies_of_few_tries_are_valued_without_their_bias() -> None:
    """A coin is tossed until it fails: frequencies of a few tosses promise longer runs than it has.

    Averaged over all that a log may show, plain frequencies mistake the return by a share that goes
    with one over the tries; the value that halves are held against has hardly any of it.
    """
    tries, won, discount = 24, 0.5, 0.6
    plain = mended = 0.0
    for wins in range(tries + 1):
        counts = Counts.from_arrays(
            np.array([[[wins, tries - wins]], [[0, 1]]]),
            support=np.array([[[True, True]], [[False, True]]]),
            rewards=np.array([[[1.0, 0.0]], [[0.0, 0.0]]]),
        )
        mdp = counts.to_mdp(discount=discount, prior=1.0, initial=[1.0, 0.0])
        posterior, stay = DirichletPosterior(counts), np.zeros(2, dtype=np.int64)
        chance = binom.pmf(wins, tries, won) / 10
        for seed in range(10):
            dealt = deal(counts, seed)
            log = LogBuckets.of(posterior, mdp, counts, dealt, costs=False, delta=0.05)
            half = log.half(np.arange(NUM_BUCKETS))
            seen = as_seen(half, half)
            plain += chance * evaluate(seen, stay).return_lower
            mended += chance * _returns_on(log, stay, half, seen, np.zeros(mdp.num_rows))[1]
    truth = won / (1.0 - discount * won)
    assert plain - truth > 0.015
    assert abs(mended - truth) < 0.2 * (plain - truth)


def test_the_bias_of_frequencies_never_hides_luck() -> None:
    def luck(*by: tuple[float, float]) -> float:
        policy = np.zeros(1, dtype=np.int64)
        return _larger([Loss(policy, one, (0.0, 0.0)) for one in by]).mean / WHOLE

    assert luck((0.1, 0.3), (0.1, 0.1)) == pytest.approx(0.2)
    assert luck((0.3, -0.1), (0.1, 0.1)) == pytest.approx(0.2)
    assert luck((0.3, 0.0), (0.1, np.nan)) == np.inf


def test_a_prior_that_flatters_is_seen_without_any_choice() -> None:
    """An arm that wins one time in ten; a prior that believes in halves raises that."""
    counts = np.zeros((3, 1, 3), dtype=int)
    counts[0, 0, 1], counts[0, 0, 2] = 2, 18
    support = counts > 0
    support[1, 0, 1] = support[2, 0, 2] = True
    rewards = np.zeros(counts.shape)
    rewards[0, 0, 1] = 1.0
    log_counts = Counts.from_arrays(counts, support=support, rewards=rewards)
    found = {}
    for prior in (2.5, 1e-9):
        posterior = DirichletPosterior(log_counts, prior)
        mdp = log_counts.to_mdp(discount=0.0, prior=prior, initial=[1.0, 0.0, 0.0])
        log = LogBuckets.of(
            posterior, mdp, log_counts, deal(log_counts, 0), costs=False, delta=0.05
        )
        policy = np.zeros(3, dtype=int)
        found[prior] = flattery(log, policy)
        assert curse_of_choosing(log, policy, seed=0).mean >= found[prior]
    assert found[2.5] == pytest.approx(4.5 / 25 - 2 / 20)
    assert found[1e-9] == pytest.approx(0.0, abs=1e-9)
