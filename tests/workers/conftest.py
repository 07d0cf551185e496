"""Several Ray nodes on this machine, started once for all tests of this folder."""

import os

import pytest
from benchmarks.cluster_kills import JOIN_SECONDS, add_node, start_cluster

from requirements import lacking
from surefoot.certificates import curse, limit, shared_batches
from surefoot.solvers.evaluation import engines

os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  (Ray spells it so)
os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"


def _started(nodes):
    try:
        return start_cluster(nodes)
    except ImportError as problem:
        lacking("cluster", f"Ray is not installed ({problem})")


@pytest.fixture(scope="session")
def cluster():
    """A head, and one node of one CPU; tests may add others."""
    made = _started(1)
    yield made
    made.shutdown()


@pytest.fixture
def gpu_nodes():
    """A head, and a node that declares a GPU."""
    made = _started(0)
    add_node(made, gpus=1)
    made.wait_for_nodes(JOIN_SECONDS)
    yield made
    made.shutdown()


@pytest.fixture
def small_jobs_shared(monkeypatch):
    """Let workers have even the smallest jobs."""
    monkeypatch.setattr(engines, "FIRST_DRAWS", 16)
    monkeypatch.setattr(engines, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(engines, "PART_SECONDS", 0.0)
    monkeypatch.setattr(shared_batches, "SHARED_WORK", 0.0)
    monkeypatch.setattr(limit, "SHARED_WORK", 0.0)
    monkeypatch.setattr(curse, "SHARED_ROWS", 0)
