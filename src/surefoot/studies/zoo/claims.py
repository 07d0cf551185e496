"""Claims of a run about a world it does not know, and whether they are true."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.studies.zoo.logs import ColumnArrays, WorldLog
from surefoot.studies.zoo.truth import Choice, earned, earned_by, shares_of
from surefoot.studies.zoo.worlds import World

ROUNDING = 1e-9
"""A claim is broken if the truth misses it by more than this share."""

Subject = Choice | Literal["behaviour"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """What the owner of a log knows that the log does not show.

    Attributes
    ----------
    discount
        The discount per step.
    steps
        Episodes are cut off after this many steps.
    horizon
        Number of steps that count; None: all.
    initial
        The distribution of the first state by label; None: as in the log.
    reward_range
        The declared range of rewards; None if not declared.
    support
        The declared successors as columns ``state, action, next_state``; None if not declared.
    """

    discount: float
    steps: int
    horizon: int | None = None
    initial: Mapping[Any, float] | None = None
    reward_range: tuple[float, float] | None = None
    support: ColumnArrays | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """One sentence of a run.

    Attributes
    ----------
    kind
        Its name in the table: ``"promise"``, ``"gain"``, ``"difference"``, ``"upper"``, ...
    value
        The claimed number; None if the run withheld the sentence (or changed its headline).
    delta
        The failure probability given to the run.
    subject, against
        The claim is about the return of ``subject``, minus that of ``against`` if given: each is a
        policy or the log's behaviour.
    at_most
        Whether the value is an upper bound.
    level
        How often the sentence may be false; None: delta.
    steps
        Number of steps whose rewards count; None: no limit.
    exempt
        Whether the sentence is limited by a condition that the log cannot refute ("within the range
        seen"): it is then shown but not judged.
    """

    kind: str
    value: float | None
    delta: float
    subject: Subject
    against: Subject | None = None
    at_most: bool = False
    level: float | None = None
    steps: int | None = None
    exempt: bool = False


class ClaimMaker(Protocol):
    """A function that makes claims from a log."""

    def __call__(
        self, columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
    ) -> list[Claim]:
        """Return every sentence that runs on this log would print, one run for each delta."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A claim with the truth about it.

    Attributes
    ----------
    kind, delta, level, claimed, exempt
        As in the claim; ``claimed`` is None for a withheld sentence.
    truth
        The true value of what is claimed, in the world.
    broken
        Whether the claim is false.
    open_share
        The share of discounted time that the policy spends in states for which it has no action,
        where it is assumed to play the worst one.
    """

    kind: str
    delta: float
    level: float
    claimed: float | None
    truth: float
    broken: bool
    exempt: bool
    open_share: float


def facts_of(
    world: World, log: WorldLog, *, declared: tuple[str, ...] = (), horizon: int | None = None
) -> Facts:
    """Return what the owner of a log knows; ``declared`` may hold ``"range"`` and ``"support"``.

    With a horizon only its steps count, without discount. For a log without episodes the
    distribution of the first state must be known too.
    """
    wrong = set(declared) - {"range", "support"}
    if wrong:
        raise ValueError(f"declared={declared!r}; choose from 'range' and 'support'.")
    initial: dict[Any, float] = {}
    for label, share in zip(world.labels, world.mdp.initial.tolist(), strict=True):
        initial[label] = initial.get(label, 0.0) + share
    return Facts(
        discount=world.mdp.discount if horizon is None else 1.0,
        steps=world.steps,
        horizon=horizon,
        initial=None if log.has_episodes else initial,
        reward_range=world.reward_range if "range" in declared else None,
        support=_successors(world) if "support" in declared else None,
    )


def _successors(world: World) -> ColumnArrays:
    mdp = world.mdp
    row = mdp.entry_row
    lives = ~world.terminal[mdp.row_state[row]] & (mdp.probability > 0)
    states = np.array(world.labels)
    names: tuple[NDArray[Any], ...] = (
        states[mdp.row_state[row]], np.array(world.actions)[mdp.row_action[row]],
        states[mdp.successor],
    )  # fmt: skip
    columns = zip(("state", "action", "next_state"), names, strict=True)
    return {name: values[lives] for name, values in columns}


def judge(claim: Claim, world: World, log: WorldLog) -> Sentence:
    """Compare a claim with the truth.

    Examples
    --------
    >>> from surefoot.studies.zoo.catalogue import make_world
    >>> from surefoot.studies.zoo.logs import fixed_tries
    >>> world = make_world("riverswim")
    >>> log = fixed_tries(world, 1, np.random.default_rng(0))
    >>> right = Choice(states=world.labels, actions=("right",), policy=np.zeros(6, dtype=int))
    >>> promise = Claim(kind="promise", value=70_000.0, delta=0.05, subject=right)
    >>> judge(promise, world, log).broken
    True
    """
    truth, open_share = _value(claim.subject, claim.steps, world, log)
    if claim.against is not None:
        truth -= _value(claim.against, claim.steps, world, log)[0]
    broken = False
    if claim.value is not None:
        slack = ROUNDING * (1.0 + abs(claim.value))
        excess = truth - claim.value if claim.at_most else claim.value - truth
        broken = not excess <= slack
    return Sentence(
        kind=claim.kind, delta=claim.delta,
        level=claim.delta if claim.level is None else claim.level,
        claimed=claim.value, truth=truth, broken=broken, exempt=claim.exempt,
        open_share=open_share,
    )  # fmt: skip


def _value(subject: Subject, steps: int | None, world: World, log: WorldLog) -> tuple[float, float]:
    """Return the true return of a subject, and its share of time in states without an action."""
    if isinstance(subject, str):
        return log.earned(world, steps), 0.0
    if steps is not None:
        return earned_by(world, subject, steps), 0.0
    return earned(world, shares_of(world, subject))
