"""The figures of a run's page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._display import number_of
from surefoot._rounding import lower_text, near_text, upper_text
from surefoot.certificates import draw_plan
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curve import GuaranteeCurve, curve_of
from surefoot.certificates.headlines import with_commas
from surefoot.data.side_files import label_text
from surefoot.model.policies import RowPolicy, check_policy
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.budget import draws_within
from surefoot.pipeline.first_state import first_state_doubt
from surefoot.pipeline.model import Model
from surefoot.pipeline.promises import streams
from surefoot.posterior.protocol import at_most
from surefoot.report import policy_plots, promise_plots
from surefoot.report.glossary import counted_words
from surefoot.report.marks import amount_words, marks_of
from surefoot.report.page import Figure
from surefoot.report.svg import action_colours, drawing
from surefoot.report.tables import PolicyLine
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of

Floats = NDArray[np.float64]

DRAWN, LEAST = 20_000, 270
"""The most and the fewest draws behind the figures, unless they show those of the promise."""
WORK = 2e9
"""Fewer draws are made where they would take more operations than this (a second or two)."""
CELLS = 1600
"""The most states in a grid; with more it would be unreadable."""


def head_figures(model: Model, certificate: Certificate) -> tuple[Figure, Figure]:
    """Return a figure of the page head's numbers on one axis, for wide and for narrow screens."""
    marks = marks_of(certificate)
    alt = f"On one axis, {amount_words(certificate)}: "
    alt += ", ".join(mark.words for mark in marks)
    caption = _counted(model)
    if np.isfinite(certificate.gap):
        limit = certificate.limit_sentence("the limit")
        alt, caption = f"{alt}. {limit}", f"{limit} {caption}"

    def figure(name: str, width: float, height: float) -> Figure:
        with drawing(name, alt, width, height) as drawn:
            promise_plots.plot_promise(certificate, axes=drawn.axes)
        return Figure(svg=drawn.svg, caption=caption)

    return figure("head", 9.2, 2.3), figure("small", 4.1, 2.5)


def _counted(model: Model) -> str:
    """Return which steps the totals count, in words."""
    mdp = model.mdp
    told = counted_words(mdp.discount, costs=model.settings.costs)
    if mdp.horizon is None:
        return told
    final = ", and what the last state is worth" if mdp.final_reward is not None else ""
    return f"{told} At most {number_of(mdp.horizon, 'step')} count{final}."


def policy_map(lines: Sequence[PolicyLine], columns: Sequence[str]) -> Figure | None:
    """Return the rule as a grid; None if states do not have two columns, or are too many."""
    if not policy_plots.is_grid(lines) or len({line.state for line in lines}) > CELLS:
        return None
    sides = [len({line.state[i] for line in lines}) for i in (0, 1)]  # type: ignore[index]
    first = " at the first step" if any(line.first_step for line in lines) else ""
    told = f"What to do{first}, by {columns[0]} (down) and {columns[1]} (across)."
    alt = f"{told} The table below says the same."
    width, height = (min(8.4, max(4.2, 1.2 + 0.8 * sides[1])), min(7.0, 1.1 + 0.42 * sides[0]))
    across = list(dict.fromkeys(line.state[1] for line in lines))  # type: ignore[index]
    below = policy_plots.side_texts(across, columns[1])
    if policy_plots.are_turned(below):
        height += 0.08 * max(map(len, below))
    with drawing("map", alt, width, height) as drawn:
        policy_plots.plot_policy(lines, columns=columns, axes=drawn.axes)
    return Figure(svg=drawn.svg, caption=told, width=7.5 * width)


def figures_of(model: Model, certificate: Certificate, lines: Sequence[PolicyLine]) -> list[Figure]:
    """Return the figures of how well the total is known and of where the rule leads."""
    flow = _flow(model, certificate, lines)
    figures = _posterior_figures(model, certificate) if model.bayesian else []
    return figures if flow is None else [*figures, flow]


def _flow(model: Model, certificate: Certificate, lines: Sequence[PolicyLine]) -> Figure | None:
    """Return where a rule for all steps leads; None for models that are too large to draw."""
    policy = certificate.policy
    if isinstance(policy, StepPolicy) or model.settings.by_step:
        return None
    labels = model.mdp.state_labels or tuple(range(model.mdp.num_states))
    few = lines[: 2 * policy_plots.FLOWS]
    states = list(dict.fromkeys(labels.index(line.state) for line in few))
    if not 2 <= len(states) <= policy_plots.FLOWS:
        return None
    colours = action_colours(policy_plots.actions_of(lines))
    later = " (later steps count less)" if model.mdp.discount < 1.0 else ""
    alt = "States in a row, with arrows as wide as the traffic between them under the rule."
    with drawing("flow", alt, 4.7, 3.1) as drawn:
        policy_plots.plot_flow(model.mdp, policy, states, colours=colours, axes=drawn.axes)
        low, high = drawn.axes.get_ylim()
        names = 0.08 * max(0, max(len(label_text(labels[s])) for s in states) - 10)  # turned
        drawn.resize(4.7, 0.8 + names + 4.4 * (high - low) / (len(states) + 0.2))
    return Figure(
        title="Where the rule leads",
        svg=drawn.svg,
        caption=f"How much of the time each state takes up under the rule{later}, "
        "by the model, coloured by action as in the table. Arrows above lead right, below left.",
    )


