"""The command line as tests call it."""

from surefoot.cli import main


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, what it printed and what it said on standard error."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err
