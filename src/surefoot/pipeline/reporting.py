"""From a finished run to its page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot._atomic import replacing
from surefoot._display import Grid, number_of
from surefoot._finding_texts import CAUSES
from surefoot._rounding import lower_text, near_text, upper_text
from surefoot.certificates import planning
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curve import GuaranteeCurve, curve_of
from surefoot.certificates.headlines import (
    amount_text,
    before_headline,
    promise_headline,
    with_commas,
)
from surefoot.certificates.optimize import Candidate
from surefoot.certificates.provenance import posterior_words
from surefoot.certificates.tables import tilted_grid
from surefoot.data.conversions import initial_distribution
from surefoot.data.summary import describe
from surefoot.model.policies import check_policy
from surefoot.pipeline.model import Model
from surefoot.pipeline.promising import streams
from surefoot.pipeline.wording import as_options
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.protocol import at_most
from surefoot.report import policy_plots, promise_plots
from surefoot.report.assumptions import Assumption, assumptions
from surefoot.report.glossary import glossary
from surefoot.report.marks import amount_words, marks_of
from surefoot.report.page import SHOWN, Cause, Figure, Page
from surefoot.report.rows import rule_rows
from surefoot.report.rule import Change, changes, rule_words
from surefoot.report.svg import action_colours, drawing
from surefoot.report.tables import PolicyLine, policy_lines
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of

DRAWN, LEAST = 20_000, 2000
"""Draws behind the figures."""
WORK = 5e9
"""Fewer draws where they would take more operations than this (a few seconds)."""
CELLS = 1600
"""A grid of more states than this is a blur."""


def write_report(
    model: Model, work: Path, certificate: Certificate, candidates: Sequence[Candidate]
) -> None:
    """Write ``report.html``; certificate and candidates are in costs where costs were given."""
    config = (work / "config.toml").read_text(encoding="utf-8")
    page = make_page(model, certificate, candidates, config)
    with replacing(work / "report.html", "w", encoding="utf-8") as file:
        file.write(page.to_html())


def make_page(
    model: Model, certificate: Certificate, candidates: Sequence[Candidate], config: str
) -> Page:
    """Put together what the page says."""
    lines = policy_lines(model.mdp, model.placed, certificate.policy, model.passive, model.order)
    found = changes(model.mdp, model.placed, certificate.policy, model.behaviour)
    columns = model.settings.columns.state
    broad, narrow = _picture(model, certificate)
    return Page(
        title=_title(model),
        failures=tuple(map(as_options, certificate.failures)),
        rule=_rule(certificate, rule_words(lines, found, columns)),
        promise=promise_headline(certificate, model.mdp.discount),
        before=before_headline(certificate),
        picture=broad,
        narrow=narrow,
        warnings=_warnings(certificate),
        notes=tuple(map(as_options, certificate.notes)),
        about_rule=_about_rule(found, certificate),
        columns=columns,
        rows=rule_rows(lines[:SHOWN], found, len(columns)),
        num_states=len(lines),
        no_advice=_without_advice(model),
        gain_word="saves" if model.settings.costs else "gain",
        map=_map(lines, columns),
        assumptions=_assumptions(model, certificate),
        doubt=_doubt_words(certificate),
        causes=_causes(certificate),
        tables=_tables(certificate),
        figures=_figures(model, certificate, lines),
        glossary=glossary(
            confidence=certificate.confidence, discount=model.mdp.discount,
            horizon=certificate.horizon, costs=model.settings.costs,
        ),
        sentence=certificate.sentence,
        comparison=certificate.gain_sentence,
        candidates=_grouped(certificate, candidates),
        percentile=_percentile_words(model),
        facts=_facts(certificate),
        log=_log_lines(model),
        config=config,
    )  # fmt: skip


def _rule(certificate: Certificate, words: str) -> str:
    return f"Found, but not certified: {words}" if certificate.withheld else words


def _title(model: Model) -> str:
    log = model.counts.log
    names = [Path(name).name for name in log.names] if log is not None else []
    source = f" in {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}" if names else ""
    return f"A rule from {number_of(int(model.counts.count.sum()), 'decision')}{source}"


def _warnings(certificate: Certificate) -> tuple[str, ...]:
    """Return the warnings; what failed stands at the very top already."""
    failed = certificate.failures
    return tuple(as_options(text) for text in certificate.warnings if text not in failed)


def _without_advice(model: Model) -> int:
    ours = model.passive & ~model.placed.is_terminal
    if model.placed.unseen is not None:
        ours[model.placed.unseen] = False
    return int(np.count_nonzero(ours))


def _picture(model: Model, certificate: Certificate) -> tuple[Figure, Figure]:
    """Return the head's numbers on one axis, for wide and for narrow screens."""
    marks = marks_of(certificate)
    alt = f"On one axis, {amount_words(certificate)}: "
    alt += ", ".join(mark.words for mark in marks)
    worth = f"{100 * model.mdp.discount:.4g}%"
    word = "cost" if model.settings.costs else "reward"
    counted = f"Totals count a {word} one step later at {worth} of its amount."
    limit = "less" if model.settings.costs else "more"
    caption = f"No rule could be promised {limit} than the limit from these data. {counted}"
    if not np.isfinite(certificate.gap):
        caption = counted

    def figure(name: str, width: float, height: float) -> Figure:
        with drawing(name, alt, width, height) as drawn:
            promise_plots.plot_promise(certificate, axes=drawn.axes)
        return Figure(svg=drawn.svg, caption=caption)

    return figure("head", 9.2, 2.3), figure("small", 4.1, 2.5)


