"""The GPUs of a cluster's workers as one engine: the bits are those of a single GPU.

Whole batches go to them, all but the first from its mean values. Nothing is done on a GPU that the
calling process may have.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from surefoot._workers import Workers, current, on_gpus, ranges
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy
from surefoot.posterior.batch import Batch
from surefoot.posterior.of_counts import Key
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.rewards import Rewards
from surefoot.solvers.gpu.device import Device, device_of
from surefoot.solvers.gpu.engine import (
    CHECKED,
    DeviceEngine,
    DrawRange,
    SomeEnds,
    of_all,
    of_policy,
)
from surefoot.solvers.gpu.philox import NAME

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PLATFORM = "gpu"
"""What workers compute on; the CPU in tests."""
PARTS_EACH = 4
"""Parts of a call for each GPU: laying out the model is done again for each of them."""


@dataclass(frozen=True, kw_only=True)
class SharedDeviceEngine:
    """The GPUs of the workers of a cluster, all of one kind.

    Attributes
    ----------
    name
        What they are called.
    platform
        What JAX calls them.
    checked, stream
        As for `surefoot.solvers.gpu.engine.DeviceEngine`.
    """

    name: str
    platform: str
    checked: int = CHECKED
    stream: str = NAME

    def policy_ends(self, draws: Draws, policy: RowPolicy, tolerance: float) -> Floats:
        """Return brackets of a policy's return."""
        return self._ends(draws, policy, tolerance)

    def best_ends(self, draws: Draws, start: Ints, tolerance: float) -> Floats:  # noqa: ARG002
        """Return brackets of the best return of any policy."""
        return self._ends(draws, None, tolerance)

    def on_one(self, work: Callable[..., Any], *given: Any) -> Any:
        """Return ``work(*given, engine)`` with the engine of one of the workers' GPUs."""
        return on_gpus(_workers(), _with_engine, (work, self.platform, *given), [()])[0]

    def _ends(self, draws: Draws, policy: RowPolicy | None, tolerance: float) -> Floats:
        workers, batch = _workers(), draws.batch
        which = batch.source, batch.first, batch.last, draws.reward_key
        shared = draws.mdp, batch.posterior, draws.rewards, (self, which, policy, tolerance)
        head = self._of_one_kind(on_gpus(workers, _part_of, (*shared, None), [(0, 0)]))[0]
        rest = max(0, draws.count - head.size)
        batches = -(-rest // head.size)
        each = -(-batches // (PARTS_EACH * max(1, workers.gpus.total))) * head.size
        cut = [(head.size + a, head.size + b) for a, b in ranges(rest, each)] if rest else []
        found = on_gpus(workers, _part_of, (*shared, head.start), cut)
        return np.concatenate([head.ends, *(one.ends for one in self._of_one_kind(found))])

    def _of_one_kind(self, found: list[tuple[str, SomeEnds]]) -> list[SomeEnds]:
        for name, _ in found:
            if name != self.name:
                raise ValueError(
                    f"workers compute on {self.name} and on {name}: a pool must not mix devices, "
                    "whose last bits differ. Keep to one kind of GPU, or use device='cpu'."
                )
        return [ends for _, ends in found]


def why_no_gpus(workers: Workers) -> str | None:
    """Return why the GPUs of the workers cannot be used, or None."""
    found = workers.gpus
    if found.total == 0:
        return (
            "no worker of the cluster has a GPU that Ray knows of ('ray status' lists them; 'ray "
            "start --num-gpus' declares them)"
        )
    if found.lacking:
        return (
            f"of the cluster's workers node {found.lacking[0]} has no GPU, and others have one: a "
            "pool must not mix devices, whose last bits differ"
        )
    return None


_engines: WeakKeyDictionary[Workers, SharedDeviceEngine] = WeakKeyDictionary()
"""What workers were asked before."""


def shared_engine(workers: Workers) -> SharedDeviceEngine:
    """Return the engine of the workers' GPUs; one of them is asked what it is."""
    if workers not in _engines:
        name = on_gpus(workers, _name_of, (), [(PLATFORM,)])[0]
        _engines[workers] = SharedDeviceEngine(name=name, platform=PLATFORM)
    return _engines[workers]


def _workers() -> Workers:
    found = current()
    if found is None:
        raise RuntimeError("the cluster whose GPUs were to be used is gone.")
    return found


def _device(platform: str) -> Device:
    """Return the device of this worker, whose memory another worker may need next."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return device_of(platform)


def _name_of(platform: str) -> str:
    return _device(platform).name


def _with_engine(work: Callable[..., Any], platform: str, *given: Any) -> Any:
    return work(*given, DeviceEngine(device=_device(platform), checked=0))


def _part_of(
    mdp: MDP, posterior: Posterior, rewards: Rewards,
    more: tuple[SharedDeviceEngine, tuple[np.random.Generator, int, int, Key], Any, float],
    start: Floats | None, first: int, last: int,
) -> tuple[str, SomeEnds]:  # fmt: skip
    """Evaluate some draws: what a worker does."""
    engine, (source, begin, end, key), policy, tolerance = more
    batch = Batch(posterior=posterior, source=source, first=begin, last=end)
    draws = Draws(mdp=mdp, batch=batch, rewards=rewards, reward_key=key)
    own = DeviceEngine(device=_device(engine.platform), checked=engine.checked)
    laid = of_all(draws) if policy is None else of_policy(draws, policy)
    part = DrawRange(first, last, start)
    return own.device.name, own.some_ends(laid, tolerance, part, best=policy is None)
