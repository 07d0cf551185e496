"""Cart-pole: balance a pole on a cart, in a model of 200 states fitted to a simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domains.domain import Domain
from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EPISODES, STEPS = 100, 100
LIMITS = np.array([2.4, 3.0, 0.25, 3.1])
"""Largest position, speed, angle and angular speed of the prototypes."""
SAFE_POSITION, SAFE_ANGLE = 2.0, np.radians(12.0)


def cartpole(
    *,
    discount: float = 0.95,
    seed: int = 0,
    prototypes: int = 200,
    transitions: int = 10_000,
) -> Domain:
    """Return a finite model of Gymnasium's CartPole-v1 (needs the extra ``rl``).

    100 episodes of a random policy are logged in the real environment and each step is mirrored
    (state negated, action swapped). Per action, a linear model of the next state is fitted.
    ``prototypes`` states are drawn uniformly; ``transitions`` synthetic steps of the linear models
    start uniformly in the same region and are mapped to the nearest prototype at both ends. The
    reward of a row is the share of its steps that start with the cart within 2 units and the pole
    within 12 degrees. No state is terminal.

    Parameters
    ----------
    discount
        In [0, 1).
    seed
        Seed of all random numbers: equal seeds give equal models.
    prototypes
        The number of states.
    transitions
        The number of synthetic steps.

    Examples
    --------
    >>> domain = cartpole()
    >>> domain.mdp.num_states, domain.mdp.num_rows
    (200, 400)
    """
    for name, value in (("prototypes", prototypes), ("transitions", transitions)):
        if not value >= 1:
            raise ValueError(f"{name}={value!r}; it must be a whole number, 1 or more.")
    from scipy.spatial import cKDTree  # imported here so that the other domains load fast

    rng = np.random.default_rng(seed)
    models = _linear_models(*_mirrored_steps(rng))
    points = rng.uniform(-LIMITS, LIMITS, size=(prototypes, 4))
    tree = cKDTree(points / LIMITS)
    source = rng.uniform(-LIMITS, LIMITS, size=(transitions, 4))
    action = rng.integers(2, size=transitions)
    # A row in which no synthetic step starts gets one step that starts at its prototype.
    state = _nearest(tree, source)
    bare = np.argwhere(_tally((prototypes, 2), state, action) == 0)
    source = np.concatenate([source, points[bare[:, 0]]])
    action = np.concatenate([action, bare[:, 1]])
    state = np.concatenate([state, bare[:, 0]])
    following = _nearest(tree, _predict(models, source, action))
    return Domain(
        name="cartpole",
        mdp=_counted_model(prototypes, state, action, following, _safe(source), discount),
    )


def _nearest(tree: Any, points: Floats) -> Ints:
    nearest: Ints = tree.query(points / LIMITS)[1].astype(np.int64)
    return nearest


def _mirrored_steps(rng: np.random.Generator) -> tuple[Floats, Ints, Floats]:
    """Log the environment; return states, actions and next states with their mirror images."""
    from surefoot.data.rollouts import collect

    env = _environment()
    try:
        log = collect(env, None, EPISODES, rng, max_steps=STEPS)
    finally:
        env.close()
    state, action, following = log["state"], log["action"], log["next_state"]
    return (
        np.concatenate([state, -state]),
        np.concatenate([action, 1 - action]),
        np.concatenate([following, -following]),
    )


def _environment() -> Any:
    try:
        import gymnasium
    except ImportError:
        raise ImportError(
            "the domain cartpole runs Gymnasium's CartPole-v1 and needs the extra rl: "
            "pip install 'surefoot[rl]'."
        ) from None
    return gymnasium.make("CartPole-v1")


def _linear_models(state: Floats, action: Ints, following: Floats) -> Floats:
    """Return ``(2, 5, 4)``: per action, least-squares coefficients of (state, 1)."""
    return np.stack(
        [
            np.linalg.lstsq(_with_one(state[action == a]), following[action == a], rcond=None)[0]
            for a in (0, 1)
        ]
    )


def _predict(models: Floats, state: Floats, action: Ints) -> Floats:
    following: Floats = np.einsum("ni,nij->nj", _with_one(state), models[action])
    return following


def _with_one(state: Floats) -> Floats:
    return np.column_stack([state, np.ones(len(state))])


def _safe(state: Floats) -> NDArray[np.bool_]:
    safe: NDArray[np.bool_] = (np.abs(state[:, 0]) < SAFE_POSITION) & (
        np.abs(state[:, 2]) < SAFE_ANGLE
    )
    return safe


def _tally(shape: tuple[int, ...], *index: Ints, weight: Any = 1.0) -> Floats:
    """Return how often each index occurs, or the sum of its weights."""
    total = np.zeros(shape)
    np.add.at(total, index, weight)
    return total


def _counted_model(
    size: int, state: Ints, action: Ints, following: Ints, safe: NDArray[np.bool_], discount: float
) -> MDP:
    count = _tally((size, 2, size), state, action, following)
    tried = count.sum(axis=2)
    reward = _tally((size, 2), state, action, weight=safe.astype(np.float64)) / tried
    return MDP.from_arrays(
        count / tried[:, :, None], reward, discount=discount, action_labels=("left", "right")
    )
