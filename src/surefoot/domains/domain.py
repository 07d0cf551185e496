"""A benchmark domain: its true model, and ways to draw data from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot._display import Shown
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP

EPISODE_STEPS = 100
"""Steps after which a logged episode is truncated."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Domain(Shown):
    """A benchmark problem: its true model, the prior it is studied with, and data drawn from it.

    Attributes
    ----------
    name
        Its name in tables and on the command line.
    mdp
        The true model.
    prior
        Dirichlet parameter of every reachable successor.
    support
        ``(S, A, S)`` booleans: the true successors.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> domain = riverswim()
    >>> counts = domain.simulate(20, np.random.default_rng(0))
    >>> int(counts.count.sum())  # 12 rows
    240
    """

    name: str
    mdp: MDP
    prior: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.mdp, MDP):
            raise ValueError(
                f"mdp must be an MDP, got {type(self.mdp).__name__}. Build one with "
                "MDP.from_arrays(...)."
            )

    @property
    def support(self) -> NDArray[np.bool_]:
        """``(S, A, S)``: the true successors."""
        return self.mdp.support

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("true model", repr(self.mdp)),
            ("prior", f"Dirichlet, {self.prior:g} per successor"),
        ]

    def __repr__(self) -> str:
        return f"Domain({self.name!r}, {self.mdp!r})"

    def simulate(self, n_per_row: int, rng: np.random.Generator) -> Counts:
        """Draw ``n_per_row`` next states for every available state-action pair.

        The counts list every true successor, also those never drawn: the support is declared.
        """
        mdp = self.mdp
        count = np.zeros(mdp.num_entries, dtype=np.int64)
        for row in range(mdp.num_rows):
            entries = slice(mdp.row_start[row], mdp.row_start[row + 1])
            p = mdp.probability[entries]
            count[entries] = rng.multinomial(n_per_row, p / p.sum())
        return Counts.on_rows_of(mdp, count)

    def log(
        self, episodes: int, rng: np.random.Generator, *, steps: int = EPISODE_STEPS
    ) -> dict[str, NDArray[np.generic]]:
        """Log a behaviour policy that picks uniformly among the available actions.

        Returns the columns ``episode, step, state, action, reward, next_state``; labels where the
        domain has them.
        """
        mdp = self.mdp
        cumulative = _cumulative_rows(mdp)
        state = rng.choice(mdp.num_states, size=episodes, p=mdp.initial / mdp.initial.sum())
        offered = np.diff(mdp.state_start)
        columns: dict[str, list[NDArray[np.generic]]] = {name: [] for name in LOG_COLUMNS}
        for step in range(steps):
            row = mdp.state_start[state] + rng.integers(0, offered[state])
            # cumulative rises from row to row, so one search finds the entry of every episode.
            entry = np.searchsorted(cumulative, row + rng.random(episodes), side="right")
            entry = np.clip(entry, mdp.row_start[row], mdp.row_start[row + 1] - 1)
            following = mdp.successor[entry].astype(np.int64)
            reward = mdp.entry_reward[entry]
            values = (np.arange(episodes), np.full(episodes, step), state,
                      mdp.row_action[row], reward, following)  # fmt: skip
            for name, value in zip(LOG_COLUMNS, values, strict=True):
                columns[name].append(value)
            state = following
        table = {name: np.stack(parts, axis=1).ravel() for name, parts in columns.items()}
        if mdp.state_labels is not None:
            names = np.array(mdp.state_labels)
            table |= {name: names[table[name]] for name in ("state", "next_state")}
        if mdp.action_labels is not None:
            table["action"] = np.array(mdp.action_labels)[table["action"]]
        return table


LOG_COLUMNS = ("episode", "step", "state", "action", "reward", "next_state")


def _cumulative_rows(mdp: MDP) -> NDArray[np.float64]:
    """Return cumulative probabilities, the entries of row ``r`` ending at ``r + 1``."""
    sums = np.add.reduceat(mdp.probability, mdp.row_start[:-1])
    share = mdp.probability / sums[mdp.entry_row]
    running = np.cumsum(share)
    before = np.concatenate(([0.0], running))[mdp.row_start[:-1]]
    return np.minimum(running - before[mdp.entry_row], 1.0) + mdp.entry_row
