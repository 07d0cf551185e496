"""`LearnedPosterior`: its mean, its streams, logs of every shape, and what it promises."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from tests.heavy_rows import heavy_counts

from surefoot import Counts, DirichletPosterior, LearnedPosterior, read_transitions
from surefoot.domains import machine_replacement
from surefoot.domains.garnet import garnet
from surefoot.posterior import learned_kernels as kernels
from surefoot.posterior.row_laws import ALPHA, LAWS, STRENGTH

KEY = (np.uint64(5), np.uint64(7))


def random_counts(rng, states=6, actions=2, successors=3, visits=8):
    count = np.zeros((states, actions, states), dtype=np.int64)
    for s in range(states):
        for a in range(actions):
            to = rng.choice(states, successors, replace=False)
            p = rng.dirichlet(np.full(successors, 0.5))
            count[s, a, to] = rng.multinomial(rng.integers(0, visits), p)
    count[0, 0, 1] += 1
    return count


def table(states, actions, next_states):
    return {
        "state": np.array(states),
        "action": np.array(actions),
        "reward": np.arange(len(states)) % 3,
        "next_state": np.array(next_states),
    }


def learned_support(seed):
    return Counts.from_arrays(random_counts(np.random.default_rng(seed)))


def declared_support():
    rng = np.random.default_rng(3)
    return Counts.from_arrays(random_counts(rng), support=np.ones((6, 2, 6)))


def rows_never_tried():
    count = random_counts(np.random.default_rng(4), visits=3)
    return Counts.from_arrays(count, rewards=np.zeros((6, 2))).on_support(
        "learned", unvisited="prior"
    )


def one_entry_rows():
    rng = np.random.default_rng(5)
    count = random_counts(rng, successors=2)
    count[2, :, :] = 0
    count[2, :, 3] = 7
    support = count > 0
    support[:, :, 0] |= ~support.any(axis=2)
    support[1] = True
    return Counts.from_arrays(count, support=support)


def one_state():
    return Counts.from_arrays([[[5], [1]]])


def one_row_of_an_action():
    count = random_counts(np.random.default_rng(6), actions=3)
    count[1:, 2] = 0
    count[0, 2, 4] = 2
    return Counts.from_arrays(count)


def several_columns():
    rng = np.random.default_rng(7)
    n = 200
    place, mood = rng.integers(0, 3, n + 1), rng.choice(["calm", "busy"], n + 1)
    log = {
        "place": place[:-1], "mood": mood[:-1], "action": rng.choice(["a", "b"], n),
        "reward": rng.integers(0, 2, n), "next_place": place[1:], "next_mood": mood[1:],
    }  # fmt: skip
    return read_transitions(
        log, state=["place", "mood"], next_state=["next_place", "next_mood"], action="action"
    )


def words():
    rng = np.random.default_rng(8)
    names = np.array(["cold", "cool", "warm", "hot"])
    state = rng.choice(names, 121)
    return read_transitions(table(state[:-1], rng.choice(["x", "y"], 120), state[1:]))


def long_rows():
    rng = np.random.default_rng(9)
    count = np.zeros((4, 2, 4), dtype=np.int64)
    for s in range(4):
        count[s, 0, :3] = rng.multinomial(3000, [0.34, 0.33, 0.33])
        count[s, 1, [0, s]] += [199, 1]
    return Counts.from_arrays(count)


def float_counts():
    counts = learned_support(10)
    return replace(counts, count=counts.count * np.where(counts.count > 2, 0.37, 1.5))


LOGS = [
    pytest.param(lambda: learned_support(0), id="learned"),
    pytest.param(lambda: learned_support(1), id="learned again"),
    declared_support, rows_never_tried, one_entry_rows, one_state, one_row_of_an_action,
    several_columns, words, long_rows, float_counts,
]  # fmt: skip


@pytest.fixture(scope="module", params=LOGS)
def posterior(request):
    return LearnedPosterior(request.param())


def test_mean_is_the_average_of_draws(posterior):
    n = 6000
    draws = posterior.sample(n, np.random.default_rng(0))
    assert np.isfinite(draws).all()
    assert (draws >= 0).all()
    sums = np.add.reduceat(draws, posterior.row_start[:-1], axis=1)
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)
    mean = posterior.mean()
    np.testing.assert_allclose(np.add.reduceat(mean, posterior.row_start[:-1]), 1.0, rtol=1e-12)
    error = np.maximum(draws.std(axis=0), 1e-3 * mean) / np.sqrt(n)
    assert np.all(np.abs(draws.mean(axis=0) - mean) <= 4.8 * error + 1e-6)


def test_same_bits_for_any_rows_ranges_blocks_and_threads(posterior):
    whole = posterior.draws(KEY, 0, 50)
    np.testing.assert_array_equal(posterior.draws(KEY, 0, 50, threads=3), whole)
    np.testing.assert_array_equal(posterior.draws(KEY, 19, 41), whole[19:41])
    rows = np.arange(posterior.layout.num_rows)[::-2]
    entries = posterior.layout.entries_of(rows)
    np.testing.assert_array_equal(posterior.draws(KEY, 33, 50, rows), whole[33:50, entries])
    stream = posterior.stream(50, np.random.default_rng(4), rows)
    sample = posterior.sample(50, np.random.default_rng(4))
    np.testing.assert_array_equal(np.concatenate(list(stream)), sample[:, entries])


def test_given_the_whole_counts_is_the_mean(posterior):
    np.testing.assert_array_equal(posterior.given(posterior.counts.count).mean(), posterior.mean())


def test_given_parts_is_a_model(posterior):
    count = posterior.counts.count
    for part in (np.zeros_like(count), count // 2, np.where(np.arange(len(count)) % 2, count, 0)):
        mean = posterior.given(part).mean()
        assert np.isfinite(mean).all()
        assert (mean >= 0).all()
        np.testing.assert_allclose(np.add.reduceat(mean, posterior.row_start[:-1]), 1.0)


def test_nothing_of_a_display_fails(posterior):
    assert "learned from all rows" in posterior.summary()
    assert repr(posterior).startswith("LearnedPosterior(")


def test_streams_that_span_several_blocks():
    posterior = LearnedPosterior(learned_support(2))
    n = 3 * 2**20 // posterior.num_entries
    blocks = list(posterior.stream(n, np.random.default_rng(3)))
    assert len(blocks) > 1
    whole = posterior.sample(n, np.random.default_rng(3))
    np.testing.assert_array_equal(np.concatenate(blocks), whole)


def where_one_lands(posterior, row):
    """Where an unseen successor of a row is expected, entry by entry, by the definition."""
    found = posterior.destinations
    begin, end = posterior.row_start[row : row + 2]
    successors = posterior.counts.successor[begin:end]
    parts = len(found.shares)
    starts = found.start[parts * row : parts * (row + 1) + 1]
    listed = [slice(*ends) for ends in pairwise(starts.tolist())]
    share = found.shares * (np.diff(starts) > 0)
    out = np.zeros(end - begin)
    for p, at in enumerate(listed):
        for state, weight in zip(found.state[at], found.weight[at], strict=True):
            out[successors == state] += share[p] / share.sum() * weight
    out[successors == posterior.counts.unseen] += 1 - out.sum()
    return out


@pytest.mark.parametrize("kind", ["even", "heavy"])
def test_draws_of_one_row_by_simulation_from_the_definition(kind):
    """Quantiles of each entry against an independent sampler in plain NumPy."""
    posterior = LearnedPosterior(learned_support(0) if kind == "even" else heavy_counts())
    laws, found, rng = posterior.laws, posterior.destinations, np.random.default_rng(5)
    assert laws.heavy  # a small log may be anything
    distinct = 2 if kind == "even" else int(np.median(laws.distinct))
    row = int(np.flatnonzero((laws.distinct == distinct) & posterior.open_rows)[0])
    begin, end = posterior.row_start[row : row + 2]
    count = posterior.counts.count[begin:end].astype(float)
    n, a = 4000, laws.action[row]
    size_law, alpha_law = laws.draw(rng.random((n, laws.uniforms)))
    by_hand = np.zeros((n, end - begin))
    successors = posterior.counts.successor[begin:end]
    landing = where_one_lands(posterior, row)
    parts = len(found.shares)
    for i in range(n):
        s, law = size_law[i, a], LAWS[alpha_law[i, a]]
        log = laws.marginal[laws.fine[row], s] + laws.shape[row]
        weight = law * np.exp(log - log.max())
        chosen = rng.choice(len(ALPHA), p=weight / weight.sum())
        alpha, strength = ALPHA[chosen], STRENGTH[laws.usual[s]]
        sizes = np.diff(laws.sizes[laws.group[row], s, chosen], prepend=0.0)
        unseen = rng.choice(len(sizes), p=sizes / sizes.sum()) - laws.distinct[row]
        share = rng.gamma(found.shares)
        nonempty = np.diff(found.start)[parts * row : parts * (row + 1)] > 0
        share = share * nonempty / (share * nonempty).sum()
        gamma = np.where(count > 0, rng.gamma(np.maximum(count + alpha, 1e-9)), 0.0)
        new = rng.gamma(alpha if alpha > 0 else 1.0, size=unseen)
        if alpha < 0:
            new *= rng.gamma(strength - laws.distinct[row] * alpha) / new.sum()
        for mass in new:
            at = parts * row + rng.choice(parts, p=share)
            listed = slice(found.start[at], found.start[at + 1])
            rest = max(0.0, 1.0 - found.weight[listed].sum())
            p = np.append(found.weight[listed], rest)
            pick = rng.choice(
                np.append(found.state[listed], posterior.counts.unseen), p=p / p.sum()
            )
            gamma[successors == pick] += mass
        rare = posterior.rare.draw(rng.random((1, posterior.layout.num_actions)))[0, a]
        rare = 1 - (1 - rare) ** posterior.rare.open[row]
        by_hand[i] = (1 - rare) * gamma / gamma.sum() + rare * landing
    draws = posterior.draws(KEY, 0, n, [row])
    for entry in range(end - begin):
        ours, theirs = np.round(draws[:, entry], 12), np.round(by_hand[:, entry], 12)
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-4


def test_heavy_tailed_rows_keep_what_is_usual():
    """A symmetric prior takes a third of the mass of usual successors; here they keep it."""
    posterior = LearnedPosterior(heavy_counts())
    counts, mean = posterior.counts, posterior.mean()
    stays = (counts.successor == counts.entry_state) & (counts.count >= 10)
    tries = np.add.reduceat(counts.count, counts.row_start[:-1])[counts.entry_row[stays]]
    kept = mean[stays] / (counts.count[stays] / tries)
    assert kept.mean() > 0.9
    draws = posterior.sample(4000, np.random.default_rng(1))
    error = draws.std(axis=0) / np.sqrt(4000)
    assert np.abs(draws.mean(axis=0) - mean)[counts.count > 0].max() < 5 * error.max()


def test_a_candidate_never_doubles_what_was_seen():
    posterior = LearnedPosterior(learned_support(1))
    _, entry, _ = posterior._places
    assert np.all(posterior.counts.count[entry] == 0)


def test_more_data_leave_less_unseen():
    domain = machine_replacement()
    missing = []
    for visits in (3, 30, 300):
        counts = domain.simulate(visits, np.random.default_rng(0))
        dense = np.zeros((domain.mdp.num_states, counts.num_actions, domain.mdp.num_states), int)
        dense[counts.entry_state, counts.entry_action, counts.successor] = counts.count
        posterior = LearnedPosterior(Counts.from_arrays(dense))
        unseen = np.where(posterior.counts.count == 0, posterior.mean(), 0.0)
        rows = np.add.reduceat(unseen, posterior.row_start[:-1])[posterior.open_rows]
        missing.append(rows.mean())
    assert missing[0] > 2 * missing[1] > 4 * missing[2]


def test_anything_but_counts_is_refused():
    with pytest.raises(ValueError, match="counts must be Counts, got list"):
        LearnedPosterior([[1]])


def test_laws_of_many_draws_are_quick():
    rng = np.random.default_rng(11)
    posterior = LearnedPosterior(Counts.from_arrays(random_counts(rng, states=20, actions=11)))
    posterior._drawn_laws(KEY, 0, 16)
    taken = []
    for _ in range(5):
        start = time.process_time()
        posterior._drawn_laws(KEY, 0, 2000)
        taken.append(time.process_time() - start)
    assert min(taken) < 0.25  # of the processor's time: a loop over draws would take seconds


def test_a_draw_costs_at_most_a_few_dirichlet_draws():
    """Wanted is 2; a busy machine is allowed 4."""
    counts = garnet(300, 5, 8, discount=0.9, rng=np.random.default_rng(0)).simulate(
        20, np.random.default_rng(1)
    )
    learned = LearnedPosterior(counts)
    taken = {}
    for _ in range(3):
        for posterior in (learned, DirichletPosterior(learned.counts)):
            posterior.draws(KEY, 0, 16, threads=1)
            start = time.process_time()
            posterior.draws(KEY, 0, 160, threads=1)
            spent = time.process_time() - start
            taken[type(posterior)] = min(spent, taken.get(type(posterior), np.inf))
    assert taken[LearnedPosterior] < 4 * taken[DirichletPosterior]


def garnet_world(evenness, rng):
    """Return ``(transitions, rewards)`` of 20 states, 3 actions, 4 successors a row."""
    p = np.zeros((20, 3, 20))
    for s in range(20):
        for a in range(3):
            p[s, a, rng.choice(20, 4, replace=False)] = rng.dirichlet(np.full(4, evenness))
    return p, rng.random((20, 3))


def returns(p, reward, policy, discount=0.9):
    """Mean return of a policy in models ``(..., S, A, S)``, by dense solves."""
    states = np.arange(p.shape[-1])
    chosen = p[..., states, policy, :]
    value = np.linalg.solve(
        np.eye(len(states)) - discount * chosen, reward[states, policy][:, None]
    )
    return value[..., 0].mean(axis=-1)


def nominal_policy(p, reward, discount=0.9):
    value = np.zeros(len(p))
    for _ in range(200):
        value = (reward + discount * p @ value).max(axis=1)
    return (reward + discount * p @ value).argmax(axis=1)


@pytest.mark.parametrize("evenness", [0.3, 10.0])
def test_promises_hold_whatever_the_rows_are_like(evenness):
    """5% quantiles of the nominal policy's return are broken as rarely as they claim."""
    rng = np.random.default_rng(12)
    trials, broken = 60, 0
    for _ in range(trials):
        truth, reward = garnet_world(evenness, rng)
        count = rng.multinomial(20, truth)
        posterior = LearnedPosterior(Counts.from_arrays(count, support=truth > 0))
        index = (posterior.layout.entry_state, posterior.layout.row_action[
            posterior.layout.entry_row], posterior.layout.successor)  # fmt: skip
        mean, drawn = np.zeros_like(truth), np.zeros((400, *truth.shape))
        mean[index] = posterior.mean()
        drawn[(slice(None), *index)] = posterior.sample(400, rng)
        policy = nominal_policy(mean, reward)
        promise = np.quantile(returns(drawn, reward, policy), 0.05, method="lower")
        broken += returns(truth, reward, policy) < promise
    assert stats.binomtest(broken, trials, 0.05, alternative="greater").pvalue > 1e-3


