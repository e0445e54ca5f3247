"""The console script, and `python -m judge`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C during loading also exits with code 130."""
    try:
        from judge.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write("judge: interrupted; the same command can be run again\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
