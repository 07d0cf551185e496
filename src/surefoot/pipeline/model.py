"""From the counts of a log to the model, the posterior or the set that promises rest on."""

import difflib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.frequentist import frequentist_set, split_counts
from surefoot.certificates.policies import behaviour_policy, read_lines
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import negated
from surefoot.data.step_layers import apart
from surefoot.data.support import LEARNED
from surefoot.data.transitions import read_transitions
from surefoot.model.checks import name_of
from surefoot.model.mdp import MDP
from surefoot.pipeline.settings import Settings, read_twice
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior

Floats = NDArray[np.float64]


class _Turns(Protocol):
    """Something about rewards that can be said about costs instead."""

    def mirrored(self) -> Any:
        """Return it about the other."""


Mirrored = TypeVar("Mirrored", bound=_Turns)


def read_log(settings: Settings) -> Counts:
    """Read all logs of the settings with the same columns, and add them up."""
    if not settings.log:
        raise ValueError("no log was given: name a CSV or Parquet file, a folder or a glob.")

    total: Counts | None = None
    for path in settings.log:
        source, roles = source_of(settings, path)
        counts = read_transitions(
            source,
            **roles,
            count=settings.count,
            labels=settings.labels,  # type: ignore[arg-type]
            rewards=settings.rewards,  # type: ignore[arg-type]
            reward_range=settings.reward_range or None,  # type: ignore[arg-type]
        )
        if settings.reward_table:
            counts = counts.with_rewards(settings.reward_table)
        total = counts if total is None else total + counts
    if total is None:  # there is at least one log
        raise ValueError("no log was given.")
    twice = read_twice(settings)
    if twice and total.log is not None:
        found = Finding.of("read_twice", file=str(twice[0]), more=len(twice) - 1)
        total = replace(total, log=replace(total.log, findings=(*total.log.findings, found)))
    return total


def source_of(settings: Settings, log: Any) -> tuple[Any, dict[str, Any]]:
    """Return a log and the roles of its columns; with steps apart, states carry theirs."""
    roles = column_roles(settings)
    if not settings.by_step:
        return log, roles
    return apart(log, settings.horizon or 1, **roles)


