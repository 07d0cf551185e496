"""The study of mismatched scales as short and full tables, and as a command."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated

import typer

from surefoot.studies.options import Domains
from surefoot.studies.published import DELTAS, Method
from surefoot.studies.scale_mismatch import Variant, misses, scale_mismatch
from surefoot.studies.table import Row, Table, markdown_section, number_text

HEAD = (
    "sets", "weights", "delta", "published", "ours (mean)", "sd", "off by", "claimed",
    "model inside",
)  # fmt: skip


def mismatch_tables(found: Sequence[Variant]) -> list[Table]:
    """Return two tables for every domain."""
    made = []
    for domain, own in groupby(found, key=lambda one: one.domain):
        variants = list(own)
        made += [short_table(domain, variants), full_table(domain, variants)]
    return made


def short_table(domain: str, found: Sequence[Variant]) -> Table:
    """Return published, mismatched and consistent numbers of each method, at both deltas."""
    deltas = " / ".join(f"{delta:g}" for delta in DELTAS)
    claimed = f"{1 - min(DELTAS):g} claimed"
    head = (
        "method", "published", "mismatched weights", "the same weights for both",
        f"inside, mismatched ({claimed})", f"inside, the same ({claimed})",
    )  # fmt: skip
    title = f"{domain}: weights that do not fit their budgets, delta {deltas}, {_data_sets(found)}"
    methods = dict.fromkeys(one.method for one in found)
    rows = [_short_row(method, [o for o in found if o.method == method]) for method in methods]
    return Table(title, head, rows, tuple(_verdicts(found)))


def _short_row(method: Method, found: Sequence[Variant]) -> Row:
    mismatched = [one for one in found if one.variant == "mismatched"]
    same = [one for one in found if one.variant != "mismatched"]
    printed = " / ".join(number_text(one.published) for one in same)
    means = (" / ".join(number_text(o.mean) for o in sets) for sets in (mismatched, same))
    inside = (f"{sets[-1].coverage:.2f}" if sets else "" for sets in (mismatched, same))
    return (method.title, printed, *means, *inside)


def _data_sets(found: Sequence[Variant]) -> str:
    return f"{found[0].data_sets} data sets"


def _verdicts(found: Sequence[Variant]) -> list[str]:
    """Return sentences on which published optimised numbers the mismatch reproduces."""
    known = [one for one in found if one.variant == "mismatched" and one.published is not None]
    if not known:
        return []
    missed = misses(known)
    said = [
        f"The mismatch gives {len(known) - len(missed)} of the {len(known)} published optimised "
        "numbers, within two standard deviations or a tenth."
    ]
    if missed:
        said.append(f"It does not explain {'; '.join(_misses_in_words(missed))}.")
    return said


def _misses_in_words(missed: Sequence[Variant]) -> Iterator[str]:
    for method, group in groupby(missed, key=lambda one: one.method):
        own = list(group)
        means, printed, deltas = (
            " / ".join(texts)
            for texts in (
                [number_text(one.mean) for one in own],
                [number_text(one.published) for one in own],
                [f"{one.delta:g}" for one in own],
            )
        )
        yield f"{method.title} (delta {deltas}): {means} where the paper prints {printed}"


def full_table(domain: str, found: Sequence[Variant]) -> Table:
    """Return every variant with its spread and coverage."""
    title = f"{domain}: every variant, {_data_sets(found)}"
    return Table(title, HEAD, [_row(one) for one in found])


def _row(one: Variant) -> Row:
    weights = one.variant if one.variant == "uniform" else f"{one.method.weights}, {one.variant}"
    off = one.difference if one.variant != "consistent" else None
    return (
        one.method.sets, weights, f"{one.delta:g}", number_text(one.published),
        number_text(one.mean), number_text(one.sd), "" if off is None else f"{100 * off:+.0f}%",
        f"{1 - one.delta:g}", f"{one.coverage:.3f}",
    )  # fmt: skip


def command(
    domain: Domains = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=2, help="Data sets.")] = 12,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="Per pair. [20; RiverSwim 500 and 590]")
    ] = None,
    draws: Annotated[
        int | None, typer.Option(metavar="N", help="Posterior draws. [20; RiverSwim 1000]")
    ] = None,
) -> None:
    """Compare weights that do not match their budgets: published, mismatched and consistent."""
    for name in domain or ["riverswim"]:
        found = scale_mismatch(name, seeds, samples=samples, draws=draws)
        for table in mismatch_tables(found):
            typer.echo("\n".join(markdown_section(table)))
