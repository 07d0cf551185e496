"""Robust values of medium models to fifty digits: the truth where fractions would take too long.

A policy's value solves a linear system; steps of a double-precision solve are corrected by
residuals of sixty digits until nothing changes. Nature and the policy improve in turn, as in
``exact_models``.
"""

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP

DIGITS = 60
NEAR = mpf(10) ** -50
"""Where two numbers count as equal, as a share of the largest value."""

Numbers = Sequence[Any]


def l1_nature(z: Numbers, p: Numbers, w: Numbers, budget: Any) -> list[Any]:
    """Return the distribution that minimises ``q.z`` in a weighted L1 ball.

    A vertex takes mass from donors in the order of ``(z_donor - z_receiver) / (w + w')``, the best
    pair first; a donor's best receiver can change with the multiplier, so the multiplier is found
    on the breakpoints of the dual.
    """
    size = range(len(z))

    def pieces(mu: Any) -> tuple[int, list[int]]:
        receiver = min(size, key=lambda j: z[j] + mu * w[j])
        level = z[receiver] + mu * w[receiver]
        return receiver, [i for i in size if z[i] - mu * w[i] > level and p[i] > 0]

    def cost(receiver: int, donors: list[int]) -> Any:
        return sum((p[i] * (w[i] + w[receiver]) for i in donors), mpf(0))

    receiver, donors = pieces(mpf(0))
    if cost(receiver, donors) <= budget:
        return _moved(p, {i: p[i] for i in donors}, receiver)
    # Breakpoints: where a donor is level with the receiver, or two receivers are level.
    points = {mpf(0)}
    for i in size:
        for j in size:
            if i != j and w[i] + w[j] > 0:
                points.add((z[i] - z[j]) / (w[i] + w[j]))
            if w[i] != w[j]:
                points.add((z[i] - z[j]) / (w[j] - w[i]))
    ordered = sorted(point for point in points if point >= 0)
    low, high = 0, len(ordered) - 1  # the cost falls from piece to piece
    while low < high:
        middle = (low + high) // 2
        after = (ordered[middle] + ordered[middle + 1]) / 2 if middle < high else ordered[high] + 1
        if cost(*pieces(after)) > budget:
            low = middle + 1
        else:
            high = middle
    mu = ordered[low]
    before = (ordered[low - 1] + mu) / 2
    after = (mu + ordered[low + 1]) / 2 if low + 1 < len(ordered) else mu + 1
    more, less = (_all_of(p, *pieces(point)) for point in (before, after))
    dear, cheap = (_distance(q, p, w) for q in (more, less))
    share = (budget - cheap) / (dear - cheap) if dear > cheap else mpf(0)
    return [share * x + (1 - share) * y for x, y in zip(more, less, strict=True)]


def _all_of(p: Numbers, receiver: int, donors: list[int]) -> list[Any]:
    return _moved(p, {i: p[i] for i in donors}, receiver)


def _moved(p: Numbers, taken: dict[int, Any], receiver: int) -> list[Any]:
    q = [x - taken.get(i, 0) for i, x in enumerate(p)]
    q[receiver] += sum(taken.values(), mpf(0))
    return q


def _distance(q: Numbers, p: Numbers, w: Numbers) -> Any:
    return sum((c * abs(x - y) for x, y, c in zip(q, p, w, strict=True)), mpf(0))


def box_nature(z: Numbers, lower: Numbers, upper: Numbers) -> list[Any]:
    """Return the distribution that minimises ``q.z`` in a box: cheapest successors first."""
    q = list(lower)
    left = 1 - sum(lower, mpf(0))
    for i in sorted(range(len(z)), key=lambda i: z[i]):
        more = min(left, upper[i] - lower[i])
        q[i] += more
        left -= more
    return q


