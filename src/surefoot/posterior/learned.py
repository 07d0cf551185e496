"""A posterior that learns from all rows how even rows are and what they have not shown yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv

from surefoot.data.count_arrays import LEARNED
from surefoot.data.counts import Counts
from surefoot.data.destinations import (
    Destinations,
    carried_over,
    learn_destinations,
    on_entries,
)
from surefoot.data.state_order import shown_patterns
from surefoot.model.mdp import MDP
from surefoot.posterior import learned_kernels as kernels
from surefoot.posterior.coupling_kernels import couple_rows
from surefoot.posterior.dirichlet_kernels import BLOCK_DRAWS
from surefoot.posterior.mean_model import mean_model
from surefoot.posterior.of_counts import Key, OfCounts
from surefoot.posterior.rare_events import RareEvents
from surefoot.posterior.rare_kernels import add_rare
from surefoot.posterior.row_laws import ALPHA, LAWS, STRENGTH, RowLaws
from surefoot.posterior.rows import Floats, Ints
from surefoot.posterior.threads import fill_rows

DrawnLaws = tuple[Ints, Ints, Floats, Floats]
"""Size laws, alpha laws, shares of where unseen successors lead, rare events: a line per draw."""


@dataclass(frozen=True, eq=False, repr=False)
class LearnedPosterior(OfCounts):
    """Rows with a learned concentration and number of successors, and learned unseen successors.

    A Dirichlet prior with a fixed parameter assumes that all rows are equally even; where that is
    wrong, a search for the best policy picks rows that were lucky. Here all rows together determine
    how even rows are, how many successors they have, and where successors not seen yet lead
    (`surefoot.posterior.row_laws`, `surefoot.data.destinations`). Draws are independent.

    Attributes
    ----------
    counts
        Counts of transitions. Where they list only what was observed, they are placed on
        ``counts.on_support("learned")``. Declared successors are taken as complete: every unseen
        successor is then one of them.

    Examples
    --------
    >>> from surefoot import LearnedPosterior, machine_replacement
    >>> log = machine_replacement().log(episodes=50, rng=np.random.default_rng(0))
    >>> from surefoot import read_transitions
    >>> counts = read_transitions(log, episode="episode", step="step")
    >>> posterior = LearnedPosterior(counts)
    >>> draws = posterior.sample(1000, np.random.default_rng(1))
    >>> bool(np.abs(draws.mean(axis=0) - posterior.mean()).max() < 0.02)
    True
    """

    counts: Counts

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.counts.declared:
            log = self.counts
            object.__setattr__(self, "counts", log.on_support(LEARNED))
            found = carried_over(log, self.counts)
            if found is not None:
                self.__dict__["destinations"] = on_entries(found, self.counts, self.open_rows)

    @property
    def independent_rows(self) -> bool:
        """False: rows share the learned laws."""
        return False

    @property
    def identity(self) -> Floats:
        """The counts, and the counts that the laws were learned from.

        They determine everything else. The mean is not used: its last digits depend on the machine.
        """
        return np.concatenate((self._count, self._learned_from))

    @cached_property
    def _learned_from(self) -> Floats:
        return self._count

    @cached_property
    def open_rows(self) -> NDArray[np.bool_]:
        """``(R,)``: whether a row may have successors that the support does not name."""
        found = np.zeros(self.layout.num_rows, dtype=np.bool_)
        if self.counts.unseen is not None:
            found[self.layout.entry_row[self.counts.successor == self.counts.unseen]] = True
            found[self.counts.row_state == self.counts.unseen] = False
        return found

    @cached_property
    def laws(self) -> RowLaws:
        """The learned laws of rows: how even they are and how many successors they have."""
        return self._learned()

    def _learned(self, like: RowLaws | None = None) -> RowLaws:
        entries = np.diff(self.row_start)
        seen = np.add.reduceat(self._count > 0, self.row_start[:-1])
        most = min(self.counts.num_states, 2 * int(seen.max(initial=1)) + 20)
        return RowLaws.learn(
            count=self._count, row_start=self.row_start,
            action=self.layout.row_action.astype(np.int64), num_actions=self.layout.num_actions,
            cap=np.where(self.open_rows, np.maximum(most, seen), entries), declared=~self.open_rows,
            like=like,
        )  # fmt: skip

    @cached_property
    def destinations(self) -> Destinations:
        """Where unseen successors lead: candidate entries of each row, part by part."""
        return on_entries(learn_destinations(self.counts), self.counts, self.open_rows)

    def mean(self) -> Floats:
        """Return the exact posterior mean, ``(E,)``."""
        return self._mean

    def given(self, count: ArrayLike) -> LearnedPosterior:
        """Return the posterior with other counts on the same entries and the laws learned here.

        For parts of a log: what the part alone says about its rows and about where unseen
        successors lead, given the laws of all rows.
        """
        other = replace(self, counts=replace(self.counts, count=np.asarray(count)))
        places = replace(other.destinations, shares=self.destinations.shares)
        other.__dict__.update(
            destinations=places, laws=other._learned(like=self.laws), rare=self.rare,
            _learned_from=self._learned_from,
        )  # fmt: skip
        return other

    def to_mdp(
        self, *, discount: float, initial: Any = None, unseen: str | None = None,
        horizon: int | None = None, final_reward: ArrayLike | None = None,
    ) -> MDP:  # fmt: skip
        """Return the model with the posterior mean.

        The arguments are those of ``counts.to_mdp``; ``unseen=None`` lets the unseen state lead to
        the state of the log with the smallest value.

        Examples
        --------
        >>> from surefoot import machine_replacement, read_transitions
        >>> log = machine_replacement().log(episodes=50, rng=np.random.default_rng(0))
        >>> posterior = LearnedPosterior(read_transitions(log, episode="episode", step="step"))
        >>> mdp = posterior.to_mdp(discount=0.95)
        >>> np.array_equal(mdp.probability, posterior.mean()), mdp.state_labels[-1]
        (True, 'unseen')
        """
        return mean_model(
            self, self.counts, discount=discount, initial=initial, unseen=unseen, horizon=horizon,
            final_reward=final_reward,
        )  # fmt: skip

    def draws(
        self,
        key: Key,
        first: int,
        last: int,
        rows: ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Floats:
        """Return draws ``first`` to ``last - 1`` of the streams of one key.

        Every row has one random stream per block of 16 draws, and the laws have another. So the
        numbers do not depend on the choice of rows, ranges or threads.
        """
        # Streams are opened at the start of a block of draws; those before ``first`` are cut off.
        begin = first - first % BLOCK_DRAWS
        drawn = self._drawn_laws(key, begin, last)
        chosen = self.layout.check_rows(rows)
        return self._rows_given(drawn, key, begin, chosen, threads)[first - begin :]

    def _rows_given(
        self, drawn: DrawnLaws, key: Key, begin: int, chosen: Ints, threads: int | None
    ) -> Floats:
        """Return some rows of draws ``begin, ...``, one draw for each line of the drawn laws.

        Given the drawn laws, rows are independent, and a row depends on those of its action only.
        """
        ends = np.cumsum(np.diff(self.row_start)[chosen])
        columns = ends - np.diff(self.row_start)[chosen]
        out = np.empty((len(drawn[0]), int(ends[-1]) if len(ends) else 0))

        def fill(part: NDArray[np.intp]) -> None:
            kernels.learned_rows(
                self._count, self.row_start, chosen[part], columns[part], *self._law_arrays,
                *drawn[:3], *self._places, *key, begin, out,
            )  # fmt: skip
            add_rare(
                drawn[3], self.rare.open, self._landing, self.row_start, chosen[part],
                columns[part], self.laws.action, out,
            )  # fmt: skip

        fill_rows(fill, ends, out.size, threads)
        return out

    def coupled_rows(
        self, key: Key, first: int, last: int, chosen: Ints, states: Ints, values: Floats,
        numbers: Floats,
    ) -> Floats:  # fmt: skip
        """Return draws in which the rows of each state are coupled (`coupled.CoupledRows`).

        ``states`` are the states of the rows ``chosen``, ``values`` the values of their entries.
        ``numbers``, ``(last - first, S)``, are random: their order decides which models get the
        better rows of a state.
        """
        sizes, alphas, shares, rare = self._drawn_laws(key, first, last)
        ends = np.cumsum(np.diff(self.row_start)[chosen])
        columns = ends - np.diff(self.row_start)[chosen]
        out = np.empty((last - first, int(ends[-1])))
        usual = self.destinations.shares / self.destinations.shares.sum()
        laws = sizes * (int(alphas.max()) + 1.0) + alphas

        def fill(part: NDArray[np.intp]) -> None:
            couple_rows(
                self._count, self.row_start, chosen[part], columns[part], *self._law_arrays, sizes,
                alphas, shares, *self._places, *key, first, states[part], values, laws, numbers,
                usual, rare, self.rare.open, self._landing, out,
            )  # fmt: skip

        fill_rows(fill, ends, out.size, None)
        return out

    @cached_property
    def _law_arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays of the laws that kernels read."""
        laws = self.laws
        return (
            laws.action, laws.fine, laws.group, laws.distinct, laws.shape, laws.marginal, LAWS,
            ALPHA, STRENGTH[laws.usual], laws.sizes,
        )  # fmt: skip

    @cached_property
    def _count(self) -> Floats:
        return self.counts.count.astype(np.float64)

    def _drawn_laws(self, key: Key, first: int, last: int) -> DrawnLaws:
        """Return ``(n, actions)`` size laws and alpha laws, ``(n, parts)`` shares, and rare events.

        These are what the rows of draws ``first`` to ``last - 1`` share. A draw does not depend on
        the range. Its random bits differ from those of all rows: the last word of the Philox
        counter is 0 for rows and 1 here.
        """
        parts = len(self.destinations.shares)
        laws = self.laws.uniforms
        actions = self.layout.num_actions
        width = -(-(laws + parts + actions) // 4) * 4  # a Philox counter gives four words
        counter = np.array([first * (width // 4), 0, 0, 1], dtype=np.uint64)
        bits = np.random.Philox(key=np.array(key, dtype=np.uint64), counter=counter)
        uniform = np.random.Generator(bits).random((last - first, width))
        given = self.destinations.shares
        gamma = gammaincinv(np.where(given > 0, given, 1.0), uniform[:, laws : laws + parts])
        gamma *= given > 0
        rare = self.rare.draw(uniform[:, laws + parts : laws + parts + actions])
        return *self.laws.draw(uniform[:, :laws]), gamma / gamma.sum(axis=1, keepdims=True), rare

    @cached_property
    def _places(self) -> tuple[Ints, Ints, Floats]:
        """Start of the candidates of each row and part, their entries and cumulative weights."""
        found = self.destinations
        owner = np.repeat(np.arange(len(found.start) - 1), np.diff(found.start))
        states = self.counts.num_states
        keys = self.layout.entry_row.astype(np.int64) * states + self.counts.successor
        entry = np.searchsorted(keys, owner // len(found.shares) * states + found.state)
        running = np.concatenate(([0.0], np.cumsum(found.weight)))
        return found.start, entry, running[1:] - running[found.start[owner]]

    @cached_property
    def rare(self) -> RareEvents:
        """How often a try reaches a successor new to its row, beyond what the laws expect."""
        seen = np.where(self._count > 0, self._by_laws, 0.0)
        return RareEvents.count(
            count=self._count, row_start=self.row_start, action=self.laws.action,
            num_actions=self.layout.num_actions,
            missing=1.0 - np.add.reduceat(seen, self.row_start[:-1]),
            patterns=shown_patterns(self.counts),
        )  # fmt: skip

    @cached_property
    def _mean(self) -> Floats:
        rare = self.rare.row_means(self.laws.action) * self._has_new
        row = self.layout.entry_row
        return np.asarray(self._by_laws * (1.0 - rare[row]) + self._landing * rare[row])

    @cached_property
    def _by_laws(self) -> Floats:
        """The mean of the learned laws, without rare events."""
        laws, row = self.laws, self.layout.entry_row
        _, given_seen = laws.row_alphas()
        visits = np.add.reduceat(self._count, self.row_start[:-1])
        total = visits[:, None] + laws.distinct[:, None] * ALPHA
        share = np.divide(given_seen, total, out=np.zeros_like(total), where=total > 0)
        seen = self._count > 0
        mean = np.where(seen, self._count * share.sum(axis=1)[row] + (share @ ALPHA)[row], 0.0)
        left = 1.0 - np.add.reduceat(mean, self.row_start[:-1])
        mean += self._landing * np.maximum(left, 0.0)[row]  # rounding may make it negative
        mean[self.row_start[:-1][np.diff(self.row_start) == 1]] = 1.0
        return np.asarray(mean / np.add.reduceat(mean, self.row_start[:-1])[row])

    @cached_property
    def _has_new(self) -> Floats:
        """``(R,)``: 1 where a row has candidates for unseen successors, else 0."""
        return np.asarray(np.add.reduceat(self._landing, self.row_start[:-1]) > 0, dtype=np.float64)

    @cached_property
    def _landing(self) -> Floats:
        """``(E,)``: the expected law of one unseen successor of each row; 0 without candidates."""
        start, entry, _ = self._places
        shares = self.destinations.shares / self.destinations.shares.sum()
        owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
        filled = (np.diff(start) > 0).reshape(-1, len(shares)) * shares
        total = filled.sum(axis=1)
        part = np.divide(filled, total[:, None], out=filled.copy(), where=total[:, None] > 0)
        # The weight that a part's listed candidates leave over goes to the last part, the rest.
        listed = np.bincount(owner, self.destinations.weight, len(start) - 1).reshape(part.shape)
        part[:, -1] += ((1.0 - listed) * part)[:, :-1].sum(axis=1)
        found = np.zeros(self.num_entries)
        np.add.at(found, entry, self.destinations.weight * part.ravel()[owner])
        whole = np.add.reduceat(found, self.row_start[:-1])[self.layout.entry_row]
        return np.divide(found, whole, out=found, where=whole > 0)

    @property
    def prior_words(self) -> str:
        """The prior, in words."""
        return "learned from all rows"

    def _headline(self) -> str:
        return repr(self)

    def _facts(self) -> list[tuple[str, str]]:
        missing = np.where(self.counts.count == 0, self.mean(), 0.0)
        share = np.add.reduceat(missing, self.row_start[:-1])[self.open_rows]
        weight = self.laws.row_alphas()[0].mean(axis=0)
        heavy, even = weight @ (ALPHA < 0), np.where(ALPHA > 0, weight, 0.0)
        usual = float(np.exp(even @ np.log(np.abs(ALPHA)) / max(even.sum(), 1e-300)))
        return [
            ("prior", self.prior_words),
            ("heavy-tailed rows", f"{heavy:.0%}"),
            ("concentration of the others", f"{usual:.2g}" if heavy < 1 else "none"),
            ("mass never seen", f"{share.mean():.2%} of a row" if len(share) else "none"),
        ]
