"""Read draws from the results of other samplers, without importing their packages."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def chains_of(source: Any, variable: str) -> tuple[Floats, int | None]:
    """Return ``(chains, draws, ...)`` of one variable, and the number of divergences if known."""
    if hasattr(source, "get_samples") and hasattr(source, "get_extra_fields"):  # NumPyro MCMC
        samples = source.get_samples(group_by_chain=True)
        return _named(samples, variable), _count(source.get_extra_fields().get("diverging"))
    if hasattr(source, "get_values") and hasattr(source, "chains"):  # PyMC MultiTrace
        names = list(source.varnames)
        if variable not in names:
            raise _unknown(variable, names)
        return np.stack(source.get_values(variable, combine=False, squeeze=False)), None
    posterior = _group(source, "posterior")
    if posterior is None:
        if not isinstance(source, Mapping):
            raise ValueError(
                f"cannot read draws from {type(source).__name__}: pass an ArviZ InferenceData or "
                "DataTree, a NumPyro MCMC, or a mapping from names to arrays (chains, draws, ...)."
            )
        posterior = source
    return _named(posterior, variable), _count(_diverging(_group(source, "sample_stats")))


def _group(source: Any, name: str) -> Any | None:
    """Return a group of an InferenceData or DataTree: ``obj[name]`` works on both generations."""
    try:
        group = source[name]
    except (KeyError, TypeError, AttributeError, IndexError):
        return None
    # A mapping of plain arrays may hold a variable called "posterior".
    return None if isinstance(group, np.ndarray) else group


def _named(group: Any, variable: str) -> Floats:
    names = list(getattr(group, "data_vars", group))
    if variable not in names:
        raise _unknown(variable, names)
    value = group[variable]
    if hasattr(value, "transpose") and hasattr(value, "dims"):  # xarray: name the order
        value = value.transpose("chain", "draw", ...)
    values = np.asarray(value, dtype=np.float64)
    if values.ndim < 3:
        raise ValueError(
            f"{variable!r} has shape {values.shape}; it must be (chains, draws, ...), with the "
            "probabilities in the last axes."
        )
    return values


def _unknown(variable: str, names: Iterable[Any]) -> ValueError:
    listed = ", ".join(sorted(map(str, names))) or "none"
    return ValueError(f"there is no variable {variable!r} in the draws; there are: {listed}.")


def _diverging(group: Any) -> Any | None:
    if group is None or "diverging" not in getattr(group, "data_vars", group):
        return None
    return group["diverging"]


def _count(diverging: Any) -> int | None:
    return None if diverging is None else int(np.asarray(diverging).sum())
