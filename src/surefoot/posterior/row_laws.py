"""What the rows of a log are like: how even, and with how many successors. Learned from all rows.

A row has ``K`` successors with a symmetric Dirichlet prior of parameter ``a``. With counts ``n_j``
of ``k`` distinct successors its likelihood is
``K!/(K-k)! Gamma(Ka)/Gamma(Ka+n) prod_j Gamma(a+n_j)/Gamma(a)``. Which ``a`` and ``K`` are usual is
unknown: the law of ``a`` over rows and the law of ``K`` lie on grids with flat priors, and actions
may share these laws or not. So the posterior of the laws is a finite sum, sampled exactly: its
draws are independent, as strict order statistics need.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from surefoot.posterior import learned_kernels as kernels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ALPHA = np.array([0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0])
"""Dirichlet parameters that a row may have."""
SPREADS = (0.0, 0.8, 1.6)
"""How far the parameters of rows lie from their centre, in steps of the grid."""
GEOMETRIC = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
POISSON = (1.0, 2.0, 4.0, 7.0, 12.0, 20.0, 35.0)
"""Mean numbers of successors after the first, under the two families of laws of K."""
LOG_SIZE_PRIOR = np.append(-np.log1p(np.array(GEOMETRIC + POISSON)), 0.0)
"""Laws of K with mean m further successors have prior weight 1/(1+m): long rows must show it.
The last law is that a row has all the successors it is allowed."""
NEGLIGIBLE = 1e-6
"""Laws of K less probable than this, for every action, are left out."""
FINE_VISITS = 100
"""More visits than this are grouped to two digits, downwards: K hardly depends on them."""


def alpha_laws() -> Floats:
    """Return ``(laws, alphas)``: every centre of the grid with every spread around it."""
    step = np.arange(len(ALPHA))
    laws = [
        (step == centre).astype(np.float64)
        if spread == 0
        else np.exp(-0.5 * ((step - centre) / spread) ** 2)
        for spread in SPREADS
        for centre in step
    ]
    return np.array([law / law.sum() for law in laws])


def log_size_laws(most: int) -> Floats:
    """Return ``(laws, most + 1)``: the log probability of K = 0..most; K = 0 has none.

    Examples
    --------
    >>> laws = np.exp(log_size_laws(3))
    >>> laws.shape, laws[:, 0].max(), laws.sum(axis=1).round(9).tolist() == [1.0] * 15
    ((15, 4), 0.0, True)
    """
    further = np.arange(most)
    factorial = np.cumsum(np.log(np.maximum(further, 1)))
    logs = [further * np.log(mean / (1 + mean)) for mean in GEOMETRIC]
    logs += [further * np.log(mean) - factorial for mean in POISSON]
    table = np.full((len(logs) + 1, most + 1), -np.inf)
    table[:-1, 1:] = np.array(logs) - logsumexp(logs, axis=1, keepdims=True)
    table[-1, most] = 0.0
    return table


@dataclass(frozen=True, kw_only=True, eq=False)
class RowLaws:
    """The exact posterior of the laws, and what it says of each row.

    Attributes
    ----------
    action, distinct, group
        ``(R,)``: the action of each row, how many distinct successors it has shown, and its group:
        rows with the same visits, distinct successors and most successors.
    shape
        ``(R, alphas)``: the part of the log likelihood that depends on the counts themselves.
    marginal
        ``(groups, size laws, alphas)``: the rest of it, K summed out.
    sizes
        ``(groups, size laws, alphas, most + 1)``: cumulative posterior of K.
    missing
        ``(groups, size laws, alphas)``: mean probability of all unseen successors together.
    evidence
        ``(actions, all size laws, alpha laws)``: log evidence of the rows of each action.
    usual
        The size laws that matter: those of the arrays above.
    """

    action: Ints
    distinct: Ints
    group: Ints
    shape: Floats
    marginal: Floats
    sizes: Floats
    missing: Floats
    evidence: Floats
    usual: Ints

    @classmethod
    def learn(
        cls, *, count: Floats, row_start: Ints, action: Ints, num_actions: int, cap: Ints,
        declared: Bools, like: "RowLaws | None" = None,
    ) -> "RowLaws":  # fmt: skip
        """Learn from all rows; row ``r`` has at most ``cap[r]`` successors.

        ``declared`` rows name them. ``like``: take the laws learned before from other counts.
        """
        distinct = np.add.reduceat((count > 0).astype(np.int64), row_start[:-1])
        visits = np.add.reduceat(count, row_start[:-1])
        groups, group = np.unique(
            np.column_stack((_grouped(visits), distinct, cap, declared)),
            axis=0,
            return_inverse=True,
        )
        most = int(cap.max())
        n, k, caps, named = groups.T
        by_size = np.empty((len(groups), len(ALPHA), most + 1))
        kernels.size_likelihood(n, k, ALPHA, most, by_size)
        shape = np.empty((len(action), len(ALPHA)))
        kernels.shape_likelihood(count, row_start, ALPHA, shape)
        prior = _log_prior(caps, named, most)
        marginal = logsumexp(by_size[:, None] + prior[:, :, None], axis=3)
        group = group.ravel()
        if like is None:
            evidence = np.zeros((num_actions, prior.shape[1], len(_LAWS)))
            evidence += LOG_SIZE_PRIOR[:, None]
            told = (visits > 0) & (cap > 1)
            kernels.row_evidence(group[told], action[told], marginal, shape[told], _LAWS, evidence)
        else:
            evidence = like.evidence
        usual = np.flatnonzero((_marginal_laws(evidence).sum(axis=2) > NEGLIGIBLE).any(axis=0))
        marginal = marginal[:, usual]
        posterior = np.exp(by_size[:, None] + prior[:, usual, None] - marginal[..., None])
        unseen = (np.arange(most + 1) - k[:, None])[:, None, None] * ALPHA[:, None]
        seen_weight = n[:, None, None, None] + k[:, None, None, None] * ALPHA[:, None]
        further = np.maximum(unseen, 0.0)
        total = np.maximum(seen_weight + further, ALPHA[:, None])  # a row never tried has K >= 1
        share = further / total
        return cls(
            action=action, distinct=distinct, group=group, shape=shape, marginal=marginal,
            sizes=np.cumsum(posterior, axis=3), evidence=evidence, usual=usual,
            missing=(posterior * np.where(posterior > 0, share, 0.0)).sum(axis=3),
        )  # fmt: skip

    @cached_property
    def structure(self) -> Floats:
        """``(3,)``: how probable it is that actions share the alpha law, nothing, or both laws."""
        return _structure(self.evidence[:, self.usual])

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return ``(n, actions)`` independent draws of the size law and of the alpha law."""
        evidence = self.evidence[:, self.usual]
        actions, _, laws = evidence.shape
        size = np.empty((n, actions), dtype=np.int64)
        law = np.empty((n, actions), dtype=np.int64)
        kind = rng.choice(3, size=n, p=self.structure)
        shared = logsumexp(evidence, axis=1).sum(axis=0)
        for draw in range(n):
            if kind[draw] == 2:
                size[draw], law[draw] = divmod(_pick(evidence.sum(axis=0).ravel(), rng), laws)
                continue
            common = _pick(shared, rng) if kind[draw] == 0 else None
            for a in range(actions):
                if common is None:
                    size[draw, a], law[draw, a] = divmod(_pick(evidence[a].ravel(), rng), laws)
                else:
                    size[draw, a], law[draw, a] = _pick(evidence[a, :, common], rng), common
        return size, law

    def alpha_weights(self) -> Floats:
        """Return ``(R, size laws, alphas)``: posterior probability of both for every row."""
        laws = _marginal_laws(self.evidence[:, self.usual])
        weights = np.empty((len(self.action), self.marginal.shape[1], len(ALPHA)))
        for s in range(self.marginal.shape[1]):
            log = self.marginal[self.group, s] + self.shape
            likelihood = np.exp(log - log.max(axis=1, keepdims=True))
            share = laws[self.action, s] / (likelihood @ _LAWS.T)
            weights[:, s] = (share @ _LAWS) * likelihood
        return weights


