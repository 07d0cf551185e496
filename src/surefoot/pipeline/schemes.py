"""Ways to collect more data: single tries of rows, whole episodes, more of the same."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.allocation import Distance
from surefoot.certificates.by_step import Policy
from surefoot.certificates.row_doubt import RowDoubt
from surefoot.data.buckets import NUM_BUCKETS
from surefoot.model.mdp import MDP
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.future import NewData, Truth
from surefoot.pipeline.model import Model

MOST_STARTS = 12
"""How many first states are distinguished: those in which most episodes began."""
LONG = 10
"""Episodes that end by themselves may last this many times the log's average."""
POLICY, HABITS = "policy", "habits"
"""What an episode follows: the policy of the run, or the past behaviour of the log."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SharesAt = Callable[[int], Floats]
"""From a step to ``(S, A)``: the probability of each action in each state."""


class Scheme(Protocol):
    """A way of collecting data: makes a number of samples from a truth."""

    def data(self, truth: Truth, samples: int, rng: np.random.Generator) -> NewData:
        """Return the data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tries:
    """Single tries, allocated so that the distance to the promise falls most."""

    distance: Distance
    rows: Ints

    def data(self, truth: Truth, samples: int, rng: np.random.Generator) -> NewData:
        """Return the data."""
        return tries_of(truth, np.repeat(self.rows, self.distance.allocate(samples)), rng)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shared:
    """Single tries of rows in fixed shares, ``(R,)``."""

    share: Floats

    def data(self, truth: Truth, samples: int, rng: np.random.Generator) -> NewData:
        """Return the data: shares rounded down to whole tries, the remainder at random."""
        whole = np.floor(samples * self.share).astype(np.int64)
        left = samples - int(whole.sum())
        rest = samples * self.share - whole
        if left > 0:
            picked = rng.choice(len(rest), size=left, p=rest / rest.sum())
            whole = whole + np.bincount(picked, minlength=len(whole))
        return tries_of(truth, np.repeat(np.arange(len(whole)), whole), rng)


def tries_of(truth: Truth, played: Ints, rng: np.random.Generator) -> NewData:
    """Return the data of single tries of rows."""
    entry = truth.entries(played, rng)
    return NewData(entry=entry, part=rng.integers(0, NUM_BUCKETS, len(entry)))


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeKind:
    """Episodes from one start under one behaviour.

    Attributes
    ----------
    start
        The state they start in; None: as episodes of the log started.
    behaviour
        ``"policy"`` or ``"habits"``.
    """

    start: int | None
    behaviour: str


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodePlan:
    """Whole episodes of a model: the kinds there are, and what one episode of each shows.

    Attributes
    ----------
    model, policy
        The model of the run and its policy.
    kinds
        The kinds to choose from.
    """

    model: Model
    policy: Policy
    kinds: tuple[EpisodeKind, ...]

    @classmethod
    def of(cls, model: Model, policy: Policy) -> "EpisodePlan | None":
        """Return the kinds of episodes that a run could collect; None if its log has none."""
        starts = model.placed.starts
        if starts is None or not starts.any() or model.settings.episode is None:
            return None
        most = np.argsort(-starts, kind="stable")[:MOST_STARTS]
        known = [int(state) for state in most if starts[state] > 0]
        places: list[int | None] = [None, *(known if len(known) > 1 else ())]
        kinds = [
            EpisodeKind(start=start, behaviour=behaviour)
            for behaviour in (POLICY, HABITS)
            for start in places
        ]
        return cls(model=model, policy=policy, kinds=tuple(kinds))

    @cached_property
    def starts(self) -> Floats:
        """``(S,)``: the shares of first states in the log."""
        found = np.zeros(self.model.mdp.num_states)
        given = self.model.placed.starts
        if given is not None:
            found[: len(given)] = given
        return np.asarray(found / found.sum())

    @cached_property
    def mean_length(self) -> float:
        """The mean number of steps of the log's episodes."""
        starts = self.model.placed.starts
        number = 1 if starts is None else max(1, int(starts.sum()))
        return max(1.0, float(self.model.placed.count.sum()) / number)

    @cached_property
    def steps(self) -> int:
        """The largest number of steps of an episode."""
        ends = bool(self.model.placed.is_terminal.any())
        most = int(np.ceil(self.mean_length * (LONG if ends else 1)))
        horizon = self.model.mdp.horizon
        return most if horizon is None else min(most, horizon)

    @property
    def acting(self) -> NDArray[np.bool_]:
        """``(S,)``: whether something can be decided in a state."""
        return ~self.model.passive

    def shares(self, behaviour: str) -> SharesAt:
        """Return the action probabilities of a behaviour at each step."""
        mdp, policy = self.model.mdp, self.policy
        if behaviour == HABITS:
            usual = np.where(mdp.available, self.model.behaviour, 0.0)
            total = usual.sum(axis=1, keepdims=True)
            even = mdp.available / mdp.available.sum(axis=1, keepdims=True)
            habits = np.where(total > 0, usual / np.where(total > 0, total, 1.0), even)
            return lambda _step: habits
        each = np.eye(mdp.num_actions)
        if isinstance(policy, StepPolicy):
            return lambda step: each[policy.actions_at(min(step, policy.horizon - 1))]
        return lambda _step: each[policy]

    def start_of(self, kind: EpisodeKind) -> Floats:
        """Return ``(S,)``: the distribution of the first state of a kind of episodes."""
        if kind.start is None:
            return self.starts
        first = np.zeros_like(self.starts)
        first[kind.start] = 1.0
        return first

    @cached_property
    def shown(self) -> Floats:
        """``(J, R)``: how often an episode of each kind tries each row, by the mean model."""
        found = np.zeros((len(self.kinds), self.model.mdp.num_rows))
        for behaviour in (POLICY, HABITS):
            which = [j for j, kind in enumerate(self.kinds) if kind.behaviour == behaviour]
            state = np.array([self.start_of(self.kinds[j]) for j in which])
            found[which] = _expected(self.model.mdp, state, self.shares(behaviour), self)
        return found

    def allocate(self, doubt: RowDoubt, samples: int) -> Ints:
        """Return ``(J,)``: how many episodes of each kind to collect, about ``samples`` steps."""
        length = np.maximum(self.shown.sum(axis=1), 1e-9)
        return Distance.of(doubt).allocate_bundles(self.shown[:, doubt.rows], length, samples)


