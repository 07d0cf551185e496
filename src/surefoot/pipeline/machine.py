"""The resources of this machine, and how large a model it can handle."""

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from surefoot._compile import cache_directory
from surefoot._cores import available_cores

SOLVE_BYTES = 35
"""Bytes per entry of a robust solve, including building the model (docs/benchmarks.md)."""
RUN_BASE, RUN_BYTES = 3 * 2**28, 1000
"""Bytes of a whole run: a fixed part (draws are held in batches), and a part per entry."""
STATED = 3 * 2**29
"""A run that needs at least this many bytes says so beforehand."""
LESS = (
    "A machine with more memory will do it; so will fewer states: wider bins, or state columns "
    "left out."
)
GPU_SECONDS = 10
"""How many seconds the GPU driver may take to answer."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The resources of a machine.

    Attributes
    ----------
    cores, all_cores
        The number of cores that this process may use, and that the machine has.
    memory, free_memory
        Bytes that this process could have at most, and that are free now; None if the system does
        not tell. The limit of a container is taken into account.
    gpus
        Name and memory of each NVIDIA GPU, as reported by its driver.
    extras
        For each extra of the package, the requirements that are not installed.
    cache, kernels, cache_bytes
        Where compiled kernels are kept, how many there are, and their size.
    """

    cores: int
    all_cores: int
    memory: int | None
    free_memory: int | None
    gpus: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]
    cache: Path
    kernels: int
    cache_bytes: int

    @classmethod
    def here(cls) -> "Machine":
        """Return the resources of this machine."""
        memory, free = machine_memory()
        compiled = list(cache_directory().rglob("*.nbc"))  # Numba's files of compiled code
        return cls(
            cores=available_cores(),
            all_cores=os.cpu_count() or 1,
            memory=memory,
            free_memory=free,
            gpus=_gpus(),
            extras=_extras(requires("surefoot") if _installed("surefoot") else None),
            cache=cache_directory(),
            kernels=len(compiled),
            cache_bytes=sum(path.stat().st_size for path in compiled),
        )

    @property
    def solve_entries(self) -> int | None:
        """How many entries (state, action, successor) of a robust solve fit into free memory."""
        return None if self.free_memory is None else self.free_memory // SOLVE_BYTES

    @property
    def run_entries(self) -> int | None:
        """How many entries of a whole run from a log fit into free memory."""
        if self.free_memory is None:
            return None
        return max(0, (self.free_memory - RUN_BASE) // RUN_BYTES)


def run_memory(entries: int) -> int:
    """Return the approximate peak memory of a whole run in bytes.

    Examples
    --------
    >>> size_text(run_memory(1_000_000))
    '1.7 GB'
    """
    return RUN_BASE + RUN_BYTES * entries


def memory_words(entries: int, memory: int | None, free: int | None) -> str:
    """Return what a large run will need, "" for others; refuse one that cannot fit.

    ``memory`` is the most that this process could have, ``free`` what is free now, in bytes.

    Examples
    --------
    >>> memory_words(10_000, 8 * 2**30, 4 * 2**30)
    ''
    >>> memory_words(1_000_000, 8 * 2**30, 4 * 2**30)
    'This run will need about 1.7 GB of memory; 4.0 GB are free.'
    """
    need = run_memory(entries)
    if memory is not None and need > memory:
        raise ValueError(
            f"a run with {entries:,} entries needs about {size_text(need)} of memory, and this "
            f"machine has {size_text(memory)}. {LESS}"
        )
    if free is not None and need > free:
        return (
            f"This run will need about {size_text(need)} of memory, and only {size_text(free)} are "
            f"free: it may be stopped by the system. End other programs. {LESS}"
        )
    if need < STATED:
        return ""
    told = "" if free is None else f"; {size_text(free)} are free"
    return f"This run will need about {size_text(need)} of memory{told}."


def size_text(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.0f} MB"


def machine_memory() -> tuple[int | None, int | None]:
    """Return the total and the free memory in bytes, within the limits of a container."""
    total, free = _system_memory()
    limit = _number(Path("/sys/fs/cgroup/memory.max"))
    used = _number(Path("/sys/fs/cgroup/memory.current"))
    if limit is not None and total is not None and limit < total:
        room = limit - (used or 0)
        return limit, room if free is None else min(free, room)
    return total, free


def _system_memory() -> tuple[int | None, int | None]:
    about = Path("/proc/meminfo")
    if about.is_file():
        lines = dict(line.split(":", 1) for line in about.read_text("utf-8").splitlines())
        sizes = [int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable")]
        return sizes[0], sizes[1]
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return None, None
    return total, total // 2  # free memory is not reported here: half is a fair guess


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such limit, or "max"
        return None


def _gpus() -> tuple[str, ...]:
    """Ask the NVIDIA driver for its GPUs; a machine without the driver has none for us."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    query = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        told = subprocess.run(
            query, capture_output=True, text=True, timeout=GPU_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in told.stdout.splitlines() if line.strip())


def _extras(required: list[str] | None) -> dict[str, tuple[str, ...]]:
    """Return what is not installed of each extra, from the requirements of the package.

    Examples
    --------
    >>> _extras(["numpy>=1.26", "numba>=0.60; extra == 'fast'", "no-such>=1; extra == 'fast'"])
    {'fast': ('no-such',)}
    """
    missing: dict[str, tuple[str, ...]] = {}
    for line in required or ():
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        if name and extra:
            lacking = () if _installed(name[0]) else (name[0],)
            missing[extra[1]] = (*missing.get(extra[1], ()), *lacking)
    return missing


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def system_text() -> str:
    """Return the Python version and the system in a few words."""
    return f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
