"""Which successors a row can reach: from what a log shows to the skeleton of a model.

This choice decides whether a promise is true. Successors that a row happened not to show still
have probability; a support that leaves them out makes every bound too high.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data import rewards
from surefoot.data.layout import Ints, label_of, pack

if TYPE_CHECKING:
    from surefoot.data.counting import Counts

DEFAULT_SUPPORT = "unseen"
"""The support used when none is chosen; picked by the coverage study on logs."""
UNSEEN_PRIOR = 0.5
"""Dirichlet parameter of the unseen successor; picked together with the support."""

SUPPORTS = ("observed", "action", "all", "unseen")
UNVISITED = ("drop", "prior")
UNSEEN_LABEL = "unseen"
MOST_ENTRIES = 200_000_000
"""More entries than this are refused: they would not fit in memory as a model."""


@dataclass(frozen=True, kw_only=True)
class SupportReport:
    """What a choice of support did; shown in the summary.

    Attributes
    ----------
    support, unvisited, min_visits
        The options used.
    unvisited_rows
        State-action pairs never tried: not offered (``"drop"``) or left to the prior.
    thin_rows
        Rows tried fewer than ``min_visits`` times, not offered.
    stuck_states
        States without any row left, made absorbing at the lowest reward.
    filled_rewards
        Entries without a reward of their own, given the lowest seen under their action.
    lowest_reward
        The reward of stuck and unseen states; None where the log has no rewards.
    """

    support: str
    unvisited: str
    min_visits: int
    unvisited_rows: int
    thin_rows: int
    stuck_states: int
    filled_rewards: int
    lowest_reward: float | None


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows that will be offered, and who is who."""

    state: Ints
    action: Ints
    unvisited: int
    thin: int


def place(
    counts: "Counts", support: Any = None, unvisited: str | None = None, min_visits: int = 0
) -> "Counts":
    """Return declared counts: every reachable entry listed, every state with a row."""
    _check_options(counts, support, unvisited, min_visits)
    if counts.declared:
        return _thinned(counts, unvisited, min_visits)
    chosen = DEFAULT_SUPPORT if support is None else support
    mode = unvisited or "drop"
    listed = None
    if chosen not in SUPPORTS if isinstance(chosen, str) else True:
        from surefoot.data.declared import read_support

        counts, listed = read_support(chosen, counts)
    rows = _offered_rows(counts, listed, mode, min_visits)
    state, action, successor, has_unseen = _entries(counts, chosen, rows, listed)
    return _assemble(counts, state, action, successor, has_unseen, rows, chosen, mode, min_visits)


def _check_options(counts: "Counts", support: Any, unvisited: str | None, min_visits: int) -> None:
    if unvisited is not None and unvisited not in UNVISITED:
        raise ValueError(f"unvisited={unvisited!r}; it must be one of {', '.join(UNVISITED)}.")
    if not isinstance(min_visits, (int, np.integer)) or min_visits < 0:
        raise ValueError(f"min_visits={min_visits!r}; it must be a whole number, 0 or more.")
    if min_visits > 0 and unvisited == "prior":
        raise ValueError(
            f"min_visits={min_visits} with unvisited='prior' would offer untried rows and hide "
            "rows tried a little. Choose one of them."
        )
    if counts.declared and support is not None:
        raise ValueError(
            f"support={support!r}: the successors of these counts are declared already. Leave "
            "support out, or start from counts that list only what was observed."
        )
    if isinstance(support, str) and support == "observed" and unvisited == "prior":
        raise ValueError(
            "unvisited='prior' needs a support that says where an untried action may lead: "
            "support='action', 'all', 'unseen' or a file."
        )


def _offered_rows(
    counts: "Counts", listed: tuple[Ints, Ints, Ints] | None, mode: str, min_visits: int
) -> _Rows:
    visits = counts.visits
    kept = visits >= max(1, min_visits)
    acting = np.flatnonzero(~counts.is_terminal)
    possible = np.zeros((counts.num_states, counts.num_actions), dtype=np.bool_)
    if listed is None:
        possible[acting] = True
    else:
        possible[listed[0], listed[1]] = True
        possible[counts.is_terminal] = False
    tried = np.zeros_like(possible)
    tried[counts.row_state[visits > 0], counts.row_action[visits > 0]] = True
    untried = int(np.count_nonzero(possible & ~tried))
    if mode == "prior":
        state, action = np.nonzero(possible | tried)
    else:
        state, action = counts.row_state[kept], counts.row_action[kept]
    return _Rows(
        state=state.astype(np.int64),
        action=action.astype(np.int64),
        unvisited=untried,
        thin=int(np.count_nonzero((visits > 0) & ~kept)),
    )


