"""Which question to an expert is worth most.

The worth of a question is what the promise gains if the answer is the expected one. "Is that all
that can follow?": yes, and the mass kept for other successors goes to the seen ones. "Can this lead
there at all?": no. "What is the worst reward here?": nothing below what was seen, and unseen
entries pay the mean of their row. The gain is that of the quantile behind the promise, on the same
draws with and without the answer. Each answer is considered alone.
"""

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefoot._order_statistics import lower_rank
from surefoot.certificates import draw_plan
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.doubt import Surer
from surefoot.certificates.plays import plays_of, row_values
from surefoot.certificates.row_doubt import RowDoubt
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior, at_most
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of

SUCCESSORS, TRANSITION, REWARD = "successors", "transition", "reward"
ASKED = 6
"""How many questions of each kind are valued on draws: those that matter most to first order."""
LEAST, MOST, WORK = 400, 2000, 1e9
"""The fewest and the most draws, and the operations for all questions (about a second)."""
SMALL = 1e-3
"""Gains below this share of the distance to the promise are left out."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question that an expert may be able to answer.

    Attributes
    ----------
    kind
        ``"successors"``: is what was seen all that can follow? ``"transition"``: can it lead there
        at all? ``"reward"``: what is the worst reward here?
    row, successor
        The row, or None for all rows at once; the successor asked about, for a transition.
    mass
        The posterior probability of what the expert may rule out; 0 for rewards.
    gain
        How much more could be promised if the answer is the expected one.
    """

    kind: str
    row: int | None
    successor: int | None
    mass: float
    gain: float


def expert_questions(
    certificate: Certificate, posterior: Posterior, mdp: MDP, doubt: RowDoubt,
    rng: np.random.Generator,
) -> tuple[Question, ...]:  # fmt: skip
    """Return the questions worth asking, about one row or all rows, the most valuable first.

    Examples
    --------
    >>> from surefoot import Counts, DirichletPosterior, certify
    >>> from surefoot.certificates.row_doubt import row_doubt
    >>> counts = Counts.from_arrays(
    ...     [[[30, 10, 0]], [[20, 20, 0]], [[0, 0, 9]]], rewards=[[1.0], [1.0], [0.0]],
    ...     support=[[[1, 1, 1]], [[1, 1, 1]], [[0, 0, 1]]],
    ... )
    >>> mdp, posterior = counts.to_mdp(discount=0.9, prior=1.0), DirichletPosterior(counts)
    >>> made = certify([0, 0, 0], posterior, mdp, draws=1000, rng=np.random.default_rng(0))
    >>> found = row_doubt(posterior, mdp, [0, 0, 0], np.random.default_rng(1), delta=0.05)
    >>> asked = expert_questions(made, posterior, mdp, found, np.random.default_rng(2))
    >>> [(one.kind, one.row) for one in asked], asked[0].gain > asked[1].gain > asked[2].gain > 0
    ([('successors', None), ('successors', 0), ('successors', 1)], True)
    """
    if posterior.counts is None:
        return ()
    ask = _WorthOfAnswers.of(certificate, posterior, mdp, doubt, rng)
    found = [*ask.successors(), *ask.transitions(), *ask.rewarded()]
    least = SMALL * max(certificate.nominal_return - certificate.lower_bound, 0.0)
    kept = [one for one in found if one.gain > least]
    return tuple(sorted(kept, key=lambda one: -one.gain))


