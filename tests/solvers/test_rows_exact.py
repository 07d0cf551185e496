"""The worst case of one row against exact fractions and against linear programs."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from random_rows import Row, Vector, random_box, random_row, random_values

from oracles import (
    dot,
    exact,
    exact_ball,
    exact_box,
    exact_distribution,
    l1_dual_value,
    lp_ball,
    whole_row,
)
from surefoot import worst_case
from surefoot.solvers.dual_kernels import BOX, HUGE, L1, box_dual, l1_dual, search

NONE = np.uint64(0)
TIGHT = 1e-12
"""Wanted accuracy, in units of max|z|."""


def off(found: float, truth: Fraction, scale: float) -> float:
    """Return the exact error in units of the largest value."""
    return float((Fraction(float(found)) - truth) / Fraction(scale))


def misfit(row: Row, q: Vector, norm: str) -> float:
    """Return by how much a distribution leaves its ball, in units of the largest weight."""
    free = np.isfinite(row.weights)
    far = np.where(free, row.weights, 0.0) * np.abs(q - row.nominal / row.nominal.sum())
    used = far.sum() if norm == "l1" else far.max()
    largest = max(row.weights[free], default=0.0) or 1.0
    over = max(0.0, used - row.budget) / largest
    pinned = np.abs(q - row.nominal)[~free].max(initial=0.0)
    return float(max(over, pinned, abs(q.sum() - 1), -q.min()))


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("seed", range(5))
def test_worst_case_equals_the_exact_oracle(seed: int, norm: str) -> None:
    rng = np.random.default_rng([seed, norm == "l1"])
    for _ in range(400):
        row = random_row(rng)
        truth = exact_ball(*row, norm).value
        found = worst_case(
            row.values, row.nominal, budget=row.budget, weights=row.weights, norm=norm
        )
        attained = dot(exact(found.distribution), exact(row.values))
        assert abs(off(found.value, truth, row.scale)) <= TIGHT, row
        assert abs(float(attained - truth)) <= TIGHT * row.scale, row
        assert misfit(row, found.distribution, norm) <= TIGHT, row


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_worst_case_equals_a_linear_program(norm: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(150):
        row = random_row(rng, lengths=(2, 3, 5, 10, 40))
        if np.ptp(row.values) > 1e3 or row.scale < 1e-3 or row.weights.max() > 1e3 > row.budget:
            continue  # HiGHS does not tell such numbers apart
        wanted = lp_ball(*row, norm)
        found = worst_case(
            row.values, row.nominal, budget=row.budget, weights=row.weights, norm=norm
        )
        assert found.value == pytest.approx(wanted, abs=1e-6 * row.scale), row


def budget_at_a_breakpoint(rng: np.random.Generator, row: Row) -> float:
    """Return the budget at which some donor has just given all it has, or is about to give."""
    z, w = exact(row.values), exact(row.weights)
    whole = whole_row(z, exact_distribution(row.nominal), w, Fraction(0))
    i, j = rng.integers(len(z), size=2)
    if z[i] <= z[j] or w[i] + w[j] == 0:
        return row.budget
    level = (z[i] - z[j]) / (w[i] + w[j])
    piece = whole.piece(level * whole.scale_z / whole.scale_w)
    slope = piece.slope_right if rng.random() < 0.5 else piece.slope_left
    used = float(Fraction(slope, whole.scale_p * whole.scale_w))
    return float(np.nextafter(used, rng.choice([used, 0.0, np.inf])))


@pytest.mark.parametrize("seed", range(2))
def test_search_is_sound_from_any_guess(seed: int) -> None:
    """The value is a lower bound, value + gap an upper one, and the gap is what was asked for."""
    rng = np.random.default_rng(seed)
    for _ in range(600):
        row = random_row(rng, lengths=(2, 3, 5, 10, 20, 31, 33, 60))
        if not np.all(np.isfinite([*row.weights, row.budget])):
            continue
        if rng.random() < 0.6:
            row = row._replace(budget=budget_at_a_breakpoint(rng, row))
        truth = exact_ball(*row, "l1").value
        guess = float(rng.choice([0.0, rng.exponential() * 10.0 ** rng.integers(-9, 9)]))
        step = HUGE if guess == 0 else 0.05 * guess
        accuracy = float(rng.choice([0.0, 1e-9, 1e-3, 0.1])) * row.scale
        k, nominal = np.uint64(len(row.values)), float(row.nominal @ row.values)
        budget = min(row.budget, 2 * row.weights.max())
        value, gap, *_ = search(
            L1, row.values, row.nominal, NONE, row.weights, NONE, k, budget, nominal, guess, step,
            accuracy,
        )  # fmt: skip
        rounding = len(row.values) * 1e-15
        assert off(value, truth, row.scale) <= rounding, row
        assert off(value + gap, truth, row.scale) >= -rounding, row
        assert gap <= accuracy + 1e-12 * row.scale, row


def test_box_search_is_sound_from_any_guess() -> None:
    rng = np.random.default_rng(3)
    for _ in range(1500):
        k = int(rng.choice([2, 3, 5, 10, 31, 33, 60]))
        z, (lower, upper) = random_values(rng, k), random_box(rng, k)
        scale = float(np.abs(z).max()) or 1.0
        truth = exact_box(z, lower, upper).value
        guess = float(rng.choice([z[rng.integers(k)], scale * rng.normal()]))
        step = float(rng.choice([1e-300, 0.1, 1e9])) * scale
        accuracy = float(rng.choice([0.0, 1e-9, 0.1])) * scale
        value, gap, *_ = search(
            BOX, z, lower, NONE, upper, NONE, np.uint64(k), 0.0, guess, guess, step, accuracy
        )
        rounding = k * 1e-15
        assert off(value, truth, scale) <= rounding, (z, lower, upper, guess, step)
        assert off(value + gap, truth, scale) >= -rounding, (z, lower, upper, guess, step)
        assert gap <= accuracy + 1e-12 * scale, (z, lower, upper, guess, step)


def test_every_multiplier_gives_a_lower_bound() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        row = random_row(rng, lengths=(2, 3, 5, 10, 20, 40))
        if not np.all(np.isfinite([*row.weights, row.budget])):
            continue
        k, nominal = np.uint64(len(row.values)), float(row.nominal @ row.values)
        truth = exact_ball(*row, "l1").value
        mu = float(rng.exponential()) * 10.0 ** rng.integers(-6, 7)
        assert l1_dual_value(row.values, row.nominal, row.weights, row.budget, mu) <= truth
        value, _ = l1_dual(
            row.values, row.nominal, NONE, row.weights, NONE, k, row.budget, nominal, mu
        )
        size = row.scale + mu * row.budget
        assert Fraction(float(value)) <= truth + Fraction(len(row.values) * 1e-15 * size), row


def test_every_level_gives_a_lower_bound_of_a_box() -> None:
    rng = np.random.default_rng(6)
    for _ in range(600):
        k = int(rng.choice([2, 3, 5, 10, 40]))
        z, (lower, upper) = random_values(rng, k), random_box(rng, k)
        truth = exact_box(z, lower, upper).value
        level = float(rng.normal() * np.abs(z).max() * 10.0 ** rng.integers(-2, 2))
        value, left, right = box_dual(z, lower, NONE, upper, NONE, np.uint64(k), level)
        size = (np.abs(z).max() + abs(level)) * (1 + upper.sum())
        assert Fraction(float(value)) <= truth + Fraction(k * 1e-15 * float(size))
        assert left >= right - 1e-12 * k


@pytest.mark.parametrize(
    ("values", "nominal", "options", "wanted"),
    [
        # the paper's bandit: an unseen loss may receive half of the budget
        ([0.25, 0.25, -1.0], [0.5, 0.5, 0.0], {"budget": 0.2}, 0.125),
        ([3.0], [1.0], {"budget": 2.0}, 3.0),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 0.0}, 2.75),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 2.0}, 1.0),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": np.inf}, 1.0),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 0.5}, 2.0),
        # weightless entries: one changes nothing at budget 0, two pass mass between them
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 0.0, "weights": [0.0, 1.0, 1.0]}, 2.75),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 0.0, "weights": [0.0, 1.0, 0.0]}, 1.25),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 0.0, "weights": [0.0, 0.0, 0.0]}, 1.0),
        # a pinned entry neither gives nor takes, whatever the budget
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 9.0, "weights": [np.inf, 1, 1]}, 1.75),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": np.inf, "weights": [1, 1, np.inf]}, 2.5),
        ([1.0, 2.0], [0.5, 0.5], {"budget": 1.0, "weights": [np.inf, np.inf]}, 1.5),
        ([1.0, 2.0], [0.5, 0.5], {"budget": 1.0, "weights": [np.inf, 0.0]}, 1.5),
        # the cheaper way to spend: weights 1 and 3 towards the lowest
        ([0.0, 1.0, 1.0], [0.0, 0.5, 0.5], {"budget": 1.0, "weights": [1.0, 1.0, 3.0]}, 0.5),
        # L-infinity
        ([0.0, -1.0, -2.0], [1.0, 0.0, 0.0], {"budget": 0.25, "norm": "linf"}, -0.5),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 0.25, "norm": "linf"}, 2.0),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": np.inf, "norm": "linf"}, 1.0),
        ([1.0, 2.0, 4.0], [0.25, 0.25, 0.5], {"budget": 0.0, "norm": "linf"}, 2.75),
    ],
)
def test_worked_examples(
    values: list[float], nominal: list[float], options: dict[str, Any], wanted: float
) -> None:
    found = worst_case(values, nominal, **options)
    assert found.value == pytest.approx(wanted, abs=1e-15)
    assert found.distribution @ values == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_long_rows_of_ties_take_linear_time_and_memory(norm: str) -> None:
    """A square of the length, in time or memory, would not end (or fit) here."""
    k = 200_000
    values = np.repeat([1.0, 0.0], k // 2)
    found = worst_case(
        values, np.full(k, 1 / k), budget=1.0 if norm == "l1" else 0.5 / k, norm=norm
    )
    assert found.value == pytest.approx(0.0 if norm == "l1" else 0.25, abs=1e-10)
    assert found.distribution @ values == pytest.approx(found.value, abs=1e-10)
