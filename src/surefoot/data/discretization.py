"""Continuous observations as states: quantile bins or k-means prototypes.

A guarantee computed from such states is about the aggregated model, not about the real system:
inside one cell the system may behave differently from point to point.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from surefoot._display import Shown, reason_of
from surefoot._rows import freeze_fields
from surefoot.model.npz_files import text_of

Floats = NDArray[np.float64]
FORMAT = "surefoot discretization 1"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Discretization(Shown):
    """A map from observations to states ``0 .. num_states-1``.

    Attributes
    ----------
    method
        ``"quantile"`` or ``"kmeans"``.
    centre, scale
        ``(d,)``; features are shifted and divided by these before prototypes are compared.
    edges
        ``(d, b-1)``; the bin edges of each feature, padded with NaN (quantile).
    prototypes
        ``(K, d)``; one per state: a point (kmeans), or the bin numbers of a cell (quantile).

    Examples
    --------
    >>> weights = np.random.default_rng(0).normal(size=(1000, 2))
    >>> cells = discretize(weights, bins=3)
    >>> cells
    Discretization(quantile, 2 features, 9 states)
    >>> cells.state_of([0.0, 0.0])
    4
    """

    method: str
    centre: Floats
    scale: Floats
    edges: Floats
    prototypes: Floats

    def __post_init__(self) -> None:
        freeze_fields(self)

    @property
    def num_states(self) -> int:
        """The number of states."""
        return len(self.prototypes)

    @property
    def num_features(self) -> int:
        """The length of an observation."""
        return int(self.prototypes.shape[1])

    @cached_property
    def _tree(self) -> Any:
        return cKDTree(self.prototypes)

    def states_of(self, observations: ArrayLike) -> NDArray[np.int64]:
        """Return the states of ``(n, d)`` observations, as whole numbers.

        Every observation has a state: outside the cells that held data, that of the nearest cell.
        """
        points = _observations(observations)
        if points.shape[1] != self.num_features:
            raise ValueError(
                f"observations have {points.shape[1]} features; this map was made for "
                f"{self.num_features}."
            )
        if self.method == "quantile":
            placed = _bins(points, self.edges)
        else:
            placed = (points - self.centre) / self.scale
        states: NDArray[np.int64] = self._tree.query(placed)[1].astype(np.int64)
        return states

    def state_of(self, observation: ArrayLike) -> int:
        """Return the state of one observation."""
        return int(self.states_of(np.reshape(np.asarray(observation), (1, -1)))[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to one ``.npz`` file, without pickles; keep it with the policy."""
        with Path(path).open("wb") as file:
            np.savez_compressed(
                file, format=np.array(FORMAT), method=np.array(self.method), centre=self.centre,
                scale=self.scale, edges=self.edges, prototypes=self.prototypes,
            )  # fmt: skip

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Discretization:
        """Read what :meth:`save` wrote."""
        place = Path(path)
        if not place.exists():
            raise FileNotFoundError(f"{place}: there is no such file.")
        try:
            with np.load(place, allow_pickle=False) as file:
                parts = {name: file[name] for name in file.files}
            found, method = text_of(parts.pop("format")), text_of(parts.pop("method"))
        except Exception as problem:  # a damaged file can fail anywhere, in any way
            reason = reason_of(problem)
            raise ValueError(f"{place}: not a saved discretization ({reason}).") from None
        if found != FORMAT:
            raise ValueError(f"{place}: the format is {found!r}; this version reads {FORMAT!r}.")
        shapes = {"centre": 1, "scale": 1, "edges": 2, "prototypes": 2}
        fit = parts.keys() == shapes.keys() and all(
            isinstance(parts[name], np.ndarray)
            and parts[name].ndim == dims
            and parts[name].dtype.kind in "fiu"
            for name, dims in shapes.items()
        )
        if not fit or method not in ("quantile", "kmeans"):
            raise ValueError(f"{place}: not a saved discretization (its arrays do not fit).")
        return Discretization(method=method, **parts)

    def _remarks(self) -> list[str]:
        return ["a promise made from these states is about the aggregated model."]

    def __repr__(self) -> str:
        return (
            f"Discretization({self.method}, {self.num_features} features, {self.num_states} states)"
        )


