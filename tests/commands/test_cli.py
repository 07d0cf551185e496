"""The command line: results, exit codes, one line per error, quiet and JSON output."""

import importlib
import json
import os
import subprocess
import sys

import pytest
import typer

import surefoot.cli
import surefoot.demo
from command_line import run
from surefoot.cli import app
from surefoot.commands import command, console
from surefoot.commands.catalogue import COMMANDS
from surefoot.commands.command import ExitCode, refusal
from surefoot.commands.console import Output
from surefoot.domains.catalogue import DOMAINS
from surefoot.model.files import read_mdp


@pytest.mark.parametrize(
    ("problem", "code", "line"),
    [
        (ValueError("delta is\nwrong"), 1, "surefoot: delta is wrong\n"),
        (FileNotFoundError(2, "No such file", "log.csv"), 1, "surefoot: log.csv: No such file\n"),
        (OSError(28, "No space left on device"), 1, "surefoot: No space left on device\n"),
        (ImportError("minari is missing"), 1, "surefoot: minari is missing\n"),
        (MemoryError(), 1, "surefoot: not enough memory.\n"),
        (KeyboardInterrupt(), 130, "surefoot: interrupted.\n"),
    ],
)
def test_expected_errors_are_one_line(capsys, monkeypatch, problem, code, line):
    def fail(*_arguments, **_options):
        raise problem

    monkeypatch.setattr(surefoot.demo, "demo_settings", fail)
    assert run(capsys, "demo", "-q") == (code, "", line)
    _, _, err = run(capsys, "demo", "-q", "--debug")
    assert err.endswith(line)
    assert ("Traceback" in err) == (code == 1)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["verify", "nowhere", "--json"], 1, "nowhere: there is no such folder."),
        (["--json", "verify", "nowhere"], 1, "nowhere: there is no such folder."),
        (["demo", "--jsn", "--json"], 2, "No such option: --jsn"),
    ],
)
def test_errors_under_json_are_json(capsys, arguments, code, said):
    found, out, err = run(capsys, *arguments)
    assert (found, err) == (code, "")
    content = json.loads(out)
    assert content["code"] == code
    assert said in content["error"]


def test_windows_is_refused_in_a_sentence(capsys, monkeypatch):
    refuse = refusal("nt", {})
    monkeypatch.setattr("surefoot.commands.command.refusal", lambda *_: refuse)
    code, out, err = run(capsys, "domains", "list")
    assert (code, out) == (1, "")
    assert err.startswith("surefoot: surefoot was never tested on Windows")
    assert json.loads(run(capsys, "domains", "list", "--json")[1])["code"] == 1


def test_names_do_not_steer_the_terminal(capsys):
    code, out, err = run(capsys, "verify", "no\x1b[31mwhere", "-q")
    assert (code, out) == (1, "")
    assert "\x1b" not in err
    assert "no\\x1b[31mwhere" in err
    Output().note("a\x1b]0;title\x07b")
    Output().result(None, "a\x9b1mb", console.table(("label",), [("c\x1bd",)]))
    shown = capsys.readouterr()
    assert not {"\x1b", "\x07", "\x9b"} & set(shown.out + shown.err)


