"""Parquet files with columns of every type, right and damaged, as logs."""

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from surefoot.data.transitions import read_transitions

TYPES = (
    pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
    pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.date32(), pa.time64("us"),
    pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", tz="UTC"), pa.duration("ms"),
    pa.decimal128(9, 3), pa.dictionary(pa.int8(), pa.string()), pa.null(), pa.list_(pa.int64()),
    pa.struct([("x", pa.int64())]),
)  # fmt: skip
COLUMNS = ("state", "action", "reward", "next_state", "episode", "step")
WORDS = ("a", "b", "1", "1.0", "", "nan", "x\r\ny", "\x1b[31m", "ü", "'", '"', "NULL")


def column(kind: Any, rng: np.random.Generator, rows: int) -> Any:
    """Return a column of a type, some of it missing."""
    values = [None if rng.random() < 0.05 else _value(kind, rng) for _ in range(rows)]
    if pa.types.is_float16(kind):
        values = [None if value is None else np.float16(value) for value in values]
    return pa.array(values, type=kind)


def _value(kind: Any, rng: np.random.Generator) -> Any:
    number = int(rng.integers(0, 5))
    if pa.types.is_floating(kind):
        return float(rng.choice([0.0, 1.0, 2.0, 0.5, -1.0, np.nan, np.inf, 1e30]))
    if pa.types.is_boolean(kind):
        return bool(number % 2)
    if pa.types.is_null(kind):
        return None
    if pa.types.is_decimal(kind):
        return decimal.Decimal(number)
    if pa.types.is_list(kind):
        return [number]
    if pa.types.is_struct(kind):
        return {"x": number}
    if pa.types.is_binary(kind):
        return bytes([number, 255])
    if pa.types.is_date(kind):
        return datetime.date(2020, 1, 1 + number)
    if pa.types.is_time(kind):
        return datetime.time(number)
    if pa.types.is_timestamp(kind):
        return datetime.datetime(2020, 1, 1 + number)
    if pa.types.is_duration(kind):
        return datetime.timedelta(days=number)
    if pa.types.is_integer(kind):
        return number
    return str(rng.choice(WORDS))


def table(rng: np.random.Generator) -> Any:
    """Return a log whose columns have types by chance, some of them sensible."""
    rows = int(rng.integers(0, 12))
    usual = {"reward": pa.float64(), "step": pa.int64()}
    columns = {}
    for name in COLUMNS:
        odd = rng.random() < 0.25
        kind = TYPES[rng.integers(len(TYPES))] if odd else usual.get(name, pa.string())
        columns[name] = column(kind, rng, rows)
    return pa.table(columns)


def parquet_test(folder: Path) -> Callable[[bytes], None]:
    """Return a test of bytes: they choose types and contents, then which bytes to damage."""

    def test(data: bytes) -> None:
        seed = int.from_bytes(data[:4].ljust(4, b"\0"), "big")
        rng = np.random.default_rng(seed)
        path = folder / "log.parquet"
        pq.write_table(table(rng), path)
        damaged = bytearray(path.read_bytes())
        for at in range(4, len(data) - 2, 3):
            place = int.from_bytes(data[at : at + 2], "big") % len(damaged)
            damaged[place] = data[at + 2]
        path.write_bytes(damaged)
        episodes: dict[str, Any] = (
            {"episode": "episode", "step": "step"} if rng.random() < 0.5 else {}
        )
        try:
            read_transitions(path, **episodes)
        except (ValueError, OSError):
            return

    return test
