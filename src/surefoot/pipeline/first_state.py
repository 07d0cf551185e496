"""The doubt about the first state: its law comes from some episodes only."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy
from surefoot.pipeline.model import Model
from surefoot.pipeline.reward_ends import least_return
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import counted_steps
from surefoot.solvers.unseen import LeastRewards, least_rewards

Floats = NDArray[np.float64]


def first_state_doubt(model: Model, policy: AnyPolicy, *, reach: float, delta: float) -> float:
    """Return what doubt about the first state takes off a promise; 0 where the state is given.

    The doubt of transitions, that of the first state and that of how many first states the log
    does not know are independent: their deviations add as squares. ``reach`` is what the promise
    already lies below the mean. Episodes that begin in a state which the log does not know have no
    rule to follow. Where such states lead to known ones, they are like other transitions that were
    never observed: the lowest reward once, then the worst state of the log. Or they hold an
    episode forever, as badly as the worst trap that the log has shown. Where they lead to others
    that nobody knows, episodes may earn the least there is.
    """
    if not _learned(model):
        return 0.0
    value = evaluate(model.mdp, policy).value
    unknown = unknown_starts(model, delta)
    worth = _worth_of_unknown(model, value, unknown.lost) if unknown.most > 0 else 0.0
    return _doubt(model, value, worth, unknown, reach, delta)


def first_state_doubt_between(
    model: Model, policy: AnyPolicy, other: AnyPolicy, *, reach: float, delta: float
) -> float:
    """Return what doubt about the first state takes off the difference between two policies.

    In a state that the log does not know, neither has a rule: they are alike.
    """
    if not _learned(model):
        return 0.0
    value = evaluate(model.mdp, policy).value - evaluate(model.mdp, other).value
    return _doubt(model, value, 0.0, unknown_starts(model, delta), reach, delta)


def _learned(model: Model) -> bool:
    """Tell whether the first state's law comes from the episodes of the log."""
    starts = model.placed.starts
    if starts is None or model.settings.initial not in (None, "episodes"):
        return False
    return bool(starts.any())


def _doubt(
    model: Model, value: Floats, worth: float, unknown: "UnknownStarts", reach: float, delta: float
) -> float:
    """Return the doubt of a mean over first states; ``worth`` is that of unknown ones."""
    starts = np.asarray(model.placed.starts)
    share = starts / starts.sum()
    mean = float(share @ value)
    deviation = math.sqrt(max(float(share @ (value - mean) ** 2), 0.0) / float(starts.sum()))
    own = max(reach, 0.0)
    lost = max(mean - worth, 0.0) if unknown.most > 0 else 0.0
    surprise = (unknown.most - unknown.expected) * lost
    together = math.hypot(own, float(norm.isf(delta)) * deviation, surprise)
    return max(together - own, 0.0) + unknown.expected * lost


class UnknownStarts(NamedTuple):
    """Which share of new episodes begins in a state that the log does not know.

    ``lost`` is the share of those whose states lead to others that the log does not know either.
    """

    expected: float
    most: float
    lost: float = 1.0


def unknown_starts(model: Model, delta: float) -> UnknownStarts:
    """Estimate and bound which share of new episodes begins in a state that the log does not know.

    The estimate of Good and Turing counts the episodes that would have done so had they come last:
    no other began in their first state, and no step led there. The bound is ``1 - delta`` of a
    binomial share, with its distance from the estimate stretched to the deviation that Esty (1983)
    found: of ``n`` episodes with ``n1`` states begun in once and ``n2`` twice, the variance of the
    error is ``(n1 (1 - n1 / n) + 2 n2) / n**2``, since the share itself differs from log to log. A
    single episode says nothing about others.
    """
    placed, none = model.placed, UnknownStarts(0.0, 0.0)
    if placed.starts is None or placed.starts.sum() < 2:
        return none
    moved = placed.successor != placed.entry_state
    reached = np.bincount(placed.successor[moved], placed.count[moved], placed.num_states)
    new = (placed.starts == 1) & (reached == 0)
    alone = int(new.sum())
    if alone == 0:
        return none
    episodes = float(placed.starts.sum())
    twice = int(((placed.starts == 2) & (reached == 0)).sum())
    binomial = float(beta.isf(delta, alone + 1, max(episodes - alone, 0.5)))
    expected = min(alone / episodes, binomial)
    stretch = math.sqrt(1.0 + 2.0 * twice / (alone * max(1.0 - alone / episodes, 0.5 / episodes)))
    most = min(1.0, expected + stretch * (binomial - expected))
    return UnknownStarts(expected, most, _share_lost(placed, reached, new))


