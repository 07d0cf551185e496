"""The promise: its ranks, its returns, its two ends, its words."""

from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import surefoot as sf
from surefoot._order_statistics import draws_needed, lower_rank, marginal_rank, upper_rank
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.limit import count_policies, upper_bound
from surefoot.certificates.sentences import percent
from surefoot.model.policies import check_policy
from surefoot.solvers.evaluation.returns import best_returns, policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of


def problem(domain, samples, seed=0):
    counts = domain.simulate(samples, np.random.default_rng(seed))
    mdp = counts.to_mdp(discount=domain.mdp.discount, initial=domain.mdp.initial, prior=1.0)
    return mdp, sf.DirichletPosterior(counts, prior=1.0)


@pytest.fixture(scope="module")
def machine():
    return problem(sf.machine_replacement(), 20)


@pytest.fixture(scope="module")
def river():
    return problem(sf.riverswim(), 20)


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("eta", [0.001, 0.05])
@pytest.mark.parametrize("n", [1, 50, 399, 2000])
def test_ranks_are_the_extreme_ones(n, delta, eta):
    low = lower_rank(n, delta, eta)
    assert low == 0 or binom.cdf(low - 1, n, delta) <= eta
    assert low == n or binom.cdf(low, n, delta) > eta
    high = upper_rank(n, delta, eta)
    assert high == n + 1 or binom.sf(high - 1, n, delta) <= eta
    assert high == 1 or binom.sf(high - 2, n, delta) > eta
    assert marginal_rank(n, delta) <= max(high, delta * (n + 1))


def test_fewest_draws():
    assert draws_needed(0.05, 0.001) == 135
    assert lower_rank(135, 0.05, 0.001) == 1
    assert lower_rank(134, 0.05, 0.001) == 0


def exact_return(mdp, draw, rows):
    """Solve (I - gamma P) v = r in fractions; return initial . v."""
    n = mdp.num_states
    gamma = Fraction(mdp.discount)
    table = [[Fraction(int(i == j)) for j in range(n)] + [Fraction(0)] for i in range(n)]
    for s, row in enumerate(rows):
        entries = range(mdp.row_start[row], mdp.row_start[row + 1])
        for e in entries:
            p = Fraction(float(draw[e]))
            reward = mdp.reward[e] if mdp.reward_per_entry else mdp.reward[row]
            table[s][mdp.successor[e]] -= gamma * p
            table[s][n] += p * Fraction(float(reward))
    for pivot in range(n):
        for s in range(n):
            if s != pivot and table[s][pivot] != 0:
                factor = table[s][pivot] / table[pivot][pivot]
                table[s] = [a - factor * b for a, b in zip(table[s], table[pivot], strict=True)]
    start = [Fraction(float(p)) for p in mdp.initial]
    total = sum(start)
    return sum(start[s] * table[s][n] / table[s][s] for s in range(n)) / total


def test_brackets_hold_the_exact_return(river):
    mdp, posterior = river
    policy = np.ones(6, dtype=np.int64)
    rewards = rewards_of(mdp, posterior, objective="max")
    rng = np.random.default_rng(3)
    draws = posterior.sample(20, deepcopy(rng))
    rows = check_policy(mdp, policy)
    brackets = policy_returns(posterior, mdp, rows, 20, rng, rewards=rewards)
    for i in range(20):
        truth = exact_return(mdp, draws[i], rows.rows.astype(int))
        assert Fraction(brackets.lower[i]) <= truth <= Fraction(brackets.upper[i])
    assert brackets.numerical_error < 1e-5


def test_sweeps_and_elimination_bracket_the_same_returns(machine, monkeypatch):
    mdp, posterior = machine
    rows = check_policy(mdp, np.full((10, 2), 0.5))
    rewards = rewards_of(mdp, posterior, objective="max")
    results = []
    for limit in (220, 0):
        monkeypatch.setattr("surefoot.solvers.evaluation.evaluator.FULL_STATES", limit)
        rng = np.random.default_rng(5)
        results.append(policy_returns(posterior, mdp, rows, 200, rng, rewards=rewards))
        rng = np.random.default_rng(6)
        results.append(best_returns(posterior, mdp, 200, rng, rewards=rewards))
    for direct, swept in ((results[0], results[2]), (results[1], results[3])):
        assert np.all(direct.lower <= swept.upper)
        assert np.all(swept.lower <= direct.upper)
        np.testing.assert_allclose(direct.lower, swept.lower, atol=1e-5)


