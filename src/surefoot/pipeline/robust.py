"""The worst case of a credible set: a looser promise next to the certificate."""

from dataclasses import replace

import numpy as np

from surefoot._order_statistics import draws_needed, lower_rank
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.credible import credible_set
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.models import restricted
from surefoot.model.mdp import MDP
from surefoot.model.policies import AnyPolicy, check_policy
from surefoot.pipeline.model import Model
from surefoot.posterior.protocol import stream_key
from surefoot.posterior.rows import RowLayout, SomeRows
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import until_the_end

REWARD_DRAWS = 500
"""Draws of uncertain mean rewards, with one worst case for each; more for small deltas."""


def with_robust(model: Model, certificate: Certificate, rng: np.random.Generator) -> Certificate:
    """Add the policy's worst case in a credible set; a frequentist promise already is one.

    The certificate is in costs if costs were given. The policy was fixed without the draws that
    size the set, so only its own rows need a set, and one joint region covers them all: sharing
    delta over the states would need hundreds of draws for each state. If mean rewards are
    uncertain, delta and eta are shared between the set and the rewards.
    """
    if not model.bayesian or until_the_end(model.mdp):  # nature might postpone the end forever
        return certificate
    settings, mdp = model.settings, model.mdp
    rows = check_policy(mdp, certificate.policy).rows.astype(np.int64)
    entries = RowLayout.of(mdp).entries_of(rows)
    rewards = rewards_of(mdp, model.posterior, objective="max").of(entries)
    parts = 2 if rewards.uncertain.any() else 1
    delta, eta = settings.delta / parts, settings.eta / parts
    # With finitely many draws, distances must not be measured from the mean of the same draws.
    center = model.choosing.mean()[entries]
    own = restricted(mdp, rows, center, rewards)
    set_rng, reward_rng = rng.spawn(2)
    ambiguity = credible_set(
        SomeRows(model.posterior, RowLayout.of(mdp), rows), own, delta=delta, norm=settings.norm,
        weights=settings.weights, union="joint", rule="strict", eta=eta, rng=set_rng,
    )  # fmt: skip
    if parts == 1:
        worst = evaluate(own, certificate.policy, ambiguity).return_lower
    else:
        worst = _over_rewards(own, certificate.policy, ambiguity, rewards, delta, eta, reward_rng)
    worst -= certificate.taken_off
    return replace(certificate, robust_return=0.0 - worst if model.settings.costs else worst)


def _over_rewards(
    own: MDP, policy: AnyPolicy, ambiguity: AmbiguitySet, rewards: Rewards, delta: float,
    eta: float, rng: np.random.Generator,
) -> float:  # fmt: skip
    """Return the lower order statistic of worst cases over draws of the mean rewards."""
    n = max(REWARD_DRAWS, draws_needed(delta, eta))
    drawn = rewards.block(stream_key(rng), 0, n, np.arange(own.num_entries))
    worst = [
        evaluate(replace(own, reward=line, reward_per_entry=True), policy, ambiguity).return_lower
        for line in drawn
    ]
    return float(np.sort(worst)[lower_rank(n, delta, eta) - 1])
