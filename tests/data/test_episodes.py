"""Episodes of a log, followed in order, and its sixteen parts."""

import datetime
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot.data import episodes as module
from surefoot.data.buckets import NUM_BUCKETS, deal, part
from surefoot.data.counts import Counts
from surefoot.data.episodes import identity_of, read_episodes
from surefoot.data.followed_episodes import Episodes
from surefoot.data.transitions import read_transitions

ROLES = {"episode": "episode", "step": "step", "terminal": "terminal"}


def random_log(rng: np.random.Generator, size: int = 60) -> dict[str, Any]:
    """Walks over five states; some end, some are cut."""
    rows = []
    for episode in range(size):
        state = int(rng.integers(4))
        for step in range(int(rng.integers(1, 9))):
            action, after = int(rng.integers(2)), int(rng.integers(5))
            reward = float(rng.normal()) if action else float(after)
            rows.append(
                (f"p{episode}", step + 3, f"s{state}", action, reward, f"s{after}", after == 4)
            )
            if after == 4:
                break
            state = after
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminal")
    return {n: np.array(column) for n, column in zip(names, zip(*rows, strict=True), strict=True)}


def followed(source: Any, log: Any = None, **more: Any) -> tuple[Counts, Episodes]:
    roles = ROLES | more
    discount, seed = roles.pop("discount", 0.9), roles.pop("seed", 5)
    counts = read_transitions(source, **roles)
    return counts, read_episodes(source, counts, discount=discount, seed=seed, **roles)


def by_hand(log: dict[str, Any], seed: int) -> dict[int, tuple[float, int, bool, str]]:
    found = {}
    for label in np.unique(log["episode"]):
        here = np.flatnonzero(log["episode"] == label)
        here = here[np.argsort(log["step"][here])]
        earned = sum(0.9**t * log["reward"][i] for t, i in enumerate(here))
        digest = hashlib.md5(f"{seed}:{label}".encode()).hexdigest()
        found[int(digest[:16], 16)] = (
            earned, len(here), bool(log["terminal"][here[-1]]), str(log["state"][here[0]])
        )  # fmt: skip
    return found


