"""What past decisions in the log earned, and how much better the policy is."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot._order_statistics import draws_needed, lower_rank
from surefoot._work import begin
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.certificates import draw_plan
from surefoot.certificates.behaviour import earned, gain, share_delta
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.certification import certify
from surefoot.certificates.evidence import Behaviour, Curse, Earned, Gain, Interval
from surefoot.certificates.frequentist import at_reward_ends
from surefoot.certificates.sentences import percent
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.pipeline.first_state import first_state_doubt
from surefoot.pipeline.model import Model, place
from surefoot.pipeline.parts import LogParts
from surefoot.pipeline.reward_ends import reward_ends
from surefoot.posterior.protocol import at_most
from surefoot.solvers.evaluation.returns import policy_returns, usual_tolerance
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import counted_steps, until_the_end

MODEL_DRAWS, LEAST_DRAWS, WORK = 400, 100, 2e9
"""The most and the fewest draws for what behaviour earns by the model, and the operations they may
cost (a second or two): behaviour plays all rows, and in large models draws differ little."""
PATH_SWEEPS = 100_000

Floats = NDArray[np.float64]


def return_limits(model: Model) -> tuple[float, float]:
    """Return the least and the most that a path of transitions of the log can earn.

    With a declared range every transition may pay the lowest or the highest reward of the range;
    without one, the lowest or the highest reward seen under its action. Rows that `min_visits`
    keeps from the policy are included, because the log's own decisions took them.
    """
    counts = model.placed
    if model.settings.min_visits > 0:
        counts = place(replace(model.settings, min_visits=0), model.counts)
    low, high = reward_ends(counts)
    known = np.ones(counts.num_entries, dtype=np.bool_)
    if counts.unseen is not None:
        known = (counts.successor != counts.unseen) & (counts.entry_state != counts.unseen)
    final = model.mdp.final_reward
    end = np.zeros(counts.num_states) if final is None else final[: counts.num_states]
    return -_best_path(-low, -end, known, counts, model.mdp), _best_path(
        high, end, known, counts, model.mdp
    )


def _best_path(
    reward: Floats, final: Floats, known: NDArray[np.bool_], counts: Counts, mdp: MDP
) -> float:
    """Return the most that a path can earn from any state, rounded up.

    With a horizon the path may have fewer steps, like the rest of a cut episode.
    """
    scale, discount = float(np.abs(reward).max()), mdp.discount
    value, most = np.array(final), float(final.max())
    own = np.flatnonzero(known)
    state, successor = counts.entry_state[own], counts.successor[own]
    known_reward = reward[own]
    left, first = np.unique(state, return_index=True)  # entries are sorted by state
    change = scale
    for _ in range(_path_sweeps(mdp)):
        reached = discount * value
        reached[left] = np.maximum.reduceat(known_reward + discount * value[successor], first)
        change = float(np.abs(reached - value).max())
        value = reached
        most = max(most, float(value.max()))
        if change <= 1e-9 * scale and mdp.horizon is None:
            break
    if mdp.horizon is not None:
        return most + 1e-12 * (scale * counted_steps(mdp) + float(np.abs(final).max()))
    acting = np.isin(np.arange(counts.num_states), state)
    if until_the_end(mdp):  # if it has not settled by now, some loop pays without end
        settled = change <= 1e-9 * scale
        return float(value[acting].max()) + 1e-9 * scale if settled else np.inf
    return float(value[acting].max()) + discount * change / (1.0 - discount) + 1e-12 * scale


def _path_sweeps(mdp: MDP) -> int:
    if mdp.horizon is not None:
        return mdp.horizon
    return mdp.num_states + 1 if until_the_end(mdp) else PATH_SWEEPS


def practice(
    model: Model, parts: LogParts, certificate: Certificate, curse: Curse | None,
    rng: np.random.Generator, *, limits: tuple[float, float] | None = None,
) -> Certificate:  # fmt: skip
    """Add what behaviour earned and, if it can be certified, the gain over it.

    All amounts are in the rewards of the model: the caller converts costs. ``limits`` are the
    return limits of the whole log, for a model that is made from a part of it.
    """
    begin("practice")
    delta_policy, delta_behaviour = share_delta(model.settings.delta)
    lowest, highest = return_limits(model) if limits is None else limits
    signed = _signed(parts, model)
    shown = earned(signed, lowest=lowest, highest=highest, delta=delta_behaviour)
    shown = replace(shown, horizon=model.mdp.horizon)
    by_model = _by_model(model, rng)
    told = replace(certificate, behaviour=Behaviour(log=shown, model=by_model))
    told = told.adding(*_seen(shown, by_model), *_lacking(parts))
    if signed is None or model.settings.initial not in (None, "episodes"):
        return told
    bound = _policy_bound(model, certificate, curse, delta_policy, rng)
    made: Gain = gain(bound, shown, delta_policy=delta_policy)
    told = replace(told, gain=made)
    if made.reason is not None:
        told = told.adding(Finding.of("gain_not_certified", reason=made.reason))
    if model.placed.reward_range is None and made.lower_bound is not None:
        told = told.adding(Finding.of("returns_within_log"))
    return told.adding(*_mismatch(shown, by_model))


def practice_without_prior(
    model: Model, parts: LogParts, certificate: Certificate, center: MDP, ambiguity: AmbiguitySet
) -> Certificate:
    """Add what behaviour earned, by the log and over all models of a set, in rewards.

    A mismatch means that in no model of the set behaviour earns what the log shows. No gain is
    certified.
    """
    begin("practice")
    lowest, highest = return_limits(model)
    delta = share_delta(model.settings.delta)[1]
    shown = earned(_signed(parts, model), lowest=lowest, highest=highest, delta=delta)
    shown = replace(shown, horizon=model.mdp.horizon)
    poor, rich = at_reward_ends(center, ambiguity)
    by_model = Interval(
        mean=evaluate(center, model.behaviour).return_lower,
        lower=evaluate(poor, model.behaviour, ambiguity).return_lower,
        upper=evaluate(rich, model.behaviour, ambiguity, nature="best").return_upper,
    )
    told = replace(certificate, behaviour=Behaviour(log=shown, model=by_model))
    found = [*_seen(shown, by_model), *_lacking(parts)]
    return told.adding(*found, *_mismatch(shown, by_model) if model.starts else ())


def _signed(parts: LogParts, model: Model) -> Any:
    followed = parts.followed
    if followed is None or not model.settings.costs:
        return followed
    return replace(followed, earned=0.0 - followed.earned)


def _by_model(model: Model, rng: np.random.Generator) -> Interval | None:
    rewards = rewards_of(model.mdp, model.posterior, objective="max")
    rows = check_policy(model.mdp, model.behaviour)
    work = draw_plan.policy_work(model.mdp, rewards, rows)
    affordable = draw_plan.affordable_draws(work, LEAST_DRAWS, MODEL_DRAWS, WORK)
    draws = at_most(model.posterior, min(affordable, model.settings.draws or MODEL_DRAWS))
    drawn = policy_returns(
        model.posterior, model.mdp, rows, draws, rng.spawn(1)[0], rewards=rewards,
        tolerance=usual_tolerance(model.mdp), missed=False,
    )  # fmt: skip
    low, high = np.quantile(drawn.lower, [0.025, 0.975])
    return Interval(mean=float(drawn.lower.mean()), lower=float(low), upper=float(high))


def _policy_bound(
    model: Model, certificate: Certificate, curse: Curse | None, delta: float,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """Return what the policy earns at least, at its share of delta.

    On the draws of the promise: their number was fixed before any was seen, and each of the two
    statements keeps its own eta, whether they rest on the same draws or not. A share of delta may
    need more draws than delta: then new ones are made.
    """
    made, eta = certificate, model.settings.eta
    needed = draws_needed(delta, eta)
    if made.returns is None or made.draws < needed:
        made = certify(
            made.policy, model.posterior, model.mdp, delta=delta, eta=eta,
            draws=max(made.draws, needed), rng=rng.spawn(1)[0], upper=False,
            device=model.settings.device,
        )  # fmt: skip
    ordered = np.sort(np.asarray(made.returns))
    bound = float(ordered[lower_rank(len(ordered), delta, eta) - 1])
    bound -= 0.0 if curse is None else curse.mean + curse.spread
    reach = certificate.nominal_return - bound
    return bound - first_state_doubt(model, certificate.policy, reach=reach, delta=delta)


def _seen(shown: Earned, by_model: Interval | None) -> list[Finding]:
    """Return the finding of what behaviour earned in the log and by the model."""
    if by_model is None or shown.mean is None or shown.lower is None or shown.upper is None:
        return []
    return [
        Finding.of(
            "practice_seen",
            log=shown.mean,
            low=shown.lower,
            high=shown.upper,
            model=by_model.mean,
            episodes=shown.episodes,
            share=percent(float(f"{shown.delta:.12g}")),
        )
    ]


def _lacking(parts: LogParts) -> list[Finding]:
    """Return the finding why an earlier run's episodes are left out of what behaviour earned."""
    if not parts.lacking:
        return []
    return [Finding.of("earlier_returns_left_out", unlike=parts.lacking)]


def _mismatch(shown: Earned, by_model: Interval | None) -> tuple[Finding, ...]:
    """Return the finding that model and log disagree about what behaviour earns, if they do."""
    if by_model is None or shown.lower is None or shown.upper is None or shown.mean is None:
        return ()
    if by_model.lower <= shown.upper and shown.lower <= by_model.upper:
        return ()
    return (Finding.of("behaviour_mismatch", log=shown.mean, model=by_model.mean),)
