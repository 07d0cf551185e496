"""Coverage-guided fuzzing of everything our own code parses.

``uv run --with atheris python -m benchmarks.fuzz [TARGET ...] [--seconds N]``: N seconds for each
target (all of ``fuzz_targets.TARGETS``, and typed Parquet, by default). An input that ends in
anything but a refusal in one sentence is kept in ``benchmarks/corpus/TARGET``, where a test reads
it ever after. Exit code 1: something was found.
"""

import argparse
import functools
import hashlib
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
SOURCE = Path(__file__).parents[1] / "src"
LONGEST = 8192


class Finds:
    """Runs a target on inputs until its time is over; keeps the first input of every bug."""

    def __init__(self, name: str, test: Callable[[bytes], None], new: Path, seconds: float) -> None:
        self.name, self.test, self.new = name, test, new
        self.ends = time.monotonic() + seconds
        self.kinds: set[tuple[str, int]] = set()
        self.tried = 0

    def __call__(self, data: bytes) -> None:
        """Try one input."""
        if time.monotonic() > self.ends:
            self.end()
        self.tried += 1
        try:
            self.test(data)
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]
            self.found(data, problem, (last.filename, last.lineno or 0))

    def found(self, data: bytes, problem: Exception, kind: tuple[str, int]) -> None:
        """Keep an input that ended in a bug, unless another one did in the same line."""
        if kind in self.kinds:
            return
        self.kinds.add(kind)
        place = CORPUS / self.name / f"found-{hashlib.sha256(data).hexdigest()[:8]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        print(f"{self.name}: {problem!r} at {kind[0]}:{kind[1]}, kept as {place.name}")
        traceback.print_exc()

    def end(self) -> None:
        """Tell what was tried, and end this process: the fuzzer itself never returns."""
        reached = sorted(self.new.iterdir(), key=lambda path: path.stat().st_size)
        bugs = len(self.kinds)
        print(f"{self.name}: {self.tried} inputs, {len(reached)} reached new code, {bugs} bugs")
        _keep_some(reached, CORPUS / self.name)
        shutil.rmtree(self.new.parent, ignore_errors=True)
        sys.stdout.flush()
        os._exit(min(bugs, 1))


def instrument() -> None:
    """Import what is fuzzed so that its coverage is watched."""
    import atheris

    # Not the kernels: Numba compiles their bytecode as it is.
    kernels = [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in SOURCE.rglob("*kernels.py")
    ]
    with atheris.instrument_imports(include=["surefoot"], exclude=kernels):
        import benchmarks.fuzz_parquet
        import benchmarks.fuzz_targets  # noqa: F401


def fuzz(name: str, seconds: float) -> None:
    """Fuzz one target in this process, and end it."""
    import atheris

    from benchmarks.fuzz_parquet import parquet_test
    from benchmarks.fuzz_targets import TARGETS, refuses_or_reads

    place = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_memory()))
    new = place / "corpus"
    new.mkdir()
    if name == "parquet":
        test = parquet_test(place)
    else:
        target = TARGETS[name]
        (new / "seed").write_bytes(target.seed())
        test = functools.partial(refuses_or_reads, target, place)
    known = [str(CORPUS / name)] if (CORPUS / name).is_dir() else []
    options = [f"-max_len={LONGEST}", "-verbosity=0", "-timeout=120", str(new), *known]
    atheris.Setup(["fuzz", *options], Finds(name, test, new, seconds))
    atheris.Fuzz()


def _keep_some(reached: list[Path], corpus: Path, most: int = 4) -> None:
    """Keep a few of the inputs that reached something, for the tests and the next time."""
    corpus.mkdir(parents=True, exist_ok=True)
    for old in corpus.glob("reached-*"):
        old.unlink()
    for number, path in enumerate(random.Random(0).sample(reached, min(most, len(reached)))):
        (corpus / f"reached-{number}").write_bytes(path.read_bytes())


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    """Fuzz every target in a process of its own, forked from one that has imported all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=100.0)
    options = parser.parse_args()
    instrument()
    from benchmarks.fuzz_targets import TARGETS

    failed = False
    context: Any = multiprocessing.get_context("fork")
    for name in options.targets or [*TARGETS, "parquet"]:
        process = context.Process(target=fuzz, args=(name, options.seconds))
        process.start()
        process.join()
        failed = failed or process.exitcode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
