"""A whole run: read, find, certify, compare, report, all in one folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from surefoot._atomic import move_safely, replacing
from surefoot._cluster_argument import working_on
from surefoot._cores import kept_to, plain_blas
from surefoot._display import MOST_ROWS, Grid, Shown
from surefoot._findings import Finding
from surefoot._rounding import column_texts
from surefoot._workers import OnPart
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.evidence import Behaviour
from surefoot.certificates.optimize import Result
from surefoot.certificates.provenance import posterior_fingerprint
from surefoot.certificates.search import Candidate
from surefoot.data.bins import write_bins
from surefoot.data.counts import Counts
from surefoot.pipeline import promises, run_files, run_work
from surefoot.pipeline.added_log import count_log
from surefoot.pipeline.budget import Budget
from surefoot.pipeline.decision import Advice, Decision
from surefoot.pipeline.figures import from_promise
from surefoot.pipeline.folder import (
    BINS,
    FOUND,
    RETURNS,
    STEPS,
    building,
    check_free,
    check_is_run,
    keep,
    kept,
)
from surefoot.pipeline.honest import model_for
from surefoot.pipeline.journal import Journal, Nobody, Teller
from surefoot.pipeline.machine import machine_memory, memory_words
from surefoot.pipeline.manifest import (
    CONFIG,
    COUNTS,
    EPISODES,
    PARTS,
    check_as_written,
    read_manifest,
    take_stock,
)
from surefoot.pipeline.model import Model
from surefoot.pipeline.option_text import log_words
from surefoot.pipeline.page_content import write_report
from surefoot.pipeline.parts import LogParts, divide_log
from surefoot.pipeline.posteriors import Own, check_own, name_of_own
from surefoot.pipeline.robust import with_robust
from surefoot.pipeline.run_files import lines_of
from surefoot.pipeline.settings import Settings
from surefoot.report.tables import PolicyLine, write_policy, write_policy_json

READING, FINDING = "Reading the log", "Finding and certifying a policy"
"""The stages whose results an interrupted run keeps."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Run(Shown):
    """A finished run: what `run` returns and `load_run` reads.

    Attributes
    ----------
    folder
        Where its files are.
    model
        Settings, counts, model and posterior of the run. With costs, in negative costs.
    certificate
        The promise, in costs if costs were given.
    candidates
        The policies that were considered, in costs if costs were given.
    times
        The seconds of each stage; empty for a run that was read from a folder.

    Examples
    --------
    >>> import tempfile
    >>> from surefoot import Settings, run
    >>> from surefoot.demo import log_path
    >>> settings = Settings(
    ...     log=log_path(), state="condition", action="decision", reward="profit",
    ...     episode="machine", step="week", discount=0.95, draws=500,
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = run(settings, Path(folder, "run"))
    >>> made.policy[0].state, made.policy[0].action
    ('long repair', 'repair')
    >>> made.certificate.promise < made.certificate.nominal_return
    True
    >>> made.action("wear 4").action, made.action(condition="wear 12").known
    ('repair', False)
    """

    folder: Path
    model: Model
    certificate: Certificate
    candidates: tuple[Candidate, ...]
    times: tuple[tuple[str, float], ...] = ()

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return self.model.settings

    @cached_property
    def policy(self) -> tuple[PolicyLine, ...]:
        """What to do in each state that has a choice, by label, with visits and margin."""
        model = self.model
        return tuple(lines_of(model, self.certificate.policy))

    @cached_property
    def advice(self) -> Advice:
        """The policy, ready for questions about many states (`action` asks about one)."""
        return Advice.of(self.model, self.policy, certified=not self.certificate.withheld)

    def action(self, state: Any = None, /, *, step: int | None = None, **columns: Any) -> Decision:
        """Return what to do in a state: the action, how often it was tried, and the log's habit.

        The state is one value, a tuple, a mapping, or ``column=value`` for each state column. For a
        state that the log never shows, the answer has no action and says why.
        """
        if (state is None) == (not columns):
            raise ValueError("give a state, or its columns by name: run.action(level='high').")
        return self.advice.on(columns or state, step)

    @property
    def behaviour(self) -> Behaviour | None:
        """What the log's own decisions earned; None if that is not known."""
        return self.certificate.behaviour

    @property
    def stopped_early(self) -> bool:
        """Whether the time budget ended the search."""
        return self.certificate.has("stopped_early")

    @property
    def comparison(self) -> str:
        """The gain over what was done in the log, in one sentence; "" if none is certified."""
        return self.certificate.gain_sentence

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons for doubt, in sentences."""
        return self.certificate.warnings

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is good to know, in sentences."""
        return self.certificate.notes

    _pictured = True

    def _headline(self) -> str:
        return self.certificate.sentence

    def _facts(self) -> list[tuple[str, str]]:
        report = self.folder / "report.html"
        facts = [("report", str(report)), ("model", repr(self.model.mdp))]
        return [("compared with the log", self.comparison), *facts] if self.comparison else facts

    def _grid(self) -> Grid:
        shown = self.policy[:MOST_ROWS]
        margins = column_texts([line.margin for line in shown], 4)
        steps = self.model.mdp.horizon is not None
        rows = [
            (line.state_text, *((line.steps,) if steps else ()), line.action_text,
             f"{line.visits:,}", margin)
            for line, margin in zip(shown, margins, strict=True)
        ]  # fmt: skip
        head = ("state", *(("steps",) if steps else ()), "action", "tried", "margin")
        return Grid(head=head, rows=rows, total=len(self.policy))

    def _remarks(self) -> tuple[Finding, ...]:
        return self.certificate._remarks()

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.certificate!r})"

    def facts(self) -> dict[str, Any]:
        """Return the result as plain values."""
        import json

        content: dict[str, Any] = json.loads(self.certificate.to_json())
        content.pop("policy")
        return {
            "folder": str(self.folder),
            **content,
            "comparison": self.comparison,
            "stopped_early": self.stopped_early,
            "seconds": dict(self.times),
        }


