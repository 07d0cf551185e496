"""The equations of one policy in one drawn model, written and solved without a full matrix.

Inside a `System` states are in its own order; inputs and outputs are in the order of the model.
Results are approximate: a caller that needs a guarantee bounds the residual afterwards.
"""

from typing import Any, NamedTuple

from surefoot._compile import kernel
from surefoot.solvers.evaluation.factor_kernels import analyse, back_substitute, factorise
from surefoot.solvers.evaluation.krylov_kernels import settle, settle_visits


class System(NamedTuple):
    """Arrays for the equations ``v = gain + chance v`` of a policy, and for solving them.

    Attributes
    ----------
    factored
        Whether they are solved by elimination in this order; otherwise by sweeps and BiCGSTAB.
    order, place
        ``(S,)``: the state at each position, the position of each state.
    start, column, chance, gain
        Position ``i`` moves to ``column[e]`` with discounted probability ``chance[e]`` for ``e`` in
        ``start[i]:start[i+1]``.
    lower_start, lower_column, lower, upper_start, upper_column, upper, pivot, link
        The factors; empty if not ``factored``.
    value, image, work
        Scratch vectors.
    """

    factored: bool
    order: Any
    place: Any
    start: Any
    column: Any
    chance: Any
    gain: Any
    lower_start: Any
    lower_column: Any
    lower: Any
    upper_start: Any
    upper_column: Any
    upper: Any
    pivot: Any
    link: Any
    value: Any
    image: Any
    work: Any


@kernel(lean=True)
def fill(system, draw, reward, state_rows, rows, share, row_start, successor, discount):
    """Write the equations: state ``s`` plays ``rows[state_rows[s]:state_rows[s+1]]`` by ``share``.

    Successors with probability 0 in this draw are left out, unless the system is factored: then all
    draws need the same sparsity pattern.
    """
    at, keep = 0, system.factored
    for i in range(len(system.gain)):
        s = system.order[i]
        system.start[i] = at
        total = 0.0
        for m in range(state_rows[s], state_rows[s + 1]):
            for e in range(row_start[rows[m]], row_start[rows[m] + 1]):
                weight = share[m] * draw[e]
                total += weight * reward[e]
                system.column[at] = system.place[successor[e]]
                system.chance[at] = discount * weight
                at += 1 if keep or weight != 0.0 else 0
        system.gain[i] = total
    system.start[len(system.gain)] = at


@kernel(lean=True)
def fill_rows(system, draw, gains, choice, row_start, successor, discount):
    """Write the equations of one row per state, given the expected reward of every row."""
    at, keep = 0, system.factored
    for i in range(len(system.gain)):
        row = choice[system.order[i]]
        system.start[i] = at
        for e in range(row_start[row], row_start[row + 1]):
            system.column[at] = system.place[successor[e]]
            system.chance[at] = discount * draw[e]
            at += 1 if keep or draw[e] != 0.0 else 0
        system.gain[i] = gains[row]
    system.start[len(system.gain)] = at


@kernel(lean=True)
def fill_from(system, start, target, chance, gain):
    """Copy equations that are given in the order of the model's states."""
    at = 0
    for i in range(len(system.gain)):
        s = system.order[i]
        system.start[i] = at
        for e in range(start[s], start[s + 1]):
            system.column[at] = system.place[target[e]]
            system.chance[at] = chance[e]
            at += 1
        system.gain[i] = gain[s]
    system.start[len(system.gain)] = at


@kernel(lean=True)
def find_places(system):
    """Find the sparsity pattern of the factors: once for every policy, after `fill`."""
    if system.factored:
        analyse(
            system.start, system.column, system.lower_start, system.lower_column,
            system.upper_start, system.upper_column, system.link,
        )  # fmt: skip


@kernel(lean=True)
def eliminate_states(system, transposed):
    """Solve by elimination, in place: ``system.value`` holds the right-hand side at first."""
    factorise(
        system.start, system.column, system.chance, system.lower_start, system.lower_column,
        system.lower, system.upper_start, system.upper_column, system.upper, system.pivot,
        system.work[0],
    )  # fmt: skip
    back_substitute(
        system.lower_start, system.lower_column, system.lower, system.upper_start,
        system.upper_column, system.upper, system.pivot, transposed, system.value,
    )  # fmt: skip


@kernel(lean=True)
def find_value(system, discount, tolerance, max_sweeps, v):
    """Replace ``v`` by the value of the policy, within ``tolerance``; sweeps start from ``v``."""
    value = system.value
    if system.factored:
        for i in range(len(value)):
            value[i] = system.gain[i]
        eliminate_states(system, False)
    else:
        for i in range(len(value)):
            value[i] = v[system.order[i]]
        settle(
            system.start, system.column, system.chance, system.gain, discount, tolerance,
            max_sweeps, value, system.image, system.work,
        )  # fmt: skip
    for i in range(len(value)):
        v[system.order[i]] = value[i]


@kernel(lean=True)
def solve_written(system, new, discount, tolerance, max_sweeps, v):
    """Replace ``v`` by the solution of the equations; ``new`` if their sparsity pattern is new."""
    if new:
        find_places(system)
    find_value(system, discount, tolerance, max_sweeps, v)


@kernel(lean=True)
def solve_one(system, start, target, chance, gain, discount, tolerance, max_sweeps, v):
    """Replace ``v`` by the solution of equations given in the order of the model's states."""
    fill_from(system, start, target, chance, gain)
    solve_written(system, True, discount, tolerance, max_sweeps, v)


@kernel(lean=True)
def find_visits(system, initial, goal, max_sweeps, b):
    """Replace ``b`` by the visits ``initial' (I - chance)^-1``, with residuals within ``goal``."""
    value = system.value
    if system.factored:
        for i in range(len(value)):
            value[i] = initial[system.order[i]]
        eliminate_states(system, True)
    else:
        for i in range(len(value)):
            value[i] = b[system.order[i]]
            system.image[i] = initial[system.order[i]]
        settle_visits(
            system.start, system.column, system.chance, system.image, goal, max_sweeps, value,
            system.work,
        )  # fmt: skip
    for i in range(len(value)):
        b[system.order[i]] = value[i]
