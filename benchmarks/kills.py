"""Kill commands at random moments, run them again, and compare with an undisturbed one.

``python -m benchmarks.kills [solve] [reproduce] [add] [--times N] [--seed N]``: N kills of each
(all three by default) that met a running command. Every rerun must end well, give the same bytes,
and leave nothing behind.

Commands run in forked copies of a process that has imported everything: what is killed is the
command's own work, not the start of Python. Exit code 1: something was wrong.
"""

import argparse
import importlib
import json
import os
import pkgutil
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import surefoot
from surefoot.pipeline.folder import kept, unfinished_name

LATER = ("matplotlib.backends.backend_svg", "scipy.optimize", "scipy.stats")
"""Modules that are imported inside functions and take long."""
TIMES = re.compile(rb"Seconds by stage.*?(?=\n## |<h2|\Z)", re.DOTALL)
"""The table of durations in the pages of a reproduction."""


def solve(place: Path, out: Path) -> list[str]:
    """Return the command line of a run."""
    return _solve(place / "log.csv", out)


def add(place: Path, out: Path) -> list[str]:
    """Return the command line of a run that adds to an earlier one, which is made if need be."""
    first = place / "first"
    if not first.exists():
        run(_solve(place / "log.csv", first))
    return [*_solve(place / "log.csv", out), "--add", str(first)]


def reproduce(place: Path, out: Path) -> list[str]:  # noqa: ARG001  (one signature for all)
    """Return the command line of a small reproduction."""
    small = "--table bayesian --domain machine --seeds 1 --setting paper --delta 0.05"
    return ["reproduce", *small.split(), "--no-certificates", "--out", str(out)]


COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "solve": solve,
    "reproduce": reproduce,
    "add": add,
}


def _solve(log: Path, out: Path) -> list[str]:
    asked = "--discount 0.9 --draws 600 --quiet"
    return ["solve", str(log), "--out", str(out), *asked.split()]


def write_log(path: Path) -> None:
    """Write a small log: two states, actions with different luck."""
    lines = ["state,action,reward,next_state"]
    for i in range(60):
        lines.append(f"up,wait,{5 if i % 3 else 0},{'up' if i % 3 else 'down'}")
        lines.append(f"up,mend,4,{'up' if i % 10 else 'down'}")
        lines.append(f"down,wait,0,{'down' if i % 5 else 'up'}")
        lines.append(f"down,mend,3,{'up' if i % 4 else 'down'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def import_all() -> None:
    """Import everything, so that forked copies begin with their work."""
    for module in pkgutil.walk_packages(surefoot.__path__, "surefoot."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)


def run(arguments: list[str], seconds: float | None = None) -> int | None:
    """Run a command and return its exit code; kill it after some seconds: None if that met it."""
    process = os.fork()
    if process == 0:
        _be(arguments)
    ends = None if seconds is None else time.monotonic() + seconds
    while True:
        done, status = os.waitpid(process, 0 if ends is None else os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if ends is not None and time.monotonic() > ends:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None
        time.sleep(0.002)


def _be(arguments: list[str]) -> None:
    """Be the command, and end with it."""
    from surefoot.cli import main as command

    code: object = 70
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.argv = ["surefoot", *arguments]
        code = command()
    except SystemExit as end:
        code = end.code
    finally:
        os._exit(code if isinstance(code, int) else 70)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, less what tells the time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or name == "log.txt":  # which tells times, and what was done before
            found[name] = b""
        elif name == "manifest.json":
            found[name] = _manifest(path)
        elif path.parent.name == "cells":
            found[name] = _cell(path)
        else:
            found[name] = _timeless(name, path.read_bytes())
    return found


def _manifest(path: Path) -> bytes:
    content = json.loads(path.read_text(encoding="utf-8"))
    files = {name: known for name, known in content["files"].items() if name != "log.txt"}
    return json.dumps([content["identity"], files]).encode()


def _cell(path: Path) -> bytes:
    content = json.loads(path.read_text(encoding="utf-8"))
    content["outcome"].pop("seconds")
    return json.dumps(content, sort_keys=True).encode()


def _timeless(name: str, text: bytes) -> bytes:
    return TIMES.sub(b"T", text) if name.startswith("reproduction.") else text


def wrong(out: Path, right: dict[str, bytes]) -> list[str]:
    """Return what is wrong with a command that was disturbed and run again."""
    found = contents(out)
    parts = [
        f"{name} differs" for name in found.keys() & right.keys() if found[name] != right[name]
    ]
    left = {path.name for path in out.parent.iterdir()} - {out.name}
    extra = (found.keys() ^ right.keys()) | left
    return parts + [f"{name} was left behind or is missing" for name in sorted(extra)]


def reached(out: Path) -> str:
    """Tell how far a killed command was."""
    if (out / "cells").is_dir():
        return "reproduction.csv written" if (out / "reproduction.csv").exists() else "computing"
    if out.exists():
        return "folder in place"
    work = unfinished_name(out)
    if not work.exists():
        return "before the folder was begun"
    names = kept(work)
    return "policy kept" if len(names) > 2 else "counts kept" if names else "folder begun"


def disturb(name: str, place: Path, times: int, chance: random.Random) -> tuple[int, Counter[str]]:
    """Kill a command so many times; return how often something was wrong, and how far it was."""
    make = COMMANDS[name]
    run(make(place, place / "warm"))  # loads what the operating system has to find first
    began = time.monotonic()
    code = run(make(place, place / "right"))
    usual = time.monotonic() - began
    if code != 0:
        raise RuntimeError(f"{name}: an undisturbed command ended with exit code {code}.")
    right = contents(place / "right")
    bad, stages, tries = 0, Counter[str](), 0
    while stages.total() < times:
        out = place / f"{name}{tries}" / "run"
        out.parent.mkdir()
        tries += 1
        arguments = make(place, out)
        if run(arguments, chance.uniform(0.0, usual)) is not None:
            continue  # it was done before
        stages[reached(out)] += 1
        code = 0 if name != "reproduce" and out.exists() else run(arguments)
        problems = wrong(out, right) if code == 0 else [f"the rerun ended with exit code {code}"]
        bad += bool(problems)
        for text in problems:
            print(f"{name}, kill {stages.total()}: {text}", flush=True)
    return bad, stages


def main() -> int:
    """Kill and rerun; tell how often something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=", ".join(COMMANDS))
    parser.add_argument("--times", type=int, default=34)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    import_all()
    failed = False
    for name in options.commands or COMMANDS:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            place = Path(folder)
            write_log(place / "log.csv")
            bad, stages = disturb(name, place, options.times, random.Random(options.seed))
        failed = failed or bad > 0
        told = ", ".join(f"{count} {stage}" for stage, count in stages.most_common())
        print(f"{name}: {stages.total()} kills ({told}); {bad} not the same after a rerun")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
