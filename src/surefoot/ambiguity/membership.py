"""Whether a model lies in a set."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.checks import as_float_array

Floats = NDArray[np.float64]


def contains(ambiguity: AmbiguitySet, probability: ArrayLike) -> NDArray[np.bool_]:
    """Tell for every row, ``(R,)``, whether given probabilities ``(E,)`` lie in its set.

    Plain arithmetic without tolerance: the edge belongs to the set up to rounding only.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> ball = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    >>> bool(contains(ball, mdp.probability).all())
    True
    """
    mdp = ambiguity.mdp
    p = as_float_array("probability", probability)
    if p.shape != (mdp.num_entries,):
        raise ValueError(f"probability has shape {p.shape}; it must be ({mdp.num_entries},).")
    starts = mdp.row_start[:-1]
    if ambiguity.lower is not None and ambiguity.upper is not None:
        inside = (ambiguity.lower <= p) & (p <= ambiguity.upper)
        return np.asarray(np.logical_and.reduceat(inside, starts))
    return np.asarray(_distance(ambiguity, p) <= np.asarray(ambiguity.budget))


def _distance(ambiguity: AmbiguitySet, p: Floats) -> Floats:
    """Return the distance of every row from the nominal one, in the norm of its set."""
    nominal, starts = ambiguity.mdp.probability, ambiguity.mdp.row_start[:-1]
    if ambiguity.norm == "kl":
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(nominal > 0, nominal * np.log(nominal / p), 0.0)
        return np.asarray(np.add.reduceat(part, starts))
    off = np.abs(p - nominal)
    if ambiguity.weights is not None:
        with np.errstate(invalid="ignore"):
            off = np.where(off == 0, 0.0, ambiguity.weights * off)
    combine = np.add if ambiguity.norm == "l1" else np.maximum
    return np.asarray(combine.reduceat(off, starts))
