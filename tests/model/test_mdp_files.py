"""Models go to files and come back with the same bits; bad files say where they are bad."""

import gzip
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from surefoot.model.files import read_mdp, write_mdp
from surefoot.model.mdp import MDP

HEADER = "idstatefrom,idaction,idstateto,probability,reward\n"
COIN = HEADER + "0,0,0,0.5,1\n0,0,1,0.5,0\n1,0,1,1,0\n"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def models(draw, labels=texts):
    """Models with awkward floats, absent actions, zero-probability entries and labels."""
    num_states, num_actions = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (num_states, num_actions, num_states)
    support = rng.random(shape) < 0.7
    support[..., 0] = True
    p = rng.random(shape) ** 20 * support * (rng.random(shape) < 0.8)
    p[..., 0] += 1e-12
    p /= p.sum(axis=2, keepdims=True)
    absent = rng.random((num_states, num_actions)) < 0.3
    absent[:, -1] = False
    absent[0] = False
    support[absent], p[absent] = False, 0
    rewards = np.array(draw(st.lists(floats, min_size=p.size, max_size=p.size))).reshape(shape)
    per_row = draw(st.booleans())
    named = draw(st.booleans())

    def names(count: int) -> list[object]:
        return draw(st.lists(labels, min_size=count, max_size=count, unique=True))

    return MDP.from_arrays(
        p,
        rewards[..., 0] if per_row else rewards,
        discount=draw(st.floats(0, 0.999)),
        initial=rng.dirichlet(np.ones(num_states)),
        support=support,
        state_labels=names(num_states) if named else None,
        action_labels=names(num_actions) if named else None,
    )


def look_like_integers(labels: tuple[str, ...] | None) -> bool:
    return labels is not None and all(
        label.isascii() and label.removeprefix("-").isdigit() for label in labels
    )


slow_fixture = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)


@slow_fixture
@given(mdp=models())
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_csv_gives_back_the_same_bits(same_model, tmp_path, ending, mdp):
    path = tmp_path / f"model{ending}"
    # Texts that look like integers are refused, as tested below.
    assume(not look_like_integers(mdp.state_labels))
    assume(not look_like_integers(mdp.action_labels))
    write_mdp(mdp, path)
    back = read_mdp(path, discount=mdp.discount, initial=mdp.initial)
    if mdp.reward_per_entry and not back.reward_per_entry:  # they were constant in every row
        assert np.array_equal(back.reward[back.entry_row], mdp.reward)
        return
    assert same_model(back, mdp)


json_labels = st.recursive(
    st.one_of(st.text(max_size=4), st.integers(), floats, st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=2).map(tuple),
    max_leaves=3,
)


@slow_fixture
@given(mdp=models(labels=json_labels))
def test_npz_gives_back_everything(same_model, tmp_path, mdp):
    path = tmp_path / "model.npz"
    write_mdp(mdp, path)
    back = read_mdp(path)
    assert same_model(back, mdp)
    if mdp.state_labels is not None:
        assert [type(label) for label in back.state_labels] == [type(x) for x in mdp.state_labels]


def small(**options) -> MDP:
    return MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9, **options)


def test_given_arguments_replace_stored_ones(tmp_path):
    write_mdp(small(initial=[0.0, 1.0]), tmp_path / "m.npz")
    assert read_mdp(tmp_path / "m.npz").initial.tolist() == [0.0, 1.0]
    other = read_mdp(tmp_path / "m.npz", discount=0.5, initial=[1.0, 0.0])
    assert other.discount == 0.5
    assert other.initial.tolist() == [1.0, 0.0]


def test_integer_labels_come_back_as_integers_from_csv(tmp_path, same_model):
    mdp = small(state_labels=(np.int64(100), -3), action_labels=(0,))
    write_mdp(mdp, tmp_path / "m.csv")
    assert same_model(read_mdp(tmp_path / "m.csv", discount=0.9), mdp)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("1", "2"), "all look like whole numbers"),
        ((1, "b"), "state_labels holds 1"),
        (((1, 2), (3, 4)), "state_labels holds"),
        ((True, False), "state_labels holds True"),
        (("a\0", "b"), "state_labels holds"),
        (("\ud800", "b"), "state_labels holds"),
    ],
)
def test_labels_that_csv_would_change_are_refused(tmp_path, labels, message):
    with pytest.raises(ValueError, match=message):
        write_mdp(small(state_labels=labels), tmp_path / "m.csv")
    assert not list(tmp_path.iterdir())
    write_mdp(small(state_labels=labels), tmp_path / "m.npz")
    assert read_mdp(tmp_path / "m.npz").state_labels == labels


