"""The search for a policy on one batch of drawn models: candidates, then local search."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from surefoot.certificates import by_step
from surefoot.certificates.by_step import Policy
from surefoot.certificates.candidates import proposals
from surefoot.certificates.local_search import local_search
from surefoot.certificates.models import Floats, Models, percentile, policy_values
from surefoot.model.step_policy import StepPolicy

STARTS, LARGE_STARTS = 3, 1
"""How many of the best candidates the local search starts from; fewer in large models."""

Progress = Callable[[str, float], None]
"""Called after each candidate with its name and the best percentile so far."""


class Found(NamedTuple):
    """A candidate: one row per state, or with a horizon a policy of actions."""

    name: str
    choice: Policy
    percentile: float
    nominal_return: float


class Clock:
    """Tells when the time is over, and remembers having said so."""

    def __init__(self, budget: float | None) -> None:
        self.end = None if budget is None else time.monotonic() + budget
        self.stopped = False

    def __call__(self) -> bool:
        """Tell whether the time is over."""
        if self.end is not None and time.monotonic() >= self.end:
            self.stopped = True
        return self.stopped


def search(
    batch: Models, delta: float, clock: Clock, progress: Progress | None, *, stationary: bool
) -> list[Found]:
    """Return all candidates in the order they were made.

    Without a horizon a choice is one row per state, with one it is a policy of actions.
    """
    rank = batch.rank(delta)
    pool: list[tuple[str, Policy, float]] = []
    known: dict[bytes, float] = {}
    by_steps = batch.mdp.horizon is not None

    def consider(name: str, choice: Policy) -> None:
        policy = by_step.same(choice)
        if policy not in known:
            known[policy] = percentile(_returns(batch, choice), rank)
        pool.append((name, choice, known[policy]))
        if progress is not None:
            progress(name, max(entry[2] for entry in pool))

    made: Iterator[tuple[str, Policy]] = proposals(batch, delta, clock)
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
            consider(f"local search from {name}", found)
        elif by_steps:
            consider(f"local search from {name}", by_step.improve_rule(batch, choice, delta, clock))
        else:
            consider(f"local search from {name}", local_search(batch, choice, delta, clock)[0])
    return [
        Found(name, choice, reached, float(_returns(batch.mean, choice)[0]))
        for name, choice, reached in pool
    ]


def _returns(batch: Models, choice: Policy) -> Floats:
    """Return ``(n,)`` returns of a candidate."""
    if isinstance(choice, StepPolicy) or batch.mdp.horizon is not None:
        return by_step.step_returns(batch, choice)
    return policy_values(batch, choice)[1]


def _starts(pool: list[tuple[str, Policy, float]]) -> list[tuple[str, Policy]]:
    """Return the best different policies, best first."""
    starts: dict[bytes, tuple[str, Policy]] = {}
    for name, choice, _ in sorted(pool, key=lambda entry: -entry[2]):
        starts.setdefault(by_step.same(choice), (name, choice))
    return list(starts.values())
