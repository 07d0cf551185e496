"""What a run found out, as data: a code, how serious it is, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from surefoot import _finding_texts as texts
from surefoot._display import Shown

LEVELS = ("assumption", "note", "warning", "failed")
"""In this order: what a promise rests on; good to know; a reason for doubt; a failed check."""

MISMATCH = "behaviour_mismatch"
"""The code of the finding that model and log disagree about the return of what was done."""

Value = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Finding(Shown):
    """One fact about a log, a search or a promise. Programs read the code, people the text.

    Attributes
    ----------
    code
        What was found, for instance ``"stuck_states"``.
    level
        ``"assumption"``, ``"note"``, ``"warning"`` or ``"failed"``.
    values
        The numbers and names behind it, in the units of the certificate it belongs to.

    Examples
    --------
    >>> found = Finding.of("rows_left_out", rows=3, what="reward")
    >>> found.level, found.text
    ('warning', '3 rows without reward were left out on request.')
    >>> Finding.from_mapping(found.to_mapping()) == found
    True
    """

    code: str
    level: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.code not in texts.TEXTS:
            raise ValueError(f"there is no finding with the code {self.code!r}.")
        if self.level not in LEVELS:
            raise ValueError(f"level={self.level!r}; choose one of {', '.join(LEVELS)}.")
        for name, value in self.values.items():
            if not (value is None or isinstance(value, (str, int, float))):
                raise ValueError(f"{self.code}: {name} must be a number or a text, got {value!r}.")
        wrong = texts.misfit(self.code, self.values)
        if wrong:
            raise ValueError(f"{self.code}: {wrong}.")

    @classmethod
    def of(cls, code: str, **values: Value) -> Finding:
        """Return a finding at the usual level of its code."""
        if code not in texts.TEXTS:
            raise ValueError(f"there is no finding with the code {code!r}.")
        return cls(code=code, level=texts.TEXTS[code].level, values=values)

    @property
    def text(self) -> str:
        """The finding in words."""
        return texts.render(self.code, self.values)

    def about(self, data: str) -> Finding:
        """Return the same finding with the name of the data it is about."""
        return replace(self, values={**self.values, "data": data})

    def mirrored(self) -> Finding:
        """Return the same finding about costs instead of rewards, or vice versa."""
        return replace(self, values=texts.mirrored(self.code, self.values))

    def to_mapping(self) -> dict[str, Any]:
        """Return code, level, values and text, ready for JSON."""
        return {
            "code": self.code,
            "level": self.level,
            "values": dict(self.values),
            "text": self.text,
        }

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> Finding:
        """Return a finding from its JSON content; the text is written again from the values."""
        if not isinstance(content, Mapping) or not isinstance(content.get("values"), Mapping):
            raise ValueError(f"a finding has a code, a level and values; this is {content!r}.")
        code, level = content.get("code", ""), content.get("level", "")
        if code not in texts.TEXTS and isinstance(content.get("text"), str):
            return stated(content["text"], level)  # a newer version has codes unknown to this one
        return cls(code=code, level=level, values=dict(content["values"]))

    def __hash__(self) -> int:
        return hash((self.code, self.level, tuple(sorted(self.values.items(), key=lambda v: v[0]))))

    def _headline(self) -> str:
        return f"{self.level}: {self.text}"

    def _facts(self) -> list[tuple[str, str]]:
        return [("code", self.code), *((name, str(value)) for name, value in self.values.items())]

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.values.items())
        return f"Finding({self.code!r}, {self.level!r}{given})"


def stated(text: str, level: str) -> Finding:
    """Return a finding of which only the text is known: version 0.1 stored nothing else.

    Examples
    --------
    >>> stated("The log was short.", "note").text
    'The log was short.'
    """
    return Finding(code="stated", level=level, values={"text": text})


def texts_of(findings: Iterable[Finding], *levels: str) -> tuple[str, ...]:
    """Return the texts of the findings at the given levels, each once.

    Examples
    --------
    >>> texts_of([stated("a", "note"), stated("b", "warning"), stated("a", "note")], "note")
    ('a',)
    """
    return tuple(dict.fromkeys(found.text for found in findings if found.level in levels))


_GRAVEST = ("failed", "warning", "note", "assumption")


def gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in reading order: failed checks, warnings, notes, then assumptions.

    The warning that model and log disagree about what was done comes before other warnings.

    Examples
    --------
    >>> [one.text for one in gravest_first([stated("a", "note"), stated("b", "warning")])]
    ['b', 'a']
    """
    return tuple(
        sorted(findings, key=lambda one: (_GRAVEST.index(one.level), one.code != MISMATCH))
    )


class WithFindings:
    """Mixin for a frozen dataclass that makes a statement and has the ``findings`` behind it."""

    findings: tuple[Finding, ...]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the sentence assumes, in words ("assuming ...")."""
        return texts_of(self.findings, "assumption")

    @property
    def failures(self) -> tuple[str, ...]:
        """The checks that failed, in sentences."""
        return texts_of(self.findings, "failed")

    @property
    def withheld(self) -> bool:
        """Whether a check failed, so that the sentence is not stated as a promise."""
        return bool(self.failures)

    def adding(self, *findings: Finding) -> Self:
        """Return a copy with more findings."""
        more = tuple(dict.fromkeys((*self.findings, *findings)))
        made: Self = replace(self, findings=more)  # type: ignore[type-var]
        return made
