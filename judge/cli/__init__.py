"""The command line: one file a command, thin over the API; errors become exit codes."""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from judge import __version__, plugins
from judge.cli.printing import drop_stdout, guard_streams, say, tell
from judge.errors import Exit, JudgeError, unwritable
from judge.redact import guard_process, redacted
from judge.tracing import guard_tracing

COMMANDS = (
    *("validate", "plan", "calibrate", "agreement", "compare"),
    *("report", "export", "cache", "rubrics", "workflows"),
)
"""Each is the module of its name here, with a `command` or, for several, an `app`; so are the
entry points in `judge.commands`."""

EXIT_CODES = {
    Exit.OK: "all records have a verdict, and the gate, if one was set, holds",
    Exit.GATE: "a gate (--fail-under, --fail-under-repaired) does not hold",
    Exit.USAGE: "bad usage or configuration; nothing was judged",
    Exit.INCOMPLETE: "finished, but some records or lines have no result",
    Exit.UNAVAILABLE: "a resource ended: model, budget, disk, cache or OUT; see --resume",
    Exit.INTERNAL: "an unexpected error: please report it",
    Exit.INTERRUPTED: "interrupted; finished records are kept, see --resume",
}
EPILOG = """\b
Examples:
  judge validate stories.jsonl -o judged.jsonl
  judge validate mails.csv --ask "Is this e-mail polite?" -m openai:gpt-4o
  judge plan norms.csv -m openai:gpt-4o
  judge COMMAND --help                          its options, with examples

\b
Exit codes:
""" + "\n".join(f"  {code:<3}  {about}" for code, about in EXIT_CODES.items())
_BRACES = str.maketrans("", "", "{}")
_TYPES = {"str>": "TEXT", "path>": "PATH", "int range>": "N", "float range>": "X"}
_UNWRITABLE = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EBADF)


class _Command(TyperCommand):
    """Shows options under the headings of their groups, which typer does only in boxes.

    Typer's names for types, `<int range>` or `<list[str]>`, are no words for users.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ever, but an option that takes one value is not named twice: one would be lost."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in {one for one in given if given.count(one) > 1}:
            if not (getattr(option, "is_flag", True) or option.multiple):
                ctx.fail(f"{option.opts[-1]} is given twice, and takes one value.")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.translate(_BRACES).upper() for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                (name, _, kind), about = record[0].partition(" <"), record[1]
                if parameter.param_type_name == "argument":
                    plain, name = "Arguments", name.upper()
                else:
                    plain, name = "Options", f"{name} {_TYPES.get(kind, '')}".rstrip()
                    about = re.sub(r"\bx\b", name.split()[-1], about)
                heading = getattr(parameter, "rich_help_panel", None) or plain
                groups.setdefault(heading, []).append((name, about))
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


app = typer.Typer(
    name="judge",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_modules = {_name: import_module(f"judge.cli.{_name}") for _name in COMMANDS}
_modules |= {
    _name: plugins.load("judge.commands", _name) for _name in plugins.names("judge.commands")
}
for _name, _module in _modules.items():
    if hasattr(_module, "app"):
        for _one in _module.app.registered_commands:
            _one.cls = _Command
        app.add_typer(_module.app, name=_name)
    else:
        app.command(_name, cls=_Command, epilog=_module.EPILOG)(_module.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Check text that language models wrote."""


def main() -> None:
    """The console script."""
    # Imports make a million objects that all stay, which the collector would look through often.
    gc.set_threshold(50_000)
    guard_process()
    guard_tracing()
    guard_streams()
    try:
        code = _ended(app)
        # An error of what is still in the buffer would otherwise come after the exit code is set.
        sys.exit(_ended(lambda: sys.stdout and sys.stdout.flush()) or code)
    finally:
        # Typer replaced the hook for tracebacks.
        guard_process()


def _ended(step: Callable[[], object]) -> int | str | None:
    """The exit code that a step ends with; its error is printed on standard error."""
    try:
        step()
    except SystemExit as end:
        # So typer ends where the reader of standard output has left, as in `judge ... | head -1`.
        if isinstance(end.__context__, BrokenPipeError):
            drop_stdout()
            return int(Exit.READER_GONE)
        return end.code
    except BrokenPipeError:
        drop_stdout()
        return int(Exit.READER_GONE)
    except JudgeError as error:
        tell(error)
        return int(error.exit_code)
    except Exception as error:  # noqa: BLE001
        if isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None:
            drop_stdout()
            tell(unwritable("standard output cannot be written", error))
            return int(Exit.UNAVAILABLE)
        if (scarce := _scarce(error)) is not None:
            tell(f"the system gives this process no more {scarce}; --resume continues")
            return int(Exit.UNAVAILABLE)
        if os.environ.get("JUDGE_DEBUG", "") not in ("", "0"):
            say(redacted("".join(traceback.format_exception(error))), err=True)
        told = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
        tell(
            f"unexpected error, a fault in judge {__version__}: {told}. Please report it with the "
            "command and what JUDGE_DEBUG=1 shows"
        )
        return int(Exit.INTERNAL)
    return int(Exit.OK)


_SCARCE = {errno.EMFILE: "open files (ulimit -n)", errno.ENFILE: "open files"}
_SCARCE |= {errno.ENOMEM: "memory", errno.EAGAIN: "processes (ulimit -u)"}


def _scarce(error: Exception) -> str | None:
    """What the system has run out of, if that is why `error` came."""
    if isinstance(error, MemoryError):
        return _SCARCE[errno.ENOMEM]
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "threads (ulimit -u)"
    return _SCARCE.get(error.errno or 0) if isinstance(error, OSError) else None
