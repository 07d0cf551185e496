"""From the counts of a log to the model, and to the posterior or set that promises rest on."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot._findings import Finding
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.calibration.frequentist import frequentist_set, split_counts
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.policies import behaviour_policy
from surefoot.certificates.usual import chosen_at
from surefoot.data.bins import Binning
from surefoot.data.buckets import BucketCounts
from surefoot.data.count_arrays import LEARNED
from surefoot.data.counts import Counts
from surefoot.data.label_order import LabelOrder, read_order
from surefoot.data.log_files import kind_of
from surefoot.data.reward_uncertainty import negated
from surefoot.data.step_layers import apart, step_of
from surefoot.data.transitions import read_transitions
from surefoot.model.mdp import MDP
from surefoot.pipeline import side_files
from surefoot.pipeline.log_stamps import files_of_log, read_twice
from surefoot.pipeline.posteriors import Fitted, Own, check_own, fit
from surefoot.pipeline.settings import Settings
from surefoot.posterior.mean_model import mean_model
from surefoot.posterior.protocol import Posterior

Floats = NDArray[np.float64]
WRITTEN = ("decimal", "date_format", "encoding", "sheet", "table", "query", "bins")
"""Settings that say how a log is written; the readers use the same names."""


class _Turns(Protocol):
    """Something about rewards that can be converted to costs, or back."""

    def mirrored(self) -> Any:
        """Convert rewards to costs, or back."""


Mirrored = TypeVar("Mirrored", bound=_Turns)


def read_log(settings: Settings, bins: tuple[Binning, ...] = ()) -> Counts:
    """Read all logs of the settings with the same columns, and add them up.

    ``bins`` are those of an earlier run that the log is added to.
    """
    if not settings.log:
        raise ValueError("no log was given: name a CSV or Parquet file, a folder or a glob.")

    total: Counts | None = None
    for log in log_sources(settings):
        source, roles = source_of(settings, log)
        if bins:  # the edges of an earlier run
            roles["bins"] = bins
        counts = read_transitions(
            source,
            **roles,
            count=settings.count,
            rewards=settings.rewards,  # type: ignore[arg-type]
            reward_range=settings.reward_range or None,  # type: ignore[arg-type]
            labels=settings.labels,  # type: ignore[arg-type]
        )
        if settings.reward_table:
            counts = counts.with_rewards(settings.reward_table)
        if counts.log is not None:
            roles["bins"] = counts.log.bins  # the first log decides the edges for all
        total = counts if total is None else total + counts
    if total is None:  # there is at least one log
        raise ValueError("no log was given.")
    together = log_sources(settings) != settings.log
    twice = read_twice(settings.log, settings.add, together=together)
    if twice and total.log is not None:
        found = Finding.of("read_twice", file=str(twice[0]), more=len(twice) - 1)
        total = replace(total, log=replace(total.log, findings=(*total.log.findings, found)))
    return total


def log_sources(settings: Settings) -> tuple[Any, ...]:
    """Return what to read at once: all files together if episodes may continue in the next file.

    Files of different kinds cannot be read together; they are read one by one and added up.
    """
    together = settings.episode is not None and settings.step is not None
    kinds = {kind_of(file) for file in files_of_log(settings.log)}
    if len(settings.log) > 1 and together and len(kinds) == 1 and kinds != {"database"}:
        return (list(settings.log),)
    return settings.log


def source_of(settings: Settings, log: Any) -> tuple[Any, dict[str, Any]]:
    """Return a log and the roles of its columns; with ``by_step``, states include the step."""
    roles = column_roles(settings)
    if not settings.by_step:
        return log, roles
    return apart(log, settings.horizon or 1, **roles)


def column_roles(settings: Settings) -> dict[str, Any]:
    """Return the columns of the log by role, as the readers expect them."""

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
        **{name: getattr(settings, name) for name in WRITTEN},
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """What promises rest on. With costs, ``placed`` and everything after it is in negative costs.

    Attributes
    ----------
    settings
        The settings of the run.
    counts
        The counts of the log as it was read.
    placed
        The counts on all successors that are taken to be possible.
    mdp
        The model: posterior means, or observed frequencies.
    fitted
        The posterior; None without a prior.
    own
        The user's own posterior, or a function that makes one from counts; None if there is none.
    bins
        Columns of the log that were cut into bins.
    """

    settings: Settings
    counts: Counts
    placed: Counts
    mdp: MDP
    fitted: Fitted | None
    own: Own | None = None
    bins: tuple[Binning, ...] = ()

    def shown(self, made: Mirrored) -> Mirrored:
        """Convert a result from the rewards of this model to the units of the log, or back."""
        return made.mirrored() if self.settings.costs else made

    @property
    def bayesian(self) -> bool:
        """Whether promises rest on a prior."""
        return self.settings.basis == "bayesian"

    @property
    def posterior(self) -> Posterior:
        """The posterior that promises rest on; an error without a prior."""
        return self._fitted.certifying

    @property
    def choosing(self) -> Posterior:
        """The posterior that policies are chosen on: the same, or a part of its draws."""
        return self._fitted.choosing

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What must be said about the posterior, besides what its promises assume.

        A user's posterior without counts does not carry the findings of the log: they are added.
        """
        log = () if self.posterior.counts is not None else self.placed.findings
        return (*self._fitted.findings, *log)

    @property
    def _fitted(self) -> Fitted:
        if self.fitted is None:
            raise ValueError("basis='frequentist' has no posterior.")
        return self.fitted

    @property
    def starts(self) -> int | None:
        """How many episodes show the first state; None if its distribution was stated."""
        shown = self.placed.starts
        if shown is None or not shown.any() or self.settings.initial not in (None, "episodes"):
            return None
        return int(shown.sum())

    def at(self, settings: Settings) -> Self:
        """Return the model for other settings of the promise, which change nothing in the model.

        What halves of the log lost is known to it where policies are chosen alike.
        """
        made = replace(self, settings=settings)
        if chosen_at(settings.delta) == chosen_at(self.settings.delta):
            made.__dict__["logs"] = self.logs
        return made

    @cached_property
    def logs(self) -> dict[BucketCounts, LogBuckets]:
        """Cache of `surefoot.pipeline.parts.log_of`: the log on the model's entries, by parts."""
        return {}

    @cached_property
    def behaviour(self) -> Floats:
        """``(S, A)``: how often the log took each action in each state, as shares."""
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
        return side_files.read_allowed(self.settings, self.mdp, self.passive)

    @cached_property
    def considered(self) -> NDArray[np.bool_] | None:
        """``(S, A)``: the pairs that the search considers; None for all.

        What is known about an action tried once or twice comes from the prior more than from the
        log, and a search finds the pairs that the prior flatters. In a state where nothing was
        tried often, the most tried action is considered. With ``unvisited="prior"`` the user wants
        untried pairs considered, so all allowed pairs are.
        """
        if self.settings.unvisited == "prior" or self.settings.least_tries <= 1:
            return self.allowed
        mdp, visits = self.mdp, self.placed.visits
        pairs = self.allowed
        offered = (
            np.ones(mdp.num_rows, bool) if pairs is None else pairs[mdp.row_state, mdp.row_action]
        )
        tried = np.where(offered, visits, -1)
        most = np.maximum.reduceat(tried, mdp.state_start[:-1])[mdp.row_state]
        often = tried >= np.minimum(self.settings.least_tries, most)
        if (often == offered).all():
            return pairs
        chosen = np.zeros((mdp.num_states, mdp.num_actions), dtype=np.bool_)
        chosen[mdp.row_state[often], mdp.row_action[often]] = True
        return chosen

    @cached_property
    def order(self) -> LabelOrder:
        """The order in which states and actions are shown."""
        labels = {"state": self.mdp.state_labels or (), "action": self.mdp.action_labels or ()}
        settings = self.settings
        return read_order(settings.order, settings.columns, self.bins, labels, settings.log_format)


