"""Where the unseen leads."""

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.solvers.unseen import known_states, landing_of, lead_to_best, least_rewards


def as_logged(declared):
    """What a log shows of declared counts: seen successors and seen rewards alone."""
    counts = np.zeros((declared.num_states, declared.num_actions, declared.num_states), int)
    counts[declared.dense_index] = declared.count
    rewards = np.full(counts.shape, np.nan)
    rewards[declared.dense_index] = np.where(declared.count > 0, declared.reward_mean, np.nan)
    return sf.Counts.from_arrays(counts, rewards=rewards, state_labels=declared.state_labels)


def logged(domain, samples, seed=0):
    return as_logged(domain.simulate(samples, np.random.default_rng(seed)))


def pointed_at(mdp, target):
    successor = mdp.successor.copy()
    successor[mdp.row_start[mdp.state_start[-2]]] = target
    return replace(mdp, successor=successor)


@pytest.mark.parametrize("domain", [sf.riverswim, sf.machine_replacement, sf.inventory])
def test_no_other_state_of_the_log_is_worse_for_the_best_policy(domain):
    """Nature's best reply: pointing the unseen elsewhere never lowers an optimal value."""
    mdp = logged(domain(), 5).to_mdp(discount=0.95, prior=1.0)
    unseen = mdp.num_states - 1
    chosen = sf.solve(mdp, tolerance=1e-7)
    assert landing_of(mdp, unseen) == int(np.argmin(chosen.value[:-1]))
    for state in range(unseen):
        other = sf.solve(pointed_at(mdp, state), tolerance=1e-7)
        assert np.all(other.upper >= chosen.lower)
    absorbing = sf.solve(pointed_at(mdp, unseen), tolerance=1e-7)
    assert np.all(absorbing.lower <= chosen.upper)


def test_absorbing_on_request_and_without_a_prior():
    counts = logged(sf.riverswim(), 20)
    for options in ({"prior": 1.0, "unseen": "absorbing"}, {}):
        mdp = counts.to_mdp(discount=0.95, **options)
        assert landing_of(mdp, mdp.num_states - 1) == mdp.num_states - 1
    asked = counts.to_mdp(discount=0.95, unseen="worst")
    assert landing_of(asked, 6) != 6
    with pytest.raises(ValueError, match="unseen='best'; choose 'worst' or 'absorbing'"):
        counts.to_mdp(discount=0.95, unseen="best")


def test_states_never_left_say_nothing_and_terminal_states_do():
    counts = np.zeros((4, 1, 4), int)
    counts[0, 0, 1], counts[0, 0, 2], counts[1, 0, 0] = 3, 1, 2
    log = sf.Counts.from_arrays(counts, rewards=np.ones((4, 1)))
    assert known_states(log.on_support()).tolist() == [0, 1]
    mdp = log.to_mdp(discount=0.9, prior=1.0)
    assert landing_of(mdp, 4) in (0, 1)  # 2 and 3 are absorbing at the lowest reward: a guess too


def test_promises_name_the_state_and_match_the_posterior():
    counts = logged(sf.machine_replacement(), 20)
    posterior = sf.DirichletPosterior(counts)
    mdp = counts.to_mdp(discount=0.95, prior=1.0)
    policy = sf.solve(mdp).policy
    rng = np.random.default_rng(1)
    certificate = sf.certify(policy, posterior, mdp, delta=0.1, draws=500, rng=rng)
    name = mdp.state_labels[landing_of(mdp, mdp.num_states - 1)]
    assert f"leads to no state worse than {name!r}" in certificate.sentence
    assert sf.verify(certificate, posterior, mdp).stands
    cautious = counts.to_mdp(discount=0.95, prior=1.0, unseen="absorbing")
    lower = sf.certify(policy, posterior, cautious, delta=0.1, draws=500, rng=rng)
    assert lower.lower_bound < certificate.lower_bound
    assert "leads to nothing worse than the lowest reward seen" in lower.sentence
    assert not sf.verify(certificate, posterior, cautious).stands  # another model


def test_only_the_loops_of_a_posterior_may_lead_elsewhere():
    counts = logged(sf.machine_replacement(), 20)
    posterior = sf.DirichletPosterior(counts)
    mdp = counts.to_mdp(discount=0.95, prior=1.0)
    assert posterior.matches(mdp)
    first = mdp.row_start[:-1][np.diff(mdp.row_start) > 1]
    at = first[mdp.successor[first] > 0][0]
    successor = mdp.successor.copy()
    successor[at] -= 1
    assert not posterior.matches(replace(mdp, successor=successor))


