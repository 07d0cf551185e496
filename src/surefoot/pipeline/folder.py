"""The run folder: it appears whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

FILES = (
    "policy.csv",
    "policy.json",
    "certificate.json",
    "report.html",
    "candidates.csv",
    "counts.npz",
    "config.toml",
    "log.txt",
)
"""What a finished run folder holds."""

LOCK = "lock"


def is_run(folder: str | Path) -> bool:
    """Tell whether a folder is a finished run."""
    return all((Path(folder) / name).is_file() for name in ("config.toml", "certificate.json"))


def unfinished_name(out: Path) -> Path:
    """Return where an unfinished run is kept: beside the folder it will become."""
    return out.parent / f".{out.name}.unfinished"


def check_free(out: Path, *, force: bool) -> None:
    """Refuse to write over something."""
    if not out.name:
        raise ValueError(f"{out}: give the name of a new folder.")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out}: the folder {out.parent} does not exist.")
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not out.is_dir():
        raise FileExistsError(f"{out} is a file. Choose another folder.")
    if not force:
        raise FileExistsError(
            f"{out} exists already. Choose another folder, or replace it with --force."
        )
    if not is_run(out):
        raise FileExistsError(
            f"{out} is not a run folder, so it is not replaced. Choose another folder."
        )


@contextmanager
def building(out: Path, config: str, *, force: bool = False) -> Iterator[tuple[Path, str]]:
    """Build a run in a folder of its own, which takes its name when the block ends well.

    Yields that folder, and a sentence about an earlier try ("" where there was none). What a failed
    block leaves stays, so that the next run may go on from it, if it has the same settings and log.
    """
    check_free(out, force=force)
    work = unfinished_name(out)
    work.mkdir(exist_ok=True)
    with _locked(work, out):
        remark = _prepare(work, config)
        try:
            yield work, remark
        except BaseException as problem:
            if not (work / "counts.npz").is_file():  # nothing in it is worth keeping
                shutil.rmtree(work, ignore_errors=True)
            if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
                raise OSError(
                    errno.ENOSPC,
                    "no space left on the disk. Free some and run the same command again",
                    str(out),
                ) from problem
            raise
        _publish(work, out)


def _prepare(work: Path, config: str) -> str:
    stored = work / "config.toml"
    left = [path for path in work.iterdir() if path.name != LOCK]
    if stored.is_file() and stored.read_text(encoding="utf-8") == config:
        return "Going on from an unfinished run with the same settings and log."
    for path in left:
        path.unlink()
    stored.write_text(config, encoding="utf-8")
    if left:
        return "An unfinished run was found, but with other settings or another log: starting anew."
    return ""


def _publish(work: Path, out: Path) -> None:
    with suppress(FileNotFoundError):
        (work / LOCK).unlink()
    old = out.parent / f".{out.name}.replaced"
    if out.exists() and any(out.iterdir()):
        if old.exists():
            shutil.rmtree(old)
        out.rename(old)
    elif out.exists():
        out.rmdir()
    work.rename(out)
    if old.exists():
        shutil.rmtree(old)


@contextmanager
def _locked(work: Path, out: Path) -> Iterator[None]:
    """Keep two runs from building the same folder; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (work / LOCK).open("w") as file:
        _take(file, out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _take(file: IO[str], out: Path, how: int) -> None:
    import fcntl

    try:
        fcntl.flock(file, how)
    except BlockingIOError:
        raise FileExistsError(
            f"{out}: another run is writing this folder at the moment. Wait for it, or choose "
            "another folder."
        ) from None
    file.write(str(os.getpid()))
    file.flush()
