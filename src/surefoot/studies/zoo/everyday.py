"""Small worlds of everyday decisions: bets, queues, diseases, harvests, offers.

Their rows have shapes that no symmetric prior expects: every bet favours one side, infections and
stocks move around a mean, and offers differ by less than their noise.
"""

import numpy as np
from scipy.stats import binom

from surefoot.model.mdp import MDP
from surefoot.studies.zoo.rewards import RewardLaw
from surefoot.studies.zoo.worlds import World


def gambler(name: str, *, goal: int = 20, chance: float = 0.4, stakes: int = 5) -> World:
    """Return the gambler who bets until he is ruined or has reached his goal, which pays 1.

    Examples
    --------
    >>> gambler("bets").mdp.num_states
    21
    """
    transitions = np.zeros((goal + 1, stakes, goal + 1))
    rewards = np.zeros_like(transitions)
    transitions[[0, goal], 0, [0, goal]] = 1.0
    for capital in range(1, goal):
        for stake in range(1, min(stakes, capital, goal - capital) + 1):
            transitions[capital, stake - 1, capital + stake] += chance
            transitions[capital, stake - 1, capital - stake] += 1 - chance
            rewards[capital, stake - 1, goal] = 1.0
    initial = np.zeros(goal + 1)
    initial[1:goal] = 1 / (goal - 1)
    ends = np.zeros(goal + 1, dtype=np.bool_)
    ends[[0, goal]] = True
    return _world(name, transitions, rewards, initial, 0.99, ends, steps=200)


def queue(name: str, *, places: int = 12) -> World:
    """Return a queue that is served slowly, fast, or fast with few admissions.

    Examples
    --------
    >>> queue("desk").mdp
    MDP(13 states, 3 actions, 39 rows, 111 entries, discount 0.95)
    """
    size = places + 1
    transitions, rewards = np.zeros((size, 3, size)), np.zeros((size, 3))
    for waiting in range(size):
        for action, (comes, leaves, cost) in enumerate(
            ((0.5, 0.3, 0.0), (0.5, 0.5, 0.4), (0.2, 0.5, 0.9))
        ):
            up = (comes if waiting < places else 0.0) * (1 - (leaves if waiting else 0.0))
            down = (leaves if waiting else 0.0) * (1 - (comes if waiting < places else 0.0))
            transitions[waiting, action, min(waiting + 1, places)] += up
            transitions[waiting, action, max(waiting - 1, 0)] += down
            transitions[waiting, action, waiting] += 1 - up - down
            turned_away = 5.0 if waiting == places and action < 2 else 0.0
            rewards[waiting, action] = -0.3 * waiting - cost - turned_away
    return _world(name, transitions, rewards, _first(size, 0), 0.95, steps=80)


def epidemic(name: str, *, people: int = 15) -> World:
    """Return a disease in a small group: do nothing, isolate, or isolate and treat.

    Examples
    --------
    >>> epidemic("flu").mdp.num_rows
    48
    """
    size = people + 1
    transitions, rewards = np.zeros((size, 3, size)), np.zeros((size, 3))
    for ill in range(1, size):
        for action, (spread, recovery, cost) in enumerate(
            ((1.6, 0.3, 0.0), (0.9, 0.3, 1.0), (0.9, 0.6, 2.5))
        ):
            infection = 1 - np.exp(-spread * ill / people)
            for new in range(people - ill + 1):
                for well in range(ill + 1):
                    chance = binom.pmf(new, people - ill, infection) * binom.pmf(
                        well, ill, recovery
                    )
                    transitions[ill, action, ill + new - well] += chance
            rewards[ill, action] = -0.4 * ill - cost
    transitions[0, :, 0], transitions[0, :, 1] = 0.8, 0.2
    rewards[0] = [0.0, -1.0, -2.5]
    return _world(name, transitions, rewards, _first(size, 2), 0.95, steps=52)


def fishery(name: str, *, most: int = 14) -> World:
    """Return a fish stock that grows logistically and is harvested.

    Examples
    --------
    >>> fishery("lake").mdp.num_actions
    4
    """
    size = most + 1
    transitions, rewards = np.zeros((size, 4, size)), np.zeros((size, 4))
    for stock in range(size):
        for harvest in range(4):
            left = max(stock - 2 * harvest, 0)
            rewards[stock, harvest] = min(2 * harvest, stock) ** 0.8
            growth = 0.7 * left * (1 - left / (most + 4))
            for change in range(most - left + 1):
                transitions[stock, harvest, left + change] += binom.pmf(
                    change, most - left, min(1.0, growth / max(1, most - left))
                )
            if left == most:
                transitions[stock, harvest, most] = 1.0
    return _world(name, transitions, rewards, _first(size, most // 2), 0.93, steps=40)


def offers(
    name: str, *, people: int, choices: int, chances: tuple[float, float], seed: int,
    pays: tuple[float, float] = (0.0, 1.0),
) -> World:  # fmt: skip
    """Return visitors who get one offer each and accept it or not: a contextual bandit.

    ``pays``: the reward of an offer that is refused, and of one that is accepted.

    Examples
    --------
    >>> offers("shop", people=30, choices=5, chances=(0.2, 0.8), seed=5).mdp.num_states
    31
    """
    rng = np.random.default_rng(seed)
    transitions = np.zeros((people + 1, choices, people + 1))
    transitions[:people, :, people] = 1.0
    transitions[people, 0, people] = 1.0
    rewards = np.zeros((people + 1, choices))
    chance = chances[0] + (chances[1] - chances[0]) * rng.beta(3, 3, size=(people, choices))
    rewards[:people] = pays[0] + (pays[1] - pays[0]) * chance
    ends = np.zeros(people + 1, dtype=np.bool_)
    ends[people] = True
    law = RewardLaw(kind="bernoulli", low=pays[0], high=pays[1])
    initial = np.append(rng.dirichlet(np.full(people, 2.0)), 0.0)
    return _world(name, transitions, rewards, initial, 0.95, ends, steps=2, law=law)


def _first(size: int, state: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    initial = np.zeros(size)
    initial[state] = 1.0
    return initial


def _world(
    name: str, transitions: object, rewards: object, initial: object, discount: float,
    ends: object = None, *, steps: int, law: RewardLaw | None = None,
) -> World:  # fmt: skip
    table = np.asarray(transitions, dtype=np.float64)
    table = table / np.maximum(table.sum(axis=2, keepdims=True), 1e-300)
    mdp = MDP.from_arrays(
        table, np.asarray(rewards), discount=discount, initial=np.asarray(initial),
        state_labels=tuple(f"s{state}" for state in range(len(table))),
        action_labels=tuple(f"a{action}" for action in range(table.shape[1])),
    )  # fmt: skip
    terminal = np.zeros(len(table), dtype=np.bool_) if ends is None else np.asarray(ends)
    return World(name=name, mdp=mdp, terminal=terminal, steps=steps, law=law or RewardLaw())
