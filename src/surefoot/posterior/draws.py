"""A posterior given as draws: arrays, Markov chains or files of other samplers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import number_of
from surefoot._rows import freeze_fields
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.posterior import draw_arrays, inference, stan
from surefoot.posterior.diagnostics import Diagnostics, diagnose, diagnostic_facts
from surefoot.posterior.independent_draws import Kept, correlated, keep_all, thin
from surefoot.posterior.protocol import BLOCK_VALUES, check_draws_wanted, stream_key
from surefoot.posterior.rows import Floats, OnRows, RowLayout, check_counts

MOST_RHAT = 1.05
"""Chains that disagree more than this are refused."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PosteriorDraws(OnRows):
    """A posterior given by its draws only, usually those of a Markov chain.

    Make one with :meth:`from_arrays`, :meth:`from_inference` or :meth:`from_stan_csv`.

    Order statistics need independent draws. So :meth:`sample` and :meth:`stream` use the chains
    thinned to :attr:`num_draws`, and refuse to give more; chains with an r-hat above ``max_rhat``
    are refused altogether. No new draws can be made: :meth:`split` them once, choose on one part
    and certify on the other.

    Attributes
    ----------
    layout
        The rows and entries.
    chains
        ``(chains, draws, E)``; every row of every draw sums to 1.
    independent
        Whether the draws are independent by construction. They are refused if successive draws are
        visibly correlated.
    max_rhat
        The largest r-hat that is accepted.
    divergences
        Divergent transitions of the sampler, where known.
    counts
        The declared counts that the draws were fitted to, where known: certificates then include
        what these say about uncertain mean rewards and about the support.
    origin
        For a part made by :meth:`split`, the mean of all the original draws; else None.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> from surefoot.posterior.dirichlet import DirichletPosterior
    >>> rng = np.random.default_rng(0)
    >>> exact = DirichletPosterior(riverswim().simulate(20, rng))
    >>> posterior = PosteriorDraws.from_arrays(
    ...     exact.sample(400, rng), mdp=riverswim().mdp, independent=True)
    >>> posterior.num_draws
    400
    """

    layout: RowLayout
    chains: Floats
    independent: bool = False
    max_rhat: float = MOST_RHAT
    divergences: int | None = None
    counts: Counts | None = None
    origin: Floats | None = None

    def __post_init__(self) -> None:
        freeze_fields(self)
        if self.counts is not None:
            object.__setattr__(self, "counts", check_counts(self.counts, self.layout))
        if self.chains.ndim != 3 or self.chains.shape[2] != self.layout.num_entries:
            raise ValueError(
                f"chains has shape {self.chains.shape}; it must be (chains, draws, "
                f"{self.layout.num_entries})."
            )

    @classmethod
    def from_arrays(
        cls,
        draws: ArrayLike,
        *,
        mdp: MDP | None = None,
        independent: bool = False,
        max_rhat: float = MOST_RHAT,
        divergences: int | None = None,
        counts: Counts | None = None,
    ) -> PosteriorDraws:
        """Build from an array of draws.

        Parameters
        ----------
        draws
            Dense models ``(n, S, A, S)`` or chains of them ``(chains, n, S, A, S)``; with ``mdp``
            also entries in its order, ``(n, E)`` or ``(chains, n, E)``.
        mdp
            The model they belong to. None means that successors with probability 0 in every draw
            are not reachable, and rows that are all 0 are not available.
        independent, max_rhat, divergences, counts
            See the class.

        Examples
        --------
        >>> draws = np.random.default_rng(0).dirichlet([3.0, 1.0], size=(100, 2, 1))
        >>> PosteriorDraws.from_arrays(draws, independent=True).num_draws
        100
        """
        layout, chains = draw_arrays.arrange(draws, mdp)
        return cls(
            layout=layout, chains=chains, independent=independent, max_rhat=max_rhat,
            divergences=divergences, counts=counts,
        )  # fmt: skip

    @classmethod
    def from_inference(
        cls,
        source: Any,
        *,
        variable: str,
        mdp: MDP | None = None,
        max_rhat: float = MOST_RHAT,
        counts: Counts | None = None,
    ) -> PosteriorDraws:
        """Build from the result of a sampler.

        ``source`` is an ArviZ InferenceData or DataTree (which PyMC returns too), an xarray
        Dataset, a fitted NumPyro ``MCMC``, a PyMC ``MultiTrace`` or a mapping from names to arrays
        ``(chains, draws, ...)``. ``variable`` names the transition probabilities, dense
        ``(S, A, S)``, or ``(E,)`` in the entry order of ``mdp``.

        Examples
        --------
        >>> draws = np.random.default_rng(0).dirichlet([3.0, 1.0], size=(4, 100, 2, 1))
        >>> PosteriorDraws.from_inference({"P": draws}, variable="P").chains.shape
        (4, 100, 4)
        """
        values, divergences = inference.chains_of(source, variable)
        return cls.from_arrays(
            draw_arrays.by_chain(values, mdp), mdp=mdp, max_rhat=max_rhat, divergences=divergences,
            counts=counts,
        )  # fmt: skip

    @classmethod
    def from_stan_csv(
        cls,
        files: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        variable: str,
        mdp: MDP | None = None,
        max_rhat: float = MOST_RHAT,
        counts: Counts | None = None,
    ) -> PosteriorDraws:
        """Build from the CSV files of Stan, one per chain; warm-up draws are left out."""
        values, divergences = stan.read_chains(files, variable)
        return cls.from_arrays(
            draw_arrays.by_chain(values, mdp), mdp=mdp, max_rhat=max_rhat, divergences=divergences,
            counts=counts,
        )  # fmt: skip

    @property
    def independent_rows(self) -> bool:
        """False: draws may share parameters across rows."""
        return False

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """r-hat and effective sample sizes of the entries."""
        names = [
            f"{self.layout.row_name(row)}, successor {successor}"
            for row, successor in zip(
                self.layout.entry_row,
                (self.layout.state_name(t) for t in self.layout.successor),
                strict=True,
            )
        ]
        return diagnose(self.chains, names, self.divergences)

    @cached_property
    def kept(self) -> Kept:
        """The draws that count as independent; all of them if they were declared independent."""
        total = self.chains.shape[0] * self.chains.shape[1]
        if not self.independent and not self.diagnostics.rhat <= self.max_rhat:
            raise ValueError(
                f"the chains do not agree: r-hat is {self.diagnostics.rhat:.3f} "
                f"({self.diagnostics.worst}), above max_rhat={self.max_rhat:g}, with an effective "
                f"sample size of {self.diagnostics.ess:.0f} out of {total} draws. Run the sampler "
                "longer."
            )
        if not self.independent:
            return thin(self.chains, self.diagnostics)
        if self.origin is None and correlated(self.chains):  # a part was shuffled
            raise ValueError(
                "these draws were said to be independent, but successive ones are correlated: "
                f"{total} draws have an effective sample size of {self.diagnostics.ess:.0f}. Leave "
                "out independent=True and they will be thinned."
            )
        return keep_all(self.chains)

    @cached_property
    def _independent_draws(self) -> Floats:
        """The thinned draws of all chains, ``(num_draws, E)``."""
        return self.chains.reshape(-1, self.num_entries)[self.kept.chosen]

    @property
    def num_draws(self) -> int:
        """The number of draws left after thinning to independence."""
        return len(self.kept.chosen)

    @property
    def identity(self) -> Floats:
        """The mean of the draws; for a part of a split, the mean of all draws."""
        return self.mean() if self.origin is None else self.origin

    def mean(self) -> Floats:
        """Return the mean of all draws, ``(E,)``; a mean does not need independent draws."""
        average: Floats = self.chains.mean(axis=(0, 1))
        return average

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``n`` of the independent draws, ``(n, E)``, none twice."""
        return self._independent_draws[self._chosen(n, rng)]

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws of :meth:`sample` block by block, for all rows or for some."""
        chosen = self._chosen(n, rng)
        entries = self.layout.entries_of(self.layout.check_rows(rows))
        size = max(1, BLOCK_VALUES // max(1, len(entries)))
        return (
            self._independent_draws[np.ix_(chosen[first : first + size], entries)]
            for first in range(0, len(chosen), size)
        )

    def split(self, first: int, rng: np.random.Generator) -> tuple[PosteriorDraws, PosteriorDraws]:
        """Return ``first`` of the independent draws, and the rest: two disjoint parts.

        Examples
        --------
        >>> draws = np.random.default_rng(0).dirichlet([3.0, 1.0], size=(100, 2, 1))
        >>> parts = PosteriorDraws.from_arrays(draws, independent=True).split(
        ...     60, np.random.default_rng(1))
        >>> [part.num_draws for part in parts]
        [60, 40]
        """
        if not 0 < check_draws_wanted(first) < self.num_draws:
            raise ValueError(f"first={first} must leave draws for both parts of {self.num_draws}.")
        order = self._chosen(self.num_draws, rng)
        one, two = (
            PosteriorDraws(
                layout=self.layout, chains=self._independent_draws[part][None], independent=True,
                max_rhat=self.max_rhat, divergences=self.divergences, counts=self.counts,
                origin=self.identity,
            )
            for part in (order[:first], order[first:])
        )  # fmt: skip
        return one, two

    def _chosen(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        wanted = check_draws_wanted(n)
        if wanted > self.num_draws:
            total = self.chains.shape[0] * self.chains.shape[1]
            raise ValueError(
                f"n={wanted} independent draws wanted, but the {total} draws given are worth "
                f"{self.num_draws} (effective sample size {self.diagnostics.ess:.0f}, thinned by "
                f"{self.kept.stride}). Run the sampler longer, or ask for fewer."
            )
        # One key per call, as in every posterior, whatever n is.
        return np.random.default_rng(stream_key(rng)).permutation(self.num_draws)[:wanted]

    def _facts(self) -> list[tuple[str, str]]:
        return diagnostic_facts(self.diagnostics)

    def _remarks(self) -> tuple[str, ...]:
        return () if self.independent else self.diagnostics.warnings

    def _headline(self) -> str:
        return f"PosteriorDraws({number_of(self.num_entries, 'entry', 'entries')})"

    def __repr__(self) -> str:
        return f"PosteriorDraws({self.num_entries:,} entries; {self.diagnostics.brief})"
