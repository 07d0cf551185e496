"""Which states the unseen successors of a row may be, by patterns in the rest of the log.

An unseen successor of the row (s, a) is assumed to come from one of these parts:

* *same state*: states that other actions reached from s;
* *displacement*: for numbered states, s plus a step that three or more other rows of a have shown;
* *entered*: states that three or more other rows of a have shown;
* *entered by others*: states that three or more other rows have shown, few or none of them of a;
* *stays*, *ends* and *strays*: see `surefoot.data.plain_patterns`;
* the *rest*: a state that no pattern points to. Nothing is known about it, so it is charged as the
  worst state of the log.

The shares of the parts are learned by leaving out the successors that a row showed just once, one
at a time, and computing which part would have named them. How likely the candidates of a part are
is said in `surefoot.data.destination_weights`.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from surefoot._compile import COMPILES
from surefoot._cores import available_cores, on_threads
from surefoot.data import destination_arrays, destination_kernels, mixture_kernels
from surefoot.data.destination_pools import FEWEST_ROWS, others_pool, pool_of, ranked
from surefoot.data.destination_weights import Pattern, hidden_shares, reweighed
from surefoot.data.frontier import past_the_edge
from surefoot.data.plain_patterns import (
    ENDS,
    PartCandidates,
    ShownEntries,
    common_ends,
    ending,
    staying,
    straying,
)
from surefoot.data.state_order import numbering

kernels: Any = destination_kernels if COMPILES else destination_arrays
mixture: Any = mixture_kernels if COMPILES else destination_arrays

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOLS = ("same state", "displacement", "entered", "entered by others")
PARTS = (*POOLS, "stays", *(f"end {number + 1}" for number in range(ENDS)), "strays")
MOVES, STRAYS = PARTS.index("displacement"), len(PARTS) - 1
PRIOR_SHARES = (0.5, 0.5, *[0.25] * (STRAYS - 2))
"""Prior Dirichlet parameters of the parts before strays."""
PRIOR_REST, ONE_STRAY = 0.25, 1.0
"""Prior Dirichlet parameter of all that no part names, and how many of those that were observed
might as well have led to the worst state."""
ROUNDS = 200
CANDIDATES, MOST_EACH = 20_000, 64
"""About how many candidates a part lists over all rows, and the most in one row. A row with many
successors may list a third as many as it has shown, so that no model more than doubles."""
HIDDEN_EACH = 16
"""Candidates per part for a row whose tries all reached different successors. Such a row has shown
little, and its value is mostly that of its candidates: with only one or two of them it would look
good or bad by chance, and a search would find the good ones."""
MOST_STRAYS = 12
"""The most strays that a row lists: their share is small, and actions of a state list the same."""
SHADES, FEWEST_SHADES, RANKED = 64, 4, 2**22
"""How many kinds of states draw their candidates apart from each other, and how many members of
pools are ranked in all. What one kind leaves out by chance, others list: their errors cancel."""
LEAST_SHARE = 0.001
"""In large models, parts with a smaller share list nothing."""
MUCH_HIDDEN = 4
"""Rows of large models list states that only other actions entered if they need this many
candidates: a quarter of their tries were seen once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Destinations:
    """Candidate successors of every row, part by part.

    Attributes
    ----------
    start
        ``(4 R + 1,)``: the candidates of part ``p`` of row ``r`` begin at ``start[4 r + p]``.
    state
        The candidates: never one that the row has shown.
    weight
        The probability of each within its part. If a part sums to less than 1, the remainder goes
        to the rest.
    shares
        Learned Dirichlet parameters of the parts and the rest.
    beyond
        ``(R,)``: the share of a row's steps that would lead past the last known state
        (`surefoot.data.frontier`); they count as displacements to the rest.
    """

    start: Ints
    state: Ints
    weight: Floats
    shares: Floats
    beyond: Floats


_known: WeakKeyDictionary[Any, Destinations] = WeakKeyDictionary()


def learn_destinations(counts: Any) -> Destinations:
    """List the candidates of every row of the counts, and learn the shares of the parts.

    A row's candidates depend on the log only, not on rows that were added: they are the same before
    and after a support is declared. They are cached as long as the counts live, because declaring
    the support needs them first.
    """
    if counts not in _known:
        _known[counts] = _learn(counts)
    return _known[counts]


