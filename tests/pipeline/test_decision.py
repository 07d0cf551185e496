"""What a run says to do: action, evidence and habit; a clear answer where it knows nothing."""

from pathlib import Path

import pytest

from surefoot import Settings, run
from surefoot.pipeline.answers import answer_file
from surefoot.report.tables import PolicyLine


@pytest.fixture(scope="module")
def wards(tmp_path_factory):
    """Two state columns, one of them numbers; state (3, sick) only as a successor, an end."""
    lines = ["ward,patient,dose,gain,ward_next,patient_next,over"]
    for i in range(30):
        lines.append(f"1,well,low,1,{1 if i % 5 else 2},{'well' if i % 3 else 'sick'},0")
        lines.append(f"1,sick,high,0,1,{'well' if i % 2 else 'sick'},0")
        lines.append("2,sick,low,0,2,sick,0")
        lines.append(f"2,well,low,1,{1 if i % 2 else 3},well,{1 - i % 2}")
        if i % 3 == 0:
            lines.append("1,sick,low,-1,1,sick,0")
            lines.append("2,sick,high,-1,3,sick,0")
    folder = tmp_path_factory.mktemp("wards")
    (folder / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(
        log=str(folder / "log.csv"), state=("ward", "patient"), action="dose", reward="gain",
        next_state=("ward_next", "patient_next"), terminal="over", discount=0.8, draws=600,
        eta=0.01,
    )  # fmt: skip
    return run(settings, folder / "run")


def test_an_answer_has_action_evidence_and_habit(finished):
    answer = finished.action("wear 4")
    line = next(line for line in finished.policy if line.state == "wear 4")
    assert (answer.action, answer.visits, answer.margin) == (line.action, line.visits, line.margin)
    assert answer.known
    assert answer.certified is not finished.certificate.withheld
    assert (answer.habit, round(answer.share, 3)) == ("run", 0.708)  # 308 of 435 weeks
    assert "repair. Tried 127 times in this state." in answer.sentence
    assert "In the log mostly run (71%)" in answer.sentence
    assert finished.action(condition="wear 4") == answer == finished.action({"condition": "wear 4"})


def test_every_state_of_the_policy_is_answered_as_the_policy_says(finished):
    for line in finished.policy:
        assert finished.action(line.state).action == line.action


def test_a_state_never_seen_has_no_action(finished):
    answer = finished.action("wear 12")
    assert (answer.known, answer.action, answer.reason) == (False, None, "never seen")
    assert "the log never shows this state" in answer.sentence
    assert "near: 'wear 2'" in answer.sentence
    assert answer.to_mapping()["known"] is False


def test_several_columns_are_asked_by_name_or_in_order(wards):
    answer = wards.action(ward=1, patient="sick")
    assert answer.action == "high"
    assert answer.state == {"ward": 1, "patient": "sick"}
    assert wards.action((1, "sick")) == answer == wards.action(ward="1.0", patient=" sick ")


def test_what_the_log_knows_of_a_new_state_is_said(wards):
    assert "ward '7' is new to it." in wards.action(ward=7, patient="well").hint
    assert wards.action(ward=3, patient="sick").reason == "never left"


def test_values_that_never_met_are_told_apart(tmp_path):
    log = tmp_path / "log.csv"
    lines = [f"{a},{b},go,{i % 2},{a},{b}" for i in range(20) for a, b in ("ax", "by")]
    log.write_text("\n".join(["a,b,action,reward,a2,b2", *lines]), encoding="utf-8")
    made = run(
        Settings(log=str(log), state=("a", "b"), next_state=("a2", "b2"), discount=0.5, draws=300,
                 eta=0.1), tmp_path / "run",
    )  # fmt: skip
    assert made.action(a="a", b="y").hint == "It knows each of these values, but never together."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wards": 1, "patient": "sick"}, "no state column 'wards'.*Did you mean 'ward'"),
        ({"ward": 1}, "patient was not given"),
        ({"ward": 1, "patient": "sick", "step": 2}, "the same at every step"),
        ({}, "give a state"),
    ],
)
def test_questions_that_make_no_sense_are_refused(wards, given, message):
    with pytest.raises(ValueError, match=message):
        wards.action(**given)


def test_one_value_is_no_state_of_two_columns(wards):
    with pytest.raises(ValueError, match="has 2 columns"):
        wards.action("sick")


