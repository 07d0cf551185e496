"""A batch of drawn models in memory, for choosing policies and never for certifying them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._order_statistics import marginal_rank
from surefoot._work import OPERATION, count
from surefoot.certificates import search_kernels as kernels
from surefoot.certificates.shared_batches import by_workers, worth_sharing
from surefoot.model.mdp import MDP
from surefoot.posterior.draws import PosteriorDraws
from surefoot.posterior.protocol import Posterior, check_generator, stream_key
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.dense import chunks, solve_dense
from surefoot.solvers.evaluation.equations import MAX_SWEEPS
from surefoot.solvers.evaluation.evaluator import Evaluator, choose_evaluator
from surefoot.solvers.evaluation.rewards import Rewards
from surefoot.solvers.evaluation.threads import shared
from surefoot.solvers.steps import counted_steps, ends_of, until_the_end

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Stopped = Callable[[], bool]
"""Returns whether the search has to stop."""
OnDraws = Callable[[int, int], None]
"""Processes the draws ``begin:end``."""

BATCH_VALUES = 2**25
"""The most numbers that a batch holds (a quarter of a gigabyte)."""
EXACT_WORK = 2e9
"""The most multiplications of one round of exact changes (some seconds)."""
CHOOSING = 0x5EA2C4
"""A constant in the seeds of generators for choosing, which no other generator has."""
SWEPT_TOLERANCE = 1e-7
"""The tolerance of evaluations while choosing in large models, as a share of the largest value."""
VISITS_SHARE = 1e-3
"""The tolerance of visits, as a share of the initial ones: visits only serve for estimates."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Models:
    """Drawn models of the allowed rows, in memory.

    Attributes
    ----------
    mdp
        The allowed rows with the posterior mean as probabilities; rewards are to be maximised.
    rows
        ``(R',)``: which rows of the whole model these are.
    draws
        ``(n, E')`` probabilities.
    gains
        ``(n, R')``: the expected reward of every row.
    uncertain_rows
        ``(R',)``: rows with more than one successor or an uncertain reward.
    evaluator
        How policies are evaluated.
    """

    mdp: MDP
    rows: Ints
    draws: Floats
    gains: Floats
    uncertain_rows: NDArray[np.bool_]
    evaluator: Evaluator

    @property
    def size(self) -> int:
        """The number of draws."""
        return len(self.draws)

    @cached_property
    def initial(self) -> Floats:
        """``(S,)``: the distribution of the first state, summing to 1."""
        start: Floats = self.mdp.initial / self.mdp.initial.sum()
        return start

    @cached_property
    def uncertain_states(self) -> NDArray[np.bool_]:
        """``(S,)``: states with at least one uncertain row."""
        some: NDArray[np.bool_] = np.logical_or.reduceat(
            self.uncertain_rows, self.mdp.state_start[:-1]
        )
        return some

    @property
    def num_uncertain(self) -> int:
        """The number of uncertain states, which share delta in a union bound; at least 1."""
        return max(1, int(self.uncertain_states.sum()))

    @cached_property
    def successor(self) -> Ints:
        """``(E',)``: the successors as int64, for the kernels."""
        return self.mdp.successor.astype(np.int64)

    @property
    def models(self) -> tuple[Any, ...]:
        """The arguments that every kernel begins with."""
        return self.draws, self.gains, self.mdp.row_start, self.successor, self.mdp.discount

    @property
    def small(self) -> bool:
        """Whether the effect of every single change can be computed exactly."""
        return self.evaluator.full and self.size * float(self.mdp.num_states) ** 3 <= EXACT_WORK

    @property
    def evaluation_work(self) -> float:
        """About how many operations the evaluation of one policy costs."""
        return self.size * self.evaluator.work

    def part(self, which: Ints | slice) -> "Models":
        """Return a batch with some of the draws."""
        return replace(self, draws=self.draws[which], gains=self.gains[which])

    @cached_property
    def mean(self) -> "Models":
        """The posterior mean as a single draw."""
        mdp = self.mdp
        gains = np.add.reduceat(mdp.probability * mdp.reward, mdp.row_start[:-1])
        share = mdp.probability
        if until_the_end(mdp):
            share = np.where(ends_of(mdp)[mdp.row_state[mdp.entry_row]], 0.0, share)
        return replace(self, draws=share[None], gains=gains[None])

    def rank(self, delta: float) -> int:
        """Return the rank of the empirical percentile: ``floor(delta (n+1))``, at least 1."""
        return max(1, marginal_rank(self.size, delta))


