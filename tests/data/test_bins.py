"""Measurements in bins: edges, quantiles, names, and columns that look like measurements."""

import numpy as np
import pytest

from surefoot import read_transitions
from surefoot.data.bins import as_binning


def table(size=500, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(18, 90, size), "next_age": rng.uniform(18, 90, size),
        "action": rng.choice(["x", "y"], size), "reward": rng.random(size),
    }  # fmt: skip


ROLES = {"state": ["age"]}


@pytest.mark.parametrize("kind", ["memory", "csv", "comma"])
def test_bins_agree_with_their_edges(tmp_path, kind):
    log = table()
    source = log
    if kind != "memory":
        mark, between = (".", ",") if kind == "csv" else (",", ";")
        lines = [between.join(log)]
        lines += [
            between.join(str(value).replace(".", mark) for value in row)
            for row in zip(*log.values(), strict=True)
        ]
        source = tmp_path / "log.csv"
        source.write_text("\n".join(lines) + "\n")
    counts = read_transitions(source, bins="age=40,65", **ROLES)
    assert counts.state_labels == ("age 40-65", "age 65 or more", "age below 40")
    (binning,) = counts.log.bins
    wanted = {}
    for age, action, after in zip(log["age"], log["action"], log["next_age"], strict=True):
        key = (binning.label(age), str(action), binning.label(after))
        wanted[key] = wanted.get(key, 0) + 1
    found = {
        (counts.state_labels[s], counts.action_labels[a], counts.state_labels[t]): n
        for s, a, t, n in zip(
            counts.entry_state, counts.entry_action, counts.successor, counts.count, strict=True
        )
    }
    assert found == wanted


def test_quantiles_have_about_as_many_rows_each():
    counts = read_transitions(table(), bins="age=4", **ROLES)
    (binning,) = counts.log.bins
    assert len(binning.edges) == 3
    assert all(edge.is_integer() for edge in binning.edges)
    ages = table()["age"]
    sizes = np.bincount(np.searchsorted(binning.edges, ages, side="right"), minlength=4)
    assert sizes.min() > 0.8 * len(ages) / 4


def test_bins_survive_saving(tmp_path):
    counts = read_transitions(table(), bins=["age=40,65"], **ROLES)
    counts.save(tmp_path / "counts.npz")
    again = type(counts).load(tmp_path / "counts.npz")
    assert again.log.bins == counts.log.bins


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ("t=-5,5", ("t below -5", "t -5 to 5", "t 5 or more")),
        ("bmi=18.5,25,30", ("bmi below 18.5", "bmi 18.5-25", "bmi 25-30", "bmi 30 or more")),
        ("x=65,", ("x below 65", "x 65 or more")),
        ("a=b=1,2", ("a=b below 1", "a=b 1-2", "a=b 2 or more")),
    ],
)
def test_names_are_readable(edges, labels):
    assert as_binning(edges).labels == labels


@pytest.mark.parametrize("asked", ["age", "age=", "age=x", "age=1", "age=2.5", "age=3,2", "=4"])
def test_wrong_bins_are_refused(asked):
    with pytest.raises(ValueError, match="bins="):
        as_binning(asked)


def test_only_columns_of_states_and_actions_are_binned():
    with pytest.raises(ValueError, match="'reward' is not a column of states or actions"):
        read_transitions(table(), bins="reward=3", **ROLES)
    log = table() | {"age": np.array(["old"] * 500, dtype=object)}
    with pytest.raises(ValueError, match="only numbers are cut into bins"):
        read_transitions(log, bins="age=3", **ROLES)
    with pytest.raises(ValueError, match="bins='age=4'"):
        read_transitions(table(), **ROLES)


def test_measurements_are_noticed(tmp_path):
    path = tmp_path / "log.csv"
    log = table(100)
    lines = ["state,action,reward,next_state"]
    lines += [f"{a:.1f},x,1,{b:.1f}" for a, b in zip(log["age"], log["next_age"], strict=True)]
    path.write_text("\n".join(lines) + "\n")
    counts = read_transitions(path)
    (found,) = [one for one in counts.findings if one.code == "looks_continuous"]
    assert found.values["column"] == "state"
    assert "bins='state=4'" in found.text
    grid = {
        "state": np.arange(1000) % 20,
        "action": ["x"] * 1000,
        "next_state": (np.arange(1000) + 1) % 20,
    }
    assert not read_transitions(grid, reward=None).log.findings
