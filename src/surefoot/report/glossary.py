"""The few words of the page that need an explanation."""

from collections.abc import Sequence

from surefoot.certificates.sentences import percent
from surefoot.model.checks import discount_text


def counted_words(discount: float, *, costs: bool) -> str:
    """Return a sentence on how much later steps count.

    Examples
    --------
    >>> counted_words(0.95, costs=False)
    'Totals count a reward one step later at 95% of its amount (discount 0.95).'
    """
    if discount == 1.0:
        return "All steps count the same (no discount)."
    word = "cost" if costs else "reward"
    return (
        f"Totals count a {word} one step later at {100 * discount:.4g}% of its amount "
        f"(discount {discount_text(discount)})."
    )


def glossary(
    *, basis: str, delta: float, discount: float, horizon: int | None, costs: bool, limit: str
) -> Sequence[tuple[str, str]]:
    """Return words and their meanings, in the order in which they occur on the page.

    Examples
    --------
    >>> known = {"basis": "bayesian", "delta": 0.05, "discount": 0.9, "horizon": None}
    >>> glossary(**known, costs=False, limit="No policy can be promised more than this.")[0][0]
    'Promised'
    """
    least = "most" if costs else "least"
    total = "Everything from the first step on" if horizon is None else f"At most {horizon:,} steps"
    return (
        (
            "Promised",
            f"The average total is at {least} this, with {percent(delta)} confidence and on the "
            "assumptions listed.",
        ),
        ("Expected", "The total if the most plausible model of the process is exactly right."),
        (
            "So far",
            "What the decisions in the log brought, in the same measure. Its thin line is the "
            "range that the log leaves open.",
        ),
        (
            "Limit",
            f"{limit} This is for these data, at this confidence.",
        ),
        (
            "Policy",
            "A rule: what to do in each state. A deterministic one always does the same there.",
        ),
        ("Total", f"{total}. {counted_words(discount, costs=costs)}"),
        ("Confidence", _confidence(basis, delta)),
        ("Step", "One row of the log: one state, one decision, what it brought."),
        (
            "Tried",
            "How often the log shows this action in this state. What was rarely tried is little "
            "known.",
        ),
        (
            "Saves" if costs else "Gain",
            "How much of the expected gain over what was done so far comes from this state. The "
            "gains of all states add up to the whole.",
        ),
        (
            "Lead",
            "How much better the action is, by the model, than taking the best other one this "
            "once. A negative lead is the price of caution.",
        ),
    )


def _confidence(basis: str, delta: float) -> str:
    if basis == "frequentist":
        return (
            f"Whatever the true process, at most {100 * delta:g}% of the logs it could have left "
            "would lead to a promise that does not hold."
        )
    return (
        "How probable it is at least, given the log and the assumptions, that the promise holds: "
        f"{percent(delta)}."
    )
