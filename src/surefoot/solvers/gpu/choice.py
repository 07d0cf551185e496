"""Which engine makes the draws of a promise: the cores, or a GPU where it clearly pays."""

from typing import NamedTuple

from surefoot._compile import COMPILES
from surefoot._findings import Finding
from surefoot._workers import current
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.evaluation.engines import Engine, usual_engine
from surefoot.solvers.gpu.device import check_device, find_gpu, gpu_here, the_gpu
from surefoot.solvers.gpu.engine import CHECKED, DeviceEngine
from surefoot.solvers.gpu.shared import SharedDeviceEngine, shared_engine, why_no_gpus
from surefoot.solvers.gpu.sources import can_draw
from surefoot.solvers.steps import until_the_end

PAYING_ENTRIES = 75_000
"""Entries of a model from which a GPU pays for promises, beside 16 cores (docs/gpu.md)."""
SOLVED_ENTRIES = 20_000_000
"""Entries of a model from which a GPU pays for one robust solve."""


OnDevice = DeviceEngine | SharedDeviceEngine
"""Engines that draw on a GPU: that of this machine, or those of workers."""


class ChosenEngine(NamedTuple):
    """An engine, and what is to be said of it."""

    engine: Engine
    findings: tuple[Finding, ...]

    @property
    def on_device(self) -> bool:
        """Whether it is a GPU."""
        return isinstance(self.engine, OnDevice)

    @property
    def place(self) -> str:
        """Where draws are made, to go on a sentence with; "" for the cores."""
        return "".join(f" on {found.values['device']}" for found in self.findings)


def choose_engine(device: str, mdp: MDP, posterior: Posterior) -> ChosenEngine:
    """Return the engine for draws of a posterior.

    ``"gpu"`` refuses what a GPU cannot do; ``"auto"`` takes one for large models where there is
    one, and says so.
    """
    workers = current()
    reason = _not_drawn(mdp, posterior)
    if check_device(device) == "gpu":
        if reason is None and workers is not None:
            reason = why_no_gpus(workers)
        if reason is not None:
            raise ValueError(f"device='gpu', but {reason}. Use device='cpu' or 'auto'.")
        return _on(DeviceEngine(device=the_gpu()) if workers is None else shared_engine(workers))
    if device == "auto" and reason is None and mdp.num_entries >= PAYING_ENTRIES:
        if workers is not None:
            if why_no_gpus(workers) is None:
                return _on(shared_engine(workers))
        elif gpu_here() and (found := find_gpu()) is not None:
            return _on(DeviceEngine(device=found))
    return ChosenEngine(usual_engine(), ())


def _on(engine: OnDevice) -> ChosenEngine:
    name = engine.name if isinstance(engine, SharedDeviceEngine) else engine.device.name
    return ChosenEngine(engine, (Finding.of("on_device", device=name, checked=CHECKED),))


def _not_drawn(mdp: MDP, posterior: Posterior) -> str | None:
    """Return why a GPU cannot make these draws, or None."""
    if mdp.horizon is not None:
        return "a model with a horizon is evaluated on the cores only"
    if until_the_end(mdp):
        return "a model without discount is evaluated on the cores only"
    if not can_draw(posterior):
        return f"draws of {type(posterior).__name__} are made on the cores only"
    return None


def solves_on_device(
    device: str, mdp: MDP, ambiguity: AmbiguitySet | None, algorithm: str | None
) -> bool:
    """Tell whether a solve runs on a GPU; ``"gpu"`` refuses what a GPU cannot do."""
    reason = _not_solved(mdp, ambiguity, algorithm)
    if check_device(device) == "gpu":
        if reason is not None:
            raise ValueError(f"device='gpu', but {reason}. Use device='cpu' or 'auto'.")
        return True
    if device == "cpu" or reason is not None:
        return False
    if not COMPILES:  # no cores to speak of
        return find_gpu() is not None
    return mdp.num_entries >= SOLVED_ENTRIES and gpu_here() and find_gpu() is not None


def _not_solved(mdp: MDP, ambiguity: AmbiguitySet | None, algorithm: str | None) -> str | None:
    if mdp.horizon is not None or until_the_end(mdp):
        return "models with a horizon or without discount are solved on the cores only"
    if algorithm not in (None, "value_iteration"):
        return f"algorithm={algorithm!r} runs on the cores only"
    if ambiguity is None or ambiguity.norm in ("linf", "box"):
        return None
    if ambiguity.norm != "l1":
        return f"{ambiguity.norm} sets are solved on the cores only"
    weights = ambiguity.weights
    if weights is not None and not bool((weights < float("inf")).all()):
        return "infinite weights are solved on the cores only"
    return None
