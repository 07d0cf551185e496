"""Counts of transitions, row by row.

The layout is that of a model: a *row* is one state-action pair, its *entries* are the successors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot._display import Shown, card, number_of
from surefoot._findings import Finding, texts_of
from surefoot.data import conversions, summary
from surefoot.data.count_arrays import CountArrays, Label
from surefoot.data.support import place
from surefoot.model.mdp import MDP


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Counts(CountArrays, Shown):
    """How often each action led from each state to each successor.

    Attributes
    ----------
    state_start
        ``(S+1,)``; the rows of state ``s`` are ``state_start[s]:state_start[s+1]``. A state that
        was never acted in has none, unless the counts are declared.
    row_action
        ``(R,)``; the action of each row, increasing within a state.
    row_start
        ``(R+1,)``; the entries of row ``r`` are ``row_start[r]:row_start[r+1]``.
    successor
        ``(E,)``; the state each entry leads to, increasing within a row.
    count
        ``(E,)``; how often that happened.
    num_actions
        The number of distinct action ids.
    declared
        True when the entries are all the reachable ones (with zero counts), as in a model; False
        when they are only what was observed.
    state_labels, action_labels
        Optional names, in order of the ids.
    reward_mean, reward_var
        ``(E,)``; mean and sample variance of the rewards seen; NaN where never seen (the variance
        also where seen once), variance 0 where rewards are given. In declared counts every mean is
        filled. None without rewards.
    reward_low, reward_high
        ``(A,)``; the range of rewards seen under each action.
    reward_model
        How uncertain the means are: ``"fixed"`` (exact), ``"normal"`` or ``"bounded"``.
    reward_range
        The given range that ``"bounded"`` assumes; None means the range seen.
    reward_sums
        The exact sums behind means and variances that come straight from a log; else None.
    given
        Rewards known beforehand, which replace those seen.
    starts
        ``(S,)``; how many episodes started in each state; None when unknown.
    terminal
        ``(S,)``; states that end an episode: absorbing, without reward.
    unseen
        The id of the state that stands for all successors never observed, or None.
    report
        What the choice of support did; None before a support is chosen.
    log
        The log that the counts came from; None for arrays.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]])
    >>> counts
    Counts(6 transitions, 2 states, 1 action, 2 rows visited, 3 entries observed)
    >>> mdp = counts.to_mdp(discount=0.9, rewards=[[0.0], [1.0]], support="all")
    >>> mdp.probability.tolist()
    [0.75, 0.25, 0.0, 1.0]
    """

    @classmethod
    def from_arrays(
        cls,
        counts: ArrayLike,
        *,
        rewards: Any = None,
        support: ArrayLike | None = None,
        starts: ArrayLike | None = None,
        state_labels: Sequence[Label] | None = None,
        action_labels: Sequence[Label] | None = None,
    ) -> Counts:
        """Build counts from a dense ``(S, A, S)`` array of whole numbers.

        Parameters
        ----------
        counts
            How often each action led from each state to each successor.
        rewards
            ``(S, A)`` or ``(S, A, S)``, a mapping by labels or a function of labels; exact.
        support
            ``(S, A, S)`` booleans: the reachable successors. If given, the counts are declared.
        starts
            ``(S,)``: how many episodes started in each state.
        state_labels, action_labels
            Optional names, in order of the ids.

        Examples
        --------
        >>> counts = Counts.from_arrays([[[3, 0]], [[0, 2]]], support=np.ones((2, 1, 2)))
        >>> counts.count.tolist()
        [3, 0, 0, 2]
        """
        fields = conversions.dense_fields(counts, support, starts, state_labels, action_labels)
        built = cls(**fields)
        built = built if rewards is None else built.with_rewards(rewards)
        return built if support is None else replace(built, declared=True)

    @classmethod
    def on_rows_of(cls, mdp: MDP, count: ArrayLike) -> Counts:
        """Return declared counts on the rows, entries, labels and rewards of a model.

        Examples
        --------
        >>> from surefoot.domains import riverswim
        >>> mdp = riverswim().mdp
        >>> Counts.on_rows_of(mdp, np.full(mdp.num_entries, 2)).visits.tolist()[:3]
        [2, 4, 2]
        """
        return cls(**conversions.fields_on_rows_of(mdp, count))

    def on_support(
        self, support: Any = None, unvisited: str | None = None, min_visits: int = 0, *,
        steady: bool = False,
    ) -> Counts:  # fmt: skip
        """Return declared counts: like a model, they list every reachable successor.

        Parameters
        ----------
        support
            ``"observed"``: the successors seen in the row itself. Every promise then assumes that
            no other transition exists.
            ``"action"``: all successors seen anywhere under the same action (and, where that is
            only one, the unseen state below).
            ``"all"``: every state.
            ``"unseen"``: those seen in the row, and one state for all others, absorbing at the
            lowest reward; the choice for large state spaces.
            ``"learned"``: as ``"unseen"``, plus the successors that patterns of the log suggest.
            A path or a table: the columns state, action, next_state list them.
            None: the default, ``"unseen"``, or what these counts already declare.
        unvisited
            ``"drop"``: a state-action pair never tried is not offered to the policy (default).
            ``"prior"``: it is offered, and its row is left to the prior.
        min_visits
            Rows tried fewer times than this are not offered either.
        steady
            For successors from a path or a table: whether rows that always paid the same are
            assumed to pay it for successors never seen too, less a charge for exceptions. Valid for
            promises with a prior only. Otherwise, and where a row paid different rewards,
            successors never seen pay the lowest reward of the action, unless a pattern of all
            rewards predicts more.

        Examples
        --------
        >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]])
        >>> counts.on_support("observed").count.tolist()
        [3, 1, 2]
        >>> counts.on_support("action").count.tolist()
        [3, 1, 0, 2]
        """
        return place(self, support, unvisited, min_visits, steady=steady)

    def to_mdp(
        self,
        *,
        discount: float,
        initial: Any = None,
        support: Any = None,
        unvisited: str | None = None,
        min_visits: int = 0,
        prior: ArrayLike | None = None,
        rewards: Any = None,
        unseen: str | None = None,
        horizon: int | None = None,
        final_reward: ArrayLike | None = None,
    ) -> MDP:
        """Return the model these counts describe, on the entries of :meth:`on_support`.

        Parameters
        ----------
        discount
            In [0, 1].
        initial
            ``"episodes"`` (the observed episode starts), ``"uniform"`` or an array. None means
            episodes if starts are known, else uniform.
        support, unvisited, min_visits
            As in :meth:`on_support`.
        prior
            Dirichlet parameters: a number, one per row or one per entry; probabilities are then
            the posterior means (with a number or one per row, the unseen successor has its own
            ``UNSEEN_PRIOR``). None: the observed frequencies, and a row never tried is uniform.
        rewards
            Given rewards, as in :meth:`with_rewards`.
        unseen
            Where the unseen state leads after one step at the lowest reward: ``"worst"``, to the
            state of the log with the smallest value, or ``"absorbing"``, to itself. None means
            worst with a prior, absorbing without one.
        horizon, final_reward
            The number of steps that count at most, and the ``(S,)`` values of states after them.

        Examples
        --------
        >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [1.0]])
        >>> counts.to_mdp(discount=0.9, prior=1.0, support="all").probability.tolist()[:2]
        [0.6666666666666666, 0.3333333333333333]
        """
        source = self if rewards is None else self.with_rewards(rewards)
        placed = source.on_support(support, unvisited, min_visits)
        return conversions.to_mdp(placed, discount, initial, prior, unseen, horizon, final_reward)

    def with_rewards(self, rewards: Any) -> Counts:
        """Return the same counts with rewards known beforehand instead of those seen.

        ``rewards`` is a mapping from ``(state, action)`` or ``(state, action, next_state)`` labels,
        an array ``(S, A)`` or ``(S, A, S)`` in order of the ids, a function of three labels, or a
        table or file with the columns state, action, reward and perhaps next_state.

        Examples
        --------
        >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], state_labels=("cold", "warm"))
        >>> counts = counts.with_rewards(lambda s, a, t: 1.0 if t == "warm" else 0.0)
        >>> counts.to_mdp(discount=0.9, support="observed").reward.tolist()
        [0.0, 1.0, 1.0]
        """
        return conversions.with_rewards(self, rewards)

    def __add__(self, other: Counts) -> Counts:
        """Add new data to old: labels are aligned, counts and rewards put together."""
        if not isinstance(other, Counts):
            raise TypeError(f"counts can be added to counts, not to {type(other).__name__}.")
        from surefoot.data.merge import add  # brings DuckDB, which counts alone do not need

        return add(self, other)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that apply to every promise made from these counts, in sentences."""
        return texts_of(self.findings, "warning", "failed")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything found about these counts, as data; `warnings` are the serious ones."""
        return summary.findings_of(self)

    def summary(self, *, costs: bool = False) -> str:
        """Return a description of the data, to read before trusting a result.

        With ``costs``, the rewards of these counts are negative costs.

        Examples
        --------
        >>> print(Counts.from_arrays([[[3, 1]], [[0, 2]]]).summary())
        6 transitions, given as an array
        2 states, 1 action; 2 of 2 state-action pairs tried
        ...
        """
        return summary.summarize(self, costs=costs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, without pickles."""
        from surefoot.data.npz_files import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Counts:
        """Read what :meth:`save` wrote."""
        from surefoot.data.npz_files import load

        return load(path, Counts)

    def _repr_html_(self) -> str:
        return card(repr(self), lines=self.summary().splitlines())

    def __repr__(self) -> str:
        visited = int(np.count_nonzero(self.visits > 0))
        kind = "reachable" if self.declared else "observed"
        return (
            f"Counts({number_of(int(self.count.sum()), 'transition')}, "
            f"{number_of(self.num_states, 'state')}, {number_of(self.num_actions, 'action')}, "
            f"{number_of(visited, 'row')} visited, "
            f"{number_of(self.num_entries, 'entry', 'entries')} {kind})"
        )
