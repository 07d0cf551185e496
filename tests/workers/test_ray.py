"""With a cluster, with whatever workers and faults: the answer of one process, bit for bit."""

import random
import threading
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.cluster_cost import DISCOUNT, RandomRows
from benchmarks.cluster_kills import JOIN_SECONDS, add_node
from divided_log import what_halves_say

import surefoot as sf
from surefoot._cluster_argument import working_on
from surefoot._workers import all_parts
from surefoot.demo import demo_settings
from surefoot.pipeline.finished_runs import report_run, verify_run
from surefoot.solvers.sharded import solve_sharded

# Ray does not wait for the processes of a node that it kills.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@pytest.fixture(autouse=True)
def everything_is_worth_sharing(small_jobs_shared):
    """Workers of the cluster get even the smallest jobs."""


def certified(cluster=None):
    counts = sf.machine_replacement().simulate(5, np.random.default_rng(0))
    posterior = sf.DirichletPosterior(counts)
    mdp = posterior.counts.to_mdp(discount=0.95, prior=1.0)
    with working_on(cluster):
        made = sf.optimize(
            posterior, mdp, draws=300, delta=0.1, rng=np.random.default_rng(1), cluster=cluster
        )
        halves = what_halves_say()
    return made.certificate.to_json(), [one.percentile for one in made.candidates], halves


def test_any_number_of_workers_gives_the_answer_of_one_process(cluster):
    alone = certified()
    assert certified(cluster.address) == alone  # one worker
    add_node(cluster)
    cluster.wait_for_nodes(JOIN_SECONDS)
    assert certified(cluster.address) == alone
    node = add_node(cluster, cpus=3)
    cluster.wait_for_nodes(JOIN_SECONDS)
    killer = threading.Timer(
        random.uniform(3.0, 8.0), lambda: cluster.remove_node(node, allow_graceful=False)
    )
    killer.start()  # five workers, and two of them left after a while
    assert certified(cluster.address) == alone
    killer.join()


def test_what_workers_do_and_say(cluster):
    def refuse(number: int) -> int:
        raise ValueError(f"part {number} is wrong.")

    rows = RandomRows(states=60, actions=2, successors=4)

    def solved():
        return solve_sharded(rows, [0, 25, 60], discount=DISCOUNT, tolerance=1e-4)

    alone = solved()
    told = []
    with working_on(cluster.address, lambda done, total: told.append((done, total))):
        assert all_parts(pow, (2,), [(3,), (4,)]) == [8, 16]
        assert told == [(1, 2), (2, 2)]
        with pytest.raises(ValueError, match=r"^part 0 is wrong\.$"):
            all_parts(refuse, (), [(0,)])
        shared = solved()
    assert np.array_equal(shared.lower, alone.lower)
    assert np.array_equal(shared.chosen, alone.chosen)
    assert (shared.sweeps, shared.error_bound) == (alone.sweeps, alone.error_bound)
    assert shared.error_bound <= 1e-4


def test_a_run_is_verified_and_reported_by_workers(cluster, tmp_path):
    made = sf.run(replace(demo_settings(), draws=500), tmp_path / "run")
    report = tmp_path / "run" / "report.html"
    told = []

    def verdict(**given):
        return verify_run(made.folder, np.random.default_rng(0), **given)

    alone = verdict()
    assert alone.stands
    assert verdict(cluster=cluster.address, told=lambda *parts: told.append(parts)) == alone
    assert told
    told.clear()
    pages = []
    for given in ({}, {"cluster": cluster.address, "told": lambda *parts: told.append(parts)}):
        report_run(made.folder, **given)
        pages.append(report.read_bytes())
    assert pages[0] == pages[1]
    assert told
    assert verdict().stands


def test_declared_gpus_of_nodes_are_used(gpu_nodes, monkeypatch):
    from surefoot.solvers.gpu import choice, shared
    from surefoot.solvers.gpu.device import host_device

    device = host_device()
    monkeypatch.setattr(choice, "the_gpu", lambda: device)
    monkeypatch.setattr(shared, "PLATFORM", "cpu")
    counts = sf.machine_replacement().simulate(5, np.random.default_rng(0))
    posterior = sf.DirichletPosterior(counts)
    mdp = posterior.counts.to_mdp(discount=0.95, prior=1.0)
    policy = mdp.row_action[mdp.state_start[:-1]]

    def certificate(address=None):
        rng = np.random.default_rng(1)
        return sf.certify(
            policy, posterior, mdp, draws=300, delta=0.1, rng=rng, cluster=address, device="gpu"
        ).to_json()

    alone = certificate()
    assert certificate(gpu_nodes.address) == alone
    add_node(gpu_nodes)
    gpu_nodes.wait_for_nodes(JOIN_SECONDS)
    with pytest.raises(ValueError, match="has no GPU, and others have one"):
        certificate(gpu_nodes.address)