@pytest.mark.parametrize("largest", [1e160, 1.7e308])
@pytest.mark.parametrize("direct", [True, False])
def test_returns_beyond_the_doubles_bound_nothing(monkeypatch, largest, direct):
    """What cannot be computed may be anything: sorting must not take it for a high return."""
    if not direct:
        monkeypatch.setattr("surefoot.solvers.evaluation.evaluator.FULL_STATES", 0)
    counts = sf.Counts.from_arrays(
        np.ones((2, 1, 2), dtype=int), rewards=[[largest], [-largest]], support=np.ones((2, 1, 2))
    )
    mdp, posterior = counts.to_mdp(discount=0.9, prior=1.0), sf.DirichletPosterior(counts)
    rewards = rewards_of(mdp, posterior, objective="max")
    policy = check_policy(mdp, [0, 0])
    returns = policy_returns(posterior, mdp, policy, 50, np.random.default_rng(0), rewards=rewards)
    assert np.all(returns.lower <= returns.upper)  # NaN would fail


def test_best_returns_are_those_of_the_solver(machine):
    mdp, posterior = machine
    rewards = rewards_of(mdp, posterior, objective="max")
    rng = np.random.default_rng(8)
    draws = posterior.sample(10, deepcopy(rng))
    best = best_returns(posterior, mdp, 10, rng, rewards=rewards)
    for i, draw in enumerate(draws):
        model = sf.MDP(
            state_start=mdp.state_start, row_action=mdp.row_action, row_start=mdp.row_start,
            successor=mdp.successor, probability=draw, reward=mdp.reward, discount=mdp.discount,
            initial=mdp.initial, num_actions=2, reward_per_entry=mdp.reward_per_entry,
        )  # fmt: skip
        solution = sf.solve(model, tolerance=1e-9)
        assert best.lower[i] <= solution.return_upper
        assert solution.return_lower <= best.upper[i]


def test_listed_upper_bound_equals_a_plain_enumeration(river):
    mdp, posterior = river
    rewards = rewards_of(mdp, posterior, objective="max")
    n = 300
    found = upper_bound(
        posterior, mdp, rewards, delta=0.2, eta=0.05, draws=n, rng=np.random.default_rng(4)
    )
    draws_rng = np.random.default_rng(4).spawn(2)[1]
    rank = upper_rank(n, 0.2, 0.05)
    largest = -np.inf
    for k in range(64):
        policy = np.array([(k >> s) & 1 for s in range(6)])
        returns = policy_returns(
            posterior, mdp, check_policy(mdp, policy), n, deepcopy(draws_rng), rewards=rewards
        )
        largest = max(largest, np.sort(returns.upper)[rank - 1])
    assert found.value == pytest.approx(largest, rel=1e-12)
    assert found.scope == "no deterministic policy"


@pytest.mark.parametrize("lead", [0.0, 3.0])
def test_listed_upper_bound_holds_without_sharing_eta(lead):
    """32 policies, alike or one far ahead: a bound at eta = .2 fails a fifth of the time at most.

    One far ahead is the hard case: the others cannot lift the bound.
    """
    delta, eta, repeats = 0.2, 0.2, 400
    transitions = np.zeros((6, 2, 6))
    transitions[:5, :, :] = 1 / 6
    transitions[5, 0, 5] = 1
    counts = np.zeros((6, 2, 6), dtype=np.int64)
    counts[:5] = 2
    counts[5, 0, 5] = 1
    support = transitions > 0
    reward = np.arange(6.0) + lead * np.array([1, 0])[None, :, None] + np.zeros((6, 1, 1))
    mdp = sf.MDP.from_arrays(transitions, reward, discount=0.6, support=support)
    posterior = sf.DirichletPosterior(sf.Counts.from_arrays(counts, support=support))
    assert count_policies(mdp) == 32
    rewards = rewards_of(mdp, posterior, objective="max")
    # By symmetry, or far ahead, action 0 everywhere gives the percentile optimum.
    policy = check_policy(mdp, np.zeros(6, dtype=np.int64))
    many = policy_returns(
        posterior, mdp, policy, 400_000, np.random.default_rng(0), rewards=rewards
    )
    optimum = np.quantile(many.lower, delta)
    too_low = sum(
        upper_bound(
            posterior, mdp, rewards, delta=delta, eta=eta, draws=200, rng=np.random.default_rng(k)
        ).value
        < optimum
        for k in range(1, repeats + 1)
    )
    assert binom.sf(too_low - 1, repeats, eta) > 0.001
    assert lead == 0 or too_low > 0.5 * eta * repeats  # nor is it looser than eta asks


