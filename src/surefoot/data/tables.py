"""Tables in memory (pandas, polars, Arrow, dicts of NumPy arrays), prepared for DuckDB."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
}  # fmt: skip


class StepColumns(dict[str, NDArray[Any]]):
    """A log whose columns have the standard names: episode, step, state, ..., terminal.

    ``read_transitions`` uses its columns episode, step and terminal by default.
    """

    ROLES = ("episode", "step", "terminal")


def family(duckdb_type: str) -> str:
    """Return "integer", "float", "text", "boolean" or "other" for a DuckDB type.

    Examples
    --------
    >>> family("SMALLINT"), family("ENUM('a', 'b')"), family("DATE")
    ('integer', 'text', 'other')
    """
    if duckdb_type in INTEGERS:
        return "integer"
    if duckdb_type in ("FLOAT", "DOUBLE") or duckdb_type.startswith("DECIMAL"):
        return "float"
    if duckdb_type == "VARCHAR" or duckdb_type.startswith("ENUM"):
        return "text"
    return "boolean" if duckdb_type == "BOOLEAN" else "other"


def prepare(table: Any, wanted: Collection[str]) -> tuple[Any, list[str], str]:
    """Return the wanted columns so that DuckDB reads them faithfully, all names, and a title.

    Other columns are ignored: they may hold anything.
    """
    take: Callable[[Any, list[str]], Any]
    if isinstance(table, Mapping):
        names, take, title = list(table), _from_columns, "the dict of columns"
    else:
        library = type(table).__module__.split(".")[0]
        if library not in _LIBRARIES or not hasattr(table, _LIBRARIES[library][1]):
            raise ValueError(
                f"a log of type {type(table).__name__} cannot be read. Pass a path, a pandas, "
                "polars or Arrow table, or a dict of NumPy arrays (a Minari dataset: read_minari)."
            )
        take, _, title = _LIBRARIES[library]
        if hasattr(table, "collect_schema"):
            names = table.collect_schema().names()
        else:
            names = list(table.schema.names if library == "pyarrow" else table.columns)
    names = [name for name in names if isinstance(name, str)]
    twice = next((name for name in wanted if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{title} has column {twice!r} twice. Rename one of them.")
    return take(table, [name for name in names if name in wanted]), names, title


def _from_columns(table: Mapping[str, Any], names: list[str]) -> dict[str, NDArray[Any]]:
    columns = {}
    for name in names:
        values = table[name]
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.dtype.kind in "UST" and not hasattr(values, "dtype") and array.ndim == 1:
            array = np.array(list(values), dtype=object)  # a list may mix 1 and "1"
        if array.ndim != 1:
            raise ValueError(
                f"column {name!r} has shape {array.shape}; a column is one value per row. "
                "Continuous observations need discretize first."
            )
        columns[name] = _plain(name, array)
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns have different lengths: {lengths}.")
    return columns


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return text as objects, and objects of one type as that type."""
    if array.dtype.kind in "UST":
        if array.dtype.kind == "S":
            raise ValueError(f"column {name!r} holds bytes; decode them to text first.")
        return array.astype(object)
    if array.dtype.kind == "O":
        typed: NDArray[Any] = _one_type(name, array)
        return typed
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"column {name!r} has type {array.dtype}; columns are whole numbers, decimals or text."
        )
    return array if array.dtype != np.float16 else array.astype(np.float64)


