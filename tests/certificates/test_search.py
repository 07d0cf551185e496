"""Local search: the one-flip formula against direct evaluation, and against all policies."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from surefoot.certificates.candidates import mean_distances, proposals
from surefoot.certificates.local_search import (
    climb,
    estimated_flip_table,
    flip_table,
    local_search,
)
from surefoot.certificates.models import (
    allowed_rows,
    draw_models,
    percentile,
    policy_values,
    policy_visits,
)
from surefoot.data.transitions import read_transitions
from surefoot.domains import garnet, machine_replacement, riverswim
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.evaluation.evaluator import choose_evaluator
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of


def batch_of(domain, n_per_row, draws, seed=0, rows=None):
    counts = domain.simulate(n_per_row, np.random.default_rng(seed))
    posterior = DirichletPosterior(counts)
    rewards = rewards_of(domain.mdp, posterior, objective="max")
    chosen = np.arange(domain.mdp.num_rows) if rows is None else rows
    return draw_models(
        posterior, domain.mdp, rewards, chosen, draws, np.random.default_rng(seed + 1)
    )


def random_domain(states, actions, successors, discount=0.9, seed=0):
    return garnet(states, actions, successors, discount=discount, rng=np.random.default_rng(seed))


def direct_returns(batch, choice):
    """Return the returns from the definition, with a linear solver of NumPy."""
    mdp, returns = batch.mdp, []
    for i in range(batch.size):
        matrix, gain = np.eye(mdp.num_states), np.zeros(mdp.num_states)
        for s, row in enumerate(choice):
            gain[s] = batch.gains[i, row]
            for e in range(mdp.row_start[row], mdp.row_start[row + 1]):
                matrix[s, mdp.successor[e]] -= mdp.discount * batch.draws[i, e]
        returns.append(batch.initial @ np.linalg.solve(matrix, gain))
    return np.array(returns)


@pytest.mark.parametrize("domain", [
    riverswim(), machine_replacement(), random_domain(15, 3, 4, 0.99), random_domain(7, 4, 7),
])  # fmt: skip
def test_one_flip_formula_is_exact(domain):
    batch = batch_of(domain, 5, 12)
    rng = np.random.default_rng(1)
    first, last = batch.mdp.state_start[:-1], batch.mdp.state_start[1:]
    choice = rng.integers(first, last)
    table = flip_table(batch, choice)
    base = np.abs(direct_returns(batch, choice)).max()  # a flip to 0 cancels numbers of this size
    for row in range(batch.mdp.num_rows):
        flipped = choice.copy()
        flipped[batch.mdp.row_state[row]] = row
        expected = direct_returns(batch, flipped)
        np.testing.assert_allclose(table[row], expected, rtol=1e-9, atol=1e-13 * base)


def test_one_flip_formula_with_uncertain_rewards():
    rng = np.random.default_rng(3)
    size = 300
    log = {
        "state": rng.integers(0, 3, size), "action": rng.integers(0, 2, size),
        "next_state": rng.integers(0, 3, size), "reward": rng.normal(1.0, 1.0, size),
    }  # fmt: skip
    counts = read_transitions(log).on_support("observed")
    mdp, posterior = counts.to_mdp(discount=0.9), DirichletPosterior(counts)
    rewards = rewards_of(mdp, posterior, objective="max")
    assert rewards.uncertain.any()
    batch = draw_models(
        posterior, mdp, rewards, np.arange(mdp.num_rows), 20, np.random.default_rng(0)
    )
    means = np.add.reduceat(batch.draws * rewards.fixed, mdp.row_start[:-1], axis=1)
    assert np.abs(batch.gains - means).max() > 0.01  # rewards differ from draw to draw
    choice = batch.mdp.state_start[:-1].copy()
    table = flip_table(batch, choice)
    choice[1] += 1
    np.testing.assert_allclose(table[choice[1]], direct_returns(batch, choice), rtol=1e-9)


def test_values_and_visits_agree_with_the_definition():
    batch = batch_of(random_domain(12, 3, 4), 5, 70)
    choice = batch.mdp.state_start[:-1] + 1
    _, returns = policy_values(batch, choice)
    visits = policy_visits(batch, choice)
    np.testing.assert_allclose(returns, direct_returns(batch, choice), rtol=1e-12)
    np.testing.assert_allclose(visits.sum(axis=1), 1 / (1 - batch.mdp.discount), rtol=1e-12)
    np.testing.assert_allclose((visits * batch.gains[:, choice]).sum(axis=1), returns, rtol=1e-12)
    gains = np.add.reduceat(batch.draws * batch.mdp.reward, batch.mdp.row_start[:-1], axis=1)
    np.testing.assert_allclose(batch.gains, gains, rtol=1e-12)


@pytest.mark.parametrize("kind", ["factored", "products"])
def test_large_models_are_evaluated_to_the_same_numbers(kind, monkeypatch):
    batch = batch_of(random_domain(40, 3, 5), 5, 30)
    choice = batch.mdp.state_start[:-1] + 2
    values, returns = policy_values(batch, choice)
    visits = policy_visits(batch, choice)
    assert batch.evaluator.kind == "full"
    batch = evaluated(batch, kind, monkeypatch)
    sparse, sparse_returns = policy_values(batch, choice)
    near = 1e-12 if kind == "factored" else 1e-6
    np.testing.assert_allclose(sparse_returns, returns, rtol=near)
    np.testing.assert_allclose(sparse, values, rtol=10 * near)
    near = 1e-12 if kind == "factored" else 1e-2
    np.testing.assert_allclose(policy_visits(batch, choice), visits, rtol=near, atol=0.1 * near)


def evaluated(batch, kind, monkeypatch):
    """Return a batch whose policies are evaluated in another way."""
    monkeypatch.setattr("surefoot.solvers.evaluation.evaluator.FULL_STATES", 0)
    monkeypatch.setattr("surefoot.solvers.evaluation.evaluator.SPARSE_COST", 1e-9)
    if kind == "products":
        monkeypatch.setattr("surefoot.solvers.evaluation.evaluator.FEW_STATES", 1000)
    other = replace(batch, evaluator=choose_evaluator(batch.mdp))
    assert other.evaluator.kind == kind
    return other


def test_estimated_flips_have_the_sign_of_exact_ones():
    batch = batch_of(random_domain(12, 3, 4), 5, 40)
    choice = batch.mdp.state_start[:-1] + 1
    values, returns = policy_values(batch, choice)
    estimated = estimated_flip_table(batch, values, policy_visits(batch, choice), returns) - returns
    exact = flip_table(batch, choice) - returns
    clear = np.abs(exact) > 1e-9
    assert clear.mean() > 0.5
    np.testing.assert_array_equal(np.sign(estimated[clear]), np.sign(exact[clear]))


def all_percentiles(batch, rank):
    """Return the percentile of every deterministic policy."""
    starts, ends = batch.mdp.state_start[:-1], batch.mdp.state_start[1:]
    policies = product(*(range(a, b) for a, b in zip(starts, ends, strict=True)))
    return {
        choice: percentile(policy_values(batch, np.array(choice))[1], rank) for choice in policies
    }


@pytest.mark.parametrize("seed", range(3))
def test_local_search_finds_the_best_of_all_policies_of_machine_replacement(seed):
    batch = batch_of(machine_replacement(), 20, 1000, seed)
    every = all_percentiles(batch, batch.rank(0.05))
    assert len(every) == 1024
    best = max(every.values())
    for start in (batch.mdp.state_start[:-1], batch.mdp.state_start[1:] - 1):
        choice, reached = local_search(batch, start, 0.05)
        assert reached == pytest.approx(every[tuple(choice)], rel=1e-12)
        assert reached == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_local_search_finds_the_best_of_all_policies_of_riverswim(seed):
    batch = batch_of(riverswim(), 20, 1000, seed)
    every = all_percentiles(batch, batch.rank(0.05))
    starts = [choice for _, choice in proposals(batch, 0.05, lambda: False)]
    reached = max(local_search(batch, choice, 0.05)[1] for choice in starts)
    assert reached == pytest.approx(max(every.values()), rel=1e-9)


def test_local_search_ends_where_no_single_change_helps():
    batch = batch_of(random_domain(20, 4, 5), 5, 200)
    choice, reached = local_search(batch, batch.mdp.state_start[:-1], 0.1)
    table = flip_table(batch, choice)
    rank = batch.rank(0.1)
    flips = np.sort(table, axis=1)[:, rank - 1]
    assert flips.max() <= reached + 1e-8 * abs(reached)


@pytest.mark.parametrize("kind", ["factored", "products"])
def test_search_without_inverses_comes_close(kind, monkeypatch):
    batch = batch_of(random_domain(40, 4, 6, seed=4), 4, 200)
    start = batch.mdp.state_start[:-1]
    before = percentile(policy_values(batch, start)[1], batch.rank(0.1))
    _, exact = local_search(batch, start, 0.1)
    monkeypatch.setattr("surefoot.certificates.local_search.flip_table", None)  # never called
    choice, rough = local_search(evaluated(batch, kind, monkeypatch), start, 0.1)
    monkeypatch.undo()
    assert percentile(policy_values(batch, choice)[1], batch.rank(0.1)) == pytest.approx(rough)
    assert rough > before + 0.9 * (exact - before)


def test_changes_of_large_models_must_help_draws_that_did_not_suggest_them(monkeypatch):
    monkeypatch.setattr("surefoot.certificates.models.EXACT_WORK", 0.0)
    batch = batch_of(random_domain(60, 4, 5), 4, 60)
    assert not batch.small
    start = batch.mdp.state_start[:-1]
    middle = batch.size // 2
    rest = batch.part(slice(middle, None))
    before = percentile(policy_values(rest, start)[1], rest.rank(0.1))
    choice, reached = local_search(batch, start, 0.1)
    assert percentile(policy_values(rest, choice)[1], rest.rank(0.1)) > before
    whole = percentile(policy_values(batch, choice)[1], batch.rank(0.1))
    assert reached == pytest.approx(whole, rel=1e-7)
    monkeypatch.setattr("surefoot.certificates.local_search._Jury.agrees", lambda *_: False)
    assert np.array_equal(local_search(batch, start, 0.1)[0], start)


def test_climbing_never_loses_and_knows_the_mean():
    batch = batch_of(random_domain(20, 4, 5), 3, 300)
    start = batch.mdp.state_start[:-1]
    rank = batch.rank(0.05)
    before = percentile(policy_values(batch, start)[1], rank)
    for share in (0.05, 0.5, 1.0):
        assert percentile(policy_values(batch, climb(batch, start, 0.05, share))[1], rank) >= before
    mean = policy_values(batch, climb(batch, start, 0.5, 1.0))[1].mean()
    assert mean > policy_values(batch, start)[1].mean()


def test_large_models_leave_a_path_that_leads_down(monkeypatch):
    batch = batch_of(random_domain(60, 4, 5), 4, 60)
    monkeypatch.setattr("surefoot.certificates.models.EXACT_WORK", 0.0)
    every = list(proposals(batch, 0.1, lambda: False))
    reached, names = {}, []
    for name, choice in proposals(batch, 0.1, lambda: False, reached):
        kind = name.split(",")[0]
        falls = {"robust": [3, 5, 4, 4.5, 6, 7], "VaR": [3, 2, 3, 2, 1]}.get(kind, [1])
        at = sum(other.startswith(kind) for other in names)
        reached[choice.tobytes()] = falls[at]
        names.append(name)
    robust, var = ([one for one, _ in every if one.startswith(kind)] for kind in ("robust", "VaR"))
    rest = [one for one, _ in every if one not in robust + var]
    assert names == [rest[0], *robust[:4], *var, *rest[1:]]


def test_small_models_look_at_all_candidates():
    batch = batch_of(riverswim(), 5, 50)
    assert batch.small
    every = [name for name, _ in proposals(batch, 0.1, lambda: False)]
    falling: dict[bytes, float] = {}
    names = []
    for name, choice in proposals(batch, 0.1, lambda: False, falling):
        falling[choice.tobytes()] = -float(len(names))
        names.append(name)
    assert names == every


def test_budgets_of_robust_candidates_are_mean_distances():
    batch = batch_of(riverswim(), 5, 500)
    starts = batch.mdp.row_start
    row = 3
    part = slice(starts[row], starts[row + 1])
    expected = np.abs(batch.draws[:, part] - batch.mdp.probability[part]).sum(axis=1).mean()
    assert mean_distances(batch)[row] == pytest.approx(expected)


def test_a_restricted_batch_holds_the_draws_of_its_rows():
    mdp = riverswim().mdp
    rows = np.array([1, 2, 3, 5, 6, 7, 9, 11])
    whole, part = batch_of(riverswim(), 20, 30), batch_of(riverswim(), 20, 30, rows=rows)
    entries = np.isin(mdp.entry_row, rows)
    np.testing.assert_array_equal(part.draws, whole.draws[:, entries])
    np.testing.assert_array_equal(part.mdp.successor, mdp.successor[entries])
    np.testing.assert_array_equal(part.mdp.row_action, mdp.row_action[rows])
    choice = np.array([0, 1, 3, 4, 6, 7])
    np.testing.assert_allclose(
        policy_values(part, choice)[1], policy_values(whole, rows[choice])[1], rtol=1e-12
    )


def test_states_with_an_uncertain_reward_count_as_uncertain():
    domain = random_domain(3, 1, 1)
    counts = domain.simulate(3, np.random.default_rng(0))
    posterior = DirichletPosterior(counts)
    fixed = rewards_of(domain.mdp, posterior, objective="max").fixed
    rewards = Rewards(fixed=fixed, counts=counts, uncertain=np.zeros(3, dtype=bool))
    batch = draw_models(posterior, domain.mdp, rewards, np.arange(3), 4, np.random.default_rng(0))
    assert not batch.uncertain_states.any()
    assert batch.num_uncertain == 1


@pytest.mark.parametrize(("allowed", "message"), [
    (np.ones((6, 3), dtype=bool), r"allowed has shape \(6, 3\)"),
    (np.zeros((6, 2), dtype=bool), "no available action in state 0"),
    ([(0, 0), (1, 0)], "no available action in state 2 "),
    ([(0, 7)], "action 7 is not available in state 0"),
    ([0.5], "booleans or a list"),
])  # fmt: skip
def test_what_is_not_allowed_is_explained(allowed, message):
    with pytest.raises(ValueError, match=message):
        allowed_rows(riverswim().mdp, allowed)
