"""A batch of drawn models in pieces, evaluated by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from surefoot._workers import all_parts, current, ranges

SHARED_WORK = 2e9
"""From this many operations on, work is handed to the workers of a cluster (a second or two)."""


class ModelBatch(Protocol):
    """Drawn models: `surefoot.certificates.models.Models`."""

    @property
    def size(self) -> int:
        """The number of draws."""

    @property
    def evaluation_work(self) -> float:
        """About how many operations the evaluation of one policy costs."""

    def part(self, which: slice) -> Any:
        """Return some of the draws."""


_pieces: WeakKeyDictionary[ModelBatch, list[tuple[int, int, Any]]] = WeakKeyDictionary()
"""First, last and models of each piece: workers receive a piece once and evaluate many policies."""


def worth_sharing(batch: ModelBatch) -> bool:
    """Return whether there are workers and evaluating a policy is enough work to share."""
    return current() is not None and batch.size > 1 and batch.evaluation_work >= SHARED_WORK


def by_workers(
    work: Callable[..., Any],
    batch: ModelBatch,
    choice: Any,
    start: NDArray[np.float64] | None,
    *more: Any,
) -> list[Any]:
    """Return ``work(piece, choice, start of the piece, *more)`` of all pieces, in order."""
    parts = [
        (piece, choice, None if start is None else start[first:last], *more)
        for first, last, piece in _pieces_of(batch)
    ]
    return all_parts(work, (), parts)


def _pieces_of(batch: ModelBatch) -> list[tuple[int, int, Any]]:
    """Return the draws in two pieces per worker; results do not depend on the cut."""
    if batch not in _pieces:
        workers = current()
        number = 1 if workers is None else 2 * workers.count
        cut = ranges(batch.size, -(-batch.size // number))
        _pieces[batch] = [(a, b, batch.part(slice(a, b))) for a, b in cut]
    return _pieces[batch]
