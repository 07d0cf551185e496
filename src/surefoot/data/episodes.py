"""The episodes of a log: what each earned, how it ended, and which part of the log it is in.

A log is read again, episode by episode in the order of the steps. Of an episode only its hashed
label, sums, and first and last states are kept; a sample of whole episodes is kept, as numbers, for
the memory check.

An episode's *bucket* is ``h % 16`` where ``h`` is the number given by the first 16 hexadecimal
digits of ``md5("SEED:LABEL")``. It depends on the seed and the label only, never on the order of
rows, so that an episode that continues in a later log keeps its bucket on every machine.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from surefoot.data.buckets import NUM_BUCKETS, gather
from surefoot.data.columns import Layout, as_names, choose, next_names
from surefoot.data.count_queries import names
from surefoot.data.counts import Counts
from surefoot.data.episode_kernels import follow
from surefoot.data.followed_episodes import Episodes, Paths
from surefoot.data.found_sources import find
from surefoot.data.layouts import lay_out
from surefoot.data.log_format import LogFormat
from surefoot.data.log_halves import counted_moves
from surefoot.data.merge import TERMINAL_LABEL
from surefoot.data.returns import Begun
from surefoot.data.sources import Connection, session
from surefoot.data.tables import StepColumns, family

ROWS_AT_ONCE = 4_000_000
"""Longer logs are followed in parts of about this many rows, each of whole episodes."""

Floats = NDArray[np.float64]


def identity_of(seed: int, label: Any) -> int:
    """Return the hashed label of an episode, the same on every platform.

    Examples
    --------
    >>> identity_of(0, "patient 7") % 16
    14
    >>> identity_of(0, 12) == identity_of(0, "12")
    True
    """
    text = hashlib.md5(f"{seed}:{label}".encode(), usedforsecurity=False).hexdigest()
    return int(text[:16], 16)


def read_episodes(
    source: Any,
    counts: Counts,
    *,
    discount: float,
    seed: int = 0,
    state: Any = "state",
    action: Any = "action",
    next_state: Any = "next_state",
    reward: str | None = "reward",
    episode: str | None = None,
    step: str | None = None,
    terminal: str | None = None,
    missing: str = "error",
    whole: bool = True,
    horizon: int | None = None,
    begun: Begun | None = None,
    **how: Any,
) -> Episodes:
    """Follow the episodes of a log that has been counted.

    Parameters
    ----------
    source
        The log that the counts were read from, as :func:`read_transitions` takes it.
    counts
        What :func:`read_transitions` returned for it.
    discount
        In [0, 1].
    seed
        Hashed together with each label, to put episodes into buckets.
    state, action, next_state, reward, episode, step, terminal, missing
        As in :func:`read_transitions`. Where rewards were given, they are taken from the counts.
    whole
        Whether the log is all that was counted; False where other logs were added to the counts.
    horizon
        Count at most this many steps of each episode; None means all.
    begun
        Episodes of an earlier log that this one continues; their returns are added to.
    how
        How the log is written, as in :func:`read_transitions`: ``decimal``, ``encoding``, ...

    Examples
    --------
    >>> from surefoot.data.transitions import read_transitions
    >>> log = {"episode": [1, 1, 2], "step": [0, 1, 0], "state": ["a", "b", "a"],
    ...        "action": [0, 0, 1], "reward": [1.0, 4.0, 0.0], "next_state": ["b", "z", "b"],
    ...        "terminal": [False, True, False]}
    >>> roles = {"episode": "episode", "step": "step", "terminal": "terminal"}
    >>> episodes = read_episodes(log, read_transitions(log, **roles), discount=0.5, **roles)
    >>> sorted(zip(episodes.earned.tolist(), episodes.steps.tolist(), episodes.ended.tolist()))
    [(0.0, 1, False), (3.0, 2, True)]
    """
    if not 0 <= discount <= 1:
        raise ValueError(f"discount={discount}; it must lie in [0, 1].")
    if isinstance(source, StepColumns):
        episode, step, terminal = (
            role if given is None and role in source else given
            for role, given in zip(source.ROLES, (episode, step, terminal), strict=True)
        )
    if episode is None or step is None:
        raise ValueError(
            "episodes are told apart by episode= and put in order by step=: pass both."
        )
    wanted = {*as_names("state", state), *as_names("action", action), episode, step}
    wanted |= {*(next_names(state, next_state) or ())}
    wanted |= {name for name in (reward, terminal) if name is not None}
    log_format = LogFormat.of(**how)
    if counts.log is not None:
        log_format = replace(log_format, bins=counts.log.bins)  # the edges that were counted with
    with session() as connection:
        found = find(connection, source, wanted, log_format)
        columns = choose(
            list(found.types), found.name, state=state, action=action, next_state=next_state,
            reward=reward, episode=episode, step=step, terminal=terminal, count=None,
        )  # fmt: skip
        layout = lay_out(connection, found, columns, log_format)
        return follow_episodes(
            connection, layout, counts, discount=discount, seed=seed,
            drop_missing=missing == "drop", whole=whole, horizon=horizon, begun=begun,
        )  # fmt: skip


def follow_episodes(
    connection: Connection, layout: Layout, counts: Counts, *,
    discount: float, seed: int, drop_missing: bool, whole: bool = True,
    horizon: int | None = None, begun: Begun | None = None,
) -> Episodes:  # fmt: skip
    """Follow the episodes of an open log: one pass in the order of episodes and steps."""
    parts: list[dict[str, Any]] = []
    sample: Paths | None = None
    for steps in _ordered_steps(connection, layout, counts, seed, drop_missing):
        identity, begin = np.unique(steps["id"], return_index=True)
        start = np.append(begin, len(steps["id"])).astype(np.int64)
        moves = _as_entries(steps, counts)
        known, fields = _before(identity, steps["opens"][begin], steps["s"][begin], begun)
        closed, last = fields.pop("closed"), np.zeros(len(begin), dtype=np.int64)
        goes_on = np.append(steps["after"][:-1] == steps["here"][1:], False)
        goes_on |= not _looks_ahead(layout, drop_missing)
        follow(
            start, steps["s"], steps["t"], steps["z"], goes_on, moves["reward"], discount,
            horizon or 0, closed, fields["earned"], fields["steps"], fields["ended"], last,
        )  # fmt: skip
        bucket = (identity % np.uint64(NUM_BUCKETS)).astype(np.int64)
        moved = last >= 0
        entry, stands = moves["entry"][last], steps["after" if layout.derived else "here"][last]
        fields["reached"] = np.where(moved, counts.successor[entry], fields["reached"])
        fields["until"] = np.where(moved, stands, fields["until"])
        parts.append(
            {
                "identity": identity, **fields, "starts": ~known & steps["opens"][begin],
                "counts": gather(
                    moves["entry"], np.repeat(bucket, np.diff(start)), moves["reward"]
                ),
            }
        )  # fmt: skip
        if sample is None:
            sample = Paths(start=start, entry=moves["entry"], reward=moves["reward"], bucket=bucket)
    total = sum(int(part["counts"].count.sum()) for part in parts)
    if sample is None and not whole:  # no episode has a transition
        return _no_episodes(counts, discount, seed)
    if sample is None or (whole and total != counts.count.sum()):
        _refuse_foreign()
    return replace(_together(parts, sample, counts, discount, seed), horizon=horizon)


def _before(
    identity: NDArray[np.uint64], opens: NDArray[np.bool_], first: NDArray[np.int64],
    begun: Begun | None,
) -> tuple[NDArray[np.bool_], dict[str, Any]]:  # fmt: skip
    """Return which episodes had begun before the log, and what was known before its first row.

    An episode whose first row was not counted is closed: its return from the first state is
    unknown.
    """
    size = len(identity)
    fields: dict[str, Any] = {
        "earned": np.zeros(size), "steps": np.zeros(size, dtype=np.int64),
        "ended": np.zeros(size, dtype=np.bool_), "first": first, "reached": first,
        "until": np.full(size, np.nan), "closed": ~opens,
    }  # fmt: skip
    if begun is None:
        return np.zeros(size, dtype=np.bool_), fields
    known, place = begun.among(identity)
    if known.any():
        for name in ("earned", "steps", "ended", "reached", "until"):
            fields[name] = np.where(known, getattr(begun.returns, name)[place], fields[name])
        fields["closed"] = ~opens | (known & begun.closed[place])
    return known, fields


def _no_episodes(counts: Counts, discount: float, seed: int) -> Episodes:
    whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
    starts = np.zeros((NUM_BUCKETS, counts.num_states), dtype=np.int64)
    return Episodes(
        discount=discount, seed=seed, identity=np.zeros(0, dtype=np.uint64), earned=real,
        steps=whole, ended=np.zeros(0, dtype=np.bool_), first=whole, reached=whole, until=real,
        parts=gather(whole, whole, real).with_starts(starts),
        paths=Paths(start=np.zeros(1, np.int64), entry=whole, reward=real, bucket=whole),
    )  # fmt: skip


def _together(
    parts: list[dict[str, Any]], sample: Paths, counts: Counts, discount: float, seed: int
) -> Episodes:
    per_bucket = parts[0]["counts"]
    for part in parts[1:]:
        per_bucket = per_bucket + part["counts"]
    identity = np.concatenate([part["identity"] for part in parts])
    order = np.argsort(identity)
    fields: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts])[order]
        for name in ("earned", "steps", "ended", "first", "reached", "until", "starts")
    }
    starts = np.zeros((NUM_BUCKETS, counts.num_states), dtype=np.int64)
    bucket = (identity[order] % np.uint64(NUM_BUCKETS)).astype(np.int64)
    began = fields.pop("starts")
    np.add.at(starts, (bucket[began], fields["first"][began]), 1)
    return Episodes(
        discount=discount, seed=seed, identity=identity[order], **fields,
        parts=per_bucket.with_starts(starts), paths=sample,
    )  # fmt: skip


def _ordered_steps(
    connection: Connection, layout: Layout, counts: Counts, seed: int, drop_missing: bool
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the steps in order of episode and step, some whole episodes at a time."""
    _register_labels(connection, layout, counts)
    query = _numbered_steps(layout, seed, drop_missing)
    total = float(counts.count.sum())
    shares = max(1, int(np.ceil(total / ROWS_AT_ONCE)))
    table = f"({query})"
    if shares > 1:  # the log is parsed once, whatever the number of parts
        connection.execute(f"CREATE OR REPLACE TEMP TABLE steps AS {query}")
        table = "steps"
    for share in range(shares):
        where = f" WHERE (id // {NUM_BUCKETS}) % {shares} = {share}" if shares > 1 else ""
        found = connection.execute(
            f"SELECT * EXCLUDE (k) FROM {table}{where} ORDER BY id, k"
        ).fetchnumpy()
        if len(found["id"]):
            yield {name: np.ascontiguousarray(np.ma.getdata(x)) for name, x in found.items()}


