"""From a log of decisions to a policy and a certified lower bound on its return.

The public names are listed in ``__init__.pyi``, each once, in pipeline order. The stub is read when
the first name is requested, and each name is imported on first use, so that the command line starts
quickly.
"""

import functools
from typing import Any

from surefoot import _hooks
from surefoot._version import __version__ as __version__


@functools.cache
def _names() -> tuple[Any, Any, list[str]]:
    try:
        import lazy_loader
    except ImportError as problem:  # GPU machines may lack it: import from the subpackages there
        raise AttributeError(f"import from the subpackages of surefoot: {problem}") from problem
    attached: tuple[Any, Any, list[str]] = lazy_loader.attach_stub(__name__, __file__)
    return attached


def __getattr__(name: str) -> Any:
    load, _, names = _names()
    return names if name == "__all__" else load(name)


def __dir__() -> list[str]:
    return [*_names()[1]()]


def _lead_to_worst(mdp: Any, counts: Any) -> Any:
    from surefoot.solvers.unseen import lead_to_worst

    return lead_to_worst(mdp, counts)


def _picture(shown: Any) -> str:
    from surefoot.report.pictures import picture

    return picture(shown)


_hooks.lead_to_worst = _lead_to_worst
_hooks.picture = _picture
