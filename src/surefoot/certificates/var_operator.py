"""The VaR Bellman operator on a batch, and its fixed point."""

from dataclasses import dataclass
from math import ceil, log, log1p

import numpy as np

from surefoot._order_statistics import lower_rank
from surefoot._work import SWEPT, count
from surefoot.certificates import var_kernels as kernels
from surefoot.certificates.models import Floats, Ints, Models, Stopped
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.equations import Equations, solve_equations
from surefoot.solvers.evaluation.threads import shared

TABLE_VALUES = 2**16
"""The most numbers of one sweep that a thread holds at a time (half a megabyte)."""
FIRST_REST = 5
"""How many sweeps follow the first failed jump; twice as many after each further one."""
JUMP_SHARE = 0.01
"""The tolerance of a jump, as a share of the tolerance of the fixed point."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedPoint:
    """The result of the iteration: values, and the rows and draws that attain ``Tv``."""

    v: Floats
    choice: Ints
    attained: Ints
    sweeps: int
    error_bound: float
    converged: bool


def strict_draws(delta: float, eta: float, states: int) -> int:
    """Return the fewest draws with strict ranks when delta and eta are shared over the states.

    Examples
    --------
    >>> strict_draws(0.05, 0.001, 6)
    1040
    """
    needed = ceil(log(eta / states) / log1p(-delta / states))
    while lower_rank(needed, delta / states, eta / states) < 1:  # rounding of the logarithms
        needed += 1
    return needed


def equal_levels(batch: Models, delta: float) -> Floats:
    """Return ``(S,)``: the same share of delta for every uncertain state, 0 for the others."""
    return np.where(batch.uncertain_states, delta / batch.num_uncertain, 0.0)


def strict_ranks(batch: Models, levels: Floats, eta: float) -> Ints:
    """Return ``(S,)``: the strict lower rank at each state's level; 1 where there is none.

    Where draws are too few for a strict rank, rank 1 affects only how tight the promise is, not its
    validity: the promise has its own draws.
    """
    share = eta / batch.num_uncertain
    known: dict[float, int] = {0.0: 1}
    for level in levels:
        if float(level) not in known:
            known[float(level)] = max(1, lower_rank(batch.size, float(level), share))
    return np.array([known[float(level)] for level in levels], dtype=np.int64)


def fixed_point(
    batch: Models,
    ranks: Ints,
    start: Floats | None,
    tolerance: float,
    max_sweeps: int,
    stopped: Stopped = lambda: False,
) -> FixedPoint:
    """Iterate ``v <- Tv`` with jumps, until the span bounds are within the tolerance.

    ``T(v + c) = Tv + discount c``, so the spread of ``Tv - v`` alone bounds the error. A jump
    solves the linear equations of the draws that attain ``Tv``; it is accepted if it halves the
    spread, otherwise mixed sweeps continue.
    """
    discount = batch.mdp.discount
    v = np.zeros(batch.mdp.num_states) if start is None else start
    offers = batch.mdp.state_start, np.arange(batch.mdp.num_rows)
    image, choice, attained = _sweep(batch, offers, ranks, v)
    sweeps, rest, patience = 1, 0, FIRST_REST
    mixing = Mixing()
    while True:
        spread, middle = _spread(image - v)
        error = 0.5 * spread / (1.0 - discount)
        if error <= tolerance or sweeps >= max_sweeps or stopped():
            return FixedPoint(
                v=v + middle / (1.0 - discount), choice=choice, attained=attained, sweeps=sweeps,
                error_bound=error, converged=error <= tolerance,
            )  # fmt: skip
        if rest == 0:
            trial = _jump(batch, choice, attained, image, tolerance)
            result = _sweep(batch, offers, ranks, trial)
            sweeps += 1
            if _spread(result[0] - trial)[0] < 0.5 * spread:
                v, (image, choice, attained) = trial, result
                mixing = Mixing()
                continue
            rest, patience = patience, 2 * patience
        v = mixing.after(v, image)
        image, choice, attained = _sweep(batch, offers, ranks, v)
        sweeps, rest = sweeps + 1, max(0, rest - 1)


class Mixing:
    """Anderson mixing (1965): the mixture of the last few images that leaves the least change.

    If a mixture turns out much worse, the iteration restarts from the best image so far: a sweep
    from there shrinks the spread at least by the discount.
    """

    DEPTH = 5

    def __init__(self) -> None:
        self.images: list[Floats] = []
        self.changes: list[Floats] = []
        self.lowest = np.inf
        self.best = np.empty(0)

    def after(self, v: Floats, image: Floats) -> Floats:
        """Return the value function of the next sweep."""
        change = image - v
        spread, middle = _spread(change)
        if spread > 2 * self.lowest:
            self.images, self.changes, self.lowest = [], [], np.inf
            return self.best
        if spread < self.lowest:
            self.lowest, self.best = spread, image
        self.images = [*self.images[-self.DEPTH :], image]
        self.changes = [*self.changes[-self.DEPTH :], change - middle]  # a constant does not count
        if len(self.images) == 1:
            return image
        shares = np.linalg.lstsq(np.diff(self.changes, axis=0).T, self.changes[-1], rcond=1e-10)[0]
        mixed: Floats = image - shares @ np.diff(self.images, axis=0)
        return mixed


def _spread(change: Floats) -> tuple[float, float]:
    least, most = float(change.min()), float(change.max())
    return most - least, 0.5 * (least + most)


def sweep(batch: Models, ranks: Ints, v: Floats) -> tuple[Floats, Ints, Ints]:
    """Return ``Tv``, and the rows and the draws that attain it, with all rows offered."""
    return _sweep(batch, (batch.mdp.state_start, np.arange(batch.mdp.num_rows)), ranks, v)


def _sweep(
    batch: Models, offers: tuple[Ints, Ints], ranks: Ints, v: Floats
) -> tuple[Floats, Ints, Ints]:
    """Return ``Tv``, and the rows and the draws that attain it."""
    states = len(v)
    image = np.empty(states)
    choice, attained = np.zeros((2, states), dtype=np.int64)
    widest = int(np.diff(offers[0]).max())
    at_once = max(1, TABLE_VALUES // (batch.size * widest))

    def work(begin: int, end: int) -> None:
        table, scratch = np.empty((widest * at_once, batch.size)), np.empty(batch.size)
        for first in range(begin, end, at_once):
            kernels.var_sweep(
                batch.draws, batch.gains, *offers, batch.mdp.row_start, batch.successor,
                batch.mdp.discount, v, ranks, first, min(first + at_once, end), table, scratch,
                image, choice, attained,
            )  # fmt: skip

    shared(states, work, operations=4 * batch.draws.size, least=at_once)
    count(SWEPT * batch.draws.size)
    return image, choice, attained


def _jump(batch: Models, choice: Ints, attained: Ints, v: Floats, tolerance: float) -> Floats:
    """Return the value of the model in which state ``s`` moves as in draw ``attained[s]``.

    Large sparse models are solved iteratively from ``v``, to well within the tolerance.
    """
    lengths = np.diff(batch.mdp.row_start)[choice]
    entries = RowLayout.of(batch.mdp).entries_of(choice)
    state = np.repeat(np.arange(len(choice)), lengths)
    equations = Equations(
        np.concatenate(([0], np.cumsum(lengths))), batch.successor[entries],
        batch.mdp.discount * batch.draws[attained[state], entries], batch.gains[attained, choice],
    )  # fmt: skip
    near = JUMP_SHARE * tolerance
    return solve_equations(batch.evaluator, equations, batch.mdp.discount, near, v)
