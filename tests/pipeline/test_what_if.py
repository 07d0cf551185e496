"""Every line of a what-if table is what a fresh run finds, without the log."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import Settings, run
from surefoot.pipeline.variations import Variation, usual_variations, write_allowed
from surefoot.pipeline.what_if import ALONE, what_if

ASKED = (
    Variation(setting="discount", value=0.7),
    Variation(setting="delta", value=0.2),
    Variation(setting="forbidden", value="mend"),
    Variation(setting="prior", value=2.0),
    Variation(setting="unseen", value="absorbing"),
)
OF_EPISODES = {
    "practice_seen",
    "gain_not_certified",
    "behaviour_mismatch",
    "returns_within_log",
    "worst_case_left_out",
}
"""What is said about the log's own decisions, whose episodes are not kept."""


def write_log(path, *, episodes: int = 24, steps: int = 10) -> str:
    rng = np.random.default_rng(3)
    lines = ["unit,week,state,action,reward"]
    for unit in range(episodes):
        state = int(rng.integers(3))
        for week in range(steps):
            action = "mend" if rng.random() < 0.3 + 0.2 * state else "wait"
            lines.append(f"{unit},{week},{state},{action},{3 - state - (action == 'mend')}")
            worse = min(state + (rng.random() < 0.5), 2)
            state = 0 if action == "mend" and rng.random() < 0.9 else int(worse)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


BASE = {"discount": 0.8, "draws": 400, "eta": 0.1}
WITH_EPISODES = BASE | {"episode": "unit", "step": "week"}


def made_from(folder, **settings):
    log = write_log(folder / "log.csv")
    return run(Settings(log=log, **settings), folder / "run")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_from(tmp_path_factory.mktemp("units"), **WITH_EPISODES)


def asked(made, *variations):
    """Ask about some variations."""
    some: dict[str, list] = {}
    for one in variations:
        some.setdefault(one.setting, []).append(one.value)
    return what_if(made, **some)


def fresh(made, variation, folder):
    """Solve the log itself with the changed setting."""
    if variation.setting == "forbidden":
        path = folder / "allowed.csv"
        write_allowed(path, made.model, variation.value)
        settings = replace(made.settings, allowed=str(path))
    else:
        settings = replace(made.settings, **{variation.setting: variation.value})
    return run(settings, folder / "fresh")


def assert_equal(line, other):
    ours, theirs = line.certificate, other.certificate
    for name in (
        "lower_bound", "upper_bound", "nominal_return", "numerical_error", "delta", "draws",
        "other_draws", "seed", "data_fingerprint", "model_fingerprint", "stream", "withheld",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert np.array_equal(ours.policy, theirs.policy)
    for name in ("mean", "spread"):
        one, two = (None if c.curse is None else getattr(c.curse, name) for c in (ours, theirs))
        assert one == two
    assert [f for f in ours.findings if f.code not in OF_EPISODES] == [
        f for f in theirs.findings if f.code not in OF_EPISODES
    ]


@pytest.mark.parametrize("variation", ASKED, ids=lambda one: one.setting)
def test_a_line_is_a_fresh_run_to_the_last_digit(made, variation, tmp_path):
    assert (made.folder / "parts.npz").is_file()
    own, line = asked(made, variation).lines
    assert own.certificate.promise == made.certificate.promise
    assert not line.refused
    assert_equal(line, fresh(made, variation, tmp_path))


@pytest.mark.parametrize(
    ("settings", "variation"),
    [
        (WITH_EPISODES | {"honest": True}, ASKED[1]),
        (WITH_EPISODES | {"honest": True}, ASKED[2]),
        (BASE | {"next_state": "after", "costs": True, "reward": "reward"}, ASKED[0]),
        (WITH_EPISODES | {"basis": "frequentist", "reward_range": (-5.0, 5.0)}, ASKED[1]),
    ],
    ids=["honest", "honest without an action", "costs, no episodes", "frequentist"],
)
def test_other_kinds_of_runs(settings, variation, tmp_path):
    log = tmp_path / "log.csv"
    write_log(log)
    if "episode" not in settings:
        lines = [line.split(",") for line in log.read_text().splitlines()]
        after = [*(line[2] for line in lines[2:]), "0"]
        rows = [",".join((*line, last)) for line, last in zip(lines[1:], after, strict=True)]
        log.write_text("\n".join([",".join((*lines[0], "after")), *rows]) + "\n")
    own = run(Settings(log=str(log), **settings), tmp_path / "run")
    line = asked(own, variation).lines[1]
    assert_equal(line, fresh(own, variation, tmp_path))


def test_the_log_is_not_read(made, tmp_path):
    log = made.folder.parent / "log.csv"
    away = log.rename(tmp_path / "log.csv")
    try:
        assert asked(made.folder, ASKED[1]).lines[1].certificate is not None
    finally:
        away.rename(log)


def test_policy_changes_are_listed(made):
    line = asked(made, ASKED[2]).lines[1]
    mended = {row.state for row in made.policy if row.action == "mend"}
    assert {state for state, _, _ in line.changes} >= mended
    assert all(old != new for _, old, new in line.changes)
    assert all(new != "mend" for _, _, new in line.changes)


def test_what_solve_refuses_is_a_line_that_says_so(made):
    small = Variation(setting="delta", value=0.001)  # 400 draws are too few for it
    nothing = Variation(setting="forbidden", value="fly")
    table = asked(made, small, nothing)
    assert "needs at least" in table.lines[1].refused
    assert "unknown action 'fly'" in table.lines[2].refused
    assert "refused" in table.summary()
    assert table.to_mapping()["lines"][1]["promise"] is None


def test_the_usual_questions(made):
    words = [one.words for one in usual_variations(made)]
    assert words == [
        "discount 0.6", "discount 0.9", "delta 0.01", "delta 0.1", "delta 0.2",
        *(f"without {action}" for action in ("mend", "wait") if f"without {action}" in words),
        "prior 0.5", "prior 1", "prior 2", "unseen absorbing",
    ]  # fmt: skip
    assert any(word.startswith("without") for word in words)


def test_the_table_says_that_each_number_holds_alone(made):
    table = asked(made, ASKED[1])
    assert ALONE in table.summary()
    assert table.to_mapping()["note"] == ALONE
    assert "as it is" in table.summary()


def test_a_folder_without_parts_is_told_what_to_do(made, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(made.folder, copy)
    (copy / "parts.npz").unlink()
    with pytest.raises(ValueError, match=r"has no parts\.npz"):
        what_if(copy, delta=[0.2])
