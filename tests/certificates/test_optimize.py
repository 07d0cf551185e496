"""Finding a policy: the best of its candidates, certified on draws that did not choose it."""

import itertools

import numpy as np
import pytest
from scipy.stats import beta, binom

from surefoot._order_statistics import lower_rank
from surefoot.certificates import models
from surefoot.certificates.certification import certify
from surefoot.certificates.models import choosing_rng, split_draws
from surefoot.certificates.optimize import optimize
from surefoot.certificates.var import var_solve
from surefoot.data.counts import Counts
from surefoot.data.transitions import read_transitions
from surefoot.domains import garnet, machine_replacement, riverswim
from surefoot.domains.garnet import river_chain
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.draws import PosteriorDraws
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.solver import evaluate, solve


def data(domain, n_per_row, seed=0):
    counts = domain.simulate(n_per_row, np.random.default_rng(seed))
    mdp = counts.to_mdp(discount=domain.mdp.discount, prior=1.0, initial=domain.mdp.initial)
    return DirichletPosterior(counts), mdp


def rng(seed=0):
    return np.random.default_rng(seed)


def search_rng(seed):
    """Return the generator that the search draws from: its draws again."""
    return choosing_rng(rng(seed).spawn(3)[1])


@pytest.fixture(scope="module")
def machine():
    posterior, mdp = data(machine_replacement(), 20)
    return posterior, mdp, optimize(posterior, mdp, delta=0.05, rng=rng(5), draws=800)


def test_selected_is_the_best_candidate_on_the_same_draws(machine):
    posterior, mdp, result = machine
    rewards = rewards_of(mdp, posterior, objective="max")
    assert result.selection_draws == 800
    for candidate in result.candidates:
        again = policy_returns(
            posterior, mdp, check_policy(mdp, candidate.policy), 800, search_rng(5),
            rewards=rewards,
        )  # fmt: skip
        recomputed = np.sort(again.lower)[int(0.05 * 801) - 1]
        assert candidate.percentile == pytest.approx(recomputed, rel=1e-9)
        nominal = evaluate(mdp, candidate.policy)
        assert candidate.nominal_return == pytest.approx(nominal.return_lower, abs=1e-5)
    best = max(candidate.percentile for candidate in result.candidates)
    (chosen,) = (candidate for candidate in result.candidates if candidate.selected)
    assert chosen.percentile == best
    np.testing.assert_array_equal(chosen.policy, result.policy)
    np.testing.assert_array_equal(result.certificate.policy, result.policy)


def test_the_pool_has_all_kinds_of_candidates(machine):
    *_, result = machine
    names = [candidate.name for candidate in result.candidates]
    assert names[0] == "nominal"
    for kind in ("robust", "VaR", "coordinate ascent", "local search"):
        assert any(name.startswith(kind) for name in names)
    text = result.summary()
    assert all(name in text for name in names)
    assert "selected" in text
    assert "out of" in repr(result)


def test_the_nominal_candidate_is_optimal_for_the_posterior_mean(machine):
    _, mdp, result = machine
    nominal = solve(mdp)
    assert result.candidates[0].nominal_return == pytest.approx(nominal.return_lower, abs=1e-4)


def test_the_optimum_of_all_policies_of_machine_replacement_is_found(machine):
    posterior, mdp, result = machine
    draws = posterior.sample(800, search_rng(5))
    transitions = np.zeros((800, 10, 2, 10))
    where = mdp.row_state[mdp.entry_row], mdp.row_action[mdp.entry_row], mdp.successor
    transitions[:, *where] = draws
    expected = np.zeros((800, 10, 2))
    fixed = rewards_of(mdp, posterior, objective="max").fixed
    np.add.at(expected, (slice(None), *where[:2]), draws * fixed)
    states, best = np.arange(10), -np.inf
    for policy in itertools.product((0, 1), repeat=10):
        matrix = np.eye(10) - mdp.discount * transitions[:, states, policy]
        value = np.linalg.solve(matrix, expected[:, states, policy][..., None])[..., 0]
        best = max(best, np.sort(value @ mdp.initial)[int(0.05 * 801) - 1])
    assert max(candidate.percentile for candidate in result.candidates) == pytest.approx(best)


def test_the_certificate_is_that_of_certify_on_fresh_draws(machine):
    posterior, mdp, result = machine
    alone = certify(result.policy, posterior, mdp, delta=0.05, draws=800, rng=rng(5).spawn(3)[2])
    assert alone.lower_bound == result.certificate.lower_bound
    assert alone.upper_bound == result.certificate.upper_bound


