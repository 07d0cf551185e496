"""The promise in short sentences, for the head of a page.

`sentences` has the exact wording. The headlines leave out the conditions, which the page lists
beside them. Bounds are rounded the same way: lower bounds down, upper bounds up.
"""

import math
from dataclasses import dataclass

from surefoot._display import number_of
from surefoot._rounding import bracket_text, lower_text, near_text, upper_text
from surefoot.certificates.certificate import Certificate

CUT = 0.02
"""If cut episodes hide more than this share of the mean, the log does not show what was earned."""


@dataclass(frozen=True, kw_only=True)
class Today:
    """What past decisions earned, in the same measure as the promise.

    Attributes
    ----------
    mean, lower, upper
        What they earned, with bounds; None where there is no interval.
    episodes
        How many episodes of the log this comes from; 0 if it comes from the model.
    """

    mean: float
    lower: float | None
    upper: float | None
    episodes: int


def today(certificate: Certificate) -> Today | None:
    """Return what past decisions earned: by the log if possible, otherwise by the model.

    The log's own number is used if it measures the same thing as the promise: whole returns from
    the same first states. Returns None if neither is known.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, certify, riverswim
    >>> import numpy as np
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> made = certify([1] * 6, posterior, mdp, draws=500, rng=np.random.default_rng(1))
    >>> today(made) is None
    True
    """
    behaviour = certificate.behaviour
    if behaviour is None:
        return None
    seen, model = behaviour.log, behaviour.model
    if seen is not None and seen.mean is not None and certificate.gain is not None:
        whole = seen.horizon is None or seen.horizon == certificate.horizon
        if whole and (seen.cut == 0 or seen.slack <= CUT * abs(seen.mean)):
            return Today(mean=seen.mean, lower=seen.lower, upper=seen.upper, episodes=seen.episodes)
    if model is None:
        return None
    return Today(mean=model.mean, lower=model.lower, upper=model.upper, episodes=0)


def steady(amount: float, discount: float, horizon: int | None = None) -> float:
    """Return the constant amount per step that adds up to a discounted total of ``amount``.

    Examples
    --------
    >>> steady(100.0, 0.95), steady(30.0, 1.0, 12)
    (5.0, 2.5)
    """
    if discount == 1.0:
        if horizon is None:
            raise ValueError("a total without discount needs a horizon.")
        return amount / horizon
    weight = 1.0 - discount
    if horizon is not None:
        weight /= -math.expm1(horizon * math.log(discount)) if discount > 0 else 1.0
    return float(f"{amount * weight:.14g}")  # drops the last digits, which are rounding errors


def with_commas(text: str) -> str:
    """Return a number with commas between the thousands.

    Examples
    --------
    >>> with_commas("26167"), with_commas("-1234.50"), with_commas("1.5e+20"), with_commas("inf")
    ('26,167', '-1,234.50', '1.5e+20', 'inf')
    """
    whole, point, decimals = text.partition(".")
    sign = "-" if whole.startswith("-") else ""
    digits = whole.removeprefix("-")
    return f"{sign}{int(digits):,}{point}{decimals}" if digits.isdecimal() else text


def amount_text(number: str, unit: str | None) -> str:
    """Return a number with its unit.

    Examples
    --------
    >>> amount_text("26167", "EUR"), amount_text("0.5", None)
    ('26,167 EUR', '0.5')
    """
    shown = with_commas(number)
    return shown if unit is None else f"{shown} {unit}"


def bound_text(certificate: Certificate) -> str:
    """Return the promised number, rounded in the direction in which it still holds."""
    lower, upper = bracket_text(certificate.lower_bound, certificate.upper_bound)
    return with_commas(lower if certificate.objective == "max" else upper)


def limit_text(certificate: Certificate) -> str:
    """Return the limit on what could be promised, rounded away from the promise."""
    lower, upper = bracket_text(certificate.lower_bound, certificate.upper_bound)
    return with_commas(upper if certificate.objective == "max" else lower)


def promise_headline(certificate: Certificate, discount: float) -> str:
    """Return the promise and its confidence as one short sentence.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, certify, riverswim
    >>> import numpy as np
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> made = certify([1] * 6, posterior, mdp, draws=500, rng=np.random.default_rng(1))
    >>> promise_headline(made, 0.99).split(" at least ")[0]
    'With 95% confidence this rule earns'
    """
    reward = certificate.objective == "max"
    does = "earns at least" if reward else "costs at most"
    total = amount_text(bound_text(certificate), certificate.unit)
    horizon = certificate.horizon
    said = f"{certificate.confidence} confidence this rule {does} {total}"
    if discount == 1.0 and horizon is None:
        said += " until the end."
    else:
        each = steady(certificate.promise, discount, horizon)
        step = amount_text((lower_text if reward else upper_text)(each, 4), certificate.unit)
        steps = "" if horizon is None else f" over {number_of(horizon, 'step')}"
        said += f"{steps}, the same as a steady {step} per step."
    return f"If that were not so, with {said}" if certificate.withheld else f"With {said}"


def before_headline(certificate: Certificate) -> str:
    """Return what was earned so far and whether the policy certifiably beats it; "" if unknown.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, certify, riverswim
    >>> import numpy as np
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> made = certify([1] * 6, posterior, mdp, draws=500, rng=np.random.default_rng(1))
    >>> before_headline(made)
    ''
    """
    before = today(certificate)
    if before is None:
        return ""
    reward = certificate.objective == "max"
    number = amount_text(near_text(before.mean, 4), certificate.unit)
    if before.episodes:
        did = "earned" if reward else "cost"
        told = f"What was done so far {did} {number}"
        told += f" (average of {number_of(before.episodes, 'episode')})"
    else:
        told = f"What was done so far would {'earn' if reward else 'cost'} {number}, by the model"
    return told + _gain_words(certificate)


def _gain_words(certificate: Certificate) -> str:
    if certificate.withheld:
        return "."
    gain = certificate.gain
    if gain is None or gain.lower_bound is None or gain.lower_bound <= 0:
        return "; that the rule does better is not certain yet."
    number = amount_text(lower_text(gain.lower_bound, 4), certificate.unit)
    does = f"earns at least {number} more" if certificate.objective == "max" else ""
    does = does or f"costs at least {number} less"
    steps = "" if gain.horizon is None else f" over the first {gain.horizon:,} steps"
    return f"; the rule {does}{steps}, also with {certificate.confidence} confidence."
