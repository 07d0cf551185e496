"""Replications: one line of JSON for each cell, replication and method, with all its sentences.

The count can be stopped at any time and started again: records in the file are not computed twice.
A record is identified by its cell, replication, method and seed, and by the code that made it:
every version of the code has its own file, named by a hash of the source, so numbers are never
mixed.
"""

import json
import multiprocessing
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from surefoot._cores import plain_blas
from surefoot._workers import current, each_part
from surefoot.studies.zoo.catalogue import make_world
from surefoot.studies.zoo.cells import DELTAS, Cell, find_cells, make_log
from surefoot.studies.zoo.claims import Sentence, facts_of, judge
from surefoot.studies.zoo.code_version import code_version
from surefoot.studies.zoo.methods import find_method
from surefoot.studies.zoo.truth import optimum, optimum_in
from surefoot.studies.zoo.worlds import World

FILES = "records-*.jsonl"

Heard = Callable[["Record"], None]
"""Called with each record as soon as it is made."""


class Job(NamedTuple):
    """One replication of a cell by one method; also the key of its record."""

    cell: str
    replication: int
    method: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one replication found.

    Attributes
    ----------
    job
        The job that was done.
    code
        The version of the code that made the record.
    optimum
        Return of the best policy.
    behaviour
        Return of the log's behaviour, averaged over its episodes.
    seconds
        Time the method took, without drawing the log.
    sentences
        Every sentence, for every delta.
    """

    job: Job
    code: str
    optimum: float
    behaviour: float
    seconds: float
    sentences: tuple[Sentence, ...]

    def to_json(self) -> str:
        """Return the record as one line."""
        facts = {name: getattr(self, name) for name in ("code", "optimum", "behaviour", "seconds")}
        told = [asdict(sentence) for sentence in self.sentences]
        return json.dumps({**self.job._asdict(), **facts, "sentences": told}, allow_nan=True)

    @classmethod
    def from_json(cls, line: str) -> "Record":
        """Return a record from its line."""
        facts: dict[str, Any] = json.loads(line)
        job = Job(*(facts.pop(name) for name in Job._fields))
        sentences = tuple(Sentence(**told) for told in facts.pop("sentences"))
        return cls(job=job, sentences=sentences, **facts)


@lru_cache(maxsize=4)
def _world(name: str, seed: int) -> World:
    return make_world(name, seed)


def replicate(job: Job) -> Record:
    """Do the job of a cell in the catalogue.

    Examples
    --------
    >>> record = replicate(Job("lake4-tries", 0, "frequentist", 0))
    >>> [(sentence.kind, sentence.delta) for sentence in record.sentences]
    [('frequentist promise', 0.05), ('frequentist promise', 0.2)]
    """
    (cell,) = find_cells(None, [job.cell])
    with plain_blas():
        return play(job, cell, _world(cell.world, job.replication + 1 if cell.fresh else 0))


def play(job: Job, cell: Cell, world: World) -> Record:
    """Draw a log, let the method make its claims at each delta, and compare them with the truth.

    All methods of a replication get the same log, so that they can be compared in pairs. The world
    need not be in the catalogue.
    """
    # Seeded by names, not positions: a new cell must not change the logs of the others.
    entropy = [job.seed, zlib.crc32(cell.name.encode()), job.replication]
    log_rng, method_rng = np.random.default_rng(entropy).spawn(2)
    log = make_log(cell, world, log_rng)
    horizon, method = cell.horizon, find_method(job.method)
    facts = facts_of(world, log, declared=cell.declared, horizon=horizon)
    if horizon is not None:  # behaviour was chosen with a discount; the sentences have none
        world = replace(world, mdp=replace(world.mdp, discount=1.0))
    began = time.perf_counter()
    claims = method(log.columns, facts, DELTAS, method_rng)
    seconds = time.perf_counter() - began
    if (
        world.law.kind != "fixed" and "range" not in cell.declared
    ):  # exempt even if the log happened to show no scatter
        claims = [replace(claim, exempt=True) for claim in claims]
    return Record(
        job=job, code=code_version(),
        optimum=optimum(world) if horizon is None else optimum_in(world, horizon),
        behaviour=log.earned(world, horizon), seconds=seconds,
        sentences=tuple(judge(claim, world, log) for claim in claims),
    )  # fmt: skip


def jobs_of(
    cells: Iterable[Cell], methods: Sequence[str], replications: int | None, seed: int
) -> list[Job]:
    """Return the jobs of cells; ``replications=None`` takes each cell's own number."""
    return [
        Job(cell.name, turn, method, seed)
        for cell in cells
        for turn in range(cell.replications if replications is None else replications)
        for method in methods
    ]


def records_file(folder: Path) -> Path:
    """Return the file of this code version's records in a folder; it need not exist yet."""
    return folder / FILES.replace("*", code_version())


def read_records(folder: Path) -> list[Record]:
    """Return the records of this code version in a folder; an empty list if there is no file."""
    file = records_file(folder)
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]  # the last one is empty or cut off
    records = [Record.from_json(line) for line in lines]
    for record in records:
        _check_code(record, str(file))
    return records


def other_files(folder: Path) -> list[Path]:
    """Return the files of other code versions in a folder; they are not touched."""
    return sorted(set(folder.glob(FILES)) - {records_file(folder)})


def _check_code(record: Record, place: str) -> None:
    if record.code != code_version():
        raise ValueError(
            f"{place}: replication {record.job.replication} of {record.job.cell} was made by code "
            f"{record.code}, and this is {code_version()}. Numbers of different code are not "
            "counted together: start again, with the source unchanged while it runs."
        )


def count(
    jobs: Sequence[Job], folder: Path, *, processes: int = 1, told: Heard | None = None
) -> list[Record]:
    """Do the jobs that have no record yet, and return the records of all jobs.

    Parameters
    ----------
    jobs
        The jobs.
    folder
        The folder of the records; made if missing.
    processes
        Number of parallel processes; ignored if a cluster is in use.
    told
        Called with every new record.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = records_file(folder)
    _mend(file)
    done = {record.job: record for record in read_records(folder)}
    missing = [job for job in jobs if job not in done]
    with file.open("a", encoding="utf-8") as lines:
        for record in _work(missing, processes):
            _check_code(record, "a process of its own")
            lines.write(record.to_json() + "\n")
            lines.flush()
            done[record.job] = record
            if told is not None:
                told(record)
    return [done[job] for job in jobs]


def _mend(file: Path) -> None:
    """Remove an incomplete last line, left by an interrupted write."""
    if file.exists():
        content = file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.write_bytes(content[:whole])


def _work(jobs: Sequence[Job], processes: int) -> Iterator[Record]:
    if current() is not None:
        for _, record in each_part(replicate, (), [(job,) for job in jobs]):
            yield record
        return
    if processes <= 1:
        yield from map(replicate, jobs)
        return
    context = multiprocessing.get_context("spawn")
    turn = context.Value("i", 0)
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_take_a_core, initargs=(turn,)
    ) as pool:
        pending = [pool.submit(replicate, job) for job in jobs]
        try:
            for future in as_completed(pending):
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_after(process: Any) -> None:
    process.join()
    os._exit(1)


def _take_a_core(turn: Any) -> None:
    """Pin this process to its own core: workers that all use all cores slow each other down.

    The process ends when the one that started it ends, for whatever reason.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_end_after, args=(parent,), daemon=True).start()
    with turn.get_lock():
        number = turn.value
        turn.value += 1
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})
