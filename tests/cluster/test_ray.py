"""With a cluster, with whatever workers and faults: the answer of one process, bit for bit."""

import threading
import time

import numpy as np
import pytest

import surefoot as sf
from surefoot._workers import all_parts, working_on
from surefoot.certificates import models, upper
from surefoot.solvers.evaluation import engines


@pytest.fixture(autouse=True)
def everything_is_worth_sharing(monkeypatch):
    monkeypatch.setattr(engines, "FIRST_DRAWS", 16)
    monkeypatch.setattr(engines, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(engines, "PART_SECONDS", 0.0)
    monkeypatch.setattr(models, "SHARED_WORK", 0.0)
    monkeypatch.setattr(upper, "SHARED_WORK", 0.0)


def certified(cluster=None):
    counts = sf.machine_replacement().simulate(5, np.random.default_rng(0))
    posterior = sf.DirichletPosterior(counts)
    mdp = posterior.counts.to_mdp(discount=0.95, prior=1.0)
    made = sf.optimize(
        posterior, mdp, draws=300, delta=0.1, rng=np.random.default_rng(1), cluster=cluster
    )
    return made.certificate.to_json(), [one.percentile for one in made.candidates]


def test_the_answer_is_that_of_one_process(cluster):
    alone = certified()
    assert certified(cluster.address) == alone
    node = cluster.add_node(num_cpus=3, object_store_memory=100 * 2**20)
    try:
        assert certified(cluster.address) == alone
    finally:
        cluster.remove_node(node)


def test_a_node_that_dies_is_done_without(cluster):
    def slowly(number: int) -> int:
        time.sleep(0.3)
        return number**2

    node = cluster.add_node(num_cpus=2, object_store_memory=100 * 2**20)
    with working_on(cluster.address):
        killer = threading.Timer(1.0, lambda: cluster.remove_node(node, allow_graceful=False))
        killer.start()
        found = all_parts(slowly, (), [(k,) for k in range(16)])
        killer.join()
    assert found == [k**2 for k in range(16)]


def test_what_a_part_raises_is_raised_here(cluster):
    def refuse(number: int) -> int:
        raise ValueError(f"part {number} is wrong.")

    with working_on(cluster.address), pytest.raises(ValueError, match=r"^part 0 is wrong\.$"):
        all_parts(refuse, (), [(0,)])


def test_progress_comes_back(cluster):
    told = []
    with working_on(cluster.address, lambda done, total: told.append((done, total))):
        assert all_parts(pow, (2,), [(3,), (4,)]) == [8, 16]
    assert told == [(1, 2), (2, 2)]
