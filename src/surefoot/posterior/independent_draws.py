"""Thin correlated Markov chain draws to draws that count as independent."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from surefoot.posterior.diagnostics import COLUMNS, Diagnostics, lag_one

Floats = NDArray[np.float64]

DETECTED = 1e-3
"""Autocorrelation counts as real if chance alone shows as much with at most this probability."""
NOISE = 1.25
"""Factor by which the effective sample size of truly independent draws may be estimated too low."""


class Kept(NamedTuple):
    """The thinning stride, and the indices of the kept draws in all chains laid end to end."""

    stride: int
    chosen: NDArray[np.int64]


def keep_all(chains: Floats) -> Kept:
    """Keep every draw of ``(chains, draws, quantities)``."""
    return Kept(1, np.arange(chains.shape[0] * chains.shape[1]))


def thin(chains: Floats, diagnostics: Diagnostics) -> Kept:
    """Choose draws of ``(chains, draws, quantities)`` that may be treated as independent.

    There are no more of them than the effective sample size, and they are so far apart that no
    quantity has an autocorrelation distinguishable from zero (a chain thinned by its
    autocorrelation time alone still keeps a tenth of its correlation).

    Examples
    --------
    >>> from surefoot.posterior.diagnostics import diagnose
    >>> chains = np.random.default_rng(0).normal(size=(4, 500, 3)).repeat(5, axis=1)
    >>> kept = thin(chains, diagnose(chains))
    >>> kept.stride >= 5, len(kept.chosen) <= 2000
    (True, True)
    """
    num_chains, length, _ = chains.shape
    total = num_chains * length
    worth = max(1, math.floor(diagnostics.ess))
    stride = 1 if total <= NOISE * diagnostics.ess else math.ceil(total / diagnostics.ess)
    while stride < length and correlated(chains[:, ::stride]):
        stride += 1
    index = np.arange(total).reshape(num_chains, length)[:, ::stride].ravel()
    if len(index) > worth:
        index = index[np.linspace(0, len(index) - 1, worth).astype(np.int64)]
    return Kept(stride, index)


def correlated(chains: Floats) -> bool:
    """Tell whether successive draws of any quantity are positively correlated beyond chance."""
    num_chains, length, size = chains.shape
    if length < 3:
        return False
    # Under independence the correlation is about -1/length on average, with this deviation.
    limit = float(-ndtri(DETECTED / max(size, 1))) / math.sqrt(num_chains * length)
    return any(
        bool(np.any(lag_one(chains[:, :, first : first + COLUMNS]) > limit))
        for first in range(0, size, COLUMNS)
    )