def _one_type(name: str, values: Any) -> Any:
    """Return a column of Python objects as text or numbers; a mix of both is an error.

    DuckDB would silently turn 1 and "1" into one label.
    """
    objects = np.asarray(values, dtype=object)
    kinds = {kind for kind in set(map(type, objects)) if not _is_missing_type(kind)}
    numbers = {k for k in kinds if issubclass(k, (int, np.integer)) and not issubclass(k, bool)}
    decimals = {k for k in kinds if issubclass(k, (float, np.floating))}
    texts = {k for k in kinds if issubclass(k, str)}
    booleans = {k for k in kinds if issubclass(k, (bool, np.bool_))}
    missing = _missing(objects)
    if decimals and missing[[isinstance(v, (float, np.floating)) for v in objects]].all():
        decimals = set()  # NaN only, which is how pandas writes a missing value
    odd = kinds - numbers - texts - booleans - {float, *decimals}
    families = [group for group in (numbers | decimals, texts, booleans) if group]
    if odd or len(families) > 1:
        _raise_mixed(name, objects, missing)
    if texts or not families:
        text = objects.copy()
        text[missing] = None
        return text
    whole = not decimals
    filler: Any = False if booleans else 0
    dtype = np.bool_ if booleans else np.int64 if whole else np.float64
    try:
        plain = np.where(missing, filler, objects).astype(dtype)
    except OverflowError:
        raise ValueError(f"column {name!r} holds whole numbers beyond 64 bits.") from None
    return np.ma.MaskedArray(plain, mask=missing) if missing.any() else plain


def _is_missing_type(kind: type) -> bool:
    return kind is type(None) or kind.__name__ in ("NAType", "NaTType")


def _missing(objects: NDArray[Any]) -> NDArray[np.bool_]:
    return np.fromiter(
        (
            v is None
            or (isinstance(v, (float, np.floating)) and v != v)
            or _is_missing_type(type(v))
            for v in objects
        ),
        dtype=np.bool_,
        count=len(objects),
    )


def _raise_mixed(name: str, objects: NDArray[Any], missing: NDArray[np.bool_]) -> None:
    present = np.flatnonzero(~missing)
    first = objects[present[0]]
    other = next(
        (i for i in present if isinstance(objects[i], str) != isinstance(first, str)),
        next((i for i in present if type(objects[i]) is not type(first)), present[0]),
    )
    if other == present[0]:
        raise ValueError(
            f"column {name!r} holds {type(first).__name__} values such as {first!r}; columns are "
            "whole numbers, decimals or text."
        )
    raise ValueError(
        f"column {name!r} mixes {type(first).__name__} and {type(objects[other]).__name__}: "
        f"{first!r} in row {present[0]}, {objects[other]!r} in row {other} (the first row is 0). "
        "Make them all text or all whole numbers."
    )


def _from_pandas(table: Any, names: list[str]) -> Any:
    plain = table[names].copy(deep=False)
    for name in names:
        column = table[name]
        categories = getattr(column.dtype, "categories", None)
        if categories is not None and categories.dtype == object:
            _one_type(name, categories.to_numpy())
        elif column.dtype == object:
            typed = _one_type(name, column.to_numpy())
            # pandas' nullable types can hold missing values; text stays as it is.
            own = {"i": "Int64", "f": "Float64", "b": "boolean"}.get(typed.dtype.kind)
            plain[name] = typed if own is None else column.astype(own)
    return plain


def _from_polars(table: Any, names: list[str]) -> Any:
    chosen = table.select(names)
    chosen = chosen.collect() if hasattr(chosen, "collect") else chosen
    for name, kind in chosen.schema.items():
        if str(kind) == "Object":
            _one_type(name, chosen[name].to_numpy())
            raise ValueError(f"column {name!r} holds Python objects; cast it to text or numbers.")
    return chosen


def _from_arrow(table: Any, names: list[str]) -> Any:
    if type(table).__name__ == "RecordBatchReader":
        table = table.read_all()  # a reader can be read only once; a log is scanned several times
    return table.select(names) if hasattr(table, "select") else table


_LIBRARIES: dict[str, tuple[Callable[[Any, list[str]], Any], str, str]] = {
    "pandas": (_from_pandas, "columns", "the pandas table"),
    "polars": (_from_polars, "collect_schema", "the polars table"),
    "pyarrow": (_from_arrow, "schema", "the Arrow table"),
}
"""For each library: the function that takes columns, an attribute its tables have, and a title."""
