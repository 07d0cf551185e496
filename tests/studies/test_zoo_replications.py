"""Claims held against the truth, counted, resumed and judged."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from surefoot.studies.zoo import methods, replications
from surefoot.studies.zoo.catalogue import DEVELOPMENT, TEST, make_world
from surefoot.studies.zoo.cells import CELLS, Cell, find_cells, make_log
from surefoot.studies.zoo.claims import Claim, Sentence, facts_of, judge
from surefoot.studies.zoo.code_version import code_version, source_hash
from surefoot.studies.zoo.logs import greedy_shares, random_shares, trajectories
from surefoot.studies.zoo.replications import (
    Job,
    Record,
    count,
    jobs_of,
    other_files,
    play,
    read_records,
    records_file,
)
from surefoot.studies.zoo.table import SURE, Line, holm, markdown, tabulate
from surefoot.studies.zoo.truth import Choice, earned, earned_in, optimum

WORLD = make_world("survival")
LOG = trajectories(WORLD, greedy_shares(WORLD, 0.2), 30, np.random.default_rng(0))
BEST = Choice(
    states=WORLD.labels, actions=WORLD.actions, policy=greedy_shares(WORLD, 0.0)
)  # fmt: skip


def claim(value, **more):
    return Claim(**{"kind": "promise", "value": value, "delta": 0.05, "subject": BEST} | more)


def test_a_promise_is_broken_when_the_policy_earns_less():
    best = optimum(WORLD)
    told = judge(claim(best - 0.01), WORLD, LOG)
    assert told.truth == pytest.approx(best)
    assert (told.broken, told.open_share, told.level) == (False, 0.0, 0.05)
    assert judge(claim(best + 0.01), WORLD, LOG).broken
    assert not judge(claim(best), WORLD, LOG).broken
    assert judge(claim(np.nan), WORLD, LOG).broken


def test_an_upper_bound_is_broken_when_the_policy_earns_more():
    best = optimum(WORLD)
    assert judge(claim(best - 0.01, at_most=True, level=0.95), WORLD, LOG).broken
    assert not judge(claim(best + 0.01, at_most=True), WORLD, LOG).broken
    done = judge(claim(0.0, subject="behaviour", at_most=True), WORLD, LOG)
    assert done.truth == pytest.approx(earned(WORLD, greedy_shares(WORLD, 0.2)).total)


@pytest.mark.parametrize("steps", [None, 5])
def test_a_gain_is_a_difference_of_returns(steps):
    told = judge(claim(0.0, kind="gain", against="behaviour", steps=steps), WORLD, LOG)
    both = [greedy_shares(WORLD, epsilon) for epsilon in (0.0, 0.2)]
    one, other = (
        earned(WORLD, shares).total if steps is None else earned_in(WORLD, shares, steps)
        for shares in both
    )
    assert told.truth == pytest.approx(one - other)
    uniform = Choice(states=WORLD.labels, actions=WORLD.actions, policy=random_shares(WORLD))
    told = judge(claim(0.0, kind="difference", against=uniform), WORLD, LOG)
    assert told.truth == pytest.approx(optimum(WORLD) - earned(WORLD, random_shares(WORLD)).total)


def test_a_withheld_sentence_is_not_broken():
    told = judge(claim(None), WORLD, LOG)
    assert told.claimed is None
    assert not told.broken


def test_only_what_was_declared_is_known():
    facts = facts_of(WORLD, LOG)
    assert facts.initial is None
    assert facts.reward_range is None
    assert facts.support is None
    strata = make_world("survival-strata")
    (cell,) = find_cells(None, ["survival-strata"])
    tried = make_log(Cell(name="x", world=cell.world, behaviour="tries", size=1), strata,
                     np.random.default_rng(0))  # fmt: skip
    facts = facts_of(strata, tried, declared=("range", "support"))
    assert facts.initial["severity 3"] == pytest.approx(0.25)
    assert sum(facts.initial.values()) == pytest.approx(1.0)
    assert facts.reward_range == pytest.approx((-0.01, 1.0))
    assert "dead" not in facts.support["state"]
    with pytest.raises(ValueError, match="choose from 'range' and 'support'"):
        facts_of(WORLD, LOG, declared=("rang",))


def test_there_are_enough_cells_in_each_half():
    assert len(find_cells(DEVELOPMENT)) >= 16
    assert len(find_cells(TEST)) >= 24
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    with pytest.raises(ValueError, match="did you mean 'machine-tries'"):
        find_cells(TEST, ["machine-trie"])
    with pytest.raises(ValueError, match="always the same world"):
        Cell(name="x", world="machine", behaviour="tries", size=1, fresh=True)


class Fake:
    """A method that is false as often as it is told to be."""

    def __init__(self, rate, withheld=0.0):
        self.rate, self.withheld, self.calls = rate, withheld, 0

    def __call__(self, columns, facts, deltas, rng):
        self.calls += 1
        subject = Choice(states=(), actions=(), policy=np.zeros((0, 0)))
        claims = []
        for delta in deltas:
            false, silent = rng.random(2) < (self.rate, self.withheld)
            value = None if silent else 10.0 if false else -10.0
            claims.append(Claim(kind="promise", value=value, delta=delta, subject=subject))
        return claims


@pytest.fixture
def fake(monkeypatch):
    def put(rate, **more):
        made = Fake(rate, **more)
        monkeypatch.setitem(methods.METHODS, "fake", made)
        return made

    return put


JOBS = jobs_of(find_cells(None, ["survival-greedy"]), ["fake"], 60, seed=0)


def test_counting_resumes_where_it_was_interrupted(tmp_path, fake):
    method = fake(0.5)
    whole = count(JOBS[:6], tmp_path)
    assert method.calls == 6
    file = records_file(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    assert [r.job for r in read_records(tmp_path)] == JOBS[:5]
    again = count(JOBS[:8], tmp_path)
    assert method.calls == 6 + 3
    assert [r.sentences for r in again[:6]] == [r.sentences for r in whole]
    assert {r.job for r in read_records(tmp_path)} == set(JOBS[:8])


def test_records_survive_the_file():
    record = Record(
        job=Job("lake4-tries", 3, "0.1", 0), code="1a2b", optimum=1.5, behaviour=-np.inf,
        seconds=0.1,
        sentences=(judge(claim(None), WORLD, LOG), judge(claim(0.1), WORLD, LOG)),
    )  # fmt: skip
    assert Record.from_json(record.to_json()) == record


def test_processes_find_the_same(tmp_path):
    jobs = jobs_of(find_cells(None, ["lake4-tries"]), ["frequentist"], 2, seed=5)
    alone = count(jobs, tmp_path / "alone")
    together = count(jobs, tmp_path / "together", processes=2)
    assert [r.sentences for r in alone] == [r.sentences for r in together]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="looks for processes in /proc")
def test_workers_end_with_a_count_that_was_killed(tmp_path):
    words = ["coverage", "--cells", "lake4-tries", "--replications", "400", "--processes", "2"]
    command = [sys.executable, "-m", "surefoot", *words, "--out", str(tmp_path / "counted")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        workers = _wait_for(lambda: found if len(found := _children(driver.pid)) >= 2 else None)
        _wait_for(lambda: list((tmp_path / "counted").glob("records-*")) or None)
        driver.kill()
    assert workers
    assert _wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def _children(parent):
    """Return the worker processes that a process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if state[1] == str(parent) and b"spawn_main" in words:
            found.append(entry.name)
    return found


