"""Improving a policy by changing single actions, judged by its empirical percentile on a batch."""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from surefoot._work import SWEPT, count
from surefoot.certificates import search_kernels as kernels
from surefoot.certificates.models import (
    Floats,
    Ints,
    Models,
    Stopped,
    full_systems,
    percentile,
    policy_values,
    policy_visits,
)
from surefoot.certificates.row_scores import best_rows, summed_scores
from surefoot.solvers.evaluation.dense import chunks, inverse_columns
from surefoot.solvers.evaluation.threads import shared

GAIN = 1e-10
"""The smallest gain that counts, as a share of the spread of returns: less may be rounding."""
ROUGH_GAIN = 1e-4
"""The same where gains are only estimated: there are many small ones, and rounds are expensive."""
SINGLES, PAIRED = 3, 7
"""If no change seems to help: how many of the best ones are tried anyway (where gains are only
estimated), and among how many of them all pairs are tried (where gains are exact)."""
MAX_ROUNDS = 200
CLIMB_ROUNDS = 12


def flip_table(batch: Models, choice: Ints) -> Floats:
    """Return ``(R, n)``: the exact return in every draw if a row is played in its state."""
    states = batch.mdp.num_states
    draws, gains, *model = batch.models
    table = np.empty((batch.mdp.num_rows, batch.size))

    def work(begin: int, end: int) -> None:
        for first, last in chunks(begin, end, states):
            matrices, values = full_systems(batch, choice, first, last)
            kernels.flip_returns(
                draws, gains, batch.mdp.state_start, *model, batch.initial, choice, first,
                inverse_columns(matrices), values, table,
            )  # fmt: skip

    shared(batch.size, work, operations=3 * batch.evaluation_work)
    return table


def estimated_flip_table(batch: Models, values: Floats, visits: Floats, returns: Floats) -> Floats:
    """Return `flip_table` to first order, ``(R, n)``, without inverting a matrix."""
    draws, gains, row_start, successor, discount = batch.models
    table = np.empty((batch.mdp.num_rows, batch.size))

    def work(begin: int, end: int) -> None:
        kernels.flip_estimates(
            draws, gains, batch.mdp.state_start, row_start, successor, discount, values, visits,
            returns, begin, end, table,
        )  # fmt: skip

    shared(batch.size, work, operations=batch.draws.size, least=1)
    count(SWEPT * batch.draws.size)
    return table


@dataclass
class Seen:
    """What earlier climbs on the same batch found, so that no policy is evaluated twice.

    Attributes
    ----------
    reached
        The percentiles of policies, by their bytes.
    passed
        The policies that climbs went through: a climb that meets one would end at the same policy.
    """

    reached: dict[bytes, float] = field(default_factory=dict)
    passed: set[bytes] = field(default_factory=set)


def local_search(
    batch: Models,
    choice: Ints,
    delta: float,
    stopped: Stopped = lambda: False,
    seen: Seen | None = None,
) -> tuple[Ints, float]:
    """Climb from a policy until no single change helps; return the policy and its percentile.

    Every round ranks all single changes, exactly for small models and to first order for large
    ones, then evaluates the best of them together: the first, the first two, four, and so on. Large
    models begin with all helpful changes together, and stop once fewer changes bring less. If no
    single change helps, small models try pairs of the best ones, large models the best single ones.
    O(n (S^3 + E)) a round for small models, O(n E) and some sweeps for large ones.

    Large models have many changes and few draws, so the changes that look best on some draws are
    mostly luck. There the climb uses half of the draws, and every round must also raise the
    percentile on the other half.
    """
    rank = batch.rank(delta)
    known = policy_values(batch, choice)
    seen = seen or Seen()
    if batch.small or batch.size < 2:
        return _climbed(batch, choice, rank, stopped, seen, known)
    middle = batch.size // 2
    climbing, testing = batch.part(slice(middle)), batch.part(slice(middle, None))
    test = _Jury(testing, testing.rank(delta), known[0][middle:], known[1][middle:])
    start = known[0][:middle], known[1][:middle]
    found, _ = _climbed(climbing, choice, climbing.rank(delta), stopped, Seen(), start, test)
    best = percentile(known[1], rank)
    if np.array_equal(found, choice):
        return choice, best
    reached = percentile(policy_values(batch, found, known[0])[1], rank)
    seen.reached[found.tobytes()] = reached
    return (found, reached) if reached > best else (choice, best)


class _Jury:
    """Draws that are not used to rank changes, and on which every change must also help."""

    def __init__(self, batch: Models, rank: int, values: Floats, returns: Floats) -> None:
        self.batch, self.rank = batch, rank
        self.values, self.best = values, percentile(returns, rank)

    def agrees(self, choice: Ints) -> bool:
        """Return whether a policy beats the last accepted one on these draws; if so, accept it."""
        values, returns = policy_values(self.batch, choice, self.values)
        reached = percentile(returns, self.rank)
        if not reached > self.best:
            return False
        self.values, self.best = values, reached
        return True


