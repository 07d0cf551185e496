"""Several Ray nodes on this machine, started once for all tests of this folder."""

import os

import pytest

from requirements import lacking
from surefoot.certificates import curse, pieces, upper
from surefoot.solvers.evaluation import engines

os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  (Ray spells it so)
os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
STORE = 100 * 2**20


def started(nodes: int):
    """Start a head without CPUs and some nodes of one CPU each."""
    try:
        from ray.cluster_utils import Cluster
    except ImportError as problem:
        lacking("cluster", f"Ray is not installed ({problem})")
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False},
    )
    for _ in range(nodes):
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    return cluster


@pytest.fixture(scope="session")
def cluster():
    """A head, and one node of one CPU; tests may add others."""
    made = started(1)
    yield made
    made.shutdown()


@pytest.fixture
def small_jobs_shared(monkeypatch):
    """Let workers have even the smallest jobs."""
    monkeypatch.setattr(engines, "FIRST_DRAWS", 16)
    monkeypatch.setattr(engines, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(engines, "PART_SECONDS", 0.0)
    monkeypatch.setattr(pieces, "SHARED_WORK", 0.0)
    monkeypatch.setattr(upper, "SHARED_WORK", 0.0)
    monkeypatch.setattr(curse, "SHARED_ROWS", 0)
