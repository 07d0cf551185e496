"""Standard normal variates from random streams that can be opened at any block."""

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import kernel
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.philox_kernels import CONTROL, WORDS, next_word, open_stream
from surefoot.posterior.ziggurat_kernels import rare_normal


@kernel()
def normal_columns(
    streams: NDArray[np.int64], columns: NDArray[np.int64], key0: np.uint64, key1: np.uint64,
    first: int, last: int, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write variates ``first..last-1`` of stream ``streams[j]`` to column ``columns[j]``.

    ``first`` is a multiple of ``BLOCK_DRAWS``.
    """
    words = np.empty(WORDS, np.uint64)
    control = np.empty(CONTROL, np.uint64)
    for j in range(len(streams)):
        for start in range(first, last, BLOCK_DRAWS):
            open_stream(control, key0, key1, streams[j], start // BLOCK_DRAWS)
            for i in range(start, min(start + BLOCK_DRAWS, last)):
                out[i - first, columns[j]] = rare_normal(next_word(words, control), words, control)