def _about_rule(found: dict[Any, Change], certificate: Certificate) -> str:
    """Return how to read the table."""
    reward = certificate.objective == "max"
    word, unit = ("Gain", certificate.unit) if reward else ("Saves", certificate.unit)
    measured = "" if unit is None else f", in {unit}"
    totals = [change.total for change in found.values()]
    known = [total for total in totals if total is not None]
    told = (
        "A filled action departs from what was mostly done so far; the bars show how often each "
        "action was taken."
    )
    if len(known) < len(totals):
        return f"{told} {word}: by the model, each time{measured}."
    whole = amount_text(near_text(sum(known), 4), unit)
    return f"{told} {word}: this state's part of the {whole} expected over past practice."


def _map(lines: Sequence[PolicyLine], columns: Sequence[str]) -> Figure | None:
    if not policy_plots.is_grid(lines) or len(lines) > CELLS:
        return None
    sides = [len({line.state[i] for line in lines}) for i in (0, 1)]  # type: ignore[index]
    told = f"What to do, by {columns[0]} (down) and {columns[1]} (across)."
    alt = f"{told} The table below says the same."
    width, height = (min(8.4, max(4.2, 1.2 + 0.8 * sides[1])), min(7.0, 1.1 + 0.42 * sides[0]))
    with drawing("map", alt, width, height) as drawn:
        policy_plots.plot_policy(lines, columns=columns, axes=drawn.axes)
    return Figure(svg=drawn.svg, caption=told, width=7.5 * width)


def _assumptions(model: Model, certificate: Certificate) -> list[Assumption]:
    told = assumptions(
        certificate.findings,
        [check.finding for check in model.counts.checks],
        first_state=_first_state(model),
        prior=_prior(model),
    )
    return [Assumption(as_options(one.text), as_options(one.otherwise)) for one in told]


def _prior(model: Model) -> str | None:
    """Return what was believed before the data, in words; None for promises without a belief."""
    if not model.bayesian:
        return None
    if isinstance(model.posterior, DirichletPosterior | LearnedPosterior):
        return f"prior: {model.posterior.prior_words}"
    return f"your own posterior: {posterior_words(model.posterior)}"


def _first_state(model: Model) -> str:
    initial = model.settings.initial
    if initial in (None, "episodes", "uniform"):
        return initial_distribution(model.placed, initial).origin
    return f"the distribution in {Path(initial).name}"


def _doubt_words(certificate: Certificate) -> str:
    if certificate.doubt is None:
        return ""
    verb = "earn" if certificate.objective == "max" else "cost"
    seen = amount_text(near_text(certificate.doubt.as_seen), certificate.unit)
    return (
        f"By the averages of the log alone the rule would {verb} {seen}. This is what lies between "
        "that and the promise."
    )


def _causes(certificate: Certificate) -> list[Cause]:
    """Return where the doubt comes from, the largest cause first."""
    doubt = certificate.doubt
    if doubt is None:
        return []
    told = {name: cause for name, cause in doubt.causes.items() if cause.amount != 0.0}
    largest = max((abs(cause.amount) for cause in told.values()), default=1.0)
    unit = certificate.unit
    return [
        Cause(
            words=f"{CAUSES[name][:1].upper()}{CAUSES[name][1:]}",
            amount=amount_text(near_text(cause.amount, 3), unit),
            width=round(100 * max(cause.amount, 0.0) / largest, 1),
            without="Without this doubt alone the promise would be "
            f"{amount_text(near_text(cause.promise_without, 4), unit)}.",
        )
        for name, cause in sorted(told.items(), key=lambda one: -one[1].amount)
    ]


def _tables(certificate: Certificate) -> list[tuple[str, Grid]]:
    """Return what episodes say of policies on the way to this one, where that was asked."""
    tilted = tilted_grid(certificate.tilted)
    if tilted is None:
        return []
    caption = (
        "The state seems to lack something. Rules between what was done (0%) and the one found "
        "(100%), by the log's episodes, reweighted, and by its model: where the two part, so does "
        "the promise from the truth."
    )
    return [(caption, tilted)]


def _grouped(
    certificate: Certificate, candidates: Sequence[Candidate]
) -> list[tuple[Candidate, ...]]:
    """Return the candidates best first, those with the same numbers together."""
    best = -1.0 if certificate.objective == "max" else 1.0
    groups: dict[tuple[float, float], list[Candidate]] = {}
    for one in sorted(candidates, key=lambda c: (best * c.percentile, not c.selected)):
        groups.setdefault((one.percentile, one.nominal_return), []).append(one)
    return [tuple(group) for group in groups.values()]


