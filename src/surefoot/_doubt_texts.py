"""The wording of findings about doubt: where it comes from, and what else the log says about it."""

from surefoot._display import number_of
from surefoot._finding_codes import says
from surefoot._rounding import lower_text, upper_text
from surefoot._rounding import rough_text as rough

CAUSES = {
    "transitions": "uncertain transition probabilities",
    "unseen": "what was never observed",
    "rewards": "what single steps bring on average",
    "first_state": "where episodes start",
    "choosing": "luck in choosing",
    "monte_carlo": "the limited number of draws",
}
"""How each cause of doubt is named in a sentence."""
_WITHOUT = tuple(f"{name}_without" for name in CAUSES)
SMALL_SHARE = 0.005
"""Causes below this share of the doubt are not listed."""


def _safe(promise: float, objective: str) -> str:
    """Return a promise as text, rounded in the direction in which it still holds."""
    return lower_text(promise) if objective == "max" else upper_text(promise)


def _about(promise: float, objective: str) -> str:
    """Return an estimated promise as part of a sentence."""
    read = "return of at least" if objective == "max" else "cost of at most"
    return f"{read} about {_safe(promise, objective)}"


@says("note", amounts=("as_seen", "promise", *_WITHOUT))
def _doubt_by_cause(
    as_seen: float, promise: float, error: float, draws: int,
    transitions: float | None = None, transitions_without: float | None = None,
    unseen: float | None = None, unseen_without: float | None = None,
    rewards: float | None = None, rewards_without: float | None = None,
    first_state: float | None = None, first_state_without: float | None = None,
    choosing: float | None = None, choosing_without: float | None = None,
    monte_carlo: float | None = None, monte_carlo_without: float | None = None,
    objective: str = "max",
) -> str:  # fmt: skip
    given = locals()
    between = abs(as_seen - promise)
    listed = sorted(
        (name for name in CAUSES if abs(given[name] or 0.0) > SMALL_SHARE * between),
        key=lambda name: -given[name],
    )
    said = [
        f"{rough(given[name], 3)} for {CAUSES[name]} "
        f"(without: {rough(given[f'{name}_without'], 5)})"
        for name in listed
    ]
    rest = sum(given[name] or 0.0 for name in CAUSES if name not in listed)
    if abs(rest) > SMALL_SHARE * between:
        said.append(f"{rough(rest, 2)} for the rest")
    verb = "earn" if objective == "max" else "cost"
    side = "below" if promise < as_seen else "above"
    return (
        f"If the averages of the log were exact, the policy would {verb} {rough(as_seen, 5)}. The "
        f"promise of {_safe(promise, objective)} is {rough(between)} {side} that: "
        f"{', '.join(said) or 'nothing'}. The figures in parentheses are what could be promised "
        f"without that one doubt. The breakdown is estimated from {draws:,} draws (standard errors "
        f"up to {rough(error, 2)})."
    )


@says("note")
def _curse_not_measured() -> str:
    return (
        "The policy was chosen and evaluated on the same data. How much that flatters it was not "
        "measured, because the log cannot be divided."
    )


_NO_GAIN = {
    "no episodes": "the log has no whole episodes",
    "few episodes": "the log has fewer than ten episodes, and no interval holds for so few",
    "cut off": (
        "what its episodes would still have brought after they were cut off may be more than the "
        "gain. A horizon (horizon=) compares as many steps as they have"
    ),
    "no limit of a return": (
        "nothing limits what an episode can bring. Declare a range of rewards (reward_range=)"
    ),
}


@says("note")
def _gain_not_certified(reason: str) -> str:
    why = _NO_GAIN.get(reason, reason)
    return f"How much better the policy is than what was done in the log is not certified: {why}."


@says("assumption", lead="assuming that")
def _returns_within_log(objective: str = "max") -> str:
    than = "brings more" if objective == "max" else "costs less"
    return f"no episode {than} than the best path through the transitions of the log"


@says("warning")
def _few_transitions(transitions: int) -> str:
    return (
        f"The log has only {number_of(transitions, 'transition')}. So few can hardly show what may "
        "go wrong, and the promise assumes that nothing does which is worse than what they show."
    )


@says("assumption", lead="assuming that")
def _chosen_elsewhere() -> str:
    return "the policy was chosen without this log"


