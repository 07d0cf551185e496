"""Certify a policy."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._cluster_argument import on_cluster
from surefoot._findings import Finding
from surefoot._order_statistics import lower_rank, marginal_rank
from surefoot._work import begin, expect
from surefoot.certificates import draw_plan, provenance
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.costs import as_rewards
from surefoot.certificates.limit import UpperBound, bound_of_one, upper_bound
from surefoot.certificates.models import allowed_rows, children, has_chosen, restricted
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy, as_given, check_policy
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import RowLayout, SomeRows
from surefoot.solvers.evaluation.engines import Engine
from surefoot.solvers.evaluation.returns import policy_returns, usual_tolerance
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of
from surefoot.solvers.gpu.choice import OnDevice, choose_engine
from surefoot.solvers.solver import counted, evaluate
from surefoot.solvers.unseen import lead_to_best


@on_cluster
def certify(
    policy: ArrayLike,
    posterior: Posterior,
    mdp: MDP,
    *,
    delta: float = 0.05,
    eta: float = 0.001,
    draws: int | None = None,
    rng: np.random.Generator,
    objective: str = "max",
    robust_return: float | None = None,
    upper: bool = True,
    limit_effort: float = 1.0,
    allowed: ArrayLike | None = None,
    horizon: int | None = None,
    final_reward: ArrayLike | None = None,
    cluster: str | None = None,  # noqa: ARG001
    device: str = "auto",
) -> Certificate:
    """Bound a fixed policy's return from below, and what any policy could be promised from above.

    The policy must have been chosen without the draws used here: pass a generator that played no
    part in choosing it. A posterior of finitely many draws is no longer fresh after `optimize`:
    certify with the ``holdout`` of its result (otherwise the certificate carries a warning).

    Parameters
    ----------
    policy
        ``(S,)`` action ids or ``(S, A)`` probabilities; with a horizon also a `StepPolicy` or
        ``(horizon, S)`` action ids.
    posterior
        What the data say about the transition probabilities.
    mdp
        The model with the same rows: rewards, discount, initial distribution.
    delta
        Failure probability of the promise.
    eta
        Failure probability of the Monte Carlo behind each of the two bounds.
    draws
        Posterior draws for each bound; None chooses them from a pilot.
    rng
        Source of the draws.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    robust_return
        The robust value to be shown beside the promise, if there is one.
    upper
        Whether to compute the limit: a bound on what any policy could be promised.
    limit_effort
        How much work goes into the limit, where ``draws`` is None: 4 takes four times as many draws
        as usual, which halves what the Monte Carlo adds to it.
    allowed
        ``(S, A)`` booleans or (state, action) pairs. The policy must use only these, and the limit
        covers only policies that do. None allows all.
    horizon, final_reward
        As for `solve`: count at most this many steps.
    cluster
        Where the work is done: None in this process, ``"local"`` by workers on this machine,
        ``"auto"`` or an address on a Ray cluster (extra ``cluster``). The answer is the same, bit
        for bit.
    device
        ``"cpu"``, ``"gpu"``, or ``"auto"``: a GPU if there is one and it clearly pays. Draws on a
        GPU come from another random stream, which the certificate names.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import DirichletPosterior, certify, machine_replacement, solve
    >>> domain = machine_replacement()
    >>> counts = domain.simulate(20, np.random.default_rng(1))
    >>> posterior = DirichletPosterior(counts)
    >>> policy = solve(counts.to_mdp(discount=0.95, prior=1.0)).policy
    >>> mdp = counts.to_mdp(discount=0.95, prior=1.0)
    >>> certificate = certify(policy, posterior, mdp, draws=2000, rng=np.random.default_rng(2))
    >>> certificate.lower_bound < certificate.upper_bound
    True
    """
    delta, eta = check_levels(delta, eta)
    limit_effort = check_effort(limit_effort)
    provenance.check_objective(posterior, objective)
    mdp = counted(mdp, horizon, final_reward)
    posterior.check_matches(mdp)
    rows = check_policy(mdp, policy)
    rewards = rewards_of(mdp, posterior, objective=objective)
    pilot_rng, lower_rng, upper_rng = children(rng, 3)
    part = _part(posterior, mdp, rewards, rows, allowed)
    engine, on_device = choose_engine(device, mdp, posterior)
    near = None
    begin("promise")
    if draws is not None:
        n = m = draw_plan.check_draws(posterior, draws, delta, eta)
    else:
        levels = delta, eta, limit_effort
        n, m, near = _planned(posterior, mdp, rows, rewards, levels, pilot_rng, part, engine)
    if not isinstance(engine, OnDevice):  # a device does not count its work
        each = draw_plan.policy_time(mdp, rows)
        expect("promise", n * each)
        sought = upper and part.mdp.num_rows > mdp.num_states
        expect("limit", m * (each + draw_plan.best_time(part.mdp)) if sought else 0.0)
    seen_again = deepcopy(lower_rng)
    returns = policy_returns(
        posterior, mdp, rows, n, lower_rng, rewards=rewards, tolerance=near, engine=engine
    )
    ordered = np.sort(returns.lower)
    bound = float(ordered[lower_rank(n, delta, eta) - 1])
    marginal = marginal_rank(n, delta)
    begin("limit")
    other = UpperBound(value=np.inf, scope="no policy", draws=0, policies=0)
    if upper and part.mdp.num_rows == mdp.num_states:
        other = bound_of_one(returns, delta=delta, eta=eta)
    elif upper:
        other = upper_bound(
            part.posterior, part.mdp, part.rewards, delta=delta, eta=eta, draws=m, rng=upper_rng,
            start=part.start, tolerance=near, randomised=len(rows.rows) > mdp.num_states,
            engine=engine,
        )  # fmt: skip
        best = _at_best(mdp, posterior, rewards, objective)
        if best is not None:
            benign = policy_returns(
                posterior, best[0], rows, m, seen_again, rewards=best[1], tolerance=near,
                engine=engine,
            )  # fmt: skip
            own = bound_of_one(benign, delta=delta, eta=eta)
            other = replace(other, value=max(other.value, own.value))
    found = (*provenance.findings_of(posterior, mdp), *on_device)
    if has_chosen(posterior):
        found = (*found, Finding.of("draws_reused"))
    nominal = evaluate(as_rewards(mdp, objective), policy, tolerance=usual_tolerance(mdp))
    made = Certificate(
        lower_bound=bound,
        upper_bound=max(other.value, bound),
        marginal_bound=float(ordered[marginal - 1]) if marginal >= 1 else None,
        scope=other.scope + part.added,
        delta=delta,
        eta=eta,
        draws=n,
        other_draws=other.draws,
        seed=provenance.seed_of(rng),
        basis="bayesian",
        prior=provenance.posterior_words(posterior),
        objective="max",
        policy=as_given(mdp, policy),
        nominal_return=nominal.return_lower,
        robust_return=None,
        numerical_error=returns.numerical_error,
        data_fingerprint=provenance.posterior_fingerprint(posterior),
        model_fingerprint=provenance.model_fingerprint(mdp),
        findings=found,
        versions=provenance.versions(),
        stream=engine.stream if posterior.num_draws is None else None,
        horizon=mdp.horizon,
        discount=mdp.discount,
        returns=returns.lower,
    )
    return replace(made if objective == "max" else made.mirrored(), robust_return=robust_return)


def check_levels(delta: float, eta: float) -> tuple[float, float]:
    """Return delta in (0, 1/2] and eta in (0, 1/2]."""
    for name, value in (("delta", delta), ("eta", eta)):
        if not (isinstance(value, (float, int, np.number)) and 0 < value <= 0.5):
            raise ValueError(f"{name}={value!r}; it must be above 0 and at most 1/2.")
    return float(delta), float(eta)


def check_effort(effort: float) -> float:
    """Return how much work goes into the limit, above 0."""
    if not (isinstance(effort, (float, int, np.number)) and 0 < effort < np.inf):
        raise ValueError(f"limit_effort={effort!r}; it must be a number above 0 (usually 1).")
    return float(effort)


def _at_best(
    mdp: MDP, posterior: Posterior, rewards: Rewards, objective: str
) -> tuple[MDP, Rewards] | None:
    """Return the model without its pessimism; None if it has none.

    The promise takes the unseen at its worst, and mean rewards within a range by a distribution
    that leans low. A limit that did the same could lie below what somebody who knows more could
    promise for the same policy. So the limit takes the unseen at its best, and such mean rewards as
    they were seen; where none were seen, at the highest mean reward.
    """
    counts = posterior.counts
    if counts is None:
        return None
    leans = counts.reward_model == "bounded" and bool(rewards.uncertain.any())
    if counts.unseen is None and not leans:
        return None
    own = as_rewards(mdp, objective)
    best = own if counts.unseen is None else lead_to_best(own, counts)
    paid, uncertain = best.entry_reward, rewards.uncertain & (best.entry_reward == own.entry_reward)
    if leans:
        known = (counts.count > 0) | counts.is_terminal[mdp.entry_state]
        paid = np.where(known, paid, np.maximum(paid, own.entry_reward.max()))
        uncertain = np.zeros_like(uncertain)
    return best, replace(rewards, fixed=paid, uncertain=uncertain, final=best.final_reward)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """The part of the model that policies may use, which the limit covers.

    ``start`` is one row per state to begin with, ``added`` the words that the scope needs.
    """

    posterior: Posterior
    mdp: MDP
    rewards: Rewards
    start: NDArray[np.int64]
    added: str


def _part(
    posterior: Posterior, mdp: MDP, rewards: Rewards, policy: RowPolicy, allowed: ArrayLike | None
) -> _Part:
    played = policy.rows.astype(np.int64)
    first = played[policy.start.astype(np.int64)[:-1]]
    rows = allowed_rows(mdp, allowed)
    if len(rows) == mdp.num_rows:
        return _Part(posterior=posterior, mdp=mdp, rewards=rewards, start=first, added="")
    wrong = np.setdiff1d(played, rows)
    if len(wrong):
        name = mdp.row_name(wrong[0])
        raise ValueError(f"the policy uses {name}, which is not allowed ({len(wrong)} such pairs).")
    some = SomeRows(posterior, RowLayout.of(mdp), rows)
    own = rewards.of(some.entries)
    return _Part(
        posterior=some,
        mdp=restricted(mdp, rows, mdp.probability[some.entries], own),
        rewards=own,
        start=np.searchsorted(rows, first),
        added=" among those allowed",
    )


def _planned(
    posterior: Posterior, mdp: MDP, rows: RowPolicy, rewards: Rewards,
    levels: tuple[float, float, float], rng: np.random.Generator, part: _Part, engine: Engine,
) -> tuple[int, int, float | None]:  # fmt: skip
    """Choose the number of draws of both bounds, and their precision, from a pilot.

    A posterior of finitely many draws uses all of them, without a pilot. ``levels`` are delta, eta
    and the effort for the limit.
    """
    delta, eta, effort = levels
    if posterior.num_draws is not None:
        n = draw_plan.check_draws(posterior, posterior.num_draws, delta, eta)
        return n, n, None
    trial = replace(engine, checked=0) if isinstance(engine, OnDevice) else engine
    if isinstance(engine, OnDevice):
        played = np.diff(mdp.row_start)[rows.rows.astype(np.int64)].sum()
        work, best = (draw_plan.device_work(int(n)) for n in (played, part.mdp.num_entries))
    else:
        work = draw_plan.policy_work(mdp, rewards, rows)
        best = draw_plan.best_work(part.mdp, part.rewards)
    wanted = draw_plan.pilot_draws(work)
    pilot = policy_returns(
        posterior, mdp, rows, wanted, rng, rewards=rewards, tolerance=usual_tolerance(mdp),
        engine=trial,
    ).lower  # fmt: skip
    n = draw_plan.plan_draws(pilot, delta, eta, work)
    m = draw_plan.plan_draws(
        pilot, delta, eta, best, effort=effort, most=draw_plan.LIMIT_WORK,
        times=draw_plan.LIMIT_TIMES,
    )  # fmt: skip
    return n, m, draw_plan.precision(pilot)
