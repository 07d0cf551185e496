"""A quick look at the first lines of a log decides only what a closer one would decide too."""

import gzip

import pytest

from surefoot import read_transitions
from surefoot.data import layouts

HEADER = "state,action,reward,next_state\n"
BARE = HEADER + "0,0,1.25,1\n1,0,-2e-1,0\n0,0,0.5,1\n"


def counted(path, text, monkeypatch):
    """Read a log; also return whether its numbers were looked at closely."""
    closely = []
    shown = layouts._shown
    monkeypatch.setattr(layouts, "_shown", lambda *given: closely.append(given) or shown(*given))
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return read_transitions(path), bool(closely)


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
def test_bare_numbers_need_no_closer_look(tmp_path, monkeypatch, name):
    counts, closely = counted(tmp_path / name, BARE, monkeypatch)
    assert not closely
    assert sorted(counts.reward_mean.tolist()) == [-0.2, 0.875]


@pytest.mark.parametrize(
    ("text", "rewards"),
    [
        (HEADER + '0,0,"1,25",1\n1,0,"-0,2",0\n', [-0.2, 1.25]),
        (HEADER + "0,0,1 250.5,1\n1,0,-0.2,0\n", [-0.2, 1250.5]),
        (HEADER + "0,0,1\u202f250.5,1\n1,0,-0.2,0\n", [-0.2, 1250.5]),
        (HEADER + "a b,0,1.25,c\nc,0,-0.2,a b\n", [-0.2, 1.25]),
        (HEADER.replace(",", ";") + "0;0;1,25;1\n1;0;-0,2;0\n", [-0.2, 1.25]),
    ],
    ids=["decimal comma", "space", "narrow space", "label with a space", "semicolons"],
)
def test_anything_else_is_looked_at_closely(tmp_path, monkeypatch, text, rewards):
    counts, closely = counted(tmp_path / "log.csv", text, monkeypatch)
    assert closely
    assert sorted(counts.reward_mean.tolist()) == rewards


def test_a_short_line_is_left_to_the_count(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="line 3"):
        counted(tmp_path / "log.csv", BARE.replace("1,0,-2e-1,0", "1,0,-2e-1"), monkeypatch)


def test_rewards_beyond_the_first_rows_are_summed_exactly(tmp_path, monkeypatch):
    """What the first rows show is a guess: decimals, size and scatter may come later."""
    from surefoot.data import tally

    monkeypatch.setattr(tally, "FIRST_ROWS", 2)
    rows = ["0,0,1.5,1", "1,0,0,0", "0,0,0.1234567,1", "0,0,1e3,1", "1,0,0,0"]
    counts, _ = counted(tmp_path / "log.csv", HEADER + "\n".join(rows) + "\n", monkeypatch)
    assert counts.reward_mean.tolist() == [(1.5 + 0.1234567 + 1e3) / 3, 0.0]
