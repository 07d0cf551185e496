"""Random rows with all that a row may hold: ties, zeros, infinities, scales far apart."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
LENGTHS = (1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 15, 20, 31, 32, 33, 40, 60)
"""Rows of 32 and more take the vector path."""


class Row(NamedTuple):
    """One inner problem."""

    values: Vector
    nominal: Vector
    weights: Vector
    budget: float

    @property
    def scale(self) -> float:
        """The largest value: what errors are measured by."""
        return float(np.abs(self.values).max()) or 1.0


def random_values(rng: np.random.Generator, k: int) -> Vector:
    """Return successor values: plain, tied, all equal, far apart, on an offset, half zero."""
    z = rng.normal(size=k)
    return [
        z,
        rng.integers(-3, 4, k).astype(float),
        np.full(k, z[0]),
        z * 10.0 ** rng.integers(-8, 9, k),
        z + 1e6,
        np.where(rng.random(k) < 0.5, 0.0, z),
        z * 10.0 ** rng.integers(-12, 13),
    ][rng.integers(7)]


def random_nominal(rng: np.random.Generator, k: int) -> Vector:
    """Return probabilities: plain, nearly certain, with zeros, certain, from counts."""
    p: Vector = rng.dirichlet(np.full(k, rng.choice([0.05, 1.0, 1.0])))
    kind = rng.integers(4)
    if kind == 1:
        p = np.where(rng.random(k) < 0.5, 0.0, p)
        p[rng.integers(k)] += 0.1
        p /= p.sum()
    elif kind == 2:
        p = np.eye(k)[rng.integers(k)]
    elif kind == 3:
        p = rng.multinomial(20, np.full(k, 1 / k)) / 20
    return p


def random_weights(rng: np.random.Generator, z: Vector) -> Vector:
    """Return weights: plain, equal, with zeros and infinities, far apart, as the paper's."""
    k = len(z)
    w = rng.uniform(0.1, 2.0, k)
    kinds: list[Vector] = [
        w,
        np.ones(k),
        np.where(rng.random(k) < 0.3, 0.0, w),
        np.where(rng.random(k) < 0.3, np.inf, w),
        rng.choice([0.0, 1.0, 2.0, np.inf], k),
        10.0 ** rng.uniform(-8, 8, k),
        np.zeros(k),
        np.abs(z - z.mean()),
        rng.integers(1, 4, k).astype(float),
    ]
    return kinds[rng.integers(9)]


def random_budget(rng: np.random.Generator, p: Vector, w: Vector) -> float:
    """Return a budget: none, tiny, plain, round, that of some distribution, huge, infinite."""
    finite = np.where(np.isfinite(w), w, 0.0)
    size = float(finite.mean()) or 1.0
    other = rng.dirichlet(np.ones(len(p)))
    return float(
        [
            0.0,
            1e-300,
            1e-12 * size,
            rng.random() * size,
            rng.choice([0.05, 0.1, 0.2, 0.5, 1.0, 2.0]),
            np.sum(finite * np.abs(other - p)),
            100 * size,
            np.inf,
        ][rng.integers(8)]
    )


def random_row(rng: np.random.Generator, lengths: tuple[int, ...] = LENGTHS) -> Row:
    """Return a row of any kind."""
    k = int(rng.choice(lengths))
    z, p = random_values(rng, k), random_nominal(rng, k)
    w = random_weights(rng, z)
    return Row(z, p, w, random_budget(rng, p, w))


def random_box(rng: np.random.Generator, k: int) -> tuple[Vector, Vector]:
    """Return bounds that some distribution fits exactly: around one, in eighths, one-sided."""
    centre = rng.multinomial(16, np.full(k, 1 / k)) / 16 if rng.random() < 0.3 else np.zeros(k)
    if not centre.any():  # multiples of 2**-20, so that sums are exact
        counts = rng.multinomial(2**20, rng.dirichlet(np.full(k, rng.choice([0.05, 1.0]))))
        centre = counts / 2**20
    width = rng.choice([0.0, 1e-12, 0.01, 0.3, 1.0])
    lower = np.maximum(centre - width * rng.random(k), 0.0)
    upper = np.minimum(centre + width * rng.random(k), 1.0)
    kind = rng.integers(4)
    if kind == 1:
        lower = centre * rng.choice([0.0, 0.5, 1.0], k)
    elif kind == 2:
        upper = np.where(rng.random(k) < 0.5, centre, 1.0)
    return lower, upper