def _log_lines(model: Model) -> list[str]:
    """Return the summary of the log without its warnings, which stand above."""
    return [as_options(line) for line in describe(model.placed, costs=model.settings.costs)]


def _figures(model: Model, certificate: Certificate, lines: Sequence[PolicyLine]) -> list[Figure]:
    flow = _flow(model, certificate, lines)
    figures = _posterior_figures(model, certificate) if model.bayesian else []
    return figures if flow is None else [*figures, flow]


def _flow(model: Model, certificate: Certificate, lines: Sequence[PolicyLine]) -> Figure | None:
    """Return where the rule leads, for models that are small enough to draw."""
    labels = model.mdp.state_labels or tuple(range(model.mdp.num_states))
    few = lines[: 2 * policy_plots.FLOWS]
    states = list(dict.fromkeys(labels.index(line.state) for line in few))
    if not 2 <= len(states) <= policy_plots.FLOWS:
        return None
    colours = action_colours(policy_plots.actions_of(lines))
    alt = "States in a row, with arrows as wide as the traffic between them under the rule."
    with drawing("flow", alt, 4.7, 3.1) as drawn:
        policy_plots.plot_flow(
            model.mdp, certificate.policy, states, colours=colours, axes=drawn.axes
        )
        low, high = drawn.axes.get_ylim()
        drawn.resize(4.7, 0.8 + 4.4 * (high - low) / (len(states) + 0.2))
    return Figure(
        title="Where the rule leads",
        svg=drawn.svg,
        caption="How much of the time each state takes up under the rule (later steps count less), "
        "by the model, coloured by action as in the table. Arrows above lead right, below left.",
    )


def _posterior_figures(model: Model, certificate: Certificate) -> list[Figure]:
    settings = model.settings
    sign = -1.0 if settings.costs else 1.0
    rng = streams(settings.seed)[3]
    rewards = rewards_of(model.mdp, model.posterior, objective="max")
    rows = check_policy(model.mdp, certificate.policy)
    work = planning.policy_work(model.mdp, rewards, rows)
    draws = at_most(model.posterior, planning.affordable_draws(work, LEAST, DRAWN, WORK))
    returns = policy_returns(model.posterior, model.mdp, rows, draws, rng, rewards=rewards)
    curve = curve_of(returns, eta=settings.eta)
    shown = GuaranteeCurve(
        confidence=curve.confidence, bound=sign * (curve.bound - certificate.taken_off),
        eta=curve.eta, draws=curve.draws, note=curve.note, objective=certificate.objective,
    )  # fmt: skip
    return [_scatter(sign * returns.lower, certificate), _curve(shown, certificate)]


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
        caption=f"The rule's total in {len(values):,} processes that fit the log equally well. "
        f"At most {most} of them lie {side} the promise.",
    )


def _curve(curve: GuaranteeCurve, certificate: Certificate) -> Figure:
    known = ~np.isnan(curve.bound)
    points = zip(curve.confidence[known], curve.bound[known], strict=True)
    told = [f"{100 * level:.4g}%: {with_commas(near_text(bound, 4))}" for level, bound in points]
    with drawing("curve", f"What can be promised: {', '.join(told)}.") as drawn:
        promise_plots.plot_guarantee_curve(curve, certificate.delta, axes=drawn.axes)
    note = f" {curve.note[0].upper()}{curve.note[1:]}" if curve.note else ""
    return Figure(
        title="What could be promised at other levels",
        svg=drawn.svg,
        caption=f"The surer a promise must be, the less it says. All points hold together.{note}",
    )


def _percentile_words(model: Model) -> str:
    if not model.bayesian:
        return "The policy is the robust one of the confidence set; its promise is that set's."
    level = 100 * model.settings.delta
    return (
        f"Percentile: the {level:g}% percentile on the draws that chose the policy. It is no "
        "promise: the selected policy was certified on other draws."
    )


def _facts(certificate: Certificate) -> list[tuple[str, str]]:
    reward = certificate.objective == "max"
    facts = [
        ("basis", f"{certificate.basis}: {certificate.prior}"),
        ("delta, eta", f"{certificate.delta:g}, {certificate.eta:g}"),
        ("numerical error, subtracted", f"{certificate.numerical_error:.1e}"),
        ("data, model", f"{certificate.data_fingerprint}, {certificate.model_fingerprint}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in certificate.versions.items())),
    ]
    if certificate.draws:
        drawn = f"{certificate.draws:,} for the promise, {certificate.other_draws:,} for the limit"
        facts.insert(2, ("posterior draws", drawn))
        facts.insert(3, ("seed and stream", certificate.seed))
    if certificate.robust_return is not None and certificate.robust_return != certificate.promise:
        safe = (lower_text if reward else upper_text)(certificate.robust_return)
        facts.append(("worst case of a credible set, a looser promise", safe))
    return facts