def carried_over(counts: Any, placed: Any) -> Destinations | None:
    """Return the candidates of ``counts`` for the rows of ``placed``, their declared counts.

    States without rows have loops there, which need no candidates. None if other rows were added or
    some are missing: then the candidates must be learned again.
    """
    found, parts = learn_destinations(counts), len(PARTS)
    key = counts.row_state.astype(np.int64) * counts.num_actions + counts.row_action
    keys = placed.row_state.astype(np.int64) * placed.num_actions + placed.row_action
    if placed.num_actions != counts.num_actions or len(key) == 0:
        return None
    at = np.minimum(np.searchsorted(key, keys), len(key) - 1)
    known = key[at] == keys
    if np.count_nonzero(known) < len(key) or np.any(np.diff(placed.row_start)[~known] > 1):
        return None
    size, beyond = np.zeros((len(keys), parts), dtype=np.int64), np.zeros(len(keys))
    size[known], beyond[known] = np.diff(found.start).reshape(-1, parts), found.beyond
    return replace(found, start=np.concatenate(([0], np.cumsum(size.ravel()))), beyond=beyond)


def _learn(counts: Any) -> Destinations:
    shown = counts.count > 0
    if counts.unseen is not None:
        shown &= counts.successor != counts.unseen
    row_start = np.concatenate(([0], np.cumsum(shown)))[counts.row_start]
    seen, visits = np.diff(row_start), counts.visits
    row, successor = counts.entry_row[shown], counts.successor[shown].astype(np.int64)
    state, action = counts.row_state[row], counts.row_action[row]
    once = (counts.count[shown] == 1) & (visits[row] > 1)
    number, state_of = numbering(counts)
    known = (number[state] >= 0) & (number[successor] >= 0)
    steps = (number[successor] - number[state])[known]
    actions, states = counts.num_actions, counts.num_states
    seen_by = ShownEntries(
        counts.row_state.astype(np.int64), counts.row_action.astype(np.int64), row, successor,
        counts.count[shown], once, actions, states,
    )  # fmt: skip
    ends = common_ends(seen_by, counts.is_terminal)
    goes_on = ~np.isin(successor, ends)
    kinds = [
        lambda: pool_of(state, successor, states, 1),
        lambda: pool_of(action[known], steps, actions, FEWEST_ROWS),
        lambda: pool_of(action[goes_on], successor[goes_on], actions, FEWEST_ROWS),
        lambda: others_pool(action[goes_on], successor[goes_on], actions, states),
    ]
    most = _most_candidates(counts, row, shown, seen)
    found: list[Any] = [None] * len(kinds)

    def gather(part: int) -> None:
        pool = kinds[part]()
        found[part] = ranked(pool, 1 if part == 0 else _shades(pool[0], most))

    on_threads(gather, range(len(kinds)), available_cores())
    near, moved, entered, elsewhere = found
    anywhere = np.flatnonzero(np.bincount(successor, minlength=states) >= FEWEST_ROWS)
    start = np.empty(len(POOLS) * counts.num_rows + 1, dtype=np.int64)
    room = int(most.sum())
    listed_states, weight = np.empty(room, dtype=np.int64), np.empty(room)
    named = np.empty((np.count_nonzero(once), len(POOLS) + 1))
    kernels.row_candidates(
        row_start, seen_by.row_state, seen_by.row_action, successor, once, number, state_of,
        bool((state_of >= 0).all()), *moved, *near, *entered, *elsewhere, anywhere, most,
        np.array([1, FEWEST_ROWS, FEWEST_ROWS, FEWEST_ROWS]),
        states - (counts.unseen is not None), start, listed_states, weight, named,
    )  # fmt: skip
    size = start[-1]
    slot = np.repeat(np.arange(len(start) - 1), np.diff(start))
    listed = _Lists(slot // len(POOLS), slot % len(POOLS), listed_states[:size], weight[:size])
    made = _completed(counts, seen_by, listed, named, ends, most, number)
    return replace(made, beyond=past_the_edge(seen_by, number, state_of, visits))


class _Lists(NamedTuple):
    """Candidates: row, part, state and weight of each."""

    row: Ints
    part: Ints
    state: Ints
    weight: Floats

    def adding(self, part: int, found: PartCandidates) -> "_Lists":
        """Return the lists with those of one more part."""
        more = found.row, np.full(len(found.row), part), found.state, found.weight
        return _Lists._make(np.concatenate(pair) for pair in zip(self, more, strict=True))

    def having(self, kept: NDArray[Any]) -> "_Lists":
        """Return some of the candidates, in some order."""
        return _Lists._make(array[kept] for array in self)


def _completed(
    counts: Any,
    shown: ShownEntries,
    listed: _Lists,
    named: Floats,
    ends: Ints,
    most: Ints,
    number: Ints,
) -> Destinations:
    """Return all candidates, those of pools and others, with the learned shares of the parts."""
    plain = [staying(shown), *(ending(shown, int(end)) for end in ends)]
    nothing = np.zeros((len(named), ENDS - len(ends)))
    of_parts = np.column_stack((named[:, :-1], *(part.named for part in plain), nothing))
    unnamed = np.asarray(~of_parts.any(axis=1))
    for place, part in enumerate(plain):
        listed = listed.adding(len(POOLS) + place, part)
    learned = _learned_shares(listed, shown, of_parts, np.where(unnamed, named[:, -1], 0.0))
    unknown = unnamed & _known_by_one_visit(counts)[shown.successor[shown.once]]
    unnamed &= ~unknown
    strays = float(np.count_nonzero(unnamed))
    worst = PRIOR_REST + min(strays, ONE_STRAY) + float(np.count_nonzero(unknown))
    split = np.array([strays, worst]) / (strays + worst)
    shares = np.concatenate((learned[:-1], learned[-1] * split))
    if strays:
        few = np.minimum((most[-1] + 1) // 2, MOST_STRAYS)
        listed = listed.adding(STRAYS, straying(shown, unnamed, few, SHADES))
    if not most[-1].all():  # a large model
        listed = listed.having((shares >= LEAST_SHARE * shares.sum())[listed.part])
    slot = listed.row * len(PARTS) + listed.part
    order = np.argsort(slot, kind="stable")
    made = listed.having(order)
    return Destinations(
        start=np.searchsorted(slot[order], np.arange(len(PARTS) * len(shown.row_state) + 1)),
        state=made.state, weight=_weighed(made, slot[order], counts, shown, number), shares=shares,
        beyond=np.zeros(len(shown.row_state)),
    )  # fmt: skip


def _known_by_one_visit(counts: Any) -> NDArray[np.bool_]:
    """``(S,)``: states that go on and were left at most once.

    If the one transition that led there is left out, the log does not know them at all: such a
    successor says how often the unnamed lead to states of which nothing is known.
    """
    left = np.bincount(counts.row_state, counts.visits, counts.num_states)
    return np.asarray((left <= 1) & ~counts.is_terminal)


def _learned_shares(listed: _Lists, shown: ShownEntries, named: Floats, rest: Floats) -> Floats:
    """Return the Dirichlet parameters of the parts before strays, and of all that none names.

    A part counts only where the row has a candidate of it: a row that has shown the only end hides
    no other, however often rows end.
    """
    has = np.zeros((len(shown.row_state), STRAYS + 1), dtype=np.bool_)
    has[listed.row, listed.part] = True
    has[:, STRAYS] = True
    open_to = has[shown.row[shown.once]]
    open_to[:, :STRAYS] |= named > 0.0
    prior = np.array((*PRIOR_SHARES, PRIOR_REST))
    ever = has.any(axis=0) | open_to.any(axis=0)  # the others have no candidates anywhere
    kinds, times = np.unique(open_to[:, ever], axis=0, return_counts=True)
    given = np.ascontiguousarray(np.column_stack((named, rest))[:, ever])
    prior[ever] = mixture.mixture_weights(
        given, kinds.astype(np.float64), times.astype(np.float64), prior[ever], ROUNDS, 1e-9
    )
    return prior


def _weighed(listed: _Lists, slot: Ints, counts: Any, shown: ShownEntries, number: Ints) -> Floats:
    """Return candidate weights, by how much of a candidate rows that showed it would still hide."""
    row, successor = shown.row, shown.successor
    state, action = shown.row_state[row], shown.row_action[row]
    share = shown.times / (counts.visits[row] + 1.0)
    known = (number[state] >= 0) & (number[successor] >= 0)
    of_state, of_action = shown.row_state[listed.row], shown.row_action[listed.row]
    steps, wanted = number[successor] - number[state], number[listed.state] - number[of_state]
    by_action = Pattern(action, successor, share, of_action, listed.state)
    nobody = np.zeros_like(action), np.zeros_like(of_action)
    patterns = {
        0: Pattern(state, successor, share, of_state, listed.state),
        1: Pattern(action[known], steps[known], share[known], of_action, wanted),
        2: by_action,
        3: by_action._replace(group=nobody[0], asked=nobody[1]),
    }
    hidden = np.ones(len(slot))
    for part, pattern in patterns.items():
        mine = listed.part == part
        asked = pattern._replace(asked=pattern.asked[mine], candidate=pattern.candidate[mine])
        hidden[mine] = hidden_shares(asked, counts.visits[listed.row[mine]])
    return reweighed(slot, listed.weight, hidden)


def on_entries(found: Destinations, counts: Any, open_rows: NDArray[np.bool_]) -> Destinations:
    """Return the candidates that declared counts list, with the rest as the last part.

    In an open row the rest is the unseen state; in a row whose successors are all declared it is
    every one of them that was not seen, with equal weights. Steps past the last known state lead to
    the unseen state too.
    """
    parts, states = len(PARTS), counts.num_states
    owner = np.repeat(np.arange(len(found.start) - 1), np.diff(found.start))
    keys = counts.entry_row.astype(np.int64) * states + counts.successor
    wanted = owner // parts * states + found.state
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)  # entries are in key order
    listed = keys[at] == wanted
    new = np.flatnonzero(counts.count == 0)
    is_rest = np.ones(len(new), dtype=np.bool_)
    if counts.unseen is not None:
        is_rest = (counts.successor[new] == counts.unseen) | ~open_rows[counts.entry_row[new]]
    row = counts.entry_row[new[is_rest]].astype(np.int64)
    size = np.bincount(row, minlength=counts.num_rows)
    leaving = np.flatnonzero((found.beyond > 0) & open_rows)
    # In open rows all candidates of the whole log are entries; a part of the log may list others.
    part = np.bincount(owner[listed], found.weight[listed], len(found.start) - 1)
    whole = np.where(open_rows[owner // parts] & (part[owner] > 0), part[owner], 1.0)
    staying = np.where(owner % parts == MOVES, 1.0 - found.beyond[owner // parts], 1.0)
    slot = np.concatenate(
        ((owner // parts * (parts + 1) + owner % parts)[listed], leaving * (parts + 1) + MOVES,
         row * (parts + 1) + parts)
    )  # fmt: skip
    weight = np.concatenate(
        ((found.weight / whole * staying)[listed], found.beyond[leaving], 1.0 / size[row])
    )
    unseen = np.full(len(leaving), -1 if counts.unseen is None else counts.unseen)
    state = np.concatenate((found.state[listed], unseen, counts.successor[new[is_rest]]))
    order = np.argsort(slot, kind="stable")
    start = np.searchsorted(slot[order], np.arange(counts.num_rows * (parts + 1) + 1))
    return replace(found, start=start, state=state[order].astype(np.int64), weight=weight[order])


def _most_candidates(counts: Any, row: Ints, shown: NDArray[np.bool_], seen: Ints) -> Ints:
    """Return ``(parts, R)``: how many candidates of each part a row lists at most.

    In large models, a row with four or more successors lists no more candidates than it has shown
    successors, the rest included, unless it hides much. States that only other actions entered are
    listed there by rows that hide much: elsewhere they would make the model larger and change
    little.
    """
    usual = min(MOST_EACH, CANDIDATES // max(1, int(np.count_nonzero(counts.visits))))
    hidden = _hidden_candidates(counts, row, shown)
    large = usual <= 1
    most = np.maximum(np.maximum(max(1, usual), (seen - large) // 3), hidden)
    others = np.where(hidden >= MUCH_HIDDEN, hidden, 0) if large else most
    return np.stack([most] * (len(POOLS) - 1) + [others])


def _shades(start: Ints, most: Ints) -> int:
    """Return how many kinds of states get random numbers of their own for the pools of actions.

    One where all pools are listed whole. Few where they are long: there are many states then.
    """
    if int(np.diff(start).max(initial=0)) <= int(most.min(initial=MOST_EACH)):
        return 1
    return int(np.clip(RANKED // max(1, start[-1]), FEWEST_SHADES, SHADES))


def _hidden_candidates(counts: Any, row: Ints, shown: NDArray[np.bool_]) -> Ints:
    """Return how many candidates rows need: in proportion to their share of tries seen once."""
    once = np.bincount(row, counts.count[shown] == 1, counts.num_rows)
    hidden = np.divide(once, counts.visits, out=np.ones(len(once)), where=counts.visits > 0)
    most: Ints = np.floor(min(HIDDEN_EACH, MOST_EACH) * hidden).astype(np.int64)
    return most
