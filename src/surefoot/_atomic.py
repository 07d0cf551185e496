"""Writing files so that a reader never sees a half-written one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path`` that takes its place once it is complete.

    If the block fails, the temporary file is removed and ``path`` is left as it was. ``options`` go
    to ``open``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt", "w", encoding="utf-8") as file:
    ...         _ = file.write("whole")
    ...     Path(folder, "a.txt").read_text(encoding="utf-8")
    'whole'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: the folder {target.parent} does not exist.")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    if not _is_free(handle):  # locks it where possible, so that nobody removes it as a leftover
        os.close(handle)
        handle = -1
    try:
        with open(temporary, mode, **options) as file:  # noqa: PTH123  (mode and options vary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_usual_permissions(target))
        Path(temporary).replace(target)
        sync_folder(target.parent)
    finally:
        if handle >= 0:
            os.close(handle)
        Path(temporary).unlink(missing_ok=True)


def clear_leftovers(folder: Path, names: str) -> None:
    """Remove temporary files that a killed `replacing` left behind, for targets matching ``names``.

    Files that another process is still writing are kept.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Path(place, ".a.txt.abcd1234").touch()
    ...     with replacing(Path(place, "b.txt")):
    ...         clear_leftovers(Path(place), "*.txt")
    ...     sorted(path.name for path in Path(place).iterdir())
    ['b.txt']
    """
    for path in folder.glob(f".{names}.????????"):
        with suppress(OSError), path.open("rb") as file:
            if path.is_file() and not path.is_symlink() and _is_free(file.fileno()):
                path.unlink()


def _is_free(handle: int) -> bool:
    """Lock a file and return whether it was free; False where the system has no such locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def move_safely(source: Path, target: Path) -> None:
    """Move a complete file to its final name after flushing its contents to disk."""
    with source.open("rb+") as file:
        os.fsync(file.fileno())
    source.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's list of files to disk, so that a power cut loses none of them."""
    if os.name != "posix":  # elsewhere folders cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems do not support this
        pass
    finally:
        os.close(handle)


def _usual_permissions(target: Path) -> int:
    """Return the permissions of the file being replaced, or those a plain ``open`` would set."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return 0o666 & ~mask
