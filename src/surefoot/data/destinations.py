"""Where successors that a row has not shown may lead: patterns of the rest of the log.

An unseen successor of the row (s, a) is taken to come from one of four parts:

* *same state*: states that other actions reached from s;
* *displacement*: for numbered states, s plus a step that three or more other rows of a have shown;
* *entered*: states that three or more other rows of a have shown;
* the *rest*: somewhere no pattern points to. Nothing is known about it, so it is charged as the
  worst state of the log.

How much each part deserves is learned by leaving out the successors that a row showed just once,
one at a time, and asking which part would have named them.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = ("same state", "displacement", "entered")
FEWEST_ROWS = 3
"""Other rows of the action that must show a pattern. With fewer, a chain with rare accidents took
the rows that had none yet for safe."""
PRIOR_SHARES = (0.5, 0.5, 0.5, 0.25)
"""Dirichlet parameters of the parts and the rest before any successor was left out."""
ROUNDS = 200
CANDIDATES, MOST_EACH = 20_000, 64
"""About how many candidates a part lists over all rows, and at most in one row. Large models list
a third of the number of successors a row has shown, so that no model doubles."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Destinations:
    """Candidate successors of every row, part by part.

    Attributes
    ----------
    start
        ``(3 R + 1,)``: the candidates of part ``p`` of row ``r`` begin at ``start[3 r + p]``.
    state
        The candidates: never one that the row has shown.
    weight
        How likely each is within its part. What a part lacks to 1 goes to the rest.
    shares
        ``(4,)``: Dirichlet parameters of the parts and the rest, learned.
    """

    start: Ints
    state: Ints
    weight: Floats
    shares: Floats


def state_numbers(labels: tuple[Any, ...] | None, num_states: int) -> Floats | None:
    """Return the number in every state's label, NaN where it has none; None without an order.

    Examples
    --------
    >>> state_numbers(("wear 0", "wear 1", "broken"), 3).tolist()
    [0.0, 1.0, nan]
    >>> state_numbers(("cold", "warm"), 2) is None
    True
    """
    if labels is None:
        return np.arange(num_states, dtype=np.float64)
    found = [re.fullmatch(r"(.*?)(-?\d{1,9})", str(label)) for label in labels]
    heads = [match[1] for match in found if match]
    common = max(set(heads), key=heads.count, default=None)
    if common is None or heads.count(common) < max(3, len(labels) / 2):
        return None
    return np.array(
        [float(match[2]) if match and match[1] == common else np.nan for match in found]
    )


