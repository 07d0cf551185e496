"""``python -m surefoot``, and where the command starts: before anything slow is imported."""

import sys


def main() -> int:
    """Run the command line; an interrupt while it is being loaded is an interrupt too."""
    try:
        from surefoot.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("surefoot: interrupted.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
