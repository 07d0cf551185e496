"""How a command runs: shared options, exit codes, expected errors as one line."""

import functools
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from surefoot._display import reason_of
from surefoot.commands.catalogue import OPTIONS
from surefoot.commands.console import Output, drop_output


class ExitCode(IntEnum):
    """The exit codes of commands."""

    OK = 0
    BAD_INPUT = 1
    USAGE = 2
    NOT_VERIFIED = 3
    DOUBTFUL = 4
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


SHARED = "Every command"
"""Title of the options that all commands have."""


def _flag(names: str) -> Any:
    spelled = names.split(", ")
    return Annotated[bool, typer.Option(*spelled, help=OPTIONS[names], rich_help_panel=SHARED)]


Json = _flag("--json")
Quiet = _flag("-q, --quiet")
Debug = _flag("--debug")


class Sectioned(TyperCommand):
    """A command whose help lists its options in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the command's own options, each section, then the shared options."""
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            title = getattr(parameter, "rich_help_panel", None) or "Options"
            if parameter.param_type_name == "argument":
                title, record = "Arguments", (record[0].split()[0], record[1])
            elif parameter.name == "help":
                title = SHARED
            sections.setdefault(title, []).append(record)
        shared = sections.pop(SHARED, [])
        for title, records in (*sections.items(), (SHARED, shared)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def examples(*lines: str) -> str:
    """Return the examples at the end of a command's help."""
    return "\n".join([f"Example{'s' if len(lines) > 1 else ''}:\n\n\b", *(f"  {e}" for e in lines)])


def command(
    group: typer.Typer, name: str | None = None, **options: Any
) -> Callable[[Callable[..., ExitCode | None]], Callable[..., ExitCode]]:
    """Add a command that also takes the shared options; its first argument is an `Output`.

    The function returns an exit code, or None for success. An error that it raises for bad input
    is printed as one line.
    """

    def decorate(function: Callable[..., ExitCode | None]) -> Callable[..., ExitCode]:
        @functools.wraps(function)
        def run(
            context: typer.Context, *, json: bool, quiet: bool, debug: bool, **given: Any
        ) -> ExitCode:
            before: Output = context.obj or Output()
            output = replace(
                before,
                json=before.json or json,
                quiet=before.quiet or quiet,
                debug=before.debug or debug,
            )
            return guarded(output, lambda: function(output, **given))

        _set_signature(run, function)
        group.command(name, cls=Sectioned, **options)(run)
        return run

    return decorate


def _set_signature(run: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Give ``run`` the parameters of ``function`` and the shared options, for typer to read."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(function).parameters.values())[1:]  # without the Output
    shared = {"json": Json, "quiet": Quiet, "debug": Debug}
    parameters = [
        inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        ),
        *(parameter.replace(kind=keyword) for parameter in own),
        *(inspect.Parameter(n, keyword, default=False, annotation=a) for n, a in shared.items()),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def guarded(output: Output, job: Callable[[], ExitCode | None]) -> ExitCode:
    """Run a job; turn errors into one line and an exit code."""
    try:
        code = job()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _complain(output, "interrupted.", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        drop_output()
        return ExitCode.BROKEN_PIPE
    except (ValueError, OSError, ImportError, MemoryError) as problem:
        if output.debug:
            traceback.print_exc()
        from surefoot.pipeline.option_text import as_options

        return _complain(output, as_options(one_line(problem)), ExitCode.BAD_INPUT)
    except Exception:
        traceback.print_exc()
        return _complain(
            output, "this is a bug; please report it with the lines above.", ExitCode.BUG
        )
    return ExitCode.OK if code is None else code


def _complain(output: Output, message: str, code: ExitCode) -> ExitCode:
    output.error(message, code)
    return code


def one_line(problem: BaseException) -> str:
    r"""Return an error as one readable line.

    Examples
    --------
    >>> one_line(ValueError("two\nlines"))
    'two lines'
    >>> one_line(PermissionError(13, "Permission denied", "log.csv"))
    'log.csv: Permission denied'
    """
    if isinstance(problem, OSError) and problem.strerror:
        place = f"{problem.filename}: " if problem.filename else ""
        return f"{place}{problem.strerror}"
    if isinstance(problem, MemoryError):
        return "not enough memory."
    return reason_of(problem)


def announce_compiling(output: Output) -> None:
    """Explain why the first run takes longer than later ones."""
    from surefoot.pipeline.kernel_warmup import is_cold

    if is_cold():
        output.note("First run: the numerical kernels are compiled now, once (half a minute).")


def check_new(path: Path | None, *, force: bool) -> None:
    """Refuse to overwrite an existing file or folder, unless ``force``."""
    if path is not None and path.exists() and not force:
        raise FileExistsError(f"{path} exists already. Choose another name, or pass --force.")


def refusal(system: str, environment: Mapping[str, str]) -> str:
    """Return why the commands do not run on a system (``os.name``); "" if they do.

    Examples
    --------
    >>> refusal("posix", {}), refusal("nt", {"SUREFOOT_UNTESTED": "1"}), refusal("nt", {})[:24]
    ('', '', 'surefoot was never teste')
    """
    if system == "posix" or environment.get("SUREFOOT_UNTESTED"):
        return ""
    return (
        f"surefoot was never tested on {'Windows' if system == 'nt' else system}, where nothing "
        "prevents two runs from writing into the same folder. Use WSL, or set SUREFOOT_UNTESTED=1 "
        "to try it anyway."
    )


def run_app(app: typer.Typer, arguments: Sequence[str] | None = None) -> ExitCode:
    """Parse the arguments, run the command, return the exit code; a usage error is one line."""
    given = sys.argv[1:] if arguments is None else arguments
    output = Output(json="--json" in given)  # for errors before a command has its own
    if why := refusal(os.name, os.environ):
        return _complain(output, why, ExitCode.BAD_INPUT)
    try:
        code = app(arguments, prog_name="surefoot", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return _complain(output, "interrupted.", ExitCode.INTERRUPTED)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # the reader closed the pipe of --help
            return ExitCode.BROKEN_PIPE
        raise  # shell completion ends like this
    except Exception as problem:
        # The parser's errors have no public name in all versions of typer, but this method has.
        if not hasattr(problem, "format_message"):
            raise
        return _complain_about_usage(output, problem)
    return ExitCode(code or 0)


def _complain_about_usage(output: Output, problem: Any) -> ExitCode:
    message = problem.format_message()
    if "\n" in message:  # no command given: the message is the whole help
        print(message, file=sys.stderr)  # noqa: T201
        return ExitCode.USAGE
    context = getattr(problem, "ctx", None)
    place = context.command_path if context else "surefoot"
    ending = "" if message[-1] in ".?" else "."
    return _complain(output, f"{message}{ending} See '{place} --help'.", ExitCode.USAGE)
