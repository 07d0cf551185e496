"""The wording of findings about a log: what checking and reading it found."""

from surefoot._display import number_of
from surefoot._finding_codes import says, worst_words
from surefoot._rounding import rough_text as rough

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


def _about(data: str | None, sentence: str) -> str:
    """Return a sentence prefixed with the part of the data it is about; None: no prefix."""
    return sentence if data is None else f"In {data}: {sentence[0].lower()}{sentence[1:]}"


def _between(first_rows: int | None) -> str:
    if first_rows is None:
        return _PARTS["halves"]
    return f"the first {first_rows:,} rows of the log and the rest"


@says("note")
def _memory_not_checked(reason: str, limit: str | None = None, data: str | None = None) -> str:
    return _about(data, f"Memory beyond the state was not checked: {_why(reason, limit)}.")


@says("note")
def _drift_not_checked(reason: str, limit: str | None = None, data: str | None = None) -> str:
    return _about(data, f"Drift in time was not checked: {_why(reason, limit)}.")


@says("note")
def _no_memory_seen(
    p_value: float, tried: int, sample: int | None = 1, data: str | None = None
) -> str:
    found = _tried(p_value, tried, sample)
    return _about(data, f"The next state does not visibly depend on the step before it {found}.")


@says("warning")
def _memory_seen(
    p_value: float, tried: int, state: str, action: str, sample: int | None = 1,
    data: str | None = None,
) -> str:  # fmt: skip
    return _about(
        data,
        "The next state depends on the step before it, given state and action "
        f"{_tried(p_value, tried, sample)}, most clearly in state {state} under action {action}; "
        "the state may lack something that matters.",
    )


@says("note")
def _no_drift_seen(
    p_value: float, tried: int, first_rows: int | None = None, data: str | None = None
) -> str:
    return _about(data, f"No drift between {_between(first_rows)} {_tried(p_value, tried)}.")


@says("note")
def _rows_by_step() -> str:
    return "What was seen at different steps was kept apart: nothing is pooled over steps."


@says("note")
def _steps_alike(p_value: float, tried: int) -> str:
    return f"What comes next does not visibly depend on the step {_tried(p_value, tried)}."


@says("warning")
def _steps_differ(p_value: float, tried: int, state: str, action: str) -> str:
    return (
        f"What comes next depends on the step, given state and action {_tried(p_value, tried)}, "
        f"most clearly in state {state} under action {action}; rows are pooled over all steps. "
        "Keep them apart with by_step=, or add what changes to the state."
    )


@says("warning")
def _drift_seen(
    p_value: float, tried: int, state: str, action: str, first_rows: int | None = None,
    data: str | None = None,
) -> str:  # fmt: skip
    return _about(
        data,
        f"Next states differ between {_between(first_rows)} {_tried(p_value, tried)}, most clearly "
        f"in state {state} under action {action}; one model for the whole log may be wrong.",
    )


@says("note")
def _old_and_new_agree(p_value: float, tried: int, data: str | None = None) -> str:
    new = "the new data" if data is None else f"the new data ({data})"
    return f"No difference between the old and {new} {_tried(p_value, tried)}."


@says("warning")
def _old_and_new_differ(p_value: float, tried: int, data: str | None = None) -> str:
    new = "the new data" if data is None else f"the new data ({data})"
    return f"Next states differ between the old and {new} {_tried(p_value, tried)}."


# What new data say about a promise.


def _brought(short: float, objective: str) -> str:
    amount, less = rough(abs(short), 3), short > 0
    if objective == "min":
        return f"cost {amount} {'more' if less else 'less'} than expected"
    return f"brought {amount} {'less' if less else 'more'} than expected"


def _worse(objective: str) -> str:
    return "less" if objective == "max" else "more"


def _unknown(unknown: int) -> str:
    if unknown == 0:
        return ""
    has = "has a state or an action" if unknown == 1 else "have states or actions"
    return f" {number_of(unknown, 'transition')} {has} that the run does not know."


@says("note")
def _new_data_silent(transitions: int, unknown: int = 0) -> str:
    return (
        f"The new data say nothing about the promise: none of their "
        f"{number_of(transitions, 'transition')} is a step that the policy would take."
        f"{_unknown(unknown)}"
    )


@says("note")
def _new_data_agree(
    steps: int, transitions: int, short: float, bearable: float, evidence: float,
    unknown: int = 0,
    objective: str = "max",
) -> str:  # fmt: skip
    return (
        f"The promise agrees with the new data: {steps:,} of {transitions:,} transitions are steps "
        f"that the policy would take, and they {_brought(short, objective)} on average. The "
        f"promise can bear {rough(bearable, 3)} {_worse(objective)} a step (evidence "
        f"{evidence:.2g}; 100 is an alarm)."
        f"{_unknown(unknown)}"
    )


