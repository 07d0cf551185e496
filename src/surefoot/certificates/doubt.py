"""Why the promise lies below what the averages of the log show, by cause.

The policy is evaluated in the same drawn models several times, each time without some of the causes
of doubt: mean rewards as they were seen, nothing unseen, or the seen successors in their mean
proportions. What a cause contributes depends on which others are already there; its amount is the
average over all orders in which the causes could be removed (Shapley 1953), so that the amounts add
up. What could be promised without a cause is computed by removing that cause alone.

Few draws are enough: all versions use the same models, so that differences are known better than
the quantiles themselves. Their standard errors come from resampling the draws.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._order_statistics import lower_rank
from surefoot.certificates import draw_plan
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.doubt_kernels import surer_rows
from surefoot.certificates.evidence import Cause, Doubt
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy, check_policy
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import OfWhole, RowLayout
from surefoot.solvers.evaluation.returns import policy_returns, usual_tolerance
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of
from surefoot.solvers.evaluation.threads import shared
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import endless_states, until_the_end

LEAST, MOST = 100, 2000
"""The fewest and the most draws for the breakdown."""
WORK = 1e9
"""Fewer draws are used where all versions together would take more operations (about a second)."""
RESAMPLED = 100
"""How often the draws are resampled for the standard errors of the amounts."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Causes = frozenset[str]


