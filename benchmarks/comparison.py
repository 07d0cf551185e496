"""Print the table of all contenders on all cases."""

from collections.abc import Sequence

from benchmarks.cases import CASES
from benchmarks.contenders import Contender
from benchmarks.peers import CONTENDERS, HIGHS_ROWS, YARDSTICK
from benchmarks.table import HEADINGS, compare, render
from benchmarks.timing import describe_machine

DISCOUNTS = (0.95, 0.99)

NOTES = f"""\
Cells hold discount {DISCOUNTS[0]} / {DISCOUNTS[1]}. Seconds: processor time, median, one thread, \
tolerance 1e-6, model build excluded. Ratio: to {YARDSTICK.name}, in the same run.
Certified error: a proved bound, rounding included. True error: against an exact linear solve, \
bracketed by weak duality and feasibility without our kernels.
HiGHS: {HIGHS_ROWS} rows timed and scaled to all; its error is that of these rows. Storm: reward \
until absorbed; asked for 1e-6, it falls back to plain value iteration."""


def print_comparison(
    names: Sequence[str] | None, repeats: int, contenders: Sequence[Contender] = CONTENDERS
) -> None:
    """Run everything and print one table."""
    unknown = set(names or ()) - set(CASES)
    if unknown:
        raise SystemExit(f"unknown case {', '.join(unknown)}; choose from {', '.join(CASES)}.")
    cases = {name: build for name, build in CASES.items() if names is None or name in names}
    lines = compare(cases, DISCOUNTS, contenders, YARDSTICK.name, repeats)
    print(render(HEADINGS, lines))
    print(NOTES)
    print(describe_machine())
    if not all(one.installed for one in contenders):
        print("Missing peers come with: uv run --group bench python -m benchmarks")
