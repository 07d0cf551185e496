"""Logs drawn from a world: fixed tries per pair, or episodes of some behaviour."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.studies.zoo.replay_kernels import replay
from surefoot.studies.zoo.truth import best_values, earned, earned_in, optimal_actions
from surefoot.studies.zoo.worlds import Floats, Ints, World

ColumnArrays = dict[str, NDArray[Any]]

COLUMNS = ("episode", "step", "state", "action", "reward", "next_state", "terminal")
STINTS = 10
"""The largest number of stints of a learner in a log; its behaviour is fixed within a stint."""
FIRST_CHANCE, LAST_CHANCE = 1.0, 0.1
"""A learner's probability of a random action, in its first and last stint."""
EXPERT_SENSE, EXPERT_HABIT = 40.0, 1.3
"""How strongly the values of actions and habits influence an expert."""


class Stint(NamedTuple):
    """A policy, ``(S, A)`` shares, and the number of episodes for which it was followed."""

    shares: Floats
    episodes: int


@dataclass(frozen=True, kw_only=True, eq=False)
class WorldLog:
    """A log of a world, and the behaviour that made it.

    Attributes
    ----------
    columns
        ``episode, step, state, action, reward, next_state, terminal``; fixed tries have no
        episodes and steps.
    behaviour
        The true behaviour: one stint, or several of a learner.
    """

    columns: ColumnArrays
    behaviour: tuple[Stint, ...]

    @property
    def has_episodes(self) -> bool:
        """Whether transitions belong to episodes."""
        return "episode" in self.columns

    def earned(self, world: World, steps: int | None = None) -> float:
        """Return the behaviour's expected return per episode: without end, or over some steps.

        For a learner this is the average over its episodes.
        """
        total = sum(stint.episodes for stint in self.behaviour)
        return sum(
            stint.episodes / total * (
                earned(world, stint.shares).total
                if steps is None
                else earned_in(world, stint.shares, steps)
            )
            for stint in self.behaviour
        )  # fmt: skip


class Steps(NamedTuple):
    """Transitions in the world's own ids, sorted by episode and step."""

    episode: Ints
    step: Ints
    state: Ints
    row: Ints
    reward: Floats
    following: Ints


def random_shares(world: World) -> Floats:
    """Return the policy that plays every available action equally often."""
    available = world.mdp.available
    return np.asarray(available / available.sum(axis=1, keepdims=True))


def greedy_shares(world: World, epsilon: float) -> Floats:
    """Return the policy that plays an optimal action, or with probability epsilon any action."""
    best = np.eye(world.mdp.num_actions)[optimal_actions(world)]
    return (1 - epsilon) * best + epsilon * random_shares(world)


