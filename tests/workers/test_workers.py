"""How work is cut decides nothing: parts done one by one in this process give the same bits."""

import pickle
import socket
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from divided_log import what_halves_say

import surefoot as sf
from requirements import lacking
from surefoot import _cluster, _cluster_argument, _waits, _workers
from surefoot._pool_facts import ProcessFacts, facts_here
from surefoot.certificates import curse
from surefoot.cli import main
from surefoot.data import shards
from surefoot.demo import demo_settings
from surefoot.pipeline import what_if
from surefoot.pipeline.folder import unfinished_name
from surefoot.pipeline.journal import Nobody, Stage


class Others:
    """Workers that do each part as a process of its own would, in any order."""

    count = 3
    parts = 0
    gpus = _workers.WorkerGpus(0, ("10.0.0.5",))

    def each(self, work, shared, parts, *, gpu=False):
        assert not gpu or self.gpus.total
        self.parts += len(parts)
        for place in np.random.default_rng(len(parts)).permutation(len(parts)):
            sent = pickle.loads(pickle.dumps((work, shared, parts[place])))
            yield int(place), _workers.do_alone(*sent, cores=1)


@pytest.fixture
def sharing(small_jobs_shared):
    """Workers that get even the smallest jobs."""
    return Others()


def problem(name):
    rng = np.random.default_rng(0)
    domain = {
        "few states": sf.riverswim,
        "enumerated": sf.machine_replacement,
        "sparse": lambda: sf.garnet(250, 3, 4, discount=0.9, rng=rng),
        "chain": lambda: sf.river_chain(120, discount=0.9),
    }[name]()
    posterior = sf.LearnedPosterior(domain.simulate(6, rng))
    return posterior, posterior.counts.to_mdp(discount=0.9, prior=1.0)


@pytest.mark.parametrize("name", ["few states", "enumerated", "sparse", "chain"])
def test_the_cut_changes_nothing(name, sharing):
    posterior, mdp = problem(name)

    def answer():
        rng = np.random.default_rng(3)
        made = sf.optimize(posterior, mdp, delta=0.2, draws=100, rng=rng)
        other = sf.compare(
            made.policy, mdp.row_action[mdp.state_start[:-1]], posterior, mdp, delta=0.2,
            draws=100, rng=rng,
        )  # fmt: skip
        return made.certificate.to_json(), [c.percentile for c in made.candidates], repr(other)

    alone = answer()
    with _workers.made_current(sharing):
        assert answer() == alone
    assert sharing.parts > 20


def test_draws_of_a_fit_are_shared_too(sharing):
    posterior, mdp = problem("few states")
    draws = posterior.sample(400, np.random.default_rng(0))
    own = sf.PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True)
    policy = mdp.row_action[mdp.state_start[:-1]]

    def answer():
        rng = np.random.default_rng(5)
        return sf.certify(policy, own, mdp, delta=0.2, rng=rng).to_json()

    alone = answer()
    with _workers.made_current(sharing):
        assert answer() == alone


def test_new_draws_of_verify_are_shared_too(sharing):
    posterior, mdp = problem("sparse")
    policy = mdp.row_action[mdp.state_start[:-1]]
    promise = sf.certify(policy, posterior, mdp, delta=0.2, draws=100, rng=np.random.default_rng(5))

    def answer():
        rng = np.random.default_rng(6)
        return repr(sf.verify(promise, posterior, mdp, draws=100, rng=rng))

    alone, before = answer(), sharing.parts
    with _workers.made_current(sharing):
        assert answer() == alone
    assert sharing.parts > before
    with pytest.raises(ValueError, match="cluster=3; it must be"):
        sf.verify(promise, posterior, mdp, cluster=3)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_halves_and_backtest_are_shared(count, sharing, monkeypatch):
    monkeypatch.setattr(sharing, "count", count)
    alone = what_halves_say()
    with _workers.made_current(sharing):
        assert what_halves_say() == alone
    assert sharing.parts == curse.DEFAULT_HALVES + 1  # and what is known is not measured again