@pytest.mark.parametrize("domain", [sf.riverswim, sf.machine_replacement])
def test_at_its_best_the_unseen_is_worth_no_less_for_any_policy(domain):
    """Wherever else the unseen may lead, and whatever the model pays there."""
    counts = logged(domain(), 5).on_support("unseen")
    mdp = counts.to_mdp(discount=0.95, prior=1.0)
    best = lead_to_best(mdp, counts)
    unseen = counts.unseen
    known = (mdp.successor != unseen) & (mdp.entry_state != unseen)
    assert np.array_equal(best.entry_reward[known], mdp.entry_reward[known])
    assert np.all(best.entry_reward[~known] == mdp.reward.max())
    assert np.array_equal(best.probability, mdp.probability)
    value = sf.solve(best, tolerance=1e-7).value
    assert value[landing_of(best, unseen)] == pytest.approx(value[:unseen].max(), abs=1e-5)
    rng = np.random.default_rng(0)
    for _ in range(5):
        policy = rng.integers(mdp.num_actions, size=mdp.num_states)
        policy = np.where(mdp.available[np.arange(mdp.num_states), policy], policy, 0)
        lower = sf.evaluate(mdp, policy).value
        assert np.all(sf.evaluate(best, policy).value >= lower - 1e-6)


def test_without_an_unseen_state_nothing_leads_on():
    counts = sf.riverswim().simulate(5, np.random.default_rng(0))
    mdp = counts.to_mdp(discount=0.9, prior=1.0)
    assert lead_to_best(mdp, counts) is mdp


def games(steps_pay=0.0, losing=-1.0, episodes=40):
    """Episodes of three to five steps that end well or badly; only ends pay the least."""
    rng = np.random.default_rng(0)
    rows = []
    for episode in range(episodes):
        last, state = int(rng.integers(2, 5)), "door"
        for step in range(last + 1):
            over = step == last
            lost = over and rng.random() < 0.5
            pays = (losing if lost else 1.0) if over else steps_pay
            following = ("lost" if lost else "won") if over else f"room {rng.integers(0, 9)} x"
            rows.append((episode, step, state, "go", pays, following, over))
            state = following
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminal")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def read(columns):
    counts = sf.read_transitions(columns, episode="episode", step="step", terminal="terminal")
    posterior = sf.LearnedPosterior(counts)
    return posterior, posterior.to_mdp(discount=0.99)


def test_where_only_ends_pay_the_least_the_unseen_does_not_pay_it_and_go_on():
    posterior, mdp = read(games())
    counts = posterior.counts
    least = least_rewards(counts)
    on = int(counts.count[~counts.is_terminal[counts.successor]].sum())
    assert least.at_an_end == -1.0
    assert least.going_on == pytest.approx(-3 / on)
    entry = mdp.row_start[mdp.state_start[counts.unseen]]
    into = (mdp.successor == counts.unseen) & (mdp.entry_state != counts.unseen)
    value = sf.solve(mdp, tolerance=1e-9).value
    landing = mdp.entry_reward[into] + mdp.discount * value[counts.unseen]
    # The worse of an end now, and one more step followed by an end or the worst known state.
    worst = value[known_states(counts)].min()
    later = min(least.at_an_end, least.going_on + mdp.discount * worst)
    by_hand = min(least.at_an_end, least.going_on + mdp.discount * later)
    np.testing.assert_allclose(landing, by_hand, rtol=1e-6)
    assert mdp.entry_reward[entry] in (0.0, least.at_an_end, least.going_on)
    rng = np.random.default_rng(1)
    policy = sf.solve(mdp).policy
    made = sf.certify(policy, posterior, mdp, delta=0.1, draws=500, rng=rng)
    kind = next(found for found in made.findings if found.code == "unseen_learned").values["kind"]
    assert {"end": "followed by an end", "on": "in a step that goes on"}[kind] in made.sentence
    assert sf.verify(made, posterior, mdp).stands


def test_where_steps_pay_and_an_end_pays_nothing_the_unseen_may_end_at_once():
    """A rest that survives one more step before it ends would be worth more than an end."""
    posterior, mdp = read(games(steps_pay=1.0, losing=0.0))
    counts = posterior.counts
    into = (mdp.successor == counts.unseen) & (mdp.entry_state != counts.unseen)
    value = sf.solve(mdp, tolerance=1e-9).value
    landing = mdp.entry_reward[into] + mdp.discount * value[counts.unseen]
    np.testing.assert_allclose(landing, 0.0, atol=1e-9)


@pytest.mark.parametrize("case", ["steps", "scatter", "range"])
def test_otherwise_the_unseen_pays_the_least_and_goes_on(case):
    columns = games(steps_pay=-1.0 if case == "steps" else 0.0)
    if case == "scatter":
        columns["reward"] = columns["reward"] + np.arange(len(columns["reward"])) % 2
    more = {"reward_range": (-2.0, 1.0)} if case == "range" else {}
    counts = sf.read_transitions(
        columns, episode="episode", step="step", terminal="terminal", **more
    )
    posterior = sf.LearnedPosterior(counts)
    assert not least_rewards(posterior.counts).differ
