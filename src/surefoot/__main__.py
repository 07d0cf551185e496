"""The entry point of the command and of ``python -m surefoot``; it imports nothing slow."""

import sys


def main() -> int:
    """Run the command line; an interrupt during its imports also exits cleanly."""
    try:
        if sys.argv[1:] in (["--help"], ["-h"]):
            return _print_help()
        from surefoot.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("surefoot: interrupted.\n")
        return 130


def _print_help() -> int:
    """Print the help text without loading the parser, which would print the same text."""
    from surefoot.commands.catalogue import top_help

    try:
        sys.stdout.write(top_help() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        from surefoot.commands.console import drop_output

        drop_output()
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
