"""What a run would promise with one setting changed, without reading its log again."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surefoot._atomic import replacing
from surefoot._display import Grid, Shown, number_of
from surefoot._rounding import DIGITS, lower_text, upper_text
from surefoot._workers import current, each_part
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.headlines import steady
from surefoot.data.counts import Counts
from surefoot.data.side_files import label_text
from surefoot.pipeline import promises
from surefoot.pipeline.budget import Budget
from surefoot.pipeline.finished_runs import load_run, stored_parts
from surefoot.pipeline.honest import model_for
from surefoot.pipeline.journal import Nobody, Stage, Teller, Watched
from surefoot.pipeline.model import Model
from surefoot.pipeline.option_text import as_options
from surefoot.pipeline.parts import LogParts
from surefoot.pipeline.posteriors import Own, check_own
from surefoot.pipeline.run_files import lines_of
from surefoot.pipeline.runs import Run, computing, earlier_counts
from surefoot.pipeline.state_names import plain_label
from surefoot.pipeline.variations import Variation, usual_variations, varied
from surefoot.report.tables import PolicyLine, action_words
from surefoot.report.what_if_page import Dot, WhatIfPage
from surefoot.solvers.gpu.choice import choose_engine
from surefoot.solvers.gpu.device import check_device

AS_IT_IS = "as it is"
"""The name of the line for the unchanged run."""
ALONE = (
    "Each number holds alone, at the confidence of its own line, not all of them at once. Picking "
    "a line for its number is one more choice, and nothing was subtracted for that: decide first "
    "what is right, then solve with it."
)

NO_DISCOUNT = "All steps count equally, so there is no discount to vary."
OF_EPISODES = ("past_matters", "steps_alike", "steps_differ")
"""Findings from whole episodes, which a run folder does not keep."""

WHOLE_LINES = 50_000
"""For models with up to this many entries, each worker of a cluster solves whole lines in its own
memory; lines of larger models are shared among the workers as a run is."""

ActionChange = tuple[Hashable, Hashable, Hashable]
"""A state, the run's action there, and the new action there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WhatIfLine:
    """One changed setting and what follows from it.

    Attributes
    ----------
    variation
        What was changed; None for the run as it is.
    certificate
        What `surefoot solve` would certify; None if it would refuse.
    discount, horizon
        The discount of the line, and the most steps that count; None for no limit.
    changes
        The states in which its policy differs from the run's.
    refused
        Why there is no certificate; "" if there is one.
    """

    variation: Variation | None
    certificate: Certificate | None
    discount: float
    horizon: int | None = None
    changes: tuple[ActionChange, ...] = ()
    refused: str = ""

    @property
    def words(self) -> str:
        """What was changed, in a few words."""
        return AS_IT_IS if self.variation is None else self.variation.words

    @property
    def per_step(self) -> float | None:
        """The promise as a constant amount per step, which makes discounts comparable.

        None if there is no promise, or if the number of steps is not known.
        """
        return None if self.certificate is None else self.each(self.certificate.promise)

    def each(self, amount: float) -> float | None:
        """Return an amount as a constant amount per step; None without discount and horizon."""
        endless = self.discount == 1.0 and self.horizon is None
        return None if endless else steady(amount, self.discount, self.horizon)

    @property
    def certified(self) -> bool:
        """Whether there is a promise and no failed check withdrew it."""
        return self.certificate is not None and not self.certificate.withheld

    def to_mapping(self) -> dict[str, Any]:
        """Return the line as plain values."""
        one, change = self.certificate, self.variation
        limit = None if one is None else _limit(one)
        return {
            "setting": None if change is None else change.setting,
            "value": None if change is None else plain_label(change.value),
            "promise": None if one is None else one.promise,
            "limit": limit,
            "per_step": self.per_step,
            "certified": self.certified,
            "policy_changes": [[plain_label(part) for part in change] for change in self.changes],
            "refused": self.refused or None,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WhatIf(Shown):
    """The lines of a what-if table: first the run as it is, then one changed setting each.

    Attributes
    ----------
    run
        The run that is varied.
    lines
        In the order in which they were requested.
    """

    run: Run
    lines: tuple[WhatIfLine, ...]

    HEAD = ("", "promise", "limit", "per step", "policy changes in")

    @property
    def objective(self) -> str:
        """Whether the promise is a lower bound on rewards ("max") or an upper bound on costs."""
        return self.run.certificate.objective

    @property
    def undiscounted(self) -> bool:
        """Whether no line has a discount below 1."""
        return all(line.discount == 1.0 for line in self.lines)

    def _safe(self, value: float, digits: int = DIGITS) -> str:
        return (lower_text if self.objective == "max" else upper_text)(value, digits)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table as text; promises are rounded in the direction in which they still hold."""
        safe, other = self._safe, upper_text if self.objective == "max" else lower_text
        rows: list[tuple[str, ...]] = []
        for line in self.lines:
            one, per_step = line.certificate, line.per_step
            if one is None:
                rows.append((line.words, "refused", "", "", as_options(line.refused)))
                continue
            limit = _limit(one)
            withheld = " (NOT CERTIFIED)" if one.withheld else ""
            changed = number_of(len(line.changes), "state") if line.changes else "-"
            rows.append(
                (
                    line.words,
                    f"{safe(one.promise)}{withheld}",
                    "" if limit is None else other(limit),
                    "" if per_step is None else safe(per_step, 4),
                    changed,
                )
            )
        return rows

    def _headline(self) -> str:
        return f"What if: {self.run.folder}"

    def _grid(self) -> Grid:
        return Grid(head=self.HEAD, rows=self.rows, total=len(self.lines))

    def _remarks(self) -> tuple[str, ...]:
        return (ALONE, NO_DISCOUNT) if self.undiscounted else (ALONE,)

    def __repr__(self) -> str:
        return f"WhatIf({str(self.run.folder)!r}, {number_of(len(self.lines), 'line')})"

    def page(self) -> WhatIfPage:
        """Return the table as a page with a picture of the promises per step."""
        unit = self.run.settings.unit
        kind = "cost" if self.objective == "min" else "return"
        kind = kind if self.undiscounted else f"discounted {kind}"
        measured = f" in {unit}" if unit else ""
        counted = self.lines[0].per_step is not None
        dots = [
            Dot(
                words=line.words,
                promise=promise,
                text=self._safe(promise, 4),
                limit=limit if limit is None or not counted else line.each(limit),
                certified=line.certified,
            )
            for line in self.lines
            if (one := line.certificate) is not None
            and (promise := line.per_step if counted else one.promise) is not None
            for limit in [_limit(one)]
        ]
        return WhatIfPage(
            title="What if",
            subtitle=f"One setting of {self.run.folder.name} changed at a time. Each line is what "
            "a new run with it would find.",
            alone=" ".join(self._remarks()),
            head=self.HEAD,
            rows=self.rows,
            dots=dots,
            limit=self.run.certificate.limit_sentence("the limit"),
            axis=f"{kind} {'per step' if counted else 'until the end'}{measured}",
            changes=[
                (line.words, *(label_text(part) for part in change))
                for line in self.lines
                for change in line.changes
            ],
        )

    def write_page(self, path: Path) -> None:
        """Write the page as HTML."""
        with replacing(path, "w", encoding="utf-8") as file:
            file.write(self.page().to_html())

    def to_mapping(self) -> dict[str, Any]:
        """Return the table as plain values."""
        return {
            "run": str(self.run.folder),
            "objective": self.objective,
            "note": " ".join(self._remarks()),
            "lines": [line.to_mapping() for line in self.lines],
        }


def what_if(
    run: Run | str | Path,
    *,
    discount: Sequence[float] = (),
    delta: Sequence[float] = (),
    forbidden: Sequence[Hashable] = (),
    prior: Sequence[float] = (),
    unseen: Sequence[str] = (),
    posterior: Own | None = None,
    teller: Teller | None = None,
    cluster: str | None = None,
    device: str | None = None,
) -> WhatIf:
    """Solve a run again with one setting changed at a time; its log is not read.

    Every line is what a new `run` with that setting would find, to the last digit. That takes a
    search for each line. Whether the past of an episode matters is not tested again: if that test
    failed for the run, the promises of all lines are withdrawn.

    Parameters
    ----------
    run
        A run, or the folder of one.
    discount, delta, prior, unseen
        Other values of these settings, one line each. If nothing at all is given, the usual
        variations are computed.
    forbidden
        Actions that may no longer be used, one at a time; a state without another action keeps it.
    posterior
        The posterior that `run` was given, if any: a folder cannot hold it, but a `Run` does.
    teller
        Shows the progress; None is silent.
    cluster
        Where the work is done, as for `certify`. The answer is the same, bit for bit.
    device
        Where draws are made and evaluated, as for `certify`; None: as in the run. Lines made on
        another device have other draws.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from surefoot import run
    >>> from surefoot.demo import demo_settings
    >>> with tempfile.TemporaryDirectory() as place:
    ...     made = run(replace(demo_settings(), draws=500, eta=0.01), Path(place, "run"))
    ...     own, other = what_if(made, delta=[0.2]).lines
    >>> own.certificate.promise < other.certificate.promise
    True
    """
    given = {"discount": discount, "delta": delta, "forbidden": forbidden, "prior": prior,
             "unseen": unseen}  # fmt: skip
    asked = [Variation(setting=name, value=value) for name, some in given.items() for value in some]
    own = run.model.own if posterior is None and isinstance(run, Run) else posterior
    made = load_run(run.folder if isinstance(run, Run) else run, posterior=own)
    if device is not None:
        settings = replace(made.settings, device=check_device(device))
        made = replace(made, model=replace(made.model, settings=settings))
    asked = asked or usual_variations(made)
    counts = earlier_counts(made.folder)
    parts = stored_parts(made.settings, made.folder, counts)
    own_line = WhatIfLine(
        variation=None,
        certificate=made.certificate,
        discount=made.settings.discounted,
        horizon=made.settings.horizon,
    )
    with (
        (teller or Nobody()).stage("Solving again", len(asked)) as stage,
        computing(replace(made.settings, cluster=cluster), Watched(stage).parts),
    ):
        if made.model.bayesian and made.settings.device == "gpu":  # fail once if there is none
            choose_engine(made.settings.device, made.model.mdp, made.model.posterior)
        found = dict(_lines(made, asked, counts, parts, stage))
    return WhatIf(run=made, lines=(own_line, *(found[i] for i in range(len(asked)))))


def _lines(
    made: Run, asked: Sequence[Variation], counts: Counts, parts: LogParts, stage: Stage
) -> Iterator[tuple[int, WhatIfLine]]:
    """Yield index and line of each variation, in the order in which they are done."""
    if not _by_workers(made):
        for i, one in enumerate(asked):
            stage.update(i, one.words)
            yield i, _line(made, counts, parts, one)
        return
    # Workers make draws on the CPU, as they do for a run.
    on_cores = replace(made.model, settings=replace(made.settings, device="cpu"))
    shared = (replace(made, model=on_cores), counts, parts)
    lines = each_part(_line, shared, [(one,) for one in asked])
    for done, (place, line) in enumerate(lines, start=1):
        stage.update(done, asked[place].words)
        yield place, line


def _by_workers(made: Run) -> bool:
    """Return whether workers can solve whole lines: they have the run, but not its side files."""
    settings = made.settings
    fits = made.model.mdp.num_entries <= WHOLE_LINES and settings.device != "gpu"
    return current() is not None and fits and not settings.side_files()


def _line(made: Run, counts: Counts, parts: LogParts, variation: Variation) -> WhatIfLine:
    discount = made.settings.discounted
    try:
        with tempfile.TemporaryDirectory() as scratch:
            settings = varied(made.model, variation, Path(scratch))
            discount = settings.discounted
            settings.check_complete()
            check_own(settings, made.model.own)
            model = model_for(settings, counts, parts.buckets, made.model.own)
            hurried = Budget(seconds=settings.time_budget).applied(model)
            found = promises.find(hurried, parts, lambda _done, _remark: None, counts)
    except ValueError as problem:
        return WhatIfLine(
            variation=variation, certificate=None, discount=discount,
            horizon=made.settings.horizon, refused=str(problem),
        )  # fmt: skip
    carried = [one for one in made.certificate.findings if one.code in OF_EPISODES]
    certificate = found.certificate.adding(*carried)
    return WhatIfLine(
        variation=variation,
        certificate=certificate,
        discount=discount,
        horizon=made.settings.horizon,
        changes=_changes(made, model, certificate),
    )


def _changes(made: Run, model: Model, certificate: Certificate) -> tuple[ActionChange, ...]:
    """Return where a policy differs from the run's, in the order of the run's policy."""
    lines = lines_of(model, certificate.policy)
    own, other = _actions(made.policy), _actions(lines)
    return tuple(
        (state, action, other[state])
        for state, action in own.items()
        if state in other and other[state] != action
    )


def _actions(lines: Sequence[PolicyLine]) -> Mapping[Hashable, Hashable]:
    """Return what to do in each state, in words if it depends on the step."""
    if any(line.first_step for line in lines):
        return action_words(lines)
    return {line.state: line.action for line in lines}


def _limit(certificate: Certificate) -> float | None:
    reward = certificate.objective == "max"
    limit = certificate.upper_bound if reward else certificate.lower_bound
    return float(limit) if np.isfinite(limit) else None
