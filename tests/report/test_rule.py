"""The rule in words, and beside what was done."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import StepPolicy, evaluate, garnet
from surefoot.certificates.headlines import steady
from surefoot.report.rows import rule_rows
from surefoot.report.rule import Change, changes, rule_words
from surefoot.report.tables import PolicyLine


def line(state, action, visits=1.0, probability=1.0):
    return PolicyLine(
        state=state, action=action, probability=probability, visits=visits, margin=None
    )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ([("a", "run"), ("b", "run")], "Always run."),
        ([(0, "up"), (1, "up"), (2, "up"), (3, "down")], "Down in level 3; otherwise up."),
        ([(f"w {i}", "run" if i < 4 else "mend") for i in range(9)], None),
        ([("x 1", "a"), ("x 2", "a"), ("x 4", "b"), ("y", "a")], "B in x 4; otherwise a."),
        ([(("old", "high"), "mend"), (("new", "low"), "run")] * 1, None),
    ],
)
def test_a_short_rule_is_said_whole(rule, words):
    lines = [line(state, action) for state, action in rule]
    said = rule_words(lines, {}, ["level"])
    assert said[0].isupper()
    assert said.endswith(".")
    if words is not None:
        assert said == words


def test_states_in_a_row_are_a_range():
    lines = [line(f"wear {i}", "mend" if i > 5 else "run", visits=9 - i) for i in range(10)]
    assert rule_words(lines, {}, ["wear"]) == "Mend in wear 6 to wear 9; otherwise run."


def test_a_long_rule_is_a_table_and_says_what_changes():
    lines = [line(f"state {2 * i}", "ab"[i % 2]) for i in range(60)]
    found = {one.key: Change(shares=(("a", 1.0),), each=0.0, total=0.0) for one in lines}
    said = rule_words(lines, found, ["state"])
    assert said == "Follow the table below; it departs from past practice in 30 of 60 states."
    same = {one.key: Change(shares=((one.action, 1.0),), each=0.0, total=0.0) for one in lines}
    assert "mostly done already" in rule_words(lines, same, ["state"])


def test_a_randomised_rule_is_a_table():
    lines = [line("s", "a", probability=0.5), line("s", "b", probability=0.5)]
    assert rule_words(lines, {}, ["state"]).startswith("Follow the table below")
    rows = rule_rows(lines, {}, 1)
    assert [row.chance for row in rows] == ["(50%)", "(50%)"]


@pytest.mark.parametrize("seed", range(3))
def test_gains_of_states_add_up_to_the_difference_of_returns(seed):
    rng = np.random.default_rng(seed)
    domain = garnet(8, 3, 4, discount=0.9, rng=rng)
    counts, mdp = domain.simulate(20, rng), domain.mdp
    policy = rng.integers(0, 3, size=8)
    mixed = rng.dirichlet(np.ones(3), size=8)
    found = changes(mdp, counts, policy, mixed)
    whole = evaluate(mdp, policy).return_lower - evaluate(mdp, mixed).return_lower
    assert sum(change.total for change in found.values()) == pytest.approx(whole, abs=1e-4)
    assert all(abs(sum(s for _, s in c.shares) - 1) < 1e-12 for c in found.values())


@pytest.mark.parametrize("by_steps", [False, True])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_gains_of_lines_add_up_over_a_horizon(discount, by_steps):
    rng = np.random.default_rng(4)
    domain = garnet(6, 3, 4, discount=0.9, rng=rng)
    mdp = replace(domain.mdp, discount=discount).over(9, rng.normal(size=6))
    policy = (
        StepPolicy.from_array(rng.integers(0, 3, size=(9, 6))) if by_steps else np.zeros(6, int)
    )
    mixed = rng.dirichlet(np.ones(3), size=6)
    found = changes(mdp, domain.simulate(20, rng), policy, mixed)
    whole = evaluate(mdp, policy).return_lower - evaluate(mdp, mixed).return_lower
    assert sum(change.total for change in found.values()) == pytest.approx(whole, abs=1e-9)
    assert len(found) == (len(policy.action) if by_steps else 6)


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("horizon", [None, 1, 7])
def test_a_steady_amount_has_the_same_total(discount, horizon):
    each = steady(12.0, discount, horizon)
    steps = 200_000 if horizon is None else horizon
    assert each * np.sum(discount ** np.arange(steps)) == pytest.approx(12.0)
    assert steady(12.0, 1.0, 6) == 2.0
    with pytest.raises(ValueError, match="needs a horizon"):
        steady(12.0, 1.0)
