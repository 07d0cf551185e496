"""The rule in a terminal: a sentence, a table, or where it departs from what was done."""

from surefoot.report.rule_text import WIDTH, rule_text
from surefoot.report.tables import PolicyLine

MANY = [
    ("old", f"a rather long name of a state with a number at its end, which is {i}")
    for i in range(40)
]


def line(state, action, **more):
    known = {"probability": 1.0, "visits": 9, "margin": None}
    return PolicyLine(state=state, action=action, **known | more)


def test_departures_are_told_with_the_number_of_others():
    lines = [line(state, "mend" if i % 2 else "run") for i, state in enumerate(MANY)]
    told = rule_text(lines, {one.key: (("run", 1.0),) for one in lines}, ["a", "b"], "policy.csv")
    assert told[0] == "The rule departs from what was mostly done in 20 of 40 states:"
    assert told[-1] == "... and 8 more lines. The whole rule: policy.csv"
    assert len(told) == 1 + 1 + 12 + 1
    assert max(map(len, told)) <= WIDTH


def test_a_short_rule_is_shown_whole_by_step():
    lines = [
        line("mild", "wait", first_step=0, last_step=7),
        line("mild", "treat", first_step=8, last_step=11),
        line(
            "severe", "a treatment with a long name", first_step=0, last_step=11, probability=0.25
        ),
    ]
    told = rule_text(lines, {lines[0].key: (("treat", 0.614),)}, ["state"], "run/policy.csv")
    assert told == [
        "The rule (run/policy.csv, steps counted from 0):",
        "state   steps    do                    mostly done",
        "mild    0 to 7   wait                  treat (61%)",
        "mild    8 to 11  treat                 never there",
        "severe  0 to 11  a treatment w… (25%)  never there",
    ]


def test_a_rule_that_is_the_habit_says_so():
    lines = [line(state, "run" if i else "mend") for i, state in enumerate(MANY)]
    known = {one.key: ((one.action, 0.9),) for one in lines}
    lines += [line(("new", i), f"do {i}") for i in range(20)]
    known |= {one.key: ((one.action, 0.9),) for one in lines}
    assert rule_text(lines, known, ["a", "b"], "x.csv") == [
        "The rule is what was mostly done, in all 60 states: x.csv"
    ]
