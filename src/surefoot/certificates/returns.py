"""Returns of a policy, and best returns, over posterior draws: streamed, bracketed, in parallel."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.methods import DIRECT_STATES as DIRECT_STATES
from surefoot.certificates.methods import Method, choose_method
from surefoot.certificates.return_kernels import (
    direct_optima,
    direct_returns,
    sparse_optima,
    sparse_returns,
)
from surefoot.certificates.system_kernels import fill, find_places, find_value
from surefoot.certificates.threads import shared
from surefoot.data.reward_uncertainty import model_uncertain_rewards, negated
from surefoot.model.mdp import MDP
from surefoot.model.policies import RowPolicy
from surefoot.posterior.dirichlet import Key
from surefoot.posterior.mean_rewards import MeanRewards
from surefoot.posterior.protocol import Posterior, check_generator, check_posterior, stream_key

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_ROUNDS = 200
MAX_SWEEPS = 20_000
DRAWS_PER_CUT = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class ReturnDraws:
    """Lower and upper ends of the return in each drawn model, ``(n,)`` each."""

    lower: Floats
    upper: Floats

    @property
    def numerical_error(self) -> float:
        """The widest bracket."""
        return float((self.upper - self.lower).max())


@dataclass(frozen=True, kw_only=True, eq=False)
class Rewards:
    """The rewards of every entry, and which of them are uncertain means (with their counts).

    ``places`` are the entries of the counts that these are; None where they are all of them.
    """

    fixed: Floats
    counts: Any
    uncertain: NDArray[np.bool_]
    places: Ints | None = None

    def of(self, entries: Ints) -> "Rewards":
        """Return the rewards of some entries."""
        places = entries if self.places is None else self.places[entries]
        return Rewards(
            fixed=self.fixed[entries], counts=self.counts, uncertain=self.uncertain[entries],
            places=places,
        )  # fmt: skip

    def draw(self, n: int, entries: Ints, rng: np.random.Generator) -> Floats:
        """Return ``(n, entries)`` rewards, or one line where all are certain."""
        return self.block(stream_key(rng), 0, n, entries)

    def block(self, key: Key, first: int, last: int, entries: Ints) -> Floats:
        """Return draws ``first`` to ``last - 1`` of one key; one line where all are certain.

        The same key gives the same rewards, whatever the entries and the blocks.
        """
        uncertain = self.uncertain[entries]
        if not uncertain.any():
            return self.fixed[entries][None]
        places = entries if self.places is None else self.places[entries]
        drawn = self.means.draws(key, first, last, places)
        drawn[:, ~uncertain] = self.fixed[entries[~uncertain]]
        return drawn

    @cached_property
    def means(self) -> MeanRewards:
        """The posterior of the mean rewards."""
        return MeanRewards(self.counts)


def rewards_of(mdp: MDP, posterior: Posterior, *, objective: str) -> Rewards:
    """Return the model's rewards (costs with the other sign), uncertain where the counts say so.

    A reward that the model does not take from the counts was given by the user and is certain.
    """
    fixed = mdp.reward if mdp.reward_per_entry else mdp.reward[mdp.entry_row]
    counts = check_posterior(posterior).counts
    uncertain = np.zeros(mdp.num_entries, dtype=np.bool_)
    if counts is not None:
        uncertain = model_uncertain_rewards(counts, mdp)
    if objective == "max":
        return Rewards(fixed=fixed, counts=counts, uncertain=uncertain)
    # The cautious side of an uncertain mean is the other one: the counts themselves change sign.
    turned = counts if counts is None or not uncertain.any() else negated(counts)
    return Rewards(fixed=-fixed, counts=turned, uncertain=uncertain)


def policy_returns(
    posterior: Posterior,
    mdp: MDP,
    policy: RowPolicy,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    tolerance: float | None = None,
) -> ReturnDraws:
    """Return brackets of the policy's return in ``n`` fresh draws.

    Only the rows that the policy plays are drawn, where rows are independent.
    """
    rows = policy.rows.astype(np.int64)
    lengths = np.diff(mdp.row_start)[rows]
    row_start = np.concatenate(([0], np.cumsum(lengths)))
    entries = np.repeat(mdp.row_start[rows] - row_start[:-1], lengths) + np.arange(row_start[-1])
    model = (
        policy.start.astype(np.int64),
        row_start,
        policy.share,
        mdp.successor[entries].astype(np.int64),
        mdp.discount,
        mdp.initial / mdp.initial.sum(),
        int(lengths.max()) * int(np.diff(policy.start.astype(np.int64)).max()),
    )
    size = mdp.num_states
    close = tolerance or _near(mdp, rewards)
    method = choose_method(mdp, rows)
    every = np.arange(len(rows))
    near = np.zeros(size)
    if not method.full:
        mean = posterior.mean()[entries], rewards.fixed[entries]
        near = _value(method, *mean, model, every, close)

    def work(draws: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        value, image = np.empty(size), np.empty(size)
        if method.full:
            matrix = np.empty((size, size))
            direct_returns(draws, reward, *model, begin, end, matrix, value, image, out)
        else:
            sparse_returns(
                draws, reward, *model, begin, end, close, MAX_SWEEPS, every, near, value, image,
                method.system(len(entries)), out,
            )  # fmt: skip

    return _collect(posterior, n, rng, rows, entries, rewards, work, method.work)


def usual_tolerance(mdp: MDP) -> float:
    """Return the solvers' usual tolerance for rewards of about 1, in the unit of these rewards."""
    return max(1e-6 * float(np.abs(mdp.reward).max()), 1e-300)