def test_an_action_that_csv_would_lose_is_refused(tmp_path):
    p = np.array([[[1.0], [0.0]]])
    mdp = MDP.from_arrays(p, np.zeros((1, 2)), discount=0.9)
    with pytest.raises(ValueError, match="action 1 is available in no state"):
        write_mdp(mdp, tmp_path / "m.csv")


def test_labels_that_json_cannot_hold_are_refused(tmp_path):
    with pytest.raises(ValueError, match="state_labels holds frozenset"):
        write_mdp(small(state_labels=(frozenset(), "a")), tmp_path / "m.npz")


def test_csv_in_another_dress(tmp_path):
    """Other column order, other columns, a byte order mark, spaces, blank lines, Windows ends."""
    text = (
        "\ufeffReward, probability ,note,IDSTATETO,idaction,idstatefrom\r\n"
        '1,0.5,"a, b",0,0,0\r\n\r\n0, 0.5 ,,1.0,0,0\r\n0,1e0,x,1,0,1'
    )
    path = tmp_path / "odd [1]*.csv"
    path.write_bytes(text.encode())
    mdp = read_mdp(path, discount=0.9)
    assert mdp.successor.tolist() == [0, 1, 1]
    assert mdp.probability.tolist() == [0.5, 0.5, 1.0]
    assert mdp.reward.tolist() == [1.0, 0.0, 0.0]


def test_labels_of_the_target_are_not_needed(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(
        "labelstatefrom,idstatefrom,idaction,idstateto,probability,reward\n"
        '"",0,0,1,1,5\nNA,1,0,1,1,0\n'
    )
    assert read_mdp(path, discount=0.9).state_labels == ("", "NA")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is empty; it must be idstatefrom,idaction"),
        ("\n\n", "line 1 is empty"),
        (HEADER, "has a header and no lines"),
        (
            "id_state_from,idaction,idstateto,prob\n0,0,0,1\n",
            r"line 1: columns are missing: idstatefrom \(did you mean 'id_state_from'\?\), "
            r"probability .*, reward\. A model has",
        ),
        ("idstatefrom,idstatefrom," + HEADER, "line 1: there are two columns idstatefrom"),
        (
            COIN + "1,0,1,0.5,0\n",
            "line 5: state 1, action 0, successor 1 is listed already in line 4",
        ),
        (COIN + "1,1,0,nan,0\n", "line 5: probability is 'nan'; it must be a finite number"),
        (COIN + "1,1,0,1,inf\n", "line 5: reward is 'inf'; it must be a finite number"),
        (COIN + "1,1,0,1,\n", "line 5: reward is empty; it must be a finite number"),
        (COIN + "1,1,0,1,free\n", "line 5: reward is 'free'; it must be a number"),
        (COIN + "1,1,0,1\n", "line 5 has 4 fields; the header has 5"),
        (COIN + "1,1,0,1,0,0\n", "line 5 has 6 fields; the header has 5"),
        (COIN + "1,0.5,0,1,0\n", "line 5: idaction is '0.5'; it must be a whole number, 0 or"),
        (COIN + "-1,0,0,1,0\n", "line 5: idstatefrom is '-1'; it must be a whole number, 0 or"),
        (COIN + "\n1,1,7,1,0\n", "line 6: state 7 is unknown, no line starts from it"),
        (COIN + "3,0,0,1,0\n", "no line starts from state 2, yet there is a state 3"),
        (COIN + "9000000000000,0,0,1,0\n", "no line starts from state 2, yet there is"),
        (COIN + "1,9000000000000,1,1,0\n", "action id .* is too large"),
        (COIN + "1,1,0,-1,0\n", r"line 5: probability is -1; it must lie in \[0, 1\]"),
        (COIN + "1,1,0,0.7,0\n", r"m\.csv: probabilities of state 1, action 1 sum to 0\.7"),
        (COIN + '1,1,0,1,"0\n', "line 5 cannot be read"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_mdp(path, discount=0.9)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("0,0,0,1,0,a,x\n0,1,0,1,0,b,x\n", "line 3: state 0 is called 'b', but 'a' in line 2"),
        ("0,0,0,1,0,a,x\n0,1,0,1,0,,x\n", "line 3: state 0 is called '', but 'a' in line 2"),
        ("0,0,0,1,0,,x\n0,1,0,1,0,,y\n", "a label of the states is empty"),
        ("0,0,0,1,0,a,x\n0,2,0,1,0,a,y\n", "action 1 has no label because no line uses it"),
        ("0,0,0,1,0,a,x\n0,1,0,1,0,a,x\n", "action_labels holds 'x' twice"),
    ],
)
def test_bad_labels(tmp_path, lines, message):
    path = tmp_path / "m.csv"
    path.write_text(HEADER.strip() + ",labelstatefrom,labelaction\n" + lines)
    with pytest.raises(ValueError, match=message):
        read_mdp(path, discount=0.9)