def test_studies_are_shared(sharing, tmp_path):
    from surefoot.studies.certificate_coverage import study
    from surefoot.studies.reproduction import reproduce
    from surefoot.studies.request import Request
    from surefoot.studies.zoo.replications import Job, count

    jobs = [Job("lake4-tries", turn, "frequentist", 0) for turn in range(3)]
    request = Request(
        domains=("machine",), settings=("paper",), bases=("bayesian",), deltas=(0.05,), seeds=2
    )

    def answer(folder):
        covered = study(
            sf.riverswim(), samples=5, replications=3, delta=0.2, draws=100, check_upper=1,
            optimum_draws=200, rng=np.random.default_rng(0),
        )  # fmt: skip
        counted = [record.sentences for record in count(jobs, folder)]
        return repr(covered), counted, reproduce(request).lines

    alone = answer(tmp_path / "alone")
    with _workers.made_current(sharing):
        assert answer(tmp_path / "shared") == alone
    assert sharing.parts == 3 + 3 + 2


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run."""
    settings = replace(demo_settings(), draws=300, eta=0.1)
    return sf.run(settings, tmp_path_factory.mktemp("made") / "run")


@pytest.mark.parametrize(("entries", "least", "most"), [(10**9, 3, 3), (0, 20, 10**9)])
def test_lines_of_a_what_if_are_shared(entries, least, most, made, sharing, monkeypatch):
    monkeypatch.setattr(what_if, "WHOLE_LINES", entries)

    def answer():
        found = what_if.what_if(made, delta=[0.2, 0.001], forbidden=["repair"])
        own, first, refused, last = found.lines
        assert "needs at least" in refused.refused
        return found.to_mapping(), *(one.certificate.to_json() for one in (own, first, last))

    alone = answer()
    with _workers.made_current(sharing):
        assert answer() == alone
    assert least <= sharing.parts <= most


def test_lines_that_need_files_stay_here(made, sharing, tmp_path):
    pairs = tmp_path / "allowed.csv"
    pairs.write_text((made.folder / "policy.csv").read_text(encoding="utf-8"), encoding="utf-8")
    ruled = sf.run(replace(made.settings, allowed=str(pairs)), tmp_path / "run")
    with _workers.made_current(sharing):
        assert what_if._by_workers(made)
        assert not what_if._by_workers(ruled)
    assert not what_if._by_workers(made)


def test_futures_of_a_plan_are_shared(made, sharing, monkeypatch):
    monkeypatch.setattr("surefoot.pipeline.plan.SIZES", (10,))
    told = []

    class Told(Nobody):
        def stage(self, title, total=None):
            stage = Stage()
            stage.update = lambda done, *_: told.append((done, total))
            return nullcontext(stage)

    def answer():
        return sf.plan(made, samples=20, teller=Told()).to_mapping()

    alone = answer()
    with _workers.made_current(sharing):
        assert answer() == alone
    assert sharing.parts >= 19
    assert told[-1][0] == told[-1][1]


LOGS = {
    "numbers": {"state": [0, 1, 10, 9] * 60, "next_state": [1, 10, 9, 0] * 60},
    "texts": {"state": ["b", "a", "é", "B"] * 60, "next_state": ["a", "é", "B", "b"] * 60},
    "ends": {
        "state": [0, 1, 2, 1] * 60,
        "next_state": [1, 2, 0, 3] * 60,
        "done": [False, False, False, True] * 60,
    },
}


@pytest.mark.parametrize("name", LOGS)
def test_files_counted_apart_are_counted_as_one(name, sharing, tmp_path, monkeypatch):
    rng = np.random.default_rng(4)
    log = pd.DataFrame(LOGS[name] | {"action": rng.integers(0, 2, 240)})
    log["reward"] = np.where(rng.random(240) < 0.5, rng.normal(size=240), 0.1)
    log.loc[log.index >= 200, "reward"] *= 1e4  # another scale of sums in the last file
    folder = tmp_path / "log"
    folder.mkdir()
    for k in range(6):
        log[k * 40 : (k + 1) * 40].to_parquet(folder / f"part{k}.parquet")
    columns = {"terminal": "done" if "done" in log else None}
    alone = sf.read_transitions(folder, **columns)
    monkeypatch.setattr(shards, "SHARED_BYTES", 0)
    with _workers.made_current(sharing):
        shared = sf.read_transitions(folder, **columns)
    assert sharing.parts > 6
    alone.save(tmp_path / "alone.npz")
    shared.save(tmp_path / "shared.npz")
    assert (tmp_path / "alone.npz").read_bytes() == (tmp_path / "shared.npz").read_bytes()


def test_what_files_cannot_agree_on_is_counted_in_one_pass(sharing, tmp_path, monkeypatch):
    for k, label in enumerate(["1", "2", "x"]):
        pd.DataFrame(
            {
                "state": [label, "0"],
                "action": [0, 0],
                "next_state": ["0", label],
                "reward": [0, 1.0],
            }
        ).to_parquet(tmp_path / f"part{k}.parquet")
    alone = sf.read_transitions(tmp_path)
    monkeypatch.setattr(shards, "SHARED_BYTES", 0)
    with _workers.made_current(sharing):
        shared = sf.read_transitions(tmp_path)
        (tmp_path / "part9.parquet").write_bytes(b"no parquet")
        with pytest.raises((ValueError, OSError), match=r"part9\.parquet"):
            sf.read_transitions(tmp_path)
    assert shared.state_labels == alone.state_labels
    assert np.array_equal(shared.count, alone.count)


def test_small_jobs_stay_here():
    posterior, mdp = problem("few states")
    workers = Others()
    with _workers.made_current(workers):
        sf.certify([0] * mdp.num_states, posterior, mdp, draws=200, rng=np.random.default_rng(0))
    assert workers.parts == 0


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("device", "cpu skylake", "must not mix devices"),
        ("device", "gpu H200", "must not mix devices"),
        ("numba", "0.1", "has numba 0.1, and this process has"),
        ("surefoot", "0.0.1", "Install the same version everywhere"),
    ],
)
def test_a_pool_of_others_is_refused(name, value, words):
    mine = facts_here()
    facts = {field: getattr(mine, field) for field in ProcessFacts.__dataclass_fields__}
    with pytest.raises(ValueError, match=words):
        mine.check(ProcessFacts(**{**facts, name: value}), "node 10.0.0.5")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(OSError, match=r"pip install 'surefoot\[cluster\]'"),
        _cluster_argument.working_on("local"),
    ):
        pass


@pytest.fixture
def nowhere():
    """An address where nobody answers."""
    try:
        import ray  # noqa: F401
    except ImportError as problem:
        lacking("cluster", f"Ray is not installed ({problem})")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_nobody_at_an_address(nowhere):
    for wrong, words in ((nowhere, "nothing answers"), ("here:there", "it must be 'local'")):
        with pytest.raises(_cluster.ClusterError, match=words), _cluster_argument.working_on(wrong):
            pass


@pytest.mark.parametrize(
    "command",
    [
        "solve RUN/log.csv --discount 0.9 --out OUT/run",
        "certify RUN --policy RUN/policy.csv",
        "compare RUN --policy RUN/policy.csv",
        "verify RUN",
        "report RUN",
        "what-if RUN --delta 0.2",
        "plan RUN",
        "coverage --set test --out OUT/counted",
        "reproduce --domain riverswim --seeds 1 --out OUT/tables",
    ],
)
def test_every_command_says_that_nobody_answers(command, made, nowhere, tmp_path, capsys):
    asked = command.replace("RUN", str(made.folder)).replace("OUT", str(tmp_path))
    assert main([*asked.split(), "--cluster", nowhere]) == 1
    assert "nothing answers" in capsys.readouterr().err


class SilentRay:
    """Stands for Ray where nobody answers: nothing is ever done, or known of a node."""

    class exceptions:  # noqa: N801
        """What Ray raises."""

        RayError = type("RayError", (Exception,), {})
        GetTimeoutError = type("GetTimeoutError", (RayError,), {})
        RaySystemError = type("RaySystemError", (RayError,), {})
        RayTaskError = type("RayTaskError", (RayError,), {})
        OutOfMemoryError = type("OutOfMemoryError", (RayError,), {})

    def __init__(self, cpus=1, problem=None):
        self.over, self.problem, self.cpus = threading.Event(), problem, cpus

    def nodes(self):
        if self.cpus is None:  # the head hangs
            self.over.wait()
        resources = {"CPU": self.cpus}
        return [{"Alive": True, "Resources": resources, "NodeManagerAddress": "10.0.0.5"}]

    def init(self, **_options):
        if self.problem is not None:
            raise self.problem
        self.over.wait()

    def get(self, _ref, timeout):
        assert timeout is not None
        raise self.problem or self.exceptions.GetTimeoutError

    def wait(self, pending, num_returns, timeout):
        assert num_returns
        assert timeout is not None
        return [], pending


@pytest.fixture
def impatient(monkeypatch):
    """Let every wait end at once."""
    for name in ("START", "HEAD", "IDLE", "STALL", "LOOK"):
        monkeypatch.setattr(_cluster, f"{name}_SECONDS", 0.01)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("cpus", "words"),
    [
        (None, "the head of the cluster did not answer within"),
        (0, "the cluster had no worker for"),
        (1, r"no part was finished within .* by 1 workers\. Look at 'ray status'"),
    ],
)
def test_parts_are_not_waited_for_without_end(cpus, words):
    ray = SilentRay(cpus)
    with pytest.raises(_cluster.ClusterError, match=words):
        _cluster.Pool(ray=ray)._finished(["a part"])
    ray.over.set()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("cluster", ["local", "auto"])
def test_a_cluster_is_not_waited_for_without_end(cluster):
    ray = SilentRay()
    with pytest.raises(_cluster.ClusterError, match="did not answer within"):
        _cluster._connect(ray, cluster, ray.over)
    ray.over.set()
    nobody = SilentRay(problem=ConnectionError("Could not find any running Ray instance."))
    nobody.over.set()
    with pytest.raises(_cluster.ClusterError, match=r"Start one with 'ray start --head'"):
        _cluster._connect(nobody, cluster, nobody.over)


def test_an_answer_is_not_waited_for_without_end():
    errors = SilentRay.exceptions
    pool = _cluster.Pool(ray=SilentRay())
    with pytest.raises(_cluster.ClusterError, match=r"node 10\.0\.0\.5 did not answer within"):
        pool._answer("asked", "10.0.0.5", until=0.0)
    with pytest.raises(_cluster.ClusterError, match="a result did not arrive within"):
        pool._result("a part")
    for problem, words in (
        (errors.OutOfMemoryError("gone"), "a worker ran out of memory .* Give the nodes more"),
        (errors.RayError("worker died"), r"a part was lost 20 times \(worker died\)"),
    ):
        with pytest.raises(_cluster.ClusterError, match=words):
            _cluster.Pool(ray=SilentRay(problem=problem))._result("a part")


class Lost(Others):
    """Workers whose head dies after some parts."""

    def __init__(self, left):
        self.left = left

    def each(self, work, shared, parts, *, gpu=False):
        for found in super().each(work, shared, parts, gpu=gpu):
            if self.left == 0:
                raise _cluster.ClusterError("the head of the cluster did not answer within 30 s.")
            self.left -= 1
            yield found


@pytest.mark.usefixtures("small_jobs_shared")
@pytest.mark.parametrize("done", [30, 1000])  # in the search, in the report
def test_a_run_that_lost_its_cluster_goes_on_without(done, made, tmp_path):
    out = tmp_path / "run"
    with _workers.made_current(Lost(done)), pytest.raises(OSError, match="did not answer"):
        sf.run(made.settings, out)
    assert unfinished_name(out).is_dir()
    assert sf.run(made.settings, out).folder == out
    for name in ("certificate.json", "policy.csv", "candidates.csv", "counts.npz"):
        assert (out / name).read_bytes() == (made.folder / name).read_bytes()


def test_wrong_arguments_are_refused():
    posterior, mdp = problem("few states")
    with pytest.raises(ValueError, match="cluster=3; it must be"):
        sf.certify([0] * 6, posterior, mdp, rng=np.random.default_rng(0), cluster=3)
    with pytest.raises(ValueError, match=r"cluster='here'; it must be local, auto or an address"):
        sf.Settings(cluster="here")


def test_a_wait_ends():
    over = threading.Event()
    with pytest.raises(_waits.TookTooLong):
        _waits.within(0.05, over.wait)
    over.set()
    assert _waits.within(5.0, lambda: 3) == 3
    with pytest.raises(KeyError):
        _waits.within(5.0, lambda: {}["a"])


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("Version mismatch: The cluster was started with:\n  Ray: 2.1", "runs other versions"),
        ("something else\nmore", "cannot be joined: something else$"),
    ],
)
def test_what_ray_refuses_is_said_in_a_line(problem, words):
    import re

    told = _cluster._refused("10.0.0.5:6379", problem)
    assert re.search(words, told)
    assert "\n" not in told


@pytest.fixture
def device(monkeypatch):
    """The CPU as a device, in this process and in workers; few draws at a time."""
    from surefoot.solvers.gpu import choice, engine, shared
    from surefoot.solvers.gpu.device import host_device

    found = host_device()
    monkeypatch.setattr(choice, "the_gpu", lambda: found)
    monkeypatch.setattr(shared, "PLATFORM", "cpu")
    monkeypatch.setattr(engine, "MOST_DRAWS", 16)
    return found


def test_gpus_of_workers_give_the_bits_of_one(sharing, device):
    posterior, mdp = problem("few states")

    def answer():
        rng = np.random.default_rng(3)
        made = sf.optimize(posterior, mdp, delta=0.2, draws=70, rng=rng, device="gpu")
        return made.certificate.to_json(), [c.percentile for c in made.candidates]

    alone = answer()
    assert f'"{device.name}"' in alone[0]
    sharing.gpus = _workers.WorkerGpus(2, ())
    with _workers.made_current(sharing):
        assert answer() == alone
    assert sharing.parts > 20


def test_workers_must_all_have_a_gpu(sharing, device, monkeypatch):
    from surefoot.solvers.gpu import choice, shared

    posterior, mdp = problem("few states")
    with _workers.made_current(sharing):
        with pytest.raises(ValueError, match="no worker of the cluster has a GPU"):
            choice.choose_engine("gpu", mdp, posterior)
        sharing.gpus = _workers.WorkerGpus(1, ("10.0.0.5",))
        with pytest.raises(ValueError, match=r"node 10\.0\.0\.5 has no GPU.*must not mix devices"):
            choice.choose_engine("gpu", mdp, posterior)
        monkeypatch.setattr(choice, "PAYING_ENTRIES", 1)
        assert not choice.choose_engine("auto", mdp, posterior).on_device
        sharing.gpus = _workers.WorkerGpus(1, ())
        chosen = choice.choose_engine("auto", mdp, posterior)
        assert chosen.on_device
        other = shared.SharedDeviceEngine(name="another kind", platform="cpu")
        policy = mdp.row_action[mdp.state_start[:-1]]
        monkeypatch.setattr(choice, "shared_engine", lambda _: other)
        with pytest.raises(ValueError, match="another kind and on cpu: a pool must not mix"):
            sf.certify(policy, posterior, mdp, draws=70, delta=0.2, rng=np.random.default_rng(0))