def test_the_same_seed_gives_the_same_result(machine):
    posterior, mdp, first = machine
    second = optimize(posterior, mdp, delta=0.05, rng=rng(5), draws=800)
    np.testing.assert_array_equal(first.policy, second.policy)
    assert first.certificate.lower_bound == second.certificate.lower_bound
    for one, two in zip(first.candidates, second.candidates, strict=True):
        assert (one.name, one.percentile) == (two.name, two.percentile)
        np.testing.assert_array_equal(one.policy, two.policy)
    other = optimize(posterior, mdp, delta=0.05, rng=rng(6), draws=800)
    assert other.certificate.lower_bound != first.certificate.lower_bound


def test_the_same_seed_for_choosing_and_certifying_gives_other_draws(machine):
    posterior, *_ = machine
    first = posterior.sample(50, search_rng(5))[:, 0]
    for path in itertools.chain([()], *(itertools.product(range(3), repeat=k) for k in (1, 2, 3))):
        child = rng(5)
        for k in path:
            child = child.spawn(3)[k]
        assert not np.isin(posterior.sample(50, child)[:, 0], first).any()


@pytest.mark.parametrize("kind", ["few states", "chain", "random"])
def test_threads_change_nothing(kind, machine, monkeypatch):
    posterior, mdp, _ = machine
    if kind != "few states":
        model = (
            river_chain(260, discount=0.95)
            if kind == "chain"
            else garnet(260, 3, 4, discount=0.9, rng=rng(3))
        )
        posterior, mdp = data(model, 5)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(
            "surefoot.solvers.evaluation.threads.available_cores", lambda n=cores: n
        )
        monkeypatch.setattr("surefoot.solvers.evaluation.threads.WORTH_A_THREAD", 1.0)
        found.append(optimize(posterior, mdp, delta=0.05, rng=rng(5), draws=200))
    one, three = found
    assert [c.percentile for c in one.candidates] == [c.percentile for c in three.candidates]
    assert one.certificate.lower_bound == three.certificate.lower_bound
    assert one.certificate.upper_bound == three.certificate.upper_bound


@pytest.mark.parametrize("domain", [riverswim(), machine_replacement()])
def test_costs_mirror_rewards(domain):
    posterior, mdp = data(domain, 10)
    costs = MDP(**{**mdp.__dict__, "reward": -mdp.reward})
    gain = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=500)
    cost = optimize(posterior, costs, delta=0.1, rng=rng(1), draws=500, objective="min")
    np.testing.assert_array_equal(gain.policy, cost.policy)
    assert cost.certificate.upper_bound == -gain.certificate.lower_bound
    assert cost.certificate.lower_bound == -gain.certificate.upper_bound
    for one, two in zip(gain.candidates, cost.candidates, strict=True):
        assert one.percentile == -two.percentile
        assert one.nominal_return == pytest.approx(-two.nominal_return)


def test_allowed_restricts_every_candidate():
    domain = garnet(8, 4, 3, discount=0.9, rng=rng(3))
    posterior, mdp = data(domain, 10)
    allowed = rng(4).random((8, 4)) < 0.4
    allowed[np.arange(8), rng(5).integers(0, 4, 8)] = True
    result = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=400, allowed=allowed)
    for candidate in result.candidates:
        assert allowed[np.arange(8), candidate.policy].all()
    pairs = optimize(
        posterior, mdp, delta=0.1, rng=rng(1), draws=400, allowed=np.argwhere(allowed).tolist()
    )
    np.testing.assert_array_equal(pairs.policy, result.policy)
    assert pairs.certificate.lower_bound == result.certificate.lower_bound
    free = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=400)
    assert max(c.percentile for c in free.candidates) > max(c.percentile for c in result.candidates)
    one = allowed & (np.cumsum(allowed, axis=1) == 1)
    only = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=400, allowed=one)
    np.testing.assert_array_equal(only.policy, one.argmax(axis=1))


def test_what_is_not_considered_is_not_chosen_but_counts_for_the_limit():
    domain = garnet(8, 4, 3, discount=0.9, rng=rng(3))
    posterior, mdp = data(domain, 10)
    some = rng(4).random((8, 4)) < 0.4
    some[np.arange(8), rng(5).integers(0, 4, 8)] = True
    options = {"delta": 0.1, "draws": 400}
    result = optimize(posterior, mdp, rng=rng(1), considered=some, **options)
    for candidate in result.candidates:
        assert some[np.arange(8), candidate.policy].all()
    assert "among those allowed" not in result.certificate.sentence
    free = optimize(posterior, mdp, rng=rng(1), **options).certificate
    among = optimize(posterior, mdp, rng=rng(1), allowed=some, **options).certificate
    limit = result.certificate.upper_bound
    assert limit == pytest.approx(free.upper_bound, rel=0.02)
    assert limit > among.upper_bound
    with pytest.raises(ValueError, match="considered leaves no allowed action in state 0"):
        optimize(posterior, mdp, rng=rng(1), considered=~some, allowed=some, **options)