def test_lines_are_counted_across_quoted_line_breaks(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("note," + HEADER + '"two\nlines",0,0,0,1,0\nx,0,1,0,1,oops\n')
    with pytest.raises(ValueError, match="line 4: reward is 'oops'"):
        read_mdp(path, discount=0.9)


def test_bytes_that_are_not_text(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(COIN.encode() + b"1,1,0,1,\xff\xfe\n")
    with pytest.raises(ValueError, match=r"m\.csv.*"):
        read_mdp(path, discount=0.9)


def test_files_that_cannot_be_models(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv: there is no such file"):
        read_mdp(tmp_path / "none.csv", discount=0.9)
    with pytest.raises(ValueError, match=r"must end in \.csv, \.csv\.gz or \.npz"):
        read_mdp(tmp_path / "model.xlsx", discount=0.9)
    with pytest.raises(ValueError, match=r"must end in"):
        write_mdp(small(), tmp_path / "model.txt")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        read_mdp(tmp_path / "folder.csv", discount=0.9)
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        write_mdp(small(), tmp_path / "nowhere" / "m.csv")
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress(COIN.encode())[:-12])
    with pytest.raises(ValueError, match=r"broken\.csv\.gz"):
        read_mdp(broken, discount=0.9)
    broken.write_bytes(b"not gzip")
    with pytest.raises(ValueError, match=r"broken\.csv\.gz cannot be read"):
        read_mdp(broken, discount=0.9)


def test_csv_needs_a_discount(tmp_path):
    (tmp_path / "m.csv").write_text(COIN)
    with pytest.raises(ValueError, match=r"holds no discount\. Pass discount="):
        read_mdp(tmp_path / "m.csv")
    with pytest.raises(ValueError, match=r"m\.csv: discount=2"):
        read_mdp(tmp_path / "m.csv", discount=2)


def rewrite(path: Path, **changes) -> None:
    """Change arrays of an npz file; None removes one."""
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays |= changes
    np.savez(path, **{name: a for name, a in arrays.items() if a is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": None}, "cannot be read as a model: it lacks reward"),
        ({"reward": np.zeros((2, 1))}, r"reward must be a list, found shape \(2, 1\)"),
        ({"reward": np.array([np.nan, 0.0])}, "is nan; rewards must be finite"),
        ({"reward": np.array(["a", "b"])}, "reward must be an array of numbers"),
        ({"reward": np.zeros(3)}, "reward has length 3; it must be 2"),
        ({"successor": np.array([0.5, 1.0, 1.0])}, "successor must hold signed integers"),
        ({"successor": np.array([0, 1, 9])}, r"successor must lie in 0\.\.1"),
        ({"successor": np.array([0, 1, 2**40])}, r"successor .* is too large"),
        ({"row_start": np.array([0, 2, 7])}, "row_start"),
        ({"initial": np.array([0.5, 0.6])}, "initial sums to 1.1"),
        ({"facts": np.frombuffer(b"{}", np.uint8)}, "its facts do not describe a model"),
        ({"facts": np.frombuffer(b"{", np.uint8)}, "cannot be read as a model"),
        (
            {"facts": np.frombuffer(b'{"format": "surefoot.mdp", "version": 2}', np.uint8)},
            "format version 2, this surefoot reads 1",
        ),
        ({"reward": np.array([{}, {}], dtype=object)}, "cannot be read as a model"),
    ],
)
def test_bad_npz(tmp_path, changes, message):
    path = tmp_path / "m.npz"
    write_mdp(small(), path)
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        read_mdp(path)
    assert str(path) in str(caught.value)


def test_files_that_are_not_npz(tmp_path):
    path = tmp_path / "m.npz"
    for content in (b"", b"no zip at all", pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as a model"):
            read_mdp(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("reward.npy", b"short")
    with pytest.raises(ValueError, match="cannot be read as a model"):
        read_mdp(path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    write_mdp(small(), path)
    before = path.read_bytes()

    def fail(*_args, **_arrays):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        write_mdp(small(), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


def test_the_same_model_gives_the_same_file(tmp_path):
    for ending in (".csv", ".csv.gz", ".npz"):
        first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
        write_mdp(small(), first)
        write_mdp(small(), second)
        assert first.read_bytes() == second.read_bytes()
