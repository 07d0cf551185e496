"""The policies that the search starts from, made by several methods."""

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
"""Number of levels of the VaR candidates, from one half down to delta shared over the states."""
CLIMB_SHARES = (1.0, 0.25)
"""Shares of the worst draws that coordinate ascent uses, besides delta and twice delta. Large
models only use all draws: there a climb on the worst draws takes seconds, the worst draws say
little about other draws, and VaR candidates did better in every case we tried."""
VAR_DRAWS, VAR_VALUES = 500, 2**22
"""Draws of the VaR candidates: as many as fit into `VAR_VALUES`, and at least `VAR_DRAWS`."""
FALLING = 2
"""In large models, a path of more and more cautious policies is left after this many policies in a
row that are worse than the best before them."""
MAX_SWEEPS = 25
"""The most sweeps of the VaR operator per level: at high levels it may cycle, and more sweeps find
no better policy (clinic with 440 states: a hundred took 7 s a level)."""


def proposals(
    batch: Models, delta: float, stopped: Stopped, reached: Mapping[bytes, float] | None = None
) -> Iterator[tuple[str, Ints]]:
    """Yield names and policies (one row per state), the nominal one first.

    Each is made when it is asked for, so that a search that runs out of time can skip the rest.
    ``reached`` are the percentiles of the policies yielded so far, by their bytes: large models
    leave a path of budgets or levels once its percentiles fall.
    """
    known = {} if reached is None or batch.small else reached
    solution = solve(batch.mdp, tolerance=_tolerance(batch))
    nominal = _rows(batch, solution.policy)
    yield "nominal", nominal
    if not until_the_end(batch.mdp):  # else nature might postpone the end for ever
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
    """Return the shares of the worst draws that coordinate ascent uses, one climb for each."""
    if not batch.small:
        return [1.0]
    return sorted({delta, min(1.0, 2 * delta), *CLIMB_SHARES})


def _tolerance(batch: Models) -> float:
    return 1e-6 * max(largest_value(batch.mdp), 1e-300)


def _rows(batch: Models, policy: SolvedPolicy) -> Ints:
    return check_policy(batch.mdp, policy).rows.astype(np.int64)


class _OutOfTimeError(Exception):
    """Ends a solve that has run out of time."""


def _robust(batch: Models, stopped: Stopped) -> Iterator[tuple[str, Ints]]:
    """Yield robust policies for L1 balls of growing size, until the time is over."""

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
    """Return ``(R,)``: the mean L1 distance of the draws from the nominal row."""
    mdp, total = batch.mdp, np.empty(batch.mdp.num_rows)

    def add(begin: int, end: int) -> None:
        kernels.add_distances(batch.draws, mdp.probability, mdp.row_start, begin, end, total)

    shared(mdp.num_rows, add, operations=batch.draws.size)
    count(SWEPT * batch.draws.size)
    return total / batch.size


def _var(batch: Models, delta: float, v: Floats, stopped: Stopped) -> Iterator[tuple[str, Ints]]:
    """Yield policies of the VaR operator at a sequence of levels, each from the previous value.

    When the time is over, the iteration ends and its last policy is yielded.
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