def _entries(
    counts: "Counts", chosen: Any, rows: _Rows, listed: tuple[Ints, Ints, Ints] | None
) -> tuple[Ints, Ints, Ints, bool]:
    """Return the (state, action, successor) of every entry of the offered rows, unsorted."""
    unseen = counts.num_states
    if listed is not None:
        offered = _is_offered(counts, rows, listed[0], listed[1])
        return listed[0][offered], listed[1][offered], listed[2][offered], False
    seen = counts.count > 0
    state = counts.row_state[counts.entry_row][seen]
    action = counts.row_action[counts.entry_row][seen]
    successor = counts.successor[seen].astype(np.int64)
    if chosen in ("observed", "unseen"):
        offered = _is_offered(counts, rows, state, action)
        parts = [(state[offered], action[offered], successor[offered])]
        if chosen == "unseen":
            parts.append((rows.state, rows.action, np.full(len(rows.state), unseen)))
        return *(np.concatenate(column) for column in zip(*parts, strict=True)), chosen == "unseen"
    if chosen == "all":
        targets = [np.arange(counts.num_states)] * counts.num_actions
    else:
        targets = [np.unique(successor[action == a]) for a in range(counts.num_actions)]
        # One successor seen under an action is no proof that there is no other.
        targets = [np.append(t, unseen) if len(t) == 1 else t for t in targets]
    sizes = np.array([len(t) for t in targets])[rows.action]
    _check_size(int(sizes.sum()), chosen)
    spread = (
        np.concatenate([targets[a] for a in rows.action]) if len(rows.action) else successor[:0]
    )
    return (
        np.repeat(rows.state, sizes),
        np.repeat(rows.action, sizes),
        spread.astype(np.int64),
        bool(len(spread)) and int(spread.max()) == unseen,
    )


def _is_offered(counts: "Counts", rows: _Rows, state: Ints, action: Ints) -> NDArray[np.bool_]:
    offered = np.zeros((counts.num_states, counts.num_actions), dtype=np.bool_)
    offered[rows.state, rows.action] = True
    return offered[state, action]


def _check_size(entries: int, chosen: str) -> None:
    if entries > MOST_ENTRIES:
        raise ValueError(
            f"support={chosen!r} would list {entries:,} successors. For so many states use "
            "support='unseen': the observed successors of each row plus one unseen state, "
            "absorbing at the lowest reward."
        )


def _assemble(
    counts: "Counts", state: Ints, action: Ints, successor: Ints, has_unseen: bool, rows: _Rows,
    chosen: Any, mode: str, min_visits: int,
) -> "Counts":  # fmt: skip
    num_states = counts.num_states + has_unseen
    rowless = np.ones(num_states, dtype=np.bool_)
    rowless[rows.state] = False
    loops = np.flatnonzero(rowless)
    terminal = np.concatenate((counts.is_terminal, np.zeros(int(has_unseen), np.bool_)))
    stuck = loops[~terminal[loops]]
    state = np.concatenate((state, loops))
    action = np.concatenate((action, np.zeros(len(loops), dtype=np.int64)))
    successor = np.concatenate((successor, loops))
    order = np.lexsort((successor, action, state))
    state, action, successor = state[order], action[order], successor[order]
    is_loop = rowless[state]
    key = (state * counts.num_actions + action) * num_states + successor
    old = counts.entry_keys(num_states)
    at = np.searchsorted(key, old)
    found = (at < len(key)) & (key[np.minimum(at, len(key) - 1)] == old)
    count = np.zeros(len(key), dtype=counts.count.dtype)
    count[at[found]] = counts.count[found]
    fields: dict[str, Any] = {}
    lowest = counts.lowest_reward
    filled = 0
    if counts.reward_mean is not None or counts.given is not None:
        statistics, filled = _rewards(
            counts, state, action, successor, is_loop, terminal, at, found
        )
        fields = dict(zip(REWARD_FIELDS, statistics, strict=True))
    labels = counts.state_labels
    if has_unseen and labels is not None:
        labels = (*labels, _free_label(UNSEEN_LABEL, labels))
    packed = pack(state, action, successor, num_states, counts.num_actions)
    return replace(
        counts,
        **packed._asdict(),
        count=count,
        **fields,
        state_labels=labels,
        terminal=terminal,
        starts=None if counts.starts is None else np.pad(counts.starts, (0, int(has_unseen))),
        declared=True,
        unseen=counts.num_states if has_unseen else None,
        report=SupportReport(
            support=chosen if isinstance(chosen, str) and chosen in SUPPORTS else "file",
            unvisited=mode,
            min_visits=int(min_visits),
            unvisited_rows=rows.unvisited,
            thin_rows=rows.thin,
            stuck_states=len(stuck) - has_unseen,
            filled_rewards=filled,
            lowest_reward=lowest,
        ),
    )