_LAWS = alpha_laws()
_LAWS.setflags(write=False)
LAWS = _LAWS
"""The laws of concentration, ``(laws, alphas)``."""


def _grouped(visits: Floats) -> Ints:
    """Return visits, beyond the fine ones with two digits."""
    whole = visits.astype(np.int64)
    digit = 10 ** np.maximum(np.floor(np.log10(np.maximum(whole, 1))).astype(np.int64) - 1, 0)
    return np.where(whole > FINE_VISITS, whole // digit * digit, whole)


def _log_prior(caps: Ints, declared: Ints, most: int) -> Floats:
    """Return ``(groups, size laws, most + 1)``: log probability of K, none above a group's cap.

    That a row has all the successors it may is a law for declared ones; an open row follows the
    law of one further successor on average instead.
    """
    prior = np.full((len(caps), len(LOG_SIZE_PRIOR), most + 1), -np.inf)
    for cap in np.unique(caps):
        prior[caps == cap, :, : cap + 1] = log_size_laws(int(cap))
    prior[declared == 0, -1] = prior[declared == 0, GEOMETRIC.index(1.0)]
    return prior


def _structure(evidence: Floats) -> Floats:
    _, sizes, laws = evidence.shape
    each = logsumexp(evidence, axis=1) - np.log(sizes)
    logs = np.array(
        [
            logsumexp(each.sum(axis=0)) - np.log(laws),
            (logsumexp(each, axis=1) - np.log(laws)).sum(),
            logsumexp(evidence.sum(axis=0)) - np.log(sizes * laws),
        ]
    )
    probable: Floats = np.exp(logs - logsumexp(logs))
    return probable


def _marginal_laws(evidence: Floats) -> Floats:
    """Return ``(actions, size laws, alpha laws)``: the posterior of the laws of each action."""
    shared = logsumexp(evidence, axis=1).sum(axis=0)
    alone = np.exp(evidence - logsumexp(evidence, axis=1, keepdims=True))
    apart = np.exp(evidence - logsumexp(evidence, axis=(1, 2), keepdims=True))
    both = evidence.sum(axis=0)
    structure = _structure(evidence)
    laws: Floats = (
        structure[0] * alone * np.exp(shared - logsumexp(shared))
        + structure[1] * apart
        + structure[2] * np.exp(both - logsumexp(both))
    )
    return laws


def _pick(logs: Floats, rng: np.random.Generator) -> int:
    weight = np.cumsum(np.exp(logs - logs.max()))
    return int(min(np.searchsorted(weight, rng.random() * weight[-1]), len(weight) - 1))
