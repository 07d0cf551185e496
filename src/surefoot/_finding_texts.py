"""The words for findings: the only place that has them.

Each code has a function from its values to a sentence. A function with the parameter ``objective``
speaks of rewards (``"max"``) or of costs (``"min"``) and chooses its words by that.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot._display import number_of


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

Words = Callable[..., str]


def _says(level: str, *, lead: str = "", amounts: tuple[str, ...] = ()) -> Callable[[Words], Words]:
    def register(words: Words) -> Words:
        code = words.__name__.removeprefix("_")
        TEXTS[code] = Text(level=level, words=words, lead=lead, amounts=amounts)
        return words

    return register


def render(code: str, values: Mapping[str, Any]) -> str:
    """Return the text of a finding.

    Examples
    --------
    >>> render("support_listed", {})
    'assuming no transition outside those listed'
    """
    lead, clause = parts(code, values)
    return f"{lead} {clause}" if lead else clause


def parts(code: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return how an assumption begins and what it says; only assumptions have a beginning."""
    text = TEXTS[code]
    return text.lead, text.words(**values)


def misfit(code: str, values: Mapping[str, Any]) -> str:
    """Return what is wrong with the names of the values, or ""."""
    try:
        inspect.signature(TEXTS[code].words).bind(**values)
    except TypeError as problem:
        return str(problem)
    return ""