@says("note", amounts=("promise",))
def _split_would_promise(promise: float, objective: str = "max") -> str:
    return (
        "A true split (honest=True), where one part of the log chooses the policy and the other "
        f"certifies it, would promise a {_about(promise, objective)}; luck in choosing cannot "
        "inflate that number."
    )


@says("note", amounts=("promise",))
def _whole_would_promise(promise: float, objective: str = "max") -> str:
    return (
        "Without a split (the whole log chooses and certifies, and the measured luck is "
        f"subtracted) the promise would be a {_about(promise, objective)}."
    )


@says("note", amounts=("low", "high", "seen_low", "seen_high", "promise"))
def _range_costs(
    low: float, high: float, seen_low: float, seen_high: float, less: float, promise: float,
    error: float, objective: str = "max",
) -> str:  # fmt: skip
    what = "rewards" if objective == "max" else "costs"
    digits = 4 if error < 0.01 * abs(promise) else 2
    declared, seen = sorted((low, high)), sorted((seen_low, seen_high))
    return (
        f"The declared range of {what}, {declared[0]:g} to {declared[1]:g}, is wider than what was "
        f"seen, {seen[0]:g} to {seen[1]:g}. That takes {rough(less)} off the promise (standard "
        f"error {rough(error, 2)}): within the range seen it would be about "
        f"{rough(promise, digits)}."
    )


@says("warning", amounts=("log", "model"))
def _tilted_differs(
    share: str, log: float, error: float, model: float, objective: str = "max"
) -> str:
    verb = "earn" if objective == "max" else "cost"
    return (
        f"A policy {share} of the way from what was done to the chosen one would {verb} "
        f"{rough(log)} by the episodes of the log (standard error {rough(error, 2)}), but "
        f"{rough(model)} by the model: something missing from the state changes its return by "
        "about that difference, and the return of the chosen policy by more."
    )


@says("note")
def _tilted_agrees(share: str) -> str:
    return (
        "As far as the episodes of the log can tell, anything missing from the state hardly "
        "changes returns: episodes and model agree on policies up to "
        f"{share} of the way to the chosen one."
    )


@says("note", amounts=("promise",))
def _previous_state_helps(
    states: int, promise: float, p_value: float | None = None, objective: str = "max"
) -> str:
    seen = "" if p_value is None else f" (p = {p_value:.2g})"
    return (
        f"With the previous state added to the state ({states:,} states) the checks find no "
        f"further memory{seen}, though thinner rows may hide it, and the promise would be a "
        f"{_about(promise, objective)}. Add it to the log as a column and name both columns as the "
        "state."
    )


@says("note", amounts=("promise",))
def _previous_state_not_enough(states: int, promise: float, objective: str = "max") -> str:
    return (
        f"Adding the previous state to the state ({states:,} states; the promise would be a "
        f"{_about(promise, objective)}) does not help: the past still matters. Look for "
        "what stays with a case (its type, its history) and add that as a column of the state."
    )


@says("note")
def _previous_state_too_thin(pairs: int, tried: float) -> str:
    return (
        f"Adding the previous state to the state would make {pairs:,} state-action pairs, tried "
        f"{tried:.2g} times each: too few to say what that promises. Collect more, group states, "
        "or add one column that tells cases apart."
    )


@says("warning")
def _doubt_not_linear(explained: float, linear: float, reach: float, draws: int) -> str:
    return (
        f"The return is far from linear in what is not known: single rows explain "
        f"{100 * explained:.0f}% of its variance ({draws:,} draws), and would put the promise "
        f"{rough(linear, 3)} from the expected return where it lies {rough(reach, 3)} from it. "
        "Read shares by row as a rough guide; what was simulated does not rest on them."
    )


@says("note")
def _plan_of_a_split() -> str:
    return (
        "The promise comes from one half of the log (honest=True), and so about half of the new "
        "samples count for it; that is simulated. The policy is kept."
    )


@says("note")
def _plan_of_a_horizon() -> str:
    return (
        "Over a horizon, what trying actions other than the policy's would be worth is not "
        "computed. Shares, samples and forecasts are for the policy at all of its steps."
    )


@says("warning")
def _plan_of_a_withheld_promise() -> str:
    return (
        "A failed check took the promise of this run back. More data of the same kind will not "
        "change that: deal with what failed first."
    )
