"""Predict the rewards of transitions never seen, where the log shows how rewards are made.

Many rewards are a part for the state and action plus a part for the next state:
``r(s, a, s') = f(s, a) + h(s')``. If every redundant transition of a log agrees with that exactly,
it is assumed for transitions never seen too. It predicts nothing for a row and a next state that no
chain of transitions connects. But where rewards depend on less (the next state alone, the row
alone, or the action and the next state) and the whole log agrees, that pattern predicts across all
rows. Its predictions are lowered for the exceptions that as many tests may have missed.

Where some transitions disagree, most rows may still pay the same wherever they lead. The share of
successors shown once that pay something else than the rest of their row bounds how often a
successor never shown will: a prediction is lowered by that share of the way to the lowest reward.
Nothing is predicted for next states that were ever paid differently from the rest of a row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.special import betaincinv

from surefoot._cores import available_cores, on_threads

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT = 1e-9
"""How far sums may differ through rounding, as a share of the largest reward."""
FEWEST_TESTS = 10
"""A pattern is assumed only if at least this many redundant transitions agree with it."""
SURE = 0.95
"""Level of the upper bound on the share of exceptions that is charged."""


class AdditiveRewards(NamedTuple):
    """``r = row[r] + state[s']`` within connected parts of rows and states.

    Attributes
    ----------
    row, state
        The two terms.
    row_part, state_part
        The connected part that a row and a state belong to; -1 for a state never entered.
    tests
        The number of redundant transitions, all of which agreed.
    """

    row: Floats
    state: Floats
    row_part: Ints
    state_part: Ints
    tests: int

    def predict(self, row: Ints, successor: Ints) -> Floats:
        """Return the reward of each pair of row and next state, NaN where nothing is known."""
        known = (self.row_part[row] == self.state_part[successor]) & (self.row_part[row] >= 0)
        return np.where(known, self.row[row] + self.state[successor], np.nan)


def fit_additive(
    entry_row: Ints, successor: Ints, reward: Floats, num_rows: int, num_states: int
) -> AdditiveRewards | None:
    """Return the two terms if all redundant transitions agree with them, else None.

    A spanning forest of the bipartite graph of rows and states fixes the terms; every other
    transition tests them. O(entries).
    """
    if len(reward) == 0:
        return None
    part, before = _forest(entry_row, num_rows + successor, num_rows + num_states)
    value = _along(entry_row, successor, reward, before, num_rows, num_states)
    gap = np.abs(value[entry_row] + value[num_rows + successor] - reward)
    scale = float(np.abs(reward).max())
    used = sum(map(_distinct, (entry_row, successor))) - _distinct(part[part >= 0])
    tests = len(reward) - used
    if tests < FEWEST_TESTS or gap.max() > EXACT * max(scale, 1e-300):
        return None
    return AdditiveRewards(
        value[:num_rows], value[num_rows:], part[:num_rows], part[num_rows:], tests
    )


def _distinct(numbers: Ints) -> int:
    """Return the number of distinct values among integers, 0 or more."""
    return int(np.count_nonzero(np.bincount(numbers)))


class Transitions(NamedTuple):
    """Parallel arrays of transitions: row, action of the row, next state.

    ``kind`` numbers the pair of action and displacement; negative means none.
    """

    row: Ints
    action: Ints
    successor: Ints
    kind: Ints

    def where(self, chosen: NDArray[np.bool_] | Ints) -> "Transitions":
        """Return the chosen transitions."""
        return Transitions(*(column[chosen] for column in self))

    def patterns(self) -> list[tuple[Ints, Ints]]:
        """Return the keys of simpler patterns: next state; row; action and next state."""
        nothing = np.zeros_like(self.row)
        return [(nothing, self.successor), (self.row, nothing), (self.action, self.successor)]


def predict_by_less(
    shown: Transitions, reward: Floats, asked: Transitions, lowest: Floats, sizes: tuple[int, int]
) -> Floats:
    """Return what simpler patterns predict for transitions never seen, NaN where none does.

    It is the lowest prediction of the patterns that all transitions shown agree with. Each is moved
    towards ``lowest`` by a share that bounds how many exceptions the tests may have missed.

    Examples
    --------
    >>> every = np.arange(30)
    >>> shown = Transitions(every, every % 2, every % 3, -every)  # state 0 pays 1, from anywhere
    >>> asked = Transitions(*np.array([[0, 1], [0, 1], [2, 0], [-1, -1]]))
    >>> paid = np.where(every % 3 == 0, 1.0, 0.0)
    >>> predict_by_less(shown, paid, asked, np.full(2, -1.0), (30, 3)).round(2).tolist()
    [-0.11, 0.78]
    """
    found = np.full(len(asked.row), np.nan)
    patterns = list(enumerate(shown.patterns()))
    fits: list[AdditiveRewards | None] = [None] * len(patterns)

    def learn(pattern: tuple[int, tuple[Ints, Ints]]) -> None:
        fits[pattern[0]] = fit_additive(*pattern[1], reward, *sizes)

    on_threads(learn, patterns, available_cores())
    for fit, (asked_row, asked_state) in zip(fits, asked.patterns(), strict=True):
        if fit is not None:
            value = fit.predict(asked_row, asked_state)
            missed = float(betaincinv(1.0, fit.tests, SURE))
            found = np.fmin(found, value - missed * np.maximum(value - lowest, 0.0))
    return found


class SteadyRewards(NamedTuple):
    """Rows that pay the same wherever they lead, with exceptions.

    Attributes
    ----------
    row
        What each row pays; NaN where it paid several rewards, or nothing is known.
    states, kinds
        Next states, and kinds of transitions, that some row paid differently from the rest.
    share
        An upper bound on how often a successor never seen is an exception.
    """

    row: Floats
    states: Ints
    kinds: Ints
    share: float

    def predict(self, shown: Transitions, lowest: Floats) -> Floats:
        """Return expected rewards, NaN where unknown; an exception pays ``lowest``."""
        off = np.isin(shown.successor, self.states) | np.isin(shown.kind, self.kinds)
        paid = np.where(off, np.nan, self.row[shown.row])
        return np.asarray(paid - self.share * np.maximum(paid - lowest, 0.0))


def fit_steady(
    shown: Transitions, reward: Floats, count: Ints, num_rows: int
) -> SteadyRewards | None:
    """Return what each row pays and how often successors are exceptions; None with too few tests.

    A successor that its row showed once is a test if all other successors of the row paid the same:
    it was as new to the row as a successor never seen would be.

    Examples
    --------
    >>> rows = np.repeat(np.arange(20), 3)  # each pays 5 to all of three states, one 0 to the last
    >>> paid = np.append(np.full(59, 5.0), 0.0)
    >>> shown = Transitions(rows, 0 * rows, np.tile([0, 1, 2], 20), np.full(60, -1))
    >>> found = fit_steady(shown, paid, np.tile([4, 4, 1], 20), 20)
    >>> found.states.tolist(), round(found.share, 2), found.row[[0, 19]].tolist()
    ([2], 0.22, [5.0, nan])
    """
    if len(reward) == 0:
        return None
    near = EXACT * max(float(np.abs(reward).max()), 1e-300)
    order = np.lexsort((reward, shown.row))
    row, paid, tries = shown.row[order], reward[order], count[order]
    first = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1])))
    number = np.diff(np.append(first, len(row)))
    place = np.repeat(np.arange(len(first)), number)
    least, most = paid[first], paid[first + number - 1]
    same = most - least <= near
    usual = _usual(paid, tries, place, len(first))
    off = np.abs(paid - usual[place]) > near
    # The other successors agree if all successors do, or if this one alone differs.
    others_same = same[place] | (off & (np.bincount(place, off)[place] == 1))
    tested = (tries == 1) & (number[place] > 1) & others_same
    tests, failed = int(np.count_nonzero(tested)), int(np.count_nonzero(tested & off))
    if tests < FEWEST_TESTS:
        return None
    steady = np.full(num_rows, np.nan)
    steady[row[first[same]]] = least[same]
    odd = shown.where(order[off])
    share = float(betaincinv(failed + 1, max(tests - failed, 0.5), SURE))
    return SteadyRewards(
        steady, np.unique(odd.successor), np.unique(odd.kind[odd.kind >= 0]), share
    )


def _usual(paid: Floats, tries: Ints, place: Ints, size: int) -> Floats:
    """Return each row's most common reward: by number of successors, then by number of tries."""
    new = np.concatenate(([True], (place[1:] != place[:-1]) | (paid[1:] != paid[:-1])))
    group = np.cumsum(new) - 1
    weight = np.bincount(group) + np.bincount(group, tries) / (2.0 * max(1, int(tries.sum())))
    where, value = place[new], paid[new]
    best = np.lexsort((weight, where))  # the last of each row is its heaviest
    return np.asarray(value[best[np.searchsorted(where[best], np.arange(size), side="right") - 1]])


def _forest(row: Ints, state: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the first row of every node's connected part, and its predecessor in a spanning tree.

    Both are negative for nodes without a transition; a first row is its own predecessor.
    """
    ones = np.ones(len(row), dtype=np.int8)
    graph = csr_array((ones, (row, state)), shape=(nodes, nodes))
    parts, which = connected_components(graph, directed=False)
    first = np.full(parts, nodes)
    np.minimum.at(first, which[row], row)
    first = first[first < nodes]
    # An extra node is linked to all first rows: one traversal then finds a tree of every part.
    rows, states = np.append(row, np.full(len(first), nodes)), np.append(state, first)
    ones = np.ones(len(rows), dtype=np.int8)
    whole = csr_array((ones, (rows, states)), shape=(nodes + 1, nodes + 1))
    _, before = breadth_first_order(whole, nodes, directed=False)
    previous: Ints = np.array(before[:-1], dtype=np.int64)
    previous[first] = first
    root = np.full(parts, -1)
    root[which[first]] = first
    return np.where(previous < 0, -1, root[which]).astype(np.int64), previous


def _along(
    row: Ints, successor: Ints, reward: Floats, before: Ints, num_rows: int, num_states: int
) -> Floats:
    """Return the term of every node: ``reward - predecessor's term`` along a tree, 0 at its root.

    Each round halves the paths to the roots: O(nodes log depth).
    """
    node = np.arange(len(before))
    before = np.where(before < 0, node, before)
    inner = np.flatnonzero(before != node)
    ends = np.sort(np.stack((node[inner], before[inner])), axis=0)
    key = row * num_states + successor
    order = np.argsort(key)
    wanted = ends[0] * num_states + ends[1] - num_rows
    value, sign = np.zeros(len(node)), np.ones(len(node))
    value[inner] = reward[order[np.searchsorted(key, wanted, sorter=order)]]
    sign[inner] = -1.0
    while np.any(before[before] != before):
        value, sign = value + sign * value[before], sign * sign[before]
        before = before[before]
    return np.asarray(value)
