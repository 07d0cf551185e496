"""Certified bounds of small models at the ends of the doubles, against exact rationals.

``python -m benchmarks.extremes [--cases N] [--medium N] [--long N] [--first N]``: discounts from
0 to .9999, rewards from 1e-12 to 1e12, probabilities down to 5e-324, budgets of 0 and denormals,
weights from 1e-150 to 1e150, all algorithms, stopped early or not. Then models of tens of states
against fifty digits, and rows of 100,000 successors. Exit code 1: a bound was on the wrong side.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def judge(name: str) -> Any:
    """Return a module of the tests, where the exact solutions live."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    return importlib.import_module(name)


def go_through(title: str, numbers: range, wrong_side: Callable[[int], str]) -> int:
    """Try some cases; tell and return how many were on the wrong side."""
    began, bad = time.process_time(), 0
    for done, number in enumerate(numbers, start=1):
        problem = wrong_side(number)
        if problem:
            bad += 1
            print(f"{title} case {number}: {problem} on the wrong side", flush=True)
        if done % 5000 == 0 or done == len(numbers):
            seconds = time.process_time() - began
            print(
                f"{title}: {done} cases, {bad} on the wrong side, {seconds:.0f} s of CPU",
                flush=True,
            )
    return bad


def main() -> int:
    """Go through the cases; tell how many were on the wrong side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--medium", type=int, default=1000)
    parser.add_argument("--long", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    models = judge("extreme_models")
    first = options.first
    small, medium, long = (
        range(first, first + n) for n in (options.cases, options.medium, options.long)
    )
    bad = go_through("small", small, lambda n: models.wrong_side(models.extreme_case(n)))
    bad += go_through("medium", medium, lambda n: models.medium_wrong_side(models.medium_case(n)))
    bad += go_through("long rows", long, models.long_row_wrong_side)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
