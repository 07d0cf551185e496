"""The cases that solvers are timed on: three random models and a slow river."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.domains.garnet import garnet, river_chain
from surefoot.model.mdp import MDP

SEED = 20
BUDGET = 0.2
RIVER_HALF_WIDTH = 0.1
KINDS = ("nominal", "uniform", "weighted", "box")


class Size(NamedTuple):
    """A random model: states, actions, successors per row."""

    states: int
    actions: int
    successors: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A model, the numbers of the sets around it, and the sets themselves by kind.

    Peers and checks read ``budget`` (rows), ``weights``, ``lower`` and ``upper`` (entries) alone.
    """

    name: str
    mdp: MDP
    budget: NDArray[np.float64]
    weights: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    sets: dict[str, AmbiguitySet | None]

    @property
    def row_length(self) -> int:
        """The number of successors, the same in every row."""
        return self.mdp.num_entries // self.mdp.num_rows


def garnet_case(name: str, size: Size, discount: float) -> Case:
    """Return a random model with boxes of half-width ``0.5 / successors``."""
    rng = np.random.default_rng(SEED)
    mdp = garnet(*size, discount=discount, rng=rng).mdp
    return _surround(name, mdp, 0.5 / size.successors, rng)


def river_case(name: str, num_states: int, discount: float) -> Case:
    """Return a river, where values travel far and sweeps converge slowly."""
    mdp = river_chain(num_states, discount=discount).mdp
    return _surround(name, mdp, RIVER_HALF_WIDTH, np.random.default_rng(SEED))


def _surround(name: str, mdp: MDP, half_width: float, rng: np.random.Generator) -> Case:
    budget = np.full(mdp.num_rows, BUDGET)
    weights = random_weights(mdp.num_entries, rng)
    lower = np.maximum(mdp.probability - half_width, 0.0)
    upper = np.minimum(mdp.probability + half_width, 1.0)
    sets = {
        "nominal": None,
        "uniform": AmbiguitySet(mdp=mdp, norm="l1", budget=budget),
        "weighted": AmbiguitySet(mdp=mdp, norm="l1", budget=budget, weights=weights),
        "box": AmbiguitySet(mdp=mdp, norm="box", lower=lower, upper=upper),
    }
    return Case(
        name=name, mdp=mdp, budget=budget, weights=weights, lower=lower, upper=upper, sets=sets
    )


def random_weights(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return weights uniform on (0.5, 1.5), locked so that a set need not copy them."""
    weights = rng.random(count)
    weights += 0.5
    weights.setflags(write=False)
    return weights


CASES: dict[str, Callable[[float], Case]] = {
    "d200": lambda discount: garnet_case("d200", Size(200, 2, 200), discount),
    "s2000": lambda discount: garnet_case("s2000", Size(2000, 10, 10), discount),
    "m1000": lambda discount: garnet_case("m1000", Size(1000, 5, 200), discount),
    "river500": lambda discount: river_case("river500", 500, discount),
}