def column_roles(settings: Settings) -> dict[str, Any]:
    """Return which columns of the log play which role, as readers take them."""

    def one(names: tuple[str, ...]) -> Any:
        return names[0] if len(names) == 1 else list(names)

    columns: dict[str, Any] = {
        name: one(getattr(settings, name))
        for name in ("state", "action", "next_state")
        if getattr(settings, name)
    }
    return columns | {
        "reward": None if settings.reward_table else settings.reward,
        "episode": settings.episode,
        "step": settings.step,
        "terminal": settings.terminal,
        "missing": settings.missing,
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """What promises rest on. With costs, ``placed`` and all that follows are in negative costs.

    Attributes
    ----------
    settings
        What was asked for.
    counts
        The log as it was read.
    placed
        The counts on all successors that are taken to be possible.
    mdp
        The model: posterior means, or observed frequencies.
    """

    settings: Settings
    counts: Counts
    placed: Counts
    mdp: MDP

    def shown(self, made: Mirrored) -> Mirrored:
        """Return what was made from this model in the units of the log, and the other way round."""
        return made.mirrored() if self.settings.costs else made

    @property
    def bayesian(self) -> bool:
        """Whether promises rest on a prior."""
        return self.settings.basis == "bayesian"

    @cached_property
    def posterior(self) -> DirichletPosterior | LearnedPosterior:
        """What prior and data say."""
        if self.settings.prior is None:
            return LearnedPosterior(self.placed)
        return DirichletPosterior(self.placed, prior=self.settings.prior)

    @cached_property
    def behaviour(self) -> Floats:
        """``(S, A)``: how often the log took each of the model's actions."""
        return behaviour_policy(self.placed, self.mdp)

    @cached_property
    def passive(self) -> NDArray[np.bool_]:
        """``(S,)``: states in which there is nothing to decide: terminal, unseen, never left."""
        mdp = self.mdp
        alone = np.diff(mdp.state_start) == 1
        first = mdp.state_start[:-1]
        loop = mdp.successor[mdp.row_start[first]] == np.arange(mdp.num_states)
        single = np.diff(mdp.row_start)[first] == 1
        passive = np.asarray(alone & loop & single & (self.placed.visits[first] == 0))
        if self.placed.unseen is not None:
            passive[self.placed.unseen] = True
        return passive

    @cached_property
    def allowed(self) -> NDArray[np.bool_] | None:
        """``(S, A)``: the pairs that the policy may use; None for all."""
        if self.settings.allowed is None:
            return None
        return read_allowed(self.settings.allowed, self.mdp, self.passive)


def place(settings: Settings, counts: Counts) -> Counts:
    """Return the counts on all successors taken to be possible; costs become negative rewards.

    This is the only place where costs change their sign on the way in; `Model.shown` is the way
    out. What a log never showed is given its lowest reward, so that costs must be turned first.
    """
    signed = negated(counts) if settings.costs and counts.has_rewards else counts
    support = settings.support
    learned = settings.prior is None and settings.basis == "bayesian"
    if support is None and learned and not counts.declared:
        support = LEARNED
    elif settings.basis == "frequentist" and support in ("observed", "action"):
        raise ValueError(
            f"support={support!r} is read off the log, and no frequentist bound holds for it. Name "
            "a file that lists the successors, or leave it out: then the mass of what was never "
            "seen is bounded too."
        )
    elif support == LEARNED and not learned:
        raise ValueError(
            "support='learned' goes with a learned prior. Leave out prior= and basis=, or choose "
            "another support."
        )
    return signed.on_support(support, settings.unvisited, settings.min_visits)


def build_model(settings: Settings, counts: Counts, first: Floats | None = None) -> Model:
    """Choose the successors, and make the model of them.

    ``first`` is the distribution of the first state where no file or rule gives it.
    """
    if not counts.has_rewards:
        raise ValueError(
            "the log has no rewards. Name their column with --reward, or give a file of rewards "
            "with --reward-table."
        )
    placed = place(settings, counts)
    initial: Any = settings.initial if first is None else first
    if isinstance(initial, str) and initial not in ("episodes", "uniform"):
        initial = read_initial(initial, placed)
    options: dict[str, Any] = {
        "discount": settings.discounted, "initial": initial, "horizon": settings.horizon,
        "final_reward": final_of(settings, placed),
    }  # fmt: skip
    if settings.basis == "bayesian" and settings.prior is None:
        mdp = LearnedPosterior(placed).to_mdp(**options, unseen=settings.unseen)
    else:
        prior = settings.prior if settings.basis == "bayesian" else None
        mdp = placed.to_mdp(**options, prior=prior, unseen=_unseen(settings))
    return Model(settings=settings, counts=counts, placed=placed, mdp=mdp)


def _unseen(settings: Settings) -> str | None:
    """Return where the unseen leads; a promise without a prior takes no guess."""
    if settings.basis == "frequentist" and settings.unseen == "worst":
        raise ValueError(
            "unseen='worst' is a guess from the posterior mean, which a frequentist promise does "
            "without. Leave it out, or use basis='bayesian'."
        )
    return settings.unseen


def frequentist(model: Model) -> tuple[MDP, AmbiguitySet]:
    """Return the set that holds the true model with probability 1-delta, and its centre.

    Weights other than uniform are chosen on one half of the log and the set is sized on the other;
    which half a transition goes to depends on the seed.
    """
    settings, placed, mdp = model.settings, model.placed, model.mdp
    kind = settings.kind
    if kind is None:
        kind = "clopper_pearson"
        if settings.norm != "l1" or settings.weights != "uniform":
            kind = {"l1": "weighted_l1", "linf": "hoeffding_linf"}[settings.norm]
    if settings.weights == "uniform":
        return mdp, frequentist_set(placed, mdp, delta=settings.delta, kind=kind)
    rng = np.random.default_rng([settings.seed, 1])
    choosing, sizing = split_counts(placed, rng)
    options: dict[str, Any] = {
        "discount": settings.discounted, "initial": mdp.initial, "horizon": mdp.horizon,
        "final_reward": mdp.final_reward,
    }  # fmt: skip
    center = sizing.to_mdp(**options)
    made = frequentist_set(
        sizing, center, delta=settings.delta, kind=kind, weights=settings.weights,
        shape=choosing.to_mdp(**options),
    )  # fmt: skip
    return center, made


def read_initial(path: str, placed: Counts) -> Floats:
    """Read the distribution of the first state from CSV: columns state, probability."""
    if not Path(path).is_file():
        raise ValueError(
            f"initial={path!r}; it must be 'episodes', 'uniform' or a CSV file with the columns "
            "state and probability."
        )
    ids = _ids(placed.state_labels, placed.num_states)
    initial = np.zeros(placed.num_states)
    for place, line in read_lines(Path(path), ("state", "probability")):
        state = _find(ids, line["state"], "state", place)
        try:
            initial[state] += float(line["probability"])
        except ValueError:
            raise ValueError(f"{place}: {line['probability']!r} is not a number.") from None
    below = np.flatnonzero(~(initial >= 0))
    if len(below):
        raise ValueError(
            f"{path}: the probability of state {name_of(int(below[0]), placed.state_labels)} is "
            f"{initial[below[0]]:g}; probabilities are 0 or more."
        )
    if not abs(initial.sum() - 1.0) < 1e-6:
        raise ValueError(f"{path}: the probabilities sum to {initial.sum():g}; they must sum to 1.")
    return np.asarray(initial / initial.sum())


def final_of(settings: Settings, counts: Counts) -> Floats | None:
    """Return ``(S,)``: what states are worth after the last step, in rewards; None for nothing.

    Where the unseen leads at the end is taken to be worth as little as anything.
    """
    if settings.final_reward is None:
        return None
    final = read_final(settings.final_reward, counts, by_step=settings.by_step)
    final = -final if settings.costs else final
    if counts.unseen is not None:
        final[counts.unseen] = final.min()
    return final


def read_final(path: str, counts: Counts, *, by_step: bool = False) -> Floats:
    """Read what states are worth after the last step from CSV: columns state, reward."""
    labels = counts.state_labels or tuple(range(counts.num_states))
    names = [str(without_step(label) if by_step else label) for label in labels]
    final = np.zeros(counts.num_states)
    for place, line in read_lines(Path(path), ("state", "reward")):
        _find(dict.fromkeys(names, 0), line["state"], "state", place)
        try:
            worth = float(line["reward"])
        except ValueError:
            raise ValueError(f"{place}: {line['reward']!r} is not a number.") from None
        if not np.isfinite(worth):
            raise ValueError(f"{place}: the final reward is {line['reward']}; it must be finite.")
        final[[name == line["state"] for name in names]] = worth
    return final


def without_step(label: Any) -> Any:
    """Return the label of a state that carries its step without that.

    Examples
    --------
    >>> without_step(("mild", 3)), without_step(("mild", "old", 3)), without_step("unseen")
    ('mild', ('mild', 'old'), 'unseen')
    """
    if not isinstance(label, tuple):
        return label
    return label[0] if len(label) == 2 else label[:-1]


def read_allowed(path: str, mdp: MDP, passive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Read the pairs a policy may use from CSV: columns state, action. Passive states need none."""
    allowed = np.zeros((mdp.num_states, mdp.num_actions), dtype=np.bool_)
    states = _ids(mdp.state_labels, mdp.num_states)
    actions = _ids(mdp.action_labels, mdp.num_actions)
    for place, line in read_lines(Path(path), ("state", "action")):
        state = _find(states, line["state"], "state", place)
        allowed[state, _find(actions, line["action"], "action", place)] = True
    allowed &= mdp.available
    allowed[passive] = mdp.available[passive]
    empty = np.flatnonzero(~allowed.any(axis=1))
    if len(empty):
        raise ValueError(
            f"{path}: state {mdp.state_name(int(empty[0]))} is left without an action that the log "
            f"supports ({len(empty)} such states). Every state needs one."
        )
    return allowed


def _ids(labels: tuple[Hashable, ...] | None, count: int) -> dict[str, int]:
    return {str(label): i for i, label in enumerate(labels or range(count))}


def _find(ids: dict[str, int], label: str | None, what: str, place: str) -> int:
    if label in ids:
        return ids[label]
    near = difflib.get_close_matches(str(label), ids, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{place}: unknown {what} {label!r}.{hint}")
