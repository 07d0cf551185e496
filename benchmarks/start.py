"""How long a user waits for the first answer."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from statistics import median

from benchmarks.table import figure, render
from benchmarks.timing import describe_machine

FIRST_ANSWER = """
import time
began = time.process_time()
from surefoot import AmbiguitySet, riverswim, solve
mdp = riverswim().mdp
ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.2)
imported = time.process_time()
solve(mdp)
nominal = time.process_time()
solve(mdp, ambiguity)
robust = time.process_time()
solve(mdp, ambiguity)
print(imported - began, nominal - imported, robust - nominal, time.process_time() - robust)
"""
HELP = "from surefoot.cli import main; main(['--help'])"
HEADINGS = (
    "what",
    "wall s",
    "processor s",
    "import",
    "first nominal",
    "first robust",
    "robust again",
)

NOTES = """\
Wall and processor: seconds of the whole process, medians. Cold: nothing compiled yet (a fresh \
SUREFOOT_CACHE_DIR), once. The others are parts of the processor time: RiverSwim, nominal and L1."""


def time_process(code: str, environment: Mapping[str, str]) -> list[float]:
    """Run Python code in a fresh process; return its seconds and the numbers it prints."""
    before, began = _processor_time(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds = [time.perf_counter() - began, _processor_time() - before]
    return seconds + [float(word) for word in done.stdout.split() if code is FIRST_ANSWER]


def _processor_time() -> float:
    """Return the processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_answer(label: str, cache: str, repeats: int) -> tuple[str, ...]:
    """Return the line of a first answer with kernels cached in a directory."""
    runs = [time_process(FIRST_ANSWER, {"SUREFOOT_CACHE_DIR": cache}) for _ in range(repeats)]
    return label, *(figure(median(part)) for part in zip(*runs, strict=True))


def help_line(repeats: int) -> tuple[str, ...]:
    """Return the line of ``surefoot --help``."""
    runs = [time_process(HELP, {}) for _ in range(repeats)]
    medians = (figure(median(part)) for part in zip(*runs, strict=True))
    return "surefoot --help", *medians, "", "", "", ""


def print_start(repeats: int) -> None:
    """Print how long first answers take, with and without compiled kernels."""
    with tempfile.TemporaryDirectory() as cache:
        lines = [
            first_answer("cold start", cache, 1),
            first_answer("warm start", cache, repeats),
            help_line(repeats),
        ]
    print(render(HEADINGS, lines))
    print(NOTES)
    print(describe_machine())
