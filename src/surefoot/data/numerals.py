r"""How numbers are written in text: 1234.5, 1,234.5, 1.234,5 or 1 234,5.

``1.234`` may be one thousand two hundred and thirty-four, or a little more than one. The other
numbers of a column decide: ``0.5`` or ``12.25`` show a decimal point, ``1.234.567`` or ``7,5`` a
decimal comma. Where nothing decides and the file may come from a country with decimal commas, the
user is asked.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

SPACES = " \u00a0\u2009\u202f'\u2019"
"""Characters that separate thousands, besides point and comma."""
_POWER = r"(?:[eE][+-]?[0-9]+)?"
_SPACED = rf"[0-9]{{1,3}}(?:[{SPACES}][0-9]{{3}})+"
_WORDS = r"[+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"


def _shows(mark: str, other: str) -> str:
    """Return the pattern of numbers that show their decimal mark."""
    grouped = rf"[0-9]{{1,3}}(?:{other}[0-9]{{3}})"
    return (
        rf"[+-]?(?:{grouped}+{mark}[0-9]*|{grouped}{{2,}}|{_SPACED}{mark}[0-9]*"
        rf"|[0-9]+{mark}[0-9]*|{mark}[0-9]+){_POWER}"
    )


def _unclear(mark: str) -> str:
    return rf"[+-]?[1-9][0-9]{{0,2}}{mark}[0-9]{{3}}"


POINT, COMMA = _shows(r"\.", ","), _shows(",", r"\.")
GROUPED = (
    rf"[+-]?(?:{_SPACED}(?:[.,][0-9]*)?|[0-9]{{1,3}}(?:,[0-9]{{3}})+\.[0-9]*"
    r"|[0-9]{1,3}(?:,[0-9]{3}){2,})"
)
"""Numbers with a decimal point that DuckDB cannot read as they are."""
UNCLEAR_POINT, UNCLEAR_COMMA = _unclear(r"\."), _unclear(",")


class Spellings(NamedTuple):
    """An example of each way in which some numbers are written; None where there is none."""

    point: str | None = None
    comma: str | None = None
    unclear_point: str | None = None
    unclear_comma: str | None = None
    grouped: str | None = None

    @staticmethod
    def measures(text: str) -> str:
        """Return the SQL that finds the examples among the values of a text column."""

        def example(pattern: str, but: str | None = None) -> str:
            other = "" if but is None else f" AND NOT regexp_full_match({text}, {_quoted(but)})"
            return (
                f"min({text}) FILTER (WHERE regexp_full_match({text}, {_quoted(pattern)}){other})"
            )

        return ", ".join(
            [
                example(POINT, UNCLEAR_POINT),
                example(COMMA, UNCLEAR_COMMA),
                example(UNCLEAR_POINT),
                example(UNCLEAR_COMMA),
                example(GROUPED),
            ]
        )

    @classmethod
    def of(cls, values: Iterable[str]) -> "Spellings":
        """Return the examples among some texts."""
        listed = list(values)

        def first(pattern: str, but: str = r"(?!)") -> str | None:
            return next(
                (v for v in listed if re.fullmatch(pattern, v) and not re.fullmatch(but, v)), None
            )

        return cls(
            first(POINT, UNCLEAR_POINT), first(COMMA, UNCLEAR_COMMA), first(UNCLEAR_POINT),
            first(UNCLEAR_COMMA), first(GROUPED),
        )  # fmt: skip

    def joined(self, other: "Spellings") -> "Spellings":
        """Return the examples of both, the first ones where both have some."""
        return Spellings(*(a if a is not None else b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Numerals:
    """How numbers are written.

    Attributes
    ----------
    decimal
        ``"."`` or ``","``.
    plain
        Whether there are no thousands separators and the decimal mark is a point: DuckDB reads it.
    example
        A number as it is written; "" where the style is plain.
    """

    decimal: str = "."
    plain: bool = True
    example: str = ""

    @property
    def pattern(self) -> str:
        """The regular expression of numbers in this style."""
        mark, other = (r"\.", ",") if self.decimal == "." else (",", r"\.")
        grouped = rf"[0-9]{{1,3}}(?:{other}[0-9]{{3}})+|{_SPACED}"
        body = rf"(?:{grouped}|[0-9]+)(?:{mark}[0-9]*)?|{mark}[0-9]+"
        return rf"[+-]?(?:{body}){_POWER}|{_WORDS}"

    def sql(self, column: str) -> str:
        """Return the SQL of a text column as a number."""
        other = "," if self.decimal == "." else "."
        bare = f"regexp_replace(trim({column}), {_quoted(f'[{other}{SPACES}]')}, '', 'g')"
        return f"replace({bare}, ',', '.')::DOUBLE"

    def parse(self, text: str) -> float:
        """Return a number written in this style, or raise ValueError."""
        if not re.fullmatch(self.pattern, text.strip()):
            raise ValueError(f"{text!r} is not a number.")
        other = "," if self.decimal == "." else "."
        bare = re.sub(f"[{other}{SPACES}]", "", text.strip())
        return float(bare.replace(",", "."))


PLAIN = Numerals()


def decide(shown: Spellings, *, asked: str | None, comma_likely: bool) -> Numerals | str:
    """Return how numbers are written, or a text that says why that is unclear.

    Parameters
    ----------
    asked
        The decimal mark that the user named, or None.
    comma_likely
        Whether the file may come from a country with decimal commas: then 1.234 is unclear.

    Examples
    --------
    >>> decide(Spellings.of(["1.234", "7,5"]), asked=None, comma_likely=True).parse("1.234")
    1234.0
    >>> decide(Spellings.of(["1.234"]), asked=None, comma_likely=True)
    "'1.234' may be 1234 or 1.234. Pass decimal=',' or decimal='.'"
    """
    commas = shown.comma or shown.unclear_comma
    points = shown.point or shown.unclear_point
    if asked is not None:
        plain = asked == "." and commas is None and shown.grouped is None
        return Numerals(decimal=asked, plain=plain, example=commas or shown.grouped or points or "")
    if shown.point is not None and shown.comma is not None:
        return (
            f"{shown.point!r} shows a decimal point and {shown.comma!r} a decimal comma. Write "
            "numbers in one way"
        )
    if shown.comma is not None:
        return Numerals(decimal=",", plain=False, example=shown.comma)
    unclear = shown.unclear_comma
    if shown.point is None and (unclear is not None or (comma_likely and shown.unclear_point)):
        found = unclear or shown.unclear_point or ""
        bare = found.replace(",", "").replace(".", "")
        return (
            f"{found!r} may be {bare} or {found.replace(',', '.')}. Pass decimal=',' or decimal='.'"
        )
    if commas is not None or shown.grouped is not None:
        return Numerals(plain=False, example=commas or shown.grouped or "")
    return PLAIN


def parse_number(text: str, decimal: str | None = None) -> float:
    """Parse a number that a person wrote; one that may mean two things is refused.

    Examples
    --------
    >>> parse_number("0,25"), parse_number("1.234,5")
    (0.25, 1234.5)
    """
    style = decide(Spellings.of([text.strip()]), asked=decimal, comma_likely=False)
    if isinstance(style, str):
        raise ValueError(f"{style}.")
    return style.parse(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
