"""How even the rows of a log are and how many successors they have, learned from all rows.

A row has ``K`` successors with a symmetric Dirichlet prior of parameter ``a``. With counts ``n_j``
of ``k`` distinct successors its likelihood is
``K!/(K-k)! Gamma(Ka)/Gamma(Ka+n) prod_j Gamma(a+n_j)/Gamma(a)``. The law of ``a`` over rows and the
law of ``K`` are unknown. They lie on grids, with a flat prior for the law of ``a`` and
``SIZE_PRIOR`` for that of ``K``, and actions may share these laws or not. So the posterior of the
laws is a finite sum, sampled exactly: its draws are independent, as strict order statistics need.

Rows of measured data are often *heavy-tailed*: a few successors take most tries, and new ones keep
turning up. No symmetric law fits both, and the best one takes mass from the successors that are
usual. Such a row follows the process of Pitman and Yor (1997) with discount ``d`` and strength
``t``, whose likelihood is
``(t+d)...(t+(k-1)d) Gamma(t+1)/Gamma(t+n) prod_j Gamma(n_j-d)/Gamma(1-d)``: that of a symmetric row
with ``a = -d`` and ``K = -t/d``. So discounts are negative parameters, and the size law says the
strength.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from surefoot._compile import COMPILES
from surefoot._cores import available_cores, on_threads
from surefoot.posterior import law_arrays, law_kernels

kernels: Any = law_kernels if COMPILES else law_arrays

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EVEN = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
DISCOUNTS = (0.1, 0.3, 0.5, 0.7, 0.9)
ALPHA = np.array(EVEN + tuple(-discount for discount in DISCOUNTS))
"""Dirichlet parameters that a row may have; negative ones are discounts of heavy-tailed rows."""
SPREADS, HEAVY_SPREADS = (0.0, 0.8, 1.6), (0.0, 0.8)
"""Standard deviations of rows' parameters around their centre, in steps of the grid."""
GEOMETRIC = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
POISSON = (1.0, 2.0, 4.0, 7.0, 12.0, 20.0, 35.0)
"""Mean numbers of successors beyond the first, in the two families of laws of K."""
SIZE_PRIOR = np.append(1.0 / (1.0 + np.array(GEOMETRIC + POISSON)), 1.0)
SIZE_PRIOR /= SIZE_PRIOR.sum()
"""Laws of K with a mean of m further successors have prior weight 1/(1+m): long rows need evidence.
Under the last law a row has all the successors it may have."""
STRENGTH = np.array((*GEOMETRIC, *POISSON, 1.0))
"""The strength of heavy-tailed rows under every law of K: its mean number of further successors."""
NEGLIGIBLE = 1e-6
"""Laws of K less probable than this, for every action, are left out."""
IMPOSSIBLE = -1e100
"""The logarithm of a probability that no draw meets."""
FINE_VISITS = 100
"""Above this, visits are rounded down to two digits in the posterior of K that draws use: K hardly
depends on them. Likelihoods use exact visits: concentrations do depend on them."""

WORTH_A_THREAD = 1000
"""Fewer rows than this take less time than starting a thread."""


def alpha_laws() -> Floats:
    """Return ``(laws, alphas)``: a law of ``a`` for every centre on the grid and every spread.

    Rows of a law are all heavy-tailed or none is.
    """
    laws = np.zeros((0, len(ALPHA)))
    for first, size, spreads in (
        (0, len(EVEN), SPREADS),
        (len(EVEN), len(DISCOUNTS), HEAVY_SPREADS),
    ):
        step = np.arange(size)
        for spread in spreads:
            away = np.abs(step - step[:, None]) / max(spread, 1e-9)
            some = np.zeros((size, len(ALPHA)))
            some[:, first : first + size] = np.exp(-0.5 * np.minimum(away, 1e3) ** 2)
            laws = np.concatenate((laws, some / some.sum(axis=1, keepdims=True)))
    return laws