def hashed_label(layout: Layout, seed: int) -> str:
    """Return the SQL of an episode's hashed label."""
    episode = layout.columns.episode
    spelled = "e"
    if episode is not None and family(layout.types[episode]) == "float":
        # Whole numbers in a column with missing values arrive as decimals: 7.0 and 7 are one label.
        spelled = "CASE WHEN e = floor(e) THEN e::BIGINT::VARCHAR ELSE e::VARCHAR END"
    digits = f"substr(md5('{int(seed)}:' || ({spelled})::VARCHAR), 1, 16)"
    return f"('0x' || {digits})::UBIGINT"


def _numbered_steps(layout: Layout, seed: int, drop_missing: bool) -> str:
    """Return the SQL of the counted steps: id (of the episode), k, s, a, t, z and r.

    It also has the row's own step (here) and that of the episode's next row (after) as numbers, and
    whether the row is the first (opens).
    """
    following = _looks_ahead(layout, drop_missing)
    here, after = (
        f"m.{name}::DOUBLE" if layout.steps_are_numbers else f"epoch_us(m.{name})::DOUBLE"
        for name in ("k", "after" if following else "k")
    )
    reward = "m.r::DOUBLE" if layout.columns.reward is not None else "0::DOUBLE"
    joins = "".join(
        f" {kind} {table}_names AS {letter} ON "
        + " AND ".join(f"{_text(layout, letter, i)} = {letter}.k{i}" for i in range(size))
        for letter, table, kind, size in (
            ("s", "state", "JOIN", len(layout.state_kinds)),
            ("a", "action", "JOIN", len(layout.action_kinds)),
            ("t", "state", "LEFT JOIN", len(layout.state_kinds)),
        )
    )
    rows = counted_moves(layout, drop_missing, rows=False, following=following)
    return (
        f"SELECT {hashed_label(layout, seed)} AS id, m.k, s.id AS s, a.id AS a, "
        f"coalesce(t.id, -1)::BIGINT AS t, m.z, {reward} AS r, "
        f"{here} AS here, coalesce({after}, 'nan') AS after, "
        f"{'m.opens' if following else 'true'} AS opens "
        f"FROM ({rows}) AS m{joins}"
    )


