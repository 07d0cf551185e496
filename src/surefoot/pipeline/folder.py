"""The run folder: it appears whole or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO

from surefoot._atomic import replacing, sync_folder
from surefoot.pipeline.manifest import (
    CONFIG,
    COUNTS,
    EPISODES,
    INPUTS,
    NAME,
    PARTS,
    Manifest,
    check_unchanged,
    copy_inputs,
    difference,
    read_manifest,
)

BINS = "bins.json"
"""Columns that were cut into bins."""
RETURNS = "returns.npy"
"""Returns of the policy in the draws of its promise, where figures show them."""
OPTIONAL = (PARTS, EPISODES, BINS, RETURNS)
"""Files that only some run folders have."""
FILES = (
    "policy.csv",
    "policy.json",
    "certificate.json",
    "report.html",
    "candidates.csv",
    COUNTS,
    CONFIG,
    "log.txt",
    NAME,
)
"""The files of every finished run folder, besides the inputs that were copied into it."""

LOCK, FOUND, STEPS, LOG = "lock", "found.json", "steps.txt", "log.txt"
"""Files of an unfinished run folder: the lock, the certificate before its worst case is known, and
how many steps the search took (all three unfinished only), and the log of messages."""
MARK, OLD = "surefoot", "run"
"""Names in the folder that briefly holds a replaced run: its mark, and the run itself."""


def is_run(folder: str | Path) -> bool:
    """Return whether a folder is a finished run."""
    return all((Path(folder) / name).is_file() for name in (CONFIG, "certificate.json"))


def check_is_run(folder: str | Path) -> None:
    """Refuse a folder that is not a finished run."""
    if not is_run(folder):
        raise FileNotFoundError(f"{folder}: this is not a run folder (no certificate.json).")


def unfinished_name(out: Path) -> Path:
    """Return the folder of an unfinished run, which lies beside the folder it will become."""
    return out.parent / f".{out.name}.unfinished"


def check_free(out: Path, *, force: bool) -> None:
    """Refuse to overwrite anything but a run folder with ``force``."""
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
def building(
    out: Path, stock: Manifest, config: str, *, force: bool = False
) -> Iterator[tuple[Path, str]]:
    """Build a run in a separate folder, which is renamed to ``out`` when the block succeeds.

    Yields that folder, and a sentence about an earlier try ("" if there was none). If the block
    fails, the folder is kept, so that the next run can continue from it if it has the same
    identity. If ``out`` is a link, the folder it points to is made or replaced, and the link stays.
    """
    out = Path(os.path.realpath(out)) if out.is_symlink() else out
    check_free(out, force=force)
    work = unfinished_name(out)
    if work.is_symlink() or (work.exists() and not _is_ours(work)):
        raise FileExistsError(
            f"{work} is in the way, and was not left by a run of surefoot. Remove it, or choose "
            "another folder."
        )
    work.mkdir(exist_ok=True)
    with _locked(work, out):
        _restore(out)
        remark = _prepare(work, stock, config)
        try:
            yield work, remark
            check_unchanged(stock)
            _seal(work)
        except BaseException as problem:
            if COUNTS not in kept(work):  # nothing in it is worth keeping
                shutil.rmtree(work, ignore_errors=True)
            if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
                raise OSError(
                    errno.ENOSPC,
                    "no space left on the disk. Free some and run the same command again",
                    str(out),
                ) from problem
            raise
        _publish(work, out, force=force)


def keep(work: Path, *names: str) -> None:
    """Record that these files of an unfinished run are complete: a later run may use them."""
    read_manifest(work).with_files(work, names).write(work)


def kept(work: Path) -> set[str]:
    """Return the complete files of an unfinished run."""
    try:
        return set(read_manifest(work).files)
    except (OSError, ValueError):
        return set()


def _is_ours(work: Path) -> bool:
    """Return whether a folder holds only files that an unfinished run leaves."""
    known = {*FILES, *OPTIONAL, LOCK, FOUND, STEPS, INPUTS, "counts.partial"}
    temporary = tuple(f".{name}." for name in known)
    return work.is_dir() and all(
        path.name in known or path.name.startswith(temporary) for path in work.iterdir()
    )


def _prepare(work: Path, stock: Manifest, config: str) -> str:
    """Clear files that cannot be used, record what this run is, and return what was found."""
    found = {path.name for path in work.iterdir()} - {LOCK}
    why, files = _usable(work, stock) if found else ("", {})
    wanted = {LOCK, LOG, *files} if found and not why else {LOCK}
    for path in work.iterdir():
        if path.name not in wanted:
            _remove(path)
    begun = copy_inputs(stock, work).with_files(work, files)
    with replacing(work / CONFIG, "w", encoding="utf-8") as file:
        file.write(config)
    begun.write(work)
    if why:
        return f"An unfinished run was found, but {why}: starting again."
    return "Going on from an unfinished run with the same settings and log." if files else ""


def _usable(work: Path, stock: Manifest) -> tuple[str, dict[str, str]]:
    """Return why an unfinished run cannot be used ("" if it can), and its complete files."""
    try:
        stored = read_manifest(work)
    except FileNotFoundError:
        return "it was hardly begun, or by an older version", {}
    except (OSError, ValueError):
        return f"its {NAME} is damaged", {}
    other = difference(stored.identity, stock.identity)
    if other:
        return f"with {other}", {}
    damaged = stored.damaged(work)
    if damaged:
        return f"{damaged[0]} is damaged", {}
    return "", {name: known for name, known in stored.files.items() if "/" not in name}


def _seal(work: Path) -> None:
    """Clear the files of an unfinished run, and write the hashes of all others."""
    for path in work.iterdir():
        if path.name not in {*FILES, *OPTIONAL, INPUTS, LOCK}:
            _remove(path)
    stored = read_manifest(work)
    copies = {name: known for name, known in stored.files.items() if "/" in name}
    names = [name for name in FILES if name != NAME]
    names += [name for name in OPTIONAL if (work / name).is_file()]
    Manifest(identity=stored.identity, inputs=stored.inputs, files=copies).with_files(
        work, names
    ).write(work)


def _publish(work: Path, out: Path, *, force: bool) -> None:
    check_free(out, force=force)  # again: minutes have passed
    holder = None
    if out.exists() and any(out.iterdir()):
        holder = _holder(out)
        out.rename(holder / OLD)
    elif out.exists():
        out.rmdir()
    work.rename(out)
    with suppress(FileNotFoundError):
        (out / LOCK).unlink()  # not earlier: another run could take over the folder
    sync_folder(out.parent)
    if holder is not None:
        shutil.rmtree(holder, ignore_errors=True)


def _holder(out: Path) -> Path:
    """Make a folder to hold a run that is about to be replaced."""
    holder = Path(tempfile.mkdtemp(prefix=f".{out.name}.replaced-", dir=out.parent))
    (holder / MARK).touch()
    return holder


def _restore(out: Path) -> None:
    """Restore or remove a replaced run that a process killed at the very end left behind."""
    for holder in out.parent.glob(f".{escape(out.name)}.replaced-*"):
        if holder.is_symlink() or not (holder / MARK).is_file():
            continue  # not ours
        if (holder / OLD).is_dir() and not out.exists():
            (holder / OLD).rename(out)
        shutil.rmtree(holder, ignore_errors=True)


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder; the target of a link is kept."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


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
        if not _is_same(file, work / LOCK):  # the folder was published just now
            raise _busy(out)
        yield


def _take(file: IO[str], out: Path, how: int) -> None:
    import fcntl

    try:
        fcntl.flock(file, how)
    except BlockingIOError:
        raise _busy(out) from None
    file.write(str(os.getpid()))
    file.flush()


def _is_same(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _busy(out: Path) -> FileExistsError:
    return FileExistsError(
        f"{out}: another run is writing this folder at the moment. Wait for it, or choose another "
        "folder."
    )