def allowed_rows(mdp: MDP, allowed: ArrayLike | None) -> Ints:
    """Return the rows that ``(S, A)`` booleans or (state, action) pairs allow, all for None.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> mdp = riverswim().mdp
    >>> allowed_rows(mdp, [(0, 1), (1, 0), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]).tolist()
    [1, 2, 3, 5, 7, 9, 11]
    """
    if allowed is None:
        return np.arange(mdp.num_rows)
    given = np.asarray(allowed)
    if given.dtype == np.bool_ and given.shape == (mdp.num_states, mdp.num_actions):
        rows = np.flatnonzero(given[mdp.row_state, mdp.row_action])
    elif given.dtype.kind in "iu" and given.ndim == 2 and given.shape[1] == 2:
        rows = np.unique([mdp.row_of(int(s), int(a)) for s, a in given])
    else:
        raise ValueError(
            f"allowed has shape {given.shape} and type {given.dtype}; give ({mdp.num_states}, "
            f"{mdp.num_actions}) booleans or a list of (state, action) pairs."
        )
    left = np.bincount(mdp.row_state[rows], minlength=mdp.num_states)
    bad = np.flatnonzero(left == 0)
    if len(bad):
        raise ValueError(
            f"allowed leaves no available action in state {mdp.state_name(bad[0])} ({len(bad)} "
            "such states); every state needs one."
        )
    return rows


