"""Mean rewards that a log leaves uncertain: no promise may take them as exact."""

import numpy as np
import pytest
from scipy import stats

import surefoot as sf
from surefoot.certificates.models import split_draws
from surefoot.solvers.evaluation.rewards import rewards_of


def rng(seed):
    return np.random.default_rng(seed)


def noisy_log(rows=800, seed=0, spread=4.0):
    random = rng(seed)
    state, action = random.integers(0, 4, rows), random.integers(0, 2, rows)
    follows = (state + action + random.integers(0, 2, rows)) % 4
    reward = state + random.uniform(-spread, spread, rows)
    return {"state": state, "action": action, "next_state": follows, "reward": reward}


def placed_counts(model, **options):
    counts = sf.read_transitions(noisy_log(**options), rewards=model, reward_range=(-4.0, 7.0))
    return counts.on_support("observed")


def with_draws(counts, n=2000):
    """Return the same posterior as finitely many draws that know their counts."""
    mdp = counts.to_mdp(discount=0.9, prior=1.0)
    draws = sf.DirichletPosterior(counts).sample(n, rng(5))
    return sf.PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True, counts=counts), mdp


@pytest.mark.parametrize("model", ["normal", "bounded"])
def test_equal_policies_meet_equal_rewards_however_the_draws_are_cut(model, monkeypatch):
    """One policy plays more rows than the other, so its draws come in other blocks."""
    monkeypatch.setattr("surefoot.posterior.of_counts.BLOCK_VALUES", 2000)
    counts = placed_counts(model)
    posterior, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=0.9, prior=1.0)
    plain = np.zeros(4, dtype=np.int64)
    mixed = np.tile([1.0 - 1e-12, 1e-12], (4, 1))
    result = sf.compare(plain, mixed, posterior, mdp, draws=1500, rng=rng(1))
    assert abs(result.difference_lower_bound) < 1e-8
    assert abs(result.mean_difference) < 1e-8


@pytest.mark.parametrize("model", ["normal", "bounded"])
def test_costs_are_drawn_on_their_own_cautious_side(model):
    """Costs are rewards with the other sign: both ways to say it give the same promise."""
    counts = placed_counts(model)
    log = noisy_log()
    turned = sf.read_transitions(
        log | {"reward": -log["reward"]}, rewards=model, reward_range=(-7.0, 4.0)
    ).on_support("observed")
    policy = np.array([0, 1, 1, 0])
    ends = []
    for source, objective in ((counts, "min"), (turned, "max")):
        mdp = source.to_mdp(discount=0.9, prior=1.0)
        made = sf.certify(
            policy, sf.DirichletPosterior(source), mdp, draws=500, rng=rng(1), objective=objective
        )
        ends.append(made.promise)
    assert ends[0] == pytest.approx(-ends[1], rel=1e-12)


def test_draws_that_know_their_counts_include_the_rewards():
    counts = placed_counts("normal")
    posterior, mdp = with_draws(counts)
    policy = sf.solve(mdp).policy
    aware = sf.certify(policy, posterior, mdp, rng=rng(1))
    ignorant = sf.certify(
        policy,
        sf.PosteriorDraws.from_arrays(posterior.chains[0], mdp=mdp, independent=True),
        mdp,
        rng=rng(1),
    )
    assert aware.lower_bound < ignorant.lower_bound
    assert "assuming no transition outside those observed" in aware.sentence
    part, _ = split_draws(posterior, mdp, rng(2))
    assert rewards_of(mdp, part, objective="max").uncertain.any()


class AsExact:
    """Parameters that matter not: every draw is one of the exact posterior."""

    def __init__(self, exact):
        self.exact = exact

    def expected(self, parameters):
        return np.tile(self.exact.mean(), (len(parameters["x"]), 1))

    def draw(self, parameters, key, first, rows):
        return self.exact.draws(key, first, first + len(parameters["x"]), rows)