def _share_lost(placed: Counts, reached: NDArray[np.number], new: NDArray[np.bool_]) -> float:
    """Return how often a new first state leads to states that nothing else has shown.

    Each new one counts once, and all first states of the log together count as one more.
    """
    seen = placed.count > 0
    key = placed.entry_state[seen].astype(np.int64) * placed.num_states + placed.successor[seen]
    ways, which = np.unique(key, return_inverse=True)
    here, there = np.divmod(ways, placed.num_states)
    own = np.bincount(which, placed.count[seen])
    starts = np.asarray(placed.starts)
    known = (reached[there] > own) | (starts[there] > 0) | placed.is_terminal[there]
    lost = np.zeros(placed.num_states, dtype=np.bool_)
    lost[here[~known & (here != there)]] = True
    usual = (float((lost & (starts > 0)).sum()) + 1.0) / (float((starts > 0).sum()) + 1.0)
    return (float((lost & new).sum()) + usual) / (float(new.sum()) + 1.0)


def _worth_of_unknown(model: Model, value: Floats, lost: float) -> float:
    """Return the least that episodes from first states which the log does not know earn on average.

    ``lost``: the share of them that may earn the least there is.
    """
    worst, steps = float(value.min()), least_rewards(model.placed)
    led = min(worst, float(model.mdp.reward.min()) + model.mdp.discount * worst)
    least = least_return(model)
    if steps.differ:  # an episode ends at the lowest reward, or goes on without it
        led = min(worst, steps.at_an_end, steps.going_on + model.mdp.discount * worst)
        least = max(least, _least_by_kind(model.mdp, steps))
    if not math.isfinite(least):
        return led
    return lost * least + (1.0 - lost) * max(min(led, _worst_trap(model)), least)


def _least_by_kind(mdp: MDP, least: LeastRewards) -> float:
    """Return the least return of an episode in which only a last step pays the least.

    It ends at once, or goes on for all steps that count. If these are finitely many, or count in
    full, it may also end after having gone on.
    """
    on = least.going_on * counted_steps(mdp)
    if mdp.horizon is None:
        late = 1.0 if mdp.discount == 1.0 else 0.0
        return min(least.at_an_end, on, min(on, 0.0) + late * least.at_an_end)
    final = 0.0 if mdp.final_reward is None else float(mdp.final_reward.min())
    late = float(mdp.discount ** (mdp.horizon - 1.0))
    return min(
        least.at_an_end,
        on + late * mdp.discount * final,
        min(on, 0.0) + late * least.at_an_end,
    )


def _worst_trap(model: Model) -> float:
    """Return the lowest return of the states that, as far as the log shows, are never left.

    Only rows tried twice or more count; infinite where there are none.
    """
    placed = model.placed
    starts = model.mdp.row_start[:-1]
    visits = np.add.reduceat(placed.count, starts)
    stays = np.where(placed.successor == placed.entry_state, placed.count, 0)
    ends = placed.is_terminal[model.mdp.row_state]
    traps = (visits >= 2) & (np.add.reduceat(stays, starts) == visits) & ~ends
    if not traps.any():
        return math.inf
    loops = (stays > 0) & traps[model.mdp.entry_row]
    return float(model.mdp.entry_reward[loops].min()) * counted_steps(model.mdp)