@says("failed")
def _new_data_disagree(
    steps: int, transitions: int, short: float, bearable: float, evidence: float,
    unknown: int = 0,
    objective: str = "max",
) -> str:  # fmt: skip
    return (
        f"The promise does not agree with the new data: {steps:,} of {transitions:,} transitions "
        f"are steps that the policy would take, and they {_brought(short, objective)} on average, "
        f"where the promise can bear {rough(bearable, 3)} {_worse(objective)} a step (evidence "
        f"{evidence:.2g}; 100 is an alarm, which a promise that holds raises in at most one run "
        "in a hundred, however often you look)."
        f"{_unknown(unknown)}"
    )


# What reading a log found.


@says("warning")
def _rows_left_out(rows: int, what: str) -> str:
    were = "was" if rows == 1 else "were"
    return f"{number_of(rows, 'row')} without {what} {were} left out on request."


@says("warning")
def _gaps_left_out(rows: int, usual: str) -> str:
    are = "row is" if rows == 1 else "rows are"
    was = "it was" if rows == 1 else "they were"
    return (
        f"{rows:,} {are} followed by a gap (steps are usually {usual} apart): what came next is "
        f"unknown, and {was} left out."
    )


@says("note")
def _steps_irregular() -> str:
    return "Steps are not evenly spaced in time, so missing rows cannot be noticed."


@says("note")
def _numbers_read(mark: str, example: str) -> str:
    return f"Numbers are written with a decimal {mark} (such as {example}), and were read that way."


@says("note")
def _dates_read(column: str, written: str) -> str:
    return f"Dates in {column!r} were read as {written}."


@says("note")
def _recoded(file: str, encoding: str) -> str:
    return f"{file} is not UTF-8; it was read as {encoding}. Name another with encoding=."


@says("warning")
def _looks_continuous(column: str, labels: int) -> str:
    return (
        f"The column {column!r} holds {labels:,} different numbers, each of which is a state or an "
        f"action of its own. If it is a measurement, cut it into bins with bins='{column}=4'."
    )


@says("note")
def _episodes_go_on(episodes: int, across: int) -> str:
    go_on, they = ("continues", "it is") if episodes == 1 else ("continue", "they are")
    return (
        f"{number_of(episodes, 'episode')} of the earlier data {go_on} in the new data: {they} not "
        f"counted as new starts. {number_of(across, 'transition')} across the boundary "
        f"{'is' if across == 1 else 'are'} counted."
    )


_NOT_CARRIED = {
    "episodes": "it does not tell its episodes apart, or was made by version 0.1",
    "seed": "it was made with another seed",
    "folder": "an earlier version of surefoot did not keep it",
    "discount": "it was made with another discount",
    "horizon": "it was made with another horizon",
}


@says("note")
def _earlier_returns_left_out(unlike: str) -> str:
    return (
        "What the episodes of the earlier run earned is not known here "
        f"({_NOT_CARRIED[unlike]}): what was earned so far comes from later episodes only."
    )


@says("warning")
def _steps_read_twice(episodes: int) -> str:
    have = "has" if episodes == 1 else "have"
    return (
        f"{number_of(episodes, 'episode')} {have} steps in the new data that the earlier data "
        "have too: they may count twice, which makes promises too confident."
    )


@says("warning")
def _end_column_unused(column: str) -> str:
    return (
        f"The column {column!r} was not used. If it marks the ends of episodes, pass "
        f"terminal={column!r}: without it they look like states in which nobody ever acted."
    )


@says("note")
def _episode_column_unused(column: str) -> str:
    return (
        f"The column {column!r} was not used. If it tells episodes apart, pass episode={column!r} "
        "and step=: they show where episodes start, what was earned so far and whether the past "
        "matters."
    )


@says("warning")
def _labels_mixed(what: str, whole: int, odd: int, example: str) -> str:
    return (
        f"{whole:,} {what}s are whole numbers and {odd:,} are not (such as {example!r}); all were "
        f"kept as text. Check the {what} column if that is a mistake."
    )


@says("warning")
def _labels_written_twice(what: str, example: str) -> str:
    return (
        f"Some {what}s are written both as {example} and as {example}.0; they were read as the "
        "same whole numbers."
    )


@says("warning")
def _hidden_files(files: int, example: str) -> str:
    return (
        f"{number_of(files, 'hidden file')} skipped, such as {example}. Name a hidden file "
        "explicitly to read it."
    )


@says("warning")
def _files_named_twice(files: int, example: str) -> str:
    were = "was" if files == 1 else "were"
    return f"{number_of(files, 'file')} {were} named twice and read once, such as {example}."


@says("warning")
def _read_twice(file: str, more: int = 0) -> str:
    others = f" (and {more} more)" if more else ""
    return (
        f"{file}{others} was read before: its rows count twice, which makes promises too confident."
    )


@says("warning", amounts=("amount",))
def _stuck_states(states: int, amount: float | None = None, objective: str = "max") -> str:
    shown = "" if amount is None else f" ({amount:g})"
    have, they = ("has", "it is") if states == 1 else ("have", "they are")
    return (
        f"{number_of(states, 'state')} {have} no usable action; {they} taken as absorbing at the "
        f"{worst_words(objective)}{shown}."
    )
