"""The learned laws of rows: against sums written from the definition."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from surefoot.posterior import law_arrays, row_laws
from surefoot.posterior import law_kernels as kernels
from surefoot.posterior.learned_kernels import alpha_weights
from surefoot.posterior.row_laws import (
    ALPHA,
    EVEN,
    GEOMETRIC,
    LAWS,
    POISSON,
    SIZE_PRIOR,
    STRENGTH,
    RowLaws,
)


def learn(rows, action=None, cap=8, declared=False, like=None):
    """Learn from rows given as lists of counts; ``cap`` and ``declared`` for all or for each."""
    action = np.zeros(len(rows), dtype=np.int64) if action is None else np.array(action)
    return RowLaws.learn(
        count=np.concatenate([np.asarray(row, dtype=np.float64) for row in rows]),
        row_start=np.cumsum([0, *map(len, rows)]),
        action=action,
        num_actions=int(action.max()) + 1,
        cap=np.broadcast_to(cap, len(rows)).astype(np.int64),
        declared=np.broadcast_to(declared, len(rows)),
        like=like,
    )


def size_law(number, cap, declared):
    """The probability of K = 1..cap under a law, from the definition."""
    if number == len(SIZE_PRIOR) - 1:
        if declared:
            return np.eye(cap)[-1]
        number = GEOMETRIC.index(1.0)
    if number < len(GEOMETRIC):
        mean = GEOMETRIC[number]
        law = np.array([(mean / (1 + mean)) ** j for j in range(cap)])
    else:
        mean = POISSON[number - len(GEOMETRIC)]
        law = np.array([mean**j / math.factorial(j) for j in range(cap)])
    return law / law.sum()


def likelihood(row, alpha, size):
    """Distinct names, then a Dirichlet-multinomial: one ordered way to see these counts."""
    seen = [n for n in row if n > 0]
    if len(seen) > size:
        return 0.0
    log = gammaln(size + 1) - gammaln(size - len(seen) + 1)
    log += gammaln(size * alpha) - gammaln(size * alpha + sum(seen))
    log += sum(gammaln(alpha + n) - gammaln(alpha) for n in seen)
    return math.exp(log)


def seated(row, discount, strength):
    """The chance to see these counts one try after another, by Pitman and Yor's process.

    A try reaches a known successor with a chance of its count less the discount, a new one with
    that of the strength and of all discounts, over the strength and all tries before.
    """
    chance, tries, known = 1.0, 0, 0
    for count in (n for n in row if n > 0):
        for before in range(count):
            new = strength + known * discount if before == 0 else before - discount
            chance *= new / (strength + tries) if tries else 1.0
            known += before == 0
            tries += 1
    return chance


def given_law(row, a, s, cap, declared):
    """The likelihood of a row under a concentration or discount and a law of its size."""
    if a < 0:
        return seated(row, -a, STRENGTH[s])
    law = size_law(s, cap, declared)
    return sum(p * likelihood(row, a, k + 1) for k, p in enumerate(law))


def brute(rows, action, cap, declared):
    """Evidence ``(actions, size laws, alpha laws)``, law by law and K by K."""
    out = np.zeros((max(action) + 1, len(SIZE_PRIOR), len(LAWS)))
    for (r, row), s in product(enumerate(rows), range(len(SIZE_PRIOR))):
        given = [given_law(row, a, s, cap[r], declared) for a in ALPHA]
        out[action[r], s] += np.log(LAWS @ np.array(given))
    return out


def random_rows(rng, num, longest=5, visits=12):
    return [
        rng.multinomial(rng.integers(1, visits), rng.dirichlet(np.full(size, 0.7)))
        for size in rng.integers(2, longest + 1, num)
    ]


@pytest.mark.parametrize("declared", [False, True])
def test_evidence_is_the_sum_over_laws_alpha_and_size(declared):
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 6)
    action = [0, 1, 0, 1, 1, 2]
    cap = [len(row) if declared else 8 for row in rows]
    found = learn(rows, action, cap, declared)
    np.testing.assert_allclose(found.evidence, brute(rows, action, cap, declared), atol=1e-10)


def test_likelihoods_in_fractions():
    """K!/(K-k)! Gamma(Ka)/Gamma(Ka+n) prod Gamma(a+n_j)/Gamma(a) is rational for alpha 1 and 2."""

    def rising(x, n):
        return math.prod(x + i for i in range(n)) if n else Fraction(1)

    count, alpha, most = [3, 0, 1, 2], [1.0, 2.0], 6
    term, shape = np.empty(most + 1), np.empty((1, 2))
    kernels.shape_likelihood.py_func(
        np.array(count, dtype=float), np.array([0, 4]), np.array(alpha), shape
    )
    for i, a in enumerate((Fraction(1), Fraction(2))):
        kernels.size_likelihood(6.0, 3, alpha[i], term)
        assert np.isneginf(term[:3]).all()
        for size in range(3, most + 1):
            exact = Fraction(math.perm(size, 3)) / rising(size * a, 6)
            exact *= math.prod(rising(a, n) for n in count)
            assert term[size] + shape[0, i] == pytest.approx(math.log(exact), abs=1e-12)


def test_one_way_or_another_some_row_is_seen():
    """Summed over all ways to see n = 3 successors of K = 3, the likelihood is 1."""
    for a in EVEN:
        ways = 0.0
        for names in product(range(3), repeat=3):
            counts = np.bincount(names, minlength=3)
            distinct = int((counts > 0).sum())
            # A row names its successors in the order they appear: 3!/(3-k)! ways are one row.
            ways += likelihood(counts, a, 3) / math.perm(3, distinct)
        assert ways == pytest.approx(1.0)


def exact_laws(evidence):
    """The posterior over (structure, one size law and alpha law per action), enumerated."""
    actions, sizes, laws = evidence.shape
    log_prior, flat = np.log(SIZE_PRIOR), -math.log(laws)
    logs = []
    for kind in range(3):
        table = np.full((sizes, laws) * actions, -np.inf)
        for index in product(range(sizes), range(laws), repeat=actions):
            s, h = index[0::2], index[1::2]
            if (kind in (0, 2) and len(set(h)) > 1) or (kind == 2 and len(set(s)) > 1):
                continue
            log = sum(evidence[a, s[a], h[a]] for a in range(actions))
            log += log_prior[s[0]] if kind == 2 else sum(log_prior[x] for x in s)
            table[index] = log + (flat if kind != 1 else actions * flat)
        logs.append(table)
    logs = np.array(logs)
    return np.exp(logs - logsumexp(logs))


TWO_ACTIONS = ([[3, 1], [2, 2, 1], [4]], [[9, 1], [10], [7, 1, 1]])


def test_structure_and_draws_are_those_of_the_exact_posterior(monkeypatch):
    rows, action = [*TWO_ACTIONS[0], *TWO_ACTIONS[1]], [0] * 3 + [1] * 3
    found = learn(rows, action, cap=6)
    exact = exact_laws(found.evidence)
    structure = exact.reshape(3, -1).sum(axis=1)
    assert found.structure.sum() == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(found.structure, structure, rtol=1e-9)

    n = 40_000
    uniform = np.random.default_rng(1).random((n, found.uniforms))
    size, law = found.draw(uniform)
    assert size.shape == law.shape == (n, 2)
    size = found.usual[size]
    joint = exact.sum(axis=0)  # (size 0, law 0, size 1, law 1)
    cell = np.ravel_multi_index((size[:, 0], law[:, 0], size[:, 1], law[:, 1]), joint.shape)
    expected = n * joint.ravel()
    seen = np.bincount(cell, minlength=joint.size)
    large = expected >= 5
    table = np.append(seen[large], seen[~large].sum())
    wanted = np.append(expected[large], expected[~large].sum())
    assert large.sum() > 50
    assert stats.chisquare(table, wanted * table.sum() / wanted.sum()).pvalue > 1e-3


def test_laws_that_hardly_matter_change_nothing_else(monkeypatch):
    """What is left out is negligible, also for the question of what actions share."""
    rng = np.random.default_rng(2)
    rows = [rng.multinomial(30, [0.4, 0.3, 0.3]) for _ in range(60)]
    action = np.arange(60) % 6
    few = learn(rows, action, cap=12)
    assert len(few.usual) < len(SIZE_PRIOR)
    monkeypatch.setattr(row_laws, "NEGLIGIBLE", -1.0)
    every = learn(rows, action, cap=12)
    np.testing.assert_allclose(few.structure, every.structure, rtol=1e-9)
    for one, other in zip(few.row_alphas(), every.row_alphas(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_row_alphas_by_enumeration():
    rows, action = [*TWO_ACTIONS[0], *TWO_ACTIONS[1], [0, 0]], [0] * 3 + [1] * 3 + [0]
    found = learn(rows, action, cap=6)
    joint = exact_laws(found.evidence).sum(axis=0)
    of_action = [joint.sum(axis=(2, 3)), joint.sum(axis=(0, 1))]
    weight, seen = found.row_alphas()
    for r, row in enumerate(rows):
        n, k = sum(row), int(np.count_nonzero(row))
        by_alpha, by_seen = np.zeros(len(ALPHA)), np.zeros(len(ALPHA))
        for s in range(len(SIZE_PRIOR)):
            prior = size_law(s, 6, False)
            joint = np.array([[p * likelihood(row, a, j + 1) if a > 0 else
                               seated(row, -a, STRENGTH[s]) / 6 for j, p in enumerate(prior)]
                              for a in ALPHA])  # fmt: skip
            shown = np.array([[(n + k * a) / (n + (j + 1) * a) if a > 0 else
                               (n + k * a) / (n + STRENGTH[s]) for j in range(6)]
                              for a in ALPHA])  # fmt: skip
            for h, law in enumerate(LAWS):
                given = law[:, None] * joint / (law[:, None] * joint).sum()
                by_alpha += of_action[action[r]][s, h] * given.sum(axis=1)
                by_seen += of_action[action[r]][s, h] * (given * shown).sum(axis=1)
        np.testing.assert_allclose(weight[r], by_alpha, atol=1e-5)
        np.testing.assert_allclose(seen[r], by_seen, atol=1e-5)


def test_declared_rows_have_no_more_successors_than_entries():
    found = learn([[3, 1, 0], [1, 0], [0, 0, 0, 0, 0], [2]], cap=[3, 2, 5, 1], declared=True)
    for row, entries in enumerate((3, 2, 5, 1)):
        up_to = found.sizes[found.group[row], :, :, entries]
        np.testing.assert_allclose(up_to, 1.0)
        below = found.sizes[found.group[row], :, :, max(found.distinct[row], 1) - 1]
        assert np.all(below == 0)


def test_grouping_of_visits_is_mild_and_never_optimistic(monkeypatch):
    rows = [[n - 3, 2, 1] for n in (101, 119, 155, 199, 999, 1099, 1999, 56_789)]
    rows += [[n // 2, n - n // 2] for n in (109, 199, 1999)]
    rough = learn(rows, cap=20)
    monkeypatch.setattr(row_laws, "FINE_VISITS", np.inf)
    exact = learn(rows, cap=20)
    np.testing.assert_array_equal(rough.evidence, exact.evidence)
    np.testing.assert_array_equal(rough.usual, exact.usual)
    less = rough.missing[rough.fine] - exact.missing[exact.fine]
    assert np.all(less >= -1e-15)
    assert 0 < less.max() < 1e-3
    # What it adds to the mean of a row, all concentrations together.
    added = exact.row_alphas()[1].sum(axis=1) - rough.row_alphas()[1].sum(axis=1)
    unseen = 1.0 - exact.row_alphas()[1].sum(axis=1)
    assert np.all(added <= 0.1 * unseen)


def test_long_even_rows_do_not_underflow():
    """Laws that a row of many visits rules out have a finite evidence; nothing is NaN."""
    rows = [[2500, 2500, 2500, 2500], [9000, 1, 1], [3, 1]]
    found = learn(rows, [0, 0, 1], cap=10)
    assert np.isfinite(found.evidence).all()
    weight, seen = found.row_alphas()
    np.testing.assert_allclose(weight.sum(axis=1), 1.0, rtol=1e-9)
    assert np.all(seen <= weight + 1e-12)


def test_a_law_far_from_a_row_still_has_its_own_concentration():
    log = np.array([0.0, -2000.0, -3000.0])
    scaled = np.exp(log)
    running = np.empty(3)
    alpha_weights(log, scaled, np.array([0.0, 0.0, 1.0]), running)
    assert running.tolist() == [0.0, 0.0, 1.0]
    assert kernels.law_evidence(log, scaled, 0.0, np.array([0.0, 0.0, 1.0])) == -3000.0


def test_other_counts_with_the_same_laws():
    rows = [[3, 1, 2], [2, 2, 1], [4, 0, 0]]
    whole = learn(rows)
    part = learn([[1, 0, 1], [0, 0, 0], [4, 0, 0]], like=whole)
    np.testing.assert_array_equal(part.evidence, whole.evidence)
    again = learn(rows, like=whole)
    np.testing.assert_array_equal(again.missing, whole.missing)


@pytest.mark.parametrize("declared", [False, True])
def test_whole_arrays_say_what_the_kernels_say(declared, monkeypatch):
    """Where there is no numba; also for rows far from most laws, whose terms underflow."""
    rng = np.random.default_rng(3)
    rows = [*random_rows(rng, 60), [0, 0], [400, 390], [700, 1, 1]]
    action = rng.integers(0, 3, len(rows))
    cap = [len(row) for row in rows] if declared else 8
    found = []
    for module in (kernels, law_arrays):
        monkeypatch.setattr(row_laws, "kernels", module)
        laws = learn(rows, action, cap, declared)
        found.append((laws, laws.row_alphas()))
    (one, one_alphas), (other, other_alphas) = found
    for name in ("fine", "group", "usual"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("shape", "marginal", "evidence"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12)
    for name in ("sizes", "missing", "posterior"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-12)
    for mine, its in zip(one_alphas, other_alphas, strict=True):
        np.testing.assert_allclose(mine, its, rtol=0, atol=1e-12)