def discretize(
    observations: ArrayLike,
    *,
    method: Literal["quantile", "kmeans"] = "quantile",
    bins: int | Sequence[int] = 8,
    rng: np.random.Generator | None = None,
) -> Discretization:
    """Find states for continuous observations.

    Parameters
    ----------
    observations
        ``(n, d)`` observations; include those before and after each step.
    method
        ``"quantile"``: each feature is cut at its quantiles, and every cell that holds data is a
        state. ``"kmeans"``: ``bins`` prototypes on standardised features (scikit-learn).
    bins
        Bins per feature (one number, or one per feature), or the number of prototypes.
    rng
        Random numbers for k-means.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(1000, 2))
    >>> cells = discretize(points, bins=3)
    >>> cells
    Discretization(quantile, 2 features, 9 states)
    >>> cells.state_of([-9.0, 9.0]) == cells.state_of([-3.0, 3.0])
    True
    """
    points = _observations(observations)
    if method == "quantile":
        return _quantile_cells(points, _bin_numbers(bins, points.shape[1]))
    if method != "kmeans":
        raise ValueError(f"method={method!r}; it must be 'quantile' or 'kmeans'.")
    if not isinstance(bins, int) or not 2 <= bins <= len(np.unique(points, axis=0)):
        raise ValueError(
            f"bins={bins!r}; k-means needs a number of prototypes from 2 to the number of distinct "
            f"observations ({len(np.unique(points, axis=0))})."
        )
    if rng is None:
        raise ValueError("k-means starts from random prototypes: pass rng=.")
    return _prototypes(points, bins, rng)


def _observations(observations: ArrayLike) -> Floats:
    points = np.asarray(observations, dtype=np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.size == 0:
        raise ValueError(f"observations have shape {points.shape}; they must be (n, features).")
    bad = np.argwhere(~np.isfinite(points))
    if len(bad):
        raise ValueError(
            f"observation {bad[0][0]}, feature {bad[0][1]} is {points[tuple(bad[0])]}; "
            "observations must be finite."
        )
    return points


def _bin_numbers(bins: int | Sequence[int], features: int) -> list[int]:
    numbers = [bins] * features if isinstance(bins, int) else list(bins)
    if len(numbers) != features or not all(isinstance(b, int) and b >= 1 for b in numbers):
        raise ValueError(
            f"bins={bins!r}; it must be a whole number, or one for each of the {features} features."
        )
    return numbers


def _quantile_cells(points: Floats, bins: list[int]) -> Discretization:
    edges = np.full((len(bins), max(max(bins) - 1, 1)), np.nan)
    for feature, number in enumerate(bins):
        cuts = _cuts(points[:, feature], number)
        edges[feature, : len(cuts)] = cuts
    cells = np.unique(_bins(points, edges), axis=0)
    features = points.shape[1]
    return Discretization(
        method="quantile", centre=np.zeros(features), scale=np.ones(features), edges=edges,
        prototypes=cells,
    )  # fmt: skip


def _cuts(values: Floats, number: int) -> Floats:
    """Return up to ``number - 1`` edges: between the values if they are few, else at quantiles."""
    distinct = np.unique(values)
    if len(distinct) <= number:
        return (distinct[1:] + distinct[:-1]) / 2
    # Equal quantiles (from many equal values) give one edge.
    return np.unique(np.quantile(values, np.arange(1, number) / number))


def _bins(points: Floats, edges: Floats) -> Floats:
    columns = [
        np.searchsorted(cuts[~np.isnan(cuts)], points[:, feature], side="right")
        for feature, cuts in enumerate(edges)
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def _prototypes(points: Floats, number: int, rng: np.random.Generator) -> Discretization:
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise ValueError("k-means needs the extra rl: pip install 'surefoot[rl]'.") from None
    centre, scale = points.mean(axis=0), points.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    model = KMeans(n_clusters=number, n_init=4, random_state=int(rng.integers(2**31)))
    model.fit((points - centre) / scale)
    return Discretization(
        method="kmeans", centre=centre, scale=scale, edges=np.full((points.shape[1], 1), np.nan),
        prototypes=np.asarray(model.cluster_centers_, dtype=np.float64),
    )  # fmt: skip