def test_plain_upper_bound_lies_above_the_listed_one(river, monkeypatch):
    mdp, posterior = river
    rewards = rewards_of(mdp, posterior, objective="max")
    ends = []
    for most, randomised in ((4096, False), (0, True)):
        monkeypatch.setattr("surefoot.certificates.limit.MAX_POLICIES", most)
        rng = np.random.default_rng(1)
        ends.append(
            upper_bound(
                posterior, mdp, rewards, delta=0.05, eta=0.001, draws=5000, rng=rng,
                randomised=randomised,
            )
        )  # fmt: skip
    assert ends[0].value <= ends[1].value * 1.1
    assert ends[1].scope == "no policy"


def certificate_of(pair, **options):
    mdp, posterior = pair
    policy = sf.solve(mdp).policy
    options = {"draws": 2000, "rng": np.random.default_rng(2)} | options
    return sf.certify(policy, posterior, mdp, **options)


def test_certificate_is_repeatable_and_survives_json(machine, tmp_path):
    first, second = certificate_of(machine), certificate_of(machine)
    assert first.to_json() == second.to_json()
    first.save(tmp_path / "certificate.json")
    again = Certificate.load(tmp_path / "certificate.json")
    assert again.to_json() == first.to_json()
    assert again.lower_bound == first.lower_bound
    np.testing.assert_array_equal(again.policy, first.policy)
    for field in ("lower_bound", "upper_bound", "nominal_return", "robust_return", "delta", "eta",
                  "draws", "seed", "basis"):  # fmt: skip
        assert f'"{field}"' in first.to_json()


def test_certificate_without_other_end_survives_json(machine):
    certificate = certificate_of(machine, upper=False)
    assert certificate.upper_bound == np.inf
    assert "promised more" not in certificate.sentence
    assert Certificate.from_json(certificate.to_json()).upper_bound == np.inf


def test_sentence_says_who_and_rounds_down(machine):
    certificate = certificate_of(machine)
    assert certificate.sentence.startswith("With 95% confidence, given this prior and data, ")
    assert "no deterministic policy can be promised more than" in certificate.sentence
    printed = float(certificate.sentence.split("at least ")[1].split(";")[0])
    assert printed <= certificate.lower_bound
    assert certificate.sentence in certificate.summary()
    assert "<table " in certificate._repr_html_()


def test_percent_is_exact():
    assert [percent(d) for d in (0.05, 0.001, 0.2, 0.025, 1e-6)] == [
        "95%", "99.9%", "80%", "97.5%", "99.9999%",
    ]  # fmt: skip


def test_pilot_chooses_enough_draws_for_a_narrow_bracket(machine):
    certificate = certificate_of(machine, draws=None)
    assert certificate.relative_gap < 0.05
    assert certificate.draws >= 2000


def test_verify_stands_and_falls(machine):
    mdp, posterior = machine
    certificate = certificate_of(machine)
    for seed in range(20):
        assert sf.verify(certificate, posterior, mdp, rng=np.random.default_rng(seed)).stands
    bold = Certificate.from_json(
        certificate.to_json().replace(str(certificate.lower_bound), str(certificate.nominal_return))
    )
    verdict = sf.verify(bold, posterior, mdp)
    assert not verdict.stands
    assert "does not stand" in verdict.message