def test_out_of_time_the_best_so_far_is_certified():
    posterior, mdp = data(machine_replacement(), 10)
    result = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=400, time_budget=0.0)
    assert result.stopped_early
    assert "stopped early" in repr(result)
    assert [candidate.name for candidate in result.candidates] == ["nominal"]
    assert np.isfinite(result.certificate.lower_bound)
    ample = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=400, time_budget=1e6)
    unlimited = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=400)
    assert not ample.stopped_early
    assert not unlimited.stopped_early
    np.testing.assert_array_equal(ample.policy, unlimited.policy)


@pytest.mark.parametrize("looks", [3, 30, 60, 90, 120])
def test_the_search_ends_soon_after_its_time_is_over(looks, monkeypatch):
    """Wherever the time ends, what is left is at most a candidate or two, and none is a loss."""
    posterior, mdp = data(machine_replacement(), 10)
    seen, evaluations = [], []

    def over(_clock):
        seen.append(None)
        _clock.stopped = len(seen) > looks
        return _clock.stopped

    real = models.policy_values

    def counted(*given):
        if len(seen) > looks:
            evaluations.append(None)
        return real(*given)

    monkeypatch.setattr("surefoot.certificates.clock.SearchClock.__call__", over)
    for place in ("search", "local_search"):
        monkeypatch.setattr(f"surefoot.certificates.{place}.policy_values", counted)
    result = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=400)
    assert result.stopped_early
    # One candidate is rated after the end; each is also evaluated once in the mean model.
    assert len(evaluations) <= 3 + len(result.candidates)
    assert max(c.percentile for c in result.candidates) >= result.candidates[0].percentile


def test_progress_is_told_after_each_candidate():
    posterior, mdp = data(riverswim(), 10)
    told = []
    result = optimize(
        posterior, mdp, delta=0.1, rng=rng(1), draws=300, progress=lambda *x: told.append(x)
    )
    assert [name for name, _ in told] == [candidate.name for candidate in result.candidates]
    best = [reached for _, reached in told]
    assert best == sorted(best)


def arms_and_terminals(arms, wins, losses, discount=0.5):
    """Return a bandit of equal arms: each wins the same share of its pulls."""
    transitions = np.zeros((3, arms, 3))
    transitions[0, :, 1:] = 0.5
    transitions[1, 0, 1] = transitions[2, 0, 2] = 1.0
    rewards = np.zeros((3, arms))
    rewards[1, 0] = 1.0
    mdp = MDP.from_arrays(transitions, rewards, discount=discount, initial=[1.0, 0.0, 0.0])
    count = [*np.tile([wins, losses], arms).tolist(), 1, 1]
    return DirichletPosterior(Counts.on_rows_of(mdp, np.array(count))), mdp


def test_certifying_on_the_draws_that_chose_would_fail_where_ours_holds():
    """Two hundred equal arms and few draws: the best looks better than it is."""
    wins, losses, n, delta, eta, repetitions = 3, 3, 120, 0.2, 0.05, 25
    posterior, mdp = arms_and_terminals(200, wins, losses)
    # The return is discount/(1-discount) = 1 times the chance to win, for every policy alike.
    quantile = beta(wins + 1, losses + 1).ppf(delta)
    rewards = rewards_of(mdp, posterior, objective="max")
    rank = lower_rank(n, delta, eta)
    reused, fresh = 0, 0
    for seed in range(repetitions):
        result = optimize(posterior, mdp, delta=delta, eta=eta, rng=rng(seed), draws=n)
        fresh += result.certificate.lower_bound > quantile
        rows = check_policy(mdp, result.policy)
        same = posterior.sample(n, search_rng(seed))
        win = same[:, mdp.row_start[rows.rows[0]]]
        assert rewards.fixed.max() == 1.0
        reused += np.sort(win)[rank - 1] > quantile
    assert binom.sf(fresh - 1, repetitions, eta) > 0.001  # ours holds
    assert binom.sf(reused - 1, repetitions, eta) < 1e-9  # theirs does not


