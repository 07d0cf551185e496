"""Ambiguity sets without a prior, from concentration bounds around observed frequencies."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._arguments import check_choice, check_inside
from surefoot._findings import Finding
from surefoot.ambiguity.confidence import Confidence
from surefoot.ambiguity.sets import AmbiguitySet, seal
from surefoot.calibration import budget_kernels as kernels
from surefoot.calibration.concentration import BOUNDS, clopper_pearson
from surefoot.calibration.weights import ChosenWeights, choose_weights, successor_values
from surefoot.data.counts import Counts
from surefoot.data.reward_uncertainty import (
    mean_reward_interval,
    model_uncertain_rewards,
    rewards_taken_as_seen,
)
from surefoot.model.mdp import MDP

Floats = NDArray[np.float64]

KINDS = ("hoeffding_l1", "hoeffding_linf", "bernstein_l1", "weighted_l1", "clopper_pearson", "kl")
NORM_OF = {
    "hoeffding_l1": "l1",
    "bernstein_l1": "l1",
    "weighted_l1": "l1",
    "hoeffding_linf": "linf",
}
SAME = 1e-12
"""How far the nominal probabilities may be from the observed frequencies: rounding only."""
REWARD_SHARE = 0.5
"""Share of delta that the intervals of uncertain mean rewards get."""


def frequentist_set(
    counts: Counts,
    mdp: MDP,
    *,
    delta: float,
    kind: str = "weighted_l1",
    weights: str | ArrayLike = "uniform",
    center: str | float | None = None,
    shape: MDP | None = None,
    reuse: bool = False,
    fixed_design: bool = False,
    policy: ArrayLike | None = None,
    objective: str = "max",
) -> AmbiguitySet:
    """Build a set around observed frequencies that holds the true model with probability 1-delta.

    The probability is over the data, for any fixed true model on the declared successors. Delta is
    shared equally over all uncertain rows; a row never tried gets the whole simplex. Kind and
    weights must be fixed before seeing the data: choosing the tightest of several afterwards would
    void the guarantee.

    Where mean rewards are uncertain, half of delta goes to intervals for them (``reward_lower``,
    ``reward_upper``), which `certify_frequentist` uses.

    Parameters
    ----------
    counts
        Declared counts (``counts.on_support(...)``) on the rows of ``mdp``.
    mdp
        The model with the observed frequencies (``counts.to_mdp(...)`` without a prior).
    delta
        The probability with which the model may lie outside.
    kind
        ``"hoeffding_l1"``, ``"hoeffding_linf"``, ``"bernstein_l1"`` (looser than Hoeffding),
        ``"weighted_l1"`` (the sharpest norm ball), ``"clopper_pearson"`` (a box; the tightest on
        small rows) or ``"kl"``.
    weights
        For the norm balls: ``"uniform"``, ``"analytic"``, ``"socp"`` or an array, as for
        `credible_set`. An array must not depend on these counts.
    center
        The centre of analytic weights; None means the usual one of the norm. (``"search"`` needs
        posterior draws and is not available here.)
    shape
        A model from other data, whose value function determines the analytic weights: the earlier
        part of the log, or one half of a random split (`split_counts`).
    reuse
        Choose analytic weights on ``mdp`` itself. There is no proof for this.
    fixed_design
        Whether the number of samples of every row was fixed beforehand. If not, a row with n
        samples gets the share ``1/(n(n+1))`` of its level, which is valid whatever rule decided
        when to try which row.
    policy
        ``(S,)`` actions fixed before these data were seen: delta is then shared over the policy's
        own rows only, and all other rows get the whole simplex.
    objective
        ``"max"`` for rewards, ``"min"`` for costs: which value function the weights are for.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> counts = riverswim().simulate(500, np.random.default_rng(0))
    >>> mdp = counts.to_mdp(discount=0.99)
    >>> made = frequentist_set(counts, mdp, delta=0.05, kind="weighted_l1", fixed_design=True)
    >>> made
    AmbiguitySet(l1, 12 rows, budgets 0 to 0.1622, uniform weights, frequentist, delta 0.05)
    """
    check_choice("kind", kind, KINDS)
    check_choice("objective", objective, ("max", "min"))
    check_inside("delta", delta)
    if counts.unseen is not None and kind != "clopper_pearson":
        raise ValueError(
            f"kind={kind!r} needs the successors of every row: which of them were never seen "
            "depends on the data. Declare them (support=FILE), or use kind='clopper_pearson', "
            "which bounds the mass of unseen ones."
        )
    _check_counts(counts, mdp, centred=kind != "clopper_pearson")
    known = mdp.uncertain_rows & (counts.visits > 0)
    promised = mdp.uncertain_rows if policy is None else mdp.uncertain_rows & _played(mdp, policy)
    samples = np.where(promised & known, counts.visits, 0).astype(np.float64)
    low, high, left = _mean_rewards(counts, mdp, delta)
    level = _log_levels(samples, left / max(1, int(promised.sum())), fixed_design)
    if kind in NORM_OF:
        chosen = _weights(mdp, weights, NORM_OF[kind], center, shape, reuse, objective)
        made = _ball(mdp, kind, chosen, samples, level)
    else:
        if not isinstance(weights, str) or weights != "uniform":
            raise ValueError(f"kind={kind!r} has no weights; leave them out.")
        chosen = ChosenWeights(None, "none", "one")
        box = kind == "clopper_pearson"
        made = _box(mdp, counts, samples, level) if box else _kl(mdp, samples, level)
    found = _findings(counts, chosen, reuse, fixed_design, policy is not None)
    if low is not None:
        found = (*found, Finding.of("delta_shared_with_rewards"))
    report = counts.report
    return seal(
        dataclasses.replace(made, reward_lower=low, reward_upper=high),
        Confidence(
            basis="frequentist", delta=delta, kind=kind,
            union="uncertain" if policy is None else "policy",
            weights=chosen.name, scale=chosen.scale,
            support="" if report is None else report.support,
            filled_low=report is not None and report.filled_low,
            reward_law="" if low is None else _reward_law(counts),
            findings=found,
        ),
    )  # fmt: skip


def _mean_rewards(
    counts: Counts, mdp: MDP, delta: float
) -> tuple[Floats | None, Floats | None, float]:
    """Return the intervals of mean rewards (None if all are certain) and the rest of delta."""
    uncertain = model_uncertain_rewards(counts, mdp)
    if not uncertain.any():
        return None, None, delta
    fixed = mdp.entry_reward
    low, high = mean_reward_interval(counts, REWARD_SHARE * delta)
    left = (1.0 - REWARD_SHARE) * delta
    return np.where(uncertain, low, fixed), np.where(uncertain, high, fixed), left


def _reward_law(counts: Counts) -> str:
    if counts.reward_model == "normal":
        return "normal"
    return "seen" if counts.reward_range is None else "bounded"


def split_counts(
    counts: Counts, rng: np.random.Generator, *, share: float = 0.5
) -> tuple[Counts, Counts]:
    """Split declared counts: each transition goes to the first part with probability ``share``.

    Use one part to choose weights or a policy, the other to size the set. The parts are exactly
    independent only where the number of samples per row was fixed by design; split a log in time
    instead (episodes, files), since how often a row was tried depends on what happened before.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> rng = np.random.default_rng(0)
    >>> first, second = split_counts(riverswim().simulate(100, rng), rng)
    >>> int((first.count + second.count).sum())
    1200
    """
    _check_whole(counts)
    check_inside("share", share)
    whole = counts.count.astype(np.int64)
    part = rng.binomial(whole, share)
    return dataclasses.replace(counts, count=part), dataclasses.replace(counts, count=whole - part)


def _check_whole(counts: Counts) -> None:
    if not counts.declared:
        raise ValueError(
            "these counts list only what was observed. Declare the reachable successors first: "
            "counts.on_support(...)."
        )
    bad = np.flatnonzero(counts.count != np.floor(counts.count))
    if len(bad):
        raise ValueError(
            f"count[{bad[0]}] is {counts.count[bad[0]]}; these bounds need whole numbers of "
            "independent transitions."
        )


def _check_counts(counts: Counts, mdp: MDP, *, centred: bool) -> None:
    _check_whole(counts)
    for name in ("state_start", "row_action", "row_start", "successor"):
        if not np.array_equal(getattr(counts, name), getattr(mdp, name)):
            raise ValueError(
                f"the counts and the model do not have the same rows ({name} differs). Build the "
                "model from these counts: placed = counts.on_support(...); placed.to_mdp(...)."
            )
    if not centred:
        return
    n = counts.visits[counts.entry_row]
    off = np.abs(mdp.probability - counts.count / np.maximum(n, 1))
    bad = np.flatnonzero(~(off <= SAME) & (n > 0))
    if len(bad):
        i = bad[0]
        raise ValueError(
            f"the probability of {mdp.row_name(mdp.entry_row[i])}, successor "
            f"{mdp.state_name(int(mdp.successor[i]))} is {mdp.probability[i]:.6g}, but "
            f"{counts.count[i]} of {n[i]} were observed ({len(bad)} entries differ). The bound is "
            "about observed frequencies: build the model with counts.to_mdp(...) without a prior."
        )


def _played(mdp: MDP, policy: ArrayLike) -> NDArray[np.bool_]:
    actions = np.asarray(policy)
    if actions.shape != (mdp.num_states,) or actions.dtype.kind not in "iu":
        raise ValueError(f"policy must be ({mdp.num_states},) whole action ids.")
    played = np.zeros(mdp.num_rows, dtype=np.bool_)
    played[[mdp.row_of(state, int(action)) for state, action in enumerate(actions)]] = True
    return played


def _log_levels(samples: Floats, alpha: float, fixed_design: bool) -> Floats:
    """Return the logarithm of each row's level: alpha, or alpha / (n (n + 1)) if n was random.

    These shares sum to 1 over all n, so that the bound holds at every sample size at once.
    """
    n = np.maximum(samples, 1.0)
    share = np.zeros(len(n)) if fixed_design else np.log(n) + np.log1p(n)
    return np.asarray(np.log(alpha) - share)


def _weights(
    mdp: MDP, weights: str | ArrayLike, norm: str, center: str | float | None, shape: MDP | None,
    reuse: bool, objective: str,
) -> ChosenWeights:  # fmt: skip
    if not isinstance(weights, str) or weights == "uniform":
        return choose_weights(mdp, weights, norm=norm, center=center, z=mdp.probability)
    if shape is None and not reuse:
        raise ValueError(
            f"weights={weights!r} depend on a value function, and that on data: give shape=, a "
            "model from other data (an earlier part of the log, or a part of split_counts), or "
            "reuse=True to use the same data without proof."
        )
    source = mdp if shape is None else shape
    for name in ("state_start", "row_action", "row_start", "successor"):
        if not np.array_equal(getattr(source, name), getattr(mdp, name)):
            raise ValueError(f"shape must have the rows of the model; {name} differs.")
    from surefoot.solvers.solver import solve

    value = solve(source, objective=objective).value
    z = successor_values(source, value)
    return choose_weights(mdp, weights, norm=norm, center=center, z=z)


def _ball(
    mdp: MDP, kind: str, chosen: ChosenWeights, samples: Floats, level: Floats
) -> AmbiguitySet:
    weights = np.ones(mdp.num_entries) if chosen.weights is None else chosen.weights
    budget = np.empty(mdp.num_rows)
    kernels.row_budgets(BOUNDS[kind], mdp.row_start, weights, samples, level, budget)
    # Rows without samples, or without a promise, get the whole simplex, whatever their weights.
    budget[mdp.uncertain_rows & (samples == 0)] = np.inf
    return AmbiguitySet(mdp=mdp, norm=NORM_OF[kind], budget=budget, weights=chosen.weights)


def _kl(mdp: MDP, samples: Floats, level: Floats) -> AmbiguitySet:
    sizes = np.diff(mdp.row_start)
    budget = np.array(
        [kernels.kl_budget(k, n, at) for k, n, at in zip(sizes, samples, level, strict=True)]
    )
    return AmbiguitySet(mdp=mdp, norm="kl", budget=budget)


def _box(mdp: MDP, counts: Counts, samples: Floats, level: Floats) -> AmbiguitySet:
    rows: Any = mdp.entry_row
    tried = samples[rows] > 0
    hits = np.where(tried, counts.count, 0)
    sides = np.exp(level - np.log(2.0 * np.diff(mdp.row_start)))
    if counts.unseen is not None:
        # The successors a row lists were read off these data: allow for any state being one.
        sides = np.exp(level - np.log(4.0 * mdp.num_states))
    low, high = clopper_pearson(hits, samples[rows], sides[rows])
    if counts.unseen is not None:
        new = (counts.successor == counts.unseen) & tried
        once = np.add.reduceat(counts.count == 1, mdp.row_start[:-1])
        high[new] = missing_mass(once, samples, level - np.log(2.0))[rows][new]
    single = ~mdp.uncertain_rows[rows]
    low[single] = high[single] = 1.0
    return AmbiguitySet(mdp=mdp, norm="box", lower=low, upper=high)


def missing_mass(once: Any, samples: Any, log_level: Any) -> Floats:
    """Return an upper bound on the probability of all successors never seen together.

    With probability ``1 - level`` the missing mass of ``n`` independent samples is at most
    ``n_1/n + (2 sqrt 2 + sqrt 3) sqrt(log(3/level)/n)``, ``n_1`` the number of successors seen once
    (McAllester and Schapire 2000). The set of unseen successors depends on the data, so an interval
    for a fixed set would not be valid.

    Examples
    --------
    >>> missing_mass(np.array([2, 2]), np.array([20.0, 1e6]), np.log(0.01)).round(4).tolist()
    [1.0, 0.0109]
    """
    n = np.maximum(np.asarray(samples, dtype=np.float64), 1.0)
    off = (2 * np.sqrt(2.0) + np.sqrt(3.0)) * np.sqrt((np.log(3.0) - log_level) / n)
    return np.asarray(np.minimum(1.0, np.asarray(once) / n + off))


def _findings(
    counts: Counts, chosen: ChosenWeights, reuse: bool, fixed_design: bool, policy: bool
) -> tuple[Finding, ...]:
    codes = []
    if fixed_design:
        codes.append("samples_fixed")
    if chosen.name == "given":
        codes.append("weights_independent")
    elif chosen.scale == "unit":
        codes.append("weights_reused" if reuse else "weights_from_other_data")
    if policy:
        codes.append("policy_from_other_data")
    # A state that stands for the unseen has bounded mass; without one the list is assumed complete.
    read_off = counts.report is not None and counts.report.support != "listed"
    if read_off and counts.unseen is None:
        codes.append("successors_read_off")
    if rewards_taken_as_seen(counts):
        codes.append("rewards_as_seen")
    return tuple(map(Finding.of, codes))
