"""``surefoot doctor``: what this machine offers."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from surefoot.cli import main
from surefoot.pipeline import machine
from surefoot.pipeline.machine import Machine
from surefoot.solvers.gpu import device


def test_facts_of_this_machine(capsys):
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert 1 <= facts["cores"] <= facts["all_cores"]
    assert 0 < facts["free_memory"] <= facts["memory"]
    assert set(facts["extras"]) >= {"excel", "mcmc", "rl"}
    assert Path(facts["kernel_cache"]["folder"]).is_dir()
    assert facts["solve_entries"] > facts["run_entries"] >= 0


def test_it_reads_as_a_list(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for word in ("cores", "memory", "GPU", "kernels", "extra", "a whole run", "An entry is"):
        assert word in out


@pytest.fixture
def bare(monkeypatch):
    """A machine without GPU, with an extra that is not installed and an empty cache."""
    found = Machine(
        cores=2, all_cores=8, memory=None, free_memory=None, gpus=(),
        extras={"rl": ("gymnasium",)}, cache=Path("nowhere"), kernels=0, cache_bytes=0,
    )  # fmt: skip
    monkeypatch.setattr(Machine, "here", classmethod(lambda cls: found))
    return found


@pytest.mark.usefixtures("bare")
def test_what_is_missing_is_said_with_its_remedy(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "2 of 8" in out
    assert "none found" in out
    assert "none compiled yet" in out
    assert "rl: lacks gymnasium; pip install 'surefoot[rl]'" in out
    assert "the system does not say" in out


def test_a_gpu_is_named_and_a_driver_that_hangs_is_left_alone(monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda _name: "/usr/bin/nvidia-smi")

    def answer(*_arguments, **_options):
        return subprocess.CompletedProcess([], 0, stdout="NVIDIA H200, 143771 MiB\n")

    def hang(*_arguments, **options):
        raise subprocess.TimeoutExpired("nvidia-smi", options["timeout"])

    monkeypatch.setattr(machine.subprocess, "run", answer)
    assert machine._gpus() == ("NVIDIA H200, 143771 MiB",)
    monkeypatch.setattr(machine.subprocess, "run", hang)
    assert machine._gpus() == ()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (device.Device(name="H200", memory=100 * 2**30, handle=None), "100.0 GB of it used for"),
        (None, "not seen by JAX: pip install 'surefoot[gpu]'"),
        (TimeoutError("its driver may hang"), "(its driver may hang)"),
    ],
)
def test_what_a_gpu_is_good_for_is_told(found, words, bare, capsys, monkeypatch):
    def find():
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(Machine, "here", lambda: replace(bare, gpus=("NVIDIA H200, 143771 MiB",)))
    monkeypatch.setattr(device, "find_gpu", find)
    assert main(["doctor"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "NVIDIA H200, 143771 MiB" in told
    assert words in told


def test_the_limit_of_a_container_counts(monkeypatch):
    numbers = {"memory.max": 4 * 2**30, "memory.current": 2**30}
    monkeypatch.setattr(machine, "_number", lambda path: numbers[path.name])
    monkeypatch.setattr(machine, "_system_memory", lambda: (16 * 2**30, 8 * 2**30))
    assert machine.machine_memory() == (4 * 2**30, 3 * 2**30)


def test_a_run_says_what_memory_it_needs_and_is_refused_where_there_is_too_little():
    large, gb = 2 * 10**6, 2**30
    need = machine.run_memory(large)
    assert machine.memory_words(1000, 4 * gb, 2 * gb) == ""
    assert "3.0 GB are free" in machine.memory_words(large, 8 * gb, 3 * gb)
    assert "only 1.0 GB are free" in machine.memory_words(large, 8 * gb, gb)
    assert machine.memory_words(large, None, None).endswith("of memory.")
    with pytest.raises(ValueError, match=r"this machine has 2.0 GB.*fewer states"):
        machine.memory_words(large, 2 * gb, gb)
    offered = machine.Machine(
        cores=1, all_cores=1, memory=need, free_memory=need, gpus=(), extras={}, kernels=0,
        cache=machine.Path(), cache_bytes=0,
    )  # fmt: skip
    assert offered.run_entries == large
