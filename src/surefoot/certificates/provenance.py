"""Where a certificate's numbers come from: fingerprints, versions, assumptions."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from surefoot._arguments import check_choice
from surefoot._findings import Finding
from surefoot._fingerprint import fingerprint
from surefoot._version import __version__
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import (
    model_uncertain_rewards,
    reward_facts,
    rewards_taken_as_seen,
)
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.protocol import Posterior, check_posterior
from surefoot.solvers.unseen import landing_of, least_rewards


def model_fingerprint(mdp: MDP) -> str:
    """Return the hash of a model: rows, probabilities, rewards, discount, initial, horizon."""
    steps = () if mdp.horizon is None else (mdp.horizon,)
    final = () if mdp.final_reward is None else (mdp.final_reward,)
    return fingerprint(
        mdp.state_start, mdp.row_action, mdp.row_start, mdp.successor, mdp.probability,
        mdp.reward, mdp.discount, mdp.initial, *steps, *final,
    )  # fmt: skip


def posterior_fingerprint(posterior: Posterior) -> str:
    """Return the hash of a posterior, including how certain its rewards are."""
    rewards = () if posterior.counts is None else reward_facts(posterior.counts)
    return fingerprint(posterior_fingerprint_1(posterior), *rewards)


def posterior_fingerprint_1(posterior: Posterior) -> str:
    """Return the hash as version 0.1 made it, without how certain the rewards are."""
    return fingerprint(posterior.row_start, posterior.identity)


def posterior_words(posterior: Posterior) -> str:
    """Return the posterior that the promise is conditional on, in words."""
    if isinstance(posterior, DirichletPosterior | LearnedPosterior):
        seen = float(posterior.counts.count.sum())
        return f"Dirichlet rows, {seen:,.10g} transitions; prior {posterior.prior_words}"
    kind = type(posterior)
    # The default repr of an object contains its address, which changes from run to run.
    return kind.__name__ if kind.__repr__ is object.__repr__ else repr(posterior)


ASSUMED = {
    "observed": "support_observed",
    "action": "support_action",
    "listed": "support_listed",
    "unseen": "unseen_no_worse",
    "learned": "unseen_learned",
}
"""What a promise assumes, by the support of the counts."""
REWARDS = {"normal": "rewards_normal", "seen": "rewards_within_seen"}
"""The assumption about uncertain mean rewards, by the basis of their distribution."""
KIND_TO_COSTS = (
    "objective='min': what was never observed was given the lowest reward, which for costs is the "
    "best case. State costs as negative rewards and use objective='max', or declare the support "
    "and all rewards."
)


def findings_of(posterior: Posterior, mdp: MDP) -> tuple[Finding, ...]:
    """Return what a promise about a model assumes, and the findings about its log."""
    counts = posterior.counts
    if counts is None:
        return (Finding.of("posterior_without_counts"),)
    support = "" if counts.report is None else counts.report.support
    found = assumed(support, declared=counts.reward_range is not None)
    if support in ("unseen", "learned") and counts.unseen is not None:
        worst = _worst_case(counts, mdp, counts.unseen)
        found = tuple(replace(one, values={**worst, **one.values}) for one in found)
    return (*found, *_about_rewards(counts, mdp), *counts.findings)


def _worst_case(counts: Counts, mdp: MDP, unseen: int) -> dict[str, str]:
    """Return the state that the unseen leads to, and the kind of step that it takes, in words."""
    target = landing_of(mdp, unseen)
    if target == unseen:
        return {}
    if least_rewards(counts).differ:
        if counts.is_terminal[target]:
            return {"kind": "end"}
        return {"state": mdp.state_name(target), "kind": "on"}
    return {"state": mdp.state_name(target)}


def _about_rewards(counts: Counts, mdp: MDP) -> tuple[Finding, ...]:
    """Return what is assumed about rewards: exact ones, and the distribution of the others."""
    exact = (Finding.of("rewards_as_seen"),) if rewards_taken_as_seen(counts) else ()
    if counts.reward_mean is None or not model_uncertain_rewards(counts, mdp).any():
        return exact
    if counts.reward_model == "normal":
        return (*about_reward_law("normal"), *exact)
    return (*about_reward_law("seen" if counts.reward_range is None else "bounded"), *exact)


def about_reward_law(law: str) -> tuple[Finding, ...]:
    """Return what a distribution of uncertain mean rewards assumes."""
    return (Finding.of(REWARDS[law]),) if law in REWARDS else ()


def assumed(support: str, *, declared: bool = False) -> tuple[Finding, ...]:
    """Return what a promise on a support assumes; ``declared``: the reward range was declared."""
    if support not in ASSUMED:
        return ()
    ends = {"declared": True} if declared and support in ("unseen", "learned") else {}
    return (Finding.of(ASSUMED[support], **ends),)


def of_difference(findings: Iterable[Finding], *, both_ways: bool = False) -> tuple[Finding, ...]:
    """Return what a bound on a difference assumes, from the findings of a promise about one policy.

    One policy may meet the unseen more often than the other. The assumption that the unseen is no
    worse than the lowest reward is not enough here: a better outcome might favour the other policy.
    So the unseen is taken to be exactly that bad; with ``both_ways`` it is taken at its worst for
    the first policy and at its best for the second.
    """
    unseen = ("unseen_no_worse", "unseen_learned")
    made = []
    for found in findings:
        if found.level != "assumption":
            continue
        if found.code in unseen and both_ways:
            made.append(Finding.of("unseen_both_ways"))
        elif found.code in unseen:
            made.append(replace(found, code="unseen_taken"))
        else:
            made.append(found)
    return tuple(made)


def check_objective(posterior: Posterior, objective: str) -> None:
    """Refuse costs if the unseen was given the lowest reward, the best case for costs."""
    check_choice("objective", objective, ("max", "min"))
    counts = check_posterior(posterior).counts
    report = None if counts is None else counts.report
    check_costs(objective, filled_low=report is not None and report.filled_low)


def check_costs(objective: str, *, filled_low: bool) -> None:
    """Refuse an unknown objective, and costs where the unseen was given the lowest reward."""
    check_choice("objective", objective, ("max", "min"))
    if objective == "min" and filled_low:
        raise ValueError(KIND_TO_COSTS)


def versions() -> dict[str, str]:
    """Return the versions of the software that computed the numbers."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"surefoot": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "scipy"):
        with suppress(PackageNotFoundError):  # machines with a GPU may have no numba
            found[name] = version(name)
    return found


def seed_of(rng: np.random.Generator) -> str:
    """Return the entropy and spawn key behind a generator, as text."""
    source = rng.bit_generator.seed_seq
    entropy = getattr(source, "entropy", None)
    key = getattr(source, "spawn_key", ())
    return f"{entropy}" + (f"/{'.'.join(map(str, key))}" if key else "")
