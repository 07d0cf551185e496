"""A device for tests: JAX on this machine's CPU."""

import pytest

from surefoot.solvers import solver
from surefoot.solvers.gpu import choice
from surefoot.solvers.gpu.device import Device, host_device


@pytest.fixture(scope="session")
def device() -> Device:
    return host_device()


@pytest.fixture
def gpu(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """Let ``device="gpu"`` find the CPU."""
    for module in (choice, solver):
        monkeypatch.setattr(module, "the_gpu", lambda: device)
    return device
