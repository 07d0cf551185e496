"""The job behind ``surefoot reproduce``: read the options, compute, write the files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot._atomic import clear_leftovers
from surefoot.domains.catalogue import make_domain
from surefoot.pipeline.journal import OnStep
from surefoot.studies.cells import SETTINGS
from surefoot.studies.example_one import example_one, example_table
from surefoot.studies.mismatch_tables import mismatch_tables
from surefoot.studies.posteriors import DIRICHLET
from surefoot.studies.published import BASES, DELTAS, NOMINAL
from surefoot.studies.reproduction import Reproduction, reproduce
from surefoot.studies.reproduction_page import write_page
from surefoot.studies.reproduction_tables import CSV_COLUMNS, csv_rows, tables, write_tables
from surefoot.studies.request import Request
from surefoot.studies.scale_mismatch import Variant, scale_mismatch
from surefoot.studies.table import Table

SETTING_WORDS = {"paper": ("paper", "bernstein"), "valid": ("valid",), "both": SETTINGS}
"""Values of ``--setting``; ``paper`` includes both of its frequentist bounds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WrittenReproduction:
    """What was computed and where it was written."""

    found: Reproduction
    variants: list[Variant]
    written: list[Path]

    @property
    def tables(self) -> list[Table]:
        """All tables, as text."""
        return [*tables(self.found), *other_tables(self.variants)]

    @property
    def facts(self) -> dict[str, Any]:
        """The same numbers with all digits, for JSON."""
        lines = [dict(zip(CSV_COLUMNS, row, strict=True)) for row in csv_rows(self.found)]
        return {
            "lines": lines,
            "scale_mismatch": [asdict(variant) for variant in self.variants],
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
    prior: float | None = None,
    posterior: str = DIRICHLET,
) -> tuple[Request, list[str]]:
    """Return the request, and reasons why domains that were not named are left out.

    Examples
    --------
    >>> read_options("bayesian", ["machine"], None, None, None, 3, "paper")[0].bases
    ('bayesian',)
    >>> read_options("3", None, None, None, None, 3, "both")
    Traceback (most recent call last):
    ...
    ValueError: --table '3'; choose one of bayesian, frequentist, all.
    """
    words = {**{basis: (basis,) for basis in BASES}, "all": BASES}
    bases = _choice("--table", table, words)
    settings = _choice("--setting", setting, SETTING_WORDS)
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
        prior=prior,
        posterior=posterior,
    )
    return request, left_out


def _choice(option: str, given: str, words: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if given not in words:
        raise ValueError(f"{option} {given!r}; choose one of {', '.join(words)}.")
    return words[given]


def reproduce_to(
    folder: Path, request: Request, progress: OnStep | None = None
) -> WrittenReproduction:
    """Compute a request and write CSV, Markdown and the page; cells are cached in ``cells/``."""
    cache = folder / "cells"
    cache.mkdir(parents=True, exist_ok=True)
    clear_leftovers(folder, "reproduction.*")
    clear_leftovers(cache, "*.json")
    found = reproduce(request, cache, progress)
    variants = mismatches(request)
    others = other_tables(variants)
    written = [*write_tables(found, folder, others), write_page(found, folder, others)]
    return WrittenReproduction(found=found, variants=variants, written=written)


def mismatches(request: Request) -> list[Variant]:
    """Return the study of mismatched scales on all requested domains.

    Empty unless there are two data sets, the paper's setting and Dirichlet rows.
    """
    if request.seeds < 2 or "paper" not in request.settings or request.posterior != DIRICHLET:
        return []
    return [
        variant
        for domain in request.worlds.values()
        for variant in scale_mismatch(
            domain, request.seeds, samples=request.samples, draws=request.draws, bases=request.bases
        )
    ]


def other_tables(variants: Sequence[Variant]) -> list[Table]:
    """Return the tables that the paper does not have: mismatched scales, and Example 1."""
    return [*mismatch_tables(variants), example_table(example_one())]
