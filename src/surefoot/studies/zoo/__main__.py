"""Count broken sentences in the zoo and print the table; exit code 3 if some break too often."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from surefoot.studies.zoo.catalogue import DEVELOPMENT, SPLITS
from surefoot.studies.zoo.cells import find_cells
from surefoot.studies.zoo.counting import Record, count, jobs_of
from surefoot.studies.zoo.methods import METHODS, find_method
from surefoot.studies.zoo.table import markdown, tabulate

FAILED = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells asked for; resumes in the same folder."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.studies.zoo", description=__doc__)
    parser.add_argument("--set", choices=(*SPLITS, "all"), default=DEVELOPMENT)
    parser.add_argument("--cells", nargs="+", metavar="NAME", default=None)
    parser.add_argument("--methods", nargs="+", metavar="NAME", default=[next(iter(METHODS))])
    parser.add_argument("--replications", type=int, default=None, help="[each cell's own number]")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    options = parser.parse_args(arguments)
    try:
        cells = find_cells(None if options.set == "all" else options.set, options.cells)
        for name in options.methods:
            find_method(name)
    except ValueError as problem:
        parser.error(str(problem))
    jobs = jobs_of(cells, options.methods, options.replications, options.seed)
    records = count(jobs, options.out, processes=options.processes, told=_tell)
    lines = tabulate(records)
    text = markdown(lines)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if all(line.holds for line in lines) else FAILED


def _tell(record: Record) -> None:
    job = record.job
    false = [f"{told.kind} at {told.delta:g}" for told in record.sentences if told.broken]
    what = f"broken: {', '.join(false)}" if false else "nothing broken"
    sys.stderr.write(
        f"{job.cell}, replication {job.replication}, {job.method}: {what} "
        f"({record.seconds:.1f} s)\n"
    )


if __name__ == "__main__":
    sys.exit(main())
