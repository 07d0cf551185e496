"""Which device computes, and what is said where it cannot."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot import (
    AmbiguitySet,
    Certificate,
    Counts,
    DirichletPosterior,
    Settings,
    certify,
    garnet,
    read_mdp,
    read_transitions,
    riverswim,
    solve,
    verify,
)
from surefoot.gpu import build
from surefoot.solvers.evaluation.engines import CORES
from surefoot.solvers.gpu import choice, device
from surefoot.solvers.gpu.choice import choose_engine, solves_on_device
from surefoot.solvers.gpu.device import Device, check_memory, the_gpu
from surefoot.solvers.gpu.engine import DeviceEngine
from surefoot.solvers.gpu.tiles import MOST_TILES, lay_out

COUNTS = riverswim().simulate(20, np.random.default_rng(0))
POSTERIOR = DirichletPosterior(COUNTS)
MODEL = COUNTS.to_mdp(discount=0.9, prior=1.0)


def test_without_a_gpu_auto_is_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "PAYING_ENTRIES", 1)
    monkeypatch.setattr(choice, "find_gpu", lambda: None)
    assert choose_engine("auto", MODEL, POSTERIOR) == (CORES, ())
    assert not solves_on_device("auto", MODEL, None, None)


def test_auto_takes_a_gpu_where_it_pays(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "gpu_here", lambda: True)
    monkeypatch.setattr(choice, "find_gpu", lambda: device)
    assert choose_engine("auto", MODEL, POSTERIOR).engine is CORES  # too small
    monkeypatch.setattr(choice, "PAYING_ENTRIES", MODEL.num_entries)
    chosen = choose_engine("auto", MODEL, POSTERIOR)
    assert isinstance(chosen.engine, DeviceEngine)
    assert chosen.on_device
    assert "cpu" in chosen.findings[0].text
    assert choose_engine("cpu", MODEL, POSTERIOR).engine is CORES
    assert choose_engine("auto", MODEL.over(5), POSTERIOR).engine is CORES
    monkeypatch.setattr(choice, "SOLVED_ENTRIES", MODEL.num_entries)
    assert solves_on_device("auto", MODEL, None, None)
    assert not solves_on_device("auto", MODEL, None, "policy_iteration")


def test_a_gpu_that_is_asked_for_is_there_or_missed() -> None:
    if device.find_gpu() is not None:
        pytest.skip("this machine has a GPU")
    with pytest.raises(ValueError, match=r"JAX .* finds no GPU here \(only cpu\)"):
        solve(MODEL, device="gpu")
    with pytest.raises(ValueError, match="finds no GPU"):
        certify([1] * 6, POSTERIOR, MODEL, rng=np.random.default_rng(0), device="gpu")


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_gpu", lambda: None)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"pip install 'surefoot\[gpu\]'"):
        the_gpu()


def test_a_driver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(device, "DRIVER_SECONDS", 0.01)
    monkeypatch.setattr(device, "_first_gpu", over.wait)
    device.find_gpu.cache_clear()
    with pytest.raises(TimeoutError, match=r"its driver may hang.*or use device='cpu'"):
        the_gpu()
    over.set()


def test_what_a_gpu_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="a horizon is evaluated on the cores only"):
        choose_engine("gpu", MODEL.over(3), POSTERIOR)
    kl = AmbiguitySet.from_arrays(MODEL, norm="kl", budget=0.1)
    with pytest.raises(ValueError, match="kl sets are solved on the cores only"):
        solve(MODEL, kl, device="gpu")
    with pytest.raises(ValueError, match="'policy_iteration' runs on the cores only"):
        solve(MODEL, algorithm="policy_iteration", device="gpu")
    with pytest.raises(ValueError, match="choose one of 'auto', 'cpu', 'gpu'"):
        solve(MODEL, device="tpu")
    with pytest.raises(ValueError, match="choose one of auto, cpu, gpu"):
        Settings(device="cuda")


def test_too_little_memory_is_said_with_figures(device: Device) -> None:
    tiny = replace(device, memory=2**20)
    with pytest.raises(MemoryError, match=r"needs at least 2\.0 GiB on the device, and cpu offers"):
        check_memory(tiny, 2**31, "this model")


def test_few_tiles_hold_every_entry_once() -> None:
    rng = np.random.default_rng(0)
    actions = rng.integers(1, 5, 200)
    state_rows = np.concatenate(([0], np.cumsum(actions)))
    lengths = rng.integers(1, 200, state_rows[-1])
    row_start = np.concatenate(([0], np.cumsum(lengths)))
    successor = rng.integers(0, 200, row_start[-1])
    tiling = lay_out(state_rows, row_start, successor, None)
    assert len(tiling.tiles) <= MOST_TILES
    entries = np.concatenate([tile.entry[tile.entry >= 0] for tile in tiling.tiles])
    np.testing.assert_array_equal(np.sort(entries), np.arange(row_start[-1]))
    for tile in tiling.tiles:
        there = tile.entry >= 0
        np.testing.assert_array_equal(
            tiling.order[tile.target[there]], successor[tile.entry[there]]
        )
    assert tiling.longest == lengths.max()


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "llvmlite", "duckdb", "lazy_loader", "typer", "rich"}:
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
from surefoot.solvers import solver
from surefoot.solvers.gpu import choice, device
host = device.host_device()
for module in (choice, solver, device):
    module.the_gpu = module.find_gpu = lambda: host
from surefoot.gpu import main
sys.exit(main(sys.argv[1:]))
"""


NOISY = {
    "state": [0, 0, 0, 1, 1, 2, 2, 2, 0, 1] * 6,
    "action": [0, 1, 0, 0, 1, 1, 0, 1, 1, 0] * 6,
    "next_state": [1, 0, 1, 2, 0, 2, 1, 0, 2, 1] * 5 + [0] * 10,
    "reward": np.linspace(0.0, 1.0, 60).round(2).tolist(),
}


@pytest.mark.parametrize("prior", [None, 1.0])
def test_from_counts_to_a_promise_without_numba_and_duckdb(
    prior: float | None, tmp_path: Path
) -> None:
    """The prior that is learned too, with rare events and uncertain rewards; believed at home."""
    counts = read_transitions(NOISY) if prior is None else garnet(
        5, 2, 3, discount=0.7, rng=np.random.default_rng(0)
    ).simulate(9, np.random.default_rng(1))  # fmt: skip
    counts.save(tmp_path / "counts.npz")
    asked = [str(tmp_path / "counts.npz"), "--discount", "0.7", "--draws", "200"]
    asked += ["--out", str(tmp_path / "out")] + ([] if prior is None else ["--prior", str(prior)])
    told = subprocess.run(
        [sys.executable, "-c", BLOCKED, *asked],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "With 95% confidence" in told.stdout
    certificate = Certificate.load(tmp_path / "out" / "certificate.json")
    posterior, here = build(Counts.load(tmp_path / "counts.npz"), 0.7, prior)
    mdp = read_mdp(tmp_path / "out" / "model.npz")
    np.testing.assert_allclose(mdp.probability, here.probability, rtol=1e-12)
    assert verify(certificate, posterior, mdp, rng=np.random.default_rng(1)).stands
    assert (tmp_path / "out" / "policy.csv").read_text().startswith("state,action\n0,")