def _looks_ahead(layout: Layout, drop_missing: bool) -> bool:
    """Tell whether the next counted row may be another than the next row of the episode."""
    return layout.derived or drop_missing


def _text(layout: Layout, letter: str, i: int) -> str:
    """Return the SQL of one component of a label, spelled as the counts spell it."""
    kinds = layout.action_kinds if letter == "a" else layout.state_kinds
    whole = "::BIGINT" if kinds[i] == "float" else ""
    return f"m.{names(layout, letter)[i]}{whole}::VARCHAR"


def _register_labels(connection: Connection, layout: Layout, counts: Counts) -> None:
    """Make the tables ``state_names`` and ``action_names``: label and id."""
    for what, labels, size in (
        ("state", counts.state_labels, len(layout.state_kinds)),
        ("action", counts.action_labels, len(layout.action_kinds)),
    ):
        # The extra terminal state has a single part, however many parts the states have.
        named: list[tuple[Any, int]] = [
            (label if size > 1 else (label,), i)
            for i, label in enumerate(labels or ())
            if size == 1 or isinstance(label, tuple)
        ]
        table: dict[str, Any] = {
            f"k{j}": np.array([str(label[j]) for label, _ in named], dtype=np.object_)
            for j in range(size)
        }
        ids = np.array([i for _, i in named], dtype=np.int64)
        connection.register(f"{what}_names", table | {"id": ids})


