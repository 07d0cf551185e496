"""Policies worth considering, from many sides: what the search starts from."""

from collections.abc import Iterator, Mapping

import numpy as np

from surefoot._work import SWEPT, count
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.certificates import search_kernels as kernels
from surefoot.certificates.local_search import climb
from surefoot.certificates.models import Floats, Ints, Models, Stopped, policy_values
from surefoot.certificates.var_operator import fixed_point
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.threads import shared
from surefoot.solvers.solution import SolvedPolicy
from surefoot.solvers.solver import solve
from surefoot.solvers.steps import largest_value, until_the_end

ROBUST_SCALES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Budgets of the robust candidates, in mean posterior distances of their rows."""
VAR_LEVELS = 5
"""Levels of the VaR candidates, from delta shared over the states up to one half."""
CLIMB_SHARES = (1.0, 0.25)
"""Shares of the worst draws that coordinate ascent looks at, besides delta and twice delta. Large
models only look at all of them: there a climb on the worst takes seconds, their worst say little
about others, and VaR candidates did better wherever we looked."""
VAR_DRAWS, VAR_VALUES = 500, 2**22
"""Draws of the VaR candidates: as many as fit into `VAR_VALUES`, and at least `VAR_DRAWS`."""
FALLING = 2
"""Policies in a row, of more and more caution, that must be worse than one before for the rest of
them to be left out in large models."""
MAX_SWEEPS = 25
"""Of the VaR operator, per level: high levels may go round in circles, and more sweeps find no
better policy (clinic with 440 states: a hundred took 7 s a level)."""


def proposals(
    batch: Models, delta: float, stopped: Stopped, reached: Mapping[bytes, float] | None = None
) -> Iterator[tuple[str, Ints]]:
    """Yield names and policies (one row per state), the nominal one first.

    They are made one by one, so that a search out of time may leave the rest. ``reached`` are
    percentiles of the policies yielded so far, by their bytes: large models leave a path of budgets
    or levels once it leads down.
    """
    known = {} if reached is None or batch.small else reached
    solution = solve(batch.mdp, tolerance=_tolerance(batch))
    nominal = _rows(batch, solution.policy)
    yield "nominal", nominal
    if not until_the_end(batch.mdp):  # nature might put off an end for ever
        yield from _until_worse(_robust(batch, stopped), known)
        yield from _until_worse(_var(batch, delta, solution.value, stopped), known)
    values = policy_values(batch, nominal)
    for share in climb_shares(batch, delta):
        if stopped():
            return
        if share < 1.0:
            name = f"coordinate ascent, worst {100 * share:.3g}% of draws"
        else:
            name = "coordinate ascent, all draws"
        yield name, climb(batch, nominal, delta, share, stopped, values)


def _until_worse(
    path: Iterator[tuple[str, Ints]], reached: Mapping[bytes, float]
) -> Iterator[tuple[str, Ints]]:
    """Yield a path of policies until `FALLING` in a row are worse than the best before them."""
    best, falling = -np.inf, 0
    for name, choice in path:
        yield name, choice
        percentile = reached.get(choice.tobytes(), np.inf)
        falling = falling + 1 if percentile < best else 0
        best = max(best, percentile)
        if falling == FALLING:
            return


def climb_shares(batch: Models, delta: float) -> list[float]:
    """Return the shares of the worst draws that coordinate ascent looks at, in turn."""
    if not batch.small:
        return [1.0]
    return sorted({delta, min(1.0, 2 * delta), *CLIMB_SHARES})


def _tolerance(batch: Models) -> float:
    return 1e-6 * max(largest_value(batch.mdp), 1e-300)


def _rows(batch: Models, policy: SolvedPolicy) -> Ints:
    return check_policy(batch.mdp, policy).rows.astype(np.int64)


class _OutOfTimeError(Exception):
    """Ends a solve whose time is over."""


def _robust(batch: Models, stopped: Stopped) -> Iterator[tuple[str, Ints]]:
    """Yield robust policies for L1 balls of growing size, none when the time is over."""

    def watch(*_: object) -> None:
        if stopped():
            raise _OutOfTimeError

    reach = mean_distances(batch)
    for scale in ROBUST_SCALES:
        ball = AmbiguitySet(mdp=batch.mdp, norm="l1", budget=np.minimum(2.0, scale * reach))
        try:
            solution = solve(batch.mdp, ball, tolerance=100 * _tolerance(batch), progress=watch)
        except _OutOfTimeError:
            return
        yield f"robust, budget {scale:g} x mean distance", _rows(batch, solution.policy)


def mean_distances(batch: Models) -> Floats:
    """Return ``(R,)``: how far draws lie from the nominal row on average, in the L1 norm."""
    mdp, total = batch.mdp, np.empty(batch.mdp.num_rows)

    def add(begin: int, end: int) -> None:
        kernels.add_distances(batch.draws, mdp.probability, mdp.row_start, begin, end, total)

    shared(mdp.num_rows, add, operations=batch.draws.size)
    count(SWEPT * batch.draws.size)
    return total / batch.size


def _var(batch: Models, delta: float, v: Floats, stopped: Stopped) -> Iterator[tuple[str, Ints]]:
    """Yield policies of the VaR operator at a path of levels, each from the value before.

    When the time is over the last one is left as far as it got.
    """
    some = max(VAR_DRAWS, VAR_VALUES // batch.mdp.num_entries)
    if some < batch.size:
        batch = batch.part(slice(some))
    lowest = max(delta / batch.num_uncertain, 1.0 / batch.size)
    for level in np.geomspace(0.5, min(lowest, 0.5), VAR_LEVELS):
        if stopped():
            return
        ranks = np.full(batch.mdp.num_states, batch.rank(float(level)), dtype=np.int64)
        point = fixed_point(batch, ranks, v, 100 * _tolerance(batch), MAX_SWEEPS, stopped)
        v = point.v
        yield f"VaR, level {level:.3g}", point.choice
