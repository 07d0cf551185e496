"""The cells of the table: a world, a kind of log, and the number of replications."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot._arguments import check_listed
from surefoot.studies.zoo.catalogue import SPLITS, WORLDS
from surefoot.studies.zoo.logs import (
    WorldLog,
    expert_shares,
    fixed_tries,
    greedy_shares,
    learning,
    random_shares,
    trajectories,
)
from surefoot.studies.zoo.worlds import World

DELTAS = (0.05, 0.2)
QUICK, SLOW = 400, 50
"""Replications of cells where one takes less than a second, and of the others."""
BEHAVIOURS = ("tries", "random", "greedy", "expert", "learning")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A world and a log of it.

    Attributes
    ----------
    name
        A unique name.
    world
        The name of the world, in the catalogue or not.
    behaviour, size, epsilon
        ``"tries"``: ``size`` tries per pair. Otherwise ``size`` episodes of ``"random"``,
        ``"greedy"`` (any action with probability epsilon, otherwise an optimal one), ``"expert"``
        (better actions more often, with habits) or ``"learning"`` behaviour.
    declared
        What else the owner of the log knows: ``"range"`` of rewards, ``"support"``.
    fresh
        Whether every replication draws a new random world.
    replications
        Number of replications.
    horizon
        Number of steps that count, without discount; None: all steps, discounted.
    """

    name: str
    world: str
    behaviour: str
    size: int
    epsilon: float = 0.0
    declared: tuple[str, ...] = ()
    fresh: bool = False
    replications: int = QUICK
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.behaviour not in BEHAVIOURS:
            listed = ", ".join(map(repr, BEHAVIOURS))
            raise ValueError(f"behaviour={self.behaviour!r}; choose one of {listed}.")
        if self.fresh and not (self.world in WORLDS and WORLDS[self.world].random):
            raise ValueError(f"fresh=True, but {self.world!r} is always the same world.")

    @property
    def split(self) -> str:
        """The half of the zoo that the world is in."""
        return WORLDS[self.world].split

    @property
    def log_text(self) -> str:
        """The log in a few words."""
        if self.behaviour == "tries":
            words = f"{self.size:,} tries a pair"
        else:
            words = f"{self.size:,} episodes, {self.behaviour}"
        words += f" {self.epsilon:g}" if self.behaviour == "greedy" else ""
        words += "" if self.horizon is None else f", {self.horizon} steps count"
        return words + "".join(f", {fact} declared" for fact in self.declared)


def make_log(cell: Cell, world: World, rng: np.random.Generator) -> WorldLog:
    """Draw the log of a cell."""
    if cell.behaviour == "tries":
        return fixed_tries(world, cell.size, rng)
    if cell.behaviour == "learning":
        return learning(world, cell.size, rng)
    if cell.behaviour == "greedy":
        shares = greedy_shares(world, cell.epsilon)
    else:
        shares = expert_shares(world) if cell.behaviour == "expert" else random_shares(world)
    return trajectories(world, shares, cell.size, rng)


def _tries(name: str, world: str, size: int, **more: object) -> Cell:
    return Cell(name=name, world=world, behaviour="tries", size=size, **more)  # type: ignore[arg-type]


def _random(name: str, world: str, size: int, **more: object) -> Cell:
    return Cell(name=name, world=world, behaviour="random", size=size, **more)  # type: ignore[arg-type]


def _greedy(name: str, world: str, size: int, epsilon: float, **more: object) -> Cell:
    return Cell(name=name, world=world, behaviour="greedy", size=size, epsilon=epsilon, **more)  # type: ignore[arg-type]


def _expert(name: str, world: str, size: int, **more: object) -> Cell:
    return Cell(name=name, world=world, behaviour="expert", size=size, **more)  # type: ignore[arg-type]


def _learning(name: str, world: str, size: int, **more: object) -> Cell:
    return Cell(name=name, world=world, behaviour="learning", size=size, **more)  # type: ignore[arg-type]


