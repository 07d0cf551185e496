"""Promises in words: the only place that states their confidence.

Lower bounds are rounded down, upper bounds up. The words for rewards (``objective="max"``) or costs
(``"min"``) are chosen here.
"""

import math
from collections.abc import Iterable
from decimal import Decimal

from surefoot import _finding_texts as texts
from surefoot._display import number_of
from surefoot._findings import Finding
from surefoot._rounding import bracket_text, chance_text, lower_text, near_text

GIVEN = {
    "bayesian": "given this prior and data",
    "frequentist": "whatever the true model among those of the stated support",
}
"""What a promise is conditional on, by its basis."""
HOLDS = "promise holds with probability at least"
"""The name of the confidence in a table."""


def percent(failure: float) -> str:
    """Return ``1 - failure`` in percent, exactly: 0.05 is "95%", 0.001 is "99.9%".

    Examples
    --------
    >>> percent(0.05), percent(0.001), percent(0.2)
    ('95%', '99.9%', '80%')
    """
    share = 100 * (1 - Decimal(repr(float(failure))))
    return f"{share.normalize():f}%"


def conditions(basis: str, findings: Iterable[Finding]) -> str:
    """Return what a promise is conditional on and what it assumes, as the middle of a sentence.

    Examples
    --------
    >>> found = [Finding.of("unseen_no_worse"), Finding.of("rewards_within_seen")]
    >>> conditions("bayesian", found).split(", ")[2]
    'and that no step brings more or less than was ever seen'
    """
    said, before = [GIVEN[basis]], ""
    for found in findings:
        if found.level == "assumption":
            lead, clause = texts.parts(found.code, found.values)
            again = lead == before == "assuming that"
            said.append(f"and that {clause}" if again else f"{lead} {clause}".lstrip())
            before = lead
    return ", ".join(said)


def surely(delta: float, basis: str, findings: Iterable[Finding], claim: str) -> str:
    """Return a claim with its confidence and its conditions.

    Examples
    --------
    >>> surely(0.05, "bayesian", [], "it rains")
    'With 95% confidence, given this prior and data, it rains.'
    """
    return f"With {percent(delta)} confidence, {conditions(basis, findings)}, {claim}."


def not_certified(failures: Iterable[str], said: str) -> str:
    """Return a withheld promise: the failed checks first, then the number under "if".

    Examples
    --------
    >>> not_certified(["It snowed."], "With 95% confidence, it rains.")
    'NOT CERTIFIED. It snowed. If that were not so: with 95% confidence, it rains.'
    """
    return f"NOT CERTIFIED. {' '.join(failures)} If that were not so: {said[0].lower()}{said[1:]}"


def promise(
    lower: float, upper: float, *, scope: str, objective: str, unit: str | None = None,
    horizon: int | None = None, unseen: bool = False, discounted: bool = True,
    by_step: bool = False, starts: int | None = None,
) -> str:  # fmt: skip
    """Return what a policy is promised, and the most that could be promised.

    ``unseen``: part of the model stands for what was never observed. Assuming that it is no worse
    supports only the promise; the limit takes it as the model does, and says so. ``starts``: how
    many episodes show the first state; None if its distribution was stated.

    Examples
    --------
    >>> promise(1.25, 2.5, scope="no policy", objective="max", unit="EUR").split(" is ")[1]
    'at least 1.2500 EUR; no policy can be promised more than 2.5000 EUR'
    >>> promise(1.25, 2.5, scope="no policy", objective="max", starts=60).split(" is ")[0]
    "the policy's expected discounted return from first states as in 60 episodes of the log"
    """
    low, high = (_amount(end, unit) for end in bracket_text(lower, upper))
    word, safe, best = (
        ("return", f"at least {low}", high)
        if objective == "max"
        else ("cost", f"at most {high}", low)
    )
    steps = "" if discounted else " until the end"
    if horizon is not None:
        steps = f" over at most {number_of(horizon, 'step')}"
    if discounted:
        word = f"discounted {word}"
    first = "the stated initial distribution"
    if starts is not None:
        first = f"first states as in {number_of(starts, 'episode')} of the log"
    rule = _rule(horizon, by_step=by_step)
    claim = f"{rule}the policy's expected {word}{steps} from {first} is {safe}"
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return claim
    return f"{claim}; {limit(best, scope=scope, objective=objective, unseen=unseen)}"


def limit(best: str, *, scope: str, objective: str, unseen: bool) -> str:
    """Return the limit on what could be promised; ``best`` is the number, or words for it.

    Examples
    --------
    >>> limit("this", scope="no deterministic policy", objective="max", unseen=True)
    'taking the unseen as the model does, no deterministic policy can be promised more than this'
    """
    as_modelled = "taking the unseen as the model does, " if unseen else ""
    more = "more" if objective == "max" else "less"
    return f"{as_modelled}{scope} can be promised {more} than {best}"


def _rule(horizon: int | None, *, by_step: bool) -> str:
    """Return the words for the kind of rule that a policy over a horizon uses; "" without one."""
    if horizon is None:
        return ""
    return "with a rule for each step, " if by_step else "with one rule for all steps, "


def difference(
    lower: float, *, a: str, b: str, objective: str, unit: str | None = None,
    mean: float | None = None, chance: float | None = None,
) -> str:  # fmt: skip
    """Return a lower bound on how much better a is than b (for costs: cheaper), in words.

    Examples
    --------
    >>> difference(7.02942, a="policy a", b="policy b", objective="max")
    'policy a earns at least 7.029 more than policy b'
    >>> difference(-0.5, a="it", b="that", objective="min", unit="EUR")
    'it costs at most 0.5000 EUR more than that; that it costs less is not shown'
    """
    verb, gain, loss = (
        ("earns", "more", "less") if objective == "max" else ("costs", "less", "more")
    )
    bound = _amount(lower_text(lower, 4).removeprefix("-"), unit)
    if lower >= 0:
        claim = f"{a} {verb} at least {bound} {gain} than {b}"
    else:
        claim = f"{a} {verb} at most {bound} {loss} than {b}; that it {verb} {gain} is not shown"
    if mean is None or chance is None:
        return claim
    way = gain if mean >= 0 else loss
    average = f"on average {_amount(near_text(abs(mean), 4), unit)} {way}"
    return f"{claim} ({average}, better with probability {chance_text(chance)})"


def no_difference(a: str, b: str) -> str:
    """Return the sentence for two equal policies, which needs no confidence."""
    return f"There is no difference: {a} does the same as {b}."


def _amount(number: str, unit: str | None) -> str:
    return number if unit is None else f"{number} {unit}"
