"""Where a certificate's numbers come from: fingerprints, versions, words."""

import hashlib
from typing import Any

import numpy as np

from surefoot._version import __version__
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import model_uncertain_rewards, reward_facts
from surefoot.model.checks import name_of
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.protocol import Posterior, check_posterior
from surefoot.solvers.unseen import landing_of


def fingerprint(*arrays: Any) -> str:
    """Return a hash of arrays: their types, shapes and bits.

    Examples
    --------
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3)) != fingerprint(np.arange(4))
    True
    """
    digest = hashlib.sha256()
    for array in arrays:
        block = np.ascontiguousarray(array)
        digest.update(f"{block.dtype.str}{block.shape}".encode())
        digest.update(block.tobytes())
    return digest.hexdigest()[:32]


def model_fingerprint(mdp: MDP) -> str:
    """Return the hash of a model: rows, probabilities, rewards, discount, initial distribution."""
    return fingerprint(
        mdp.state_start, mdp.row_action, mdp.row_start, mdp.successor, mdp.probability,
        mdp.reward, mdp.discount, mdp.initial,
    )  # fmt: skip


def posterior_fingerprint(posterior: Posterior) -> str:
    """Return the hash of what a posterior knows; how sure the rewards are belongs to it."""
    rewards = () if posterior.counts is None else reward_facts(posterior.counts)
    return fingerprint(posterior_fingerprint_1(posterior), *rewards)


def posterior_fingerprint_1(posterior: Posterior) -> str:
    """Return the hash as version 0.1 made it, without how sure the rewards are."""
    return fingerprint(posterior.row_start, posterior.identity)


def posterior_words(posterior: Posterior) -> str:
    """Return what the promise is conditional on."""
    if isinstance(posterior, DirichletPosterior):
        seen = float(posterior.counts.count.sum())
        return f"Dirichlet rows, {seen:,.10g} transitions; prior {posterior.prior_words}"
    return repr(posterior)


ASSUMED = {
    "observed": "assuming no transition outside those observed",
    "action": "assuming no transition outside those observed under the same action",
    "listed": "assuming no transition outside those listed",
    "unseen": "assuming that what was never observed leads to nothing worse than the lowest "
    "reward seen",
}
"""What the sentence must add, by the support of the counts."""
LED_ON = (
    "assuming that what was never observed is no worse than the lowest reward seen, and leads to "
    "no state worse than "
)
"""The same where the model lets the unseen lead on to a state of the log."""
TAKEN = {
    ASSUMED["unseen"]: "taking what was never observed to lead to the lowest reward seen",
    LED_ON: "taking what was never observed to lead to the lowest reward seen, and then to ",
}
"""The beginnings of assumptions that say "no worse", and what a difference must say instead."""
REWARDS: dict[str, tuple[str, ...]] = {
    "normal": ("taking what single steps bring to scatter normally",),
    "seen": ("assuming that no step brings more or less than was ever seen",),
}
"""What it must add for uncertain mean rewards, by what their law rests on."""
REWARDS_EXACT = "taking the rewards of the model as exact"
"""What it must add where the posterior brings no counts, and so nothing about rewards."""
KIND_TO_COSTS = (
    "objective='min': what was never observed was given the lowest reward, which for costs is the "
    "best case. State costs as negative rewards and use objective='max', or declare the support "
    "and all rewards."
)


def assumptions_of(posterior: Posterior, mdp: MDP) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the sentence must add, and the warnings of the log."""
    counts = posterior.counts
    if counts is None:
        return (REWARDS_EXACT,), ()
    from surefoot.data.summary import warnings_of

    support = "" if counts.report is None else counts.report.support
    assumptions = assumed(support)
    if support == "unseen" and counts.unseen is not None:
        target = landing_of(mdp, counts.unseen)
        if target != counts.unseen:
            assumptions = (f"{LED_ON}{name_of(target, mdp.state_labels)}",)
    return (*assumptions, *_about_rewards(counts, mdp)), tuple(warnings_of(counts))


def _about_rewards(counts: Counts, mdp: MDP) -> tuple[str, ...]:
    """Return what the law of uncertain mean rewards rests on, where the model has any."""
    if counts.reward_mean is None or not model_uncertain_rewards(counts, mdp).any():
        return ()
    if counts.reward_model == "normal":
        return REWARDS["normal"]
    return REWARDS["seen"] if counts.reward_range is None else ()


def assumed(support: str) -> tuple[str, ...]:
    """Return what the sentence must add for a support."""
    return (ASSUMED[support],) if support in ASSUMED else ()


def of_difference(assumptions: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a sentence about the difference of two policies must add, from one about one.

    One policy may meet what was never observed more often than the other. That it leads to nothing
    worse than the lowest reward would not do here: better things might favour the other policy.
    """
    return tuple(_taken(text) for text in assumptions)


def _taken(text: str) -> str:
    for beginning, instead in TAKEN.items():
        if text.startswith(beginning):
            return instead + text.removeprefix(beginning)
    return text


def check_objective(posterior: Posterior, objective: str) -> None:
    """Refuse costs where the support was filled with the lowest reward: for costs that is kind."""
    if objective not in ("max", "min"):
        raise ValueError(f"objective={objective!r}; choose 'max' or 'min'.")
    counts = check_posterior(posterior).counts
    report = None if counts is None else counts.report
    if objective == "min" and report is not None and report.filled_low:
        raise ValueError(KIND_TO_COSTS)


def versions() -> dict[str, str]:
    """Return the versions that computed the numbers."""
    import platform

    import numba
    import scipy

    return {
        "surefoot": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
    }


def seed_of(rng: np.random.Generator) -> str:
    """Return the entropy and spawn key behind a generator, as text."""
    source = rng.bit_generator.seed_seq
    entropy = getattr(source, "entropy", None)
    key = getattr(source, "spawn_key", ())
    return f"{entropy}" + (f"/{'.'.join(map(str, key))}" if key else "")
