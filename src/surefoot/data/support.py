"""Which successors a row can reach: from observed counts to declared ones.

This choice decides whether a promise is true. Successors that a row happened not to show still
have probability; a support that leaves them out makes every bound too high.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._rows import Ints, pack
from surefoot.data import rewards
from surefoot.data.count_arrays import (
    LEARNED,
    UNSEEN,
    CountArrays,
    Entries,
    SomeCounts,
    SupportReport,
)
from surefoot.data.destinations import PARTS, learn_destinations
from surefoot.data.unseen_rewards import fill_by_pattern

DEFAULT_SUPPORT = UNSEEN
"""The support used when none is chosen; selected in the coverage study on logs."""
UNSEEN_PRIOR = 0.5
"""Dirichlet parameter of the unseen successor; selected together with the support."""

SUPPORTS = ("observed", "action", "all", UNSEEN, LEARNED)
UNVISITED = ("drop", "prior")
UNSEEN_LABEL = "unseen"
MOST_ENTRIES = 200_000_000
"""More entries than this are refused: they would not fit in memory as a model."""


class _OfferedRows(NamedTuple):
    """The rows that will be offered, and how many were left out or never tried."""

    state: Ints
    action: Ints
    unvisited: int
    thin: int


def place(
    counts: SomeCounts, support: Any = None, unvisited: str | None = None, min_visits: int = 0,
    *, steady: bool = False,
) -> SomeCounts:  # fmt: skip
    """Return declared counts: every reachable entry listed, every state with a row.

    The arguments are those of `Counts.on_support`.
    """
    _check_options(counts, support, unvisited, min_visits)
    if counts.declared:
        return _thinned(counts, max(int(min_visits), 1 if unvisited == "drop" else 0))
    chosen = DEFAULT_SUPPORT if support is None else support
    mode = unvisited or "drop"
    if isinstance(chosen, str) and chosen in SUPPORTS:
        rows = _offered(counts, None, mode, min_visits)
        entries = _inferred(counts, chosen, rows)
        return _assemble(counts, entries, rows, chosen, mode, min_visits, steady=chosen == LEARNED)
    _check_path(chosen)
    from surefoot.data.declared_transitions import read_support  # brings DuckDB

    counts, listed = read_support(chosen, counts)
    rows = _offered(counts, listed, mode, min_visits)
    entries = listed.where(_is_offered(counts, rows, listed))
    return _assemble(counts, entries, rows, "listed", mode, min_visits, steady=steady)


def _check_options(
    counts: CountArrays, support: Any, unvisited: str | None, min_visits: int
) -> None:
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


def _check_path(support: Any) -> None:
    """Refuse a word that names neither a support nor a file."""
    if isinstance(support, str) and (
        not support.strip() or (support.isidentifier() and not Path(support).exists())
    ):
        known = ", ".join(map(repr, SUPPORTS))
        raise ValueError(f"support={support!r}; it must be {known} or the path of a file.")


def _offered(
    counts: CountArrays, listed: Entries | None, mode: str, min_visits: int
) -> _OfferedRows:
    """Choose the rows a policy may use."""
    visits = counts.visits
    kept = visits >= max(1, min_visits)
    possible = np.zeros((counts.num_states, counts.num_actions), dtype=np.bool_)
    if listed is None:
        possible[:] = True
    else:
        possible[listed.state, listed.action] = True
    possible[counts.is_terminal] = False
    tried = np.zeros_like(possible)
    tried[counts.row_state[visits > 0], counts.row_action[visits > 0]] = True
    state, action = counts.row_state[kept], counts.row_action[kept]
    if mode == "prior":
        state, action = np.nonzero(possible | tried)
    return _OfferedRows(
        state=state.astype(np.int64),
        action=action.astype(np.int64),
        unvisited=int(np.count_nonzero(possible & ~tried)),
        thin=int(np.count_nonzero((visits > 0) & ~kept)),
    )


def _inferred(counts: CountArrays, chosen: str, rows: _OfferedRows) -> Entries:
    """Return the successors of the offered rows; the unseen state has the id after the last one."""
    unseen = counts.num_states
    seen = Entries(
        counts.entry_state, counts.entry_action, counts.successor.astype(np.int64)
    ).where(counts.count > 0)
    if chosen in ("observed", "unseen", LEARNED):
        own = seen.where(_is_offered(counts, rows, seen))
        if chosen == "observed":
            return own
        if chosen == LEARNED:
            own = _with_candidates(counts, own, rows)
        extra = Entries(rows.state, rows.action, np.full(len(rows.state), unseen))
        return Entries(*(np.concatenate(pair) for pair in zip(own, extra, strict=True)))
    if chosen == "all":
        targets = [np.arange(counts.num_states)] * counts.num_actions
    else:
        targets = [np.unique(seen.successor[seen.action == a]) for a in range(counts.num_actions)]
        # Seeing one successor under an action does not prove that there is no other.
        targets = [np.append(t, unseen) if len(t) < 2 else t for t in targets]
    sizes = np.array([len(t) for t in targets])[rows.action]
    _check_size(int(sizes.sum()), chosen)
    spread = [targets[action] for action in rows.action] or [seen.successor[:0]]
    return Entries(
        np.repeat(rows.state, sizes), np.repeat(rows.action, sizes), np.concatenate(spread)
    )


def _with_candidates(counts: CountArrays, own: Entries, rows: _OfferedRows) -> Entries:
    """Add the candidates that patterns of the log suggest as unseen successors of offered rows."""
    found = learn_destinations(counts)
    row = np.repeat(np.arange(len(found.start) - 1), np.diff(found.start)) // len(PARTS)
    also = Entries(counts.row_state[row], counts.row_action[row], found.state)
    also = also.where(_is_offered(counts, rows, also))
    joined = Entries(*(np.concatenate(pair) for pair in zip(own, also, strict=True)))
    key = (joined.state * counts.num_actions + joined.action) * counts.num_states
    first = np.unique(key + joined.successor, return_index=True)[1]
    return Entries(*(column[first] for column in joined))


def _is_offered(counts: CountArrays, rows: _OfferedRows, entries: Entries) -> NDArray[np.bool_]:
    offered = np.zeros((counts.num_states, counts.num_actions), dtype=np.bool_)
    offered[rows.state, rows.action] = True
    return offered[entries.state, entries.action]


def _check_size(entries: int, chosen: str) -> None:
    if entries > MOST_ENTRIES:
        raise ValueError(
            f"support={chosen!r} would list {entries:,} successors. For this many states use "
            "support='unseen': the observed successors of each row plus one unseen state, "
            "absorbing at the lowest reward."
        )


def _assemble(
    counts: SomeCounts, entries: Entries, rows: _OfferedRows, support: str, mode: str,
    min_visits: int, *, steady: bool,
) -> SomeCounts:  # fmt: skip
    """Put counts and rewards on the entries; states without rows become absorbing."""
    if len(rows.state) == 0 and min_visits > 0:
        raise ValueError(
            f"min_visits={min_visits} leaves no state-action pair: the most tried one was tried "
            f"{int(counts.visits.max(initial=0)):,} times. Ask for fewer."
        )
    has_unseen = bool(np.any(entries.successor == counts.num_states))
    num_states = counts.num_states + has_unseen
    terminal = np.concatenate((counts.is_terminal, np.zeros(int(has_unseen), np.bool_)))
    rowless = np.ones(num_states, dtype=np.bool_)
    rowless[rows.state] = False
    loops = np.flatnonzero(rowless)
    listed = Entries(
        np.concatenate((entries.state, loops)),
        np.concatenate((entries.action, np.zeros(len(loops), dtype=np.int64))),
        np.concatenate((entries.successor, loops)),
    )
    # Each list is sorted already: a stable sort merges them, faster than sorting three columns.
    row = listed.state * counts.num_actions + listed.action
    order = np.argsort(row * num_states + listed.successor, kind="stable")
    listed = Entries(*(column[order] for column in listed))
    at, found = _positions(counts, listed, num_states, rowless)
    count = np.zeros(len(order), dtype=counts.count.dtype)
    count[at] = counts.count[found]
    fields, filled, lowered, floor = _rewards(counts, listed, rowless, terminal, at, found, steady)
    labels = counts.state_labels
    if has_unseen and labels is not None:
        labels = (*labels, free_label(UNSEEN_LABEL, labels))
    return replace(
        counts,
        **pack(*listed, num_states, counts.num_actions)._asdict(),
        **fields,
        count=count,
        reward_sums=None,
        state_labels=labels,
        terminal=terminal if terminal.any() else None,
        starts=None if counts.starts is None else np.pad(counts.starts, (0, int(has_unseen))),
        declared=True,
        unseen=counts.num_states if has_unseen else counts.unseen,
        report=SupportReport(
            support=support,
            unvisited=mode,
            min_visits=int(min_visits),
            unvisited_rows=rows.unvisited,
            thin_rows=rows.thin,
            stuck_states=int(np.count_nonzero(~terminal[loops])) - has_unseen,
            filled_rewards=filled,
            lowest_reward=floor,
            lowered_rewards=lowered,
        ),
    )


def _positions(
    counts: CountArrays, listed: Entries, num_states: int, rowless: NDArray[np.bool_]
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the new positions of the old entries that are still listed, and which ones those are.

    The loop of a state without rows is a new entry, even where a dropped row had the same
    successor.
    """

    def key(entries: Entries) -> Ints:
        return (entries.state * counts.num_actions + entries.action) * num_states + (
            entries.successor
        )

    new = key(listed)
    old = key(Entries(counts.entry_state, counts.entry_action, counts.successor.astype(np.int64)))
    at = np.minimum(np.searchsorted(new, old), len(new) - 1)
    found = (new[at] == old) & ~rowless[counts.entry_state]
    return at[found], found