def test_hierarchical_posteriors_include_the_rewards_where_the_unseen_leads_on():
    """The counts loop in the unseen state, the model leads on: they still belong together."""
    counts = sf.read_transitions(noisy_log(), rewards="normal").on_support("unseen")
    exact, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=0.9, prior=1.0)
    assert mdp.successor[-1] != mdp.num_states - 1
    posterior = sf.HierarchicalPosterior(
        layout=exact.layout,
        parameters={"x": rng(0).normal(size=(2, 400))},
        model=AsExact(exact),
        counts=counts,
    )
    assert rewards_of(mdp, posterior, objective="max").uncertain.any()
    result = sf.optimize(posterior, mdp, delta=0.1, rng=rng(1))
    assert "normally distributed" in result.certificate.sentence
    assert sf.verify(result.certificate, posterior, mdp, rng=rng(2)).stands


def test_counts_of_other_rows_are_refused():
    counts = placed_counts("normal")
    posterior, _ = with_draws(counts)
    other = sf.riverswim().simulate(5, rng(0))
    with pytest.raises(ValueError, match="the posterior and the counts do not have the same rows"):
        sf.PosteriorDraws(layout=posterior.layout, chains=posterior.chains, counts=other)


@pytest.mark.parametrize("model", ["normal", "bounded"])
def test_frequentist_promises_include_the_rewards(model):
    counts = placed_counts(model)
    mdp = counts.to_mdp(discount=0.9)
    box = sf.frequentist_set(counts, mdp, delta=0.05, kind="clopper_pearson")
    exact = sf.frequentist_set(
        counts, counts.to_mdp(discount=0.9, rewards=np.zeros((4, 2))), delta=0.05, kind="kl"
    )
    assert exact.reward_lower is None
    assert np.all(box.reward_lower <= mdp.reward)
    assert np.any(box.reward_lower < mdp.reward - 0.01)
    policy = sf.solve(mdp, box).policy
    made = sf.certify_frequentist(policy, box, mdp)
    assert made.lower_bound < sf.evaluate(mdp, policy, box).return_lower - 0.05
    assert made.upper_bound > sf.solve(mdp, box, nature="best").return_upper + 0.05
    assert any("Mean rewards are uncertain" in text for text in made.notes)
    costs = sf.certify_frequentist(policy, box, mdp, objective="min")
    assert costs.upper_bound > sf.evaluate(mdp, policy, box, objective="min").return_upper + 0.05
    assert costs.lower_bound == pytest.approx(
        sf.solve(
            sf.MDP.from_arrays(*_dense(mdp, box.reward_lower), discount=0.9),
            _again(box, mdp),
            objective="min",
            nature="best",
        ).return_lower,
        abs=1e-4,
    )


def _dense(mdp, reward):
    probability = mdp.to_arrays().transitions
    dense = np.zeros_like(probability)
    dense[mdp.row_state[mdp.entry_row], mdp.row_action[mdp.entry_row], mdp.successor] = reward
    return probability, dense


def _again(box, mdp):
    model = sf.MDP.from_arrays(*_dense(mdp, box.reward_lower), discount=0.9)
    return sf.AmbiguitySet(mdp=model, norm="box", lower=box.lower, upper=box.upper)


def test_frequentist_promises_cover_the_truth_with_noisy_rewards():
    """The promise fails in no more than a share delta of logs; taking means as exact does not."""
    delta, failures, naive = 0.2, 0, 0
    policy, replications, rows = np.zeros(2, dtype=np.int64), 60, 200
    for seed in range(replications):
        random = rng(seed)
        state = random.integers(0, 2, rows)
        log = {
            "state": state,
            "action": np.zeros(rows, dtype=int),
            "next_state": 1 - state,
            "reward": random.choice([-1.0, 1.0], rows),  # 0 on average: nothing is earned
        }
        counts = sf.read_transitions(log, reward_range=(-1.0, 1.0)).on_support("observed")
        model = counts.to_mdp(discount=0.9)
        box = sf.frequentist_set(counts, model, delta=delta, kind="clopper_pearson")
        failures += sf.certify_frequentist(policy, box, model).lower_bound > 0
        naive += sf.evaluate(model, policy, box).return_lower > 0
    assert failures <= delta * replications
    assert naive > 2 * delta * replications


def test_support_is_in_the_frequentist_sentence():
    counts = sf.read_transitions(noisy_log(), rewards="fixed")
    words = {"observed": "no transition outside those observed", "unseen": "the lowest reward seen"}
    for support, said in words.items():
        placed = counts.on_support(support)
        mdp = placed.to_mdp(discount=0.9)
        box = sf.frequentist_set(placed, mdp, delta=0.05, kind="clopper_pearson")
        policy = sf.solve(mdp, box).policy
        assert said in sf.certify_frequentist(policy, box, mdp).sentence
        if support == "unseen":
            with pytest.raises(ValueError, match="for costs is the best case"):
                sf.certify_frequentist(policy, box, mdp, objective="min")


