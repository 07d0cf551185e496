"""From correlated Markov chain draws to draws that count as independent."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from surefoot.posterior.diagnostics import COLUMNS, Diagnostics, lag_one

Floats = NDArray[np.float64]

DETECTED = 1e-3
"""Autocorrelation counts as real when chance alone would show as much this rarely."""


def stride_to_independence(chains: Floats, diagnostics: Diagnostics) -> int:
    """Return the step at which ``(chains, draws, quantities)`` may be taken for independent.

    At least ``draws / effective sample size``; then larger until no quantity shows an
    autocorrelation that can be told from zero (a chain thinned by its autocorrelation time alone
    still keeps a tenth of its correlation).

    Examples
    --------
    >>> from surefoot.posterior.diagnostics import diagnose
    >>> chains = np.random.default_rng(0).normal(size=(4, 500, 3)).repeat(5, axis=1)
    >>> stride_to_independence(chains, diagnose(chains)) >= 5
    True
    """
    total = int(chains.shape[0] * chains.shape[1])
    stride = max(1, math.ceil(total / diagnostics.ess - 1e-9))
    while stride < chains.shape[1] and correlated(chains[:, ::stride]):
        stride += 1
    return stride


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