def _rewards(
    counts: CountArrays, listed: Entries, rowless: NDArray[np.bool_], terminal: NDArray[np.bool_],
    at: Ints, found: NDArray[np.bool_], steady: bool,
) -> tuple[dict[str, Any], int, bool, float | None]:  # fmt: skip
    """Fill every mean: seen or given, else by a pattern, else the lowest reward of the action.

    Loops get the lowest reward of all, terminal ones 0. ``steady``: rows that always paid the same
    are assumed to do so for unseen successors, less a charge for exceptions. That needs a prior,
    under which only some entries are exceptions: in sets without one, nature may choose the
    exception alone.
    """
    floor = counts.lowest_reward
    if (
        counts.reward_mean is None
        or counts.reward_var is None
        or counts.reward_low is None
        or floor is None
    ):
        return {}, 0, False, None
    mean, variance = rewards.RewardStatistics.unseen(len(listed.state))
    mean[at], variance[at] = counts.reward_mean[found], counts.reward_var[found]
    loop = rowless[listed.state]
    foreign = listed.successor >= counts.num_states
    if counts.given is not None:
        asked = np.flatnonzero(np.isnan(mean) & ~loop & ~foreign)
        value = counts.given.of(
            listed.state[asked], listed.action[asked], listed.successor[asked],
            counts.state_labels, counts.action_labels,
        )  # fmt: skip
        known = ~np.isnan(value)
        mean[asked[known]], variance[asked[known]] = value[known], 0.0
        floor = float(min(floor, value[known].min(initial=floor)))
    lowest = np.where(np.isnan(counts.reward_low), floor, counts.reward_low)
    if counts.reward_range is not None:  # what was never seen may bring the least possible
        lowest = np.full_like(lowest, min(counts.reward_range[0], floor))
    tries = np.zeros(len(mean), dtype=np.int64)
    tries[at] = counts.count[found]
    worst = lowest if steady else None
    lowered = fill_by_pattern(counts, listed, mean, variance, ~loop & ~foreign, tries, worst)
    empty = np.isnan(mean) & ~loop
    mean[empty] = np.where(foreign[empty], floor, lowest[listed.action[empty]])
    mean[loop] = np.where(terminal[listed.state[loop]], 0.0, floor)
    filled = int(np.count_nonzero(empty))
    return {"reward_mean": mean, "reward_var": variance}, filled, lowered, floor


def free_label(wanted: str, labels: tuple[Any, ...]) -> str:
    """Return the wanted label, with stars appended while the log itself uses it."""
    while wanted in labels:
        wanted += "*"
    return wanted


def _thinned(counts: SomeCounts, fewest: int) -> SomeCounts:
    """Drop rows tried fewer than ``fewest`` times from declared counts; absorbing rows stay."""
    absorbing = counts.is_terminal.copy()
    if counts.unseen is not None:
        absorbing[counts.unseen] = True
    passive = absorbing[counts.row_state]
    kept = (counts.visits >= fewest) | passive
    if kept.all():
        return counts
    rows = _OfferedRows(
        state=counts.row_state[kept],
        action=counts.row_action[kept],
        unvisited=int(np.count_nonzero((counts.visits == 0) & ~passive)),
        thin=int(np.count_nonzero((counts.visits > 0) & ~kept)),
    )
    entries = Entries(counts.entry_state, counts.entry_action, counts.successor.astype(np.int64))
    support = "listed" if counts.report is None else counts.report.support
    left = entries.where(kept[counts.entry_row])
    return _assemble(counts, left, rows, support, "drop", fewest, steady=support == LEARNED)
