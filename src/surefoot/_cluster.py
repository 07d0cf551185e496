"""A Ray cluster that does parts of jobs: started or joined, checked, and released at the end.

A part is a task that any worker can repeat: if a worker or a node dies, only the parts it was doing
are lost, and they are done again. Objects shared by many parts are put into the object store once;
all workers of a node read them there. Every wait has a time limit, and its error says what was
waited for.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from typing import Any

from surefoot._cores import available_cores
from surefoot._pool_facts import ProcessFacts, facts_here
from surefoot._waits import TookTooLong, within
from surefoot._workers import OnPart, Work, WorkerGpus, do_alone

START_SECONDS = 180.0
"""How long starting or joining a cluster may take, and how long a node's first answer may take."""
REACH_SECONDS = 10.0
"""How long a machine at a given address may take to answer."""
HEAD_SECONDS = 30.0
"""How long the head node may take to answer; after a minute Ray itself would end this process."""
IDLE_SECONDS = 300.0
"""How long a cluster may have no worker at all: nodes may still be starting."""
STALL_SECONDS = float(os.environ.get("SUREFOOT_CLUSTER_PATIENCE", "3600"))
"""How long to wait for the next finished part while there are workers."""
LOOK_SECONDS = 5.0
"""How often the cluster is polled while no result arrives."""
RETRIES = 20
"""How often a part is repeated after the worker that was doing it died."""
STORE_BYTES = 2**30
"""Object store of a cluster started here; never more than a tenth of the free memory."""
LEAST_STORE = 100 * 2**20
KEPT = 16
"""How many shared objects a worker keeps unpacked."""


class ClusterError(OSError):
    """The cluster is missing, cannot be reached, does not fit, or no longer answers."""


@contextmanager
def joined(cluster: str, told: OnPart | None = None) -> Iterator[Pool]:
    """Start or join a cluster, check its nodes, and release it at the end."""
    ray = _ray()
    own = not ray.is_initialized()  # a notebook may have joined one already
    over = threading.Event()
    try:
        if own:
            _connect(ray, cluster, over)
        pool = Pool(ray=ray, told=told)
        pool.check()
        yield pool
    finally:
        if own:
            with suppress(TookTooLong):
                within(HEAD_SECONDS, ray.shutdown)
        over.set()


def _ray() -> Any:
    # Under "uv run" Ray would rebuild the workers' environments.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # By default Ray runs its workers at nice 15; next to other work they would starve.
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise ClusterError(
            "a cluster needs Ray, which is not installed here. Install it with pip install "
            "'surefoot[cluster]', on every machine of the cluster."
        ) from None
    return ray


def _connect(ray: Any, cluster: str, until: threading.Event) -> None:
    """Start Ray on this machine, or join the cluster at an address."""
    options: dict[str, Any] = {"address": cluster, "log_to_driver": False, "logging_level": "ERROR"}
    if cluster == "local":
        size = {"num_cpus": available_cores(), "object_store_memory": _store()}
        options |= {"include_dashboard": False, **size}
    elif cluster != "auto":
        _reach(cluster)
    try:
        within(START_SECONDS, lambda: ray.init(**options), until)
    except TookTooLong:
        what = "Ray on this machine" if cluster == "local" else f"the cluster at {cluster!r}"
        raise ClusterError(f"{what} did not answer within {START_SECONDS:.0f} s.") from None
    except ConnectionError as problem:
        raise ClusterError(
            f"no running cluster was found for cluster={cluster!r} ({_first_line(problem)}). Start "
            "one with 'ray start --head', give its address, or use cluster='local'."
        ) from None
    except (RuntimeError, ValueError) as problem:
        raise ClusterError(_refused(cluster, str(problem))) from None


def _refused(cluster: str, problem: str) -> str:
    if "ersion mismatch" in problem:
        told = " ".join(problem.split())
        return (
            f"the cluster at {cluster!r} runs other versions: {told} Install the cluster's "
            "versions of Python and Ray on this machine."
        )
    return f"the cluster at {cluster!r} cannot be joined: {_first_line(problem)}"


def _first_line(problem: object) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(problem).__name__


