"""What a state that seems incomplete does to the promise, and what to do about it."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curse import curse_of_choosing
from surefoot.certificates.evidence import Tilted
from surefoot.certificates.policies import behaviour_policy
from surefoot.certificates.tilted_policies import tilted_returns
from surefoot.data.counts import Counts
from surefoot.data.followed_episodes import Paths
from surefoot.data.reward_uncertainty import negated
from surefoot.data.transitions import read_transitions
from surefoot.model.step_policy import StepPolicy
from surefoot.pipeline.model import Model, build_model, column_roles
from surefoot.pipeline.parts import LogParts, divide_log, log_of, memory_of
from surefoot.pipeline.rough_promises import about_whole
from surefoot.pipeline.settings import Settings

SIGNS = ("not_markov", "past_matters", "memory_seen")
"""The findings that call for a closer look."""
SURPRISING = 3.0
"""From this many standard errors between episodes and model on, the difference is reported."""
ENOUGH_TRIES = 20.0
"""The fewest tries per pair, on average, for which adding the previous state is tried."""
MOST_STATES = 2000
"""The most pairs of states for which it is tried."""
MOST_EPISODES = 50_000
"""The most episodes that are used."""
STILL = 0.01
"""If a check has a p-value below this, it still finds memory."""
FIRST = "(first)"
"""The label of the previous state at the first step."""

ColumnArrays = dict[str, NDArray[Any]]


def look_beyond(
    model: Model, parts: LogParts, certificate: Certificate, rng: np.random.Generator
) -> Certificate:
    """Add to a doubtful promise about rewards what episodes and the previous state say about it.

    ``model`` is that of the whole log. Episodes are compared with the model only without a horizon
    and with a discount below 1.
    """
    if not any(certificate.has(code) for code in SIGNS):
        return certificate
    paths = _paths(parts)
    policy = certificate.policy
    if paths is None or (not isinstance(policy, StepPolicy) and policy.ndim != 1):
        return certificate
    made = certificate
    if (
        model.mdp.horizon is None
        and model.mdp.discount < 1.0
        and not isinstance(policy, StepPolicy)
    ):
        tilted = _tilted(model, paths, policy)
        made = replace(certificate, tilted=tilted).adding(*_told(tilted))
    return made.adding(*_with_previous(model, paths, rng))


def _paths(parts: LogParts) -> Paths | None:
    """Return the episodes of the largest file; None if no episode can be followed."""
    found = [one.paths for one in parts.episodes if len(one.paths.entry)]
    if not found:
        return None
    paths = max(found, key=lambda one: len(one.entry))
    kept = min(len(paths.bucket), MOST_EPISODES)  # sorted by hash, so these are random ones
    end = int(paths.start[kept])
    return Paths(
        start=paths.start[: kept + 1], entry=paths.entry[:end], reward=paths.reward[:end],
        bucket=paths.bucket[:kept],
    )  # fmt: skip


def _tilted(model: Model, paths: Paths, policy: NDArray[Any]) -> tuple[Tilted, ...]:
    """Compare episodes with a model of the plain frequencies of the log, without guesses."""
    counts = negated(model.counts) if model.settings.costs else model.counts
    seen = counts.on_support("observed")
    steps = np.diff(paths.start) > 0
    first = model.counts.entry_state[paths.entry[paths.start[:-1][steps]]]
    initial = np.bincount(first, minlength=seen.num_states) / len(first)
    mdp = seen.to_mdp(discount=model.mdp.discount, initial=initial)
    actions = counts.num_actions
    keys = mdp.row_state * actions + mdp.row_action
    wanted = counts.entry_state[paths.entry] * actions + counts.entry_action[paths.entry]
    sign = -1.0 if model.settings.costs else 1.0
    return tilted_returns(
        mdp, behaviour_policy(seen, mdp), np.asarray(policy[: mdp.num_states], dtype=np.int64),
        start=paths.start, row=np.searchsorted(keys, wanted), reward=sign * paths.reward,
        successor=counts.successor[paths.entry].astype(np.int64),
    )  # fmt: skip


def _told(tilted: tuple[Tilted, ...]) -> list[Finding]:
    reached = [one for one in tilted if one.share > 0]
    if not reached:
        return []
    worst = max(reached, key=lambda one: abs(one.surprise))
    if abs(worst.surprise) < SURPRISING:
        return [Finding.of("tilted_agrees", share=f"{100 * reached[-1].share:.0f}%")]
    told = {"log": worst.log, "error": worst.error, "model": worst.model}
    return [Finding.of("tilted_differs", share=f"{100 * worst.share:.0f}%", **told)]


def _with_previous(model: Model, paths: Paths, rng: np.random.Generator) -> list[Finding]:
    """Return roughly what the log would promise if its states included the previous state."""
    settings = model.settings
    files = (settings.support, settings.allowed, settings.reward_table, settings.final_reward)
    own = all(name is None for name in files)  # files do not name such states
    if model.own is not None or settings.by_step:  # a user's posterior may not handle them
        return []
    if not own or settings.initial not in (None, "episodes") or model.counts.declared:
        return []
    columns = with_previous_state(model.counts, paths)
    pairs = len(set(zip(*(columns[n] for n in ("before", "state", "action")), strict=True)))
    states = len(set(zip(columns["before"], columns["state"], strict=True)))
    tried = len(paths.entry) / pairs
    if tried < ENOUGH_TRIES or states > MOST_STATES:
        return [Finding.of("previous_state_too_thin", pairs=pairs, tried=tried)]
    larger = Settings(
        state=("before", "state"), next_state=("now", "after"), action=("action",), reward="reward",
        episode="episode", step="step", terminal="terminal", discount=settings.discounted,
        horizon=settings.horizon, stationary=settings.stationary, delta=settings.delta,
        eta=settings.eta, seed=settings.seed, costs=settings.costs,
        rewards=settings.rewards, reward_range=settings.reward_range, prior=settings.prior,
        unseen=settings.unseen, min_visits=settings.min_visits, unvisited=settings.unvisited,
    )  # fmt: skip
    counts = read_transitions(
        columns, **column_roles(larger), rewards=larger.rewards,  # type: ignore[arg-type]
        reward_range=larger.reward_range or None,  # type: ignore[arg-type]
    )  # fmt: skip
    return _promised(build_model(larger, counts), divide_log(larger, counts, (columns,)), rng)


def _promised(model: Model, parts: LogParts, rng: np.random.Generator) -> list[Finding]:
    log = log_of(model, parts.buckets)
    if log is None:
        return []
    promise = about_whole(model, log, curse_of_choosing(log, seed=model.settings.seed), rng)
    if promise is None:
        return []
    memory = memory_of(model, parts)
    found = [check.p_value for check in model.counts.checks if check.name == "memory"]
    values = [p for p in (*found, None if memory is None else memory.p_value) if p is not None]
    told: dict[str, Any] = {"states": model.counts.num_states, "promise": promise}
    least = min(values, default=None)
    if least is not None and least < STILL:
        return [Finding.of("previous_state_not_enough", **told)]
    return [Finding.of("previous_state_helps", **told, p_value=least)]


def with_previous_state(counts: Counts, paths: Paths) -> ColumnArrays:
    """Return episodes as columns of a log whose states are (previous state, state)."""
    labels = np.array(
        [str(label) for label in counts.state_labels or range(counts.num_states)], dtype=object
    )
    actions = np.array(
        [str(label) for label in counts.action_labels or range(counts.num_actions)], dtype=object
    )
    lengths = np.diff(paths.start)
    state, following = counts.entry_state[paths.entry], counts.successor[paths.entry]
    before = np.append(FIRST, labels[state][:-1]).astype(object)
    before[paths.start[:-1][lengths > 0]] = FIRST
    return {
        "episode": np.repeat(np.arange(len(lengths)), lengths),
        "step": np.arange(len(state)) - np.repeat(paths.start[:-1], lengths),
        "before": before,
        "state": labels[state],
        "action": actions[counts.entry_action[paths.entry]],
        "reward": np.asarray(paths.reward),
        "now": labels[state],
        "after": labels[following],
        "terminal": counts.is_terminal[following],
    }
