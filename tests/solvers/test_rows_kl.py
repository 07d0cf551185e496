"""The KL ball's kernel on rows where its formulas are near overflow, underflow or cancellation."""

from decimal import Decimal

import numpy as np
import pytest
from random_rows import random_nominal, random_values

from oracles import precise_kl
from surefoot import worst_case
from surefoot.solvers.kl_kernels import kl_value
from surefoot.solvers.pair_kernels import NEVER

NONE = np.uint64(0)
BUDGETS = (1e-16, 1e-12, 1e-8, 1e-3, 0.1, 0.5, 1.0, 3.0, 20.0, 100.0, 700.0)


@pytest.mark.parametrize("seed", range(4))
def test_kl_search_is_sound_from_any_memory(seed: int) -> None:
    """The value is a lower bound, value + gap an upper one, and the gap is what was asked for."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        k = int(rng.choice([2, 3, 4, 6]))
        z, p = random_values(rng, k), random_nominal(rng, k)
        budget = float(rng.choice(BUDGETS)) * (0.1 + rng.random())
        scale = float(np.abs(z).max()) or 1.0
        accuracy = float(rng.choice([0.0, 1e-9, 1e-3])) * scale
        memory = np.full((1, 2), NEVER)
        if rng.random() < 0.6:
            memory[0] = [[int(rng.normal() * 1e7), 0], [0, 1]][rng.integers(2)]
        value, gap = kl_value(
            z, p, NONE, np.uint64(k), budget, float(p @ z), accuracy, NONE, memory
        )
        truth = precise_kl(z, p, budget)
        slack = Decimal(k * 1e-15 * scale)
        assert Decimal(float(value)) <= truth + slack, (z, p, budget)
        assert Decimal(float(value)) + Decimal(float(gap)) >= truth - slack, (z, p, budget)
        assert gap <= accuracy + 1e-12 * scale, (z, p, budget)


def test_an_overflowing_product_does_not_end_the_search() -> None:
    """A seen successor of probability 1e-5 far below the others: the first step goes very far."""
    z = np.array([-2.02020774e11, -2.69454477e12, -5.52298377e11, -1.14599677e12])
    p = np.array([5.50252452e-04, 1.19877467e-05, 7.50429414e-03, 9.91933466e-01])
    p /= p.sum()
    found = worst_case(z, p, budget=0.82584178699081, norm="kl")
    truth = float(precise_kl(z, p, 0.82584178699081))
    assert found.value == pytest.approx(truth, rel=1e-12)
    assert found.distribution @ z == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_kl_distributions_are_distributions(seed: int) -> None:
    """Also where all values are alike and the reach of the set is nothing but rounding."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 40))
    p = random_nominal(rng, k)
    for z in (np.full(k, rng.normal()), random_values(rng, k)):
        for budget in (1e-300, 1e-9, 0.05, 1.0, 50.0, np.inf):
            found = worst_case(z, p, budget=budget, norm="kl")
            assert np.isfinite(found.value)
            assert found.distribution.sum() == pytest.approx(1.0, abs=1e-12)
            assert found.distribution.min() >= 0
            attained = found.distribution @ z
            assert attained == pytest.approx(found.value, abs=1e-9 * np.abs(z).max())