CELLS = (
    # development
    _tries("riverswim-tries", "riverswim", 20),
    _greedy("riverswim-greedy", "riverswim", 50, 0.2),
    _tries("inventory-tries", "inventory", 20, replications=SLOW),
    _learning("inventory-learning", "inventory", 60, replications=SLOW),
    _greedy("lake4-greedy", "frozen-lake-4x4", 50, 0.3),
    _tries("lake4-tries", "frozen-lake-4x4", 5),
    _greedy("lake4-expert", "frozen-lake-4x4", 1000, 0.03),
    _tries("garnet-.3-tries", "garnet-.3", 5, fresh=True),
    _random("garnet-.3-wide", "garnet-.3-wide", 50, fresh=True, replications=SLOW),
    _tries("garnet-10-tries", "garnet-10", 5, fresh=True),
    _tries("garnet-10-support", "garnet-10", 5, fresh=True, declared=("support",)),
    _tries("garnet-10-normal", "garnet-10-normal", 10, fresh=True),
    _tries("garnet-.3-bernoulli", "garnet-.3-bernoulli", 10, fresh=True, declared=("range",)),
    _random("accident-short", "accident-short", 60),
    _greedy("survival-greedy", "survival", 600, 0.2),
    _learning("survival-learning", "survival", 300),
    _random("survival-strata", "survival-strata", 2000),
    _random("gambler-random", "gambler", 150),
    _greedy("gambler-greedy", "gambler", 100, 0.2),
    _greedy("queue-greedy", "queue", 8, 0.3),
    _tries("epidemic-tries", "epidemic", 10),
    _learning("epidemic-learning", "epidemic", 20),
    _random("offers-random", "offers", 1500, declared=("range",)),
    _greedy("clinic-0-1000", "clinic-0", 1000, 0.3, replications=SLOW),
    _greedy("clinic-0-5000", "clinic-0", 5000, 0.3, replications=SLOW),
    _expert("ward-3000", "ward", 3000, replications=SLOW),
    _expert("ward-10000", "ward", 10_000, replications=SLOW),
    _greedy("survival-12-steps", "survival", 600, 0.2, horizon=12),
    _greedy("lake4-100-steps", "frozen-lake-4x4", 300, 0.3, horizon=100),
    _greedy("clinic-0-20-steps", "clinic-0", 1000, 0.3, horizon=20, replications=SLOW),
    # test
    _tries("machine-tries", "machine", 20),
    _random("machine-few", "machine", 10),
    _greedy("machine-greedy", "machine", 50, 0.2),
    _random("machine-lognormal", "machine-lognormal", 50, replications=SLOW),
    _tries("population-tries", "population", 20, replications=SLOW),
    _learning("population-learning", "population", 60, replications=SLOW),
    _random("cartpole-random", "cartpole", 200, replications=SLOW),
    _greedy("lake8-greedy", "frozen-lake-8x8", 200, 0.3, replications=SLOW),
    _learning("lake8-learning", "frozen-lake-8x8", 2000, replications=SLOW),
    _greedy("cliff-greedy", "cliff-walk", 100, 0.2, replications=SLOW),
    _greedy("cliff-expert", "cliff-walk", 1000, 0.03, replications=SLOW),
    _greedy("taxi-greedy", "taxi", 300, 0.3, replications=SLOW),
    _learning("taxi-learning", "taxi", 2000, replications=SLOW),
    _tries("garnet-.1-tries", "garnet-.1", 5, fresh=True),
    _random("garnet-.1-two", "garnet-.1-two", 20, fresh=True),
    _tries("garnet-1-tries", "garnet-1", 5, fresh=True),
    _tries("garnet-1-support", "garnet-1", 5, fresh=True, declared=("support",)),
    _greedy("garnet-1-wide", "garnet-1-wide", 100, 0.2, replications=SLOW),
    _tries("garnet-1-normal", "garnet-1-normal", 10, fresh=True),
    _tries("catastrophe-range", "garnet-1-catastrophe", 20, fresh=True, declared=("range",)),
    _tries("catastrophe", "garnet-1-catastrophe", 20, fresh=True),
    _random("accident-long", "accident-long", 100),
    _greedy("accident-long-greedy", "accident-long", 30, 0.2),
    _tries("fishery-tries", "fishery", 10),
    _greedy("fishery-greedy", "fishery", 15, 0.3),
    _random("offers-rare", "offers-rare", 1500, declared=("range",)),
    _greedy("clinic-1-5000", "clinic-1", 5000, 0.3, replications=SLOW),
    _greedy("clinic-1-10000", "clinic-1", 10_000, 0.2, replications=SLOW),
    _expert("ward-small", "ward-small", 2000, replications=SLOW),
    _greedy("clinic-mixed", "clinic-mixed", 5000, 0.3, replications=SLOW),
)
"""All cells; those of the development half come first."""
SMOKE = ("riverswim-tries", "gambler-greedy", "survival-greedy", "machine-few", "garnet-.1-two")
SMOKE_REPLICATIONS = 2
"""Cells of both halves, and replications, for a quick check that everything runs."""


def find_cells(split: str | None = None, names: Sequence[str] | None = None) -> tuple[Cell, ...]:
    """Return the cells of one half (None: both), all of them or only those named.

    Examples
    --------
    >>> [cell.log_text for cell in find_cells("test", ["machine-tries", "cliff-greedy"])]
    ['20 tries a pair', '100 episodes, greedy 0.2']
    """
    if split is not None and split not in SPLITS:
        raise ValueError(f"set={split!r}; choose one of {', '.join(map(repr, SPLITS))}.")
    known = {cell.name: cell for cell in CELLS if split in (None, cell.split)}
    for name in names or ():
        check_listed("cell", name, known)
    return tuple(known[name] for name in names or known)