def test_stream_reads_what_the_kernels_export():
    assert kernels.first_above(np.array([0.2, 0.2, 1.0]), 0, 3, 0.2) == 0
    assert kernels.first_above(np.array([0.0, 0.2]), 0, 2, 0.3) == 2


def test_many_weights_are_halved_to_the_one_that_a_scan_finds():
    rng = np.random.default_rng(0)
    for size in (1, 7, 8, 9, 10, 100):
        weights = np.cumsum(rng.integers(0, 3, size)) / (2 * size)
        for goal in (*rng.random(20), *weights):
            first = int(rng.integers(0, size))
            above = np.flatnonzero(weights[first:] >= goal)
            wanted = first + above[0] if len(above) else size
            assert kernels.first_above(weights, first, size, goal) == wanted


def test_rows_that_show_little_do_not_look_better_by_the_draw():
    """Ten thousand rows with two tries each: what they hide leads to the same places for all."""
    states, actions = 400, 25
    rng = np.random.default_rng(0)
    state = np.repeat(np.arange(states), 2 * actions)
    action = np.tile(np.repeat(np.arange(actions), 2), states)
    ends = rng.random(len(state)) < 0.1
    to = np.where(ends, states, rng.integers(0, states, len(state)))
    log = {"state": state, "action": action, "reward": np.zeros(len(state)), "next_state": to}
    posterior = LearnedPosterior(read_transitions(log))
    at = posterior.counts.entry_row
    to_end = np.bincount(at, posterior.mean() * (posterior.counts.successor == states))
    shown = np.bincount(at, posterior.counts.count * (posterior.counts.successor == states))
    tried = np.bincount(at, posterior.counts.count) > 0
    silent = to_end[tried & (shown == 0)]
    assert 0.05 < silent.mean() < 0.15
    assert silent.std() < 0.5 * silent.mean()  # it was four times the mean
