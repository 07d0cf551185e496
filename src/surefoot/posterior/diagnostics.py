"""Convergence of Markov chains and their effective number of independent draws.

Split rank-normalised r-hat and effective sample sizes after Vehtari, Gelman, Simpson, Carpenter and
Bürkner (2021), "Rank-normalization, folding, and localization: an improved R-hat".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

Floats = NDArray[np.float64]

GOOD_RHAT = 1.01
"""Above this the chains may not have converged; more iterations are advised."""
TAILS = (0.05, 0.95)
COLUMNS = 256
"""Quantities handled at a time, to bound the memory."""
LEAST_DRAWS = 8
"""Fewer draws per chain than this are too few to split a chain and estimate autocorrelations."""


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """How far draws can be trusted; the worst over all quantities that vary.

    Attributes
    ----------
    chains, draws
        How many chains, and draws in each.
    rhat
        Largest split rank-normalised r-hat: near 1 when all chains agree.
    ess_bulk, ess_tail
        Smallest effective sample size, for the centre and for the 5% and 95% quantiles.
    worst
        The quantity with the largest r-hat, in words.
    divergences
        Number of divergent transitions, where the sampler reports it.

    Examples
    --------
    >>> chains = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> diagnose(chains).rhat < 1.01
    True
    """

    chains: int
    draws: int
    rhat: float
    ess_bulk: float
    ess_tail: float
    worst: str = ""
    divergences: int | None = None

    @property
    def ess(self) -> float:
        """The smaller of the two effective sample sizes."""
        return min(self.ess_bulk, self.ess_tail)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the draws, one sentence each."""
        found = []
        if not self.rhat <= GOOD_RHAT:
            found.append(
                f"r-hat is {self.rhat:.3f} ({self.worst}); above {GOOD_RHAT} the chains may not "
                "agree: run them longer."
            )
        if self.divergences:
            found.append(f"{self.divergences} divergent transitions: the draws may be biased.")
        return tuple(found)

    @property
    def brief(self) -> str:
        """The numbers, without warnings."""
        chains = f"{self.chains} chain{'' if self.chains == 1 else 's'} of {self.draws} draws"
        sizes = f"effective sample size {self.ess_bulk:.0f} (bulk), {self.ess_tail:.0f} (tail)"
        return f"{chains}: r-hat {self.rhat:.3f}, {sizes}"

    def __str__(self) -> str:
        return " ".join((f"{self.brief}.", *self.warnings))


def diagnostic_facts(found: Diagnostics) -> list[tuple[str, str]]:
    """Return the diagnostics as pairs of label and value for a summary."""
    return [
        ("chains", f"{found.chains} of {found.draws:,} draws"),
        ("r-hat", f"{found.rhat:.3f}" + (f" ({found.worst})" if found.worst else "")),
        ("effective sample size", f"{found.ess_bulk:,.0f} (bulk), {found.ess_tail:,.0f} (tail)"),
    ]


def diagnose(
    chains: Floats, names: list[str] | None = None, divergences: int | None = None
) -> Diagnostics:
    """Return the worst r-hat and effective sample sizes of ``(chains, draws, quantities)``.

    Quantities that never vary are left out. With fewer than 8 draws per chain nothing can be said:
    r-hat is infinite and the effective sample sizes are those of one draw.

    Examples
    --------
    >>> stuck = np.zeros((2, 100, 1)) + [[[0.0]], [[1.0]]]
    >>> diagnose(stuck + 1e-3 * np.random.default_rng(0).normal(size=(2, 100, 1))).rhat > 1.5
    True
    """
    num_chains, num_draws, _ = chains.shape
    common = {"chains": num_chains, "draws": num_draws, "divergences": divergences}
    varying = np.flatnonzero(np.ptp(chains, axis=(0, 1)) > 0)
    total = float(num_chains * num_draws)
    if len(varying) == 0:
        return Diagnostics(rhat=1.0, ess_bulk=total, ess_tail=total, **common)
    if num_draws < LEAST_DRAWS:
        return Diagnostics(rhat=np.inf, ess_bulk=1.0, ess_tail=1.0, worst="too short", **common)
    rhat, bulk, tail = (np.empty(len(varying)) for _ in range(3))
    for first in range(0, len(varying), COLUMNS):
        part = slice(first, first + COLUMNS)
        split = _split(chains[:, :, varying[part]])
        rhat[part] = rank_rhat(split)
        bulk[part] = effective_size(_rank_normalised(split))
        tail[part] = tail_effective_size(split)
    worst = int(np.argmax(rhat))
    return Diagnostics(
        rhat=float(rhat[worst]),
        ess_bulk=float(bulk.min()),
        ess_tail=float(tail.min()),
        worst=f"quantity {varying[worst]}" if names is None else names[varying[worst]],
        **common,
    )


