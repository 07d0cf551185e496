"""A run says where its doubt comes from, and what a wide range of rewards costs."""

from dataclasses import replace

import pytest

from surefoot import Settings, run


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A run whose rewards may be far lower than any that was seen."""
    place = tmp_path_factory.mktemp("wide")
    lines = ["state,action,reward,next_state"]
    for i in range(80):
        lines.append(f"up,wait,{0.5 if i % 3 else 1},{'up' if i % 3 else 'down'}")
        lines.append(f"down,mend,{0.25 if i % 2 else 0},{'up' if i % 4 else 'down'}")
    (place / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(
        log=str(place / "log.csv"), discount=0.9, draws=1000, reward_range=(-5.0, 1.0)
    )
    return run(settings, place / "run"), settings


def found(certificate, code):
    return next(one for one in certificate.findings if one.code == code)


def test_every_run_says_where_its_doubt_comes_from(finished):
    made = finished.certificate
    doubt = made.doubt
    assert doubt.as_seen - doubt.total == pytest.approx(made.promise)
    assert doubt.choosing.amount == pytest.approx(made.curse.mean + made.curse.spread)
    told = found(made, "doubt_by_cause")
    assert told.values["promise"] == made.promise
    assert told.values["transitions"] == doubt.transitions.amount
    assert "what was never observed" in told.text or abs(doubt.unseen.amount) < 0.02 * doubt.total


def test_a_range_wider_than_what_was_seen_is_priced(wide, tmp_path):
    made, settings = wide
    told = found(made.certificate, "range_costs").values
    assert (told["low"], told["high"], told["seen_low"], told["seen_high"]) == (-5.0, 1.0, 0.0, 1.0)
    assert told["less"] > 0
    assert told["promise"] == pytest.approx(made.certificate.promise + told["less"])
    assert made.certificate.doubt.rewards.amount > 0
    narrow = run(replace(settings, reward_range=(0.0, 1.0)), tmp_path / "run").certificate
    assert not narrow.has("range_costs")
    assert narrow.promise > made.certificate.promise
