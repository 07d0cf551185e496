"""Convert dense arrays and models to counts, and counts to a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot import _hooks
from surefoot._arguments import check_choice
from surefoot._rows import pack
from surefoot.data.count_arrays import CountArrays, Label, SomeCounts
from surefoot.data.packed_rows import label_of
from surefoot.data.prior import spread_prior
from surefoot.data.rewards import RewardStatistics, as_given, range_per_action
from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]
WORST, ABSORBING = "worst", "absorbing"
"""Where the unseen state leads."""


def dense_fields(
    counts: ArrayLike,
    support: ArrayLike | None,
    starts: ArrayLike | None,
    state_labels: Sequence[Label] | None,
    action_labels: Sequence[Label] | None,
) -> dict[str, Any]:
    """Return the fields of counts from ``(S, A, S)`` whole numbers."""
    dense = whole_numbers("counts", counts)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or dense.size == 0:
        raise ValueError(f"counts has shape {dense.shape}; it must be (states, actions, states).")
    listed = dense > 0
    if support is not None:
        listed = np.asarray(support).astype(np.bool_)
        if listed.shape != dense.shape:
            raise ValueError(f"support has shape {listed.shape}; it must be {dense.shape}.")
        outside = np.argwhere((dense > 0) & ~listed)
        if len(outside):
            s, a, t = map(int, outside[0])
            raise ValueError(
                f"support excludes successor {t} of state {s}, action {a}, which was counted "
                f"{dense[s, a, t]} times ({len(outside)} such entries). Enlarge the support."
            )
    state, action, successor = np.nonzero(listed)
    rows = pack(state, action, successor, dense.shape[0], dense.shape[1])
    rowless = np.flatnonzero(np.diff(rows.state_start) == 0)
    if support is not None and len(rowless):
        raise ValueError(
            f"support lists no successor for state {rowless[0]} under any action ({len(rowless)} "
            "such states). A terminal state is an absorbing state with zero reward: list itself."
        )
    return {
        **rows._asdict(),
        "count": dense[listed],
        "num_actions": dense.shape[1],
        "state_labels": None if state_labels is None else tuple(state_labels),
        "action_labels": None if action_labels is None else tuple(action_labels),
        "starts": None if starts is None else whole_numbers("starts", starts),
    }


def whole_numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return whole numbers, 0 or more, as int64, or raise an error that names one that is not."""
    raw = np.asarray(values)
    if raw.dtype.kind not in "iubf":
        raise ValueError(f"{name} must be whole numbers, got {raw.dtype}.")
    bad = np.argwhere(~((raw >= 0) & (raw == np.floor(raw)) & (raw < 2.0**62)))
    if len(bad):
        place = tuple(map(int, bad[0]))
        raise ValueError(
            f"{name}{list(place)} is {raw[place]}; {name} are whole numbers, 0 or more."
        )
    return raw.astype(np.int64)


def fields_on_rows_of(mdp: MDP, count: ArrayLike) -> dict[str, Any]:
    """Return the fields of declared counts on the rows, entries, labels and rewards of a model."""
    given = np.asarray(count)
    if given.shape != (mdp.num_entries,):
        raise ValueError(f"count has shape {given.shape}; it must be ({mdp.num_entries},).")
    reward = mdp.entry_reward
    low, high = range_per_action(mdp.entry_action, reward, mdp.num_actions)
    return {
        "state_start": mdp.state_start,
        "row_action": mdp.row_action,
        "row_start": mdp.row_start,
        "successor": mdp.successor,
        "count": given if given.dtype.kind == "f" else given.astype(np.int64),
        "num_actions": mdp.num_actions,
        "declared": True,
        "state_labels": mdp.state_labels,
        "action_labels": mdp.action_labels,
        "reward_mean": reward,
        "reward_var": np.zeros(mdp.num_entries),
        "reward_low": low,
        "reward_high": high,
    }


def with_rewards(counts: SomeCounts, rewards: Any) -> SomeCounts:
    """Return the counts with given rewards instead of those seen, wherever one is given."""
    from surefoot.data.declared_transitions import is_listing, read_rewards

    given = read_rewards(rewards, counts) if is_listing(rewards) else as_given(rewards)
    if given.array is not None:
        shape = (counts.num_states, counts.num_actions, counts.num_states)
        if given.array.shape not in (shape, shape[:2]):
            raise ValueError(
                f"rewards has shape {given.array.shape}; it must be {shape[:2]} or {shape}."
            )
    value = given.of(
        counts.entry_state, counts.entry_action, counts.successor.astype(np.int64),
        counts.state_labels, counts.action_labels,
    )  # fmt: skip
    exact, known = RewardStatistics.exactly(value), ~np.isnan(value)
    nothing = np.full(counts.num_entries, np.nan)
    mean = np.where(
        known, exact.mean, nothing if counts.reward_mean is None else counts.reward_mean
    )
    spread = np.where(
        known, exact.variance, nothing if counts.reward_var is None else counts.reward_var
    )
    _check_filled(counts, mean)
    low, high = range_per_action(counts.entry_action, value, counts.num_actions)
    if not known.all():
        # Some rewards are still those seen in the log: their range counts too.
        low = low if counts.reward_low is None else np.fmin(low, counts.reward_low)
        high = high if counts.reward_high is None else np.fmax(high, counts.reward_high)
    return replace(
        counts, given=given, reward_mean=mean, reward_var=spread, reward_low=low, reward_high=high
    )


