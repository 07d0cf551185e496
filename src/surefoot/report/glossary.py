"""The few words of the page that need explaining, each once."""

from collections.abc import Sequence


def glossary(
    *, confidence: str, discount: float, horizon: int | None, costs: bool
) -> Sequence[tuple[str, str]]:
    """Return words and what they mean, in the order in which a reader meets them.

    Examples
    --------
    >>> glossary(confidence="95%", discount=0.9, horizon=None, costs=False)[0][0]
    'Promised'
    """
    word, least, more = ("cost", "most", "less") if costs else ("reward", "least", "more")
    worth = f"A {word} one step later counts {100 * discount:.4g}% of one now"
    total = "Everything from the first step on" if horizon is None else f"{horizon:,} steps"
    return (
        (
            "Promised",
            f"The average total is at {least} this, with {confidence} confidence and on the "
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
            f"No rule could be promised {more} than this from these data at this confidence.",
        ),
        ("Total", f"{total}. {worth} (discount {discount:g})."),
        (
            "Confidence",
            f"{confidence}: what the log shows can mislead, but of all processes that fit it this "
            "share keeps the promise.",
        ),
        ("Step", "One row of the log: one state, one decision, what it brought."),
        (
            "Tried",
            "How often the log shows this action in this state. Little tried means little known.",
        ),
        (
            "Gain",
            "How much of the expected gain over what was done so far comes from this state. All "
            "gains together are the whole.",
        ),
        (
            "Lead",
            "How much better the action is than the best other one, once, by the model. A negative "
            "lead is the price of caution.",
        ),
    )