def as_table(counts: Counts, episodes: Episodes) -> dict[int, tuple[float, int, bool, Any]]:
    return {
        int(i): (float(x), int(n), bool(end), counts.state_labels[s])
        for i, x, n, end, s in zip(
            episodes.identity, episodes.earned, episodes.steps, episodes.ended, episodes.first,
            strict=True,
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["memory", "csv", "parquet", "following rows", "shuffled", "parts"]
)
def test_episodes_against_a_loop(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = random_log(np.random.default_rng(1))
    source: Any = log
    if kind == "csv":
        source = tmp_path / "log.csv"
        pl.DataFrame(log).write_csv(source)
    if kind == "parquet":
        source = tmp_path / "log.parquet"
        pl.DataFrame(log).write_parquet(source)
    if kind == "shuffled":
        order = np.random.default_rng(2).permutation(len(log["step"]))
        source = {name: column[order] for name, column in log.items()}
    if kind == "parts":
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 40)
    if kind == "following rows":  # a cut episode then loses its last step, which leads nowhere
        source = {name: column for name, column in log.items() if name != "next_state"}
        last = np.append(log["episode"][1:] != log["episode"][:-1], True) & ~log["terminal"]
        log = {name: column[~last] for name, column in log.items()}
    counts, episodes = followed(source)
    found, wanted = as_table(counts, episodes), by_hand(log, 5)
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        assert found[key] == (pytest.approx(row[0]), *row[1:])
    whole = part(counts, episodes.parts, range(NUM_BUCKETS))
    assert np.array_equal(whole.count, counts.count)
    np.testing.assert_allclose(whole.reward_mean, counts.reward_mean)
    np.testing.assert_allclose(whole.reward_var, counts.reward_var, atol=1e-12)
    assert np.all(np.diff(episodes.identity.astype(object)) > 0)


def test_a_part_is_the_log_of_its_episodes() -> None:
    log = random_log(np.random.default_rng(3))
    counts, episodes = followed(log)
    half = (0, 2, 5, 7, 8, 9, 12, 15)
    chosen = [identity_of(5, label) % NUM_BUCKETS in half for label in log["episode"]]
    alone = read_transitions({name: column[chosen] for name, column in log.items()}, **ROLES)
    got = part(counts, episodes.parts, half)
    assert got.count.sum() == alone.count.sum()

    def table(c: Counts) -> dict[Any, Any]:
        names = (c.state_labels, c.action_labels)
        keys = zip(c.entry_state, c.entry_action, c.successor, strict=True)
        return {
            (names[0][s], names[1][a], names[0][t]): (int(n), pytest.approx(float(r)))
            for (s, a, t), n, r in zip(keys, c.count, c.reward_mean, strict=True)
        }  # fmt: skip

    assert table(got) == table(alone)
    starts = dict(zip(got.state_labels, got.starts, strict=True))
    assert all(starts[s] == n for s, n in zip(alone.state_labels, alone.starts, strict=True))


def test_a_gap_cuts_an_episode() -> None:
    log = {
        "episode": [7, 7, 7], "step": [0, 1, 5], "state": ["a", "b", "d"], "action": [0, 0, 0],
        "reward": [1.0, 1.0, 1.0], "next_state": ["b", "c", "a"], "terminal": [0, 0, 1],
    }  # fmt: skip
    _, episodes = followed(log)
    assert (episodes.earned[0], episodes.steps[0], episodes.ended[0]) == (1.9, 2, False)
    assert episodes.time_limit == 2


def test_states_of_several_columns_and_ends_without_a_state() -> None:
    log = {
        "episode": [1, 1, 2], "step": [0, 1, 0], "x": [0, 1, 0], "y": ["a", "b", "a"],
        "action": [0, 0, 0], "reward": [1.0, 2.0, 4.0], "next_x": [1, None, 1],
        "next_y": ["b", None, "b"], "terminal": [False, True, False],
    }  # fmt: skip
    counts, episodes = followed(pl.DataFrame(log), state=("x", "y"))
    assert sorted(zip(episodes.earned, episodes.ended, strict=True)) == [(2.8, True), (4.0, False)]
    assert [counts.state_labels[s] for s in episodes.first] == [(0, "a"), (0, "a")]
    assert np.array_equal(part(counts, episodes.parts, range(16)).count, counts.count)


def test_given_rewards_are_used() -> None:
    log = random_log(np.random.default_rng(4))
    counts = read_transitions(log, **ROLES | {"reward": lambda s, a, t: 1.0})
    episodes = read_episodes(log, counts, discount=1.0, **ROLES | {"reward": None})
    assert np.array_equal(episodes.earned, episodes.steps)


def test_whole_numbers_hash_as_they_are_written() -> None:
    log = random_log(np.random.default_rng(5))
    log["episode"] = np.array([int(label[1:]) for label in log["episode"]])
    as_floats = log | {"episode": log["episode"].astype(float)}
    as_text = log | {"episode": log["episode"].astype(str)}
    found = [followed(source)[1].identity.tolist() for source in (log, as_floats, as_text)]
    assert found[0] == found[1] == found[2] == sorted(
        identity_of(5, i) for i in np.unique(log["episode"])
    )  # fmt: skip


def test_columns_are_asked_for_and_foreign_logs_refused() -> None:
    log = random_log(np.random.default_rng(6))
    counts = read_transitions(log, **ROLES)
    with pytest.raises(ValueError, match="pass both"):
        read_episodes(log, counts, discount=0.9)
    with pytest.raises(ValueError, match="discount"):
        read_episodes(log, counts, discount=1.5, **ROLES)
    few = {name: column[:5] for name, column in log.items()}
    with pytest.raises(ValueError, match="not counted"):
        read_episodes(log, read_transitions(few, **ROLES), discount=0.9, **ROLES)
    with pytest.raises(ValueError, match="lacks some"):
        read_episodes(few, counts, discount=0.9, **ROLES)


def test_dealt_rewards_are_as_lucky_as_those_of_real_parts():
    """Means of parts scatter by the variance over their size, and add up to the whole."""
    rng = np.random.default_rng(0)
    reward = rng.normal(5.0, 2.0, size=1600)
    table = {"state": ["s"] * 1600, "action": ["a"] * 1600, "next_state": ["t"] * 1600}
    counts = read_transitions({**table, "reward": reward})
    dealt = [deal(counts, seed) for seed in range(40)]
    for parts in dealt:
        whole = (parts.count * parts.reward_mean).sum() / parts.count.sum()
        assert whole == pytest.approx(reward.mean(), abs=1e-9)
    spread = np.std([parts.reward_mean - reward.mean() for parts in dealt])
    assert spread == pytest.approx(2.0 / 10 * np.sqrt(15 / 16), rel=0.15)


def test_dealing_is_keyed_even_and_exact() -> None:
    counts = Counts.from_arrays([[[31, 7], [4, 0]], [[0, 22], [1, 1]]], rewards=np.ones((2, 2)))
    parts = deal(counts, seed=3)
    assert np.array_equal(deal(counts, seed=3).count, parts.count)
    assert np.array_equal(part(counts, parts, range(16)).count, counts.count)
    sizes = np.bincount(parts.bucket, parts.count, NUM_BUCKETS)
    assert sizes.min() >= 4
    assert sizes.max() <= 5
    share = np.mean([part(counts, deal(counts, i), range(8)).visits[0] for i in range(200)]) / 38
    assert abs(share - 0.5) < 0.02
    assert np.all(part(counts, parts, range(8)).reward_mean == 1.0)


@pytest.mark.parametrize("gap", ["dates", "dropped gap", "dropped row", "dropped, named"])
def test_returns_stop_where_a_row_is_missing_even_if_the_states_fit(gap: str) -> None:
    """What stands before the hole leads to the state after it, by chance."""
    size = 24
    log: dict[str, Any] = {
        "episode": [1] * size, "step": list(range(size)), "state": ["a"] * size,
        "action": [0] * size, "reward": [1.0] * size,
    }  # fmt: skip
    roles: dict[str, Any] = {"terminal": None, "discount": 1.0, "missing": "drop"}
    log["state"][-1] = "b"
    hole = 9
    if gap in ("dates", "dropped gap"):
        log = {name: column[:hole] + column[hole + 1 :] for name, column in log.items()}
    if gap == "dates":
        first = datetime.date(2026, 1, 5)
        log["step"] = [first + datetime.timedelta(weeks=week) for week in log["step"]]
        roles["missing"] = "error"
    if gap == "dropped row":
        log["reward"][hole] = None
    if gap == "dropped, named":
        log["reward"][hole] = None
        log["next_state"] = log["state"]
    counts, episodes = followed(pl.DataFrame(log), **roles)
    steps = {"dates": 8, "dropped gap": 8, "dropped row": 9, "dropped, named": 9}[gap]
    assert (episodes.earned[0], episodes.steps[0], episodes.ended[0]) == (steps, steps, False)
    assert counts.count.sum() == {"dates": 21, "dropped gap": 21, "dropped row": 22}.get(gap, 23)


def test_an_episode_whose_first_row_is_not_counted_has_no_return() -> None:
    log = {
        "episode": [1, 1, 1, 2, 2, 2], "step": [0, 5, 6, 0, 1, 2], "state": list("aababa"),
        "action": [0] * 6, "reward": [1.0] * 6,
    }  # fmt: skip
    counts, episodes = followed(pl.DataFrame(log), terminal=None, missing="drop", discount=1.0)
    found = as_table(counts, episodes)
    assert found[identity_of(5, 1)][:3] == (0.0, 0, False)
    assert found[identity_of(5, 2)][:3] == (2.0, 2, False)
    assert episodes.parts.starts.sum() == 1  # the other's first state is not in the log of moves