def log_size_laws(most: int) -> Floats:
    """Return ``(laws, most + 1)``: the log probability of K = 0..most; K = 0 has probability 0.

    Examples
    --------
    >>> laws = np.exp(log_size_laws(3))
    >>> laws.shape, float(laws[:, 0].max()), laws.sum(axis=1).round(9).tolist() == [1.0] * 15
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


LAWS = alpha_laws()
LAWS.setflags(write=False)
"""The laws of concentration, ``(laws, alphas)``."""
FIRST_HEAVY = len(EVEN) * len(SPREADS)
"""Laws from here on are those of heavy-tailed rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowLaws:
    """The exact posterior of the laws, and what it says about each row.

    Attributes
    ----------
    action, distinct
        ``(R,)``: the action of each row, and how many distinct successors it has shown.
    fine, group
        ``(R,)``: class of a row; rows of a ``fine`` class agree in visits, distinct successors,
        cap and whether they are declared; in a ``group`` the visits agree in two digits only.
    shape
        ``(R, alphas)``: the part of the log likelihood that depends on the counts themselves.
    marginal
        ``(fine, size laws, alphas)``: the rest of the log likelihood, with K summed out.
    sizes
        ``(groups, size laws, alphas, most + 1)``: cumulative posterior of K.
    missing
        ``(fine, size laws, alphas)``: mean total probability of all unseen successors.
    evidence
        ``(actions, all size laws, alpha laws)``: log likelihood of the rows of each action.
    posterior
        ``(actions, all size laws, alpha laws)``: how probable the laws of each action are.
    usual
        The indices of the size laws that are not negligible: those of ``marginal``, ``sizes`` and
        ``missing``.
    """

    action: Ints
    distinct: Ints
    fine: Ints
    group: Ints
    shape: Floats
    marginal: Floats
    sizes: Floats
    missing: Floats
    evidence: Floats
    posterior: Floats
    usual: Ints

    @classmethod
    def learn(
        cls, *, count: Floats, row_start: Ints, action: Ints, num_actions: int, cap: Ints,
        declared: Bools, like: "RowLaws | None" = None,
    ) -> "RowLaws":  # fmt: skip
        """Learn from all rows; row ``r`` has at most ``cap[r]`` successors.

        ``declared`` rows list all of them. ``like``: laws learned from other counts, used as is.
        """
        distinct = np.add.reduceat((count > 0).astype(np.int64), row_start[:-1])
        visits = np.add.reduceat(count, row_start[:-1])
        kinds, kind = np.unique(np.column_stack((cap, declared)), axis=0, return_inverse=True)
        prior = _log_prior(*kinds.T.astype(np.int64))
        alike, fine = _alike(visits, distinct, kind.ravel())
        marginal = np.empty((len(alike[0]), prior.shape[1], len(ALPHA)))
        kernels.size_marginals(*alike, prior, ALPHA, STRENGTH, marginal)
        shape = np.empty((len(action), len(ALPHA)))
        _by_rows(
            lambda first, last: kernels.shape_likelihood(
                count, row_start[first : last + 1], ALPHA, shape[first:last]
            ),
            len(action),
        )
        if like is None:
            told = (visits > 0) & (cap > 1)
            evidence = _evidence(fine[told], action[told], marginal, shape[told], num_actions)
            posterior = _marginal_laws(evidence)
        else:
            evidence, posterior = like.evidence, like.posterior
        usual = np.flatnonzero((posterior.sum(axis=2) > NEGLIGIBLE).any(axis=0))
        rough, group_of = _alike(_grouped(alike[0]), *alike[1:])
        sizes = np.empty((len(rough[0]), len(usual), len(ALPHA), prior.shape[2]))
        strength = STRENGTH[usual]
        caps = kinds[:, 0].astype(np.int64)
        kernels.size_posteriors(*rough, prior[:, usual], caps, ALPHA, strength, sizes)
        missing = np.empty((len(alike[0]), len(usual), len(ALPHA)))
        kernels.missing_mass(*alike[:2], group_of, ALPHA, strength, sizes, missing)
        return cls(
            action=action, distinct=distinct, fine=fine, group=group_of[fine], shape=shape,
            marginal=np.ascontiguousarray(marginal[:, usual]), sizes=sizes, missing=missing,
            evidence=evidence, posterior=posterior, usual=usual,
        )  # fmt: skip

    @cached_property
    def structure(self) -> Floats:
        """``(3,)``: the probabilities that actions share the alpha law, nothing, or both laws."""
        return _structure(self.evidence)

    @cached_property
    def heavy(self) -> bool:
        """Whether rows may be heavy-tailed: otherwise no draw has such rows."""
        return bool(self.posterior[:, :, FIRST_HEAVY:].sum(axis=(1, 2)).max(initial=0) > NEGLIGIBLE)

    @property
    def uniforms(self) -> int:
        """How many uniform numbers a draw of the laws takes."""
        return 2 + len(self.evidence)

    def draw(self, uniform: Floats) -> tuple[Ints, Ints]:
        """Return ``(n, actions)`` draws of the size law and of the alpha law.

        ``uniform`` is ``(n, uniforms)`` with numbers in [0, 1); independent numbers give
        independent draws.
        """
        structure, common, given, apart, both = self._cumulative
        laws = len(common)
        kind = _pick(structure, uniform[:, 0])
        together = _pick(both, uniform[:, 1])
        shared = _pick(common, uniform[:, 1])
        index = np.empty((len(uniform), len(apart)), dtype=np.int64)
        for a in range(len(apart)):
            u = uniform[:, 2 + a]
            size = np.count_nonzero(given[a][:, shared] <= u, axis=0)
            index[:, a] = np.choose(kind, (size * laws + shared, _pick(apart[a], u), together))
        return index // laws, index % laws

    @cached_property
    def _cumulative(self) -> tuple[Floats, ...]:
        """The cumulative tables that :meth:`draw` uses, one for each step of a draw."""
        evidence = self.evidence[:, self.usual]
        if not self.heavy:
            evidence[:, :, FIRST_HEAVY:] = IMPOSSIBLE
        log = evidence + np.log(SIZE_PRIOR[self.usual, None])
        both = evidence.sum(axis=0) + np.log(SIZE_PRIOR[self.usual, None])
        return (
            _running(np.log(np.maximum(self.structure, 1e-300))),
            _running(logsumexp(log, axis=1).sum(axis=0)),
            _running(log, axis=1),
            _running(log.reshape(len(log), -1), axis=1),
            _running(both.ravel()),
        )

    def row_alphas(self) -> tuple[Floats, Floats]:
        """Return ``(R, alphas)`` twice: the probability of each alpha, and that times mass seen.

        The mass seen is the mean, over laws and K, of the probability of what the row has shown.
        """
        weight = np.zeros((len(self.action), len(ALPHA)))
        seen = np.zeros_like(weight)
        posterior = self.posterior[:, self.usual]
        posterior /= posterior.sum(axis=(1, 2), keepdims=True)

        def work(first: int, last: int) -> None:
            some = slice(first, last)
            kernels.row_alphas(
                self.fine[some], self.action[some], self.marginal, self.shape[some], self.missing,
                LAWS, posterior, weight[some], seen[some],
            )  # fmt: skip

        _by_rows(work, len(weight))
        return weight, seen


