"""From a finished run to its page."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surefoot._rounding import lower_text, upper_text
from surefoot._writing import replacing
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curve import guarantee_curve
from surefoot.certificates.returns import policy_returns, rewards_of
from surefoot.pipeline.model import Model
from surefoot.pipeline.promising import CandidateLine, streams
from surefoot.report import plots
from surefoot.report.page import Figure, Page
from surefoot.report.tables import policy_lines
from surefoot.solvers.policies import check_policy

DRAWN, LEAST = 20_000, 2000
"""Draws behind the figures."""
WORK = 2**25
"""Fewer where they would be more drawn probabilities than this."""


def write_report(
    model: Model,
    work: Path,
    certificate: Certificate,
    candidates: Sequence[CandidateLine],
    comparison: str,
    notes: Sequence[str] = (),
) -> None:
    """Write ``report.html``."""
    config = (work / "config.toml").read_text(encoding="utf-8")
    page = make_page(model, certificate, candidates, comparison, notes, config)
    with replacing(work / "report.html", "w", encoding="utf-8") as file:
        file.write(page.to_html())


def make_page(
    model: Model,
    certificate: Certificate,
    candidates: Sequence[CandidateLine],
    comparison: str,
    notes: Sequence[str],
    config: str,
) -> Page:
    """Put together what the page says."""
    sign = -1.0 if model.settings.costs else 1.0
    ours = model.passive.copy()
    if model.placed.unseen is not None:
        ours[model.placed.unseen] = False
    ours &= ~model.placed.is_terminal
    return Page(
        title="A policy and what may be promised about it",
        sentence=certificate.sentence,
        comparison=comparison,
        numbers=_numbers(certificate),
        warnings=tuple(dict.fromkeys((*certificate.warnings, *notes))),
        figures=_figures(model, certificate, candidates),
        policy=policy_lines(model.mdp, model.placed, certificate.policy, model.passive),
        no_advice=int(np.count_nonzero(ours)),
        candidates=[
            (c.name, sign * c.percentile, sign * c.nominal_return, c.selected) for c in candidates
        ],
        percentile=_percentile_words(model),
        facts=_facts(certificate),
        log=model.counts.summary() if model.settings.costs else model.placed.summary(),
        config=config,
    )


def _numbers(certificate: Certificate) -> dict[str, str]:
    lower, upper = lower_text(certificate.lower_bound, 5), upper_text(certificate.upper_bound, 5)
    reward = certificate.objective == "max"
    numbers = {
        "promised, at least" if reward else "promised, at most": lower if reward else upper,
        "in the nominal model": f"{certificate.nominal_return:.5g}",
    }
    if certificate.robust_return is not None:
        text = lower_text if reward else upper_text
        numbers["worst case of the robust set"] = text(certificate.robust_return, 5)
    if np.isfinite(certificate.gap):
        best = "no policy can be promised more than" if reward else "no policy can be promised less"
        best = best.replace("no policy", certificate.scope)
        numbers[best] = upper if reward else lower
    return numbers


def _figures(
    model: Model, certificate: Certificate, candidates: Sequence[CandidateLine]
) -> list[Figure]:
    tried = model.placed.visits[~model.passive[model.mdp.row_state]]
    rows = check_policy(model.mdp, certificate.policy).rows.astype(np.int64)
    used = model.placed.visits[rows[~model.passive[model.mdp.row_state[rows]]]]
    figures = []
    if model.bayesian:
        figures += _posterior_figures(model, certificate)
        figures.append(_trade(model, candidates))
    return [
        *figures,
        Figure(
            svg=plots.visits(tried, used),
            caption="How often the log shows each state-action pair. A promise is as good as the "
            "data on the pairs that the policy uses.",
        ),
    ]


def _trade(model: Model, candidates: Sequence[CandidateLine]) -> Figure:
    sign, unit = (-1.0, "cost") if model.settings.costs else (1.0, "return")
    points = {
        (sign * c.nominal_return, sign * c.percentile, c.selected)
        for c in candidates
    }  # fmt: skip
    better = "Lower" if model.settings.costs else "Higher"
    return Figure(
        svg=plots.candidates(sorted(points), unit=unit),
        caption=f"The policies considered. {better} up is safer, {'left' if sign < 0 else 'right'} "
        "is better if the model were exactly right.",
    )


def _posterior_figures(model: Model, certificate: Certificate) -> list[Figure]:
    settings = model.settings
    sign, unit = (-1.0, "discounted cost") if settings.costs else (1.0, "discounted return")
    rng, other = streams(settings.seed)[3].spawn(2)
    draws = int(min(DRAWN, max(LEAST, WORK // model.mdp.num_entries)))
    rewards = rewards_of(model.mdp, model.posterior, objective="max")
    rows = check_policy(model.mdp, certificate.policy)
    returns = policy_returns(model.posterior, model.mdp, rows, draws, rng, rewards=rewards)
    marks = [
        ("promise", certificate.promise, plots.ORANGE),
        ("nominal model", certificate.nominal_return, plots.GREEN),
    ]
    curve = guarantee_curve(
        certificate.policy, model.posterior, model.mdp, eta=settings.eta, draws=draws, rng=other
    )
    side = "above" if settings.costs else "below"
    note = f" ({curve.note[0].upper()}{curve.note[1:]})" if curve.note else ""
    return [
        Figure(
            svg=plots.distribution(sign * returns.lower, marks, unit=unit),
            caption=f"The policy's expected {unit} in {draws:,} models drawn from the posterior. "
            f"The promise leaves at most {100 * settings.delta:g}% of the posterior {side} it.",
        ),
        Figure(
            svg=plots.curve(curve.confidence, sign * curve.bound, settings.delta, unit=unit),
            caption="What could be promised about this policy at other confidences; all points "
            f"hold together.{note}",
        ),
    ]


def _percentile_words(model: Model) -> str:
    if not model.bayesian:
        return "The policy is the robust one of the confidence set; its promise is that set's."
    level = 100 * model.settings.delta
    return (
        f"Percentile: the {level:g}% percentile on the draws that chose the policy. It is no "
        "promise: the selected policy was certified on other draws."
    )


def _facts(certificate: Certificate) -> list[tuple[str, str]]:
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
        facts.insert(3, ("seed", certificate.seed))
    return facts
