"""A run whose draws a GPU made, here and on a machine that has none."""

import json
from dataclasses import replace

import pytest

from surefoot import what_if
from surefoot.cli import main
from surefoot.demo import demo_settings
from surefoot.pipeline.finished_runs import verify_run
from surefoot.pipeline.runs import run
from surefoot.solvers import solver
from surefoot.solvers.gpu import choice
from surefoot.solvers.gpu.device import find_gpu, host_device
from surefoot.solvers.gpu.philox import NAME


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that found a GPU, which was the CPU of this machine."""
    device = host_device()
    with pytest.MonkeyPatch.context() as patch:
        for module in (choice, solver):
            patch.setattr(module, "the_gpu", lambda: device)
        settings = replace(demo_settings(), draws=300, device="gpu")
        return run(settings, tmp_path_factory.mktemp("gpu") / "run")


def told(capsys, *arguments):
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_device_and_its_stream_are_recorded(made):
    assert made.certificate.stream == NAME
    assert made.certificate.has("on_device")
    assert 'device = "gpu"' in (made.folder / "config.toml").read_text()
    assert "repeated on the CPU" in (made.folder / "report.html").read_text()


def test_it_is_verified_and_asked_about_without_a_gpu(made, capsys):
    if find_gpu() is not None:
        pytest.skip("this machine has a GPU")
    code, verdict = told(capsys, "verify", str(made.folder))
    assert (code, verdict["stands"]) == (0, True)
    assert main(["report", str(made.folder)]) == 0
    capsys.readouterr()
    code, refused = told(capsys, "verify", str(made.folder), "--device", "gpu")
    assert code == 1
    assert "finds no GPU here" in refused["error"]
    code, refused = told(capsys, "what-if", str(made.folder), "--delta", "0.1")
    assert code == 1
    assert "finds no GPU here" in refused["error"]
    own, other = what_if(made, delta=[0.1], device="cpu").lines
    assert other.certificate.stream == "philox 1"
    assert other.certificate.promise > own.certificate.promise
    with pytest.raises(ValueError, match="choose one of 'auto', 'cpu', 'gpu'"):
        verify_run(made.folder, device="tpu")


@pytest.mark.parametrize(
    "command",
    [
        "solve --config RUN/config.toml --out OUT",
        "certify RUN --policy RUN/policy.csv",
        "compare RUN --policy RUN/policy.csv",
    ],
)
def test_every_command_says_that_there_is_no_gpu(command, made, tmp_path, capsys):
    if find_gpu() is not None:
        pytest.skip("this machine has a GPU")
    asked = command.replace("RUN", str(made.folder)).replace("OUT", str(tmp_path / "out"))
    assert main([*asked.split(), "--device", "gpu"]) == 1
    told = capsys.readouterr().err
    assert "--device gpu, but JAX" in told
    assert "use --device cpu" in told


def test_a_verdict_says_where_its_draws_were_made(made, monkeypatch):
    device = host_device()
    monkeypatch.setattr(choice, "the_gpu", lambda: device)
    verdict = verify_run(made.folder, device="gpu")
    assert verdict.stands
    assert f"new draws on {device.name}" in verdict.message