def place(settings: Settings, counts: Counts, own: Own | None = None) -> Counts:
    """Return the counts on all successors taken to be possible; costs become negative rewards.

    Costs change their sign only here on the way in, and in `Model.shown` on the way out. What a log
    never showed is given its lowest reward, so costs must be negated first.
    """
    signed = negated(counts) if settings.costs and counts.has_rewards else counts
    support = settings.support
    learned = settings.prior is None and settings.basis == "bayesian"
    if support is None and learned and own is None and not counts.declared:
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
    placed = signed.on_support(
        support, settings.unvisited, settings.min_visits, steady=settings.basis == "bayesian"
    )
    return _past_the_horizon(placed, settings.horizon) if settings.by_step else placed


def _past_the_horizon(placed: Counts, horizon: int | None) -> Counts:
    """Return counts whose report does not list states after the last step as stuck.

    Nothing is decided there. The states include the step.
    """
    labels, report = placed.state_labels, placed.report
    if labels is None or report is None:
        return placed
    over = [step_of(label) == horizon for label in labels]
    beyond = int(np.count_nonzero(np.array(over) & ~placed.is_terminal))
    stuck = max(0, report.stuck_states - beyond)
    return replace(placed, report=replace(report, stuck_states=stuck))


def build_model(
    settings: Settings, counts: Counts, first: Floats | None = None, own: Own | None = None
) -> Model:
    """Choose the successors, learn the posterior once, and make the model of its mean.

    ``first`` is a distribution of the first state that replaces the one in the settings; ``own`` is
    the user's posterior, or a function that makes one from the placed counts.
    """
    if not counts.has_rewards:
        raise ValueError(
            "the log has no rewards. Name their column with --reward, or give a file of rewards "
            "with --reward-table."
        )
    check_own(settings, own)
    placed = place(settings, counts, own)
    initial: Any = settings.initial if first is None else first
    if isinstance(initial, str) and initial not in ("episodes", "uniform"):
        initial = side_files.read_initial(settings, placed)
    options: dict[str, Any] = {
        "discount": settings.discounted, "initial": initial, "horizon": settings.horizon,
        "final_reward": side_files.final_of(settings, placed),
    }  # fmt: skip
    bins = () if counts.log is None else counts.log.bins
    made: dict[str, Any] = {"settings": settings, "counts": counts, "placed": placed, "bins": bins}
    if settings.basis == "frequentist":
        mdp = placed.to_mdp(**options, unseen=_unseen(settings))
        return Model(**made, mdp=mdp, fitted=None)
    posterior = fit(settings, placed, own)
    mdp = mean_model(posterior, placed, **options, unseen=settings.unseen)
    fitted = Fitted.of(posterior, mdp, settings.seed)
    return Model(**made, mdp=mdp, fitted=fitted, own=own)


def _unseen(settings: Settings) -> str | None:
    """Return where the unseen leads; a frequentist promise must not use a guess."""
    if settings.unseen == "worst":
        raise ValueError(
            "unseen='worst' is a guess from the posterior mean, which a frequentist promise must "
            "not use. Leave it out, or use basis='bayesian'."
        )
    return settings.unseen


def frequentist(model: Model) -> tuple[MDP, AmbiguitySet]:
    """Return the centre of a set that holds the true model with probability 1-delta, and the set.

    Weights other than uniform are chosen on one half of the log and the set is sized on the other;
    the seed decides which half a transition goes to.
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
