"""Gymnasium's toy-text environments as worlds (needs the extra ``rl``)."""

from typing import Any

import numpy as np

from surefoot.model.mdp import MDP
from surefoot.studies.zoo.worlds import World

DISCOUNT = 0.95


def frozen_lake(name: str, *, size: str) -> World:
    """Return the slippery frozen lake, ``"4x4"`` or ``"8x8"``.

    Examples
    --------
    >>> frozen_lake("lake", size="4x4").mdp
    MDP(16 states, 4 actions, 64 rows, 148 entries, discount 0.95)
    """
    return _world(name, _toy("frozen_lake", "FrozenLakeEnv", map_name=size), steps=100)


def cliff_walk(name: str) -> World:
    """Return the cliff walk with slips. A fall leads back to the start; only the goal ends it.

    If a slip off the cliff and one into the wall lead to the same state, the table lists that state
    twice: the world pays the mean of both rewards.
    """
    return _world(name, _toy("cliffwalking", "CliffWalkingEnv", is_slippery=True), steps=200)


def taxi(name: str) -> World:
    """Return the taxi of Dietterich (2000)."""
    return _world(name, _toy("taxi", "TaxiEnv"), steps=200)


def _toy(module: str, name: str, **options: Any) -> Any:
    try:
        from importlib import import_module

        made = getattr(import_module(f"gymnasium.envs.toy_text.{module}"), name)
    except ImportError:
        raise ValueError(
            f"the world {module!r} comes with Gymnasium, which is not installed. Install the "
            "extra: surefoot[rl]."
        ) from None
    return made(**options)


def _world(name: str, toy: Any, *, steps: int) -> World:
    initial = np.asarray(toy.initial_state_distrib, dtype=np.float64)
    mdp = MDP.from_gymnasium(toy.P, discount=DISCOUNT, initial=initial / initial.sum())
    terminal = np.zeros(mdp.num_states, dtype=np.bool_)
    for rows in toy.P.values():
        for lines in rows.values():
            terminal[[int(after) for chance, after, _, ends in lines if ends and chance > 0]] = True
    return World(name=name, mdp=mdp, terminal=terminal, steps=steps)