@dataclass(frozen=True, kw_only=True, eq=False)
class _WorthOfAnswers:
    """Computes the quantile behind a promise with and without an answer."""

    certificate: Certificate
    posterior: Posterior
    mdp: MDP
    doubt: RowDoubt
    rewards: Rewards
    seen: Flags
    row_mean: Floats
    ahead: Floats
    draws: int
    rng: np.random.Generator
    now: float

    @classmethod
    def of(
        cls, certificate: Certificate, posterior: Posterior, mdp: MDP, doubt: RowDoubt,
        rng: np.random.Generator,
    ) -> "_WorthOfAnswers":  # fmt: skip
        rewards = rewards_of(mdp, posterior, objective="max")
        counts = posterior.counts
        if counts is None:
            raise ValueError("this posterior has no counts.")
        plays = plays_of(mdp, certificate.policy)
        rows = check_policy(mdp, certificate.policy)
        work = draw_plan.policy_work(mdp, rewards, rows) * (3 * ASKED + 4)
        made = cls(
            certificate=certificate, posterior=posterior, mdp=mdp, doubt=doubt, rewards=rewards,
            seen=np.asarray(counts.count > 0), row_mean=row_values(mdp, plays.ahead)[0],
            ahead=plays.ahead,
            draws=at_most(posterior, draw_plan.affordable_draws(work, LEAST, MOST, WORK)), rng=rng,
            now=0.0,
        )  # fmt: skip
        return replace(made, now=made.quantile(posterior, rewards))

    def quantile(self, posterior: Posterior, rewards: Rewards) -> float:
        one = self.certificate
        rows = check_policy(self.mdp, one.policy)
        found = policy_returns(
            posterior, self.mdp, rows, self.draws, deepcopy(self.rng), rewards=rewards
        ).lower
        return float(np.quantile(found, lower_rank(one.draws, one.delta, one.eta) / one.draws))

    def _closed(self, never: Flags) -> float:
        """Return the gain of the quantile if some entries never happen."""
        sure = Surer(self.posterior, ~never, frozenset({"unseen"}))
        return self.quantile(sure, self.rewards) - self.now

    def _open(self) -> Flags:
        """Return ``(E,)``: whether an entry is unseen, in a row where others were seen."""
        start, row = self.mdp.row_start[:-1], self.mdp.entry_row
        return np.asarray(~self.seen & np.logical_or.reduceat(self.seen, start)[row])

    def successors(self) -> list[Question]:
        """Return the questions whether a row, and whether all rows, can show no new successor."""
        never, mean = self._open(), self.posterior.mean()
        mass = np.add.reduceat(np.where(never, mean, 0.0), self.mdp.row_start[:-1])
        some = mass[self.doubt.rows] > 0
        if not some.any():
            return []
        order = np.argsort(-np.where(some, self.doubt.amounts["unseen"], -np.inf), kind="stable")
        asked = [int(row) for row in self.doubt.rows[order[:ASKED]] if mass[row] > 0]
        row_of = self.mdp.entry_row
        found = [
            Question(
                kind=SUCCESSORS, row=row, successor=None, mass=float(mass[row]),
                gain=self._closed(never & (row_of == row)),
            )
            for row in asked
        ]  # fmt: skip
        if len(asked) > 1:
            every = self.doubt.weight @ mass[self.doubt.rows] / max(self.doubt.weight.sum(), 1e-300)
            found.append(
                Question(
                    kind=SUCCESSORS,
                    row=None,
                    successor=None,
                    mass=float(every),
                    gain=self._closed(never),
                )
            )
        return found

    def transitions(self) -> list[Question]:
        """Return the questions whether a row can lead to one particular unseen successor."""
        mdp, counts = self.mdp, self.posterior.counts
        never = self._open()
        several = np.add.reduceat(never, mdp.row_start[:-1]) > 1
        never = never & several[mdp.entry_row]  # with one, it is the question of `successors`
        if counts is not None and counts.unseen is not None:
            never = never & (mdp.successor != counts.unseen)
        weight = np.zeros(mdp.num_rows)
        weight[self.doubt.rows] = self.doubt.weight
        mean = self.posterior.mean()
        lost = self.row_mean[mdp.entry_row] - mdp.entry_reward - self.ahead
        matters = np.where(never, weight[mdp.entry_row] * mean * lost, 0.0)
        order = np.argsort(-matters, kind="stable")[:ASKED]
        alone = np.arange(mdp.num_entries)
        return [
            Question(
                kind=TRANSITION, row=int(mdp.entry_row[entry]),
                successor=int(mdp.successor[entry]), mass=float(mean[entry]),
                gain=self._closed(alone == entry),
            )
            for entry in order
            if matters[entry] > 0
        ]  # fmt: skip

    def rewarded(self) -> list[Question]:
        """Return the questions about the worst reward of a row, and of all rows.

        Where the doubt is about one reward that was missed somewhere, no row by itself removes it.
        """
        mdp, doubt = self.mdp, self.doubt
        usual = self._usual_rewards()
        mean = self.posterior.mean()
        lower = np.where(self.seen, 0.0, usual - self.rewards.fixed)
        assumed = np.add.reduceat(mean * lower, mdp.row_start[:-1])
        matters = doubt.amounts["rewards"] + doubt.weight * assumed[doubt.rows]
        order = np.argsort(-matters, kind="stable")[:ASKED]
        asked: list[int | None] = [int(doubt.rows[k]) for k in order if matters[k] > 0]
        if asked and len(doubt.rows) > 1:
            asked.append(None)
        found = []
        for row in asked:
            here = mdp.entry_row == row if row is not None else np.ones_like(self.seen)
            known = replace(
                self.rewards,
                uncertain=self.rewards.uncertain & ~here,
                fixed=np.where(here & ~self.seen, usual, self.rewards.fixed),
            )
            gain = self.quantile(self.posterior, known) - self.now
            found.append(Question(kind=REWARD, row=row, successor=None, mass=0.0, gain=gain))
        return found

    def _usual_rewards(self) -> Floats:
        """Return ``(E,)``: the mean reward seen in the row of each entry."""
        counts, start = self.posterior.counts, self.mdp.row_start[:-1]
        if counts is None:
            return np.asarray(self.rewards.fixed)
        number = counts.count.astype(np.float64)
        total = np.add.reduceat(number, start)
        paid = np.add.reduceat(number * self.rewards.fixed, start)
        mean = np.divide(paid, total, out=np.zeros_like(paid), where=total > 0)
        row = self.mdp.entry_row
        return np.where(total[row] > 0, mean[row], self.rewards.fixed)
