"""From a finished run to its page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot._atomic import replacing
from surefoot._display import Grid, number_of
from surefoot._doubt_texts import CAUSES
from surefoot._findings import MISMATCH, Finding, texts_of
from surefoot._rounding import lower_text, near_text, upper_text
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.headlines import (
    amount_text,
    before_headline,
    promise_headline,
)
from surefoot.certificates.provenance import posterior_words
from surefoot.certificates.search import Candidate
from surefoot.certificates.tables import tilted_grid
from surefoot.data.conversions import initial_distribution
from surefoot.data.summary import describe
from surefoot.pipeline.figures import figures_of, head_figures, policy_map
from surefoot.pipeline.model import Model
from surefoot.pipeline.next_rows import measure_next
from surefoot.pipeline.option_text import as_options
from surefoot.pipeline.run_files import lines_of
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.report.assumptions import Assumption, assumptions
from surefoot.report.glossary import glossary
from surefoot.report.page import SHOWN, DoubtRow, Page
from surefoot.report.rows import rule_rows
from surefoot.report.rule import Change, changes, rule_words


def write_report(
    model: Model, work: Path, certificate: Certificate, candidates: Sequence[Candidate]
) -> None:
    """Write ``report.html``; certificate and candidates are in costs if costs were given."""
    config = (work / "config.toml").read_text(encoding="utf-8")
    page = make_page(model, certificate, candidates, config)
    with replacing(work / "report.html", "w", encoding="utf-8") as file:
        file.write(page.to_html())


def make_page(
    model: Model, certificate: Certificate, candidates: Sequence[Candidate], config: str
) -> Page:
    """Assemble the content of the page."""
    lines = lines_of(model, certificate.policy)
    found = changes(
        model.mdp, model.placed, certificate.policy, model.behaviour,
        by_step=model.settings.by_step,
    )  # fmt: skip
    columns = model.settings.columns.state
    by_steps = any(line.first_step for line in lines)
    broad, narrow = head_figures(model, certificate)
    next_words, next_rows = measure_next(model, certificate)
    return Page(
        title=_title(model),
        failures=tuple(map(as_options, certificate.failures)),
        mismatch=" ".join(_mismatch(certificate)),
        rule=_rule(certificate, rule_words(lines, found, columns)),
        promise=promise_headline(certificate, model.mdp.discount),
        before=before_headline(certificate),
        picture=broad,
        narrow=narrow,
        warnings=_warnings(certificate),
        notes=tuple(map(as_options, texts_of(_beside_tables(certificate), "note"))),
        about_rule=_about_rule(found, certificate, by_steps=by_steps),
        columns=columns,
        rows=rule_rows(lines[:SHOWN], found, len(columns)),
        num_states=len(lines),
        no_advice=_without_advice(model),
        gain_word=_gain_word(model, found),
        map=policy_map(lines, columns),
        assumptions=_assumptions(model, certificate),
        doubt=_doubt_words(certificate),
        causes=_causes(certificate),
        next_words=next_words,
        next_rows=next_rows,
        tables=_tables(certificate),
        figures=figures_of(model, certificate, lines),
        glossary=glossary(
            basis=certificate.basis, delta=certificate.delta, discount=model.mdp.discount,
            horizon=certificate.horizon, costs=model.settings.costs,
            limit=certificate.limit_sentence("this"),
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


def _gain_word(model: Model, found: dict[Any, Change]) -> str:
    if all(change.each is None for change in found.values()):
        return ""
    return "saves" if model.settings.costs else "gain"


def _title(model: Model) -> str:
    log = model.counts.log
    names = [Path(name).name for name in log.names] if log is not None else []
    source = f" in {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}" if names else ""
    return f"A rule from {number_of(int(model.counts.count.sum()), 'decision')}{source}"


def _warnings(certificate: Certificate) -> tuple[str, ...]:
    """Return the warnings without failed checks and mismatch, which are at the top of the page."""
    above = (*certificate.failures, *_mismatch(certificate))
    return tuple(as_options(text) for text in certificate.warnings if text not in above)


def _mismatch(certificate: Certificate) -> tuple[str, ...]:
    return tuple(found.text for found in certificate.findings if found.code == MISMATCH)


def _without_advice(model: Model) -> int:
    ours = model.passive & ~model.placed.is_terminal
    if model.placed.unseen is not None:
        ours[model.placed.unseen] = False
    return int(np.count_nonzero(ours))


def _about_rule(found: dict[Any, Change], certificate: Certificate, *, by_steps: bool) -> str:
    """Return how to read the table."""
    reward = certificate.objective == "max"
    word, unit = ("Gain", certificate.unit) if reward else ("Saves", certificate.unit)
    measured = "" if unit is None else f", in {unit}"
    told = (
        "A filled action departs from what was mostly done so far; the bars show how often each "
        "action was taken."
    )
    if by_steps:
        told += " Steps count from 0."
    if all(change.each is None for change in found.values()):
        return told
    totals = [change.total for change in found.values()]
    known = [total for total in totals if total is not None]
    if len(known) < len(totals):
        return f"{told} {word}: by the model, each time{measured}."
    whole = amount_text(near_text(sum(known), 4), unit)
    return f"{told} {word}: this state's part of the {whole} expected over past practice."


def _assumptions(model: Model, certificate: Certificate) -> list[Assumption]:
    told = assumptions(
        certificate.findings,
        [check.finding for check in model.counts.checks],
        first_state=_first_state(model),
        prior=_prior(model),
    )
    return [Assumption(as_options(one.text), as_options(one.otherwise)) for one in told]


def _prior(model: Model) -> str | None:
    """Return the prior or the user's posterior in words; None for promises without a prior."""
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


