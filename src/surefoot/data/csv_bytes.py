"""Faults in the bytes of a CSV file that DuckDB does not report."""

import codecs
import csv
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from surefoot._display import printable

LONGEST = 2_000_000
"""DuckDB drops a last line that is longer than about 2 MB."""
CHUNK = 1 << 20
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Byte-order marks, and the encodings they stand for."""


DELIMITERS = (",", "\t", ";", "|")


def best_delimiter(header: str) -> str:
    """Return the delimiter that splits a line into the most fields.

    Examples
    --------
    >>> best_delimiter("state;action")
    ';'
    """
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))


class Bytes(NamedTuple):
    """Whether an underscore joins two digits somewhere, and whether the whole file is UTF-8."""

    joined_digits: bool
    is_utf8: bool


def open_bytes(path: Path) -> BinaryIO:
    """Open a file, compressed or not."""
    return gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def inspect(path: Path) -> Bytes:
    """Refuse damaged gzip files and overlong lines; return what else DuckDB would not report.

    DuckDB checks no checksums, drops a last line that is too long, and reads 1_000 as 1000. One
    pass over the bytes costs little compared with parsing them.
    """
    joined, line, last = False, 0, b""
    decoder, valid = codecs.getincrementaldecoder("utf-8")(), True
    try:
        with open_bytes(path) as file:
            while chunk := file.read(CHUNK):
                joined = joined or _joins_digits(last[-2:] + chunk)
                valid = valid and _decodes(decoder, chunk)
                first = _line_end(chunk.find)
                line += len(chunk) if first < 0 else first
                if line > LONGEST:
                    raise ValueError(
                        f"{printable(path)}: a line is longer than {LONGEST:,} bytes, more than "
                        "can be read. Check the line endings, and that quotes are closed."
                    )
                if first >= 0:
                    line = len(chunk) - 1 - _line_end(chunk.rfind)
                last = chunk
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise ValueError(
            f"{printable(path)}: the file is damaged ({problem}). Copy or compress it again."
        ) from None
    return Bytes(joined, valid and _decodes(decoder, b"", final=True))


def encoding_of(path: Path) -> str | None:
    """Return the encoding of a file that is not UTF-8: by byte-order mark, zero bytes, or a guess.

    None if it is UTF-8 with a fault in it, or no known encoding.
    """
    with open_bytes(path) as file:
        start = file.read(CHUNK)
        mark = next((name for mark, name in MARKS.items() if start.startswith(mark)), None)
        if mark is not None:
            return mark
        zeros = [start[i::2].count(0) for i in (0, 1)]
        if max(zeros) > 0.3 * len(start) / 2:
            return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        decoder = codecs.getincrementaldecoder("cp1252")()
        while start:
            text = start.decode("utf-8", errors="replace")
            faults = text.count("\ufffd")
            if sum(not c.isascii() for c in text) > 2 * faults:  # UTF-8 with a fault
                return None
            if not _decodes(decoder, start):
                return None
            start = file.read(CHUNK)
    return "cp1252"


def is_marked(path: Path) -> bool:
    """Tell whether a file begins with a UTF-16 byte-order mark, or has UTF-16's zero bytes."""
    try:
        with open_bytes(path) as file:
            start = file.read(4096)
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise ValueError(f"{printable(path)}: the file is not readable text ({problem}).") from None
    return start[:2] in MARKS or start.count(0) > 0.3 * len(start) / 2


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


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
