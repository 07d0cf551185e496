"""The shape of a set: weights that make it short in the direction of the values.

For every row the span of the ball ``||p - pbar||_w <= psi`` along ``z = r + discount*v`` is at most
``2 psi ||z - lambda||_dual`` for any number ``lambda``. Over all weights of 2-norm 1 this bound is
smallest for::

    L1 ball:          w_i proportional to |z_i - lambda|         (dual: max_i |z_i - lambda| / w_i)
    L-infinity ball:  w_i proportional to |z_i - lambda|^(1/3)   (dual: sum_i |z_i - lambda| / w_i)

The *dual* norm matters here: Algorithm 2 of Behzadian et al. (2021), read literally, swaps the two.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._arguments import check_choice
from surefoot.ambiguity.sets import NORMS, per_entry
from surefoot.model.checks import as_float_array
from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]

CENTERS = ("midrange", "median", "mean")
SEARCH = "search"
USUAL_CENTER = {"l1": "midrange", "linf": "median"}
"""The centre at which the bound for uniform weights is smallest."""
POWER = {"l1": 1.0, "linf": 1.0 / 3.0}
SAME = 1e-13
"""Differences from the centre below this share of the largest value are taken as rounding."""


class ChosenWeights(NamedTuple):
    """Weights per entry (None means all 1), how they were chosen, and how they are scaled."""

    weights: Floats | None
    name: str
    scale: str


def successor_values(mdp: MDP, value: ArrayLike) -> Floats:
    """Return ``z = r + discount*v`` for every entry.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> float(successor_values(mdp, np.zeros(6)).max())
    10000.0
    """
    v = as_float_array("value", value)
    if v.shape != (mdp.num_states,) or not np.all(np.isfinite(v)):
        raise ValueError(f"value must be finite numbers of shape ({mdp.num_states},).")
    reward = mdp.entry_reward
    z: Floats = reward + mdp.discount * v[mdp.successor]
    return z


def centers(mdp: MDP, z: Floats, center: str | float) -> Floats:
    """Return ``lambda`` of every row, ``(R,)``, over its reachable successors.

    ``"midrange"`` is the middle between the row's lowest and highest value, ``"median"`` its
    median, ``"mean"`` the unweighted mean of its entries; a number is used for every row.

    Examples
    --------
    >>> mdp = MDP.from_arrays([[[0.2, 0.3, 0.5]]] * 3, [[0.0]] * 3, discount=0.5)
    >>> centers(mdp, successor_values(mdp, [0.0, 2.0, 10.0]), "midrange").tolist()
    [2.5, 2.5, 2.5]
    """
    starts = mdp.row_start[:-1]
    if not isinstance(center, str):
        number = float(center)
        if not np.isfinite(number):
            raise ValueError(f"center={center!r}; a number must be finite.")
        return np.full(mdp.num_rows, number)
    if center == "midrange":
        low, high = np.minimum.reduceat(z, starts), np.maximum.reduceat(z, starts)
        return np.asarray(low + 0.5 * (high - low))
    if center == "mean":
        return np.asarray(np.add.reduceat(z, starts) / np.diff(mdp.row_start))
    if center == "median":
        ordered = z[np.lexsort((z, mdp.entry_row))]
        size = np.diff(mdp.row_start)
        low, high = ordered[starts + (size - 1) // 2], ordered[starts + size // 2]
        return np.asarray(low + 0.5 * (high - low))
    if center == SEARCH:
        raise ValueError(
            f"center='search' needs posterior draws (credible_set); here choose one of "
            f"{', '.join(map(repr, CENTERS))} or a number."
        )
    names = ", ".join(map(repr, (*CENTERS, SEARCH)))
    raise ValueError(f"center={center!r}; choose one of {names} or a number.")


def weights_at(mdp: MDP, z: Floats, center: Floats, norm: str) -> Floats:
    """Return the weights of 2-norm 1 in every row that minimise the bound at given centres.

    A row whose values all equal its centre gets uniform weights. An entry at the centre gets weight
    0: only the simplex constrains it.

    Examples
    --------
    >>> mdp = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [0.0]], discount=0.5)
    >>> weights_at(mdp, np.array([0.0, 4.0, 1.0]), np.array([1.0, 1.0]), "l1").round(3).tolist()
    [0.316, 0.949, 1.0]
    """
    check_choice("norm", norm, NORMS)
    starts, row = mdp.row_start[:-1], mdp.entry_row
    distance = np.abs(z - center[row])
    largest = np.maximum.reduceat(np.abs(z), starts)
    distance[distance <= SAME * largest[row]] = 0.0
    furthest = np.maximum.reduceat(distance, starts)
    flat = furthest == 0
    relative = np.where(flat[row], 1.0, distance / np.where(flat, 1.0, furthest)[row])
    raw = relative ** POWER[norm]
    length = np.sqrt(np.add.reduceat(raw * raw, starts))
    return np.asarray(raw / length[row])


def span_bound(z: ArrayLike, weights: ArrayLike, center: float, norm: str) -> float:
    """Return ``||z - center||`` in the norm dual to the weighted one, which the weights minimise.

    Twice this times the budget bounds the span of the row's set.

    Examples
    --------
    >>> span_bound([0.25, 0.25, -1.0], [0.25, 0.25, 1.0], 0.0, "l1")
    1.0
    """
    distance = np.abs(as_float_array("z", z) - center)
    w = as_float_array("weights", weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(distance == 0, 0.0, distance / w)
    return float(ratio.max() if norm == "l1" else ratio.sum())


def given_weights(mdp: MDP, weights: ArrayLike) -> Floats:
    """Return weights given as a number, ``(S, A)``, ``(S, A, S)`` or ``(E,)``, one per entry."""
    array = as_float_array("weights", weights)
    if array.shape == (mdp.num_entries,) and array.ndim == 1:
        entries = array.copy()
    else:
        entries = per_entry(mdp, "weights", array)
    bad = np.flatnonzero(~((entries >= 0) & np.isfinite(entries)))
    if len(bad):
        place = mdp.row_name(mdp.entry_row[bad[0]])
        raise ValueError(
            f"weights: an entry of {place} is {entries[bad[0]]}; weights must be 0 or more and "
            "finite (an infinite one would fix a probability that the data do not determine)."
        )
    return entries


def choose_weights(
    mdp: MDP, weights: str | ArrayLike, *, norm: str, center: str | float | None, z: Floats
) -> ChosenWeights:
    """Return the weights that the options ask for, given the values ``z`` of every entry.

    ``"socp"`` is the second-order cone program of the paper in closed form: over weights *and*
    centre, the optimal centre is the mean of the row's values.
    """
    if isinstance(center, str) and center not in (*CENTERS, SEARCH):
        names = ", ".join(map(repr, (*CENTERS, SEARCH)))
        raise ValueError(f"center={center!r}; choose one of {names} or a number.")
    if not isinstance(weights, str):
        return ChosenWeights(given_weights(mdp, weights), "given", "given")
    if weights == "uniform":
        return ChosenWeights(None, "uniform", "one")
    if weights == "socp":
        if norm != "l1":
            raise ValueError("weights='socp' is for norm='l1'; use weights='analytic'.")
        return ChosenWeights(weights_at(mdp, z, centers(mdp, z, "mean"), norm), "socp", "unit")
    if weights == "analytic":
        where = USUAL_CENTER[norm] if center is None else center
        at = weights_at(mdp, z, centers(mdp, z, where), norm)
        return ChosenWeights(at, f"analytic, {where} centre", "unit")
    raise ValueError(f"weights={weights!r}; choose 'uniform', 'analytic', 'socp' or give an array.")