def _beside_tables(certificate: Certificate) -> list[Finding]:
    """Return the findings except those that a table shows."""
    return [found for found in certificate.findings if found.code != "doubt_by_cause"]


def _doubt_words(certificate: Certificate) -> str:
    if certificate.doubt is None:
        return ""
    verb = "earn" if certificate.objective == "max" else "cost"
    seen = amount_text(near_text(certificate.doubt.as_seen), certificate.unit)
    return (
        f"If the averages of the log were exact, the rule would {verb} {seen}. The table shows "
        "what lies between that and the promise, and the promise without each single doubt."
    )


def _causes(certificate: Certificate) -> list[DoubtRow]:
    """Return the causes of doubt, the largest first."""
    doubt = certificate.doubt
    if doubt is None:
        return []
    told = {name: cause for name, cause in doubt.causes.items() if cause.amount != 0.0}
    largest = max((abs(cause.amount) for cause in told.values()), default=1.0)
    unit = certificate.unit
    return [
        DoubtRow(
            words=f"{CAUSES[name][:1].upper()}{CAUSES[name][1:]}",
            amount=amount_text(near_text(cause.amount, 3), unit),
            width=round(100 * max(cause.amount, 0.0) / largest, 1),
            without=f"Without it: {amount_text(near_text(cause.promise_without, 4), unit)}",
        )
        for name, cause in sorted(told.items(), key=lambda one: -one[1].amount)
    ]


def _tables(certificate: Certificate) -> list[tuple[str, Grid]]:
    """Return the table of tilted policies by episodes and by model, if there is one."""
    tilted = tilted_grid(certificate.tilted)
    if tilted is None:
        return []
    caption = (
        "Something seems to be missing from the state. Rules between what was done (0%) and the "
        "one found (100%), by the log's episodes, reweighted, and by its model: where the two "
        "differ, the promise is off as well."
    )
    return [(caption, tilted)]


def _grouped(
    certificate: Certificate, candidates: Sequence[Candidate]
) -> list[tuple[Candidate, ...]]:
    """Return the candidates, best first, grouped by equal numbers."""
    best = -1.0 if certificate.objective == "max" else 1.0
    groups: dict[tuple[float, float], list[Candidate]] = {}
    for one in sorted(candidates, key=lambda c: (best * c.percentile, not c.selected)):
        groups.setdefault((one.percentile, one.nominal_return), []).append(one)
    return [tuple(group) for group in groups.values()]


def _log_lines(model: Model) -> list[str]:
    """Return the summary of the log without its warnings, which are listed above."""
    return [as_options(line) for line in describe(model.placed, costs=model.settings.costs)]


def _percentile_words(model: Model) -> str:
    if not model.bayesian:
        return "The policy is the robust one of the confidence set; its promise is that set's."
    level = 100 * model.settings.delta
    return (
        f"Percentile: the {level:g}% percentile on the draws that chose the policy. It is not a "
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
