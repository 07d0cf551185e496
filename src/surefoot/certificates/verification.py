"""Check a certificate on draws that were not used to make it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from surefoot._cluster_argument import on_cluster
from surefoot._display import Shown
from surefoot._order_statistics import draws_needed
from surefoot.certificates import draw_plan, provenance
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.limit import DETERMINISTIC
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior, at_most
from surefoot.solvers.evaluation.returns import ReturnDraws, policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.gpu.choice import choose_engine


@dataclass(frozen=True, kw_only=True, repr=False)
class Verification(Shown):
    """Whether a certificate stands on new draws.

    Attributes
    ----------
    stands
        The verdict.
    message
        The verdict in words.
    below, draws
        How many of the new draws fell below the promise, and how many there were.
    p_value
        The probability of that many or more if the promise is right; at eta or less the certificate
        does not stand.

    Examples
    --------
    >>> Verification(
    ...     stands=True, message="The certificate stands.", below=75, draws=2000, p_value=0.99
    ... )
    Verification(stands, 75 of 2,000 new draws fall short)
    """

    stands: bool
    message: str
    below: int
    draws: int
    p_value: float

    def _headline(self) -> str:
        return self.message

    def _facts(self) -> list[tuple[str, str]]:
        if not self.draws:
            return []
        return [("probability of that many or more if the promise is right", f"{self.p_value:.2g}")]

    def __repr__(self) -> str:
        found = f", {self.below:,} of {self.draws:,} new draws fall short" if self.draws else ""
        return f"Verification({'stands' if self.stands else 'does not stand'}{found})"


@on_cluster
def verify(
    certificate: Certificate,
    posterior: Posterior,
    mdp: MDP,
    *,
    rng: np.random.Generator | None = None,
    draws: int | None = None,
    final_reward: ArrayLike | None = None,
    cluster: str | None = None,  # noqa: ARG001
    device: str = "auto",
) -> Verification:
    """Check a certificate on new draws, independent of those it was made from.

    The certificate does not stand if so many new returns lie below the promise that this has a
    probability of at most eta when the promise is right, ``P[Bin(n, delta) >= below] <= eta``; or
    if so few of them lie below the limit that this policy alone can be promised more,
    ``P[Bin(n, delta) <= below] <= eta``. A posterior of finitely many draws has no new ones; the
    message says so. A certificate over a horizon is checked over the same horizon; ``final_reward``
    is the one it was made with. The new draws are made on the given ``device``, whichever device
    made the certificate, or shared among the workers of a ``cluster``, as by `certify`.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import DirichletPosterior, certify, riverswim, solve, verify
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> certificate = certify(
    ...     solve(mdp).policy, posterior, mdp, draws=2000, rng=np.random.default_rng(1)
    ... )
    >>> verify(certificate, posterior, mdp).stands
    True
    """
    if mdp.horizon is None and certificate.horizon is not None:
        mdp = mdp.over(certificate.horizon, final_reward)
    wrong = _mismatch(certificate, posterior, mdp) or _senseless(certificate)
    if wrong is not None:
        message = f"The certificate does not stand: {wrong}."
        return Verification(stands=False, message=message, below=0, draws=0, p_value=0.0)
    source = np.random.default_rng() if rng is None else rng
    n = certificate.draws if draws is None else draws
    n = at_most(posterior, n)
    n = draw_plan.check_draws(posterior, n, certificate.delta, certificate.eta)
    rows = check_policy(mdp, certificate.policy)
    rewards = rewards_of(mdp, posterior, objective=certificate.objective)
    chosen = choose_engine(device, mdp, posterior)
    returns = policy_returns(posterior, mdp, rows, n, source, rewards=rewards, engine=chosen.engine)
    promise = certificate.promise if certificate.objective == "max" else -certificate.promise
    below = int(np.count_nonzero(returns.upper < promise))
    p_value = float(binom.sf(below - 1, n, certificate.delta))
    ordered = certificate.lower_bound <= certificate.upper_bound
    exceeded = _limit_exceeded(certificate, returns, rows.rows)
    stands = p_value > certificate.eta and ordered and not exceeded
    which = f"new draws{chosen.place}"
    if posterior.num_draws is not None:
        which = "draws (this posterior has no new ones)"
    words = (
        f"{below:,} of {n:,} {which} fall short of the promise ({below / n:.2%}; "
        f"{100 * certificate.delta:.4g}% may)"
    ) + ("" if ordered else "; the lower bound lies above the upper one")
    if exceeded:
        words += "; this policy alone can be promised more than the limit"
    verdict = "The certificate stands" if stands else "The certificate does not stand"
    return Verification(
        stands=stands, message=f"{verdict}: {words}.", below=below, draws=n, p_value=p_value
    )


def _limit_exceeded(
    certificate: Certificate, returns: ReturnDraws, played: NDArray[np.uint64]
) -> bool:
    """Return whether new draws of the policy contradict the limit, if the limit covers it."""
    policy = certificate.policy
    mixed = isinstance(policy, np.ndarray) and len(played) > len(policy)
    if mixed and certificate.scope.startswith(DETERMINISTIC):
        return False
    limit = certificate.upper_bound if certificate.objective == "max" else -certificate.lower_bound
    below = int(np.count_nonzero(returns.lower <= limit))
    return bool(binom.cdf(below, len(returns.lower), certificate.delta) <= certificate.eta)


def _senseless(certificate: Certificate) -> str | None:
    """Return what is impossible about a certificate, or None."""
    if certificate.objective not in ("max", "min"):
        return f"objective is {certificate.objective!r}"
    for name in ("delta", "eta"):
        if not 0 < getattr(certificate, name) <= 0.5:
            return f"{name} is {getattr(certificate, name)!r}"
    needed = draws_needed(certificate.delta, certificate.eta)
    if not certificate.draws >= needed:
        return f"it rests on {certificate.draws} draws, but at least {needed} are needed"
    if np.isnan(certificate.lower_bound) or np.isnan(certificate.upper_bound):
        return "one of its bounds is not a number"
    return None


def _mismatch(certificate: Certificate, posterior: Posterior, mdp: MDP) -> str | None:
    if certificate.basis != "bayesian":
        return "it is not based on a posterior"
    if certificate.data_fingerprint == provenance.posterior_fingerprint_1(posterior):
        return "it was made by version 0.1, whose fingerprint of the data leaves out the rewards"
    for what, mine, other in (
        ("data", certificate.data_fingerprint, provenance.posterior_fingerprint(posterior)),
        ("model", certificate.model_fingerprint, provenance.model_fingerprint(mdp)),
    ):
        if mine != other:
            return f"it was made for other {what} ({mine})"
    return None
