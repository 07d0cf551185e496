"""Certified bounds of small models at the ends of the doubles, against exact rationals.

``python -m benchmarks.extremes [--cases N] [--first N]``: discounts from 0 to .9999, rewards from
1e-12 to 1e12, probabilities down to 5e-324, budgets of 0 and denormals, weights from 1e-150 to
1e150, all algorithms, stopped early or not. Exit code 1: a bound was on the wrong side.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any


def judge(name: str) -> Any:
    """Return a module of the tests, where the exact solutions live."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    return importlib.import_module(name)


def main() -> int:
    """Go through the cases; tell how many were on the wrong side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    models = judge("extreme_models")
    began, bad = time.process_time(), 0
    for done in range(1, options.cases + 1):
        number = options.first + done - 1
        problem = models.wrong_side(models.extreme_case(number))
        if problem:
            bad += 1
            print(f"case {number}: {problem} on the wrong side", flush=True)
        if done % 5000 == 0:
            seconds = time.process_time() - began
            print(f"{done} cases, {bad} on the wrong side, {seconds:.0f} s of CPU", flush=True)
    print(f"{options.cases} cases, {bad} on the wrong side")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
