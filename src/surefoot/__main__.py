"""``python -m surefoot``, and where the command starts: before anything slow is imported."""

import sys


def main() -> int:
    """Run the command line; an interrupt while it is being loaded is an interrupt too."""
    try:
        if sys.argv[1:] in (["--help"], ["-h"]):
            return _print_help()
        from surefoot.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("surefoot: interrupted.\n")
        return 130


def _print_help() -> int:
    """Print the help without loading the parser, which would print the same."""
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
