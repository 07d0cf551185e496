"""Other methods, for comparison with ours on the same logs.

The log's own behaviour; high-confidence off-policy evaluation by importance sampling (Thomas,
Theocharous, Ghavamzadeh 2015), plain and weighted; safe policy improvement with baseline
bootstrapping (Laroche, Trichelair, Tachet des Combes 2019). RSVF sets are in `rsvf.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.bets import mean_above
from surefoot.certificates.optimize import optimize
from surefoot.certificates.policies import behaviour_policy
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import evaluate
from surefoot.studies.zoo.claims import Claim, Facts
from surefoot.studies.zoo.log_model import PRIOR, Read, read_log
from surefoot.studies.zoo.logs import ColumnArrays
from surefoot.studies.zoo.truth import Choice

Floats = NDArray[np.float64]

CHOOSING_DRAWS = 500
RESAMPLES = 1000
"""Bootstrap samples for the weighted estimate, which has no finite-sample bound."""
LEAST_COUNT = 5
"""SPIBB copies behaviour in pairs tried less often than this, as in its authors' experiments."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeSteps:
    """The episodes of a log: a lower bound on the return of each, and its steps.

    ``least`` and ``most`` are the lowest and highest possible return, from the declared range of
    rewards or, as is common practice, from the rewards seen. Steps are ``(T,)``, sorted by episode.
    """

    earned: Floats
    least: float
    most: float
    episode: NDArray[np.int64]
    state: NDArray[np.generic]
    action: NDArray[np.generic]

    @classmethod
    def of(cls, columns: ColumnArrays, facts: Facts) -> "EpisodeSteps | None":
        """Return the episodes, or None if a log has none.

        An episode that was cut off is assumed to earn the least possible from then on.
        """
        if "episode" not in columns:
            return None
        order = np.lexsort((columns["step"], columns["episode"]))
        _, episode = np.unique(columns["episode"][order], return_inverse=True)
        step, reward = columns["step"][order], columns["reward"][order].astype(np.float64)
        low, high = facts.reward_range or (float(reward.min()), float(reward.max()))
        steps = 1.0 / (1.0 - facts.discount) if facts.discount < 1 else np.inf
        least, most = (end * steps if end else 0.0 for end in (min(low, 0.0), max(high, 0.0)))
        first = np.minimum.reduceat(step, np.flatnonzero(np.diff(episode, prepend=-1)))
        past = step - first[episode]
        total = np.bincount(episode, facts.discount**past * reward)
        last = np.append(np.flatnonzero(np.diff(episode)), len(episode) - 1)
        cut = ~columns["terminal"][order][last].astype(bool)
        after = np.where(cut, facts.discount ** (past[last] + 1.0), 0.0)
        rest = after * least if least < 0 else 0.0 * after
        return cls(
            earned=total + rest, least=least, most=most, episode=episode,
            state=columns["state"][order], action=columns["action"][order],
        )  # fmt: skip