def expert_shares(world: World) -> Floats:
    """Return the policy of an expert who plays better actions more often, and has habits.

    Shares are proportional to the exponential of `EXPERT_SENSE` times an action's advantage, as a
    share of the largest value, plus `EXPERT_HABIT` times a normal number. The habits depend on the
    world only: they are the same in all logs of it.
    """
    mdp, best = world.mdp, best_values(world)
    worth = world.gain + mdp.discount * (world.transitions @ best) - best[mdp.row_state]
    habit = np.random.default_rng(mdp.num_rows).normal(size=mdp.num_rows)
    taste = np.full((mdp.num_states, mdp.num_actions), -np.inf)
    taste[mdp.row_state, mdp.row_action] = (
        EXPERT_SENSE * worth / np.abs(best).max() + EXPERT_HABIT * habit
    )
    share = np.exp(taste - taste.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def fixed_tries(world: World, tries: int, rng: np.random.Generator) -> WorldLog:
    """Try every pair equally often, without episodes. The behaviour is recorded as uniform play.

    Examples
    --------
    >>> from surefoot.studies.zoo.catalogue import make_world
    >>> log = fixed_tries(make_world("machine"), 5, np.random.default_rng(0))
    >>> len(log.columns["state"]), log.has_episodes
    (100, False)
    """
    rows = np.repeat(np.flatnonzero(~world.terminal[world.mdp.row_state]), tries)
    return WorldLog(columns=tries_of(world, rows, rng), behaviour=(Stint(random_shares(world), 1),))


def tries_of(world: World, rows: Ints, rng: np.random.Generator) -> ColumnArrays:
    """Return the columns of single tries of the given rows, without episodes and steps."""
    reward, following = _draw(world, rows, rng)
    nothing = np.zeros(len(rows), dtype=np.int64)
    steps = Steps(nothing, nothing, world.mdp.row_state[rows], rows, reward, following)
    columns = _columns(world, steps)
    del columns["episode"], columns["step"]
    return columns


def trajectories(world: World, shares: Floats, episodes: int, rng: np.random.Generator) -> WorldLog:
    """Follow a policy for some episodes, each until its end or the cut-off.

    Examples
    --------
    >>> from surefoot.studies.zoo.catalogue import make_world
    >>> world = make_world("survival")
    >>> log = trajectories(world, greedy_shares(world, 0.3), 4, np.random.default_rng(0))
    >>> list(log.columns)
    ['episode', 'step', 'state', 'action', 'reward', 'next_state', 'terminal']
    """
    steps = _simulate(world, shares, episodes, rng)
    return WorldLog(columns=_columns(world, steps), behaviour=(Stint(shares, episodes),))


def learning(world: World, episodes: int, rng: np.random.Generator) -> WorldLog:
    """Follow a Q-learner that starts with random actions and explores less from stint to stint.

    Examples
    --------
    >>> from surefoot.studies.zoo.catalogue import make_world
    >>> log = learning(make_world("survival"), 25, np.random.default_rng(0))
    >>> [stint.episodes for stint in log.behaviour]
    [3, 3, 3, 3, 3, 2, 2, 2, 2, 2]
    """
    mdp = world.mdp
    quality, tries = np.zeros(mdp.num_rows), np.zeros(mdp.num_rows, dtype=np.int64)
    sizes = [len(part) for part in np.array_split(np.arange(episodes), min(STINTS, episodes))]
    parts, stints, before = [], [], 0
    for turn, size in enumerate(sizes):
        chance = FIRST_CHANCE * (LAST_CHANCE / FIRST_CHANCE) ** (turn / max(1, len(sizes) - 1))
        shares = (1 - chance) * _best_known(world, quality) + chance * random_shares(world)
        part = _simulate(world, shares, size, rng)
        ended = world.terminal[part.following].astype(np.int64)
        replay(
            quality, tries, part.row, part.reward, part.following, ended, mdp.state_start,
            mdp.discount,
        )  # fmt: skip
        parts.append(part._replace(episode=part.episode + before))
        stints.append(Stint(shares, size))
        before += size
    whole = Steps(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return WorldLog(columns=_columns(world, whole), behaviour=tuple(stints))


def _best_known(world: World, quality: Floats) -> Floats:
    """Return ``(S, A)``: the best actions so far; states with the same label share one choice."""
    mdp = world.mdp
    table = np.full((mdp.num_states, mdp.num_actions), -np.inf)
    table[mdp.row_state, mdp.row_action] = quality
    if world.hidden:
        _, group = np.unique(np.array([str(label) for label in world.labels]), return_inverse=True)
        pooled = np.zeros((group.max() + 1, mdp.num_actions))
        np.add.at(pooled, group, table)
        table = pooled[group]
    best = table == table.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def _simulate(world: World, shares: Floats, episodes: int, rng: np.random.Generator) -> Steps:
    """Simulate all episodes in parallel, step by step."""
    mdp = world.mdp
    rows_at = np.cumsum(shares[mdp.row_state, mdp.row_action])
    before = np.concatenate(([0.0], rows_at))[mdp.state_start]
    alive = np.arange(episodes)
    start = np.cumsum(mdp.initial)
    state = np.searchsorted(start, start[-1] * rng.random(episodes), side="right")
    parts = []
    for step in range(world.steps):
        # Cumulative sums run over all rows, so one search finds the row of every episode.
        aim = before[state] + rng.random(len(state)) * (before[state + 1] - before[state])
        row = np.searchsorted(rows_at, aim, side="right")
        row = np.clip(row, mdp.state_start[state], mdp.state_start[state + 1] - 1)
        reward, following = _draw(world, row, rng)
        parts.append(Steps(alive, np.full(len(state), step), state, row, reward, following))
        lives = ~world.terminal[following]
        alive, state = alive[lives], following[lives]
        if len(alive) == 0:
            break
    whole = Steps(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(whole.episode, kind="stable")
    return Steps._make(column[order] for column in whole)


def _draw(world: World, row: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Return a reward and a next state for each row."""
    mdp = world.mdp
    # Cumulative sums of row r go from r to r + 1, so one search finds the entry of every row.
    entry = np.searchsorted(world.entries_at, row + rng.random(len(row)), side="right")
    entry = np.clip(entry, mdp.row_start[row], mdp.row_start[row + 1] - 1)
    return world.law.draw(world.reward[entry], rng), mdp.successor[entry].astype(np.int64)


def _columns(world: World, steps: Steps) -> ColumnArrays:
    states, actions = _array(world.labels), _array(world.actions)
    values = (
        steps.episode, steps.step, states[steps.state],
        actions[world.mdp.row_action[steps.row]], steps.reward, states[steps.following],
        world.terminal[steps.following],
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def _array(labels: tuple[Any, ...]) -> NDArray[Any]:
    return np.array(labels)
