"""What was done in the log: limits of returns, and a gain that both sides pay for."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from surefoot._order_statistics import draws_needed, lower_rank
from surefoot.certificates.behaviour import share_delta
from surefoot.certificates.certification import certify
from surefoot.certificates.curve import GuaranteeCurve
from surefoot.certificates.evidence import Curse
from surefoot.demo import demo_settings
from surefoot.pipeline.figures import _deductions
from surefoot.pipeline.first_state import (
    first_state_doubt,
    first_state_doubt_between,
    unknown_starts,
)
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.parts import LogParts, divide_log
from surefoot.pipeline.practice import practice, return_limits
from surefoot.pipeline.promises import certify_policy, difference, find
from surefoot.pipeline.runs import run
from surefoot.pipeline.settings import Settings
from surefoot.solvers.solver import evaluate, solve

FEW = {"draws": 300, "eta": 0.05}


def built(**options):
    settings = replace(demo_settings(), **FEW, **options).in_full()
    counts = read_log(settings)
    return build_model(settings, counts), divide_log(settings, counts)


@pytest.fixture(scope="module")
def machines():
    return built()


def certified(model, **other):
    policy = solve(model.mdp).policy
    return certify(
        policy, model.posterior, model.mdp, **FEW | other, rng=np.random.default_rng(0), upper=False
    )


def written(path, steps):
    """Two ways round: 'up' pays 1 and stays or falls, 'down' pays -2 and rises."""
    lines = ["machine,week,condition,decision,profit"]
    lines += [f"{e},{t},{state},{act},{paid}" for e, t, state, act, paid in steps]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return (str(path),)


def test_limits_are_the_best_and_the_worst_path(tmp_path):
    """Stay up for 1 for ever; or down (-2), up (1), down: what follows the unseen is no path."""
    steps = [
        (e, t, "up" if t % 3 else "down", "run", 1 if t % 3 else -2)
        for e in range(12)
        for t in range(9)
    ]
    model, parts = built(log=written(tmp_path / "log.csv", steps))
    low, high = return_limits(model)
    assert high == pytest.approx(1 / 0.05, rel=1e-6)
    assert low == pytest.approx((-2 + 0.95) / (1 - 0.95**2), rel=1e-6)
    assert np.all((parts.followed.earned >= low - 20) & (parts.followed.earned <= high))
    declared, _ = built(log=model.settings.log, reward_range=(-3.0, 4.0))
    low, high = return_limits(declared)
    assert (low, high) == (pytest.approx(-60, rel=1e-6), pytest.approx(80, rel=1e-6))


def test_rows_too_thin_for_the_policy_count_for_behaviour(tmp_path):
    steps = [(e, t, "up" if t % 3 else "down", "run", 1) for e in range(12) for t in range(9)]
    steps[30] = (*steps[30][:3], "bet", 500)
    model, parts = built(log=written(tmp_path / "log.csv", steps), min_visits=5)
    assert model.mdp.entry_reward.max() == 1
    assert return_limits(model)[1] > parts.followed.earned.max() > 1 / 0.05
    told = practice(model, parts, certified(model), None, np.random.default_rng(1))
    assert told.gain.lower_bound is None or told.gain.lower_bound < 0


@pytest.mark.parametrize("curse", [None, Curse(mean=1.0, spread=0.25)])
def test_the_gain_is_never_above_lower_minus_upper(machines, curse):
    model, parts = machines
    certificate = certified(model)
    told = practice(model, parts, certificate, curse, np.random.default_rng(1))
    made, log = told.gain, told.behaviour.log
    assert told.lower_bound == certificate.lower_bound
    assert made.lower_bound == made.promise - made.behaviour
    assert made.behaviour == log.upper >= log.mean
    assert made.delta_policy + made.delta_behaviour == pytest.approx(certificate.delta)
    luck = 0.0 if curse is None else curse.mean + curse.spread
    delta, _ = share_delta(0.05)
    rank = lower_rank(300, delta, 0.05)
    assert 1 <= rank < lower_rank(300, 0.05, 0.05)
    least = np.sort(certificate.returns)[rank - 1]  # by the draws of the promise
    assert made.promise == pytest.approx(least - luck)  # all machines start new
    assert told.has("returns_within_log")


def test_a_share_of_delta_that_needs_more_draws_gets_new_ones(machines):
    model, parts = machines
    delta, _ = share_delta(0.05)
    needed = draws_needed(delta, 0.05)
    few = certified(model, draws=needed - 5)
    read = replace(few, returns=None)  # as from a file
    again = certify(
        few.policy, model.posterior, model.mdp, delta=delta, eta=0.05, draws=needed, rng=_later(),
        upper=False,
    )  # fmt: skip
    for one in (few, read):
        made = practice(model, parts, one, None, np.random.default_rng(1)).gain
        assert made.promise == pytest.approx(again.lower_bound)


def _later():
    """The second generator that `practice` takes of its own."""
    return np.random.default_rng(1).spawn(2)[1]


def test_the_first_state_is_paid_for_on_both_sides(machines):
    """With starts all over, the promise of a gain falls by the doubt about them."""
    model, parts = machines
    starts = np.zeros(model.placed.num_states, dtype=int)
    starts[[0, 5, 7]] = 20, 10, 10
    other = replace(model, placed=replace(model.placed, starts=starts))
    certificate = certified(model)
    known, unsure = (
        practice(one, parts, certificate, None, np.random.default_rng(1)).gain.promise
        for one in (model, other)
    )
    reach = certificate.nominal_return - known
    wanted = first_state_doubt(other, certificate.policy, reach=reach, delta=0.04)
    assert wanted > 0
    assert known - unsure == pytest.approx(wanted)


def test_the_doubt_about_the_first_state_by_hand(machines):
    model, _ = machines
    starts = np.zeros(model.placed.num_states, dtype=int)
    starts[[0, 7]] = 30, 10
    other = replace(model, placed=replace(model.placed, starts=starts))
    policy = solve(model.mdp).policy
    value = evaluate(model.mdp, policy).value
    deviation = np.sqrt(0.75 * 0.25 / 40) * abs(value[0] - value[7])
    alone = first_state_doubt(other, policy, reach=0.0, delta=0.05)
    assert alone == pytest.approx(1.6448536 * deviation)
    with_reach = first_state_doubt(other, policy, reach=3.0, delta=0.05)
    assert with_reach == pytest.approx(np.hypot(3.0, alone) - 3.0)
    uniform = replace(other, settings=replace(other.settings, initial="uniform"))
    assert first_state_doubt(uniform, policy, reach=0.0, delta=0.05) == 0.0
    assert first_state_doubt(model, policy, reach=0.0, delta=0.05) == 0.0  # all start alike


def test_a_difference_doubts_the_first_state_too(machines):
    model, _ = machines
    starts = np.zeros(model.placed.num_states, dtype=int)
    starts[[0, 7]] = 30, 10
    other = replace(model, placed=replace(model.placed, starts=starts))
    policy = solve(model.mdp).policy
    rule = np.where(model.mdp.available[:, 0], 0, policy)
    apart = evaluate(model.mdp, policy).value - evaluate(model.mdp, rule).value
    deviation = np.sqrt(0.75 * 0.25 / 40) * abs(apart[0] - apart[7])
    assert deviation > 0
    found = first_state_doubt_between(other, policy, rule, reach=0.0, delta=0.05)
    assert found == pytest.approx(1.6448536 * deviation)
    assert first_state_doubt_between(other, policy, policy, reach=1.0, delta=0.05) == 0.0
    assert first_state_doubt_between(model, policy, rule, reach=0.0, delta=0.05) == 0.0
    known, unsure = (difference(one, policy, rule).difference_lower_bound for one in (model, other))
    assert unsure < known


def test_no_gain_without_episodes_or_from_other_first_states(machines):
    model, parts = machines
    certificate = certified(model)
    lone = practice(model, LogParts(buckets=None), certificate, None, np.random.default_rng(1))
    assert lone.gain is None
    assert lone.behaviour.log.reason == "no episodes"
    assert lone.behaviour.model.lower < lone.behaviour.model.mean < lone.behaviour.model.upper
    uniform = replace(model, settings=replace(model.settings, initial="uniform"))
    told = practice(uniform, parts, certificate, None, np.random.default_rng(1))
    assert told.gain is None
    assert told.behaviour.log.episodes == 40


def test_a_gain_that_is_not_certified_is_explained(tmp_path):
    """Five episodes: no interval for what was done holds for so few."""
    lines = ["episode,step,state,action,reward,next_state"]
    for episode in range(5):
        lines += [f"{episode},{k},{'ab'[k % 2]},go,{k % 2},{'ba'[k % 2]}" for k in range(40)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    settings = Settings(
        log=str(path), episode="episode", step="step", discount=0.9, draws=300, eta=0.02
    )
    made = run(settings, tmp_path / "run").certificate
    assert made.gain is not None
    assert made.gain.lower_bound is None
    assert "is not certified: the log has fewer than ten" in "".join(made.notes)


def test_actions_hardly_tried_are_not_chosen_where_others_were_tried(tmp_path):
    """A lucky single try is no reason to prefer an action; nor is a ban where there is no other."""
    steps = ["a,usual,1,b", "b,usual,1,a"] * 9 + ["a,once,5,a", "b,twice,5,b", "b,twice,5,b"]
    steps += ["b,thrice,0,a"] * 3 + ["a,usual,1,c", "c,once,5,a"]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["state,action,reward,next_state", *steps]), encoding="utf-8")

    def made(**options):
        settings = Settings(log=(str(path),), discount=0.9, **FEW, **options).in_full()
        counts = read_log(settings)
        return build_model(settings, counts), divide_log(settings, counts)

    model, parts = made()
    labels = model.mdp.state_labels, model.mdp.action_labels
    offered = {
        (labels[0][s], labels[1][a])
        for s, a in np.argwhere(model.considered)
        if not model.passive[s]
    }
    assert offered == {("a", "usual"), ("b", "usual"), ("b", "thrice"), ("c", "once")}
    found = find(model, parts, lambda *_: None).certificate
    told = next(one for one in found.findings if one.code == "hardly_tried")
    assert told.text.startswith("2 actions were not considered: tried fewer than 3 times")
    for other in ({"least_tries": 0}, {"unvisited": "prior"}):
        assert made(**other)[0].considered is None


def model_of_starts(folder, steps_of, *, low=0):
    """Return a model of twenty episodes; every other one begins in a state of its own."""
    path = folder / "log.csv"
    lines = ["episode,step,state,action,reward,next_state"]
    for i in range(20):
        steps = [*steps_of(i), ("middle", low, "usual"), ("usual", 1, "middle")]
        lines += [f"{i},{t},{s},go,{r},{n}" for t, (s, r, n) in enumerate(steps)]
    path.write_text("\n".join(lines), encoding="utf-8")
    columns = {"episode": "episode", "step": "step", "next_state": "next_state"}
    settings = Settings(log=(str(path),), discount=0.5, **columns, **FEW).in_full()
    return build_model(settings, read_log(settings))


def first_of(i):
    return "usual" if i % 2 else f"new {i}"


def test_unknown_first_states_that_lead_to_known_ones_are_not_for_ever_the_worst(tmp_path):
    """The lowest reward once and the worst state after it, not the lowest reward at every step."""
    near = model_of_starts(tmp_path, lambda i: [(first_of(i), 1, "middle")], low=-4)
    far = model_of_starts(
        tmp_path, lambda i: [(first_of(i), 1, f"then {i}"), (f"then {i}", 1, "middle")], low=-4
    )
    stuck = model_of_starts(
        tmp_path, lambda i: [(first_of(i), 1, "pit"), *[("pit", -4, "pit")] * 2], low=-4
    )
    lost = [unknown_starts(one, 0.05).lost for one in (near, far, stuck)]
    assert lost[0] == pytest.approx((0 + 1 / 12) / 11)  # eleven first states, none of them lost
    assert lost[1] == pytest.approx((10 + 12 / 12) / 11)
    assert lost[2] == pytest.approx((0 + 2 / 12) / 11)  # the pit is known, not what follows "usual"
    doubts, means = [], []
    for one in (near, far, stuck):
        policy = solve(one.mdp).policy
        value = evaluate(one.mdp, policy).value
        doubts.append(first_state_doubt(one, policy, reach=0.0, delta=0.05))
        share = one.placed.starts / one.placed.starts.sum()
        means.append(float(share @ value[: len(share)]))
    least = -4 / (1 - 0.5)
    assert doubts[1] >= 0.5 * (means[1] - least)
    assert doubts[2] >= 0.5 * 0.99 * (means[2] - least)  # as bad as the pit, for ever
    worst = evaluate(near.mdp, solve(near.mdp).policy).value.min()
    assert doubts[0] < 0.8 * (means[0] - min(worst, -4 + 0.5 * worst)) + 0.01 * (means[0] - least)


def test_unknown_first_states_count_as_the_least_there_is(tmp_path):
    """Each episode begins in a state of its own: the next ones will, too."""
    model = model_of_starts(tmp_path, lambda i: [(first_of(i), 1, "middle")])
    settings = model.settings
    unknown = unknown_starts(model, 0.05)
    assert unknown.expected == 0.5  # ten of twenty episodes
    assert 0.5 < unknown_starts(model, 0.5).most < 0.6
    assert 0.6 < unknown.most < 0.8
    policy = solve(model.mdp).policy
    share = model.placed.starts / model.placed.starts.sum()
    mean = float(share @ evaluate(model.mdp, policy).value[: len(share)])
    found = first_state_doubt(model, policy, reach=0.0, delta=0.05)
    assert found >= 0.5 * mean  # the least is 0
    known = replace(model, settings=replace(settings, initial="uniform"))
    assert first_state_doubt(known, policy, reach=0.0, delta=0.05) == 0.0


def test_surer_promises_of_the_page_pay_more_for_the_first_state(tmp_path):
    model = model_of_starts(tmp_path, lambda i: [(first_of(i), 1, "middle")])
    made = certify_policy(model, solve(model.mdp).policy)
    assert made.has("first_state_unsure")
    levels = np.array([0.8, 1.0 - made.delta, 0.999])
    curve = GuaranteeCurve(
        confidence=levels, bound=np.full(3, made.lower_bound + made.taken_off), eta=0.001,
        draws=1000, note="",
    )  # fmt: skip
    low, own, high = _deductions(model, made, curve, made.nominal_return)
    assert low < own < high
    assert own == pytest.approx(made.taken_off)


def test_the_share_of_unknown_first_states_is_bounded_as_often_as_it_says(tmp_path):
    """Sixty states begin equally often: the share that a log lacks varies as much as its estimate.

    A binomial bound would be exceeded in a tenth of the logs.
    """
    model = model_of_starts(tmp_path, lambda i: [(first_of(i), 1, "middle")])
    rng, states, above = np.random.default_rng(0), 60, 0
    none = np.zeros(0, dtype=np.int64)
    for _ in range(400):
        starts = np.bincount(rng.integers(states, size=states), minlength=states)
        placed = SimpleNamespace(
            starts=starts, successor=none, entry_state=none, count=none, num_states=states,
            is_terminal=np.zeros(states, dtype=np.bool_),
        )  # fmt: skip
        bound = unknown_starts(replace(model, placed=placed), 0.05).most
        above += bool((starts == 0).mean() > bound)
    assert above <= 28  # of twenty expected, one in a hundred times


def test_without_a_prior_the_log_stands_beside_the_models_of_the_set(machines):
    """What was done lies between its worst and its best case; nothing is read off twice."""
    model, parts = built(basis="frequentist")
    certificate = find(model, parts, lambda *_: None).certificate
    bayesian = practice(*machines, certified(machines[0]), None, np.random.default_rng(0))
    shown, by_model = certificate.behaviour.log, certificate.behaviour.model
    assert shown.mean == bayesian.behaviour.log.mean
    assert by_model.lower < by_model.mean < by_model.upper
    assert certificate.has("practice_seen")
    assert not certificate.has("behaviour_mismatch")
    assert f"first states as in {model.starts} episodes of the log" in certificate.sentence


def test_a_mismatch_is_told_before_anything_else(machines):
    model, parts = machines
    worse = replace(model, mdp=replace(model.mdp, reward=model.mdp.reward - 1e3))
    told = practice(worse, parts, certified(model), None, np.random.default_rng(0))
    assert told._remarks()[0].code == "behaviour_mismatch"
    assert told.warnings[0] == told._remarks()[0].text
