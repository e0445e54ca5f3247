"""The command line: one thin module per command over the API; errors become exit codes."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer

from judge import plugins
from judge.cli.commands import Commands
from judge.cli.options import HelpAllOfGroup
from judge.cli.printing import drop_stdout, guard_streams, print_message, print_output
from judge.errors import DISTRIBUTION, Exit, JudgeError, Unavailable, UsageError, unwritable
from judge.langsmith import guard_tracing
from judge.redact import guard_process, redacted
from judge.version import __version__

EXIT_CODES = {
    Exit.OK: "all records have a verdict, and the gate, if one was set, holds",
    Exit.GATE: "a gate (--gate, --fail-under, --fail-under-repaired) does not hold",
    Exit.USAGE: "bad usage or configuration; nothing was judged",
    Exit.INCOMPLETE: "finished, but some records or lines have no result",
    Exit.UNAVAILABLE: "a resource ended: model, budget, disk, cache or OUT; see --resume",
    Exit.INTERNAL: "an unexpected error: please report it",
    Exit.INTERRUPTED: "interrupted; finished records are kept, see --resume",
}
EPILOG = """\b
Examples:
  judge validate records.jsonl -o judged.jsonl
  judge validate mails.csv --ask "Is this e-mail polite?" -m openai:gpt-4o
  judge plan records.jsonl -m openai:gpt-4o
  judge COMMAND --help        the options that most runs need, with examples
  judge COMMAND --help-all    all options, by topic

\b
Exit codes:
""" + "\n".join(f"  {code:<3}  {about}" for code, about in EXIT_CODES.items())
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
_UNWRITABLE = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EBADF)


app = typer.Typer(
    name="judge",
    cls=Commands,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(flag: bool) -> None:
    if flag:
        typer.echo(f"judge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    help_all: HelpAllOfGroup = False,
) -> None:
    """Check text that language models wrote."""


def main() -> None:
    """The console script."""
    # The imports of a plain run make some 80,000 long-lived objects, which need no collector.
    gc.set_threshold(100_000)
    guard_process()
    guard_tracing()
    guard_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # So that new files are removed.
    try:
        code = _ended(_complete if os.environ.get("_JUDGE_COMPLETE") == "complete_bash" else app)
        # Without this flush, an error in writing the buffer would come after the exit code is set.
        sys.exit(_ended(lambda: sys.stdout and sys.stdout.flush()) or code)
    finally:
        # Typer has replaced the traceback hook.
        guard_process()


def _complete() -> None:
    from judge.cli.completion import in_bash

    in_bash(app)


def _ended(step: Callable[[], object]) -> int | str | None:
    """Run a step and return its exit code; an error is printed on standard error."""
    try:
        step()
    except SystemExit as end:
        # Typer ends like this if the reader of standard output is gone (`judge ... | head -1`).
        if isinstance(end.__context__, BrokenPipeError):
            drop_stdout()
            return int(Exit.READER_GONE)
        # Typer raises its own exit between the interrupt and SystemExit.
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            print_message("interrupted; the same command can be run again")
            return int(Exit.INTERRUPTED)
        return end.code
    except BrokenPipeError:
        drop_stdout()
        return int(Exit.READER_GONE)
    except JudgeError as error:
        print_message(error)
        return int(error.exit_code)
    except Exception as error:  # noqa: BLE001
        if (refusal := _of_system(error)) is not None:
            print_message(refusal)
            return int(refusal.exit_code)
        if os.environ.get("JUDGE_DEBUG", "") not in ("", "0"):
            print_output(redacted("".join(traceback.format_exception(error))), err=True)
        message = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
        owner = plugins.owner(error)
        if owner == DISTRIBUTION:
            owner = f"judge {__version__}"
            message += ". Please report it with the command and what JUDGE_DEBUG=1 shows"
        else:
            message += "; JUDGE_DEBUG=1 shows where"
        print_message(f"unexpected error, a fault in {owner}: {message}")
        return int(Exit.INTERNAL)
    return int(Exit.OK)


def _of_system(error: Exception) -> JudgeError | None:
    """What the system refuses, as an error for the user; None if `error` has another cause."""
    if (scarce := _scarce(error)) is not None:
        return Unavailable(f"the system gives this process no more {scarce}; --resume continues")
    if not isinstance(error, OSError):
        return None
    if error.filename is not None:
        why = f"{error.filename}: cannot be used: {error.strerror}"
        return UsageError(why) if error.errno in _REFUSED else None
    if error.errno == errno.ENOENT and error.strerror == os.strerror(errno.ENOENT):
        return UsageError("the working folder was deleted: change to one that is there")
    if error.errno == errno.ENOENT and "temporary directory" in str(error):
        return Unavailable(f"{error.strerror}: make room there, or name a folder in TMPDIR")
    if error.errno in _UNWRITABLE:
        drop_stdout()
        return unwritable("standard output cannot be written", error)
    return None


_SCARCE = {errno.EMFILE: "open files (ulimit -n)", errno.ENFILE: "open files"}
_SCARCE |= {errno.ENOMEM: "memory", errno.EAGAIN: "processes (ulimit -u)"}


def _scarce(error: Exception) -> str | None:
    """The resource that has run out; None if `error` has another cause."""
    if isinstance(error, MemoryError):
        return _SCARCE[errno.ENOMEM]
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "threads (ulimit -u)"
    return _SCARCE.get(error.errno or 0) if isinstance(error, OSError) else None
