"""The kernels themselves, run as plain Python on exact fractions: no tolerance at all."""

from fractions import Fraction

import numpy as np
import pytest

from oracles import dot, exact_box, exact_l1
from surefoot.solvers import dual_kernels, nature_kernels
from surefoot.solvers.dual_kernels import BOX, HUGE, L1

F = Fraction
ZERO = F(0)


@pytest.fixture(autouse=True)
def plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every compiled kernel by the Python function it was made from."""
    for module in (dual_kernels, nature_kernels):
        for name, thing in list(vars(module).items()):
            if hasattr(thing, "py_func"):
                monkeypatch.setattr(module, name, thing.py_func)


def fractions(*numbers: str) -> list[Fraction]:
    return [F(x) for x in " ".join(numbers).split()]


L1_EXAMPLES = [
    # values, nominal, weights, budget, worst case (by hand where short enough to see)
    ("1/4 1/4 -1", "1/2 1/2 0", "1 1 1", "1/5", "1/8"),
    ("1/4 1/4 -1", "1/2 1/2 0", "1/4 1/4 1", "1/5", "1/20"),
    ("1/4 1/4 -1", "1/2 1/2 0", "0 0 1", "1/5", "0"),
    ("1 2 4", "1/3 1/3 1/3", "1 1 1", "0", "7/3"),
    ("1 2 4", "1/3 1/3 1/3", "1 1 1", "1/3", "11/6"),
    ("1 2 4", "1/3 1/3 1/3", "1 1 1", "2/3", "4/3"),
    ("1 2 4", "1/3 1/3 1/3", "1 1 1", "4/3", "1"),
    ("1 2 4", "1/3 1/3 1/3", "0 2 0", "0", "4/3"),
    ("0 1 1", "0 1/2 1/2", "1 1 3", "1", "1/2"),
    ("5 5 5", "1/7 2/7 4/7", "1 2 3", "1", "5"),
    ("3 1 2 1", "1/10 2/10 3/10 4/10", "1 2 1/3 5", "1/7", None),
    ("-7 3 22 -7 9 1", "1/6 1/6 1/6 0 1/3 1/6", "1/9 2 3 1/2 1 4", "5/11", None),
]


@pytest.mark.parametrize(("values", "nominal", "weights", "budget", "wanted"), L1_EXAMPLES)
@pytest.mark.parametrize("guess", ["0", "1/3", "1000"])
def test_l1_is_exact(
    values: str, nominal: str, weights: str, budget: str, wanted: str | None, guess: str
) -> None:
    z, p, w, psi = fractions(values), fractions(nominal), fractions(weights), F(budget)
    truth = exact_l1(z, p, w, psi)
    if wanted is not None:
        assert truth.value == F(wanted)
    step = ZERO + HUGE if F(guess) == 0 else F(guess) / 20
    value, gap, *_ = dual_kernels.search(
        L1, z, p, 0, w, 0, len(z), psi, dot(z, p), F(guess), step, ZERO
    )
    assert value == truth.value
    assert gap == 0


@pytest.mark.parametrize(("values", "nominal", "weights", "budget"), [e[:4] for e in L1_EXAMPLES])
def test_l1_distribution_is_exact(values: str, nominal: str, weights: str, budget: str) -> None:
    z, p, w, psi = fractions(values), fractions(nominal), fractions(weights), F(budget)
    q = [ZERO] * len(z)
    value = nature_kernels.l1_distribution(z, p, 0, w, 0, len(z), psi, dot(z, p), q)
    assert value == dot(z, q) == exact_l1(z, p, w, psi).value
    assert sum(q) == 1
    assert min(q) >= 0
    assert sum(wi * abs(a - b) for wi, a, b in zip(w, q, p, strict=True)) <= psi


BOX_EXAMPLES = [
    ("0 -1 -2", "3/4 0 0", "1 1/4 1/4", "-1/2"),
    ("1 2 4", "0 0 0", "1 1 1", "1"),
    ("1 2 4", "1/3 1/3 1/3", "1/3 1/3 1/3", "7/3"),
    ("1 2 4", "1/6 1/6 1/6", "1/2 1/2 1/2", "11/6"),
    ("2 2 2", "0 1/5 0", "3/5 3/5 3/5", "2"),
    ("4 1 4 1", "1/8 1/8 1/8 1/8", "1/2 1/4 1/2 1/4", "5/2"),
    ("3 1 2 1", "1/10 0 3/10 1/10", "1/2 1/3 1 1/3", None),
]


@pytest.mark.parametrize(("values", "lower", "upper", "wanted"), BOX_EXAMPLES)
@pytest.mark.parametrize("guess", ["-5", "0", "3/2", "2", "100"])
def test_box_is_exact(values: str, lower: str, upper: str, wanted: str | None, guess: str) -> None:
    z, low, high = fractions(values), fractions(lower), fractions(upper)
    truth = exact_box(z, low, high)
    if wanted is not None:
        assert truth.value == F(wanted)
    value, gap, *_ = dual_kernels.search(
        BOX, z, low, 0, high, 0, len(z), ZERO, F(guess), F(guess), F(1, 10), ZERO
    )
    assert value == truth.value
    assert gap == 0


@pytest.mark.parametrize(("values", "lower", "upper", "wanted"), BOX_EXAMPLES)
def test_box_distribution_is_exact(values: str, lower: str, upper: str, wanted: str | None) -> None:
    z, low, high = fractions(values), fractions(lower), fractions(upper)
    q = [ZERO] * len(z)
    value = nature_kernels.box_distribution(z, low, high, 0, len(z), sum(z) / len(z), q)
    assert value == dot(z, q) == exact_box(z, low, high).value
    assert sum(q) == 1
    assert all(a <= x <= b for a, x, b in zip(low, q, high, strict=True))


def test_random_small_fractions_are_exact() -> None:
    """Small whole numbers: breakpoints coincide again and again."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        k = int(rng.integers(2, 7))
        z = [F(int(x)) for x in rng.integers(-3, 4, k)]
        counts = [int(x) for x in rng.integers(0, 4, k)]
        counts[0] += 1
        p = [F(x, sum(counts)) for x in counts]
        w = [F(int(x), 2) for x in rng.integers(0, 4, k)]
        psi = F(int(rng.integers(0, 9)), 6)
        truth = exact_l1(z, p, w, min(psi, 2 * max(w)))
        q = [ZERO] * k
        value = nature_kernels.l1_distribution(z, p, 0, w, 0, k, min(psi, 2 * max(w)), dot(z, p), q)
        assert value == truth.value
        assert dot(z, q) == truth.value
