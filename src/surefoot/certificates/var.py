"""The VaR Bellman operator: a value function with a promise, tighter than with any norm ball.

``(Tv)_s = max_a VaR_{delta_s}[ P_{s,a}.(r + discount v) ]`` with the levels ``delta_s`` summing to
delta over the uncertain states (Lobo, Cousins, Zick, Petrik 2023). Policy and value come from one
batch of draws, the promise from another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot._arguments import check_choice, check_inside
from surefoot._display import Shown
from surefoot._order_statistics import lower_rank
from surefoot._rounding import lower_text, upper_text
from surefoot.certificates import var_kernels as kernels
from surefoot.certificates.models import (
    Floats,
    Ints,
    Models,
    affordable,
    allowed_rows,
    children,
    choosing_rng,
    draw_models,
    mark_chosen_on,
    split_draws,
    uncertain_rows,
)
from surefoot.certificates.provenance import check_objective
from surefoot.certificates.var_levels import greedy_levels
from surefoot.certificates.var_operator import (
    FixedPoint,
    equal_levels,
    fixed_point,
    strict_draws,
    strict_ranks,
)
from surefoot.model.mdp import MDP
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.return_kernels import EPSILON, rounding
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of
from surefoot.solvers.evaluation.threads import shared
from surefoot.solvers.solution import Status

SPARE, SPARE_PROMISE = 4, 16
"""If the caller gives no number: draws to solve on and to promise on, in multiples of the fewest.