def learn_destinations(counts: Any) -> Destinations:
    """List the candidates of every row of the counts, and learn what each part deserves."""
    patterns = _Patterns(counts)
    start, states, weights = [0], [np.zeros(0, np.int64)], [np.zeros(0)]
    left_out: list[Floats] = []
    usual = min(MOST_EACH, CANDIDATES // max(1, counts.num_rows))
    for row in range(counts.num_rows):
        seen, number = patterns.seen(row)
        pools = patterns.pools(row, seen)
        most = max(2, usual, len(seen) // 3)
        for part, (state, rows) in enumerate(pools):
            new = ~np.isin(state, seen)
            kept, weight = _sampled(rows[new], most, (row, part))
            states.append(state[new][kept])
            weights.append(weight)
            start.append(start[-1] + len(kept))
        if number.sum() > 1:
            for successor in seen[number == 1]:
                left_out.append(_named_by(successor, seen, pools, counts.num_states))
    return Destinations(
        start=np.array(start, dtype=np.int64),
        state=np.concatenate(states).astype(np.int64),
        weight=np.concatenate(weights),
        shares=_learned_shares(np.array(left_out).reshape(-1, len(PARTS) + 1)),
    )


def on_entries(found: Destinations, counts: Any, open_rows: NDArray[np.bool_]) -> Destinations:
    """Return the candidates that declared counts list, with the rest as the last part.

    In an open row the rest is the unseen state; in a row whose successors are all declared it is
    every one of them that was not seen, with equal weights.
    """
    parts, states = len(PARTS), counts.num_states
    owner = np.repeat(np.arange(len(found.start) - 1), np.diff(found.start))
    keys = counts.entry_row.astype(np.int64) * states + counts.successor
    listed = np.isin(owner // parts * states + found.state, keys)
    new = np.flatnonzero(counts.count == 0)
    is_rest = np.ones(len(new), dtype=np.bool_)
    if counts.unseen is not None:
        is_rest = (counts.successor[new] == counts.unseen) | ~open_rows[counts.entry_row[new]]
    row = counts.entry_row[new[is_rest]].astype(np.int64)
    size = np.bincount(row, minlength=counts.num_rows)
    slot = np.concatenate(
        ((owner // parts * (parts + 1) + owner % parts)[listed], row * (parts + 1) + parts)
    )
    weight = np.concatenate((found.weight[listed], 1.0 / size[row]))
    state = np.concatenate((found.state[listed], counts.successor[new[is_rest]]))
    order = np.argsort(slot, kind="stable")
    start = np.searchsorted(slot[order], np.arange(counts.num_rows * (parts + 1) + 1))
    return Destinations(
        start=start, state=state[order].astype(np.int64), weight=weight[order],
        shares=found.shares,
    )  # fmt: skip


class _Patterns:
    """How many rows show each pattern, ready to be asked row by row."""

    def __init__(self, counts: Any) -> None:
        self.counts = counts
        ours = np.zeros(counts.num_states, dtype=np.bool_)
        if counts.unseen is not None:
            ours[counts.unseen] = True
        shown = (counts.count > 0) & ~ours[counts.successor]
        self.shown = shown
        state, action = counts.entry_state[shown], counts.entry_action[shown]
        successor = counts.successor[shown].astype(np.int64)
        self.by_state = _rows_showing(state, successor, counts.num_states)
        self.by_action = _rows_showing(action, successor, counts.num_actions)
        self.number = state_numbers(counts.state_labels, counts.num_states)
        self.by_step: list[tuple[Ints, Floats]] = []
        if self.number is not None:
            step = self.number[successor] - self.number[state]
            known = ~np.isnan(step)
            self.by_step = _rows_showing(
                action[known], step[known].astype(np.int64), counts.num_actions
            )
            numbered = np.flatnonzero(~np.isnan(self.number))
            self.numbered = numbered[np.argsort(self.number[numbered])]

    def seen(self, row: int) -> tuple[Ints, Ints]:
        """Return the successors a row has shown, and how often."""
        part = slice(self.counts.row_start[row], self.counts.row_start[row + 1])
        shown = self.shown[part]
        return (
            self.counts.successor[part][shown].astype(np.int64),
            self.counts.count[part][shown],
        )

    def pools(self, row: int, seen: Ints) -> list[tuple[Ints, Floats]]:
        """Return states and how many *other* rows point to them, for each part."""
        state, action = int(self.counts.row_state[row]), int(self.counts.row_action[row])
        return [
            _by_others(*self.by_state[state], seen, 1),
            _by_others(*self._moved(state, action), seen, FEWEST_ROWS),
            _by_others(*self.by_action[action], seen, FEWEST_ROWS),
        ]

    def _moved(self, state: int, action: int) -> tuple[Ints, Floats]:
        if self.number is None or np.isnan(self.number[state]):
            return np.zeros(0, np.int64), np.zeros(0)
        step, rows = self.by_step[action]
        wanted = self.number[state] + step
        at = np.searchsorted(self.number[self.numbered], wanted)
        at = np.minimum(at, len(self.numbered) - 1)
        exists = self.number[self.numbered[at]] == wanted
        return self.numbered[at[exists]], rows[exists]


def _rows_showing(group: Ints, what: Ints, size: int) -> list[tuple[Ints, Floats]]:
    """Return, for each group, what its rows have shown, and how many of them did."""
    low = int(what.min(initial=0))
    span = int(what.max(initial=0)) - low + 1
    key, rows = np.unique(group.astype(np.int64) * span + (what - low), return_counts=True)
    ends = np.searchsorted(key, np.arange(size + 1) * span)
    return [(key[a:b] % span + low, rows[a:b].astype(np.float64)) for a, b in pairwise(ends)]


def _by_others(state: Ints, rows: Floats, seen: Ints, fewest: int) -> tuple[Ints, Floats]:
    others = rows - np.isin(state, seen)
    return state[others >= fewest], others[others >= fewest]


def _sampled(weight: Floats, most: int, place: tuple[int, int]) -> tuple[Ints, Floats]:
    """Return which candidates are listed, and their shares: all, or a sample of equal steps.

    Systematic sampling: a candidate is listed as often as its weight says on average over rows, so
    that what is left out of one row is not left out of all.
    """
    if len(weight) <= most:
        return np.arange(len(weight)), weight / max(weight.sum(), 1.0)
    begin = np.random.default_rng([*place]).random()
    steps = (begin + np.arange(most)) / most * weight.sum()
    taken = np.minimum(np.searchsorted(np.cumsum(weight), steps), len(weight) - 1)
    kept, times = np.unique(taken, return_counts=True)
    return kept, times / most


def _named_by(successor: int, seen: Ints, pools: list[tuple[Ints, Floats]], states: int) -> Floats:
    """Return how likely each part, and the rest, would have named a successor not yet seen."""
    named = np.zeros(len(PARTS) + 1)
    pointed: set[int] = set()
    for part, (state, rows) in enumerate(pools):
        free = (state == successor) | ~np.isin(state, seen)
        pointed |= set(state[free].tolist())
        named[part] = rows[free & (state == successor)].sum() / max(rows[free].sum(), 1.0)
    if successor not in pointed:
        named[-1] = 1.0 / max(1, states - len(pointed) - len(seen) + 1)
    return named


def _learned_shares(named: Floats) -> Floats:
    """Return Dirichlet parameters: the prior's, plus how many successors each part explains."""
    prior = np.array(PRIOR_SHARES)
    share, explained = prior / prior.sum(), named
    for _ in range(ROUNDS if len(named) else 0):
        weighted = named * share
        explained = weighted / weighted.sum(axis=1, keepdims=True)
        before, share = share, (prior + explained.sum(axis=0)) / (prior.sum() + len(named))
        if np.abs(share - before).max() < 1e-9:
            break
    learned: Floats = prior + explained.sum(axis=0)
    return learned
