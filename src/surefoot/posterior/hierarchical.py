"""Posteriors whose rows share parameters: each parameter draw gives one transition model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import number_of
from surefoot.data.counts import Counts
from surefoot.posterior import dirichlet_kernels as kernels
from surefoot.posterior.diagnostics import Diagnostics, diagnose, diagnostic_facts
from surefoot.posterior.draws import MOST_RHAT
from surefoot.posterior.independent_draws import Kept, thin
from surefoot.posterior.mcmc import Chains, show
from surefoot.posterior.protocol import BLOCK_VALUES, check_draws_wanted, stream_key
from surefoot.posterior.rows import Floats, Ints, OnRows, RowLayout, check_counts

Parameters = Mapping[str, Floats]
Key = tuple[np.uint64, np.uint64]


class RowModel(Protocol):
    """How parameter draws become transition models; the first axis of arrays is the draw."""

    def expected(self, parameters: Parameters) -> Floats:
        """Return ``(b, E)``: the mean model given each parameter draw."""

    def draw(self, parameters: Parameters, key: Key, first: int, rows: Ints, /) -> Floats:
        """Return ``(b, entries of the rows)``: one model for each parameter draw."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HierarchicalPosterior(OnRows):
    """A posterior over shared parameters and, through them, over transition models.

    Made by :func:`fit_pooled` and :func:`fit_population`. The Markov chains of the parameters are
    thinned to independence before they are used, which leaves :attr:`num_draws`, and refused when
    their r-hat is above ``max_rhat``.

    Attributes
    ----------
    layout
        The rows and entries.
    parameters
        Draws by name, ``(chains, draws, ...)``.
    model
        How a parameter draw becomes a transition model.
    divergences
        Divergent transitions of the sampler.
    max_rhat
        The largest r-hat that is accepted.
    counts
        The declared counts that it was fitted to, where known: certificates then include what
        these say about uncertain mean rewards and about the support.

    Examples
    --------
    >>> from surefoot import fit_pooled, riverswim
    >>> rng = np.random.default_rng(0)
    >>> posterior = fit_pooled(
    ...     riverswim().simulate(5, rng), rng=rng, draws=10, warmup=30, chains=1, progress=False
    ... )  # use the default number of draws
    >>> sorted(posterior.parameters), posterior.mean().shape
    (['concentration', 'weight'], (22,))
    """

    layout: RowLayout
    parameters: Parameters
    model: RowModel
    divergences: int = 0
    max_rhat: float = MOST_RHAT
    counts: Counts | None = None

    def __post_init__(self) -> None:
        if self.counts is not None:
            object.__setattr__(self, "counts", check_counts(self.counts, self.layout))

    @classmethod
    def fitted(
        cls, model: RowModel, layout: RowLayout, chains: Chains, counts: Counts, title: str | None
    ) -> HierarchicalPosterior:
        """Return the posterior of a sampler's chains; given a ``title``, print its diagnostics."""
        made = cls(
            layout=layout, parameters=chains.parameters, model=model,
            divergences=chains.divergences, counts=counts,
        )  # fmt: skip
        if title is not None:
            show(f"{title}: {made.diagnostics}")
        return made

    @property
    def independent_rows(self) -> bool:
        """False: rows share parameters."""
        return False

    @cached_property
    def _flat(self) -> tuple[Floats, list[str]]:
        """All parameters side by side, ``(chains, draws, quantities)``, and their names."""
        columns, names = [], []
        for name, value in self.parameters.items():
            flat = value.reshape(*value.shape[:2], -1)
            columns.append(flat)
            names += [name if value.ndim == 2 else f"{name}[{i}]" for i in range(flat.shape[2])]
        return np.concatenate(columns, axis=2), names

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """r-hat and effective sample sizes of the parameters."""
        return diagnose(*self._flat, self.divergences)

    @cached_property
    def kept(self) -> Kept:
        """The parameter draws that count as independent."""
        if not self.diagnostics.rhat <= self.max_rhat:
            raise ValueError(
                f"the chains do not agree: r-hat is {self.diagnostics.rhat:.3f} "
                f"({self.diagnostics.worst}), above max_rhat={self.max_rhat:g}, with an effective "
                f"sample size of {self.diagnostics.ess:.0f}. Fit again with more draws and warm-up."
            )
        return thin(self._flat[0], self.diagnostics)

    @property
    def num_draws(self) -> int:
        """The number of parameter draws left after thinning to independence."""
        return len(self.kept.chosen)

    def _one_chain(self) -> dict[str, Floats]:
        """All parameter draws, one chain after another."""
        return {
            name: value.reshape(-1, *value.shape[2:]) for name, value in self.parameters.items()
        }

    @property
    def identity(self) -> Floats:
        """The posterior mean."""
        return self.mean()

    def mean(self) -> Floats:
        """Return the posterior mean, ``(E,)``, averaged over all parameter draws."""
        flat = self._one_chain()
        total = len(next(iter(flat.values())))
        mean = np.zeros(self.num_entries)
        for part in _parts(np.arange(total), self.num_entries):
            mean += self.model.expected(_take(flat, part)).sum(axis=0)
        return mean / total

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``n`` independent draws, ``(n, E)``, each from a different parameter draw."""
        return np.concatenate(list(self.stream(n, rng)))

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws of :meth:`sample` block by block, for all rows or for some."""
        wanted = check_draws_wanted(n)
        chosen_rows = self.layout.check_rows(rows)
        if wanted > self.num_draws:
            raise ValueError(
                f"n={wanted} independent draws wanted, but the fit gave {self.num_draws} "
                f"(effective sample size {self.diagnostics.ess:.0f}, thinned by "
                f"{self.kept.stride}). Fit with more draws, or ask for fewer."
            )
        key = stream_key(rng)
        flat = self._one_chain()
        order = self.kept.chosen[np.random.default_rng(key).permutation(self.num_draws)[:wanted]]
        return (
            self.model.draw(_take(flat, part), key, first, chosen_rows)
            for first, part in _numbered(_parts(order, self.num_entries))
        )

    def _headline(self) -> str:
        entries = number_of(self.num_entries, "entry", "entries")
        return f"HierarchicalPosterior({type(self.model).__name__}, {entries})"

    def _facts(self) -> list[tuple[str, str]]:
        return [("parameters", ", ".join(self.parameters)), *diagnostic_facts(self.diagnostics)]

    def _remarks(self) -> tuple[str, ...]:
        return self.diagnostics.warnings

    def __repr__(self) -> str:
        return f"{self._headline()[:-1]}; {self.diagnostics.brief})"


def _take(parameters: Parameters, chosen: NDArray[Any]) -> dict[str, Floats]:
    return {name: value[chosen] for name, value in parameters.items()}


def _parts(order: NDArray[Any], width: int) -> Iterator[NDArray[Any]]:
    size = max(1, BLOCK_VALUES // max(1, width))
    return (order[first : first + size] for first in range(0, len(order), size))


def _numbered(parts: Iterator[NDArray[Any]]) -> Iterator[tuple[int, NDArray[Any]]]:
    first = 0
    for part in parts:
        yield first, part
        first += len(part)


def draw_dirichlet_models(
    shapes: Floats, layout: RowLayout, key: Key, first: int, rows: Ints
) -> Floats:
    """Return one model for each line of Dirichlet parameters ``(b, E)``.

    Line ``i`` has its own random streams, keyed by the draw's number ``first + i``.
    """
    sizes = np.diff(layout.row_start)[rows]
    columns = np.cumsum(sizes) - sizes
    out = np.empty((len(shapes), int(sizes.sum())))
    kernels.dirichlet_models(shapes, layout.row_start, rows, columns, *key, first, out)
    return out