def test_a_file_is_answered_line_by_line(wards, tmp_path):
    path = tmp_path / "asked.csv"
    path.write_text("id,dose,ward,patient\n7,old,1,sick\n8,old,9,sick\n", encoding="utf-8")
    answers = answer_file(wards.advice, path, ("dose",))
    assert answers.head == (
        "id", "dose", "ward", "patient", "dose_", "known", "visits", "margin", "habit",
        "habit_share",
    )  # fmt: skip
    assert answers.rows[0][:7] == ("7", "old", "1", "sick", "high", "yes", "30")
    assert answers.rows[1][4:] == ("", "no", "0", "", "", "")
    assert answers.unknown == 1
    answers.write(tmp_path / "answers.csv")
    text = Path(tmp_path / "answers.csv").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 3


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """One column of measurements in bins and one of words; Excel's semicolons and commas."""
    lines = ["pressure;ward;dose;gain;pressure_next;ward_next"]
    for i in range(200):
        level, ward = 110 + (7 * i) % 70 + 0.5, "AB"[i % 2]
        dose = ("low", "high")[(i // 3) % 2]
        after = level - 9 if dose == "high" else level + 5
        gain = 3 - (level > 140) * 2 - (dose == "high")
        cells = (f"{level}", ward, dose, gain, f"{after}", ward)
        lines.append(";".join(str(cell).replace(".", ",") for cell in cells))
    folder = tmp_path_factory.mktemp("measured")
    (folder / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(
        log=str(folder / "log.csv"), state=("pressure", "ward"), action="dose", reward="gain",
        next_state=("pressure_next", "ward_next"), bins=("pressure=125,140,160",), discount=0.7,
        draws=400, eta=0.1,
    )  # fmt: skip
    return run(settings, folder / "run")


def test_measurements_are_asked_as_they_are(measured):
    answer = measured.action(pressure=143.5, ward="A")
    assert answer.known
    assert answer.state == {"pressure": "pressure 140-160", "ward": "A"}
    assert answer == measured.action(pressure="pressure 140-160", ward="A")
    assert answer == measured.action(pressure="143,5", ward="A")
    assert answer.sentence.startswith("pressure 140-160, ward A: ")
    with pytest.raises(ValueError, match="pressure is 'much'; it must be a number"):
        measured.action(pressure="much", ward="A")


def test_a_run_that_is_read_back_knows_its_bins(measured):
    from surefoot import load_run

    again = load_run(measured.folder)
    asked = {"pressure": 128, "ward": "B"}
    assert again.action(asked) == measured.action(asked)


def test_a_file_of_measurements_may_have_semicolons(measured, tmp_path):
    path = tmp_path / "asked.csv"
    path.write_text("id;pressure;ward\n1;143,5;A\n2;139,9;A\n", encoding="utf-8")
    answers = answer_file(measured.advice, path, ("dose",), how=measured.settings.log_format)
    assert [one.state["pressure"] for one in answers.decisions] == [
        "pressure 140-160", "pressure 125-140",
    ]  # fmt: skip
    path.write_text("pressure;ward\nmuch;A\n;A\n130;A\n", encoding="utf-8")
    answers = answer_file(measured.advice, path, ("dose",))
    assert [one.reason for one in answers.decisions] == ["no number", "no number", ""]
    assert "pressure is 'much'; it must be a number" in answers.decisions[0].sentence
    assert answers.rows[0][3] == "no"
    with pytest.raises(ValueError, match="the same at every step"):
        answer_file(measured.advice, path, ("dose",), step=2)


def test_bins_are_ranges_in_sql(measured):
    import duckdb

    from surefoot.pipeline.export import run_sql

    levels = [100.0, 125.0, 139.99, 140.0, 175.0]
    with duckdb.connect() as connection:
        for level in levels:
            row = f"(SELECT {level} AS pressure, 'A' AS ward)"
            (decided,) = connection.execute(f"SELECT {run_sql(measured)} FROM {row}").fetchone()
            assert decided == measured.action(pressure=level, ward="A").action


def test_a_policy_that_depends_on_the_step_is_asked_with_one(finished):
    from surefoot.pipeline.decision import Advice

    about = {"probability": 1.0, "visits": 5, "margin": 1.0}
    lines = [
        PolicyLine(state="wear 4", action="repair", first_step=0, last_step=3, **about),
        PolicyLine(state="wear 4", action="run", first_step=4, last_step=9, **about),
    ]
    advice = Advice.of(finished.model, lines, certified=True)
    assert advice.on("wear 4", 3).action == "repair"
    assert advice.on("wear 4", 4).action == "run"
    with pytest.raises(ValueError, match="depends on the step"):
        advice.on("wear 4")
    with pytest.raises(ValueError, match="counts the steps 0 to 9"):
        advice.on("wear 4", 10)
