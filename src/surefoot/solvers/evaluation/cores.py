"""Returns in drawn models on the cores of this machine: block by block, shared among threads."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._cores import available_cores
from surefoot._work import OPERATION, count
from surefoot.model.mdp import MDP
from surefoot.model.policies import Changes, RowPolicy
from surefoot.solvers.evaluation import horizon_kernels as steps
from surefoot.solvers.evaluation import return_kernels as kernels
from surefoot.solvers.evaluation.dense import chunks, solve_dense
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.equations import MAX_SWEEPS, Equations, solve_equations
from surefoot.solvers.evaluation.evaluator import Evaluator, choose_evaluator
from surefoot.solvers.evaluation.threads import shared
from surefoot.solvers.steps import ends_of, until_the_end

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PartWork = Callable[[Floats, Floats, int, int, Floats], None]
"""Writes the brackets of draws ``begin:end`` of a block: (draws, rewards, begin, end, out)."""

MAX_ROUNDS = 200
DRAWS_PER_CUT, CUTS_PER_CORE = 64, 2
"""Most draws in a part of a block, and the least number of parts per core."""


class Played(NamedTuple):
    """The rows that a policy plays, as the kernels read them; indices count these rows only."""

    state_rows: Ints
    row_start: Ints
    share: Floats
    successor: Ints
    discount: float
    initial: Floats
    longest: int


class Offered(NamedTuple):
    """All rows of a model, as the kernels read them."""

    state_start: Ints
    row_start: Ints
    successor: Ints
    discount: float
    initial: Floats
    longest: int


def returns_on_cores(draws: Draws, policy: RowPolicy, tolerance: float) -> Floats:
    """Return ``(n, 2)`` brackets of a policy's return."""
    mdp, rows = draws.mdp, policy.rows.astype(np.int64)
    model, entries = _played(mdp, policy)
    evaluator = choose_evaluator(mdp, rows)
    size = mdp.num_states
    if mdp.horizon is not None:
        return _returns_of_steps(draws, policy, model, entries, evaluator.work)
    if until_the_end(mdp):
        swept = np.empty(len(policy.rows))
        return _swept_to_the_end(draws, model, rows, entries, swept, tolerance, evaluator.work)
    near = _mean_value(draws, evaluator, model, entries, tolerance)

    def full(draw: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        for first, last in chunks(begin, end, size):
            matrices, values = np.empty((last - first, size, size)), np.empty((last - first, size))
            kernels.write_systems(draw, reward, *model[:5], first, matrices, values)
            solve_dense(matrices, values)
            kernels.bracket_values(draw, reward, *model, first, last, values, out)

    def sparse(draw: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        kernels.sparse_returns(
            draw, reward, *model, begin, end, tolerance, MAX_SWEEPS, np.arange(len(rows)), near,
            np.empty(size), evaluator.system(len(entries)), out,
        )  # fmt: skip

    work = full if evaluator.full else sparse
    return _collect(draws, rows, entries, work, evaluator.work)


def best_on_cores(draws: Draws, start: Ints, tolerance: float) -> Floats:
    """Return ``(n, 2)`` brackets of the best return of any policy."""
    mdp = draws.mdp
    model = Offered(
        mdp.state_start, mdp.row_start, mdp.successor.astype(np.int64), mdp.discount,
        mdp.initial / mdp.initial.sum(), int(np.diff(mdp.row_start).max()),
    )  # fmt: skip
    size = mdp.num_states
    longest = np.maximum.reduceat(np.diff(mdp.row_start), mdp.state_start[:-1])
    evaluator = choose_evaluator(mdp)
    if mdp.horizon is not None:
        return _best_of_steps(draws, model, evaluator.work)
    if until_the_end(mdp):
        every = np.arange(mdp.num_entries)
        swept = np.empty(mdp.num_rows)
        return _swept_to_the_end(draws, model, None, every, swept, tolerance, evaluator.work)
    one_each, whole = np.arange(size + 1), np.ones(size)
    first_policy = RowPolicy(one_each.astype(np.uint64), np.asarray(start).astype(np.uint64), whole)
    near = _mean_value(draws, evaluator, *_played(mdp, first_policy), tolerance)

    def full(draw: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        for first, last in chunks(begin, end, size):
            _improve_until_best(draw, reward, model, start, first, last, out)

    def sparse(draw: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        kernels.sparse_optima(
            draw, reward, *model, begin, end, tolerance, MAX_SWEEPS, MAX_ROUNDS, one_each, whole,
            start, near, np.array(start), np.zeros(size), np.empty(size),
            evaluator.system(int(longest.sum())), out,
        )  # fmt: skip

    work = full if evaluator.full else sparse
    return _collect(draws, None, np.arange(mdp.num_entries), work, 2 * evaluator.work)


def _returns_of_steps(
    draws: Draws, policy: RowPolicy, model: Played, entries: Ints, operations: float
) -> Floats:
    """Return brackets of a policy over the model's horizon."""
    size, played, horizon = len(model.initial), len(policy.rows), draws.mdp.horizon or 1
    none = Changes(np.zeros(horizon + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
    changes = none if policy.changes is None else policy.changes
    final = draws.rewards.final_values(size)

    def work(draw: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        steps.step_returns(
            draw, reward, *model, begin, end, horizon, final, *changes, np.empty(played),
            np.empty(played), np.empty(size), np.empty(size), out,
        )  # fmt: skip

    return _collect(draws, policy.rows.astype(np.int64), entries, work, operations)


def _swept_to_the_end(
    draws: Draws, model: Played | Offered, rows: Ints | None, entries: Ints, gain: Floats,
    tolerance: float, operations: float,
) -> Floats:  # fmt: skip
    """Return brackets of the return until the end, of a policy or (`Offered`) of the best one."""
    size, ends = draws.mdp.num_states, ends_of(draws.mdp)
    if isinstance(model, Offered):  # no shares: the best policy
        model = Played(model.state_start, model.row_start, np.empty(0), *model[2:])

    def work(draw: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        room = (np.empty(size) for _ in range(4))
        steps.end_returns(
            draw, reward, *model, begin, end, tolerance, MAX_SWEEPS, ends, np.empty_like(gain),
            *room, out,
        )  # fmt: skip

    return _collect(draws, rows, entries, work, operations)


def _best_of_steps(draws: Draws, model: Offered, operations: float) -> Floats:
    """Return brackets of the best return over the model's horizon."""
    mdp = draws.mdp
    size, horizon = mdp.num_states, mdp.horizon or 1
    final = draws.rewards.final_values(size)

    def work(draw: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        steps.best_step_returns(
            draw, reward, *model, begin, end, horizon, final, np.empty(mdp.num_rows),
            np.empty(size), np.empty(size), out,
        )  # fmt: skip

    every = np.arange(mdp.num_entries)
    return _collect(draws, None, every, work, operations * mdp.num_rows / size)


def _improve_until_best(
    draw: Floats, reward: Floats, model: Offered, start: Ints, first: int, last: int, out: Floats
) -> None:
    """Write brackets of draws ``first:last`` by policy iteration on all of them at once.

    Two or three rounds are typical; draws whose policy no longer changes drop out.
    """
    size = len(model.initial)
    which = np.arange(first, last)
    choice = np.tile(start, (last - first, 1))
    for turn in range(MAX_ROUNDS):
        matrices, values = np.empty((len(which), size, size)), np.empty((len(which), size))
        kernels.write_choices(draw, reward, *model[1:4], which, choice, matrices, values)
        solve_dense(matrices, values)
        changed = np.zeros(len(which), dtype=np.bool_)
        final = turn == MAX_ROUNDS - 1
        kernels.improve_choices(
            draw, reward, *model, which, final, values, choice, np.empty(size), changed, out
        )
        if final or not changed.any():
            return
        which, choice = which[changed], choice[changed]


def _played(mdp: MDP, policy: RowPolicy) -> tuple[Played, Ints]:
    """Return the rows that a policy plays, and their entries in the model."""
    rows, state_rows = policy.rows.astype(np.int64), policy.start.astype(np.int64)
    lengths = np.diff(mdp.row_start)[rows]
    row_start = np.concatenate(([0], np.cumsum(lengths)))
    entries = mdp.entries_of(rows)
    model = Played(
        state_rows, row_start, policy.share, mdp.successor[entries].astype(np.int64), mdp.discount,
        mdp.initial / mdp.initial.sum(), int(lengths.max()) * int(np.diff(state_rows).max()),
    )  # fmt: skip
    return model, entries


def _mean_value(
    draws: Draws, evaluator: Evaluator, model: Played, entries: Ints, near: float
) -> Floats:
    """Return an approximate value of a policy in the mean model, from which sweeps start."""
    size = len(model.initial)
    if evaluator.full:
        return np.zeros(size)
    lengths = np.diff(model.row_start)
    weight = np.repeat(model.share, lengths) * draws.batch.posterior.mean()[entries]
    state = np.repeat(np.repeat(np.arange(size), np.diff(model.state_rows)), lengths)
    gain = np.bincount(state, weight * draws.rewards.fixed[entries], minlength=size)
    equations = Equations(
        model.row_start[model.state_rows],
        model.successor,
        model.discount * weight,
        gain.astype(np.float64),
    )
    return solve_equations(evaluator, equations, model.discount, near, np.zeros(size))


def _collect(
    draws: Draws, rows: Ints | None, entries: Ints, work: PartWork, operations: float
) -> Floats:
    """Make the draws and share each block among threads; a draw takes ``operations`` operations."""
    ends = np.empty((draws.count, 2))
    done = 0
    for block, reward in draws.blocks(rows, entries):
        out = ends[done : done + len(block)]

        def part(
            begin: int, end: int, d: Floats = block, r: Floats = reward, o: Floats = out
        ) -> None:
            work(d, r, begin, end, o)

        size = len(block)
        # Draws are evaluated independently, so the cut may depend on the machine.
        least = min(DRAWS_PER_CUT, -(-size // (CUTS_PER_CORE * available_cores())))
        shared(size, part, operations=operations * size, least=least, cuts=size)
        count(OPERATION * operations * size)
        done += size
    return ends