def _reach(address: str) -> None:
    """Refuse an address where nothing answers: Ray itself would keep trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        place = host.strip("[]"), int(port)
        # A name lookup has no timeout of its own.
        within(REACH_SECONDS + 1, lambda: socket.create_connection(place, REACH_SECONDS).close())
    except TookTooLong:
        raise ClusterError(
            f"nothing answers at {address!r}: its name was not found within {REACH_SECONDS:.0f} s."
        ) from None
    except ValueError:
        raise ClusterError(
            f"cluster={address!r}; it must be 'local', 'auto' or an address such as "
            "'10.0.0.5:6379'."
        ) from None
    except OSError as problem:
        raise ClusterError(
            f"nothing answers at {address!r} ({problem}). 'ray start --head' prints the address of "
            "a cluster; check host name, port and firewall."
        ) from None


def _store() -> int:
    """Return the size of the object store in bytes; the objects that parts share are small."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        free = 10 * LEAST_STORE
    given = os.environ.get("SUREFOOT_CLUSTER_STORE")
    return int(given) if given else max(LEAST_STORE, min(STORE_BYTES, free // 10))


@dataclass(eq=False, kw_only=True)
class Pool:
    """The workers of a Ray cluster."""

    ray: Any
    told: OnPart | None = None
    facts: ProcessFacts = field(default_factory=facts_here)
    _shared: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    _counted: tuple[float, int] = (-math.inf, 0)

    @cached_property
    def _task(self) -> Any:
        return self.ray.remote(num_cpus=1, max_retries=RETRIES)(_do)

    @cached_property
    def _gpu_task(self) -> Any:
        # max_calls=0 keeps the process after a part, so that the next part reuses compiled code.
        how = {"num_cpus": 1, "num_gpus": 1, "max_calls": 0, "max_retries": RETRIES}
        return self.ray.remote(**how)(_do)

    @property
    def gpus(self) -> WorkerGpus:
        """The GPUs that Ray reports for the nodes, and the nodes without any."""
        nodes = [node for node in self._nodes() if node["Resources"].get("CPU", 0) >= 1]
        lacking = [n["NodeManagerAddress"] for n in nodes if n["Resources"].get("GPU", 0) < 1]
        total = sum(int(node["Resources"].get("GPU", 0)) for node in nodes)
        return WorkerGpus(total, tuple(lacking))

    @property
    def count(self) -> int:
        """The number of CPUs of the cluster, at most a few seconds old; at least 1."""
        if time.monotonic() - self._counted[0] > LOOK_SECONDS:
            self._counted = time.monotonic(), self._cpus()
        return max(1, self._counted[1])

    def check(self) -> None:
        """Refuse a node whose versions or processor differ: its answers would differ, too."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

        ask = self.ray.remote(num_cpus=0, max_retries=2)(_tell)
        asked = {
            node["NodeID"]: (node["NodeManagerAddress"], node)
            for node in self._nodes()
            if node["Resources"].get("CPU", 0) >= 1
        }
        answers = {
            name: ask.options(scheduling_strategy=On(node_id=name, soft=False)).remote()
            for name in asked
        }
        until = time.monotonic() + START_SECONDS  # one limit for all nodes together
        for name, answer in answers.items():
            self.facts.check(self._answer(answer, asked[name][0], until), asked[name][0])

    def _answer(self, answer: Any, place: str, until: float) -> ProcessFacts:
        errors = self.ray.exceptions
        try:
            left = max(0.0, until - time.monotonic())
            found: ProcessFacts = self.ray.get(answer, timeout=left)
        except errors.GetTimeoutError:
            raise ClusterError(
                f"node {place} did not answer within {START_SECONDS:.0f} s."
            ) from None
        except errors.RaySystemError as problem:
            raise ClusterError(_not_installed(place, problem)) from None
        except errors.RayTaskError as problem:
            raise ClusterError(_not_installed(place, problem.cause or problem)) from None
        except errors.RayError:
            return self.facts  # the node has died since then and will do no parts
        return found

    def each(
        self, work: Work, shared: tuple[Any, ...], parts: Sequence[tuple[Any, ...]],
        *, gpu: bool = False,
    ) -> Iterator[tuple[int, Any]]:  # fmt: skip
        """Yield the index and the result of each part, in the order in which parts finish."""
        task = self._gpu_task if gpu else self._task
        refs = [self._put(one) for one in shared]
        waiting = list(enumerate(parts))[::-1]
        pending: dict[Any, int] = {}
        done = 0
        # If a part fails, pending ones end with the job: Ray's own cancel can crash a driver.
        while waiting or pending:
            room = 3 * self.count + 5 - len(pending)
            for place, part in [waiting.pop() for _ in range(min(room, len(waiting)))]:
                sent = [self._put(one) if _is_frozen(one) else one for one in part]
                pending[task.remote(work, refs, sent)] = place
            for ref in self._finished(list(pending)):
                result = self._result(ref)
                done += 1
                if self.told is not None:
                    self.told(done, len(parts))
                yield pending.pop(ref), result

    def _put(self, one: Any) -> Any:
        """Return a reference to an object in the store; immutable objects are put there once."""
        if not _is_frozen(one):
            return self.ray.put(one)
        name = id(one)
        if name not in self._shared:
            gone = weakref.ref(one, lambda _: self._shared.pop(name, None))
            self._shared[name] = gone, self.ray.put(one)
        return self._shared[name][1]

    def _finished(self, pending: list[Any]) -> list[Any]:
        """Wait until some parts are done; give up after IDLE_SECONDS or STALL_SECONDS."""
        began = time.monotonic()
        seen = began  # the last time at which there was a worker
        while True:
            ready, _ = self.ray.wait(pending, num_returns=1, timeout=LOOK_SECONDS)
            if ready:
                more, _ = self.ray.wait(pending, num_returns=len(pending), timeout=0)
                return list(more)
            now = time.monotonic()
            if self._cpus() >= 1:
                seen = now
            elif now - seen > IDLE_SECONDS:
                raise ClusterError(f"the cluster had no worker for {IDLE_SECONDS:.0f} s.")
            if now - began > STALL_SECONDS:
                raise ClusterError(
                    f"no part was finished within {STALL_SECONDS:.0f} s by {self._cpus()} "
                    "workers. Look at 'ray status'; SUREFOOT_CLUSTER_PATIENCE=SECONDS waits longer."
                )

    def _result(self, ref: Any) -> Any:
        errors = self.ray.exceptions
        try:
            facts, result = self.ray.get(ref, timeout=START_SECONDS)
        except errors.RayTaskError as problem:
            cause = problem.cause or problem
            if isinstance(cause, errors.GetTimeoutError):
                raise ClusterError(
                    f"a worker did not receive the data of its part within {START_SECONDS:.0f} s: "
                    "is the network down?"
                ) from None
            if isinstance(cause, errors.RayError):
                raise ClusterError(
                    f"a worker cannot read its part: {_first_line(cause)}. Code of your own (such "
                    "as a posterior) must be installed on every machine of the cluster."
                ) from None
            raise cause from None
        except errors.GetTimeoutError:
            raise ClusterError(
                f"a result did not arrive within {START_SECONDS:.0f} s: is the network down?"
            ) from None
        except errors.OutOfMemoryError:
            raise ClusterError(
                f"a worker ran out of memory {RETRIES} times. Give the nodes more memory, or fewer "
                "CPUs each ('ray start --num-cpus')."
            ) from None
        except errors.RayError as problem:
            raise ClusterError(
                f"a part was lost {RETRIES} times ({_first_line(problem)})."
            ) from None
        self.facts.check(facts, "a worker")  # nodes may join at any time
        return result

    def _nodes(self) -> list[dict[str, Any]]:
        try:
            nodes: list[dict[str, Any]] = within(HEAD_SECONDS, self.ray.nodes)
        except TookTooLong:
            raise ClusterError(
                f"the head of the cluster did not answer within {HEAD_SECONDS:.0f} s."
            ) from None
        return [node for node in nodes if node["Alive"]]

    def _cpus(self) -> int:
        return int(sum(node["Resources"].get("CPU", 0) for node in self._nodes()))


def _is_frozen(one: Any) -> bool:
    """Return whether an object is an instance of a frozen dataclass, and so never changes."""
    return (
        is_dataclass(one)
        and not isinstance(one, type)
        and bool(getattr(type(one), "__dataclass_params__").frozen)  # noqa: B009
    )


def _not_installed(place: str, problem: object) -> str:
    return (
        f"node {place} cannot run surefoot: {_first_line(problem)}. Install the same surefoot, "
        "with its extra 'cluster', on every machine of the cluster."
    )


def _tell() -> ProcessFacts:
    """Return the versions and the processor of this worker."""
    return facts_here()


_unpacked: dict[Any, Any] = {}
"""Objects this worker has read from the object store, kept with whatever they have cached."""


def _do(work: Work, shared: list[Any], part: list[Any]) -> tuple[ProcessFacts, Any]:
    """Do a part in a worker."""
    own, its = (tuple(map(_unpack, some)) for some in (shared, part))
    return facts_here(), do_alone(work, own, its, cores=1)


def _unpack(one: Any) -> Any:
    """Return the object behind a reference, read once; other objects are returned as they are."""
    import ray

    if not isinstance(one, ray.ObjectRef):
        return one
    if one not in _unpacked:
        while len(_unpacked) >= KEPT:
            _unpacked.pop(next(iter(_unpacked)))
        _unpacked[one] = ray.get(one, timeout=START_SECONDS)
    return _unpacked[one]
