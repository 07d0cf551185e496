"""The list of commands, and the help of ``surefoot`` itself that shows it.

Nothing slow is imported here: loading the parser would take most of the time that the help needs.
"""

import shutil
import textwrap
from collections.abc import Mapping

ABOUT = "From a log of decisions to a policy and a certified lower bound on its return."

OPTIONS = {
    "--json": "Print the result as JSON, nothing else.",
    "-q, --quiet": "Print the result only: no progress.",
    "--debug": "Show the traceback of an error.",
    "--version": "Show the version.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the "
    "installation.",
    "-h, --help": "Show this message and exit.",
}

COMMANDS: dict[str, tuple[str, str]] = {
    "solve": ("solve", "From a log to a policy, a promise and a report."),
    "demo": ("solve", "A complete job on a bundled log."),
    "inspect": ("inspect_log", "What a log holds, and what to worry about."),
    "certify": ("certify", "What may be promised about your own policy."),
    "compare": ("certify", "How much better one policy is than another."),
    "verify": ("verify", "Check the promise of a run again."),
    "report": ("report", "Write the report of a run again, or compare several."),
    "decide": ("decide", "What to do in a state, by the policy of a run."),
    "what-if": ("what_if", "What a run would promise with one setting changed."),
    "plan": ("plan", "Where the doubt comes from, and what to measure next."),
    "export": ("export", "The policy of a run as SQL or as a spreadsheet."),
    "coverage": ("coverage", "How often sentences are false where the truth is known."),
    "reproduce": ("reproduce", "The paper's tables, with the published numbers."),
    "doctor": ("doctor", "What this machine offers, and how large a model it can handle."),
    "domains": ("domains", "The benchmark domains."),
}
"""By name of the command: its file in ``commands/`` and its line in the help, in this order."""

ENDING = (
    "Start with 'surefoot demo', then 'surefoot solve --help'.",
    "Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 something does not hold, 4 stopped early "
    "(with --strict), 70 a bug, 130 interrupted.",
)


def top_help() -> str:
    """Return what ``surefoot --help`` prints, as wide as the terminal but at most 80 columns."""
    width = max(50, min(shutil.get_terminal_size().columns, 80) - 2)
    return "\n\n".join(
        [
            "Usage: surefoot [OPTIONS] COMMAND [ARGS]...",
            _paragraph(ABOUT, width),
            _section("Options", OPTIONS, width),
            _section("Commands", {name: text for name, (_, text) in COMMANDS.items()}, width),
            *(_paragraph(text, width) for text in ENDING),
        ]
    )


def _paragraph(text: str, width: int, first: str = "  ", later: str = "  ") -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=later)


def _section(title: str, lines: Mapping[str, str], width: int) -> str:
    """Return names and their texts in two columns."""
    column = max(map(len, lines)) + 4
    rows = [
        _paragraph(text, width, f"  {name}".ljust(column), " " * column)
        for name, text in lines.items()
    ]
    return "\n".join([f"{title}:", *rows])
