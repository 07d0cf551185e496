"""Share the rows of draws among threads; the bits do not depend on the number of threads."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from surefoot._cores import available_cores, on_threads

WORTH_A_THREAD = 2**17
"""Drawing fewer variates than this takes less time than starting a thread."""
Places = NDArray[np.intp]


def fill_rows(
    fill: Callable[[Places], None], ends: NDArray[np.int64], variates: int, threads: int | None
) -> None:
    """Call ``fill`` on runs of rows of about equal total width, one run per thread.

    ``ends`` are the cumulative widths of the rows; ``threads=None`` means as many as pay off.
    """
    parts = _shares(ends, variates, threads)
    on_threads(fill, parts, len(parts))


def _shares(ends: NDArray[np.int64], variates: int, threads: int | None) -> list[Places]:
    wanted = threads
    if wanted is None:
        wanted = min(available_cores(), variates // WORTH_A_THREAD)
    wanted = max(1, min(wanted, len(ends)))
    limits = np.searchsorted(ends, ends[-1] * np.arange(1, wanted) / wanted) if len(ends) else []
    return np.split(np.arange(len(ends)), limits)
