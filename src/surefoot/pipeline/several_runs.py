"""One page about several finished runs."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from surefoot._atomic import replacing
from surefoot.pipeline.finished_runs import load_run
from surefoot.pipeline.runs import Run
from surefoot.report.runs_page import RunFacts, runs_page
from surefoot.report.tables import action_words

PLACES = ("log", "add", "threads", "cluster", "strict")
"""Settings about where a run came from or how it was computed, not about the question."""


def compare_report(folders: Sequence[str | Path], out: str | Path) -> Path:
    """Write a page about several runs: promises, data, settings, and where the rules differ.

    Examples
    --------
    >>> compare_report(["one"], "page.html")
    Traceback (most recent call last):
    ...
    ValueError: a comparison needs at least two runs, got 1.
    """
    if len(folders) < 2:
        raise ValueError(f"a comparison needs at least two runs, got {len(folders)}.")
    named = zip(_names([Path(folder) for folder in folders]), folders, strict=True)
    page = runs_page({name: _facts(load_run(folder)) for name, folder in named})
    with replacing(out, "w", encoding="utf-8") as file:
        file.write(page.to_html())
    return Path(out)


def _names(folders: Sequence[Path]) -> list[str]:
    """Return names that tell the folders apart: the last part of the path, or more if needed."""
    parts = [folder.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        raise ValueError("the same run folder is named twice.")
    depth = 1
    while len({part[-depth:] for part in parts}) < len(parts):
        depth += 1
    return ["/".join(part[-depth:]) for part in parts]


def _facts(run: Run) -> RunFacts:
    counts = run.model.counts
    tried = counts.visits[counts.visits > 0]
    settings = run.settings
    given = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return RunFacts(
        certificate=run.certificate,
        discount=run.model.mdp.discount,
        actions=action_words(run.policy),
        columns=settings.columns.state,
        settings={n: _text(value) for n, value in given.items() if n not in PLACES},
        transitions=float(counts.count.sum()),
        states=counts.num_states,
        pairs=len(tried),
        least=float(tried.min()) if len(tried) else 0.0,
    )


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