def _as_entries(steps: dict[str, NDArray[Any]], counts: Counts) -> dict[str, Any]:
    """Return the entry and reward of each step; unnamed ends go to the extra terminal state."""
    ended = steps["z"].astype(np.bool_)
    steps["z"] = ended
    nameless = ended & ~(counts.is_terminal[steps["t"]] & (steps["t"] >= 0))
    successor = np.where(nameless, nameless_end(counts), steps["t"])
    size, actions = counts.num_states, counts.num_actions
    keys = (counts.entry_state * actions + counts.entry_action) * size + counts.successor
    wanted = (steps["s"] * actions + steps["a"]) * size + successor
    entry = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    if not np.array_equal(keys[entry], wanted):
        _refuse_foreign()
    reward = steps["r"]
    if counts.given is not None and counts.reward_mean is not None:
        reward = counts.reward_mean[entry]
    return {"entry": entry, "reward": np.ascontiguousarray(reward, dtype=np.float64)}


def nameless_end(counts: Counts) -> int:
    """Return the extra terminal state, where unnamed ends go: the last, unless logs were added."""
    labels = counts.state_labels or ()
    ours = [
        i
        for i in np.flatnonzero(counts.is_terminal[: len(labels)])
        if str(labels[i]).rstrip("*") == TERMINAL_LABEL
    ]
    return int(max(ours, key=lambda i: len(str(labels[i])), default=counts.num_states - 1))


def _refuse_foreign() -> NoReturn:
    raise ValueError(
        "the log holds transitions that were not counted, or lacks some that were. Read episodes "
        "from the log, and with the columns, that the counts were read from."
    )
