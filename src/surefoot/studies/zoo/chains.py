"""Chains: a road with rare accidents that few rows ever show, and patients who live or die."""

import numpy as np

from surefoot.model.mdp import MDP
from surefoot.studies.zoo.worlds import World

HURRY, CARE = 0, 1
WAIT, TREAT = 0, 1


def accident_chain(
    name: str, *, length: int, accident: float, safe: float, loss: float, discount: float,
    steps: int,
) -> World:  # fmt: skip
    """Return a road on which hurrying is fast but occasionally ends in a ditch.

    Every step moves on by two places (hurry) or one (care), sometimes by one less, and ends in the
    ditch with a small probability. The ditch costs ``loss`` a step and is hard to leave. The end of
    the road pays 1 and leads back to its start. Most rows are tried often and never show an
    accident.

    Examples
    --------
    >>> accident_chain(
    ...     "road", length=10, accident=0.02, safe=0.002, loss=5, discount=0.9, steps=40
    ... ).mdp
    MDP(11 states, 2 actions, 22 rows, 64 entries, discount 0.9)
    """
    ditch = length
    transitions = np.zeros((length + 1, 2, length + 1))
    rewards = np.zeros((length + 1, 2, length + 1))
    for place in range(length):
        for action, fall in ((HURRY, accident), (CARE, safe)):
            stride = 2 if action == HURRY else 1
            ahead, near = (place + stride) % length, (place + stride - 1) % length
            transitions[place, action, ahead] += 0.8 * (1 - fall)
            transitions[place, action, near] += 0.2 * (1 - fall)
            transitions[place, action, ditch] += fall
            if place >= length - 2:
                rewards[place, action, : min(2, length)] = 1.0
    transitions[ditch, :, ditch], transitions[ditch, :, 0] = 0.7, 0.3
    rewards[ditch] = -loss
    initial = np.zeros(length + 1)
    initial[0] = 1.0
    labels = (*(f"km {place}" for place in range(length)), "ditch")
    mdp = MDP.from_arrays(
        transitions, rewards, discount=discount, initial=initial, state_labels=labels,
        action_labels=("hurry", "care"),
    )  # fmt: skip
    return World(name=name, mdp=mdp, terminal=np.zeros(length + 1, dtype=np.bool_), steps=steps)


def survival(name: str, *, frailty: tuple[float, ...] = (1.0,), severities: int = 8) -> World:
    """Return patients of some severity who are treated or not until they die or recover.

    Treatment helps severe cases and harms mild ones a little. The frailty of a patient type
    multiplies the risks of getting worse and of death; with several types, equally frequent, a log
    shows only the severity.

    Examples
    --------
    >>> survival("one type").mdp.num_states, survival("two", frailty=(0.5, 1.6)).hidden
    (10, True)
    """
    parts = [_one_type(factor, severities) for factor in frailty]
    size, types = severities + 2, len(frailty)
    transitions = np.zeros((types * size, 2, types * size))
    rewards = np.zeros_like(transitions)
    terminal = np.zeros(types * size, dtype=np.bool_)
    initial = np.zeros(types * size)
    for kind, (rows, pay) in enumerate(parts):
        own = slice(kind * size, (kind + 1) * size)
        transitions[own, :, own], rewards[own, :, own] = rows, pay
        terminal[kind * size + severities : (kind + 1) * size] = True
        initial[kind * size + np.arange(2, 6)] = 0.25 / types
    labels = (*(f"severity {s}" for s in range(severities)), "dead", "recovered")
    mdp = MDP.from_arrays(
        transitions, rewards, discount=0.97, initial=initial, action_labels=("wait", "treat")
    )
    return World(name=name, mdp=mdp, terminal=terminal, steps=60, states=labels * types)


def _one_type(frailty: float, severities: int) -> tuple[np.ndarray, np.ndarray]:
    """Return transitions and rewards of one patient type: 1 for recovery, 0.01 off a treatment."""
    dead, recovered = severities, severities + 1
    rows = np.zeros((severities + 2, 2, severities + 2))
    rewards = np.zeros_like(rows)
    for s in range(severities):
        burden = s / (severities - 1)
        for action in (WAIT, TREAT):
            worse = frailty * (0.10 + 0.25 * burden if action == WAIT else 0.14 + 0.08 * burden)
            better = 0.25 if action == WAIT else 0.27
            death = 0.08 * frailty * burden**3
            down, up = (recovered if s == 0 else s - 1), (dead if s == severities - 1 else s + 1)
            rows[s, action, up] += worse
            rows[s, action, down] += better
            rows[s, action, dead] += death
            rows[s, action, s] += 1 - worse - better - death
        rewards[s, :, recovered] = 1.0
        rewards[s, TREAT] -= 0.01
    for end in (dead, recovered):
        rows[end, :, end] = 1.0
    return rows, rewards