def done(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return lower bounds on the return of the log's own behaviour, from its episodes alone."""
    del rng
    seen = EpisodeSteps.of(columns, facts)
    return [
        Claim(kind="promise", value=_behaviour_lower(seen, delta), delta=delta, subject="behaviour")
        for delta in deltas
    ]


def _behaviour_lower(seen: EpisodeSteps | None, delta: float) -> float | None:
    if seen is None or not 0 < seen.most - seen.least < np.inf:
        return None
    above = seen.earned - seen.least
    return seen.least + mean_above(above, delta=delta, scale=seen.most - seen.least)


def importance(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return importance-sampling bounds on a policy chosen on the other half of the log."""
    return [_weighed(columns, facts, delta, rng)[0] for delta in deltas]


def weighted_importance(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return the same with weights that sum to 1, and a bootstrap instead of a bound."""
    return [_weighed(columns, facts, delta, rng)[1] for delta in deltas]


def _weighed(
    columns: ColumnArrays, facts: Facts, delta: float, rng: np.random.Generator
) -> tuple[Claim, Claim]:
    seen = EpisodeSteps.of(columns, facts)
    chosen = np.zeros(len(columns["state"]), dtype=np.bool_)
    if seen is not None:
        chosen = np.asarray(np.unique(columns["episode"], return_inverse=True)[1] % 2 == 0)
    choosing = {name: part[chosen] for name, part in columns.items()} if chosen.any() else columns
    read = read_log(choosing, facts, prior=PRIOR)
    posterior = DirichletPosterior(read.counts, prior=PRIOR)
    found = optimize(posterior, read.mdp, delta=delta, draws=CHOOSING_DRAWS, rng=rng)
    choice = read.choice(found.policy)
    plain = weighted = None
    if seen is not None and 0 < seen.most - seen.least < np.inf:
        judging = EpisodeSteps.of({name: part[~chosen] for name, part in columns.items()}, facts)
        if judging is not None and len(judging.earned) >= 2:
            weight = _weights(judging, seen, choice)
            plain = _plain_bound(judging, weight, delta)
            weighted = _weighted_bound(judging, weight, delta, rng)
    return (
        Claim(kind="promise", value=plain, delta=delta, subject=choice),
        Claim(kind="promise", value=weighted, delta=delta, subject=choice),
    )


def _weights(judging: EpisodeSteps, seen: EpisodeSteps, choice: Choice) -> Floats:
    """Return ``(n,)``: the likelihood ratio of policy and behaviour for each episode.

    Behaviour is estimated by the shares of actions in the whole log.
    """
    policy = np.asarray(choice.policy).astype(np.int64)
    known = np.ones(len(policy), dtype=bool) if choice.known is None else choice.known
    plays = {state: choice.actions[policy[s]] for s, state in enumerate(choice.states) if known[s]}
    pairs: dict[tuple[object, object], int] = {}
    visits: dict[object, int] = {}
    for state, action in zip(seen.state.tolist(), seen.action.tolist(), strict=True):
        pairs[state, action] = pairs.get((state, action), 0) + 1
        visits[state] = visits.get(state, 0) + 1
    weight = np.ones(len(judging.earned))
    steps = zip(
        judging.episode.tolist(), judging.state.tolist(), judging.action.tolist(), strict=True
    )
    for episode, state, action in steps:
        same = state in plays and plays[state] == action
        weight[episode] *= visits[state] / pairs[state, action] if same else 0.0
    return weight


def _plain_bound(judging: EpisodeSteps, weight: Floats, delta: float) -> float:
    above = weight * (judging.earned - judging.least)
    if judging.most <= judging.least:  # only one return is possible: nothing to bet on
        return judging.least
    return judging.least + mean_above(above, delta=delta, scale=judging.most - judging.least)


def _weighted_bound(
    judging: EpisodeSteps, weight: Floats, delta: float, rng: np.random.Generator
) -> float | None:
    if weight.sum() <= 0:
        return None
    picked = rng.multinomial(len(weight), np.full(len(weight), 1 / len(weight)), RESAMPLES)
    total = picked @ weight
    value = np.full(RESAMPLES, judging.least)
    np.divide(picked @ (weight * judging.earned), total, out=value, where=total > 0)
    return float(np.quantile(value, delta))


def spibb(
    columns: ColumnArrays, facts: Facts, deltas: Sequence[float], rng: np.random.Generator
) -> list[Claim]:
    """Return the claims of SPIBB: the bound of its theorem, and that it is no worse than behaviour.

    The promise is a lower bound on behaviour (half of delta), plus the gain in the estimated model,
    minus the theorem's penalty (the other half). The claim of a gain of at least 0 over behaviour
    is what its authors' experiments examine.
    """
    del rng
    read, seen = read_log(columns, facts, prior=None), EpisodeSteps.of(columns, facts)
    model = read.mdp
    usual = behaviour_policy(read.counts, model)
    policy = bootstrapped(read, usual)
    better = evaluate(model, policy).return_lower - evaluate(model, usual).return_lower
    subject = read.choice(policy)
    claims = []
    for delta in deltas:
        lower = _behaviour_lower(seen, delta / 2)
        less = _taken_off(model, delta / 2)
        promise = None if lower is None else lower + better - less
        claims += [
            Claim(kind="promise", value=promise, delta=delta, subject=subject),
            Claim(kind="gain", value=0.0, delta=delta, subject=subject, against="behaviour"),
        ]
    return claims


def bootstrapped(read: Read, usual: Floats) -> Floats:
    """Return the best policy that plays rarely tried pairs as often as behaviour did.

    In each state the remaining probability goes to the best action among those tried at least
    ``LEAST_COUNT`` times, by policy iteration over the mixtures of each state.
    """
    model = read.mdp
    visits = np.zeros(usual.shape)
    visits[read.counts.row_state, read.counts.row_action] = read.counts.visits
    free = np.asarray(model.available & (visits >= LEAST_COUNT))
    kept = np.where(free, 0.0, usual)
    policy = usual
    for _ in range(100):
        value = evaluate(model, policy).value
        entry = model.probability * (model.entry_reward + model.discount * value[model.successor])
        worth = np.full(usual.shape, -np.inf)
        worth[model.row_state, model.row_action] = np.add.reduceat(entry, model.row_start[:-1])
        best = np.argmax(np.where(free, worth, -np.inf), axis=1)
        better = kept.copy()
        some = free.any(axis=1)
        better[some, best[some]] += 1.0 - kept[some].sum(axis=1)
        if np.allclose(better, policy):
            break
        policy = better
    return policy


def _taken_off(model: MDP, delta: float) -> float:
    """Return ``4 Vmax/(1-discount) sqrt(2/N log(2 |S| |A| 2^|S| / delta))``, their Theorem 2."""
    largest = float(np.abs(model.reward).max()) / (1 - model.discount)
    pairs = log(2 * model.num_states * model.num_actions / delta) + model.num_states * log(2)
    return 4 * largest / (1 - model.discount) * sqrt(2 / LEAST_COUNT * pairs)
