"""Discount 1 without a horizon: models that end, bounds against exact values, refusals."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from contracts import ALGORITHMS, EXACT_SETS, NATURES, OBJECTIVES, bounds_hold, promise_kept
from exact_models import ExactModel
from oracles import ExactRow
from surefoot import MDP, AmbiguitySet, DirichletPosterior, certify, evaluate, optimize, solve
from surefoot.data.counts import Counts
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.returns import best_returns, policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.steps import counted_steps, ends_of, expected_steps

SIDES = list(product(OBJECTIVES, NATURES))


class EndingModel(ExactModel):
    """An exact model in which ends lead nowhere, so that its equations can be solved."""

    def row(self, row: int, v: list[Fraction]) -> ExactRow:  # type: ignore[override]
        if ends_of(self.mdp)[self.mdp.row_state[row]]:
            return ExactRow(Fraction(0), [Fraction(0)])
        return super().row(row, v)


def ending_model(rng: np.random.Generator, states: int, least: float) -> MDP:
    """Return a model that ends at each step with a probability of at least ``least``."""
    size = states + 1
    transitions = rng.dirichlet(np.full(size, 0.7), (size, 2))
    transitions[..., -1] += least
    transitions /= transitions.sum(axis=2, keepdims=True)
    rewards = rng.normal(size=(size, 2, size))
    transitions[-1], rewards[-1] = np.eye(size)[-1], 0.0
    return MDP.from_arrays(transitions, rewards, discount=1.0)


@pytest.mark.parametrize("name", [None, *EXACT_SETS])
def test_bounds_hold_exactly_at_every_stop(name: str | None) -> None:
    rng = np.random.default_rng(0 if name is None else 1 + list(EXACT_SETS).index(name))
    objective, nature = SIDES[rng.integers(4)]
    mdp = ending_model(rng, 3, 2.0)
    ambiguity = None if name is None else EXACT_SETS[name](mdp, 0.1)
    if name is not None and ("zero" in name or "beside" in name):
        with pytest.raises(ValueError, match="to no end"):
            solve(mdp, EXACT_SETS[name](mdp, 2.0))
        return
    oracle = EndingModel(mdp, ambiguity, objective=objective, nature=nature)
    truth = oracle.solve()
    for algorithm, stop in product(ALGORITHMS, (1, 3, 10, 1000)):
        found = solve(
            mdp, ambiguity, algorithm=algorithm, max_iterations=stop, objective=objective,
            nature=nature,
        )  # fmt: skip
        assert bounds_hold(found, truth), (algorithm, stop)
        assert promise_kept(found, oracle.value_of(np.asarray(found.policy))), (algorithm, stop)
        assert stop < 1000 or found.converged


def test_a_long_horizon_is_the_same() -> None:
    mdp = ending_model(np.random.default_rng(4), 6, 0.1)
    ended, long = solve(mdp), solve(mdp, horizon=400)
    assert np.allclose(ended.value, long.value, atol=1e-5)
    assert np.array_equal(np.asarray(long.policy)[0], ended.policy)
    policy = np.full((7, 2), 0.5)
    assert np.allclose(
        evaluate(mdp, policy).value, evaluate(mdp.over(400), policy).value, atol=1e-5
    )


def test_expected_steps_are_bounded_from_above() -> None:
    mdp = ending_model(np.random.default_rng(5), 5, 0.2)
    ones = replace(mdp, reward=np.where(ends_of(mdp)[mdp.entry_state], 0.0, 1.0))
    truth = EndingModel(ones).solve()
    bound = expected_steps(mdp)
    assert all(Fraction(b) >= t for b, t in zip(bound, truth, strict=True))
    assert counted_steps(mdp) <= 1.2 * float(max(truth))


def chain(stuck: bool) -> MDP:
    """Two states before an end; with ``stuck``, waiting in the first one never ends."""
    wait = [1.0, 0.0, 0.0] if stuck else [0.5, 0.5, 0.0]
    return MDP.from_arrays(
        [[wait, [0.0, 1.0, 0.0]], [[0.0, 0.5, 0.5]] * 2, [[0.0, 0.0, 1.0]] * 2],
        [[-1.0, -1.0], [-1.0, -1.0], [0.0, 0.0]], discount=1.0,
        state_labels=("far", "near", "home"),
    )  # fmt: skip


def test_models_that_need_not_end_are_refused_by_name() -> None:
    assert solve(chain(False)).value == pytest.approx([-3.0, -2.0, 0.0], abs=1e-5)
    with pytest.raises(ValueError, match=r"state 'far' leads to no end.*horizon="):
        solve(chain(True))
    open_ended = replace(chain(False), discount=1.0, reward=np.full(6, -1.0))
    with pytest.raises(ValueError, match="no absorbing state without reward"):
        solve(open_ended)
    wide = AmbiguitySet.from_arrays(chain(False), norm="l1", budget=1.5)
    with pytest.raises(ValueError, match="'near'"):
        solve(chain(False), wide)
    kl = AmbiguitySet.from_arrays(chain(False), norm="kl", budget=0.1)
    robust = solve(chain(False), kl)
    assert robust.converged
    assert robust.return_upper < solve(chain(False)).return_lower


def test_drawn_models_are_bracketed_until_the_end() -> None:
    rng = np.random.default_rng(6)
    mdp = ending_model(rng, 4, 0.5)
    counts = Counts.on_rows_of(mdp, rng.integers(1, 30, mdp.num_entries))
    posterior = DirichletPosterior(counts)
    rewards = rewards_of(mdp, posterior, objective="max")
    draws = posterior.sample(10, np.random.default_rng(1))
    policy = np.asarray(solve(mdp).policy)
    own = policy_returns(
        posterior, mdp, check_policy(mdp, policy), 10, np.random.default_rng(1), rewards=rewards
    )
    best = best_returns(posterior, mdp, 10, np.random.default_rng(1), rewards=rewards)
    for i, draw in enumerate(draws):
        drawn = replace(mdp, probability=draw)
        oracle = EndingModel(drawn)
        start = [Fraction(p) for p in mdp.initial]
        for found, values in ((own, oracle.value_of(policy)), (best, oracle.solve())):
            truth = sum(p * x for p, x in zip(start, values, strict=True)) / sum(start)
            assert Fraction(found.lower[i]) <= truth <= Fraction(found.upper[i])
            assert found.upper[i] - found.lower[i] < 1e-6
    made = optimize(posterior, mdp, draws=400, rng=np.random.default_rng(2))
    assert made.certificate.lower_bound <= made.certificate.upper_bound
    assert "expected return until the end from the stated" in made.certificate.sentence
    own_bound = certify(policy, posterior, mdp, draws=400, rng=np.random.default_rng(3)).lower_bound
    assert own_bound <= made.certificate.upper_bound