def mirrored(code: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a finding about rewards for one about costs, or the other way round.

    Examples
    --------
    >>> mirrored("stuck_states", {"states": 2, "amount": -5.0})
    {'states': 2, 'amount': 5.0, 'objective': 'min'}
    """
    text = TEXTS[code]
    if "objective" not in inspect.signature(text.words).parameters:
        return dict(values)
    turned = {
        name: 0.0 - value if name in text.amounts and value is not None else value
        for name, value in values.items()
    }
    if turned.pop("objective", "max") == "max":
        turned["objective"] = "min"
    return turned


def worst_words(objective: str) -> str:
    """Return what the worst amount of a log is called.

    Examples
    --------
    >>> worst_words("max"), worst_words("min")
    ('lowest reward', 'highest cost')
    """
    return "lowest reward" if objective == "max" else "highest cost"


# What promises assume.


@_says("assumption", lead="assuming")
def _support_observed() -> str:
    return "no transition outside those observed"


@_says("assumption", lead="assuming")
def _support_action() -> str:
    return "no transition outside those observed under the same action"


@_says("assumption", lead="assuming")
def _support_listed() -> str:
    return "no transition outside those listed"


@_says("assumption", lead="assuming that")
def _unseen_no_worse(state: str | None = None, objective: str = "max") -> str:
    worst = worst_words(objective)
    if state is None:
        return f"what was never observed leads to nothing worse than the {worst} seen"
    return (
        f"what was never observed is no worse than the {worst} seen, and leads to no state worse "
        f"than {state}"
    )


@_says("assumption", lead="assuming that")
def _unseen_learned(state: str | None = None, objective: str = "max") -> str:
    worst = worst_words(objective)
    then = "" if state is None else f" and leads to no state worse than {state}"
    return (
        "what was never observed follows the patterns of the log, or else is no worse than the "
        f"{worst} seen{then}"
    )


@_says("assumption", lead="taking")
def _unseen_both_ways() -> str:
    return (
        "what follows no pattern of the log at its worst for the first policy and at its best for "
        "the second"
    )


@_says("assumption", lead="assuming that")
def _returns_within_log() -> str:
    return "no episode brings more than the best path through the transitions of the log"


@_says("note", amounts=("promise",))
def _curse_taken_off(mean: float, spread: float, promise: float, objective: str = "max") -> str:
    at = "at least" if objective == "max" else "at most"
    return (
        f"Choosing the policy on the data that value it is worth {mean:.4g} of luck (standard "
        f"error {spread:.2g}), as halves of the log show; both were taken off. Without that the "
        f"promise would read {at} {promise:.6g}."
    )


@_says("note")
def _first_state_unsure(starts: int, amount: float) -> str:
    return (
        f"The first state is known from {number_of(starts, 'episode')} only: {amount:.4g} was "
        "taken off for that."
    )


@_says("note")
def _curse_not_measured() -> str:
    return (
        "What choosing the policy on the same data is worth was not measured: the log cannot be "
        "divided."
    )


@_says("warning", amounts=("log", "model"))
def _behaviour_mismatch(log: float, model: float, objective: str = "max") -> str:
    verb = "earned" if objective == "max" else "cost"
    return (
        f"What was done {verb} {log:.4g} an episode in the log, but {model:.4g} by the model: "
        "prior or unseen rule do not fit this log, and the promise is as doubtful as that."
    )


@_says("failed")
def _past_matters(p_value: float, episodes: int) -> str:
    return (
        "The early part of an episode predicts its late part, given state and action "
        f"(p = {p_value:.2g}, {number_of(episodes, 'episode')}): the state lacks something that "
        "matters, such as a type of case. No promise of this model can be relied on; add what is "
        "missing to the state."
    )


@_says("failed")
def _not_markov(p_value: float) -> str:
    return (
        "The next state depends on more than state and action "
        f"(p = {p_value:.2g}): no promise of this model can be relied on. Add what is missing to "
        "the state, for instance the previous state."
    )


@_says("failed")
def _backtest_new_successors(p_value: float, seen: int, expected: float) -> str:
    return (
        f"The part of the log that was held out went to {seen:,} new successors where "
        f"{expected:.4g} were expected (p = {p_value:.2g}): the model leaves too little to the "
        "unseen, and its promise cannot be relied on."
    )


@_says("failed")
def _backtest_steps_worse(p_value: float, short: float) -> str:
    return (
        f"In the part of the log that was held out the chosen steps came out {short:.4g} worse "
        f"than the model expects (p = {p_value:.2g}): its promise cannot be relied on."
    )


@_says("assumption", lead="taking")
def _unseen_taken(state: str | None = None, objective: str = "max") -> str:
    then = "" if state is None else f", and then to {state}"
    return f"what was never observed to lead to the {worst_words(objective)} seen{then}"


@_says("assumption", lead="taking")
def _rewards_normal() -> str:
    return "what single steps bring to scatter normally"


@_says("assumption", lead="assuming that")
def _rewards_within_seen() -> str:
    return "no step brings more or less than was ever seen"


@_says("assumption", lead="taking")
def _posterior_without_counts(objective: str = "max") -> str:
    known = "rewards" if objective == "max" else "costs"
    return f"the model's successors as complete and its {known} as exact"


# What the checks of a log found.

_PARTS = {"halves": "the first and the second half of the log"}
_UNCHECKED = {
    "few": "no state-action pair was tried often enough",
    "aggregated": "the log is aggregated and has no order",
    "unordered": "that needs episode= and step=",
    "changed": "the log has changed or moved since it was read",
    "memory": "it needs more memory than DuckDB may use",
    "unreadable": "the log could not be read a second time",
}


def _why(reason: str, limit: str | None) -> str:
    if limit is None:
        return _UNCHECKED[reason]
    return f"DuckDB may use {limit} of memory, and it needs more"


def _tried(p_value: float, tried: int, sample: int | None = 1) -> str:
    part = ", on the first rows" if sample is None else f", on a sample of 1 in {sample} rows"
    pairs = f"{number_of(tried, 'state-action pair')} tried"
    return f"(p = {p_value:.2g}, {pairs}{'' if sample == 1 else part})"


def _between(first_rows: int | None) -> str:
    if first_rows is None:
        return _PARTS["halves"]
    return f"the first {first_rows:,} rows of the log and the rest"


@_says("note")
def _memory_not_checked(reason: str, limit: str | None = None) -> str:
    return f"Memory beyond the state was not checked: {_why(reason, limit)}."


@_says("note")
def _drift_not_checked(reason: str, limit: str | None = None) -> str:
    return f"Drift in time was not checked: {_why(reason, limit)}."


@_says("note")
def _no_memory_seen(p_value: float, tried: int, sample: int | None = 1) -> str:
    found = _tried(p_value, tried, sample)
    return f"The next state does not visibly depend on the previous one {found}."


@_says("warning")
def _memory_seen(
    p_value: float, tried: int, state: str, action: str, sample: int | None = 1
) -> str:
    return (
        "The next state depends on the previous one, given state and action "
        f"{_tried(p_value, tried, sample)}, most clearly in state {state} under action {action}; "
        "the state may lack something that matters."
    )


@_says("note")
def _no_drift_seen(p_value: float, tried: int, first_rows: int | None = None) -> str:
    return f"No drift between {_between(first_rows)} {_tried(p_value, tried)}."


@_says("warning")
def _drift_seen(
    p_value: float, tried: int, state: str, action: str, first_rows: int | None = None
) -> str:
    return (
        f"Next states differ between {_between(first_rows)} {_tried(p_value, tried)}, most clearly "
        f"in state {state} under action {action}; one model for the whole log may be wrong."
    )


@_says("note")
def _old_and_new_agree(p_value: float, tried: int) -> str:
    return f"No difference between the old and the new data {_tried(p_value, tried)}."


@_says("warning")
def _old_and_new_differ(p_value: float, tried: int) -> str:
    return f"Next states differ between the old and the new data {_tried(p_value, tried)}."


# What reading a log found.


@_says("warning")
def _rows_left_out(rows: int, what: str) -> str:
    were = "was" if rows == 1 else "were"
    return f"{number_of(rows, 'row')} without {what} {were} left out on request."


@_says("warning")
def _end_column_unused(column: str) -> str:
    return (
        f"The column {column!r} was not used. If it marks the ends of episodes, pass "
        f"terminal={column!r}: without it they look like states that were never acted in."
    )


@_says("warning")
def _labels_mixed(what: str, whole: int, odd: int, example: str) -> str:
    return (
        f"{whole:,} {what}s are whole numbers and {odd:,} are not (such as {example!r}); all were "
        f"kept as text. Check the {what} column if that is a mistake."
    )


@_says("warning")
def _labels_written_twice(what: str, example: str) -> str:
    return (
        f"Some {what}s are written both as {example} and as {example}.0; they were read as the "
        "same whole numbers."
    )


@_says("warning")
def _hidden_files(files: int, example: str) -> str:
    return (
        f"{number_of(files, 'hidden file')} passed over, such as {example}. Name such a file "
        "itself to read it."
    )


@_says("warning")
def _files_named_twice(files: int, example: str) -> str:
    return f"{number_of(files, 'file')} named twice and read once, such as {example}."


@_says("warning")
def _read_twice(file: str, more: int = 0) -> str:
    others = f" (and {more} more)" if more else ""
    return f"{file}{others} was read before: what it holds counts twice, and promises are too sure."


@_says("warning")
def _observed_only() -> str:
    return f"Every promise is made {render('support_observed', {})}."


@_says("warning", amounts=("amount",))
def _stuck_states(states: int, amount: float | None = None, objective: str = "max") -> str:
    shown = "" if amount is None else f" ({amount:g})"
    return (
        f"{number_of(states, 'state')} without a usable action: absorbing at the "
        f"{worst_words(objective)}{shown}."
    )


# How sets without a prior were made.


@_says("note")
def _samples_fixed() -> str:
    return "The number of samples of every row was fixed before the data."


@_says("note")
def _weights_independent() -> str:
    return "The weights given do not depend on these data."


@_says("note")
def _weights_from_other_data() -> str:
    return "The weights come from other data than the sizes."


@_says("warning")
def _weights_reused() -> str:
    return (
        "The weights were chosen on the same data as the sizes; there is no proof that the level "
        "survives this."
    )


@_says("note")
def _policy_from_other_data() -> str:
    return "The policy was chosen without these data."


@_says("warning")
def _successors_read_off() -> str:
    return "The reachable successors were read off the same log; the bound takes them as given."


@_says("note")
def _delta_shared_with_rewards() -> str:
    return "Mean rewards are uncertain; half of delta is theirs."


# How the search went.

_FEWER = {
    "memory": "no more fit in memory",
    "posterior": "the posterior has no more to choose on",
}


@_says("note")
def _fewer_draws(draws: int, wanted: int, reason: str) -> str:
    return f"The policy was chosen on {draws} draws, not {wanted}: {_FEWER[reason]}."


@_says("note")
def _draws_split(draws: int, choosing: int, certifying: int) -> str:
    return (
        f"The posterior's {draws} draws were split once: {choosing} to choose the policy, "
        f"{certifying} to certify it."
    )


@_says("warning")
def _draws_reused() -> str:
    return (
        "Draws of this posterior have chosen a policy before, and it has no others: if they chose "
        "this one, the promise is too high. Certify with the holdout of the result that chose it."
    )


@_says("note")
def _stopped_early() -> str:
    return "The time budget ended the search; the promise holds, and a longer search may find more."


@_says("note")
def _worst_case_left_out() -> str:
    return "The time budget left no time for the worst case of a credible set, a looser promise."


@_says("note")
def _stated(text: str) -> str:
    return text