def _near(mdp: MDP, rewards: Rewards) -> float:
    """Return how near to its value a policy is evaluated, whatever unit rewards are in."""
    return max(1e-9 * float(np.abs(rewards.fixed).max()) / (1 - mdp.discount), 1e-300)


def _value(
    method: Method, draw: Floats, reward: Floats, model: tuple[Any, ...], rows: Ints, near: float
) -> Floats:
    """Return about the value of a policy in one model."""
    state_rows, row_start, share, successor, discount, *_ = model
    system = method.system(int(np.diff(row_start)[rows].sum()))
    fill(system, draw, reward, state_rows, rows, share, row_start, successor, discount)
    find_places(system)
    value = np.zeros(len(state_rows) - 1)
    find_value(system, discount, near, MAX_SWEEPS, value)
    return value


def best_returns(
    posterior: Posterior,
    mdp: MDP,
    n: int,
    rng: np.random.Generator,
    *,
    rewards: Rewards,
    start: Ints | None = None,
    tolerance: float | None = None,
) -> ReturnDraws:
    """Return brackets of the best return of any policy in each of ``n`` fresh draws.

    ``start`` is the row per state to begin with.
    """
    entries = np.arange(mdp.num_entries)
    model = (
        mdp.state_start,
        mdp.row_start,
        mdp.successor.astype(np.int64),
        mdp.discount,
        mdp.initial / mdp.initial.sum(),
        int(np.diff(mdp.row_start).max()),
    )
    size = mdp.num_states
    first = mdp.state_start[:-1] if start is None else start
    close = tolerance or _near(mdp, rewards)
    longest = np.maximum.reduceat(np.diff(mdp.row_start), mdp.state_start[:-1])
    method = choose_method(mdp)
    one_each, whole = np.arange(size + 1), np.ones(size)
    near = np.zeros(size)
    if not method.full:
        policy = (one_each, mdp.row_start, whole, model[2], mdp.discount)
        near = _value(method, posterior.mean(), rewards.fixed, policy, first, close)

    def work(draws: Floats, reward: Floats, begin: int, end: int, out: Floats) -> None:
        value, image, choice = np.zeros(size), np.empty(size), np.array(first)
        if method.full:
            matrix = np.empty((size, size))
            direct_optima(
                draws, reward, *model, begin, end, MAX_ROUNDS, choice, matrix, value, image, out
            )
        else:
            sparse_optima(
                draws, reward, *model, begin, end, close, MAX_SWEEPS, MAX_ROUNDS, one_each, whole,
                first, near, choice, value, image, method.system(int(longest.sum())), out,
            )  # fmt: skip

    return _collect(posterior, n, rng, None, entries, rewards, work, 2 * method.work)


def _collect(
    posterior: Posterior,
    n: int,
    rng: np.random.Generator,
    rows: Ints | None,
    entries: Ints,
    rewards: Rewards,
    work: Any,
    operations: float,
) -> ReturnDraws:
    """Stream the draws and share each block among threads; ``operations`` are those of one draw."""
    ends = np.empty((n, 2))
    done = 0
    key = stream_key(check_generator(rng).spawn(1)[0])
    for draws in posterior.stream(n, rng, rows):
        block = len(draws)
        reward = rewards.block(key, done, done + block, entries)
        out = ends[done : done + block]

        def part(
            begin: int, end: int, d: Floats = draws, r: Floats = reward, o: Floats = out
        ) -> None:
            work(d, r, begin, end, o)

        shared(block, part, operations=operations * block, least=DRAWS_PER_CUT, cuts=block)
        done += block
    # Numbers too large for arithmetic leave NaN behind, which sorting would take for a high return.
    lower, upper = (
        np.where(np.isnan(end), none, end)
        for end, none in zip(ends.T, (-np.inf, np.inf), strict=True)
    )
    return ReturnDraws(lower=lower, upper=upper)
