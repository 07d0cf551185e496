"""The search for a policy over a horizon: by step, or one rule for all steps.

As without a horizon, candidates made by several methods are compared by their empirical percentile
on a batch of draws. Policies by step come from backward induction: nominal, robust, VaR, and
coordinate ascent, which chooses at every step what is best for a weighted mixture of the drawn
models (Steimle et al. 2021; Su, Petrik 2023).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.certificates import step_kernels as kernels
from surefoot.certificates.candidates import (
    ROBUST_SCALES,
    VAR_DRAWS,
    VAR_LEVELS,
    VAR_VALUES,
    climb_shares,
    mean_distances,
)
from surefoot.certificates.models import Floats, Ints, Models, Stopped, percentile
from surefoot.certificates.row_scores import best_rows, summed_scores
from surefoot.certificates.var_operator import sweep
from surefoot.model.mdp import MDP
from surefoot.model.policies import Changes, check_policy
from surefoot.model.step_policy import StepPolicy
from surefoot.solvers.backward import Ranges
from surefoot.solvers.evaluation.evaluator import choose_evaluator
from surefoot.solvers.evaluation.threads import shared
from surefoot.solvers.solver import solve
from surefoot.solvers.steps import largest_value

CLIMB_WORK = 2e9
"""The most operations of one round of coordinate ascent; larger batches are thinned for it."""
CLIMB_VALUES = 2**24
"""The most visits that a round holds in memory (128 MB)."""
FEWEST = 32
"""The fewest draws that a round uses."""
ROUNDS = 8
ENDLESS = "looking as far ahead without end"
"""Part of the name of a candidate for one rule for all steps (see `endless`)."""
TRIAL_ROUNDS = 30

Policy = Ints | StepPolicy
"""``(S,)`` action ids of one rule for all steps, or a policy by step."""


def same(policy: Policy) -> bytes:
    """Return a key that is equal for equal policies only."""
    if isinstance(policy, StepPolicy):
        return policy.first_step.tobytes() + b"/" + policy.action.tobytes()
    return policy.tobytes()


def step_returns(batch: Models, policy: Policy) -> Floats:
    """Return ``(n,)`` returns of a policy in every draw."""
    mdp = batch.mdp
    start, rows, share, changes = check_policy(mdp, policy)
    horizon, size = mdp.horizon or 1, mdp.num_states
    if changes is None:
        changes = Changes(np.zeros(horizon + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
    plays = start.astype(np.int64), rows.astype(np.int64), share
    returns = np.empty(batch.size)

    def work(begin: int, end: int) -> None:
        kernels.batch_returns(
            *batch.models, batch.initial, horizon, _final(batch), *plays, *changes, begin, end,
            np.empty(len(share)), np.empty(size), np.empty(size), returns,
        )  # fmt: skip

    shared(batch.size, work, operations=batch.evaluation_work, least=1)
    return returns


def _final(batch: Models) -> Floats:
    final = batch.mdp.final_reward
    return np.zeros(batch.mdp.num_states) if final is None else np.array(final)


def proposals(
    batch: Models, delta: float, stopped: Stopped, *, stationary: bool
) -> Iterator[tuple[str, Policy]]:
    """Yield names and policies, the nominal one first; each is made when it is asked for."""
    model = endless(batch.mdp) if stationary else batch.mdp
    tolerance = 1e-6 * max(largest_value(batch.mdp), 1e-300)
    nominal: Policy = _policy(solve(model, tolerance=tolerance).policy)
    if stationary:
        ahead = nominal
        nominal = usual_rule(batch.mdp, solve(batch.mdp, tolerance=tolerance).policy)
        yield "nominal", nominal
        yield f"nominal, {ENDLESS}", ahead
    else:
        yield "nominal", nominal
    reach = mean_distances(batch)
    for scale in ROBUST_SCALES:
        if stopped():
            return
        ball = AmbiguitySet(mdp=model, norm="l1", budget=np.minimum(2.0, scale * reach))
        found = solve(model, ball, tolerance=100 * tolerance)
        yield f"robust, budget {scale:g} x mean distance", _policy(found.policy)
    if not stationary:
        yield from _var(batch, delta, stopped)
    if not can_climb(batch):
        return
    for share in climb_shares(batch, delta):
        if stopped():
            return
        which = f"worst {100 * share:.3g}% of draws" if share < 1.0 else "all draws"
        found_policy = climb(batch, nominal, delta, share, stopped, stationary=stationary)
        yield f"coordinate ascent, {which}", found_policy


def usual_rule(mdp: MDP, policy: Any) -> Ints:
    """Return one rule for all steps: in each state what a policy by step does most often there.

    In a model whose states include the step, it is the same policy.
    """
    if not isinstance(policy, StepPolicy):
        return np.asarray(policy, dtype=np.int64)
    visits, often = mdp.initial / mdp.initial.sum(), np.zeros(mdp.num_rows)
    for step in range(policy.horizon):
        played = np.zeros(mdp.num_rows)
        played[rows_at(mdp, policy, step)] = visits
        often += played
        visits = np.bincount(
            mdp.successor, played[mdp.entry_row] * mdp.probability, mdp.num_states
        ).astype(np.float64)
    often[rows_at(mdp, policy, 0)] += 1e-12  # states never reached take their action of step 0
    order = np.lexsort((-often, mdp.row_state))
    return mdp.row_action[order[mdp.state_start[:-1]]]


def can_climb(batch: Models) -> bool:
    """Return whether the visits of `FEWEST` draws at all steps fit in memory."""
    numbers = FEWEST * (batch.mdp.horizon or 1) * batch.mdp.num_states
    return numbers <= 4 * CLIMB_VALUES


def _policy(policy: object) -> Policy:
    return policy if isinstance(policy, StepPolicy) else np.asarray(policy, dtype=np.int64)


def endless(mdp: MDP) -> MDP:
    """Return the model without a horizon, discounted so that it looks about as far ahead.

    Its policies are the same at every step: starting points for one rule for all steps.
    """
    ahead = 1.0 - 1.0 / (mdp.horizon or 1)
    return replace(mdp, horizon=None, final_reward=None, discount=min(mdp.discount, ahead))


def _var(batch: Models, delta: float, stopped: Stopped) -> Iterator[tuple[str, Policy]]:
    """Yield policies from backward induction with the VaR operator, at a sequence of levels."""
    horizon = batch.mdp.horizon or 1
    some = max(VAR_DRAWS, VAR_VALUES // (batch.mdp.num_entries * horizon))
    if some < batch.size:
        batch = batch.part(slice(some))
    lowest = max(delta / batch.num_uncertain, 1.0 / batch.size)
    for level in np.geomspace(0.5, min(lowest, 0.5), VAR_LEVELS):
        ranks = np.full(batch.mdp.num_states, batch.rank(float(level)), dtype=np.int64)
        value, found = _final(batch), Ranges(batch.mdp, horizon)
        for step in reversed(range(horizon)):
            if stopped():
                return
            value, choice, _ = sweep(batch, ranks, value)
            found.note(step, choice)
        yield f"VaR, level {level:.3g}", found.policy()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Walk:
    """The result of a round of ascent: a policy, and what each row is worth over all steps."""

    policy: StepPolicy
    worth: Floats


def climb(
    batch: Models, policy: Policy, delta: float, share: float, stopped: Stopped, *, stationary: bool
) -> Policy:
    """Improve the mean return over the worst draws; return the policy of the best percentile."""
    rank = batch.rank(delta)
    count = max(1, min(batch.size, round(share * batch.size)))
    returns = step_returns(batch, policy)
    best, best_policy = percentile(returns, rank), policy
    seen = {same(policy)}
    for _ in range(ROUNDS):
        if stopped():
            break
        worst = np.sort(np.argsort(returns, kind="stable")[:count])
        walk = _ascend(batch.part(_thinned(batch, worst)), policy)
        policy = _greedy(batch, walk.worth, policy) if stationary else walk.policy
        if same(policy) in seen:
            break
        seen.add(same(policy))
        returns = step_returns(batch, policy)
        reached = percentile(returns, rank)
        if reached > best:
            best, best_policy = reached, policy
    return best_policy


def _thinned(batch: Models, worst: Ints) -> Ints:
    """Return as many of the worst draws as a round can afford, evenly spaced among them."""
    horizon = batch.mdp.horizon or 1
    by_work = CLIMB_WORK / (4.0 * horizon * batch.mdp.num_entries)
    by_room = CLIMB_VALUES / (horizon * batch.mdp.num_states)
    most = max(FEWEST, int(min(by_work, by_room)))
    if len(worst) <= most:
        return worst
    return worst[np.linspace(0, len(worst) - 1, most).astype(np.int64)]


def _ascend(batch: Models, policy: Policy) -> _Walk:
    """Choose at every step, the last one first, what is best for the mixture of the draws.

    The weight of a draw is how often it visits the state at that step under the present policy.
    """
    mdp = batch.mdp
    horizon = mdp.horizon or 1
    visits = _visits(batch, policy)
    values = np.tile(_final(batch), (batch.size, 1))
    image = np.empty_like(values)
    total = np.zeros(mdp.num_rows)
    found = Ranges(mdp, horizon)
    for step in reversed(range(horizon)):
        scores = _scores(batch, visits[step], values)
        total += scores
        now = rows_at(batch.mdp, policy, step)
        chosen = best_rows(batch, scores, now)
        found.note(step, chosen)
        # One rule for all steps keeps its own values; a policy by step uses the improved ones.
        played = chosen if isinstance(policy, StepPolicy) else now

        def work(
            begin: int, end: int, rows: Ints = played, v: Floats = values, out: Floats = image
        ) -> None:
            kernels.back_up(*batch.models, rows, v, begin, end, out)

        shared(batch.size, work, operations=2.0 * batch.draws.size, least=1)
        values, image = image, values
    return _Walk(policy=found.policy(), worth=total)


def rows_at(mdp: MDP, policy: Policy, step: int) -> Ints:
    """Return ``(S,)``: the rows that a policy plays at a step."""
    actions = policy.actions_at(step) if isinstance(policy, StepPolicy) else policy
    key = mdp.row_state * mdp.num_actions + mdp.row_action
    return np.searchsorted(key, np.arange(mdp.num_states) * mdp.num_actions + actions)


def _visits(batch: Models, policy: Policy) -> list[Floats]:
    """Return ``(n, S)`` discounted visits of each step."""
    draws, _, row_start, successor, discount = batch.models
    visits = [np.tile(batch.initial, (batch.size, 1))]
    for step in range((batch.mdp.horizon or 1) - 1):
        choice, after = rows_at(batch.mdp, policy, step), np.empty_like(visits[0])

        def work(begin: int, end: int, rows: Ints = choice, out: Floats = after) -> None:
            kernels.push_visits(
                draws, row_start, successor, discount, rows, begin, end, visits[-1], out
            )

        shared(batch.size, work, operations=2.0 * batch.draws.size, least=1)
        visits.append(after)
    return visits


def _scores(batch: Models, weight: Floats, values: Floats) -> Floats:
    """Return ``(R,)``: the weighted worth of each row, summed over the draws."""
    draws, gains, row_start, successor, discount = batch.models

    def add(begin: int, end: int, out: Floats) -> None:
        kernels.add_worth(
            draws, gains, batch.mdp.state_start, row_start, successor, discount, weight, values,
            begin, end, out,
        )  # fmt: skip

    return summed_scores(batch, add, operations=2.0 * batch.draws.size)


def _greedy(batch: Models, worth: Floats, policy: Policy) -> Ints:
    return batch.mdp.row_action[best_rows(batch, worth, rows_at(batch.mdp, policy, 0))]


def improve_rule(batch: Models, policy: Ints, delta: float, stopped: Stopped) -> Ints:
    """Change one rule for all steps where that helps most, until no tried change helps.

    Changes are ranked to first order on the worst draws; the best one, two, four and so on are
    evaluated together on all draws.
    """
    rank = batch.rank(delta)
    returns = step_returns(batch, policy)
    best = percentile(returns, rank)
    count = max(1, min(batch.size, round(2 * delta * batch.size)))
    for _ in range(TRIAL_ROUNDS):
        worst = np.sort(np.argsort(returns, kind="stable")[:count])
        worth = _ascend(batch.part(_thinned(batch, worst)), policy).worth
        now = rows_at(batch.mdp, policy, 0)
        found = None
        for rows in _trials(batch, worth, now):
            if stopped():
                return policy
            trial = policy.copy()
            trial[batch.mdp.row_state[rows]] = batch.mdp.row_action[rows]
            new = step_returns(batch, trial)
            reached = percentile(new, rank)
            if reached > best + 1e-10 * abs(best):
                best, found = reached, (trial, new)
        if found is None:
            break
        policy, returns = found
    return policy


def best_rule(mdp: MDP) -> Ints:
    """Return a good rule for all steps of a single model; it need not be the best."""
    gains = np.add.reduceat(mdp.probability * mdp.entry_reward, mdp.row_start[:-1])
    alone = Models(
        mdp=mdp, rows=np.arange(mdp.num_rows), draws=mdp.probability[None], gains=gains[None],
        uncertain_rows=mdp.uncertain_rows, evaluator=choose_evaluator(mdp),
    )  # fmt: skip
    tolerance = 1e-6 * max(largest_value(mdp), 1e-300)
    start = np.asarray(solve(endless(mdp), tolerance=tolerance).policy, dtype=np.int64)
    return improve_rule(alone, start, 0.5, lambda: False) if can_climb(alone) else start


def _trials(batch: Models, worth: Floats, now: Ints) -> list[Ints]:
    """Return sets of rows to play instead: the most promising changes, at most one per state."""
    others = worth.copy()
    others[now] = -np.inf
    by_worth = np.lexsort((np.arange(len(worth)), -others, batch.mdp.row_state))
    winner = by_worth[batch.mdp.state_start[:-1]]
    more = worth[winner] - worth[now]
    order = np.argsort(-more, kind="stable")
    order = order[winner[order] != now[order]]
    helpful = int((more[order] > 0).sum())
    sizes = {1, helpful, *(2**k for k in range(16) if 2**k < helpful)} - {0}
    trials = [winner[order[:size]] for size in sorted(sizes) if len(order)]
    return trials + [winner[order[k : k + 1]] for k in range(1, min(4, len(order)))]
