"""Kill a run at random moments, run it again, and compare with an undisturbed one.

``python -m benchmarks.kills [TIMES] [--add] [--seed N]``: every rerun must end well, give the same
bytes, and leave nothing behind.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAME = (
    "certificate.json",
    "policy.csv",
    "policy.json",
    "candidates.csv",
    "counts.npz",
    "config.toml",
    "report.html",
)
"""Files that do not hold the time of day."""


def write_log(path: Path) -> None:
    """Write a small log: two states, actions with different luck."""
    lines = ["state,action,reward,next_state"]
    for i in range(60):
        lines.append(f"up,wait,{5 if i % 3 else 0},{'up' if i % 3 else 'down'}")
        lines.append(f"up,mend,4,{'up' if i % 10 else 'down'}")
        lines.append(f"down,wait,0,{'down' if i % 5 else 'up'}")
        lines.append(f"down,mend,3,{'up' if i % 4 else 'down'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def command(place: Path, out: Path, *more: str) -> list[str]:
    """Return the command line of a run."""
    made = [sys.executable, "-m", "surefoot", "solve", str(place / "log.csv"), "--out", str(out)]
    return [*made, "--discount", "0.9", "--draws", "600", "--quiet", *more]


def killed(arguments: list[str], after: float) -> bool:
    """Start a run, kill it after some seconds, and tell whether it was still running."""
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return True
    return False


def differences(out: Path, right: Path) -> list[str]:
    """Return what is wrong with a run that was disturbed."""
    wrong = [
        f"{name} differs"
        for name in SAME
        if not (out / name).is_file() or (out / name).read_bytes() != (right / name).read_bytes()
    ]
    names = {path.name for path in out.iterdir()} ^ {path.name for path in right.iterdir()}
    left = {path.name for path in out.parent.iterdir()} - {out.name}
    return wrong + [f"{name} was left behind or is missing" for name in sorted(names | left)]


def main() -> int:
    """Kill and rerun; return how often something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("times", type=int, nargs="?", default=30)
    parser.add_argument("--add", action="store_true", help="runs that add to an earlier one")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    bad = stopped = 0
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        place = Path(folder)
        write_log(place / "log.csv")
        more: list[str] = []
        if options.add:
            subprocess.run(command(place, place / "first"), check=True, stdout=subprocess.DEVNULL)
            more = ["--add", str(place / "first")]
        began = time.monotonic()
        right = place / "right"
        subprocess.run(command(place, right, *more), check=True, stdout=subprocess.DEVNULL)
        usual = time.monotonic() - began
        for k in range(options.times):
            out = place / f"try{k}" / "run"
            out.parent.mkdir()
            arguments = command(place, out, *more)
            stopped += killed(arguments, chance.uniform(0.0, usual))
            if not out.exists():
                subprocess.run(arguments, check=False, stdout=subprocess.DEVNULL)
            wrong = differences(out, right) if out.exists() else ["the rerun failed"]
            bad += bool(wrong)
            for text in wrong:
                print(f"kill {k + 1}: {text}", flush=True)
    print(f"{options.times} runs, {stopped} killed before they ended, {bad} not the same after it")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