def _evidence(
    fine: Ints, action: Ints, marginal: Floats, shape: Floats, num_actions: int
) -> Floats:
    """Return the ``(actions, size laws, alpha laws)`` log evidence.

    Each thread takes some size laws and adds up the rows in their order, so that the result does
    not depend on the number of threads.
    """
    evidence = np.zeros((num_actions, marginal.shape[1], len(LAWS)))
    cores = min(available_cores(), len(fine) // WORTH_A_THREAD, marginal.shape[1])

    def work(laws: Ints) -> None:
        some = np.zeros((num_actions, len(laws), len(LAWS)))
        given = np.ascontiguousarray(marginal[:, laws])
        kernels.row_evidence(fine, action, given, shape, LAWS, some)
        evidence[:, laws] = some

    on_threads(work, np.array_split(np.arange(marginal.shape[1]), max(1, cores)), cores)
    return evidence


def _by_rows(work: Callable[[int, int], None], rows: int) -> None:
    """Call ``work(first, last)`` on ranges of rows, on as many threads as pay off."""
    cores = max(1, min(available_cores(), rows // WORTH_A_THREAD))
    cuts = np.linspace(0, rows, cores + 1).astype(np.int64).tolist()
    on_threads(lambda part: work(*part), pairwise(cuts), cores)


def _alike(visits: Floats, distinct: Ints, kind: Ints) -> tuple[tuple[Floats, Ints, Ints], Ints]:
    """Return the distinct combinations, and the index of each row's combination."""
    found, which = np.unique(np.column_stack((visits, distinct, kind)), axis=0, return_inverse=True)
    n, k, kinds = found.T
    return (n.copy(), k.astype(np.int64), kinds.astype(np.int64)), which.ravel()


def _grouped(visits: Floats) -> Floats:
    """Return visits, rounded down to two digits above ``FINE_VISITS``."""
    digit = 10.0 ** (np.floor(np.log10(np.maximum(visits, 1.0))) - 1.0)
    return np.where(visits > FINE_VISITS, np.floor(visits / digit) * digit, visits)


def _log_prior(caps: Ints, declared: Ints) -> Floats:
    """Return ``(kinds, size laws, most + 1)``: log probability of K, -inf above a kind's cap.

    The last law, that a row has all the successors it may have, applies to declared rows only; for
    open rows it is the geometric law with one further successor on average.
    """
    prior = np.full((len(caps), len(SIZE_PRIOR), int(caps.max()) + 1), -np.inf)
    for kind, cap in enumerate(caps):
        prior[kind, :, : cap + 1] = log_size_laws(int(cap))
    prior[declared == 0, -1] = prior[declared == 0, GEOMETRIC.index(1.0)]
    return prior


def _structure(evidence: Floats) -> Floats:
    """Return the posterior of which laws actions share; the three cases have the same prior.

    The prior of a shared law counts once for all actions, and each case sums over all laws.
    """
    prior = np.log(SIZE_PRIOR)[:, None]
    flat = np.log(evidence.shape[2])
    each = logsumexp(evidence + prior, axis=1)
    logs = np.array(
        [
            logsumexp(each.sum(axis=0)) - flat,
            (logsumexp(each, axis=1) - flat).sum(),
            logsumexp(evidence.sum(axis=0) + prior) - flat,
        ]
    )
    probable = np.exp(logs - logsumexp(logs))
    return np.asarray(probable / probable.sum())


def _marginal_laws(evidence: Floats) -> Floats:
    """Return ``(actions, size laws, alpha laws)``: the posterior of the laws of each action."""
    prior = np.log(SIZE_PRIOR)[:, None]
    log = evidence + prior
    shared = logsumexp(log, axis=1).sum(axis=0)
    alone = np.exp(log - logsumexp(log, axis=1, keepdims=True))
    apart = np.exp(log - logsumexp(log, axis=(1, 2), keepdims=True))
    both = evidence.sum(axis=0) + prior
    structure = _structure(evidence)
    laws: Floats = (
        structure[0] * alone * np.exp(shared - logsumexp(shared))
        + structure[1] * apart
        + structure[2] * np.exp(both - logsumexp(both))
    )
    return laws


def _running(logs: Floats, axis: int = 0) -> Floats:
    """Return cumulative probabilities from logarithms, ending at exactly 1."""
    weight = np.cumsum(np.exp(logs - logs.max(axis=axis, keepdims=True)), axis=axis)
    return np.asarray(weight / weight.take([-1], axis=axis))


def _pick(cumulative: Floats, uniform: Floats) -> Ints:
    return np.searchsorted(cumulative, uniform, side="right")
