"""The interface of a posterior over transition models, however it was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]

BLOCK_VALUES = 2**20
"""The most probabilities in a streamed block, unless a minimum of draws needs more (8 MB)."""


@runtime_checkable
class Posterior(Protocol):
    """A distribution over transition models with fixed rows and successors.

    A draw is one transition model: ``(E,)`` probabilities in the entry order of the model, each row
    summing to 1.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> counts = riverswim().simulate(20, np.random.default_rng(0))
    >>> isinstance(DirichletPosterior(counts), Posterior)
    True
    """

    @property
    def num_entries(self) -> int:
        """The number of reachable (state, action, successor) triples."""

    @property
    def row_start(self) -> NDArray[np.int64]:
        """``(R+1,)``: the entries of row ``r`` are ``row_start[r]:row_start[r+1]``."""

    @property
    def support(self) -> NDArray[np.bool_]:
        """``(S, A, S)``: which successors are reachable (dense: for small models)."""

    @property
    def independent_rows(self) -> bool:
        """Whether the rows of one draw are independent of each other."""

    @property
    def num_draws(self) -> int | None:
        """The number of independent draws; None when draws are unlimited.

        Finitely many draws cannot be replaced by new ones: split them, choose on one part and
        certify on the other.
        """

    @property
    def counts(self) -> Counts | None:
        """The declared counts it was computed from, on the same rows; None where there are none.

        Certificates read from them how uncertain mean rewards are and what the support assumes.
        Without counts they take the rewards of the model as exact, and say so.
        """

    @property
    def identity(self) -> Floats:
        """Numbers that distinguish this posterior from others on the same rows, such as its mean.

        Certificates keep a fingerprint of them. A part of a posterior of finitely many draws has
        the identity of the whole.
        """

    def mean(self) -> Floats:
        """Return the posterior mean, ``(E,)``."""

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ``n`` independent draws, ``(n, E)``."""

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws of :meth:`sample` block by block, for all rows or for some.

        A block is ``(b, entries of those rows)``, the rows in the order given.
        """

    def matches(self, mdp: MDP) -> bool:
        """Tell whether a model has exactly the rows and entries of this posterior."""

    def check_matches(self, mdp: MDP) -> None:
        """Raise an error that says where a model and this posterior differ."""


class Divisible(Posterior, Protocol):
    """A posterior of counts that can be recomputed for other counts, such as a part of them.

    Runs then measure, on halves of the log, how much a chosen policy owes to luck, and backtest it.
    """

    @property
    def counts(self) -> Counts:
        """The declared counts it was computed from, on the same rows."""

    def given(self, count: ArrayLike) -> Posterior:
        """Return the posterior with other counts on the same entries, ``(E,)``."""


def is_divisible(posterior: Posterior) -> TypeGuard[Divisible]:
    """Tell whether a posterior can be recomputed for a part of its counts."""
    return posterior.counts is not None and hasattr(posterior, "given")


class Ranged(Posterior, Protocol):
    """A posterior that can make any range of its draws without the earlier ones."""

    def stream_range(
        self, first: int, last: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield draws ``first`` to ``last - 1`` of :meth:`stream`, block by block."""


def stream_range(
    posterior: Posterior,
    first: int,
    last: int,
    rng: np.random.Generator,
    rows: ArrayLike | None = None,
) -> Iterator[Floats]:
    """Yield draws ``first`` to ``last - 1`` of a posterior's stream, block by block.

    Where the posterior cannot start at ``first``, the earlier draws are made and thrown away.
    """
    if _is_ranged(posterior):
        return posterior.stream_range(first, last, rng, rows)
    return _without_first(posterior.stream(last, rng, rows), first)


def _is_ranged(posterior: Posterior) -> TypeGuard[Ranged]:
    return hasattr(posterior, "stream_range")


def _without_first(blocks: Iterator[Floats], skip: int) -> Iterator[Floats]:
    for block in blocks:
        if skip < len(block):
            yield block[skip:]
        skip = max(0, skip - len(block))


def check_posterior(posterior: Posterior) -> Posterior:
    """Return a posterior that implements the protocol, or raise an error naming what it lacks."""
    kind = type(posterior)
    wanted = [name for name in vars(Posterior) if not name.startswith("_")]
    fields = getattr(posterior, "__dict__", {})
    # The class and the fields are tried first: reading a property may cost a pass over all draws.
    missing = [
        name
        for name in wanted
        if not (hasattr(kind, name) or name in fields or hasattr(posterior, name))
    ]
    if missing:
        raise ValueError(
            f"{kind.__name__} is not a Posterior: it lacks {', '.join(missing)}. See "
            "surefoot.Posterior; where there are no counts, counts is None."
        )
    return posterior


def check_draws_wanted(n: int) -> int:
    """Return a number of draws as an int, or refuse it unless it is a whole number, 1 or more."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n={n!r}; the number of draws must be a whole number, 1 or more.")
    return int(n)


def at_most(posterior: Posterior, wanted: int) -> int:
    """Return the number of draws a posterior can give, at most ``wanted``.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim
    >>> at_most(DirichletPosterior(riverswim().simulate(1, np.random.default_rng(0))), 10**9)
    1000000000
    """
    return wanted if posterior.num_draws is None else min(wanted, posterior.num_draws)


def check_generator(rng: np.random.Generator) -> np.random.Generator:
    """Return the generator, or raise an error that says how to make one."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"rng must be a numpy Generator, got {type(rng).__name__}. Pass "
            "numpy.random.default_rng(seed)."
        )
    return rng


def stream_key(rng: np.random.Generator) -> tuple[np.uint64, np.uint64]:
    """Take one 128-bit key from a generator: equal states give equal draws."""
    first, second = check_generator(rng).integers(0, 2**64, size=2, dtype=np.uint64)
    return first, second