def from_promise(model: Model, certificate: Certificate) -> bool:
    """Tell whether figures show the draws of the promise: where others would take a while."""
    if not model.bayesian or certificate.returns is None:
        return False
    usual = usual_draws(draw_plan.policy_work(model.mdp, *_played(model, certificate)))
    return usual < DRAWN and len(certificate.returns) >= usual


def usual_draws(work: float) -> int:
    """Return how many draws figures show, given the cost of one."""
    return draw_plan.affordable_draws(work, LEAST, DRAWN, WORK)


def _played(model: Model, certificate: Certificate) -> tuple[Rewards, RowPolicy]:
    rewards = rewards_of(model.mdp, model.posterior, objective="max")
    return rewards, check_policy(model.mdp, certificate.policy)


def _returns(model: Model, certificate: Certificate) -> Floats:
    """Return what the policy earns in draws, in rewards: in those of the promise, or in others."""
    if from_promise(model, certificate) and certificate.returns is not None:
        return certificate.returns
    settings = model.settings
    rewards, rows = _played(model, certificate)
    draws = at_most(model.posterior, usual_draws(draw_plan.policy_work(model.mdp, rewards, rows)))
    if settings.time_budget is not None:
        draws = min(draws, draws_within(model, settings.time_budget) or draws)
    return policy_returns(
        model.posterior, model.mdp, rows, draws, streams(settings.seed)[3], rewards=rewards,
        tolerance=draw_plan.NEAR * abs(certificate.nominal_return - certificate.lower_bound),
    ).lower  # fmt: skip


def _posterior_figures(model: Model, certificate: Certificate) -> list[Figure]:
    sign = -1.0 if model.settings.costs else 1.0
    returns = _returns(model, certificate)
    curve = curve_of(returns, eta=model.settings.eta)
    off = _deductions(model, certificate, curve, sign * certificate.nominal_return)
    shown = GuaranteeCurve(
        confidence=curve.confidence, bound=sign * (curve.bound - off), eta=curve.eta,
        draws=curve.draws, note=curve.note, objective=certificate.objective,
    )  # fmt: skip
    scatter = _scatter(sign * returns, certificate)
    return [scatter] if certificate.withheld else [scatter, _curve(shown, certificate)]


def _deductions(
    model: Model, certificate: Certificate, curve: GuaranteeCurve, mean: float
) -> NDArray[np.float64]:
    """Return what luck in choosing and the first state cost at each level of a curve.

    ``mean`` is the return by the mean model. The surer the promise, the more the doubt about the
    first state costs.
    """
    luck = 0.0 if certificate.curse is None else certificate.curse.mean + certificate.curse.spread
    if not certificate.has("first_state_unsure"):
        return np.full(len(curve.bound), luck)
    first = [
        first_state_doubt(
            model, certificate.policy, reach=mean - float(bound) + luck, delta=1.0 - float(level)
        )
        for level, bound in zip(curve.confidence, np.nan_to_num(curve.bound), strict=True)
    ]
    return luck + np.array(first)


def _scatter(values: Any, certificate: Certificate) -> Figure:
    side = "below" if certificate.objective == "max" else "above"
    low, high = np.quantile(values, [0.05, 0.95])
    ends = f"{with_commas(near_text(low, 4))} and {with_commas(near_text(high, 4))}"
    most = f"{100 * certificate.delta:g}%"
    with drawing("returns", f"Totals scatter; nine in ten lie between {ends}.") as drawn:
        promise_plots.plot_returns(values, certificate, axes=drawn.axes)
    return Figure(
        title="How well the total is known",
        svg=drawn.svg,
        caption=f"The rule's total in {len(values):,} processes equally likely given the log. "
        f"At most {most} of all such lie {side} the promise.",
    )


def _curve(curve: GuaranteeCurve, certificate: Certificate) -> Figure:
    known = ~np.isnan(curve.bound)
    points = zip(curve.confidence[known], curve.bound[known], strict=True)
    safe = lower_text if certificate.objective == "max" else upper_text
    told = [f"{100 * level:.4g}%: {with_commas(safe(bound, 4))}" for level, bound in points]
    with drawing("curve", f"What can be promised: {', '.join(told)}.") as drawn:
        promise_plots.plot_guarantee_curve(curve, certificate.delta, axes=drawn.axes)
    note = f" {curve.note[0].upper()}{curve.note[1:]}" if curve.note else ""
    return Figure(
        title="What could be promised at other levels",
        svg=drawn.svg,
        caption=f"The surer a promise must be, the less it says. Each holds at its level.{note}",
    )
