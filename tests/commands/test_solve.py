"""Commands on logs and runs: one line from a log to a promise, one line per mistake."""

import json
import shutil
from pathlib import Path

import pytest

from command_line import run
from surefoot import Certificate, Finding, demo
from surefoot.cli import main
from surefoot.commands.command import ExitCode
from surefoot.pipeline import folder
from surefoot.pipeline.folder import FILES
from surefoot.pipeline.manifest import EPISODES, PARTS

COLUMNS = (
    "--state condition --action decision --reward profit --episode machine --step week".split()  # noqa: SIM905
)
PROMISE = ["--discount", "0.95", "--draws", "600", "--eta", "0.01"]
LEFT = sorted([*FILES, PARTS, EPISODES])
"""The files of a run folder."""


def solve(capsys, out: Path, *more: object) -> tuple[int, str, str]:
    return run(capsys, "solve", demo.log_path(), *COLUMNS, *PROMISE, "--out", out, *more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["solve", str(demo.log_path()), *COLUMNS, *PROMISE, "--out", str(out), "-q"]) == 0
    return out


def test_solve_goes_from_a_log_to_a_report(capsys, tmp_path):
    code, out, err = solve(capsys, tmp_path / "run")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(
        [*FILES, PARTS, EPISODES]
    )
    assert "4,160 rows" in err
    assert "20 of 20 state-action pairs tried" in err
    assert "Time: Reading the log" in err
    assert "%)" in err
    assert "most memory used" in err
    held_out, luck, done, doubt, split, rule, promise, gain, where = [
        line for line in out.splitlines() if line
    ]
    assert held_out.startswith("Note: A held-out half of the log is consistent with the model")
    assert luck.startswith("Note: The policy was chosen and evaluated on the same data")
    assert done.startswith("Note: What was done in the log earned")
    assert doubt.startswith("Note: If the averages of the log were exact")
    assert split.startswith("Note: A true split (--honest)")
    assert rule.startswith("The rule: repair in ")
    assert promise.startswith("With 95% confidence")
    assert "more than what was done in the log" in gain
    assert where == f"Report: {tmp_path / 'run' / 'report.html'} (all files are in {tmp_path}/run)"
    assert promise in (tmp_path / "run" / "log.txt").read_text()


def test_solve_as_json_says_the_same(capsys, tmp_path, made):
    code, out, err = solve(capsys, tmp_path / "run", "--json")
    facts = json.loads(out)
    assert (code, err) == (0, "")
    stored = json.loads((made / "certificate.json").read_text())
    assert facts["lower_bound"] == stored["lower_bound"]
    assert facts["folder"] == str(tmp_path / "run")


def test_options_override_the_configuration_file(capsys, tmp_path):
    config = tmp_path / "my.toml"
    config.write_text(
        f'log = "{demo.log_path()}"\nstate = "condition"\naction = ["decision"]\n'
        'reward = "profit"\nepisode = "machine"\nstep = "week"\n'
        "discount = 0.5\ndelta = 0.2\ndraws = 600\neta = 0.01\n"
    )
    code, out, _ = run(
        capsys, "solve", "--config", config, "--discount", 0.6, "--out", tmp_path / "r", "--json"
    )
    assert code == 0
    assert json.loads(out)["delta"] == 0.2
    assert "discount = 0.6" in (tmp_path / "r" / "config.toml").read_text()


def test_a_log_is_added(capsys, tmp_path, made):
    out = tmp_path / "two"
    code, _, err = run(capsys, "solve", demo.log_path(), "--add", made, "--out", out)
    assert code == 0
    assert "8,320 rows" in err
    assert "No difference between the old and the new data" in err


def test_verify_has_its_own_exit_code(capsys, tmp_path, made):
    code, out, _ = run(capsys, "verify", made)
    assert code == 0
    assert "The certificate stands" in out
    for name in LEFT:
        (tmp_path / name).write_bytes((made / name).read_bytes())
    content = json.loads((tmp_path / "certificate.json").read_text())
    content["lower_bound"] += 20
    (tmp_path / "certificate.json").write_text(json.dumps(content))
    code, out, _ = run(capsys, "verify", tmp_path)
    assert code == ExitCode.NOT_VERIFIED == 3
    assert "does not stand" in out