REWARD_FIELDS = ("reward_mean", "reward_var", "reward_min", "reward_max")


def _rewards(
    counts: "Counts", state: Ints, action: Ints, successor: Ints,
    is_loop: NDArray[np.bool_], terminal: NDArray[np.bool_], at: Ints, found: NDArray[np.bool_],
) -> tuple[rewards.RewardStatistics, int]:  # fmt: skip
    """Seen rewards, then given ones, then the lowest of the action; loops get the lowest or 0."""
    statistics = rewards.RewardStatistics.unseen(len(state))
    if counts.reward_mean is not None:
        for name, target in zip(REWARD_FIELDS, statistics, strict=True):
            target[at[found]] = getattr(counts, name)[found]
    if counts.given is not None:
        ordinary = np.flatnonzero(~is_loop & (successor < counts.num_states))
        value = counts.given.of(
            state[ordinary], action[ordinary], successor[ordinary],
            counts.state_labels, counts.action_labels,
        )  # fmt: skip
        known = ordinary[~np.isnan(value)]
        exact = rewards.RewardStatistics.exactly(value[~np.isnan(value)])
        for target, source in zip(statistics, exact, strict=True):
            target[known] = source
    floor = counts.lowest_reward
    if floor is None:
        raise ValueError("the reward table holds nothing about the transitions of this log.")
    per_action = rewards.lowest_per_action(
        counts.row_action[counts.entry_row], counts.lowest_per_entry, counts.num_actions
    )
    empty = np.isnan(statistics.mean) & ~is_loop
    statistics.mean[empty] = np.minimum(per_action[action[empty]], np.inf)
    statistics.mean[empty & (successor >= counts.num_states)] = floor
    statistics.mean[is_loop] = np.where(terminal[state[is_loop]], 0.0, floor)
    return statistics, int(np.count_nonzero(empty))


def _free_label(wanted: str, labels: tuple[Any, ...]) -> str:
    while wanted in labels:
        wanted += "*"
    return wanted


def _thinned(counts: "Counts", unvisited: str | None, min_visits: int) -> "Counts":
    """Drop rows of declared counts on request; untouched when nothing was asked."""
    wanted = max(min_visits, 1 if unvisited == "drop" else 0)
    # Rows of terminal and unseen states have no visits by nature; they are never dropped.
    passive = counts.is_terminal.copy()
    if counts.unseen is not None:
        passive[counts.unseen] = True
    kept = (counts.visits >= wanted) | passive[counts.row_state]
    if wanted == 0 or kept.all():
        return counts
    undeclared = replace(counts, declared=False)
    entries = np.flatnonzero(~passive[counts.row_state[counts.entry_row]])
    listed = (
        counts.row_state[counts.entry_row][entries],
        counts.row_action[counts.entry_row][entries],
        counts.successor[entries].astype(np.int64),
    )
    rows = _offered_rows(undeclared, listed, "drop", min_visits)
    state, action, successor, _ = _entries(undeclared, "declared", rows, listed)
    return _assemble(undeclared, state, action, successor, False, rows, "file", "drop", min_visits)


def describe(counts: "Counts", state: int) -> str:
    """Return how an error names a state."""
    return repr(label_of(state, counts.state_labels))