def test_the_sentence_says_what_uncertain_rewards_rest_on():
    """Rare losses that the log never showed would break the promise: that is an assumption."""
    words = {
        "normal": "normally distributed",
        "bounded": "no step brings more or less than was ever",
    }
    for model, said in words.items():
        counts = sf.read_transitions(noisy_log(), rewards=model).on_support("observed")
        mdp, frequencies = counts.to_mdp(discount=0.9, prior=1.0), counts.to_mdp(discount=0.9)
        policy, posterior = sf.solve(mdp).policy, sf.DirichletPosterior(counts)
        made = sf.certify(policy, posterior, mdp, draws=200, rng=rng(0), upper=False)
        box = sf.frequentist_set(counts, frequencies, delta=0.05, kind="clopper_pearson")
        versus = sf.compare(policy, 1 - policy, posterior, mdp, draws=200, rng=rng(0))
        certain = counts.to_mdp(discount=0.9, prior=1.0, rewards=np.zeros((4, 2)))
        for text in (
            made.sentence,
            sf.certify_frequentist(policy, box, frequencies).sentence,
            versus.sentence,
        ):
            assert said in text
        known = sf.certify(policy, posterior, certain, draws=200, rng=rng(0), upper=False)
        assert said not in known.sentence
    given = placed_counts("bounded")
    mdp = given.to_mdp(discount=0.9, prior=1.0)
    made = sf.certify(policy, sf.DirichletPosterior(given), mdp, draws=200, rng=rng(0), upper=False)
    assert "was ever seen" not in made.sentence


def test_ends_of_rewards_are_checked():
    mdp = sf.riverswim().mdp
    low = np.zeros(mdp.num_entries)
    with pytest.raises(ValueError, match="must be finite and in order"):
        sf.AmbiguitySet(
            mdp=mdp, norm="l1", budget=np.zeros(mdp.num_rows), reward_lower=low + 1,
            reward_upper=low,
        )  # fmt: skip
    with pytest.raises(ValueError, match="needs reward_upper"):
        sf.AmbiguitySet(mdp=mdp, norm="l1", budget=np.zeros(mdp.num_rows), reward_lower=low)


def test_small_rewards_are_promised_as_exactly_as_large_ones():
    """Sweeps end relative to the rewards: a unit a billion times smaller changes nothing."""
    model = sf.garnet(230, 2, 3, discount=0.9, rng=rng(0)).mdp
    bounds = []
    for unit in (1.0, 1e-9):
        mdp = sf.MDP.from_rows(
            state=model.row_state[model.entry_row], action=model.row_action[model.entry_row],
            successor=model.successor, probability=model.probability,
            reward=unit * model.reward[model.entry_row], discount=0.9,
        )  # fmt: skip
        counts = sf.Counts.on_rows_of(mdp, np.ones(mdp.num_entries, dtype=np.int64))
        made = sf.certify(
            np.zeros(230, dtype=np.int64), sf.DirichletPosterior(counts), mdp, draws=150,
            rng=rng(1),
        )  # fmt: skip
        bounds.append(
            [made.lower_bound / unit, made.upper_bound / unit, made.nominal_return / unit]
        )
    assert np.allclose(bounds[0], bounds[1], rtol=1e-6, atol=0)


def garnet_log(random, tries, noise, states=8, actions=3):
    """Return a random model (rows from Dirichlet(3)) and a log of fixed tries of every row.

    Rewards are means of every transition, normal with variance 1, plus noise.
    """
    rows = random.dirichlet(np.full(3, 3.0), (states, actions))
    after = np.array([random.permutation(states)[:3] for _ in range(states * actions)])
    after = after.reshape(states, actions, 3)
    means = random.normal(size=(states, actions, 3))
    state, action, _ = (i.ravel() for i in np.indices((states, actions, tries)))
    which = (random.random(len(state))[:, None] > rows[state, action].cumsum(1)[:, :2]).sum(1)
    log = {"state": state, "action": action, "next_state": after[state, action, which],
           "reward": noise(means[state, action, which])}  # fmt: skip
    return (rows, after, means), log