def _check_filled(counts: CountArrays, mean: Floats) -> None:
    """Refuse counts with an observed or declared transition that has no reward."""
    empty = np.flatnonzero(np.isnan(mean) & ((counts.count > 0) | counts.declared))
    if len(empty):
        successor = label_of(counts.successor[empty[0]], counts.state_labels)
        raise ValueError(
            f"rewards has no reward for {counts.row_name(counts.entry_row[empty[0]])}, next state "
            f"{successor!r} ({len(empty):,} such transitions). Add them."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class InitialDistribution:
    """The distribution of the first state, and where it came from.

    Attributes
    ----------
    probability
        ``(S,)``.
    origin
        A sentence part: "37 episode starts", "given" or "uniform over all states".
    """

    probability: Floats
    origin: str


def initial_distribution(counts: CountArrays, initial: Any = None) -> InitialDistribution:
    """Return the first state's distribution: episode starts, uniform, or as given.

    Examples
    --------
    >>> from surefoot import Counts
    >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], starts=[3, 1])
    >>> initial_distribution(counts).origin
    '4 episode starts'
    """
    if initial is None:
        initial = "uniform" if counts.starts is None or not counts.starts.any() else "episodes"
    if isinstance(initial, str) and initial == "uniform":
        # No episode starts in a terminal state, or in the unseen state, which is not in the log.
        acting = ~counts.is_terminal
        if counts.unseen is not None:
            acting[counts.unseen] = False
        return InitialDistribution(
            probability=acting / acting.sum(), origin="uniform over all states"
        )
    if isinstance(initial, str) and initial == "episodes":
        if counts.starts is None or not counts.starts.any():
            raise ValueError(
                "initial='episodes' needs episode starts: read the log with episode= and step=, "
                "or pass initial='uniform' or a distribution."
            )
        total = int(counts.starts.sum())
        return InitialDistribution(
            probability=counts.starts / total,
            origin=f"{total:,} episode start{'' if total == 1 else 's'}",
        )
    if isinstance(initial, str):
        raise ValueError(f"initial={initial!r}; it must be 'episodes', 'uniform' or an array.")
    given = np.asarray(initial, dtype=np.float64)
    if counts.unseen is not None and given.shape == (counts.num_states - 1,):
        given = np.append(given, 0.0)
    return InitialDistribution(probability=given, origin="given")


def to_mdp(
    counts: CountArrays, discount: float, initial: Any, prior: ArrayLike | None, unseen: str | None,
    horizon: int | None = None, final_reward: ArrayLike | None = None,
) -> MDP:  # fmt: skip
    """Return the model of declared counts, entry for entry."""
    from surefoot.model.mdp import MDP

    if counts.reward_mean is None:
        raise ValueError(
            "these counts have no rewards: read the log with a reward column or pass rewards= "
            "(an array, a mapping or a function)."
        )
    mdp = MDP.from_rows(
        state=counts.row_state[counts.entry_row],
        action=counts.row_action[counts.entry_row],
        successor=counts.successor,
        probability=mean_probability(counts, prior),
        reward=counts.reward_mean,
        discount=discount,
        num_states=counts.num_states,
        num_actions=counts.num_actions,
        initial=initial_distribution(counts, initial).probability,
        state_labels=counts.state_labels,
        action_labels=counts.action_labels,
    ).over(horizon, final_reward)
    # Without a prior the model is the centre of frequentist sets: no guess about the unseen there.
    return lead_on(mdp, counts, unseen or (ABSORBING if prior is None else WORST))


def lead_on(mdp: MDP, counts: CountArrays, unseen: str) -> MDP:
    """Return the model with the unseen state, so far absorbing, leading where ``unseen`` says."""
    check_choice("unseen", unseen, (WORST, ABSORBING))
    if unseen == ABSORBING or counts.unseen is None:
        return mdp
    led: MDP = _hooks.lead_to_worst(mdp, counts)
    return led


def mean_probability(counts: CountArrays, prior: ArrayLike | None) -> Floats:
    """Return observed frequencies, or the means of Dirichlet posteriors; untried rows uniform."""
    weight = counts.count + _prior_entries(counts, prior)
    total = np.add.reduceat(weight, counts.row_start[:-1])
    size = np.diff(counts.row_start)
    untried = total[counts.entry_row] == 0
    share = weight / np.where(total == 0, 1.0, total)[counts.entry_row]
    return np.where(untried, 1.0 / size[counts.entry_row], share)


def _prior_entries(counts: CountArrays, prior: ArrayLike | None) -> Floats:
    if prior is None:
        return np.zeros(counts.num_entries)
    entries = spread_prior(counts, prior)
    if not np.all((entries >= 0) & np.isfinite(entries)):
        raise ValueError("prior must be finite and not negative.")
    return entries
