"""The command line: one file a command, loaded when it is used; errors become exit codes."""

from __future__ import annotations

import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from judge import __version__
from judge.cli.printing import drop_stdout, guard_streams, say, tell
from judge.errors import Exit, JudgeError, unwritable
from judge.redact import guard_process, redacted
from judge.tracing import guard_tracing

COMMANDS = {
    "validate": "Judge records; write each with its verdict.",
    "plan": "Estimate calls, tokens and cost of a run.",
    "calibrate": "Say how far judges agree with labels.",
    "teach": "Teach a local model a check by labels.",
    "agreement": "Say how far people agree with one another.",
    "evaluate": "Put a model through a paper's benchmark.",
    "score": "Score answers that are at hand.",
    "compare": "Say how two runs differ on the same items.",
    "build": "Build a data set from records, without a model.",
    "report": "Make a page of judged records, for people.",
    "export": "Write judged records as CSV, Parquet, JUnit XML or Markdown.",
    "audit": "Say how often hostile text turns a judge's verdict.",
    "cache": "Look after the replies on disk.",
    "models": "Fetch and find local models.",
    "rubrics": "Show the questions that judges are asked.",
    "workflows": "List workflows, or draw them.",
}
"""Each is the module of its name here, with a `command` or, for several, an `app`."""

EXAMPLES = """
Examples:
  judge validate stories.jsonl -o judged.jsonl
  judge plan norms.csv -m openai:gpt-4o
  judge COMMAND --help                          its options, with examples
"""
EXIT_CODES = {
    Exit.OK: "all records have a verdict, and the gate, if one was set, holds",
    Exit.GATE: "a gate (--fail-under, --fail-under-repaired) does not hold",
    Exit.USAGE: "bad usage or configuration; nothing was judged",
    Exit.INCOMPLETE: "finished, but some records or lines have no result",
    Exit.UNAVAILABLE: "a resource ended: model, budget, disk, cache or OUT; --resume goes on",
    Exit.INTERNAL: "an unexpected error: please report it",
    Exit.INTERRUPTED: "interrupted; what was done is kept",
}
_UNWRITABLE = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EBADF)


class _Command(TyperCommand):
    """Shows options under the headings of their groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
                heading = getattr(parameter, "rich_help_panel", None) or plain
                groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class _Commands(TyperGroup):
    """Loads a command's module when it is used; the help needs none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _loaded(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # Typer names the nearest of the commands that are loaded.
        for name in COMMANDS if args[0] not in COMMANDS else ():
            self.commands.setdefault(name, _loaded(name))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write(EXAMPLES)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), about) for code, about in EXIT_CODES.items()])


def _loaded(name: str) -> Any:
    """The command of a module in this package."""
    module = import_module(f"judge.cli.{name}")
    if (several := getattr(module, "app", None)) is not None:
        group: Any = typer.main.get_command(several)
        group.name, group.help = name, group.help or COMMANDS[name]
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=_Command, epilog=module.EPILOG)(module.command)
    return typer.main.get_command(alone)


app = typer.Typer(
    name="judge",
    cls=_Commands,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """The exit code that a step ends with; its error is told on standard error."""
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
        if os.environ.get("JUDGE_DEBUG", "") not in ("", "0"):
            say(redacted("".join(traceback.format_exception(error))), err=True)
        told = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
        tell(
            f"unexpected error, a fault in judge {__version__}: {told}. Please report it with the "
            "command and what JUDGE_DEBUG=1 shows"
        )
        return int(Exit.INTERNAL)
    return int(Exit.OK)