def test_verify_refuses_other_data(machine):
    certificate = certificate_of(machine)
    mdp, posterior = problem(sf.machine_replacement(), 20, seed=1)
    verdict = sf.verify(certificate, posterior, mdp)
    assert not verdict.stands
    assert "other data" in verdict.message


def test_costs_mirror_rewards(machine):
    mdp, posterior = machine
    policy = sf.solve(mdp).policy
    costs = sf.MDP(
        state_start=mdp.state_start, row_action=mdp.row_action, row_start=mdp.row_start,
        successor=mdp.successor, probability=mdp.probability, reward=-mdp.reward,
        discount=mdp.discount, initial=mdp.initial, num_actions=2,
        reward_per_entry=mdp.reward_per_entry,
    )  # fmt: skip
    gain = sf.certify(policy, posterior, mdp, draws=2000, rng=np.random.default_rng(3))
    cost = sf.certify(
        policy, posterior, costs, draws=2000, rng=np.random.default_rng(3), objective="min"
    )
    assert cost.upper_bound == -gain.lower_bound
    assert cost.lower_bound == -gain.upper_bound
    assert "cost" in cost.sentence
    assert "at most" in cost.sentence


def test_costs_are_refused_where_the_unseen_pays_the_least():
    log = {"state": [0, 0, 1, 1], "action": [0, 1, 0, 1], "reward": [1.0, 2.0, 3.0, 4.0],
           "next_state": [1, 0, 0, 1]}  # fmt: skip
    counts = sf.read_transitions(log)
    mdp, posterior = counts.to_mdp(discount=0.9), sf.DirichletPosterior(counts)
    policy = mdp.row_action[mdp.state_start[:-1]]
    with pytest.raises(ValueError, match="negative rewards"):
        sf.certify(policy, posterior, mdp, rng=np.random.default_rng(0), objective="min")


def test_assumption_of_the_support_is_in_the_sentence():
    log = {"state": [0, 0, 1, 1], "action": [0, 1, 0, 1], "reward": [1.0, 2.0, 3.0, 4.0],
           "next_state": [1, 0, 0, 1]}  # fmt: skip
    counts = sf.read_transitions(log).on_support("observed")
    mdp, posterior = counts.to_mdp(discount=0.9), sf.DirichletPosterior(counts)
    policy = mdp.row_action[mdp.state_start[:-1]]
    certificate = sf.certify(policy, posterior, mdp, draws=500, rng=np.random.default_rng(0))
    assert "assuming no transition outside those observed" in certificate.sentence


def test_uncertain_rewards_lower_the_promise():
    n = 60
    step = np.arange(n)
    log = {
        "state": step % 2,
        "action": np.zeros(n, int),
        "next_state": (step + 1) % 2,
        "reward": np.random.default_rng(0).normal(1.0, 2.0, n),
    }
    bounds = []
    for model in ("fixed", "normal"):
        counts = sf.read_transitions(log, rewards=model).on_support("observed")
        mdp = counts.to_mdp(discount=0.5)
        certificate = sf.certify(
            [0, 0], sf.DirichletPosterior(counts), mdp, draws=4000, rng=np.random.default_rng(1)
        )
        bounds.append(certificate.lower_bound)
    assert sf.read_transitions(log).reward_model != "fixed"
    assert bounds[1] < bounds[0] - 0.2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, "delta=0.0"),
        ({"delta": 0.7}, "delta=0.7"),
        ({"eta": float("nan")}, "eta=nan"),
        ({"draws": 100}, "at least 135"),
        ({"objective": "maximum"}, "choose 'max' or 'min'"),
    ],
)
def test_bad_requests_are_refused(machine, options, words):
    with pytest.raises(ValueError, match=words):
        certificate_of(machine, **options)


def test_posterior_of_another_model_is_refused(machine, river):
    mdp, _ = machine
    _, posterior = river
    with pytest.raises(ValueError, match="states"):
        sf.certify(sf.solve(mdp).policy, posterior, mdp, rng=np.random.default_rng(0))