def _climbed(
    batch: Models, choice: Ints, rank: int, stopped: Stopped, seen: Seen,
    known: tuple[Floats, Floats], test: _Jury | None = None,
) -> tuple[Ints, float]:  # fmt: skip
    """Climb on a batch; ``known`` are values and returns of the first policy."""
    exact = batch.small
    choice = choice.copy()
    values, returns = known
    visits = None
    best = percentile(returns, rank)
    for _ in range(MAX_ROUNDS):
        if stopped() or choice.tobytes() in seen.passed:
            break
        seen.passed.add(choice.tobytes())
        if exact:
            table = flip_table(batch, choice)
        else:
            visits = policy_visits(batch, choice, visits)
            table = estimated_flip_table(batch, values, visits, returns)
        score = _row_percentiles(table, rank)
        del table
        spread = float(np.ptp(returns)) + 1e-5 * abs(best)
        least = best + (GAIN if exact else ROUGH_GAIN) * spread
        found = None
        for rows in _trials(batch, choice, score, best + GAIN * spread, exact=exact):
            if stopped():
                break
            trial = choice.copy()
            trial[batch.mdp.row_state[rows]] = rows
            if seen.reached.get(trial.tobytes(), np.inf) <= least:
                continue
            new_values, new_returns = policy_values(batch, trial, values)
            reached = seen.reached[trial.tobytes()] = percentile(new_returns, rank)
            if reached > least:
                least = reached
                found = trial, new_values, new_returns, reached
            elif found is not None and not exact:
                break
        if found is None or not (test is None or test.agrees(found[0])):
            break
        choice, values, returns, best = found
    return choice, best


def _row_percentiles(table: Floats, rank: int) -> Floats:
    """Return ``(R,)``: the ``rank``-th smallest of every row, reordering the table."""
    scores = np.empty(len(table))

    def work(begin: int, end: int) -> None:
        part = table[begin:end]
        part.partition(rank - 1, axis=1)
        scores[begin:end] = part[:, rank - 1]

    shared(len(table), work, operations=8 * table.size)
    return scores


def _trials(batch: Models, choice: Ints, score: Floats, best: float, *, exact: bool) -> list[Ints]:
    """Return sets of rows to play instead: the most promising changes, at most one per state."""
    score = score.copy()
    score[choice] = -np.inf
    order = np.argsort(-score, kind="stable")
    order = order[np.isfinite(score[order])]
    _, first = np.unique(batch.mdp.row_state[order], return_index=True)
    order = order[np.sort(first)]  # the best change of each state
    helpful = int((score[order] > best).sum())
    trials = []
    size = 1
    while size <= helpful:
        trials.append(order[:size])
        size *= 2
    if helpful and size // 2 != helpful:
        trials.append(order[:helpful])
    if not exact:
        trials.reverse()
    if helpful == 0 and exact:
        trials += [np.array(pair) for pair in combinations(order[:PAIRED], 2)]
    elif helpful == 0:
        trials += [order[k : k + 1] for k in range(SINGLES)]
    return [rows for rows in trials if len(rows)]


def climb(
    batch: Models,
    choice: Ints,
    delta: float,
    share: float,
    stopped: Stopped = lambda: False,
    known: tuple[Floats, Floats] | None = None,
) -> Ints:
    """Improve the mean return over the worst draws, all states at once (coordinate ascent).

    The draws that count are the ``share`` with the lowest returns, selected again each round: with
    ``share=delta`` this climbs on the CVaR, with ``share=1`` on the mean. Each state then switches
    to the action with the largest sum of ``b_s Q(s, a)`` over those draws, as for a weighted
    mixture of models (Steimle et al. 2021; Su, Petrik 2023). Returns the policy with the best
    percentile met on the way. ``known`` are values and returns of the first policy.
    """
    rank = batch.rank(delta)
    count = max(1, min(batch.size, round(share * batch.size)))
    values, returns = known or policy_values(batch, choice)
    best, best_choice = percentile(returns, rank), choice
    seen = {choice.tobytes()}
    for _ in range(CLIMB_ROUNDS):
        if stopped():
            break
        worst = np.sort(np.argsort(returns, kind="stable")[:count])
        gains = _gains(batch.part(worst) if count < batch.size else batch, choice, values[worst])
        choice = best_rows(batch, gains, choice)
        if choice.tobytes() in seen:
            break
        seen.add(choice.tobytes())
        values, returns = policy_values(batch, choice, values)
        reached = percentile(returns, rank)
        if reached > best:
            best, best_choice = reached, choice
    return best_choice


def _gains(batch: Models, choice: Ints, values: Floats) -> Floats:
    """Return ``(R,)``: means of ``b_s (Q(s, a) - v_s)``."""
    draws, gains, row_start, successor, discount = batch.models
    visits = policy_visits(batch, choice)

    def add(begin: int, end: int, out: Floats) -> None:
        kernels.mean_gains(
            draws, gains, batch.mdp.state_start, row_start, successor, discount, values, visits,
            begin, end, out,
        )  # fmt: skip

    count(SWEPT * batch.draws.size)
    return summed_scores(batch, add, operations=batch.draws.size)