def test_a_run_repeats_itself_with_its_own_copies(capsys, tmp_path):
    allowed = tmp_path / "mine.csv"
    allowed.write_text(
        "state,action\n" + "".join(f"{name},repair\n{name},run\n" for name in demo.CONDITIONS)
    )
    assert solve(capsys, tmp_path / "run", "--allowed", allowed, "-q")[0] == 0
    allowed.unlink()
    again = ["--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "again", "-q"]
    assert run(capsys, "solve", *again)[0] == 0
    for name in ("certificate.json", "policy.csv", "candidates.csv", "inputs/allowed.csv"):
        one, other = (tmp_path / folder / name for folder in ("run", "again"))
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", ["rewards", "costs_bounded", "costs_frequentist"])
def test_verify_of_version_0_1_is_bad_input(capsys, name):
    old = Path(__file__).parents[1] / "fixtures" / "version_0_1" / name
    code, _, err = run(capsys, "verify", old, "-q")
    assert code == 1
    assert "has no manifest.json (version 0.1 wrote none)" in err


def test_a_run_of_version_0_1_is_added(capsys, tmp_path):
    old = Path(__file__).parents[1] / "fixtures" / "version_0_1" / "rewards"
    code, _, err = run(
        capsys, "solve", demo.log_path(), "--add", old, "--draws", 600, "--out", tmp_path / "two"
    )
    assert code == 0
    assert "8,280 transitions" in err or "8,320 rows" in err


def test_the_report_is_written_again(capsys, made):
    before = (made / "report.html").read_text()
    (made / "report.html").unlink()
    assert run(capsys, "report", made)[0] == 0
    assert (made / "report.html").read_text() == before


def test_certify_a_policy_from_a_log_and_from_a_run(capsys, tmp_path, made):
    policy = tmp_path / "mine.csv"
    policy.write_text(
        "state,action\n" + "".join(f"{name},repair\n" for name in demo.CONDITIONS[:8])
        + "long repair,repair\nshort repair,run\n"
    )  # fmt: skip
    certificate = tmp_path / "c.json"
    log = [demo.log_path(), *COLUMNS, *PROMISE]
    code, out, _ = run(capsys, "certify", *log, "--policy", policy, "--out", certificate)
    assert code == 0
    assert "With 95% confidence" in out
    stored = json.loads(certificate.read_text())
    assert stored["robust_return"] < stored["lower_bound"]
    code, out, _ = run(capsys, "certify", made, "--policy", policy, "--json")
    assert json.loads(out)["lower_bound"] == stored["lower_bound"]
    code, _, err = run(capsys, "certify", made, "--policy", policy, "--out", certificate)
    assert (code, "exists already" in err) == (1, True)
    code, out, _ = run(capsys, "compare", made, "--policy", made, "--with", policy, "--json")
    assert json.loads(out)["lower_bound"] > 0
    code, out, _ = run(capsys, "compare", made, "--policy", policy, "-q")
    assert f"{policy} earns at most" in out


def test_a_run_that_failed_a_check_certifies_no_other_policy(capsys, tmp_path, made):
    other = tmp_path / "run"
    shutil.copytree(made, other)
    stored = Certificate.load(other / "certificate.json")
    assert not stored.withheld
    failed = Finding.of("backtest_steps_worse", p_value=0.001, short=1.0)
    stored.adding(failed).save(other / "certificate.json")
    _, sound, _ = run(capsys, "certify", made, "--policy", made)
    _, certified, _ = run(capsys, "certify", other, "--policy", made)
    _, compared, _ = run(capsys, "compare", other, "--policy", made)
    assert "NOT CERTIFIED" not in sound
    assert "that the policy was chosen without this log" in sound
    assert certified.startswith("NOT CERTIFIED")
    assert compared.startswith("NOT CERTIFIED")


def test_a_policy_compared_with_itself_makes_no_difference(capsys, made):
    same = ["--policy", made, "--with", made / "policy.csv"]
    code, out, _ = run(capsys, "compare", made, *same, "-q")
    assert code == 0
    assert "There is no difference" in out


def test_inspect_shows_the_log(capsys):
    code, out, _ = run(capsys, "inspect", demo.log_path(), *COLUMNS)
    assert code == 0
    assert "tries per pair" in out
    facts = json.loads(run(capsys, "inspect", demo.log_path(), *COLUMNS, "--json")[1])
    assert (facts["states"], facts["actions"], facts["episodes"]) == (10, 2, 40)


def test_coverage_counts_broken_promises(capsys):
    arguments = "--domain riverswim --replications 3 --draws 500 --delta 0.2".split()  # noqa: SIM905
    code, out, _ = run(capsys, "coverage", *arguments, "--json")
    (facts,) = json.loads(out)
    assert code == 0
    assert (facts["replications"], facts["holds"]) == (3, True)
    assert "broken promises" in run(capsys, "coverage", *arguments)[1]


def test_the_demo_leaves_a_report(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "demo")
    assert code == 0
    assert "With 95% confidence" in out
    assert out.rstrip().splitlines()[-1].startswith("Report: surefoot-demo/report.html")
    assert Path("surefoot-demo/report.html").is_file()
    assert "filling machines" in err
    assert "\x1b" not in out + err  # not a terminal: no colours, no cursor movements
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme.split("```console\n")[1].split("```")[0]
    assert shown.split() == out.split()  # the README shows what is printed


def test_the_bundled_log_is_what_the_demo_makes(tmp_path):
    demo.write_log(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_bytes() == demo.log_path().read_bytes()


def test_stopping_early_is_fine_unless_strict(capsys, tmp_path):
    code, out, _ = solve(capsys, tmp_path / "run", "--time-budget", 0, "--strict")
    assert code == ExitCode.DOUBTFUL == 4
    assert solve(capsys, tmp_path / "two", "--time-budget", 0)[0] == 0
    assert "The time budget ended the search" in out


def test_a_promise_taken_back_is_fine_unless_strict(capsys, tmp_path):
    """The second step of an episode depends on its first one: the state lacks something."""
    lines = ["episode,step,state,action,reward,next_state"]
    for i in range(200):
        came = "xy"[i % 2]
        lines.append(f"{i},0,{came},go,0,middle")
        lines.append(f"{i},1,middle,{'ab'[i // 2 % 2]},{i % 2},{came}")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = ["--episode", "episode", "--step", "step", "--discount", 0.9, "--draws", 300]
    for more, wanted in (((), 0), (("--strict",), ExitCode.DOUBTFUL)):
        out = tmp_path / f"run{wanted}"
        code, told, _ = run(capsys, "solve", tmp_path / "log.csv", *asked, "--out", out, *more)
        assert code == wanted
        assert "NOT CERTIFIED" in told


LOG = "state,action,reward,next_state\nup,a,1,down\ndown,a,0,up\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "there is no such file"),
        (["log.csv", "--state", "sttae"], "Did you mean --state state?"),
        (["log.csv", "--discount", "2"], "--discount 2.0; it must be at least 0 and at most 1"),
        (["log.csv", "--delta", "0"], "--delta 0.0; it must be above 0"),
        (["log.csv", "--norm", "l11"], "Did you mean 'l1'?"),
        (["log.csv", "--support", "al"], "--support al; it must be"),
        (["log.csv", "--initial", "first"], "--initial first; it must be"),
        (["log.csv", "--allowed", "no.csv"], "no.csv: there is no such file"),
        (["log.csv", "--draws", "10"], "--draws 10; --delta 0.05 needs at least 135"),
        (["log.csv", "--draws", "1000000000000"], "--draws 1000000000000; it must be from 1 to"),
        (["log.csv", "--delta", "1e-300"], "--delta 1e-300 needs about 6.9e+300 draws"),
        (["log.csv", "--support", ""], "--support ''; it must not be empty"),
        (["log.csv", "--honest"], "--honest divides the log, and one of the parts would be"),
        (
            ["log.csv", "--reward", "gain"],
            "Name it with --reward, or give a table of rewards (--reward-table of a run)",
        ),
        (["log.csv", "--next-state", "after"], "Without one, --episode and --step say"),
        (["log.csv", "--reward-range", "2", "3"], "--reward-range 2.0 3.0, but the log holds"),
        (["log.csv", "--unvisited", "prior", "--support", "observed"], "--unvisited prior needs"),
        (["log.csv", "--out", "log.csv"], "log.csv is a file"),
        (["log.csv", "--out", "full"], "full exists already"),
        (["log.csv", "--out", "full", "--force"], "not a run folder, so it is not replaced"),
        (["log.csv", "--out", "no/run"], "the folder no does not exist"),
        (["log.csv", "--config", "no.toml"], "no.toml: there is no such file"),
        (["log.csv", "--config", "log.csv"], "not a TOML file"),
        (["log.csv", "--add", "full"], "full: this is not a run folder"),
        ([], "no log was given"),
        (["empty.csv"], "empty.csv"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    Path("empty.csv").write_text("")
    Path("full").mkdir()
    Path("full", "thing").touch()
    defaults = ["--discount", "0.9", "--out", "run"]
    code, out, err = run(capsys, "solve", *defaults, *arguments, "-q")
    assert code == 1
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "log.csv", "--out", "run"], "no discount was given"),
        (["solve", "log.csv", "--discount", "0.9"], "pass --out"),
        (["verify", "nowhere"], "nowhere: there is no such folder"),
        (["verify", "."], "not a finished run folder"),
        (["report", "nowhere"], "nowhere: there is no such folder"),
        (["certify", "log.csv", "--discount", "0.9", "--policy", "no.csv"], "no such file"),
        (["inspect", "log.csv", "--missing", "dorp"], "Did you mean 'drop'?"),
        (["coverage", "--domain", "machin"], "did you mean 'machine'?"),
    ],
)
def test_mistakes_of_other_commands(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    code, _, err = run(capsys, *arguments, "-q")
    assert code == 1
    assert message in err
    assert err.count("\n") == 1


def test_a_number_that_is_none_is_wrong_usage(capsys):
    code, _, err = run(capsys, "solve", "log.csv", "--delta", "small")
    assert code == ExitCode.USAGE
    assert err.count("\n") == 1


def test_a_full_disk_is_one_line_and_the_run_goes_on(capsys, tmp_path, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("surefoot.pipeline.runs.write_tables", full)
        code, _, err = solve(capsys, tmp_path / "run", "-q")
    assert code == 1
    assert err.count("\n") == 1
    assert "no space left on the disk" in err
    assert not (tmp_path / "run").exists()
    code, _, err = solve(capsys, tmp_path / "run")
    assert code == 0
    assert "Going on from an unfinished run" in err
    assert not folder.unfinished_name(tmp_path / "run").exists()


def test_an_old_run_is_replaced_on_request(capsys, tmp_path):
    out = tmp_path / "run"
    assert solve(capsys, out, "-q")[0] == 0
    assert solve(capsys, out, "-q")[0] == 1
    assert solve(capsys, out, "-q", "--seed", "1", "--force")[0] == 0
    assert "seed = 1" in (out / "config.toml").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
