"""From a log of decisions to a policy and a certified lower bound on its return.

The public names stand in ``__init__.pyi``, each once, in the order of the pipeline. They are
imported on first use, so that the command line answers at once.
"""

from typing import Any

from surefoot import _hooks
from surefoot._version import __version__

try:
    import lazy_loader
except ImportError:  # GPU machines may not have it: there rooms are imported one by one
    __all__: list[str] = []
else:
    __getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _lead_to_worst(mdp: Any, counts: Any) -> Any:
    from surefoot.solvers.unseen import lead_to_worst

    return lead_to_worst(mdp, counts)


def _picture(shown: Any) -> str:
    from surefoot.report.pictures import picture

    return picture(shown)


_hooks.lead_to_worst = _lead_to_worst
_hooks.picture = _picture
