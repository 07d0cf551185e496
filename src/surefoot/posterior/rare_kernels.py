"""Rare events in drawn rows."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel(lean=True)
def add_rare(
    rare: Floats, open_to: Floats, landing: Floats, row_start: Ints, rows: Ints, columns: Ints,
    action: Ints, out: Floats,
) -> None:  # fmt: skip
    """Move a share of the mass of every row of model ``i`` to its unseen successors, ``landing``.

    The share is ``1 - (1 - rare[i, action]) ** open_to[row]``. Rows without unseen successors, or
    with a single successor, stay unchanged.
    """
    for j in range(len(rows)):
        begin, end = row_start[rows[j]], row_start[rows[j] + 1]
        new = 0.0
        for e in range(begin, end):
            new += landing[e]
        if new <= 0.0 or end - begin == 1:
            continue
        for i in range(len(out)):
            share = 1.0 - (1.0 - rare[i, action[rows[j]]]) ** open_to[rows[j]]
            if share > 0.0:
                for e in range(begin, end):
                    at = columns[j] + e - begin
                    out[i, at] = (1.0 - share) * out[i, at] + share * landing[e]
