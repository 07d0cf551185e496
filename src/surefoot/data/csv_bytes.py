"""What the bytes of a CSV file show that DuckDB passes over in silence."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from surefoot._display import printable

LONGEST = 2_000_000
"""DuckDB drops a last line that is longer than about 2 MB."""
CHUNK = 1 << 20


def inspect(path: Path) -> bool:
    """Refuse damaged gzip files and endless lines; tell whether an underscore joins two digits.

    DuckDB checks no checksums, drops a last line that is too long, and reads 1_000 as 1000. One
    pass over the bytes costs little beside parsing them.
    """
    joined, line, last = False, 0, b""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            while chunk := file.read(CHUNK):
                joined = joined or _joins_digits(last[-2:] + chunk)
                first = _line_end(chunk.find)
                line += len(chunk) if first < 0 else first
                if line > LONGEST:
                    raise ValueError(
                        f"{printable(path)}: a line is longer than {LONGEST:,} bytes, more than is "
                        "read. Check that lines are ended and quotes closed."
                    )
                if first >= 0:
                    line = len(chunk) - 1 - _line_end(chunk.rfind)
                last = chunk
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise ValueError(
            f"{printable(path)}: the file is damaged ({problem}). Copy or compress it again."
        ) from None
    return joined


def _line_end(search: Callable[[bytes], int]) -> int:
    found = search(b"\n")
    return found if found >= 0 else search(b"\r")


def _joins_digits(chunk: bytes) -> bool:
    if b"_" not in chunk:
        return False
    codes = np.frombuffer(chunk, dtype=np.uint8)
    at = np.flatnonzero(codes[1:-1] == ord("_")) + 1
    digits = (codes >= ord("0")) & (codes <= ord("9"))
    return bool(np.any(digits[at - 1] & digits[at + 1]))