def true_return(model, policy, discount):
    rows, after, means = model
    states = np.arange(len(rows))
    moves = np.zeros((len(rows), len(rows)))
    np.add.at(moves, (states[:, None], after[states, policy]), rows[states, policy])
    gain = np.sum(rows[states, policy] * means[states, policy], axis=1)
    return np.linalg.solve(np.eye(len(rows)) - discount * moves, gain).mean()


def test_a_policy_chosen_on_normal_rewards_is_not_promised_its_luck():
    """Without pooling, the means of lucky rows are believed: half of these promises break."""
    delta, trials, broken = 0.2, 40, 0
    for seed in range(trials):
        random = rng(seed)
        model, log = garnet_log(random, 20, lambda mean, g=random: g.normal(mean, 2.0))
        counts = sf.read_transitions(log, rewards="normal").on_support("observed")
        mdp = counts.to_mdp(discount=0.8, prior=3.0)
        posterior = sf.DirichletPosterior(counts, prior=3.0)
        result = sf.optimize(posterior, mdp, delta=delta, draws=500, rng=random)
        broken += result.certificate.lower_bound > true_return(model, result.policy, 0.8)
    assert broken <= stats.binom.isf(0.01, trials, delta)


def test_rare_catastrophes_in_a_declared_range_never_break_a_promise():
    """A loss of 200 in one of 200 steps, which most transitions of the log never showed."""
    trials, broken = 20, 0
    for seed in range(trials):
        random = rng(seed)
        model, log = garnet_log(
            random, 20, lambda mean, g=random: np.where(g.random(len(mean)) < 0.005, -200.0, 1.0)
        )
        model = (*model[:2], np.full_like(model[2], 0.995 - 200 * 0.005))
        counts = sf.read_transitions(log, reward_range=(-200.0, 1.0)).on_support("observed")
        mdp = counts.to_mdp(discount=0.8, prior=3.0)
        posterior = sf.DirichletPosterior(counts, prior=3.0)
        result = sf.optimize(posterior, mdp, delta=0.05, draws=200, rng=random)
        broken += result.certificate.lower_bound > true_return(model, result.policy, 0.8)
    assert broken <= stats.binom.isf(0.01, trials, 0.05)


def promised(counts, policy, support):
    if support == "learned":
        posterior = sf.LearnedPosterior(counts)
        mdp = posterior.to_mdp(discount=0.9)
    else:
        posterior, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=0.9, prior=1.0)
    padded = np.pad(policy, (0, mdp.num_states - len(policy)))  # the unseen has one action
    return sf.certify(padded, posterior, mdp, draws=1000, delta=0.2, rng=rng(1))


@pytest.mark.parametrize("support", ["observed", "learned"])
def test_a_range_that_reaches_far_down_is_no_limit_to_what_can_be_promised(support):
    """The law of means in a range leans down; the limit is not below what means as seen allow."""
    log = noisy_log(rows=300)
    counts = sf.read_transitions(log, reward_range=(-400.0, 7.0)).on_support(support)
    entry = np.column_stack([log[name] for name in ("state", "action", "next_state")])
    _, place = np.unique(entry, axis=0, return_inverse=True)
    mean = np.bincount(place, log["reward"]) / np.bincount(place)
    exact = sf.read_transitions(log | {"reward": mean[place].round(12)}).on_support(support)
    policy = np.array([0, 1, 1, 0])
    made, known = (promised(one, policy, support) for one in (counts, exact))
    assert made.lower_bound < known.lower_bound - 10
    assert made.upper_bound >= known.lower_bound


def test_a_declared_range_leaves_no_reward_to_a_pattern():
    """Rewards that are uncertain follow no pattern exactly: unseen ones are not filled by it."""
    state, after = (i.ravel() for i in np.indices((6, 6)))
    log = {"state": state, "action": np.zeros(36, int), "next_state": after,
           "reward": 2.0 * state + 3.0 * after}  # fmt: skip
    log = {name: column[:-1] for name, column in log.items()}  # the best transition is not seen
    filled = sf.read_transitions(log).on_support("all")
    assert filled.reward_mean[-1] == 25.0
    declared = sf.read_transitions(log, reward_range=(-50.0, 25.0)).on_support("all")
    assert declared.reward_mean[-1] == -50.0  # unseen: the low end of the range