def test_comparison_is_paired(machine):
    mdp, posterior = machine
    policy = sf.solve(mdp).policy
    same = sf.compare(policy, policy, posterior, mdp, draws=1000, rng=np.random.default_rng(1))
    assert same.difference_lower_bound == pytest.approx(0.0, abs=1e-8)
    assert same.probability_a_better == 0.0
    never = np.zeros(10, dtype=int)
    better = sf.compare(policy, never, posterior, mdp, draws=1000, rng=np.random.default_rng(1))
    assert better.difference_lower_bound > 0
    assert better.probability_lower_bound > 0.99
    assert "better" in better.sentence


def test_curve_falls_with_confidence_and_stops_in_time(machine):
    mdp, posterior = machine
    policy = sf.solve(mdp).policy
    curve = sf.guarantee_curve(policy, posterior, mdp, draws=2000, rng=np.random.default_rng(1))
    known = curve.bound[np.isfinite(curve.bound)]
    assert np.all(np.diff(known) <= 0)
    assert np.isnan(curve.bound[-1])
    assert "99.9% needs" in curve.note


def test_promise_is_at_least_the_robust_value_of_a_set_that_holds_the_draws(machine):
    mdp, posterior = machine
    # A joint L1 region that holds 95% of the draws, sized on draws of its own.
    draws = posterior.sample(4000, np.random.default_rng(7))
    distance = np.add.reduceat(np.abs(draws - mdp.probability), mdp.row_start[:-1], axis=1)
    budget = np.quantile(distance.max(axis=1), 0.95)
    ambiguity = sf.AmbiguitySet.from_arrays(mdp, norm="l1", budget=float(budget))
    robust = sf.solve(mdp, ambiguity)
    certificate = sf.certify(
        robust.policy, posterior, mdp, draws=4000, rng=np.random.default_rng(9),
        robust_return=robust.return_lower,
    )  # fmt: skip
    assert certificate.lower_bound > robust.return_lower


@pytest.mark.parametrize("name", ["riverswim", "machine"])
def test_coverage_of_the_promise(name):
    """P* from the prior, data from P*, policy and promise from the data: count broken promises."""
    domain = {"riverswim": sf.riverswim, "machine": sf.machine_replacement}[name]()
    delta, replications, failures, too_low = 0.2, 120, 0, 0
    rng = np.random.default_rng(20)
    nothing = domain.simulate(0, rng)
    for _ in range(replications):
        truth = nothing.to_mdp(
            discount=domain.mdp.discount, initial=domain.mdp.initial,
            prior=sf.DirichletPosterior(nothing).sample(1, rng)[0],
        )  # fmt: skip
        data = sf.Domain(name="truth", mdp=truth).simulate(10, rng)
        mdp = data.to_mdp(discount=truth.discount, initial=truth.initial, prior=1.0)
        policy = sf.solve(mdp).policy
        certificate = sf.certify(
            policy, sf.DirichletPosterior(data), mdp, delta=delta, draws=1000, rng=rng
        )
        earned = sf.evaluate(truth, policy).return_upper
        failures += earned < certificate.lower_bound
        too_low += certificate.upper_bound < certificate.lower_bound
    assert binom.sf(failures - 1, replications, delta) > 0.001
    assert failures > 0  # a promise that never fails at 20% would be too loose to be this one
    assert too_low == 0


def test_policies_from_files_and_from_the_log(tmp_path, machine):
    mdp, posterior = machine
    path = tmp_path / "policy.csv"
    lines = ["state,action", *(f"{name},repair" for name in mdp.state_labels)]
    path.write_text("\n".join(lines), encoding="utf-8")
    np.testing.assert_array_equal(sf.read_policy(path, mdp), np.ones(10))
    path.write_text("\n".join([*lines, "wear 99,run"]), encoding="utf-8")
    with pytest.raises(ValueError, match="unknown state 'wear 99'"):
        sf.read_policy(path, mdp)
    path.write_text("\n".join(lines[:-1]), encoding="utf-8")
    with pytest.raises(ValueError, match="normal repair"):
        sf.read_policy(path, mdp)
    behaviour = sf.behaviour_policy(posterior.counts, mdp)
    np.testing.assert_allclose(behaviour.sum(axis=1), 1.0)
    certificate = sf.certify(behaviour, posterior, mdp, draws=500, rng=np.random.default_rng(0))
    assert certificate.lower_bound < certificate.upper_bound
