"""The job behind ``surefoot reproduce``: read the options, compute, write the files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot.domains.catalogue import make_domain
from surefoot.studies.cells import SETTINGS
from surefoot.studies.published import BASES, DELTAS, NOMINAL
from surefoot.studies.reproduction import Progress, Reproduction, Request, reproduce
from surefoot.studies.reproduction_page import write_page
from surefoot.studies.reproduction_tables import CSV_COLUMNS, Table, csv_rows, tables, write_tables
from surefoot.studies.scale_mismatch import Finding, scale_mismatch


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """What was computed and where it was written."""

    found: Reproduction
    findings: list[Finding]
    written: list[Path]

    @property
    def tables(self) -> list[Table]:
        """All tables, as text."""
        return tables(self.found)

    @property
    def facts(self) -> dict[str, Any]:
        """The same with all digits, for JSON."""
        lines = [dict(zip(CSV_COLUMNS, row, strict=True)) for row in csv_rows(self.found)]
        return {
            "lines": lines,
            "scale_mismatch": [asdict(finding) for finding in self.findings],
            "seconds": {
                f"{domain}, {setting}": stages
                for (domain, setting), stages in self.found.seconds.items()
            },
            "written": [str(path) for path in self.written],
        }


def read_options(
    table: str,
    domains: Sequence[str] | None,
    deltas: Sequence[float] | None,
    samples: int | None,
    draws: int | None,
    seeds: int,
    setting: str,
) -> tuple[Request, list[str]]:
    """Return what the options ask for, and why domains not asked for by name are left out.

    Examples
    --------
    >>> read_options("bayesian", ["machine"], None, None, None, 3, "paper")[0].bases
    ('bayesian',)
    >>> read_options("3", None, None, None, None, 3, "both")
    Traceback (most recent call last):
    ...
    ValueError: --table '3'; choose one of bayesian, frequentist, all.
    """
    bases = _choice("--table", table, BASES, "all")
    settings = _choice("--setting", setting, SETTINGS, "both")
    left_out = []
    chosen = tuple(dict.fromkeys(domains or NOMINAL))
    if not domains:
        try:
            make_domain("cartpole")
        except ImportError as problem:
            left_out.append(f"{problem} It is left out.")
            chosen = tuple(name for name in chosen if name != "cartpole")
    request = Request(
        bases=bases,
        domains=chosen,
        deltas=tuple(dict.fromkeys(deltas or DELTAS)),
        settings=settings,
        seeds=seeds,
        samples=samples,
        draws=draws,
    )
    return request, left_out


def _choice(option: str, given: str, choices: tuple[str, ...], every: str) -> tuple[str, ...]:
    if given == every:
        return choices
    if given not in choices:
        raise ValueError(f"{option} {given!r}; choose one of {', '.join((*choices, every))}.")
    return (given,)


def reproduce_to(folder: Path, request: Request, progress: Progress | None = None) -> Job:
    """Compute what is asked for and write CSV, Markdown and the page; cells go to ``cells/``."""
    cache = folder / "cells"
    cache.mkdir(parents=True, exist_ok=True)
    found = reproduce(request, cache, progress)
    findings: list[Finding] = []
    if "riverswim" in request.domains and "bayesian" in request.bases and request.seeds > 1:
        findings = scale_mismatch(request.seeds)
    written = [*write_tables(found, folder), write_page(found, folder, findings)]
    return Job(found=found, findings=findings, written=written)
