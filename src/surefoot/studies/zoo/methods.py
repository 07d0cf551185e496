"""The methods that the zoo judges, by name.

The first is what a run does today, through the pipeline; the others are for comparison. A new
method is one function and one line in :data:`METHODS`; nothing else here depends on how promises
are made.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._arguments import check_listed
from surefoot.calibration.frequentist import frequentist_set
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.comparison import compare
from surefoot.certificates.frequentist import certify_frequentist
from surefoot.certificates.optimize import Result, optimize
from surefoot.certificates.policies import behaviour_policy
from surefoot.certificates.usual import chosen_at
from surefoot.data.transitions import read_transitions
from surefoot.pipeline.model import Model, build_model, column_roles
from surefoot.pipeline.parts import LogParts, divide_log, log_of
from surefoot.pipeline.promises import difference, find
from surefoot.pipeline.settings import Settings
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import solve
from surefoot.studies.zoo import baselines
from surefoot.studies.zoo.claims import Claim, ClaimMaker, Facts
from surefoot.studies.zoo.log_model import PRIOR, Read, first_states, read_log
from surefoot.studies.zoo.logs import ColumnArrays
from surefoot.studies.zoo.rsvf import rsvf

DRAWS, LARGE_DRAWS, LARGE = 1000, 500, 100
"""Posterior draws of a replication, and the smaller number for models with more than `LARGE`
states: enough for strict ranks at delta .05, and fast."""


def version_0_1(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return the sentences of version 0.1 with its defaults: promise, limit, gain, difference.

    The difference compares with the most frequent action of every state, a common rule of thumb.
    The limit ("no policy can be promised more") is false if the policy earns more in more than
    ``1 - delta`` of all cases, so that is its level.
    """
    read = read_log(columns, facts, prior=PRIOR)
    return [claim for delta in deltas for claim in _claims_0_1(read, delta, rng)]


def _claims_0_1(read: Read, delta: float, rng: np.random.Generator) -> list[Claim]:
    posterior, mdp = DirichletPosterior(read.counts, prior=PRIOR), read.mdp
    draws = DRAWS if mdp.num_states <= LARGE else LARGE_DRAWS
    result = optimize(posterior, mdp, delta=delta, draws=draws, rng=rng)
    done = behaviour_policy(read.counts, mdp)
    usual = np.argmax(np.where(mdp.available, done, -1.0), axis=1)
    policy, thumb = read.choice(result.policy), read.choice(usual)

    def better(other: NDArray[Any]) -> float:
        made = compare(result.policy, other, posterior, mdp, delta=delta, draws=draws, rng=rng)
        return made.difference_lower_bound

    certificate, exempt = result.certificate, read.within_range_seen
    return [
        Claim(kind="promise", value=certificate.lower_bound, delta=delta, subject=policy,
              exempt=exempt),
        Claim(kind="upper", value=certificate.upper_bound, delta=delta, subject=policy,
              at_most=True, level=1 - delta, exempt=exempt),
        Claim(kind="gain", value=better(done), delta=delta, subject=policy, against="behaviour",
              exempt=exempt),
        Claim(kind="difference", value=better(usual), delta=delta, subject=policy, against=thumb,
              exempt=exempt),
    ]  # fmt: skip


def frequentist(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return the promise without a prior, as a run makes it: the worst case over a box."""
    del rng
    read = read_log(columns, facts, prior=None)
    claims = []
    for delta in deltas:
        ambiguity = frequentist_set(read.counts, read.mdp, delta=delta, kind="clopper_pearson")
        policy = solve(read.mdp, ambiguity).policy
        certificate = certify_frequentist(policy, ambiguity, read.mdp)
        claims.append(
            Claim(kind="frequentist promise", value=certificate.lower_bound, delta=delta,
                  subject=read.choice(policy), exempt=read.within_range_seen)
        )  # fmt: skip
    return claims


def default(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return the sentences of runs with today's defaults, through the pipeline itself.

    All runs have the same seed, so they share the reading of the log, its division into parts and,
    where policies are chosen for the same delta, the search.
    """
    has_episodes = "episode" in columns
    settings = Settings(
        discount=facts.discount, horizon=facts.horizon, seed=int(rng.integers(2**31)),
        terminal="terminal",
        episode="episode" if has_episodes else None, step="step" if has_episodes else None,
        reward_range=facts.reward_range or (),
    )  # fmt: skip
    counts = read_transitions(columns, **column_roles(settings), reward_range=facts.reward_range)
    if facts.support is not None:
        counts = counts.on_support(facts.support, steady=True)
    model = build_model(settings, counts, first_states(counts, facts))
    parts = divide_log(settings, counts, (columns,))
    draws = DRAWS if model.mdp.num_states <= LARGE else LARGE_DRAWS
    claims, asked = [], model
    searched: dict[float, Result] = {}
    for delta in deltas:
        asked = asked.at(replace(settings, delta=delta, draws=draws))
        aim = chosen_at(delta)
        found = find(asked, parts, lambda *_: None, in_full=False, searched=searched.get(aim))
        searched[aim] = found
        claims += _claims(asked, found.certificate, parts)
    return claims


def _claims(model: Model, certificate: Certificate, parts: LogParts) -> list[Claim]:
    read = Read(counts=model.placed, mdp=model.mdp)
    delta, policy = certificate.delta, read.choice(certificate.policy)
    usual = np.argmax(np.where(model.mdp.available, model.behaviour, -1.0), axis=1)
    log = log_of(model, parts.buckets)
    made = difference(model, certificate.policy, usual, certificate.curse, log)
    better = made.difference_lower_bound
    gained = None if certificate.gain is None else certificate.gain.lower_bound
    common: dict[str, Any] = {
        "delta": delta, "subject": policy, "exempt": read.within_range_seen,
        "steps": certificate.horizon,
    }  # fmt: skip

    def stated(value: float | None) -> float | None:
        return None if certificate.withheld else value

    return [
        Claim(kind="promise", value=stated(certificate.lower_bound), **common),
        Claim(kind="upper", value=stated(certificate.upper_bound), at_most=True, level=1 - delta,
              **common),
        Claim(kind="gain", value=stated(gained), against="behaviour", **common),
        Claim(kind="difference", value=stated(better), against=read.choice(usual), **common),
    ]  # fmt: skip


METHODS: dict[str, ClaimMaker] = {
    "default": default,
    "0.1": version_0_1,
    "frequentist": frequentist,
    "behaviour": baselines.done,
    "importance": baselines.importance,
    "weighted-importance": baselines.weighted_importance,
    "spibb": baselines.spibb,
    "rsvf": rsvf,
}


def find_method(name: str) -> ClaimMaker:
    """Return the method of that name.

    Examples
    --------
    >>> find_method("0.1") is version_0_1
    True
    """
    check_listed("method", name, METHODS)
    return METHODS[name]