def test_an_interrupt_while_loading_is_no_traceback():
    code = (
        "import runpy, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['surefoot', 'demo']\n"
        "runpy.run_module('surefoot', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "surefoot: interrupted.\n")


def test_an_unexpected_error_is_called_a_bug(capsys, monkeypatch):
    monkeypatch.setattr(surefoot.demo, "demo_settings", lambda *_a, **_k: 1 / 0)
    code, _, err = run(capsys, "demo", "-q")
    assert code == ExitCode.BUG
    assert "ZeroDivisionError" in err
    assert "this is a bug" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dmeo"], "surefoot: No such command 'dmeo'. Did you mean 'demo'? See 'surefoot --help'."),
        (["demo", "--jsn"], "No such option: --jsn"),
        (["demo", "now"], "unexpected extra argument"),
        (["domains", "export"], "Missing argument"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_no_command_shows_the_help(capsys):
    code, _, err = run(capsys)
    assert code == 2
    assert "Usage: surefoot" in err


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"surefoot {surefoot.cli.__version__}\n", "")


def test_every_command_takes_the_shared_options_and_has_help(capsys):
    commands = ["solve", "demo", "certify", "compare", "verify", "report", "inspect", "coverage"]
    for arguments in (*([name] for name in commands), ["domains", "list"], ["domains", "export"]):
        code, out, _ = run(capsys, *arguments, "--help")
        assert code == 0
        assert all(option in out for option in ("--json", "--quiet", "--debug"))


def test_help_fits_a_narrow_terminal_and_ends_with_examples(capsys):
    found = run(capsys, "--help")[1].split("Commands:")[1]
    commands = [line.split()[0] for line in found.splitlines() if line.startswith("  ")][:10]
    assert "..." not in found  # no line of the list is cut
    for name in commands:
        out = run(capsys, name, "--help")[1]
        assert max(map(len, out.splitlines())) <= 80
        assert "<" not in out  # no types of Python
        assert name == "domains" or f"    surefoot {name}" in out


def test_options_of_the_log_have_a_section_of_their_own(capsys):
    out = run(capsys, "solve", "--help")[1]
    sections = [line for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert sections[:4] == ["Arguments:", "Options:", "What is promised:", "Columns of the log:"]
    assert sections[-1] == "Every command:"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("surefoot so", ["solve"]),
        ("surefoot solve --basis f", ["frequentist"]),
        ("surefoot solve --min", ["--min-visits"]),
    ],
)
def test_the_shell_completes(typed, offered):
    words = typed.split()
    settings = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "surefoot"], capture_output=True, text=True, check=True,
        env=os.environ | settings | {"_SUREFOOT_COMPLETE": "complete_bash"},
    )  # fmt: skip
    assert done.stdout.split() == offered


def test_text_is_broken_between_words_on_a_terminal_only():
    sentence = "With 95% confidence the policy earns at least 165.35 and perhaps more."
    assert console.wrapped(sentence, None) == sentence
    lines = console.wrapped(sentence, 30).splitlines()
    assert " ".join(lines) == sentence
    assert max(map(len, lines)) <= 30
    block = console.wrapped(f"first\n{sentence}", 30).splitlines()
    assert block[2].startswith("  ")  # what continues a line of a list is indented
    path = "/a/very/long/path/without/any/space/report.html"
    assert console.wrapped(f"Report: {path}", 30).splitlines()[-1] == path


def test_domains_are_listed(capsys):
    code, out, _ = run(capsys, "domains", "list")
    assert code == 0
    assert all(name in out for name in DOMAINS)
    listed = json.loads(run(capsys, "domains", "list", "--json")[1])
    assert [domain["name"] for domain in listed] == list(DOMAINS)


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_a_domain_is_exported(capsys, tmp_path, ending):
    path = tmp_path / f"machine.{ending}"
    code, out, _ = run(capsys, "domains", "export", "machine", str(path))
    assert code == 0
    assert str(path) in out
    truth = DOMAINS["machine"].make().mdp
    assert read_mdp(path, discount=0.95).probability.tolist() == truth.probability.tolist()
    code, _, err = run(capsys, "domains", "export", "machine", str(path))
    assert code == 1
    assert "exists already" in err
    assert run(capsys, "domains", "export", "machine", str(path), "--force")[0] == 0


def test_an_unknown_domain_gets_the_nearest_name(capsys, tmp_path):
    code, _, err = run(capsys, "domains", "export", "machin", str(tmp_path / "m.csv"))
    assert code == 1
    assert "did you mean 'machine'?" in err