def _split(chains: Floats) -> Floats:
    """Cut each chain into halves, so that a drifting chain disagrees with itself."""
    half = chains.shape[1] // 2
    return np.concatenate((chains[:, :half], chains[:, -half:]))


def _rank_normalised(chains: Floats) -> Floats:
    """Replace draws by the normal quantiles of their ranks among all chains."""
    flat = chains.reshape(-1, chains.shape[2])
    ranks = rankdata(flat, axis=0)
    normal: Floats = ndtri((ranks - 0.375) / (len(flat) + 0.25))
    return normal.reshape(chains.shape)


def rank_rhat(split: Floats) -> Floats:
    """Return the larger of the r-hats of ranks and of folded ranks, per quantity."""
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    return np.maximum(_rhat(_rank_normalised(split)), _rhat(_rank_normalised(folded)))


def _rhat(chains: Floats) -> Floats:
    length = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.sqrt((length - 1) / length + between / within)
    return np.where(within > 0, ratio, np.where(between > 0, np.inf, 1.0))


def tail_effective_size(split: Floats) -> Floats:
    """Return the smaller effective size of being below the 5% and the 95% quantile."""
    sizes = [
        effective_size((split <= np.quantile(split, level, axis=(0, 1))).astype(np.float64))
        for level in TAILS
    ]
    return np.minimum(*sizes)


def effective_size(chains: Floats) -> Floats:
    """Return the effective sample size of the mean of ``(chains, draws, quantities)``.

    It is the number of draws divided by the autocorrelation time, a sum that stops where Geyer's
    (1992) pairs of autocorrelations, made monotone, turn negative. O(draws log draws) per quantity.
    """
    num_chains, length, _ = chains.shape
    covariance = _autocovariance(chains).mean(axis=0)
    within = covariance[0] * length / (length - 1)
    spread = within * (length - 1) / length
    if num_chains > 1:
        spread = spread + chains.mean(axis=1).var(axis=0, ddof=1)
    constant = spread == 0
    correlation = 1.0 - (within - covariance) / np.where(constant, 1.0, spread)
    correlation[0] = 1.0
    even = length - length % 2
    pairs = correlation[:even].reshape(even // 2, 2, -1).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    # The even lag after the last pair still counts where it is positive (antithetic chains).
    behind = np.minimum(2 * positive.sum(axis=0), length - 1)
    next_even = np.maximum(np.take_along_axis(correlation, behind[None], axis=0)[0], 0.0)
    total = num_chains * length
    # The effective size of an antithetic chain exceeds its number of draws; it is capped.
    time = np.maximum(-1.0 + 2.0 * monotone.sum(axis=0) + next_even, 1.0 / np.log10(total))
    size: Floats = np.where(constant, total, total / time)
    return size


def _autocovariance(chains: Floats) -> Floats:
    """Return the autocovariances at all lags, per chain and quantity, by FFT."""
    length = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    padded = 2 ** int(np.ceil(np.log2(2 * length)))
    spectrum = np.fft.rfft(centred, n=padded, axis=1)
    power = np.fft.irfft(np.abs(spectrum) ** 2, n=padded, axis=1)
    covariance: Floats = power[:, :length] / length
    return covariance


def lag_one(chains: Floats) -> Floats:
    """Return the autocorrelation at lag one, pooled over chains, per quantity."""
    centred = chains - chains.mean(axis=1, keepdims=True)
    products = (centred[:, 1:] * centred[:, :-1]).sum(axis=(0, 1))
    squares = (centred**2).sum(axis=(0, 1))
    return np.where(squares > 0, products / np.where(squares > 0, squares, 1.0), 0.0)
