"""The registry that maps the code of a finding to its wording."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Text:
    """How a finding with one code is put into words.

    Attributes
    ----------
    level
        The usual level.
    words
        Makes the sentence from the values; for an assumption, only the part after ``lead``.
    lead
        How an assumption begins: ``"assuming"``, ``"assuming that"`` or ``"taking"``.
    amounts
        The names of the values that are rewards: they change sign when the finding is about costs.
    """

    level: str
    words: Callable[..., str]
    lead: str = ""
    amounts: tuple[str, ...] = ()


TEXTS: dict[str, Text] = {}
"""The wording of each code."""

Wording = Callable[..., str]


def says(
    level: str, *, lead: str = "", amounts: tuple[str, ...] = ()
) -> Callable[[Wording], Wording]:
    def register(words: Wording) -> Wording:
        code = words.__name__.removeprefix("_")
        TEXTS[code] = Text(level=level, words=words, lead=lead, amounts=amounts)
        return words

    return register


def worst_words(objective: str) -> str:
    """Return the words for the worst amount of a log.

    Examples
    --------
    >>> worst_words("max"), worst_words("min")
    ('lowest reward', 'highest cost')
    """
    return "lowest reward" if objective == "max" else "highest cost"


AFTER_WORST = {"": "", "end": ", followed by an end", "on": " in a step that goes on"}
"""What is said of the worst amount, by the kind of step that brings it."""


def worst_of(objective: str, *, declared: bool, kind: str = "") -> str:
    """Return the words for the worst amount that was seen, or that was declared.

    Examples
    --------
    >>> worst_of("max", declared=False), worst_of("min", declared=True)
    ('lowest reward seen', 'highest cost declared')
    """
    known = "declared" if declared else "seen"
    return f"{worst_words(objective)} {known}{AFTER_WORST[kind]}"