def test_help_imports_nothing_heavy():
    check = (
        "import sys; from surefoot.cli import main; main(['--help'])\n"
        "heavy = {'numpy', 'numba', 'duckdb', 'scipy', 'matplotlib', 'rich', 'lazy_loader',\n"
        "         'surefoot.pipeline.settings'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, stdout=subprocess.DEVNULL)


def shown_by(*arguments: str, columns: int = 80) -> str:
    return subprocess.run(
        [sys.executable, "-m", "surefoot", *arguments],
        env={**os.environ, "COLUMNS": str(columns)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("columns", [60, 80])
def test_the_help_needs_no_parser_and_is_the_one_the_parser_prints(columns, monkeypatch):
    quick = shown_by("--help", columns=columns)
    assert quick == shown_by("-h", columns=columns) == shown_by("--help", "-q", columns=columns)
    monkeypatch.setenv("COLUMNS", str(columns))
    group = typer.main.get_command(app)
    context = group.make_context("surefoot", ["solve"])
    formatter = context.make_formatter()
    group.format_options(context, formatter)  # what the parser itself would say
    assert formatter.getvalue() in quick


def test_the_help_loads_no_parser():
    check = (
        "import sys; sys.argv = ['surefoot', '--help']\n"
        "from surefoot.__main__ import main; main()\n"
        "sys.exit('typer' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, stdout=subprocess.DEVNULL)


def test_the_catalogue_names_the_files_of_all_commands():
    known = typer.main.get_group(app).commands
    for name, (file, text) in COMMANDS.items():
        group = typer.Typer(callback=lambda: None)
        importlib.import_module(f"surefoot.commands.{file}").register(group)
        made = set(typer.main.get_group(group).commands)
        assert made == {other for other, (its, _) in COMMANDS.items() if its == file}
        assert known[name].get_short_help_str() == text


@pytest.mark.parametrize("given", [["domains", "list"], ["--help"], ["-h"], ["solve", "-h"]])
def test_a_reader_that_goes_away_is_no_error(given):
    with subprocess.Popen(
        [sys.executable, "-m", "surefoot", *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == ExitCode.BROKEN_PIPE


def test_stages_print_plain_lines_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(console.PlainStage, "EVERY", 0.0)
    with Output().stage("Counting", total=4) as stage:
        stage.update(1, "a quarter")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["Counting ...", "  25% a quarter"]
    assert lines[2].startswith("Counting: ")


def test_the_time_left_is_told_only_when_it_is_known():
    pace = console.Pace(30)
    # Half a minute of compiling before the first step, and again at the fifth.
    times = [30.0, 32.0, 34.0, 36.0, 70.0, 72.0, 74.0, 76.0]
    told = [pace.left(done, now) for done, now in enumerate(times, start=1)]
    assert told[:5] == [""] * 5
    assert told[5:] == ["about 48 s left", "about 46 s left", "about 44 s left"]
    assert console.Pace(None).left(3, 1.0) == ""
    nearly = console.Pace(10)
    assert [nearly.left(done, done / 10) for done in range(1, 11)] == [""] * 10


def test_stages_are_live_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Output().stage("Counting [1]", total=4) as stage:
        stage.update(1, "a quarter")
    assert "Counting [1]" in capsys.readouterr().err


def test_labels_are_never_markup(capsys):
    Output().result(None, console.table(("label",), [("[bold]x[/bold] :smile:",)]))
    assert "[bold]x[/bold] :smile:" in capsys.readouterr().out


def test_a_command_may_have_its_own_options(capsys):
    other = typer.Typer()
    other.callback()(lambda: None)
    seen = []

    @command.command(other, "try")
    def attempt(output: Output, times: int = 2) -> None:
        """Try."""
        seen.append((output.json, times))

    assert command.run_app(other, ["try", "--times", "3", "--json"]) == ExitCode.OK
    assert seen == [(True, 3)]
    assert app is not other


def test_the_first_run_says_why_it_takes_longer(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("surefoot.pipeline.kernel_warmup.cache_directory", lambda: tmp_path)
    command.announce_compiling(Output())
    assert "First run" in capsys.readouterr().err
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "f.nbc").touch()
    command.announce_compiling(Output())
    assert capsys.readouterr().err == ""
