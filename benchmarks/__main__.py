"""``python -m benchmarks [peers | scale | start]``."""

import argparse
import os

# Before NumPy is loaded: everything here is measured on one thread unless it says otherwise.
for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"


def main() -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        default="peers",
        choices=("peers", "scale", "start"),
        help="peers: one table (the default); scale: a million states; start: first answers",
    )
    parser.add_argument("--repeats", type=int, default=9, help="rounds per case (peers, start)")
    parser.add_argument("--cases", help="some of the cases only, e.g. d200,river500 (peers)")
    parser.add_argument("--states", type=float, default=1e6, help="of the largest model (scale)")
    given = parser.parse_args()
    if given.what == "scale":
        from benchmarks.scale import print_scale

        print_scale(int(given.states))
    elif given.what == "start":
        from benchmarks.start import print_start

        print_start(given.repeats)
    else:
        from benchmarks.comparison import print_comparison

        print_comparison(given.cases.split(",") if given.cases else None, given.repeats)


if __name__ == "__main__":
    main()
