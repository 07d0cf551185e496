"""Convert a Dirichlet prior, as the user gives it, to one parameter per entry."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.data.count_arrays import CountArrays
from surefoot.data.support import UNSEEN_PRIOR


def spread_prior(
    counts: CountArrays, prior: ArrayLike, unseen: float = UNSEEN_PRIOR
) -> NDArray[np.float64]:
    """Return the prior parameter of every entry of declared counts, ``(E,)``.

    Parameters
    ----------
    counts
        Declared counts.
    prior
        One number, one per row ``(R,)`` or one per entry ``(E,)``. The caller checks its sign: for
        a mean it may be zero, for a Dirichlet posterior it may not.
    unseen
        The parameter of the successor that stands for all those never observed. Not used with a
        prior per entry.

    Examples
    --------
    >>> from surefoot import Counts
    >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [1.0]]).on_support()
    >>> spread_prior(counts, 1.0).tolist()
    [1.0, 1.0, 0.5, 1.0, 0.5, 0.5]
    """
    value = np.asarray(prior)
    if value.dtype.kind not in "iuf":
        raise ValueError(f"prior must be a number or an array of numbers, got {prior!r}.")
    if value.shape not in ((), (counts.num_rows,), (counts.num_entries,)):
        raise ValueError(
            f"prior has shape {value.shape}; it must be a number, ({counts.num_rows},) for one per "
            f"row or ({counts.num_entries},) for one per entry."
        )
    if value.shape == (counts.num_entries,) and value.ndim:
        return value.astype(np.float64)
    spread = value[counts.entry_row] if value.ndim else np.broadcast_to(value, counts.num_entries)
    entries = spread.astype(np.float64)
    if counts.unseen is not None:
        entries[counts.successor == counts.unseen] = unseen
    return entries