def _wait_for(what, seconds=90.0):
    """Return what a question answers as soon as that is true."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        answer = what()
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"nothing after {seconds:g} s")


def test_numbers_of_other_code_are_never_counted(tmp_path, fake, monkeypatch):
    method = fake(0.5)
    count(JOBS[:3], tmp_path)
    old = records_file(tmp_path)
    monkeypatch.setattr(replications, "code_version", lambda: "0123456789ab")
    assert read_records(tmp_path) == []
    assert other_files(tmp_path) == [old]
    again = count(JOBS[:3], tmp_path)
    assert method.calls == 6
    assert {record.code for record in again} == {"0123456789ab"}
    records_file(tmp_path).write_bytes(old.read_bytes())
    with pytest.raises(ValueError, match=f"made by code {code_version()}, and this is 0123456789"):
        count(JOBS[:3], tmp_path)


def test_deltas_that_share_a_search_say_what_each_would_say_alone():
    (cell,) = find_cells(None, ["gambler-greedy"])
    world = make_world(cell.world)
    log = make_log(cell, world, np.random.default_rng(1))
    facts = facts_of(world, log)

    def said(*deltas):
        claims = methods.default(log.columns, facts, deltas, np.random.default_rng(2))
        return [(one.kind, one.value) for one in claims if one.delta == deltas[-1]]

    assert said(0.05, 0.2) == said(0.2)
    assert said(0.01, 0.05) == said(0.05)  # not chosen alike: searched twice


def test_the_version_of_the_code_follows_source_and_tables(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "commands").mkdir()
    (tmp_path / "model" / "mdp.py").write_text("one = 1", encoding="utf-8")
    found = [source_hash(tmp_path)]
    for name in ("model/mdp.py", "model/table.npz", "commands/words.py", "model/notes.md"):
        (tmp_path / name).write_text("two = 2", encoding="utf-8")
        found.append(source_hash(tmp_path))
    assert len(set(found)) == 3
    assert found[2:] == [found[2]] * 3
    spoken = '"""Two."""\n\ntwo = (\n    2  # not one\n)\n'
    (tmp_path / "model" / "mdp.py").write_text(spoken, encoding="utf-8")
    assert source_hash(tmp_path) == found[-1]


def test_withheld_sentences_are_no_trials(tmp_path, fake):
    fake(1.0, withheld=0.7)
    lines = tabulate(count(JOBS, tmp_path))
    assert all(line.broken == line.trials == 60 - line.withheld < 30 for line in lines)
    assert all(line.claimed == 10.0 for line in lines)
    assert not any(line.holds for line in lines)
    fake(1.0, withheld=1.0)
    lines = tabulate(count(JOBS, tmp_path / "silent"))
    assert [line.row[-1] for line in lines] == ["not said"] * 2
    assert all(line.holds and line.facts["claimed"] is None for line in lines)


def test_exempt_sentences_do_not_excuse_others():
    def record(turn, exempt):
        told = judge(claim(10.0, exempt=exempt), WORLD, LOG)
        job = Job("survival-greedy", turn, "fake", 0)
        return Record(job=job, code="", optimum=0, behaviour=0, seconds=0, sentences=(told,))

    (mixed,) = tabulate([record(turn, turn >= 10) for turn in range(40)])
    assert (mixed.trials, mixed.broken, mixed.exempt, mixed.holds) == (10, 10, 30, False)
    assert mixed.row[-1] == "**NO** (30 exempt)"
    (shown,) = tabulate([record(turn, True) for turn in range(40)])
    assert (shown.trials, shown.broken, shown.row[-1], shown.holds) == (40, 40, "exempt", True)


def test_methods_are_judged_apart():
    def records(method, broken):
        told = [judge(claim(10.0 if turn < broken else -10.0), WORLD, LOG) for turn in range(400)]
        return [
            Record(job=Job("survival-greedy", turn, method, 0), code="", optimum=0, behaviour=0,
                   seconds=0, sentences=(one,))
            for turn, one in enumerate(told)
        ]  # fmt: skip

    close = next(k for k in range(400) if SURE / 2 < binom.sf(k - 1, 400, 0.05) <= SURE)
    lines = tabulate([*records("one", close), *records("other", 0)])
    assert [line.holds for line in lines] == [False, True]


def test_a_world_of_ones_own_is_judged(fake):
    fake(0.0)
    cell = Cell(name="mine", world="my survival", behaviour="random", size=5)
    records = [play(Job(cell.name, turn, "fake", 0), cell, WORLD) for turn in range(2)]
    lines = tabulate(records, [cell])
    assert [(line.cell.world, line.trials, line.broken) for line in lines] == [
        ("my survival", 2, 0)
    ] * 2
    with pytest.raises(ValueError, match="always the same world"):
        Cell(name="mine", world="my survival", behaviour="random", size=5, fresh=True)


def line(broken, trials=400, level=0.05, judged=True):
    return Line(
        cell=CELLS[0], method="m", kind="promise", delta=0.05, level=level, trials=trials,
        broken=broken, withheld=0, exempt=0, judged=judged, claimed=0.0, truth=0.0, optimum=0.0,
        open_share=0.0,
    )  # fmt: skip


def test_holm_rejects_step_by_step():
    # Between .01/2 and .01: it stands beside one that stands, and falls beside one that falls.
    close = next(k for k in range(400) if SURE / 2 < binom.sf(k - 1, 400, 0.05) <= SURE)
    assert [made.holds for made in holm([line(close), line(0)])] == [True, True]
    assert [made.holds for made in holm([line(close), line(200)])] == [False, False]
    assert [made.holds for made in holm([line(close), line(200, judged=False)])] == [False, True]
    assert all(made.holds for made in holm([line(300, judged=False)]))
    assert holm([]) == []


@pytest.mark.parametrize("level", [0.05, 0.2, 0.95])
def test_as_many_as_allowed_stand_and_one_more_falls(level):
    allowed = holm([line(0, level=level), line(0)])[0].allowed
    assert holm([line(allowed, level=level), line(0)])[0].holds
    if allowed < 400:
        assert not holm([line(allowed + 1, level=level), line(0)])[0].holds


def test_the_table_is_markdown():
    rows = markdown(holm([line(3)])).splitlines()
    assert len({row.count("|") for row in rows}) == 1
    assert "| 3 of 400 |" in rows[2]


@pytest.mark.parametrize("name", ["lake4-greedy", "garnet-10-support", "garnet-.3-bernoulli"])
def test_version_0_1_says_all_its_sentences(name):
    (cell,) = find_cells(None, [name])
    world = make_world(cell.world)
    log = make_log(cell, world, np.random.default_rng(1))
    facts = facts_of(world, log, declared=cell.declared)
    claims = methods.version_0_1(log.columns, facts, [0.2], np.random.default_rng(2))
    assert [made.kind for made in claims] == ["promise", "upper", "gain", "difference"]
    told = [judge(made, world, log) for made in claims]
    assert all(isinstance(one, Sentence) and np.isfinite(one.truth) for one in told)
    assert told[0].claimed < told[1].claimed
    assert told[1].level == pytest.approx(0.8)
    assert not any(one.exempt for one in told)
