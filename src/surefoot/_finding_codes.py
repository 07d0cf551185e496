"""What a finding's code is to its words, and where they are registered."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Text:
    """How one code becomes words.

    Attributes
    ----------
    level
        The usual level.
    words
        Makes the sentence; for an assumption, what follows ``lead``.
    lead
        How an assumption begins: ``"assuming"``, ``"assuming that"`` or ``"taking"``.
    amounts
        The values that are rewards: they change sign when the finding speaks of costs.
    """

    level: str
    words: Callable[..., str]
    lead: str = ""
    amounts: tuple[str, ...] = ()


TEXTS: dict[str, Text] = {}
"""All codes."""

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
    """Return what the worst amount of a log is called.

    Examples
    --------
    >>> worst_words("max"), worst_words("min")
    ('lowest reward', 'highest cost')
    """
    return "lowest reward" if objective == "max" else "highest cost"


def worst_of(objective: str, *, declared: bool) -> str:
    """Return what the worst amount is called that was seen, or that was declared.

    Examples
    --------
    >>> worst_of("max", declared=False), worst_of("min", declared=True)
    ('lowest reward seen', 'highest cost declared')
    """
    return f"{worst_words(objective)} {'declared' if declared else 'seen'}"