The promise loses the largest shortfall of a state's order statistic below its value, divided by
``1 - discount``. With more draws than the value had, its strict ranks are higher, and it loses
less.
"""
ALLOCATIONS = ("equal", "greedy")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VarSolution(Shown):
    """A policy, its VaR value, and a promise from draws that were used for neither.

    Attributes
    ----------
    policy
        ``(S,)`` action ids.
    value
        ``(S,)``; the fixed point on the first batch: not a promise.
    promise
        With probability ``1 - delta`` the policy's return is at least (for costs: at most) this,
        up to a Monte-Carlo failure of probability eta.
    levels
        ``(S,)``; the share of delta given to each state.
    draws, promise_draws
        Posterior draws behind the value and behind the promise.
    error_bound
        How far ``value`` may be from the fixed point on the first batch.
    status
        How the iteration ended; the promise holds whatever it is.
    note
        What was not done as requested, or "".

    Examples
    --------
    >>> from surefoot import DirichletPosterior, riverswim, var_solve
    >>> counts = riverswim().simulate(500, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.9, prior=1.0), DirichletPosterior(counts)
    >>> found = var_solve(posterior, mdp, delta=0.2, rng=np.random.default_rng(1))
    >>> found.policy.tolist(), found.promise < float(mdp.initial @ found.value)
    ([1, 1, 1, 1, 1, 1], True)
    """

    policy: Ints
    value: Floats
    promise: float
    levels: Floats
    delta: float
    eta: float
    objective: str
    draws: int
    promise_draws: int
    iterations: int
    error_bound: float
    status: Status
    note: str

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("posterior draws", f"{self.draws:,} for the value, {self.promise_draws:,} fresh ones"),
            ("error bound", f"{self.error_bound:.1e}, after {self.iterations:,} sweeps"),
            ("status", self.status.message),
        ]

    def _remarks(self) -> tuple[str, ...]:
        return (self.note,) if self.note else ()

    def __repr__(self) -> str:
        bound = (lower_text if self.objective == "max" else upper_text)(self.promise)
        return (
            f"VarSolution(promise {bound}, delta {self.delta:g}, eta {self.eta:g}, "
            f"{self.draws:,} + {self.promise_draws:,} draws, {self.status.name})"
        )


def var_solve(
    posterior: Posterior,
    mdp: MDP,
    *,
    delta: float = 0.05,
    rng: np.random.Generator,
    eta: float = 0.001,
    draws: int | None = None,
    promise_draws: int | None = None,
    allocate: str = "equal",
    allowed: ArrayLike | None = None,
    objective: str = "max",
    tolerance: float | None = None,
    max_iterations: int = 10_000,
) -> VarSolution:
    """Solve the VaR Bellman equation on posterior draws, and promise its policy's return.

    Parameters
    ----------
    posterior, mdp
        What the data say, and the model with the same rows.
    delta, eta
        Failure probability of the promise, and of the Monte Carlo behind it.
    rng
        Source of the draws.
    draws
        Draws to solve on; None takes several times as many as strict ranks need, as far as memory
        allows (``note`` says if that is too few).
    promise_draws
        Draws for the promise; None takes more than for solving. Too few are refused.
    allocate
        ``"equal"`` gives every uncertain state the same share of delta; ``"greedy"`` gives more to
        the states where that raises the value most, judged on the first batch.
    allowed
        ``(S, A)`` booleans or (state, action) pairs; None allows every action.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    tolerance, max_iterations
        When to stop: the wanted error in units of value, and the most sweeps.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> from surefoot.posterior.dirichlet import DirichletPosterior
    >>> counts = riverswim().simulate(500, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> solution = var_solve(posterior, mdp, delta=0.05, rng=np.random.default_rng(1))
    >>> solution.policy.tolist(), solution.promise > 20_000
    ([1, 1, 1, 1, 1, 1], True)
    """
    check_objective(posterior, objective)
    posterior.check_matches(mdp)
    if mdp.horizon is not None or mdp.discount == 1.0:
        raise ValueError(
            "var_solve needs a model without a horizon and a discount below 1; with a horizon use "
            "optimize, which has candidates of the VaR operator."
        )
    check_choice("allocate", allocate, ALLOCATIONS)
    for name, value in (("delta", delta), ("eta", eta)):
        check_inside(name, value)
    rewards = rewards_of(mdp, posterior, objective=objective)
    split_rng, first_rng, fresh_rng = children(rng, 3)
    choosing, promising = split_draws(posterior, mdp, split_rng)
    mark_chosen_on(posterior, choosing)
    rows = allowed_rows(mdp, allowed)
    n, note = _draws_to_solve_on(choosing, mdp, rewards, rows, delta, eta, draws)
    batch = draw_models(choosing, mdp, rewards, rows, n, choosing_rng(first_rng))
    fewest = strict_draws(delta, eta, batch.num_uncertain)
    m = _draws_to_promise_on(promising, promise_draws, fewest)
    levels = equal_levels(batch, delta)
    scale = float(np.abs(batch.gains).max()) / (1.0 - mdp.discount)
    near = tolerance if tolerance is not None else 1e-7 * max(scale, 1e-300)
    point = fixed_point(batch, strict_ranks(batch, levels, eta), None, near, max_iterations)
    if allocate == "greedy":
        levels, point = greedy_levels(batch, delta, eta, point, near, max_iterations, m)
    promise = _promise(promising, mdp, rewards, batch, point, levels, eta, m, fresh_rng)
    sign = 1.0 if objective == "max" else -1.0
    return VarSolution(
        policy=batch.mdp.row_action[point.choice],
        value=sign * point.v,
        promise=sign * promise,
        levels=levels,
        delta=delta,
        eta=eta,
        objective=objective,
        draws=n,
        promise_draws=m,
        iterations=point.sweeps,
        error_bound=point.error_bound,
        status=Status.CONVERGED if point.converged else Status.ITERATION_LIMIT,
        note=note,
    )


def _draws_to_solve_on(
    posterior: Posterior, mdp: MDP, rewards: Rewards, rows: Ints, delta: float, eta: float,
    wanted: int | None,
) -> tuple[int, str]:  # fmt: skip
    """Return how many draws to keep, and a note if that is fewer than requested or needed."""
    entries = RowLayout.of(mdp).entries_of(rows)
    uncertain = uncertain_rows(mdp, rows, rewards.uncertain[entries])
    fewest = strict_draws(delta, eta, max(1, len(np.unique(mdp.row_state[rows[uncertain]]))))
    n = SPARE * fewest if wanted is None else wanted
    limits = [(affordable(mdp, rows), "fit in memory")]
    if posterior.num_draws is not None:
        limits.append((posterior.num_draws, "of the posterior's draws are available for choosing"))
    limit, reason = min(limits)
    if n > limit and (wanted is not None or fewest > limit):
        return limit, (
            f"solved on {limit} draws ({n} asked for): no more {reason}; the promise has draws of "
            "its own."
        )
    return min(n, limit), ""


def _draws_to_promise_on(posterior: Posterior, wanted: int | None, fewest: int) -> int:
    """Return how many draws the promise uses; if too few, raise an error with the number needed."""
    n = SPARE_PROMISE * fewest if wanted is None else wanted
    if posterior.num_draws is not None:
        n = posterior.num_draws if wanted is None else min(n, posterior.num_draws)
    if not n >= fewest:
        raise ValueError(
            f"the VaR promise needs at least {fewest} draws of its own, got {n}. Draw more, accept "
            "a larger delta, or certify the policy directly."
        )
    return int(n)


def _promise(
    posterior: Posterior, mdp: MDP, rewards: Rewards, batch: Models, point: FixedPoint,
    levels: Floats, eta: float, n: int, rng: np.random.Generator,
) -> float:  # fmt: skip
    """Return ``initial.v + min_s(q_s - v_s)/(1 - discount)`` minus rounding, on fresh draws.

    ``q_s`` is the strict lower order statistic of ``P_{s,pi(s)}.(r + discount v)``. All of them
    hold together with probability ``1 - delta``; then ``L_pi v >= v + c`` with
    ``c = min_s(q_s - v_s)``, and the policy's value is at least ``v + c/(1 - discount)``.
    """
    rows = batch.rows[point.choice]
    entries = RowLayout.of(mdp).entries_of(rows)
    lengths = np.diff(mdp.row_start)[rows]
    row_start = np.concatenate(([0], np.cumsum(lengths)))
    certain = ~batch.uncertain_rows[point.choice]
    ranks = np.array(
        [1 if sure else lower_rank(n, float(level), eta / batch.num_uncertain)
         for sure, level in zip(certain, levels, strict=True)], dtype=np.int64,
    )  # fmt: skip
    if ranks.min() < 1:
        raise ValueError(f"{n} draws are too few for the smallest level {levels.min():.3g}.")
    smallest = np.full((len(rows), int(ranks.max())), np.inf)
    successor = mdp.successor[entries].astype(np.int64)
    largest_reward = 0.0
    for block, reward in Draws.take(posterior, mdp, rewards, n, rng).blocks(rows, entries):
        largest_reward = max(largest_reward, float(np.abs(reward).max()))

        def work(begin: int, end: int, d: Floats = block, r: Floats = reward) -> None:
            kernels.keep_smallest(
                d, r, row_start, successor, mdp.discount, point.v, ranks, begin, end, smallest
            )

        shared(len(rows), work, operations=2 * block.size, least=16)
    largest = float(np.abs(point.v).max())
    allowance = float(rounding(int(lengths.max()), largest_reward + mdp.discount * largest))
    change = float((smallest[:, 0] - point.v).min()) - allowance
    change /= 1.0 - mdp.discount
    mean = float(batch.initial @ point.v)
    slack = 4 * (len(rows) + 4) * EPSILON * (largest + abs(change))
    promise = mean + change - slack
    return promise if np.isfinite(promise) else -np.inf
