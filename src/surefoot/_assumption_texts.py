"""What each assumption of a promise means for a reader, and what would change without it.

Each assumption gets two short sentences for a list: what is assumed, and what happens if it does
not hold. The wording used inside the exact sentence of a promise is in `_finding_texts`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from surefoot._finding_codes import worst_of

Told = tuple[str, str]
PLAIN: dict[str, Callable[..., Told]] = {}
"""For each assumption code: a function from its values to what is assumed and what if it fails."""


def plain(code: str, values: Mapping[str, Any]) -> Told | None:
    """Return an assumption and what changes if it fails; None for a code without such texts.

    Examples
    --------
    >>> plain("rewards_within_seen", {})[0]
    'No step ever brings more or less than was seen in the log.'
    """
    words = PLAIN.get(code)
    return None if words is None else words(**values)


def _tells(words: Callable[..., Told]) -> Callable[..., Told]:
    PLAIN[words.__name__.removeprefix("_")] = words
    return words


def _too(objective: str) -> str:
    return "too high" if objective == "max" else "too low"


@_tells
def _support_observed() -> Told:
    return (
        "Nothing ever happens that the log has not seen in the same state under the same action.",
        "If something else can happen, the promise does not account for it. Let the support be "
        "learned, or list what is possible.",
    )


@_tells
def _support_action() -> Told:
    return (
        "Nothing ever happens that the log has not seen somewhere under the same action.",
        "If something else can happen, the promise does not account for it. Let the support be "
        "learned, or list what is possible.",
    )


@_tells
def _support_listed() -> Told:
    return (
        "The list of what can happen is complete.",
        "If something is missing, the promise does not account for it: add it to the list.",
    )


@_tells
def _unseen_no_worse(
    state: str | None = None, declared: bool = False, objective: str = "max"
) -> Told:
    return (
        f"What never happened in the log is no worse than {_worst(state, objective, declared)}.",
        f"If something worse can happen, the promise is {_too(objective)}.",
    )


@_tells
def _unseen_learned(
    state: str | None = None, declared: bool = False, objective: str = "max", kind: str = ""
) -> Told:
    return (
        "What never happened in the log follows its patterns, or is at least no worse than "
        f"{_worst(state, objective, declared, kind)}.",
        f"If something worse can happen, the promise is {_too(objective)}.",
    )


def _worst(state: str | None, objective: str, declared: bool, kind: str = "") -> str:
    then = "" if state is None else f", followed by {state}"
    return f"the {worst_of(objective, declared=declared, kind=kind)}{then}"


@_tells
def _unseen_both_ways() -> Told:
    return (
        "What never happened in the log turns out badly for this rule and well for the other.",
        "Nothing changes for the worse: this is the least favourable case.",
    )


@_tells
def _unseen_taken(
    state: str | None = None, declared: bool = False, objective: str = "max", kind: str = ""
) -> Told:
    then = "" if state is None else f", and then in {state}"
    return (
        "What never happened in the log ends at the "
        f"{worst_of(objective, declared=declared, kind=kind)}{then}.",
        f"If something worse can happen, the promise is {_too(objective)}.",
    )


@_tells
def _returns_within_log(objective: str = "max") -> Told:  # noqa: ARG001
    return (
        "No episode of the past could have gone better than the best path through the log.",
        "Only the gain over the past rests on this: if not, that gain is too high. A stated range "
        "of rewards replaces it.",
    )


@_tells
def _chosen_elsewhere() -> Told:
    return (
        "The rule was chosen without this log.",
        "If it was chosen on this log, part of the promise is luck: surefoot solve measures that "
        "part and subtracts it.",
    )


@_tells
def _rewards_normal() -> Told:
    return (
        "What single steps bring scatters evenly around its mean (a normal distribution).",
        "If rare, large losses occur, the mean is less sure than it looks. State the range of "
        "rewards instead.",
    )


@_tells
def _rewards_within_seen() -> Told:
    return (
        "No step ever brings more or less than was seen in the log.",
        "If larger losses are possible, the promise may not hold. State the range of rewards.",
    )


@_tells
def _rewards_as_seen() -> Told:
    return (
        "What a transition brought every time it happened, it always brings.",
        "If it may bring a rare large loss that is not in the log, the promise may not hold. State "
        "the range of rewards.",
    )


@_tells
def _posterior_without_counts(objective: str = "max") -> Told:
    known = "rewards" if objective == "max" else "costs"
    return (
        f"The model lists all that can happen, and its {known} are exact.",
        "If not, the promise is as wrong as the model.",
    )
