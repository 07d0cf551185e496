"""From a log of decisions to a policy and a certified lower bound on its return.

The public names, in the order of the pipeline. They are imported on first use, so that the command
line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot._version import __version__

if TYPE_CHECKING:
    from surefoot.ambiguity.sets import AmbiguitySet
    from surefoot.domains.domain import Domain
    from surefoot.domains.garnet import garnet, river_chain
    from surefoot.domains.machine import machine_replacement
    from surefoot.domains.riverswim import riverswim
    from surefoot.model.files import read_mdp, write_mdp
    from surefoot.model.mdp import MDP
    from surefoot.solvers.solution import Solution, Status
    from surefoot.solvers.solver import evaluate, solve
    from surefoot.solvers.worst_case import WorstCase, loss_bound, spans, worst_case

_HOMES = {
    "MDP": "model.mdp",
    "read_mdp": "model.files",
    "write_mdp": "model.files",
    "AmbiguitySet": "ambiguity.sets",
    "WorstCase": "solvers.worst_case",
    "worst_case": "solvers.worst_case",
    "spans": "solvers.worst_case",
    "loss_bound": "solvers.worst_case",
    "Solution": "solvers.solution",
    "Status": "solvers.solution",
    "solve": "solvers.solver",
    "evaluate": "solvers.solver",
    "Domain": "domains.domain",
    "riverswim": "domains.riverswim",
    "machine_replacement": "domains.machine",
    "garnet": "domains.garnet",
    "river_chain": "domains.garnet",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
    value = getattr(import_module(f"surefoot.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
