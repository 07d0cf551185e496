"""The search for a policy: candidates from several methods, the best improved by local search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from surefoot._display import Shown
from surefoot._rounding import near_text
from surefoot.certificates import by_step
from surefoot.certificates.by_step import Policy
from surefoot.certificates.candidates import proposals
from surefoot.certificates.clock import SearchClock
from surefoot.certificates.local_search import Seen, local_search
from surefoot.certificates.models import Floats, Ints, Models, percentile, policy_values
from surefoot.certificates.usual import (
    caution_at,
    ends_by_draws,
    keep_usual,
    keep_usual_by_step,
)
from surefoot.model.step_policy import StepPolicy

STARTS, LARGE_STARTS = 3, 1
"""How many of the best candidates the local search starts from; fewer in large models."""

KEPT = ", the usual action where that is not surely worse"
"""The suffix of the name of a candidate that keeps usual actions."""

OnCandidate = Callable[[str, float], None]
"""Called after each candidate with its name and the best percentile so far."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Candidate(Shown):
    """One policy that was considered.

    Attributes
    ----------
    name
        How it was made.
    percentile
        Its empirical percentile on the batch used for choosing: not a promise.
    nominal_return
        Its return in the posterior mean model.
    selected
        Whether it was selected to be certified.
    policy
        ``(S,)`` action ids, or a `StepPolicy`; None if the candidate was read from the table of a
        run.

    Examples
    --------
    >>> import numpy as np
    >>> Candidate(
    ...     name="nominal", percentile=1.5, nominal_return=2.0, selected=True,
    ...     policy=np.array([0, 1]),
    ... )
    Candidate('nominal', percentile 1.5000, nominal return 2.0000, selected)
    """

    name: str
    percentile: float
    nominal_return: float
    selected: bool
    policy: Policy | None = None

    def mirrored(self) -> Candidate:
        """Convert a candidate in rewards into one in costs, or back."""
        percentile, nominal = 0.0 - self.percentile, 0.0 - self.nominal_return
        return replace(self, percentile=percentile, nominal_return=nominal)

    def __repr__(self) -> str:
        numbers = f"percentile {near_text(self.percentile)}, nominal return"
        chosen = ", selected" if self.selected else ""
        return f"Candidate({self.name!r}, {numbers} {near_text(self.nominal_return)}{chosen})"


def search(
    batch: Models, delta: float, clock: SearchClock, progress: OnCandidate | None, *,
    stationary: bool, visits: Ints | None = None,
) -> tuple[Candidate, ...]:  # fmt: skip
    """Return all candidates with the best one selected; among equals, the first.

    Without a horizon a choice is one row per state, with a horizon it is a policy of actions.
    ``visits``: how often each row of the whole model was tried. If given, the best candidate goes
    back to the usual action where its own is not surely better (`surefoot.certificates.usual`), and
    that version is selected.
    """
    rank = batch.rank(delta)
    pool: list[tuple[str, Policy, float]] = []
    seen = Seen()
    known = seen.reached
    by_steps = batch.mdp.horizon is not None

    def consider(name: str, choice: Policy) -> None:
        policy = by_step.same(choice)
        if policy not in known:
            known[policy] = percentile(_returns(batch, choice), rank)
        pool.append((name, choice, known[policy]))
        if progress is not None:
            progress(name, max(entry[2] for entry in pool))

    made: Iterator[tuple[str, Policy]] = proposals(batch, delta, clock, known)
    if by_steps:
        made = by_step.proposals(batch, delta, clock, stationary=stationary)
    for name, choice in made:
        consider(name, choice)
        if clock():
            break
    for name, choice in _starts(pool)[: STARTS if batch.small or by_steps else LARGE_STARTS]:
        if clock() or (by_steps and not by_step.can_climb(batch)):
            break
        if isinstance(choice, StepPolicy):
            found = by_step.climb(batch, choice, delta, 2 * delta, clock, stationary=False)
        elif by_steps:
            found = by_step.improve_rule(batch, choice, delta, clock)
        else:
            found = local_search(batch, choice, delta, clock, seen)[0]
        consider(f"local search from {name}", found)
    best = max(range(len(pool)), key=lambda k: pool[k][2])
    name, choice, _ = pool[best]
    kept = choice if visits is None else _keeping(batch, choice, visits[batch.rows], delta)
    if by_step.same(kept) != by_step.same(choice):
        consider(f"{name}{KEPT}", kept)
        best = len(pool) - 1
    return tuple(
        Candidate(
            name=name,
            percentile=reached,
            nominal_return=float(_returns(batch.mean, choice)[0]),
            selected=k == best,
            policy=choice if by_steps else batch.mdp.row_action[choice],
        )
        for k, (name, choice, reached) in enumerate(pool)
    )


def _keeping(batch: Models, choice: Policy, visits: Ints, delta: float) -> Policy:
    """Return a choice that keeps usual actions; one rule for all steps is returned unchanged."""
    ends = ends_by_draws(batch.mdp, visits, batch.draws, batch.gains, caution_at(delta))
    if isinstance(choice, StepPolicy):
        return keep_usual_by_step(batch.mdp, choice, visits, ends)
    return choice if batch.mdp.horizon is not None else keep_usual(batch.mdp, choice, visits, ends)


def _returns(batch: Models, choice: Policy) -> Floats:
    """Return ``(n,)``: the returns of a candidate."""
    if isinstance(choice, StepPolicy) or batch.mdp.horizon is not None:
        return by_step.step_returns(batch, choice)
    return policy_values(batch, choice)[1]


def _starts(pool: list[tuple[str, Policy, float]]) -> list[tuple[str, Policy]]:
    """Return the distinct policies, best first."""
    starts: dict[bytes, tuple[str, Policy]] = {}
    for name, choice, _ in sorted(pool, key=lambda entry: -entry[2]):
        starts.setdefault(by_step.same(choice), (name, choice))
    return list(starts.values())
