"""Exact robust values of tiny models, in fractions: the truth that certified bounds must hold."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles import (
    ExactRow,
    Numbers,
    box_meant,
    dot,
    exact,
    exact_ball,
    exact_box,
    exact_distribution,
)
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.model.mdp import MDP


def exact_row(
    mdp: MDP, ambiguity: AmbiguitySet | None, row: int, z: Numbers, nature: str = "worst"
) -> ExactRow:
    """Return nature's exact answer in one row of a model, whatever the kind of its set."""
    start, stop = mdp.row_start[row : row + 2]
    p = mdp.probability[start:stop]
    signed = exact(z) if nature == "worst" else [-x for x in exact(z)]
    if ambiguity is None or stop - start == 1:
        nominal = exact_distribution(p)
        found = ExactRow(dot(signed, nominal), nominal)
    elif ambiguity.norm == "box":
        assert ambiguity.lower is not None
        assert ambiguity.upper is not None
        found = exact_box(
            signed, *box_meant(ambiguity.lower[start:stop], ambiguity.upper[start:stop])
        )
    else:
        assert ambiguity.budget is not None
        weights = ambiguity.weights
        w = np.ones(stop - start) if weights is None else weights[start:stop]
        found = exact_ball(signed, p, w, ambiguity.budget[row], ambiguity.norm)
    return found if nature == "worst" else ExactRow(-found.value, found.distribution)


class ExactModel:
    """Exact robust values of a tiny model: policy iteration with nature inside, in fractions."""

    def __init__(
        self,
        mdp: MDP,
        ambiguity: AmbiguitySet | None = None,
        *,
        objective: str = "max",
        nature: str = "worst",
    ) -> None:
        self.mdp, self.ambiguity = mdp, ambiguity
        self.nature = nature if objective == "max" else {"worst": "best", "best": "worst"}[nature]
        self.discount = Fraction(mdp.discount)
        self.better = max if objective == "max" else min

    def successor_values(self, row: int, v: Sequence[Fraction]) -> list[Fraction]:
        """Return ``r + discount v`` over the successors of a row."""
        mdp = self.mdp
        entries = range(mdp.row_start[row], mdp.row_start[row + 1])
        rewards = [mdp.reward[e if mdp.reward_per_entry else row] for e in entries]
        return [
            Fraction(float(r)) + self.discount * v[mdp.successor[e]]
            for e, r in zip(entries, rewards, strict=True)
        ]

    def row(self, row: int, v: Sequence[Fraction]) -> ExactRow:
        """Return nature's answer to a value function in one row."""
        return exact_row(self.mdp, self.ambiguity, row, self.successor_values(row, v), self.nature)

    def evaluate(self, shares: list[dict[int, Fraction]]) -> list[Fraction]:
        """Return the robust value of a policy that plays ``{row: probability}`` in each state."""
        n = self.mdp.num_states
        v = [Fraction(0)] * n
        while True:
            matrix = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
            rhs = [Fraction(0)] * n
            for s, plays in enumerate(shares):
                for row, share in plays.items():
                    q = self.row(row, v).distribution
                    rewards = self.successor_values(row, [Fraction(0)] * n)
                    rhs[s] += share * dot(q, rewards)
                    start = self.mdp.row_start[row]
                    for i, mass in enumerate(q):
                        matrix[s][self.mdp.successor[start + i]] -= self.discount * share * mass
            moved = linear_solve(matrix, rhs)
            if moved == v:
                return v
            v = moved

    def solve(self) -> list[Fraction]:
        """Return the optimal robust value."""
        mdp = self.mdp
        policy = [int(row) for row in mdp.state_start[:-1]]
        while True:
            v = self.evaluate([{row: Fraction(1)} for row in policy])
            stable = True
            for s in range(mdp.num_states):
                rows = range(mdp.state_start[s], mdp.state_start[s + 1])
                found = {row: self.row(row, v).value for row in rows}
                best = self.better(found, key=found.__getitem__)
                if found[best] != found[policy[s]]:
                    policy[s], stable = best, False
            if stable:
                return v

    def is_solution(self, v: Sequence[Fraction]) -> bool:
        """Tell whether no action is better than ``v`` anywhere, and some action as good."""
        state_rows = zip(self.mdp.state_start[:-1], self.mdp.state_start[1:], strict=True)
        return all(
            self.better(self.row(row, v).value for row in range(first, last)) == v[s]
            for s, (first, last) in enumerate(state_rows)
        )

    def value_of(self, policy: NDArray[Any]) -> list[Fraction]:
        """Return the robust value of ``(S,)`` actions or ``(S, A)`` probabilities."""
        mdp = self.mdp
        if policy.ndim == 1:
            rows = [mdp.row_of(s, int(a)) for s, a in enumerate(policy)]
            return self.evaluate([{row: Fraction(1)} for row in rows])
        shares = []
        for s, chances in enumerate(policy):
            parts = exact_distribution(chances)
            shares.append({mdp.row_of(s, a): x for a, x in enumerate(parts) if x > 0})
        return self.evaluate(shares)


def linear_solve(matrix: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction]:
    """Solve a small system exactly (Gauss-Jordan; the diagonal never vanishes here)."""
    n = len(rhs)
    a = [[*row, b] for row, b in zip(matrix, rhs, strict=True)]
    for i in range(n):
        pivot = a[i][i]
        a[i] = [x / pivot for x in a[i]]
        for j in range(n):
            if j != i and a[j][i] != 0:
                factor = a[j][i]
                a[j] = [x - factor * y for x, y in zip(a[j], a[i], strict=True)]
    return [row[n] for row in a]
