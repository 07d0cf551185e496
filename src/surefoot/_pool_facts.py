"""The versions and processor that decide the last bits of an answer, equal for all workers."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version

from surefoot._compile import cache_directory
from surefoot._version import __version__


@dataclass(frozen=True, kw_only=True)
class ProcessFacts:
    """The versions and the device of a process.

    Attributes
    ----------
    surefoot, python, numpy, numba
        Versions.
    device
        The processor that computes: kernels are compiled for it, and other instructions round
        differently.
    """

    surefoot: str
    python: str
    numpy: str
    numba: str
    device: str

    def check(self, other: ProcessFacts, place: str) -> None:
        """Refuse a worker that would not give the same bits.

        Examples
        --------
        >>> facts_here().check(facts_here(), "node 10.0.0.5")
        """
        for name in (one.name for one in fields(self)):
            mine, its = getattr(self, name), getattr(other, name)
            if mine == its:
                continue
            if name == "device":
                raise ValueError(
                    f"{place} computes on {its}, and this process on {mine}: a pool must not mix "
                    "devices, whose last bits differ. Keep to one kind of machine, or set both "
                    "NUMBA_CPU_NAME and OPENBLAS_CORETYPE to the weakest processor everywhere "
                    "(x86-64-v3 and Haswell, say)."
                )
            raise ValueError(
                f"{place} has {name} {its}, and this process has {mine}. Install the same version "
                "everywhere: answers must not depend on who computes them."
            )


@cache
def facts_here() -> ProcessFacts:
    """Return the facts of this process."""
    python = ".".join(platform.python_version_tuple()[:2])
    code = f"{__version__} ({cache_directory().name})"  # a working tree may have other kernels
    return ProcessFacts(
        surefoot=code, python=python, numpy=version("numpy"), numba=version("numba"),
        device=f"cpu, {_processor()}",
    )  # fmt: skip


def _processor() -> str:
    """Return the processor that kernels are compiled for, and the one set for LAPACK."""
    from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]
    from numba import config

    host = get_host_cpu_name()
    lapack = os.environ.get("OPENBLAS_CORETYPE") or host
    return f"kernels for {config.CPU_NAME or host}, LAPACK for {lapack}"
