"""A promise weighed against its log: what is taken off, and when it is taken back."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot.certificates.certification import certify
from surefoot.certificates.evidence import Advantage, Backtest, NewSuccessors
from surefoot.demo import demo_settings
from surefoot.pipeline.deductions import _verdict, weigh
from surefoot.pipeline.first_state import first_state_doubt
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.parts import LogParts, divide_log
from surefoot.solvers.solver import solve

FEW = {"draws": 300, "eta": 0.05}


def built(**options):
    settings = replace(demo_settings(), **FEW, **options).in_full()
    counts = read_log(settings)
    return build_model(settings, counts), divide_log(settings, counts)


def certified(model):
    policy = solve(model.mdp).policy
    return certify(
        policy, model.posterior, model.mdp, **FEW, rng=np.random.default_rng(0), upper=False
    )


@pytest.fixture(scope="module")
def machines():
    """The demo's log, as if its machines had started in three conditions."""
    model, parts = built()
    starts = np.zeros(model.placed.num_states, dtype=int)
    starts[[0, 5, 7]] = 20, 10, 10
    return replace(model, placed=replace(model.placed, starts=starts)), parts


def values(certificate, code):
    return next(dict(found.values) for found in certificate.findings if found.code == code)


def test_the_promise_falls_by_the_curse_and_the_first_state_and_nothing_else(machines):
    model, parts = machines
    before = certified(model)
    after = weigh(model, parts, before, np.random.default_rng(1))
    luck = after.curse.mean + after.curse.spread
    assert luck > 0
    told = values(after, "curse_taken_off")
    assert (told["mean"], told["spread"]) == (after.curse.mean, after.curse.spread)
    assert told["promise"] == before.lower_bound
    reach = before.nominal_return - (before.lower_bound - luck)
    first = first_state_doubt(model, before.policy, reach=reach, delta=0.05)
    assert values(after, "first_state_unsure") == {"starts": 40, "amount": pytest.approx(first)}
    assert before.lower_bound - after.lower_bound == pytest.approx(luck + first)
    assert before.marginal_bound - after.marginal_bound == pytest.approx(luck + first)
    assert (after.upper_bound, after.nominal_return) == (before.upper_bound, before.nominal_return)
    assert after.backtest is not None
    assert not after.withheld


def test_a_policy_chosen_elsewhere_owes_nothing_to_luck(machines):
    model, parts = machines
    before = certified(model)
    after = weigh(model, parts, before, np.random.default_rng(1), chosen_here=False)
    assert after.curse is None
    assert not after.has("curse_taken_off")
    fallen = before.lower_bound - after.lower_bound
    assert fallen == pytest.approx(values(after, "first_state_unsure")["amount"])


def test_a_log_that_cannot_be_divided_is_said(machines):
    model, _ = machines
    after = weigh(model, LogParts(buckets=None), certified(model), np.random.default_rng(1))
    assert after.has("curse_not_measured")
    assert after.curse is None
    assert after.backtest is None


def test_hidden_types_take_the_promise_back(tmp_path):
    """Two kinds of machine, of which one fails more often."""
    rng = np.random.default_rng(0)
    lines = ["machine,week,condition,decision,profit"]
    for machine in range(80):
        state = "up"
        for week in range(30):
            lines.append(f"{machine},{week},{state},run,{1 if state == 'up' else 0}")
            state = "down" if rng.random() < (0.05 if machine % 2 else 0.6) else "up"
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    model, parts = built(log=(str(tmp_path / "log.csv"),))
    made = weigh(model, parts, certified(model), np.random.default_rng(1))
    assert made.has("past_matters")
    assert made.withheld
    assert made.sentence.startswith("NOT CERTIFIED. The early part of an episode predicts")
    assert "If that were not so: with 95% confidence" in made.sentence
    assert made.gain_sentence == ""
    assert made.has("previous_state_not_enough")


NEW = NewSuccessors(seen=9, expected=2.0, tried=100, p_value=0.006)
STEPS = Advantage(statistic=-2.0, error=0.5, uncovered=0.0, p_value=0.004)


@pytest.mark.parametrize(
    ("new", "steps", "codes"),
    [
        (NEW, None, ["backtest_new_successors"]),
        (NEW, replace(STEPS, p_value=None), ["backtest_new_successors"]),
        (NEW, replace(STEPS, p_value=0.5), ["backtest_passed"]),  # two tests share the level
        (NEW, STEPS, ["backtest_steps_worse"]),
        (None, None, []),
    ],
)
def test_a_failed_backtest_is_a_failure(new, steps, codes):
    held = Backtest(new_successors=new, advantage=steps)
    found = _verdict(held)
    assert [one.code for one in found] == codes
    assert held.failed == any(one.level == "failed" for one in found)
    assert held.failed == (codes not in ([], ["backtest_passed"]))
