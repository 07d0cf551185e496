"""From a finished run to its page."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surefoot._atomic import replacing
from surefoot._display import number_of
from surefoot._rounding import bracket_text, lower_text, near_text, upper_text
from surefoot.certificates import planning
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curve import curve_of
from surefoot.certificates.optimize import Candidate
from surefoot.data.conversions import initial_distribution
from surefoot.data.summary import describe
from surefoot.model.checks import discount_text
from surefoot.model.policies import check_policy
from surefoot.pipeline.model import Model
from surefoot.pipeline.promising import streams
from surefoot.pipeline.wording import as_options
from surefoot.report import plots
from surefoot.report.page import Figure, Page
from surefoot.report.tables import policy_lines
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of

DRAWN, LEAST = 20_000, 2000
"""Draws behind the figures."""
WORK = 5e9
"""Fewer draws where they would take more operations than this (a few seconds)."""
FEW = 2
"""With no more different candidates than this, the table alone will do."""


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
    ours = model.passive.copy()
    if model.placed.unseen is not None:
        ours[model.placed.unseen] = False
    ours &= ~model.placed.is_terminal
    return Page(
        title="A policy and what may be promised about it",
        subtitle=_subtitle(model),
        sentence=certificate.sentence,
        comparison=certificate.gain_sentence,
        numbers=_numbers(certificate),
        warnings=tuple(map(as_options, certificate.warnings)),
        notes=tuple(map(as_options, certificate.notes)),
        assumptions=_assumptions(model, certificate),
        figures=_figures(model, certificate, candidates),
        policy=policy_lines(
            model.mdp,
            model.placed,
            certificate.policy,
            model.passive,
            by_step=model.settings.by_step,
        ),
        no_advice=int(np.count_nonzero(ours)),
        candidates=_grouped(certificate, candidates),
        percentile=_percentile_words(model),
        facts=_facts(certificate),
        log=_log_lines(model),
        config=config,
    )


def _subtitle(model: Model) -> str:
    log = model.counts.log
    names = [Path(name).name for name in log.names] if log is not None else []
    source = f" in {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}" if names else ""
    seen = number_of(int(model.counts.count.sum()), "transition")
    return f"From {seen}{source}. {_what_counts(model)}"


def _what_counts(model: Model) -> str:
    discount, horizon = model.mdp.discount, model.mdp.horizon
    shown = discount_text(discount)
    per_step = "No discount." if discount == 1.0 else f"Discount {shown} per step."
    if horizon is None:
        return per_step
    final = ", and what the last state is worth" if model.mdp.final_reward is not None else ""
    return f"At most {number_of(horizon, 'step')} count{final}. {per_step}"


def _unit(model: Model) -> str:
    word = "cost" if model.settings.costs else "return"
    return word if model.mdp.discount == 1.0 else f"discounted {word}"


def _numbers(certificate: Certificate) -> dict[str, str]:
    lower, upper = bracket_text(certificate.lower_bound, certificate.upper_bound)
    reward = certificate.objective == "max"
    numbers = {"promised, at least" if reward else "promised, at most": lower if reward else upper}
    if np.isfinite(certificate.gap):
        limit = f"{certificate.scope} can be promised {'more' if reward else 'less'} than"
        numbers[limit] = upper if reward else lower
    numbers["in the nominal model"] = near_text(certificate.nominal_return)
    gain = None if certificate.gain is None else certificate.gain.lower_bound
    if gain is not None and gain >= 0:
        words = f"{'more' if reward else 'less'} than what was done in the log, at least"
        numbers[words] = lower_text(gain, 4)
    return numbers


def _assumptions(model: Model, certificate: Certificate) -> list[str]:
    """Return what a reader must believe for the promise to mean something to them."""
    if model.bayesian:
        basis = f"The prior: {model.posterior.prior_words}, the same for every row."
    else:
        basis = "No prior: the promise holds whatever the true model on the stated successors."
    given = [f"{text[:1].upper()}{text[1:]}." for text in certificate.assumptions]
    return [
        "What comes next depends on the present state and action alone, and goes on as in the log.",
        basis,
        *given,
        f"The first state is drawn from: {_first_state(model)}.",
        f"The promise is about the average over many runs{_discounted(model)}; one run may do "
        "worse.",
    ]


def _discounted(model: Model) -> str:
    return "" if model.mdp.discount == 1.0 else ", discounted"


def _first_state(model: Model) -> str:
    initial = model.settings.initial
    if initial in (None, "episodes", "uniform"):
        return initial_distribution(model.placed, initial).origin
    return f"the distribution in {Path(initial).name}"


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


def _figures(
    model: Model, certificate: Certificate, candidates: Sequence[Candidate]
) -> list[Figure]:
    tried = model.placed.visits[~model.passive[model.mdp.row_state]]
    rows = check_policy(model.mdp, certificate.policy).rows.astype(np.int64)
    used = model.placed.visits[rows[~model.passive[model.mdp.row_state[rows]]]]
    figures = []
    if model.bayesian:
        figures += _posterior_figures(model, certificate)
        if len({(c.nominal_return, c.percentile) for c in candidates}) > FEW:
            figures.append(_trade(model, candidates))
    else:
        figures.append(_bracket(model, certificate))
    return [
        *figures,
        Figure(
            svg=plots.visits(tried, used),
            caption="How often the log shows each state-action pair. A promise is as good as the "
            "data on the pairs that the policy uses.",
        ),
    ]


def _marks(certificate: Certificate) -> list[tuple[str, float, str]]:
    reward = certificate.objective == "max"
    limit = certificate.upper_bound if reward else certificate.lower_bound
    marks = [
        ("promise", certificate.promise, plots.ORANGE),
        ("nominal model", certificate.nominal_return, plots.GREEN),
    ]
    return [*marks, ("limit", limit, plots.GREY)] if np.isfinite(limit) else marks


def _bracket(model: Model, certificate: Certificate) -> Figure:
    unit = _unit(model)
    return Figure(
        svg=plots.bracket(_marks(certificate), unit=unit),
        caption="The promise is the policy's worst case over all models of the confidence set, the "
        "limit the best that any policy could reach in one of them.",
    )


def _trade(model: Model, candidates: Sequence[Candidate]) -> Figure:
    unit = "cost" if model.settings.costs else "return"
    points = {(c.nominal_return, c.percentile, c.selected) for c in candidates}
    safer, better = ("down", "left") if model.settings.costs else ("up", "right")
    return Figure(
        svg=plots.candidates(sorted(points), unit=unit),
        caption=f"The policies considered. Further {safer} is safer, further {better} is better if "
        "the model were exactly right.",
    )


def _posterior_figures(model: Model, certificate: Certificate) -> list[Figure]:
    settings = model.settings
    sign, unit = -1.0 if settings.costs else 1.0, _unit(model)
    rng = streams(settings.seed)[3]
    rewards = rewards_of(model.mdp, model.posterior, objective="max")
    rows = check_policy(model.mdp, certificate.policy)
    work = planning.policy_work(model.mdp, rewards, rows)
    draws = planning.affordable_draws(work, LEAST, DRAWN, WORK)
    returns = policy_returns(model.posterior, model.mdp, rows, draws, rng, rewards=rewards)
    known = np.isfinite(certificate.gap)
    ends = (certificate.lower_bound, certificate.upper_bound) if known else None
    curve = curve_of(returns, eta=settings.eta)
    side = "above" if settings.costs else "below"
    note = f" ({curve.note[0].upper()}{curve.note[1:]})" if curve.note else ""
    return [
        Figure(
            svg=plots.distribution(
                sign * returns.lower, _marks(certificate), unit=unit, bracket=ends
            ),
            caption=f"The policy's expected {unit} in {draws:,} models drawn from the posterior. "
            f"The promise leaves at most {100 * settings.delta:g}% of the posterior {side} it; "
            f"{certificate.scope} can be promised what lies beyond the limit.",
        ),
        Figure(
            svg=plots.curve(
                curve.confidence,
                sign * (curve.bound - certificate.taken_off),
                settings.delta,
                unit=unit,
            ),
            caption="What could be promised about this policy at other confidences, with the same "
            f"taken off for luck and first state; all points hold together.{note}",
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