def run(
    settings: Settings, out: str | Path, *, teller: Teller | None = None, force: bool = False,
    posterior: Own | None = None,
) -> Run:  # fmt: skip
    """Go from a log to a finished run folder, as ``surefoot solve`` does.

    The folder appears when everything in it is complete. If a run was killed, the next call with
    the same settings and log continues it.

    Parameters
    ----------
    settings
        Where the log is, and what to compute.
    out
        The run folder to make.
    teller
        Shows the progress, such as ``surefoot.commands.console.Output()``; None is silent.
    force
        Replace an older run of that name.
    posterior
        A function from counts to a :class:`~surefoot.Posterior` of your own, or one posterior. The
        function gets the counts of the log on all successors taken to be possible (``support``;
        with costs, rewards are negative costs) and returns a posterior on their rows. Pass the same
        to `load_run` and `verify_run`: a folder cannot hold it. None learns one from the log.

    Examples
    --------
    >>> import tempfile
    >>> from surefoot.demo import demo_settings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     settings = replace(demo_settings(), draws=500)
    ...     made = run(settings, Path(folder, "run"))
    ...     sorted(path.name for path in made.folder.iterdir())[:3]
    ['candidates.csv', 'certificate.json', 'config.toml']
    """
    whole = settings.in_full()
    whole.check_complete()  # refuse before reading for minutes
    check_own(whole, posterior)
    folder = Path(out)
    budget = Budget(seconds=whole.time_budget)
    journal = Journal(teller=teller or Nobody())
    check_free(folder, force=force)  # before a long log is hashed
    if whole.add is not None:
        check_is_run(Path(whole.add))
    name = None if posterior is None else name_of_own(posterior)
    begun = building(folder, take_stock(whole, name), whole.to_toml(posterior=name), force=force)
    with begun as (work, remark), computing(whole, journal.parts):
        journal.file = work / "log.txt"
        if remark:
            journal.note(remark)
        made = _stages(whole, work, journal, budget, posterior)
    return replace(made, folder=folder)


def _stages(
    settings: Settings, work: Path, journal: Journal, budget: Budget, own: Own | None
) -> Run:
    counts = _counts(settings, work, journal)
    with journal.stage("Dividing the log"):
        parts = divide_log(settings, counts)
        if parts.buckets is not None and (settings.honest or parts.episodes):
            parts.buckets.save(work / PARTS)  # the log is needed to divide it once more
        if parts.returns is not None:
            parts.returns.save(work / EPISODES)
    with journal.stage("Building the model"):
        model = model_for(settings, counts, parts.buckets, own)
        if own is not None:
            mark = posterior_fingerprint(model.posterior)
            read_manifest(work).with_posterior(mark).write(work)
    journal.note("")
    journal.note(log_words(model.placed, costs=settings.costs))
    journal.note(memory_words(model.mdp.num_entries, *machine_memory()))
    hurried = budget.applied(model)
    journal.foresee(run_work.expected_work(hurried))
    found = _found(hurried, counts, parts, work, journal)
    _record(settings, found.search_steps, work, None if own is None else name_of_own(own))
    if settings.time_budget is not None and found.stopped_early:
        shown = found.certificate.adding(Finding.of("worst_case_left_out"))
    else:
        shown = _completed(hurried, found.certificate, journal)
    run_files.write_certificate(work / "certificate.json", shown)
    with journal.stage("Writing the report", ("report",)):
        write_tables(model, work, shown)
        write_report(model, work, shown, found.candidates)
    journal.note(journal.time_line())
    if late := budget.remark():
        journal.note(late)
    for finding in shown.findings:
        journal.keep(f"{finding.level}: {finding.text}")
    journal.keep(shown.sentence)
    return Run(
        folder=work,
        model=model,
        certificate=shown,
        candidates=found.candidates,
        times=tuple(journal.times),
    )