def test_uncertain_rewards_count():
    """An action that seldom paid, and once paid much, is not promised what it paid on average."""
    often, seldom = rng(0).normal(1.0, 0.5, 400), np.array([9.0, -6.0, 1.6])
    log = {
        "state": np.repeat([0, 1], [403, 5]), "action": np.repeat([0, 1, 2], [400, 3, 5]),
        "next_state": np.repeat([1, 0], [403, 5]),
        "reward": np.concatenate([often, seldom, np.zeros(5)]),
    }  # fmt: skip
    counts = read_transitions(log, rewards="normal").on_support("observed")
    posterior, mdp = DirichletPosterior(counts), counts.to_mdp(discount=0.5, initial=[1.0, 0.0])
    result = optimize(posterior, mdp, delta=0.05, rng=rng(1), draws=500)
    assert result.candidates[0].policy.tolist() == [1, 2]  # the nominal one
    assert result.policy.tolist() == [0, 2]
    # One reward of about 1 every other step: 1 / (1 - 0.25).
    assert 1.2 < result.certificate.lower_bound < 4 / 3
    assert result.candidates[0].percentile < 0


def test_finitely_many_draws_are_split_once():
    exact, mdp = data(riverswim(), 20)
    posterior = PosteriorDraws.from_arrays(exact.sample(1001, rng(3)), mdp=mdp, independent=True)
    result = optimize(posterior, mdp, delta=0.1, rng=rng(1))
    assert result.selection_draws == 500
    assert result.certificate.draws == 501
    assert any("1001 draws were split once: 500 to choose" in note for note in result.notes)
    fewer = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=501)
    assert fewer.selection_draws == 500
    assert any("500 draws, not 501: the posterior has no more" in note for note in fewer.notes)


def test_the_parts_of_a_split_have_no_common_draw():
    exact, mdp = data(riverswim(), 20)

    class Finite:
        """A posterior with an end and no way to split it, as a fitted hierarchical one."""

        num_draws = 300
        counts = None
        identity = exact.identity

        def sample(self, n, rng):
            return exact.sample(n, rng)

        def mean(self):
            return exact.mean()

    one, two = split_draws(Finite(), mdp, rng(2))
    draws = np.concatenate([one.sample(150, rng(0)), two.sample(150, rng(0))])
    assert len(np.unique(draws, axis=0)) == 300
    tiny = Finite()
    tiny.num_draws = 1
    with pytest.raises(ValueError, match="need draws of their own"):
        split_draws(tiny, mdp, rng(2))
    assert split_draws(exact, mdp, rng(2)) == (exact, exact)


def test_large_models_are_searched_without_inverses(monkeypatch):
    domain = garnet(260, 3, 4, discount=0.9, rng=rng(3))
    posterior, mdp = data(domain, 5)
    monkeypatch.setattr("surefoot.certificates.local_search.flip_table", None)
    numbers = mdp.num_entries + mdp.num_rows
    monkeypatch.setattr("surefoot.certificates.models.BATCH_VALUES", 100 * numbers)
    result = optimize(posterior, mdp, delta=0.1, rng=rng(1), draws=200)
    assert result.selection_draws == 100
    assert any("100 draws, not 200: no more fit in memory" in note for note in result.notes)
    (local,) = (c for c in result.candidates if c.name.startswith("local search"))
    assert local.percentile >= max(c.percentile for c in result.candidates)
    assert local.percentile > result.candidates[0].percentile


def test_the_certificate_is_not_below_the_var_promise():
    posterior, mdp = data(riverswim(), 100)
    result = optimize(posterior, mdp, delta=0.05, rng=rng(1), draws=4000)
    for allocate in ("equal", "greedy"):
        promise = var_solve(posterior, mdp, delta=0.05, rng=rng(2), allocate=allocate).promise
        assert result.certificate.lower_bound >= promise


@pytest.mark.parametrize(("options", "message"), [
    ({"delta": 0.0}, "delta=0.0"),
    ({"delta": float("nan")}, "delta=nan"),
    ({"time_budget": -1.0}, "time_budget=-1.0"),
    ({"time_budget": float("nan")}, "time_budget=nan"),
    ({"rng": 3}, "numpy Generator, got int"),
    ({"objective": "best"}, "'max' or 'min'"),
    ({"draws": 0}, "n=0"),
    ({"draws": 30}, "needs at least"),
    ({"allowed": np.zeros((6, 2), dtype=bool)}, "no available action"),
])  # fmt: skip
def test_bad_input(options, message):
    posterior, mdp = data(riverswim(), 5)
    arguments = {"delta": 0.1, "rng": rng()} | options
    with pytest.raises(ValueError, match=message):
        optimize(posterior, mdp, **arguments)


def test_inputs_are_not_modified():
    posterior, mdp = data(riverswim(), 5)
    allowed = np.ones((6, 2), dtype=bool)
    before = mdp.probability.copy(), posterior.mean().copy()
    optimize(posterior, mdp, delta=0.1, rng=rng(), draws=200, allowed=allowed)
    np.testing.assert_array_equal(mdp.probability, before[0])
    np.testing.assert_array_equal(posterior.mean(), before[1])
    assert allowed.all()
