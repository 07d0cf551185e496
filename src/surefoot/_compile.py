"""The one decorator for compiled kernels.

Numba's on-disk cache looks only at the file of the function it stores: after an edit of an inner
kernel in another file the outer one would go on returning the old numbers. So the cache lives in a
directory named after a hash of *all* kernel files. Every kernel therefore lives in a file whose
name ends in ``kernels.py``; a test enforces that.
"""

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

try:
    if os.environ.get("SUREFOOT_COMPILE") == "no":
        raise ImportError("SUREFOOT_COMPILE=no")
    import numba
    from numba import njit
    from numba.core import event
except ImportError:  # GPU machines may lack numba: everything but the kernels works there
    numba = None

PACKAGE = Path(__file__).parent
COMPILES = numba is not None
"""Whether kernels can be compiled here."""
if COMPILES:
    _compiling = event.TimingListener()
    event.register("numba:compile", _compiling)


def working_clock() -> float:
    """Return the time in seconds of a clock that stops while kernels are being compiled.

    Examples
    --------
    >>> began = working_clock()
    >>> kernel()(lambda x: x + 1)(2), working_clock() - began < 60
    (3, True)
    """
    if not COMPILES:
        return time.monotonic()
    return time.monotonic() - (_compiling.duration if _compiling.done else 0.0)


@cache
def cache_directory() -> Path:
    """Return a writable directory for compiled kernels, keyed by the hash of their sources."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*kernels.py")):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    for base in _cache_bases():
        directory = base / name
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                return directory
        except OSError:
            continue
    return _temporary(name)


def _temporary(name: str) -> Path:
    """Return a temporary folder: the same one each time, unless another user owns it."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    base = Path(tempfile.gettempdir()) / f"surefoot-{owner}"
    with suppress(OSError):
        base.mkdir(mode=0o700, exist_ok=True)
        about = base.lstat()
        private = hasattr(os, "getuid") and about.st_uid == owner and not about.st_mode & 0o077
        if private and stat.S_ISDIR(about.st_mode):  # its code is executed: it must be our own
            (base / name).mkdir(exist_ok=True)
            return base / name
    made = Path(tempfile.mkdtemp(prefix="surefoot-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _cache_bases() -> list[Path]:
    """Return the folders where compiled kernels may be stored, best first."""
    bases = []
    if chosen := os.environ.get("SUREFOOT_CACHE_DIR"):
        bases.append(Path(chosen))
    if shared := os.environ.get("XDG_CACHE_HOME"):
        bases.append(Path(shared) / "surefoot")
    with suppress(RuntimeError):  # no home directory at all
        bases.append(Path.home() / ".cache" / "surefoot")
    return bases


def _renamed(source: Any, suffix: str, using: dict[str, Any]) -> Any:
    """Return a renamed copy of a function in which ``using`` replaces some of its globals."""
    names = {**source.__globals__, **using}
    copy = FunctionType(source.__code__, names, f"{source.__name__}_{suffix}")
    copy.__qualname__ = f"{source.__qualname__}_{suffix}"
    copy.__module__, copy.__doc__ = source.__module__, source.__doc__
    return copy


def _forgiving(compiled: Any) -> Any:
    """Let a kernel whose cached code is damaged be compiled again.

    Numba lets any error from unpickling a truncated file through. Emptying the index makes Numba
    forget the file; the next save rewrites both.
    """
    file = compiled._cache._cache_file
    load = file.load

    def load_or_forget(key: Any) -> Any:
        try:
            return load(key)
        except Exception:  # whatever unpickling half a file raises
            with suppress(OSError):
                file.flush()
            return None

    file.load = load_or_forget
    return compiled


def _missing(source: Callable[..., Any]) -> Any:
    """Return a function that refuses to run: as plain Python the kernel would take forever."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise ImportError(
            f"{source.__module__}.{source.__name__} needs numba, which is not installed: pip "
            "install numba. Without numba, use a GPU (device='gpu', docs/gpu.md)."
        )

    return refuse


def kernel(
    *,
    lean: bool = False,
    twin: str | None = None,
    using: dict[str, Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a plain-array function with Numba, without the GIL and cached on disk.

    ``lean`` is for kernels that allocate nothing: it leaves out reference counting, which for a
    function of a dozen arrays costs more than a row of ten entries (measured: five times more).
    ``twin`` names a second compilation of the same source with other options: the cache identifies
    a function by its name and types alone and would return the first one. ``using`` replaces global
    names in that twin, so that one source serves several inner kernels and only the ones in use are
    compiled.

    Examples
    --------
    >>> @kernel()
    ... def add_one(x):
    ...     return x + 1
    >>> add_one(2)
    3
    """
    if not COMPILES:
        return _missing
    if lean:
        options["_nrt"] = False

    def decorate(source: Callable[..., Any]) -> Any:
        function = source if twin is None else _renamed(source, twin, using or {})
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(cache_directory())
        try:
            return _forgiving(njit(cache=True, nogil=True, **options)(function))
        except RuntimeError:  # sources without a file (a zip, an interactive session)
            return njit(nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = previous

    return decorate
