"""Policies from files: what is wrong is said with its place."""

import pytest

import surefoot as sf
from surefoot.data.side_files import read_side_file

HEADER = "state,action\n"
ALL_RIGHT = "".join(f"{state},right\n" for state in range(6))


def write(folder, text):
    path = folder / "policy.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_files_that_people_write_are_read(tmp_path):
    mdp = sf.riverswim().mdp
    for text in (
        HEADER + ALL_RIGHT,
        "\ufeff" + HEADER + ALL_RIGHT,
        (HEADER + ALL_RIGHT).replace("\n", "\r\n"),
        HEADER + "\n" + ALL_RIGHT + "\n",
        "note,state,action\n" + "".join(f"x,{state},right\n" for state in range(6)),
    ):
        assert sf.read_policy(write(tmp_path, text), mdp).tolist() == [1] * 6
    mixed = "state,action,probability\n0,left,.25\n0,right,.75\n" + "".join(
        f"{state},right,1\n" for state in range(1, 6)
    )
    assert sf.read_policy(write(tmp_path, mixed), mdp)[0].tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER + "0\n", "line 2: the line does not have 2 fields"),
        (HEADER + "0,right,1\n", "line 2: the line does not have 2 fields"),
        (HEADER.encode() + b"\x81,right\n", "the text is not UTF-8"),
        ("", "no column 'state'; the columns are none"),
        ("stat,action\n", "Did you mean 'stat'?"),
        (HEADER + "0,rigt\n", "line 2: unknown action 'rigt'. Did you mean 'right'?"),
        (HEADER + ALL_RIGHT + "0,right\n", "line 8: this state and action were listed before"),
        (HEADER + "0,right\n", "state 1 has no line (5 of 6 states)"),
        (HEADER + '"0,right\n', "does not have 2 fields"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=r"policy\.csv") as caught:
        sf.read_policy(path, sf.riverswim().mdp)
    assert words in str(caught.value)


def test_line_ends_inside_labels_are_kept(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b'state\r\n"a\r\nb"\r\n"a\nb"\r\n')
    assert [line["state"] for _, line in read_side_file(path).lines] == ["a\r\nb", "a\nb"]