def _expected(mdp: MDP, state: Floats, shares: SharesAt, plan: EpisodePlan) -> Floats:
    tries = np.zeros((len(state), mdp.num_rows))
    for step in range(plan.steps):
        here = np.where(plan.acting, state, 0.0)
        if here.sum() < 1e-6:
            break
        played = here[:, mdp.row_state] * shares(step)[mdp.row_state, mdp.row_action]
        tries += played
        pushed = played[:, mdp.entry_row] * mdp.probability
        state = np.zeros_like(state)
        for j, line in enumerate(pushed):
            state[j] = np.bincount(mdp.successor, line, mdp.num_states)
    return tries


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedEpisodes:
    """Whole episodes, allocated so that the distance to the promise falls most."""

    plan: EpisodePlan
    doubt: RowDoubt

    def data(self, truth: Truth, samples: int, rng: np.random.Generator) -> NewData:
        """Return the data."""
        return episodes_of(self.plan, self.plan.allocate(self.doubt, samples), truth, rng)


@dataclass(frozen=True, kw_only=True, eq=False)
class SameEpisodes:
    """More episodes of one kind."""

    plan: EpisodePlan
    kind: int

    def data(self, truth: Truth, samples: int, rng: np.random.Generator) -> NewData:
        """Return the data."""
        number = np.zeros(len(self.plan.kinds), dtype=np.int64)
        length = max(float(self.plan.shown[self.kind].sum()), 1e-9)
        number[self.kind] = max(1, round(samples / length))
        return episodes_of(self.plan, number, truth, rng)


def episodes_of(
    plan: EpisodePlan, number: Ints, truth: Truth, rng: np.random.Generator
) -> NewData:  # fmt: skip
    """Return the data of ``number`` episodes of each kind."""
    entry: list[Ints] = []
    part: list[Ints] = []
    starts = np.zeros(plan.model.mdp.num_states, dtype=np.int64)
    for kind, size in zip(plan.kinds, number.tolist(), strict=True):
        if size == 0:
            continue
        first = rng.choice(len(starts), size=size, p=plan.start_of(kind))
        if kind.start is None:  # chosen starts do not show where episodes usually start
            starts += np.bincount(first, minlength=len(starts))
        bucket = rng.integers(0, NUM_BUCKETS, size)
        for here, goes_on in _walk(plan, kind, first, truth, rng):
            entry.append(here)
            part.append(bucket[goes_on])
    if not entry:
        return NewData(entry=np.zeros(0, np.int64), part=np.zeros(0, np.int64))
    known = plan.model.placed.num_states
    return NewData(entry=np.concatenate(entry), part=np.concatenate(part), starts=starts[:known])


def _walk(
    plan: EpisodePlan, kind: EpisodeKind, state: Ints, truth: Truth, rng: np.random.Generator
) -> list[tuple[Ints, Ints]]:
    """Simulate all episodes in parallel; return, per step, the entries and their episodes."""
    mdp, shares = plan.model.mdp, plan.shares(kind.behaviour)
    alive = np.arange(len(state))
    found = []
    for step in range(plan.steps):
        on = plan.acting[state]
        alive, state = alive[on], state[on]
        if len(alive) == 0:
            break
        running = np.cumsum(shares(step)[mdp.row_state, mdp.row_action])
        before = np.concatenate(([0.0], running))[mdp.state_start]
        aim = before[state] + rng.random(len(state)) * (before[state + 1] - before[state])
        row = np.searchsorted(running, aim, side="right")
        row = np.clip(row, mdp.state_start[state], mdp.state_start[state + 1] - 1)
        entry = truth.entries(row, rng)
        found.append((entry, alive))
        state = mdp.successor[entry].astype(np.int64)
    return found
