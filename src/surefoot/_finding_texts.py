"""The wording of findings: here, in ``_log_texts`` and ``_doubt_texts``, and nowhere else.

Each code has a function from its values to a sentence. A function with the parameter ``objective``
words its sentence for rewards (``"max"``) or for costs (``"min"``).
"""

import inspect
from collections.abc import Mapping
from typing import Any

from surefoot import _doubt_texts, _log_texts  # noqa: F401  (they register their words)
from surefoot._display import number_of
from surefoot._finding_codes import TEXTS as TEXTS
from surefoot._finding_codes import says, worst_of
from surefoot._rounding import rough_text as rough


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
    """Return the lead of an assumption ("" for other findings) and the words that follow it."""
    text = TEXTS[code]
    return text.lead, text.words(**values)


def misfit(code: str, values: Mapping[str, Any]) -> str:
    """Return what is wrong with the names of the values, or "" if they fit the code."""
    try:
        inspect.signature(TEXTS[code].words).bind(**values)
    except TypeError as problem:
        return str(problem)
    return ""


def mirrored(code: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of a finding about rewards into those of one about costs, or back.

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


# What promises assume.


@says("assumption", lead="assuming")
def _support_observed() -> str:
    return "no transition outside those observed"


@says("assumption", lead="assuming")
def _support_action() -> str:
    return "no transition outside those observed under the same action"


@says("assumption", lead="assuming")
def _support_listed() -> str:
    return "no transition outside those listed"


@says("assumption", lead="assuming that")
def _unseen_no_worse(
    state: str | None = None, declared: bool = False, objective: str = "max"
) -> str:
    worst = worst_of(objective, declared=declared)
    if state is None:
        return f"what was never observed leads to nothing worse than the {worst}"
    return (
        f"what was never observed is no worse than the {worst}, and leads to no state worse than "
        f"{state}"
    )


@says("assumption", lead="assuming that")
def _unseen_learned(
    state: str | None = None, declared: bool = False, objective: str = "max", kind: str = ""
) -> str:
    known = "what was never observed follows the patterns of the log, or else is no worse than the"
    then = "" if state is None else f" and leads to no state worse than {state}"
    return f"{known} {worst_of(objective, declared=declared, kind=kind)}{then}"


@says("assumption", lead="taking")
def _unseen_both_ways() -> str:
    return (
        "what follows no pattern of the log at its worst for the first policy and at its best for "
        "the second"
    )


def _taken(objective: str) -> str:
    """Return what is done with a doubt and a promise: costs rise by it."""
    return "subtracted from the promise" if objective == "max" else "added to the promised cost"


@says("note", amounts=("promise",))
def _curse_taken_off(mean: float, spread: float, promise: float, objective: str = "max") -> str:
    read = "return of at least" if objective == "max" else "cost of at most"
    return (
        "The policy was chosen and evaluated on the same data, which flatters it. The log's own "
        f"halves and frequencies put that at {rough(mean)} (standard error {rough(spread, 2)}); "
        f"both are {_taken(objective)}, which would otherwise be a "
        f"{read} {rough(promise, 6)}."
    )


@says("note", amounts=("log", "low", "high", "model"))
def _practice_seen(
    log: float, low: float, high: float, model: float, episodes: int, share: str,
    objective: str = "max",
) -> str:  # fmt: skip
    verb = "earned" if objective == "max" else "cost"
    ends = sorted((low, high))
    between = f"{rough(ends[0])} to {rough(ends[1])} with {share} confidence on each side"
    if not ends[0] <= log <= ends[1]:  # low and high are about whole episodes
        return (
            f"The episodes of the log, as far as it shows them, {verb} {rough(log)} on average "
            f"({number_of(episodes, 'episode')}, some cut off); whole ones {verb} {between}. "
            f"According to the model it would be {rough(model)}."
        )
    return (
        f"What was done in the log {verb} {rough(log)} per episode "
        f"({number_of(episodes, 'episode')}; {between}). According to the model it would be "
        f"{rough(model)}."
    )


@says("note")
def _backtest_passed(
    p_value: float, new: int | None = None, expected: float | None = None,
    better: float | None = None,
) -> str:  # fmt: skip
    told = []
    if new is not None and expected is not None:
        told.append(f"{new:,} steps led to new successors, {rough(expected, 3)} were expected")
    if better is not None:
        way = "better" if better >= 0 else "worse"
        told.append(
            f"steps chosen without that half turned out {rough(abs(better), 3)} {way} than expected"
        )
    return (
        f"A held-out half of the log is consistent with the model (p = {p_value:.2g}): "
        f"{'; '.join(told)}. This is a check, not a proof."
    )


@says("note")
def _first_state_unsure(starts: int, amount: float, objective: str = "max") -> str:
    return (
        f"Where episodes start is known from only {number_of(starts, 'episode')}; "
        f"{rough(abs(amount))} is {_taken(objective)} for that."
    )


@says("warning")
def _posterior_of_whole_logs() -> str:
    return (
        "The policy was chosen and evaluated on the same data. How much that flatters it was not "
        "measured, and no half of the log was held out as a test: this posterior has no method "
        "'given', which would say what half of the log shows on its own."
    )


@says("warning", amounts=("log", "model"))
def _behaviour_mismatch(log: float, model: float, objective: str = "max") -> str:
    verb = "earned" if objective == "max" else "cost"
    return (
        f"What was done {verb} {rough(log)} per episode in the log, but {rough(model)} according "
        "to the model: the prior or the rule for the unseen does not fit this log, and the promise "
        "is no more reliable than they are."
    )


@says("failed")
def _past_matters(p_value: float, episodes: int) -> str:
    return (
        "The early part of an episode predicts its late part, given state and action "
        f"(p = {p_value:.2g}, {number_of(episodes, 'episode')}): the state lacks something that "
        "matters, such as a type of case. No promise of this model can be relied on; add what is "
        "missing to the state."
    )


@says("failed")
def _not_markov(p_value: float) -> str:
    return (
        "The next state depends on more than state and action "
        f"(p = {p_value:.2g}): no promise of this model can be relied on. Add what is missing to "
        "the state, for instance the previous state."
    )


@says("failed")
def _backtest_new_successors(p_value: float, seen: int, expected: float) -> str:
    return (
        f"In the part of the log that was held out, {seen:,} steps led to new successors where "
        f"{rough(expected)} were expected (p = {p_value:.2g}): the model leaves too little room "
        "for the unseen, and its promise cannot be relied on."
    )


@says("failed")
def _backtest_steps_worse(p_value: float, short: float) -> str:
    return (
        f"In the part of the log that was held out, the chosen steps turned out {rough(short)} "
        f"worse than the model expects (p = {p_value:.2g}): its promise cannot be relied on."
    )


@says("failed")
def _backtest_rewards_worse(p_value: float, short: float) -> str:
    return (
        f"In the part of the log that was held out, single steps turned out {rough(short)} worse "
        f"on average than the distribution assumed for them allows (p = {p_value:.2g}): the "
        "promise cannot be relied on. Declare a range that contains everything a step can bring."
    )


@says("assumption", lead="taking")
def _unseen_taken(
    state: str | None = None, declared: bool = False, objective: str = "max", kind: str = ""
) -> str:
    then = "" if state is None else f", and then to {state}"
    worst = worst_of(objective, declared=declared, kind=kind)
    return f"what was never observed to lead to the {worst}{then}"


@says("assumption", lead="taking")
def _rewards_normal() -> str:
    return "what single steps bring as normally distributed"


@says("assumption", lead="assuming that")
def _rewards_within_seen() -> str:
    return "no step brings more or less than was ever seen"


@says("assumption", lead="assuming that")
def _rewards_as_seen() -> str:
    return "a transition that always brought the same always will"


@says("assumption", lead="taking")
def _posterior_without_counts(objective: str = "max") -> str:
    known = "rewards" if objective == "max" else "costs"
    return f"the model's successors as complete and its {known} as exact"


@says("warning")
def _observed_only() -> str:
    return f"Every promise is made {render('support_observed', {})}."


# How sets without a prior were made.


@says("note")
def _samples_fixed() -> str:
    return "The number of samples of every row was fixed before the data."


@says("note")
def _weights_independent() -> str:
    return "The weights given do not depend on these data."


@says("note")
def _weights_from_other_data() -> str:
    return "The weights come from other data than the sizes of the sets."


@says("warning")
def _weights_reused() -> str:
    return (
        "The weights were chosen on the same data as the sizes of the sets; there is no proof that "
        "the confidence level still holds."
    )


@says("note")
def _policy_from_other_data() -> str:
    return "The policy was chosen without these data."


@says("warning")
def _successors_read_off() -> str:
    return "The reachable successors were read off the same log; the bound takes them as given."


@says("note")
def _delta_shared_with_rewards() -> str:
    return "Mean rewards are uncertain too; half of delta is spent on them."


# How the search went.

_FEWER = {
    "memory": "no more fit in memory",
    "posterior": "the posterior has no more to choose on",
}


@says("note")
def _fewer_draws(draws: int, wanted: int, reason: str) -> str:
    return f"The policy was chosen on {draws} draws, not {wanted}: {_FEWER[reason]}."


@says("note")
def _hardly_tried(pairs: int, tries: int) -> str:
    each = "1 action was" if pairs == 1 else f"{pairs:,} actions were"
    return (
        f"{each} not considered: tried fewer than {tries} times in a state where another was tried "
        "more often."
    )


@says("note")
def _usual_kept(states: int) -> str:
    where = "1 state" if states == 1 else f"{states:,} states"
    return (
        f"In {where} the policy keeps the action that was tried most often: another one looks "
        "better, but by less than the uncertainty about it."
    )


@says("note")
def _draws_split(draws: int, choosing: int, certifying: int) -> str:
    return (
        f"The posterior's {draws} draws were split once: {choosing} to choose the policy, "
        f"{certifying} to certify it."
    )


@says("warning")
def _draws_reused() -> str:
    return (
        "The draws of this posterior have been used to choose a policy before, and there are no "
        "others: if they chose this one, the promise is too high. Certify with the holdout of the "
        "result that chose it."
    )


@says("note")
def _stopped_early() -> str:
    return (
        "The time budget ended the search; the promise holds, but a longer search may find a "
        "better policy."
    )


@says("note")
def _worst_case_left_out() -> str:
    return (
        "The time budget left no time for the worst case of a credible set, which would be a "
        "looser promise."
    )


@says("note")
def _stated(text: str) -> str:
    return text


@says("note")
def _on_device(device: str, checked: int) -> str:
    return (
        f"Draws were made and evaluated on {device}, in double precision; {checked} draws of every "
        "call were repeated on the CPU, with the same result."
    )


@says("note")
def _device_search(candidates: int) -> str:
    return (
        f"The policy was chosen among {candidates} candidates made on the GPU (nominal, cautious, "
        "robust), without local search; device='cpu' searches further and takes longer."
    )