@dataclass(frozen=True, eq=False, repr=False)
class Surer(OfWhole):
    """The draws of a posterior with some causes of doubt removed.

    Attributes
    ----------
    whole
        The posterior that the draws come from.
    seen
        ``(E,)``: which successors were observed. In a row without any, all count as seen.
    without
        ``"unseen"``: all mass goes to the seen successors, in their drawn proportions.
        ``"transitions"``: the seen successors share their mass as in the posterior mean.

    Examples
    --------
    >>> from surefoot import Counts, DirichletPosterior
    >>> counts = Counts.from_arrays([[[3, 1, 0]]] * 3, support=[[[1, 1, 1]]] * 3)
    >>> whole = DirichletPosterior(counts)
    >>> Surer(whole, counts.count > 0, frozenset({"unseen"})).mean()[:3].round(3).tolist()
    [0.667, 0.333, 0.0]
    """

    whole: Posterior
    seen: NDArray[np.bool_]
    without: Causes

    @cached_property
    def layout(self) -> RowLayout:  # type: ignore[override]
        """The rows and entries of the whole posterior."""
        return RowLayout.of(self.whole)

    def mean(self) -> Floats:
        """Return the posterior mean with the same causes removed, ``(E,)``."""
        rows = np.arange(self.layout.num_rows)
        return np.asarray(self._surer(self.whole.mean()[None], rows)[0])

    def stream(
        self, n: int, rng: np.random.Generator, rows: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the draws block by block, for all rows or for some."""
        chosen = self.layout.check_rows(rows)
        return (self._surer(block, chosen) for block in self.whole.stream(n, rng, rows))

    def _surer(self, block: Floats, rows: Ints) -> Floats:
        entries = self.layout.entries_of(rows)
        start = np.concatenate(([0], np.cumsum(np.diff(self.layout.row_start)[rows])))
        seen, mean = self.seen[entries], self.whole.mean()[entries]
        gone = "unseen" in self.without, "transitions" in self.without
        out = np.empty_like(block)

        def work(begin: int, end: int) -> None:
            surer_rows(block, start, seen, mean, *gone, begin, end, out)

        shared(len(block), work, operations=2 * block.size, least=1)
        return out


def doubt_of(
    certificate: Certificate, posterior: Posterior, mdp: MDP, rng: np.random.Generator, *,
    draws: int | None = None,
) -> Doubt | None:  # fmt: skip
    """Break the distance between the averages of the log and a promise on rewards down by cause.

    ``draws``: how many to use; None takes as many as can be evaluated in about a second. Returns
    None for a posterior without counts, and where some episodes end only through the unseen.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, certify, machine_replacement
    >>> counts = machine_replacement().simulate(20, np.random.default_rng(1))
    >>> mdp, posterior = counts.to_mdp(discount=0.95, prior=1.0), DirichletPosterior(counts)
    >>> policy = np.zeros(10, dtype=int)
    >>> made = certify(policy, posterior, mdp, draws=2000, rng=np.random.default_rng(2))
    >>> doubt = doubt_of(made, posterior, mdp, np.random.default_rng(3))
    >>> round(doubt.as_seen - doubt.total, 6) == round(made.promise, 6)
    True
    """
    if posterior.counts is None or _unseen_ends(posterior, mdp):
        return None
    versions = _Versions.of(certificate, posterior, mdp, rng, draws)
    low, strict = versions.quantiles(), versions.quantiles(level=_strict_level(certificate))
    errors = versions.errors()
    taken = _taken_off(certificate)
    model = {
        name: Cause(
            amount=versions.amount(name, low),
            error=errors[name],
            promise_without=certificate.lower_bound
            + strict[frozenset({name})]
            - strict[frozenset()],
        )
        for name in versions.present
    }
    rest = versions.as_seen - certificate.lower_bound
    rest -= sum(cause.amount for cause in model.values()) + sum(taken.values())
    finite = certificate.marginal_bound
    model["monte_carlo"] = Cause(
        amount=rest,
        error=errors["monte_carlo"],
        promise_without=certificate.lower_bound if finite is None else finite,
    )
    for name, amount in taken.items():
        without = certificate.lower_bound + amount
        model[name] = Cause(amount=amount, error=0.0, promise_without=without)
    return Doubt(as_seen=versions.as_seen, draws=versions.draws, **model)


def _unseen_ends(posterior: Posterior, mdp: MDP) -> bool:
    """Return whether some episodes would never end without the unseen: they have no return then."""
    if not until_the_end(mdp):
        return False
    seen = Surer(posterior, _counted(posterior), frozenset({"unseen"})).mean() > 0
    return bool(endless_states(mdp, seen).any())


def _strict_level(certificate: Certificate) -> float:
    """Return the rank of the promise's order statistic as a share of the draws."""
    n = certificate.draws
    return lower_rank(n, certificate.delta, certificate.eta) / n


def _taken_off(certificate: Certificate) -> dict[str, float]:
    """Return what was subtracted from the order statistic, by cause."""
    luck = certificate.curse
    choosing = 0.0 if luck is None else luck.mean + luck.spread
    return {"choosing": choosing, "first_state": certificate.taken_off - choosing}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Versions:
    """The policy's returns in the same draws, with each subset of the causes of doubt removed."""

    present: tuple[str, ...]
    returns: dict[Causes, Floats]
    delta: float

    @classmethod
    def of(
        cls, certificate: Certificate, posterior: Posterior, mdp: MDP, rng: np.random.Generator,
        draws: int | None,
    ) -> "_Versions":  # fmt: skip
        rows = check_policy(mdp, certificate.policy)
        rewards = rewards_of(mdp, posterior, objective="max")
        present = _present(posterior, mdp, rewards, rows)
        sets = [frozenset(s) for k in range(len(present)) for s in combinations(present, k)]
        work = draw_plan.policy_work(mdp, rewards, rows) * max(1, len(sets))
        n = draw_plan.affordable_draws(work, LEAST, MOST, WORK) if draws is None else draws
        n = min(n, posterior.num_draws or n)
        returns = {
            without: _returns(without, posterior, mdp, rewards, rows, n, deepcopy(rng))
            for without in sets
        }
        every = frozenset(present)
        seen = _counted(posterior)
        sure = replace(mdp, probability=Surer(posterior, seen, every).mean()) if present else mdp
        bare = evaluate(sure, certificate.policy).return_lower
        return cls(
            present=present, returns=returns | {every: np.full(n, bare)}, delta=certificate.delta
        )

    @property
    def draws(self) -> int:
        return len(next(iter(self.returns.values())))

    @property
    def as_seen(self) -> float:
        """The policy's return if the averages of the log were exact."""
        return float(self.returns[frozenset(self.present)][0])

    def quantiles(
        self, which: Ints | None = None, level: float | None = None
    ) -> dict[Causes, float]:
        """Return the quantile of every version, over all draws or over the draws ``which``."""
        drawn = self._table if which is None else self._table[:, which]
        at = self.delta if level is None else level
        return dict(zip(self.returns, np.quantile(drawn, at, axis=1).tolist(), strict=True))

    @cached_property
    def _table(self) -> Floats:
        """``(versions, n)``: all returns."""
        return np.stack(list(self.returns.values()))

    def amount(self, name: str, low: dict[Causes, float]) -> float:
        """Return the amount of a cause: its average over all orders of removal."""
        others = [other for other in self.present if other != name]
        size = len(self.present)
        total = 0.0
        for k in range(size):
            weight = factorial(k) * factorial(size - k - 1) / factorial(size)
            for some in map(frozenset, combinations(others, k)):
                total += weight * (low[some | {name}] - low[some])
        return total

    def errors(self) -> dict[str, float]:
        """Return the standard errors of the amounts, and of the quantile with all causes."""
        rng = np.random.default_rng(0)
        lows = [self.quantiles(rng.integers(0, self.draws, self.draws)) for _ in range(RESAMPLED)]
        found = {name: [self.amount(name, low) for low in lows] for name in self.present}
        found["monte_carlo"] = [low[frozenset()] for low in lows]
        return {name: float(np.std(values)) for name, values in found.items()}


def _counted(posterior: Posterior) -> NDArray[np.bool_]:
    counts = posterior.counts
    if counts is None:
        raise ValueError("this posterior has no counts.")
    return np.asarray(counts.count > 0)


def _present(
    posterior: Posterior, mdp: MDP, rewards: Rewards, rows: RowPolicy
) -> tuple[str, ...]:  # fmt: skip
    """Return the causes of doubt in the rows that a policy plays."""
    layout = RowLayout.of(mdp)
    played = rows.rows.astype(np.int64)
    seen = _counted(posterior)
    known = np.add.reduceat(seen, layout.row_start[:-1])[played]
    size = np.diff(layout.row_start)[played]
    found = {
        "transitions": bool(np.any((known > 1) | ((known == 0) & (size > 1)))),
        "unseen": bool(np.any((known > 0) & (known < size))),
        "rewards": bool(rewards.uncertain[layout.entries_of(played)].any()),
    }
    return tuple(name for name, here in found.items() if here)


def _returns(
    without: Causes, posterior: Posterior, mdp: MDP, rewards: Rewards, rows: RowPolicy, n: int,
    rng: np.random.Generator,
) -> Floats:  # fmt: skip
    drawn = posterior
    if without - {"rewards"}:
        drawn = Surer(posterior, _counted(posterior), without)
    if "rewards" in without:
        rewards = replace(rewards, uncertain=np.zeros_like(rewards.uncertain))
    near = usual_tolerance(mdp)
    return policy_returns(drawn, mdp, rows, n, rng, rewards=rewards, tolerance=near).lower
