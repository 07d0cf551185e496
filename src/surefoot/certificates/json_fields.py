"""Frozen dataclasses to plain JSON values, and back with every field checked."""

import math
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding

INFINITIES = ("inf", "-inf")
"""JSON has no infinities: they are stored as texts."""
NOT_KEPT = {"kept": False}
"""The metadata of a field that is not stored in files."""


def kept_fields(kind: Any) -> list[str]:
    """Return the names of the fields that files hold, of a dataclass or of an object of it."""
    return [field.name for field in fields(kind) if field.metadata.get("kept", True)]


def to_plain(value: Any) -> Any:
    """Convert a value to what JSON can hold.

    Examples
    --------
    >>> from surefoot.certificates.evidence import Interval
    >>> to_plain(Interval(mean=1.0, lower=0.5, upper=float("inf")))
    {'mean': 1.0, 'lower': 0.5, 'upper': 'inf'}
    """
    if isinstance(value, Finding):
        return value.to_mapping()
    if is_dataclass(value):
        return {name: to_plain(getattr(value, name)) for name in kept_fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return str(float(value))
    return value


def from_plain(wanted: Any, value: Any) -> Any:
    """Convert a value from JSON to a type; ValueError if it does not fit the type.

    Examples
    --------
    >>> from surefoot.certificates.evidence import Behaviour
    >>> from_plain(Behaviour | None, {"log": None, "model": {"mean": 1, "lower": 0, "upper": 2}})
    Behaviour(log=None, model=Interval(mean=1, lower=0, upper=2))
    """
    origin = get_origin(wanted)
    if origin in (UnionType, Union):
        kinds = [kind for kind in get_args(wanted) if kind is not NoneType]
        if isinstance(value, dict):
            kinds.sort(key=lambda kind: not is_dataclass(kind))
        return None if value is None else from_plain(kinds[0], value)
    if origin in (np.ndarray, NDArray):  # in newer versions of NumPy, NDArray is its own origin
        return _array(value)
    if origin is tuple and isinstance(value, list):
        return tuple(from_plain(get_args(wanted)[0], item) for item in value)
    if wanted is Finding and isinstance(value, dict):
        return Finding.from_mapping(value)
    if is_dataclass(wanted) and isinstance(value, dict) and value:
        return _object(wanted, value)
    if wanted is float and value in INFINITIES and isinstance(value, str):
        return float(value)
    if not _is_of(value, wanted):
        raise ValueError(f"{value!r} is of the wrong type.")
    return value


def _object(wanted: Any, content: dict[str, Any]) -> Any:
    hints = get_type_hints(wanted)
    try:
        return wanted(**{name: from_plain(hints[name], value) for name, value in content.items()})
    except (KeyError, TypeError) as problem:
        raise ValueError(f"these are not the fields of {wanted.__name__}: {problem}.") from None


def _array(value: Any) -> Any:
    if isinstance(value, list) and value:
        try:
            made = np.array(value)
        except (ValueError, TypeError, OverflowError):
            made = np.array("")
        if made.dtype.kind in "iuf":
            return made
    raise ValueError(f"{value!r} is not an array of numbers.")


def _is_of(value: Any, wanted: Any) -> bool:
    if wanted in (str, int, bool):
        return type(value) is wanted
    if get_origin(wanted) is dict:
        return isinstance(value, dict)
    return wanted is float and isinstance(value, (int, float)) and not isinstance(value, bool)