class PreciseModel:
    """Robust values of a model to fifty digits, for sets of norm l1, linf and box, or none."""

    def __init__(self, mdp: MDP, ambiguity: AmbiguitySet | None, nature: str) -> None:
        mpmath.mp.dps = DIGITS
        self.mdp, self.ambiguity = mdp, ambiguity
        self.sign = 1 if nature == "worst" else -1
        self.discount = mpf(mdp.discount)
        self.reward = [mpf(x) for x in mdp.entry_reward.tolist()]
        self.rows = [self._distribution(row) for row in range(mdp.num_rows)]

    def _entries(self, row: int) -> range:
        return range(int(self.mdp.row_start[row]), int(self.mdp.row_start[row + 1]))

    def _distribution(self, row: int) -> list[Any]:
        p = [mpf(x) for x in self.mdp.probability[self._entries(row)].tolist()]
        total = mpmath.fsum(p)
        return [x / total for x in p]

    def nature(self, row: int, v: Numbers) -> tuple[Any, list[Any]]:
        """Return the value of a row at ``v`` and the distribution behind it."""
        entries = self._entries(row)
        successor = self.mdp.successor
        z = [self.sign * (self.reward[e] + self.discount * v[successor[e]]) for e in entries]
        p = self.rows[row]
        q = p if self.ambiguity is None or len(p) == 1 else self._answer(row, entries, z, p)
        return self.sign * mpmath.fdot(q, z), q

    def _answer(self, row: int, entries: range, z: Numbers, p: Numbers) -> list[Any]:
        ball = self.ambiguity
        assert ball is not None
        if ball.norm == "box":
            assert ball.lower is not None
            assert ball.upper is not None
            ends = ([mpf(x) for x in side[entries].tolist()] for side in (ball.lower, ball.upper))
            return box_nature(z, *ends)
        assert ball.budget is not None
        budget = mpf(float(ball.budget[row]))
        weights = np.ones(len(p)) if ball.weights is None else ball.weights[entries]
        w = [mpf(x) for x in weights.tolist()]
        if ball.norm == "l1":
            return l1_nature(z, p, w, budget)
        lower = [max(mpf(0), x - budget / c) for x, c in zip(p, w, strict=True)]
        upper = [min(mpf(1), x + budget / c) for x, c in zip(p, w, strict=True)]
        return box_nature(z, lower, upper)

    def value_of(self, rows: NDArray[Any], v: Numbers) -> list[Any]:
        """Return the robust value of one row per state, starting from a guess."""
        while True:
            answers = [self.nature(int(row), v)[1] for row in rows]
            moved = self._solve(rows, answers, v)
            if self._near(moved, v):
                return moved
            v = moved

    def _solve(self, rows: NDArray[Any], answers: list[list[Any]], v: Numbers) -> list[Any]:
        mdp, size = self.mdp, self.mdp.num_states
        matrix = np.eye(size)
        for s, (row, q) in enumerate(zip(rows, answers, strict=True)):
            np.add.at(
                matrix[s], mdp.successor[self._entries(int(row))],
                [-mdp.discount * float(x) for x in q],
            )  # fmt: skip
        inverse = np.linalg.inv(matrix)
        x = list(v)
        while True:
            residual = [
                mpmath.fsum(
                    mass * (self.reward[e] + self.discount * x[mdp.successor[e]])
                    for mass, e in zip(q, self._entries(int(row)), strict=True)
                )
                - x[s]
                for s, (row, q) in enumerate(zip(rows, answers, strict=True))
            ]
            largest = max(map(abs, residual))
            if largest <= NEAR * (1 - self.discount) * max(map(abs, [*x, mpf(1e-290)])):
                return x
            step = inverse @ np.array([float(r / largest) for r in residual])
            x = [a + largest * mpf(b) for a, b in zip(x, step.tolist(), strict=True)]

    def _near(self, left: Numbers, right: Numbers) -> bool:
        scale = max(map(abs, [*left, mpf(1e-290)]))
        return all(abs(a - b) <= NEAR * scale for a, b in zip(left, right, strict=True))

    def solve(self, rows: NDArray[Any], v: Numbers) -> list[Any]:
        """Return the best robust value; ``rows`` and ``v`` are where to begin."""
        mdp, choice = self.mdp, np.array(rows, dtype=np.int64)
        while True:
            v = self.value_of(choice, v)
            scale = max(map(abs, [*v, mpf(1e-290)]))
            stable = True
            for s in range(mdp.num_states):
                for row in range(mdp.state_start[s], mdp.state_start[s + 1]):
                    value = self.nature(row, v)[0]
                    if value > v[s] + 10 * NEAR * scale and row != choice[s]:
                        choice[s], stable = row, False
                        break
            if stable:
                return v
