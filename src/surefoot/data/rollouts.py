"""Logs from Gymnasium environments and Minari datasets (the extra ``rl``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.counts import Counts
from surefoot.data.discretization import Discretization
from surefoot.data.tables import StepColumns
from surefoot.data.transitions import read_transitions

MAX_STEPS = 10_000


def collect(
    env: Any,
    policy: Callable[..., Any] | None,
    episodes: int,
    rng: np.random.Generator,
    *,
    max_steps: int = MAX_STEPS,
) -> StepColumns:
    """Run a policy in a Gymnasium environment and return the log.

    Parameters
    ----------
    env
        An environment with discrete actions.
    policy
        A function of the observation, or of the observation and ``rng``, that returns an action;
        None picks uniformly.
    episodes
        How many episodes to run.
    rng
        Seeds every episode and is passed to the policy.
    max_steps
        Episodes that do not end by themselves are cut off after this many steps.

    Returns
    -------
    StepColumns
        A dict of the columns episode, step, state, action, reward, next_state and terminal, ready
        for :func:`read_transitions`. Observations with several whole numbers become one text label
        ("14,10,0"); continuous ones stay arrays, one row per step, for :func:`discretize`.

    Examples
    --------
    >>> import gymnasium
    >>> env = gymnasium.make("FrozenLake-v1")
    >>> log = collect(env, None, 20, np.random.default_rng(0))
    >>> counts = read_transitions(log)
    >>> counts.num_actions, int(counts.starts.sum())
    (4, 20)
    """
    _check_discrete("the environment's action space", env.action_space)
    if episodes < 1 or max_steps < 1:
        raise ValueError(f"episodes={episodes}, max_steps={max_steps}; both must be 1 or more.")
    choose = _chooser(policy, env.action_space, rng)
    observed: list[Any] = []
    following: list[Any] = []
    rows: list[tuple[int, int, int, float, bool]] = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        for step in range(max_steps):
            action = int(choose(observation))
            after, reward, terminated, truncated, _ = env.step(action)
            observed.append(observation)
            following.append(after)
            rows.append((episode, step, action, float(reward), bool(terminated)))
            observation = after
            if terminated or truncated:
                break
    episode_ids, steps, actions, rewards, ends = zip(*rows, strict=True)
    return StepColumns(
        episode=np.array(episode_ids),
        step=np.array(steps),
        state=_as_column(observed, env.observation_space),
        action=np.array(actions),
        reward=np.array(rewards),
        next_state=_as_column(following, env.observation_space),
        terminal=np.array(ends),
    )


def _chooser(
    policy: Callable[..., Any] | None, space: Any, rng: np.random.Generator
) -> Callable[[Any], Any]:
    if policy is None:
        return lambda _: space.start + rng.integers(space.n)
    try:
        parameters = inspect.signature(policy).parameters.values()
    except (TypeError, ValueError):  # some compiled functions have no signature
        return policy
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return (lambda observation: policy(observation, rng)) if len(needed) > 1 else policy


def _check_discrete(what: str, space: Any) -> None:
    if type(space).__name__ != "Discrete":
        raise ValueError(
            f"{what} is {space}; it must be Discrete. A policy chooses among listed actions."
        )


def _as_column(observations: list[Any], space: Any) -> NDArray[Any]:
    """Return whole numbers, text labels, or (for continuous spaces) one row per observation."""
    kind = type(space).__name__
    if kind == "Discrete":
        return np.array(observations).astype(np.int64)
    if kind == "Box" and np.issubdtype(space.dtype, np.floating):
        return np.array([np.ravel(observation) for observation in observations], dtype=np.float64)
    if kind in ("Tuple", "MultiDiscrete", "MultiBinary", "Box"):
        return np.array(
            [",".join(str(int(part)) for part in np.ravel(seen)) for seen in observations],
            dtype=object,
        )
    raise ValueError(
        f"observations of the space {space} cannot be states; use whole numbers, tuples of them, "
        "or vectors. Wrap the environment (gymnasium.wrappers.FlattenObservation)."
    )


def minari_log(dataset: Any) -> StepColumns:
    """Return the steps of a Minari dataset as columns, like :func:`collect`.

    ``dataset`` is a MinariDataset or the id of a local one.
    """
    if isinstance(dataset, str):
        try:
            import minari
        except ImportError:
            raise ValueError(
                "reading a Minari dataset needs the extra rl: pip install 'surefoot[rl]'."
            ) from None
        dataset = minari.load_dataset(dataset)
    _check_discrete("the dataset's action space", dataset.action_space)
    parts: list[dict[str, NDArray[Any]]] = []
    for episode in dataset.iterate_episodes():
        length = len(episode.rewards)
        # T steps have T + 1 observations; the last one is a next state only.
        seen = _as_column(_steps(episode.observations, length + 1), dataset.observation_space)
        parts.append(
            {
                "episode": np.full(length, episode.id),
                "step": np.arange(length),
                "state": seen[:-1],
                "action": np.asarray(episode.actions).astype(np.int64).reshape(length),
                "reward": np.asarray(episode.rewards, dtype=np.float64),
                "next_state": seen[1:],
                "terminal": np.asarray(episode.terminations, dtype=np.bool_),
            }
        )
    if not parts:
        raise ValueError("the dataset has no episodes.")
    return StepColumns({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _steps(observations: Any, length: int) -> list[Any]:
    """Return one observation per step; tuple spaces store one array per component."""
    if isinstance(observations, tuple):
        return list(zip(*(np.asarray(part)[:length] for part in observations), strict=True))
    return list(observations[:length])


def read_minari(
    dataset: Any, *, discretization: Discretization | None = None, **options: Any
) -> Counts:
    """Count the transitions of a Minari dataset.

    Parameters
    ----------
    dataset
        A MinariDataset, or the id of a local one.
    discretization
        How continuous observations become states; see :func:`discretize`.
    options
        ``missing``, ``rewards``, ``reward_range`` and ``reward`` of :func:`read_transitions`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from gymnasium.spaces import Discrete
    >>> walk = SimpleNamespace(
    ...     id=0, observations=[0, 1, 1], actions=[1, 0], rewards=[0, 1], terminations=[0, 0]
    ... )
    >>> dataset = SimpleNamespace(  # or the name of a Minari dataset
    ...     observation_space=Discrete(2), action_space=Discrete(2), iterate_episodes=lambda: [walk]
    ... )
    >>> read_minari(dataset)
    Counts(2 transitions, 2 states, 2 actions, 2 rows visited, 2 entries observed)
    """
    log = minari_log(dataset)
    if discretization is not None:
        log |= {name: discretization.states_of(log[name]) for name in ("state", "next_state")}
    return read_transitions(log, **options)