def _record(settings: Settings, steps: int, work: Path, own: str | None) -> None:
    """Record in the configuration how many steps the clock allowed, for a repetition."""
    if settings.time_budget is None:
        return
    with replacing(work / CONFIG, "w", encoding="utf-8") as file:
        file.write(replace(settings, search_steps=steps).to_toml(posterior=own))


def _counts(settings: Settings, work: Path, journal: Journal) -> Counts:
    stored = work / COUNTS
    if COUNTS in kept(work):
        journal.note("The log was read already; its counts are used.")
        journal.earlier.append(READING)
        return Counts.load(stored)
    with journal.stage(READING):
        earlier = None if settings.add is None else earlier_counts(settings.add)
        counts = count_log(settings, earlier)
        partial = work / "counts.partial"
        counts.save(partial)
        move_safely(partial, stored)
        keep(work, COUNTS)
    # Use what was saved, so that a resumed run sees the same counts.
    return Counts.load(stored)


def earlier_counts(folder: str | Path) -> Counts:
    """Return the counts of an earlier run; refuse them if they were changed after it."""
    place = Path(folder)
    check_is_run(place)
    check_as_written(place, COUNTS)
    return Counts.load(place / COUNTS)


def _found(model: Model, counts: Counts, parts: LogParts, work: Path, journal: Journal) -> Result:
    certificate, candidates, steps = work / FOUND, work / "candidates.csv", work / STEPS
    if {certificate.name, candidates.name, steps.name} <= kept(work):
        stored = run_files.read_certificate(certificate)
        if model.own is None or stored.data_fingerprint == posterior_fingerprint(model.posterior):
            journal.note("The policy was found and certified already.")
            journal.earlier.append(FINDING)
            return Result(
                certificate=run_files.with_returns(work / RETURNS, stored),
                candidates=run_files.read_candidates(candidates),
                selection_draws=0,
                holdout=model.posterior if model.bayesian else None,
                search_steps=int(steps.read_text(encoding="utf-8")),
            )
        journal.note("The posterior has changed: the search for a policy starts again.")
    with journal.stage(FINDING, run_work.FOUND) as stage:
        found = promises.find(model, parts, lambda _, remark: stage.say(remark), counts)
    names = [certificate.name, candidates.name, steps.name]
    run_files.write_candidates(candidates, found.candidates)
    run_files.write_certificate(certificate, found.certificate)
    if from_promise(model, found.certificate):
        run_files.write_returns(work / RETURNS, found.certificate)
        names.append(RETURNS)
    with replacing(steps, "w", encoding="utf-8") as file:
        file.write(str(found.search_steps))
    keep(work, *names)
    return found


def _completed(model: Model, certificate: Certificate, journal: Journal) -> Certificate:
    """Return the certificate with the worst case of a credible set added."""
    with journal.stage("Worst case of a credible set", ("set",)):
        return with_robust(model, certificate, promises.streams(model.settings.seed)[1])


def write_tables(model: Model, work: Path, certificate: Certificate) -> None:
    """Write the policy as CSV and as JSON."""
    lines = lines_of(model, certificate.policy)
    columns = model.settings.columns
    write_policy(work / "policy.csv", lines, columns)
    if model.bins:
        write_bins(work / BINS, model.bins)
    about = {
        "discount": model.mdp.discount,
        "horizon": model.mdp.horizon,
        "objective": certificate.objective,
        "promise": certificate.sentence,
    }
    write_policy_json(work / "policy.json", lines, about, columns)


@contextmanager
def computing(settings: Settings, told: OnPart | None = None) -> Iterator[None]:
    """Use only the processors that the settings allow, and share work with their cluster."""
    with kept_to(settings.threads), plain_blas(), working_on(settings.cluster, told):
        yield