def affordable(mdp: MDP, rows: Ints) -> int:
    """Return how many draws of some rows fit into `BATCH_VALUES`; at least 16."""
    return max(16, BATCH_VALUES // (int(np.diff(mdp.row_start)[rows].sum()) + len(rows)))


def draw_models(
    posterior: Posterior,
    mdp: MDP,
    rewards: Rewards,
    rows: Ints,
    n: int,
    rng: np.random.Generator,
) -> Models:
    """Draw ``n`` models, restricted to some rows, and keep them in memory."""
    layout = RowLayout.of(mdp)
    entries = layout.entries_of(rows)
    whole = len(rows) == mdp.num_rows
    draws = np.empty((n, len(entries)))
    starts = np.concatenate(([0], np.cumsum(np.diff(mdp.row_start)[rows])))
    gains = np.empty((n, len(rows)))
    key = stream_key(rng.spawn(1)[0])
    done = 0
    for block in posterior.stream(n, rng, None if whole else rows):
        reward = rewards.block(key, done, done + len(block), entries)
        store = partial(_store, block, reward, starts, done, draws, gains)
        shared(len(block), store, operations=block.size, least=1)
        done += len(block)
    own = restricted(mdp, rows, posterior.mean()[entries], rewards.of(entries))
    if until_the_end(own):  # terminal states lead nowhere, so that systems can be solved
        draws[:, ends_of(own)[own.row_state[own.entry_row]]] = 0.0
    return Models(
        mdp=own,
        evaluator=choose_evaluator(own),
        rows=rows,
        draws=draws,
        gains=gains,
        uncertain_rows=uncertain_rows(mdp, rows, rewards.uncertain[entries]),
    )


def _store(
    block: Floats, reward: Floats, starts: Ints, done: int, draws: Floats, gains: Floats,
    begin: int, end: int,
) -> None:  # fmt: skip
    """Store some draws of a block, whose first is draw number ``done``, with their rewards."""
    kernels.keep_draws(block, reward, starts, begin, end, done, draws, gains)


def uncertain_rows(mdp: MDP, rows: Ints, rewards: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows have several successors or an uncertain reward (``rewards``, ``(E',)``)."""
    lengths = np.diff(mdp.row_start)[rows]
    starts = np.cumsum(lengths) - lengths
    either: NDArray[np.bool_] = np.logical_or.reduceat(rewards, starts) | (lengths > 1)
    return either


def restricted(mdp: MDP, rows: Ints, probability: Floats, rewards: Rewards) -> MDP:
    """Return the model restricted to some rows, with these probabilities and rewards per entry."""
    lengths = np.diff(mdp.row_start)[rows]
    return MDP(
        state_start=np.searchsorted(mdp.row_state[rows], np.arange(mdp.num_states + 1)),
        row_action=mdp.row_action[rows],
        row_start=np.concatenate(([0], np.cumsum(lengths))),
        successor=mdp.successor[RowLayout.of(mdp).entries_of(rows)],
        probability=probability,
        reward=rewards.fixed,
        discount=mdp.discount,
        initial=mdp.initial,
        num_actions=mdp.num_actions,
        reward_per_entry=True,
        state_labels=mdp.state_labels,
        action_labels=mdp.action_labels,
        horizon=mdp.horizon,
        final_reward=rewards.final,
    )


def children(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """Return ``n`` independent generators for the parts of a job."""
    return check_generator(rng).spawn(n)


def choosing_rng(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator for choosing that cannot be obtained by spawning.

    Someone may pass the same seed for choosing and for certifying: children of equal generators are
    equal, and the certificate would rest on the draws that chose its policy.
    """
    return np.random.default_rng([CHOOSING, *map(int, rng.integers(0, 2**63, size=4))])


_CHOSEN_ON: WeakSet[Posterior] = WeakSet()
"""Posteriors of finitely many draws on which a policy has been chosen."""


def mark_chosen_on(*posteriors: Posterior) -> None:
    """Remember that a policy was chosen on these posteriors, if they have finitely many draws."""
    for posterior in posteriors:
        if posterior.num_draws is not None:
            with suppress(TypeError):  # a user's posterior without weak references
                _CHOSEN_ON.add(posterior)


def has_chosen(posterior: Posterior) -> bool:
    """Return whether a policy was chosen on this posterior's draws, and it has no others."""
    try:
        return posterior in _CHOSEN_ON
    except TypeError:
        return False


def split_draws(
    posterior: Posterior, mdp: MDP, rng: np.random.Generator
) -> tuple[Posterior, Posterior]:
    """Return two posteriors without a common draw: one to choose on, one to certify with.

    A posterior with unlimited draws serves as both; one of finitely many draws is cut in half.
    """
    if posterior.num_draws is None:
        return posterior, posterior
    if posterior.num_draws < 2:
        raise ValueError(
            f"this posterior has {posterior.num_draws} independent draw(s); choosing and "
            "certifying need draws of their own. Run the sampler longer."
        )
    if not isinstance(posterior, PosteriorDraws):
        draws = posterior.sample(posterior.num_draws, rng)
        counts, whole = posterior.counts, posterior.identity
        posterior = PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True, counts=counts)
        posterior = replace(posterior, origin=whole)
    return posterior.split(posterior.num_draws // 2, rng)


def full_systems(batch: Models, choice: Ints, first: int, last: int) -> tuple[Floats, Floats]:
    """Return ``I - discount P`` and expected rewards of one row per state, draws ``first:last``."""
    size = batch.mdp.num_states
    matrices, values = np.empty((last - first, size, size)), np.empty((last - first, size))
    kernels.write_systems(*batch.models, choice, first, matrices, values)
    return matrices, values


def policy_values(
    batch: Models, choice: Ints, start: Floats | None = None, tolerance: float | None = None
) -> tuple[Floats, Floats]:
    """Return values ``(n, S)`` and returns ``(n,)`` of one row per state in every draw.

    Large sparse models are solved iteratively from ``start``, or from the value in the mean model,
    up to ``tolerance`` (None: a share of the largest value); others are solved directly.
    """
    if tolerance is None:
        largest = float(np.abs(batch.gains).max()) * counted_steps(batch.mdp)
        tolerance = SWEPT_TOLERANCE * max(largest, 1e-300)
    if worth_sharing(batch):
        found = by_workers(policy_values, batch, choice, start, tolerance)
        return np.concatenate([v for v, _ in found]), np.concatenate([r for _, r in found])
    states = batch.mdp.num_states
    returns = np.empty(batch.size)
    if start is not None:
        values = start.copy()
    elif batch.evaluator.full or batch.size == 1:
        values = np.zeros((batch.size, states))
    else:
        values = np.tile(policy_values(batch.mean, choice)[0], (batch.size, 1))

    def solve(begin: int, end: int) -> None:
        for first, last in chunks(begin, end, states):
            matrices, found = full_systems(batch, choice, first, last)
            solve_dense(matrices, found)
            values[first:last] = found
            kernels.weigh(found, batch.initial, returns[first:last])

    def sweep(begin: int, end: int) -> None:
        kernels.sparse_values(
            *batch.models, batch.initial, choice, begin, end, tolerance, MAX_SWEEPS,
            batch.evaluator.system(_entries(batch, choice)), values, returns,
        )  # fmt: skip

    _shared(batch, solve, sweep)
    return values, returns


def policy_visits(batch: Models, choice: Ints, start: Floats | None = None) -> Floats:
    """Return discounted visits ``(n, S)`` of one row per state in every draw."""
    if worth_sharing(batch):
        return np.concatenate(by_workers(policy_visits, batch, choice, start))
    states = batch.mdp.num_states
    if start is not None:
        visits = start.copy()
    elif batch.evaluator.full or batch.size == 1:
        visits = np.tile(batch.initial * counted_steps(batch.mdp), (batch.size, 1))
    else:
        visits = np.tile(policy_visits(batch.mean, choice), (batch.size, 1))
    goal = VISITS_SHARE / states

    def solve(begin: int, end: int) -> None:
        for first, last in chunks(begin, end, states):
            matrices, _ = full_systems(batch, choice, first, last)
            visits[first:last] = batch.initial
            solve_dense(np.ascontiguousarray(matrices.transpose(0, 2, 1)), visits[first:last])

    def sweep(begin: int, end: int) -> None:
        kernels.sparse_visits(
            *batch.models, batch.initial, choice, begin, end, goal, MAX_SWEEPS,
            batch.evaluator.system(_entries(batch, choice)), visits,
        )  # fmt: skip

    _shared(batch, solve, sweep)
    return visits


def _shared(batch: Models, solve: OnDraws, sweep: OnDraws) -> None:
    """Share the draws among threads: full matrices are solved directly, others iteratively."""
    if batch.evaluator.full:
        shared(batch.size, solve, operations=batch.evaluation_work)
    else:
        shared(batch.size, sweep, operations=batch.evaluation_work, least=1)
    count(OPERATION * batch.evaluation_work)


def _entries(batch: Models, choice: Ints) -> int:
    return int(np.diff(batch.mdp.row_start)[choice].sum())


def percentile(returns: Floats, rank: int) -> float:
    """Return the ``rank``-th smallest return."""
    return float(np.partition(returns, rank - 1)[rank - 1])
