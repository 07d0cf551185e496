"""Which device computes, and what is said where it cannot."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from surefoot._arguments import check_choice
from surefoot._compile import cache_directory
from surefoot._waits import TookTooLong, within

DEVICES = ("auto", "cpu", "gpu")
"""What users may ask for."""
DRIVER = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""Where a machine with a GPU shows one, so that others need not import JAX to find none."""
DRIVER_SECONDS = 180.0
"""How long JAX and the driver may take to start: seconds, unless a disk is slow."""
SHARE = 0.8
"""The share of the device's memory that is used."""
WORTH_KEEPING = 0.2
"""Seconds of compiling from which the outcome is kept on disk."""
HOST_MEMORY = 2**30
"""What batches may take where JAX computes on the CPU (in tests)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Device:
    """A device that JAX computes on.

    Attributes
    ----------
    name
        What it is called.
    memory
        Bytes that may be used.
    handle
        JAX's own object.
    """

    name: str
    memory: int
    handle: Any


def check_device(device: str) -> str:
    """Return the name of a device, or list the right ones."""
    check_choice("device", device, DEVICES)
    return device


def doubles() -> AbstractContextManager[Any]:
    """Return a context in which JAX computes with doubles, whatever it does elsewhere."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)  # type: ignore[no-any-return]
    from jax.experimental import enable_x64  # type: ignore[attr-defined]

    return enable_x64()  # type: ignore[no-any-return]


def gpu_here() -> bool:
    """Tell, without importing anything, whether this machine may have a GPU."""
    return any(path.exists() for path in DRIVER)


@cache
def find_gpu() -> Device | None:
    """Return the GPU that JAX computes on, None where there is none.

    Raises
    ------
    TimeoutError
        Its driver does not answer.
    """
    try:
        handle = within(DRIVER_SECONDS, _first_gpu)
    except (ImportError, RuntimeError):
        return None
    except TookTooLong:
        raise TimeoutError(
            f"JAX did not find out within {DRIVER_SECONDS:.0f} s whether there is a GPU here: its "
            "driver may hang. Look at nvidia-smi, or use device='cpu'."
        ) from None
    keep_compiled()
    return _described(handle)


def _first_gpu() -> Any:
    import jax

    return jax.devices("gpu")[0]


def keep_compiled() -> None:
    """Let JAX keep what it compiles beside the kernels, unless it was told where."""
    import jax

    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        config.update("jax_compilation_cache_dir", str(cache_directory() / "jax"))
        config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)


def the_gpu() -> Device:
    """Return the GPU, or say what is missing."""
    found = find_gpu()
    if found is not None:
        return found
    try:
        import jax
    except ImportError:
        raise ImportError(
            "device='gpu' needs the extra 'gpu', which is not installed: pip install "
            "'surefoot[gpu]'. device='cpu' does the same work on the cores."
        ) from None
    kinds = ", ".join(sorted({one.platform for one in jax.devices()}))
    raise ValueError(
        f"device='gpu', but JAX {jax.__version__} finds no GPU here (only {kinds}). Check the "
        "driver with nvidia-smi and JAX's CUDA packages (surefoot[gpu]), or use device='cpu'."
    )


def host_device() -> Device:
    """Return this machine's CPU as a device: for tests of what a GPU would do."""
    import jax

    return _described(jax.devices("cpu")[0])


def device_of(platform: str) -> Device:
    """Return the GPU, or for tests the CPU of this machine."""
    return host_device() if platform == "cpu" else the_gpu()


def _described(handle: Any) -> Device:
    about = handle.memory_stats() or {}
    memory = int(SHARE * about["bytes_limit"]) if "bytes_limit" in about else HOST_MEMORY
    return Device(name=str(handle.device_kind), memory=memory, handle=handle)


def check_memory(device: Device, least: int, what: str) -> None:
    """Refuse work that does not fit, with the figures and what helps."""
    if least > device.memory:
        raise MemoryError(
            f"{what} needs at least {least / 2**30:.1f} GiB on the device, and {device.name} "
            f"offers {device.memory / 2**30:.1f} GiB. Use device='cpu', or a model "
            "with fewer successors."
        )
