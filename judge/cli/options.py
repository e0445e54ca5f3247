"""Options of commands: those that settings declare, and those that several commands share."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from judge import settings as declared
from judge.cli.printing import tell
from judge.errors import Exit, UsageError, missing_extra
from judge.settings import Settings, resolve, strays

_INPUT = "Input"
_STATISTICS = ("matplotlib", "numpy", "scipy", "sklearn")

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[INPUT]...",
        help="JSON lines, a JSON list, CSV, TSV or Parquet, also .gz and .zst; - reads stdin.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="jsonl, json, csv, tsv or parquet.", rich_help_panel=_INPUT),
]
Limit = Annotated[int | None, typer.Option(min=0, help="Only the first N.", rich_help_panel=_INPUT)]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="N drawn at random with --seed.", rich_help_panel=_INPUT),
]
Out = Annotated[
    Path | None, typer.Option("-o", "--out", help="Write here instead of standard output.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume OUT: keep what is finished, redo errors.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]


def with_settings(*wanted: str, **helps: str) -> Callable[[Callable[..., None]], Any]:
    """Give a command the flags of settings, and their values as its parameter `settings`.

    Args:
        wanted: names of settings, or of their groups (`judge.settings.JUDGING`, ...).
        helps: help of settings that mean something special to this command.
    """
    names = [
        name
        for name in Settings.model_fields
        if declared.has_flag(name)
        and (name in wanted or declared.option(name).group in (*wanted, declared.TRUST))
    ]
    flags = [_parameter(name, helps.get(name)) for name in names]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters
        context = inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )

        @functools.wraps(function)
        def command(context: typer.Context, **given: Any) -> None:
            settings = _settings({name: given.pop(name) for name in names})
            if "engine" not in names:
                from judge.run.clients import refuse_validation_only

                refuse_validation_only(settings, context.info_name or "this command")
            if "context" in own:
                given["context"] = context
            function(**given, settings=settings)

        kept = [p for name, p in own.items() if name not in ("context", "settings")]
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in kept]
        command.__signature__ = inspect.Signature([context, *keyword, *flags])  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in (context, *keyword, *flags)}
        del command.__wrapped__
        return command

    return decorate


def inputs_or_stdin(inputs: list[str] | None, context: typer.Context) -> list[str]:
    """The inputs named, else standard input where it is a pipe; else help and exit code 2."""
    if inputs:
        return inputs
    if sys.stdin is not None and not sys.stdin.isatty():
        return ["-"]
    # Typer prints formatted help on standard output, where only data may go.
    with redirect_stdout(sys.stderr):
        typer.echo(context.get_help())
    raise typer.Exit(int(Exit.USAGE))


def need_calibrate(command: str, *libraries: str) -> None:
    """See that the statistics libraries are installed, before anything is read or asked.

    Args:
        command: what needs them.
        libraries: those that it needs; all of the extra `calibrate` where none is named.

    Raises:
        UsageError: naming what is missing, and how to install it.
    """
    if missing := [name for name in libraries or _STATISTICS if find_spec(name) is None]:
        raise missing_extra(f"{command} needs {', '.join(missing)}", "calibrate")


def refuse_both(resume: bool, overwrite: bool) -> None:
    """Raise UsageError where OUT is to be resumed and replaced."""
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other")


def _settings(flags: Mapping[str, Any]) -> Settings:
    """The settings of a run; what variables and files do unexpectedly is told on stderr.

    Raises:
        UsageError: as `judge.settings.resolve`.
    """
    for name, near in strays().items():
        tell(f"{name} changes nothing: judge reads no such variable{f'; {near}?' if near else ''}")
    settings = resolve(flags)
    for path, names in settings.from_files.items():
        tell(f"from {path}: {', '.join(names)}")
    return settings


def _parameter(name: str, about: str | None) -> inspect.Parameter:
    """The flag of a setting. Values stay text here: `resolve` says what does not fit, and where."""
    setting, field = declared.option(name), Settings.model_fields[name]
    written = declared.flag(name)
    shown: dict[str, Any] = {
        "help": about or declared.described(name),
        "rich_help_panel": setting.group,
        "show_default": False,
    }
    kind: Any = str | None
    if field.annotation is bool:
        kind, written = bool | None, f"{written}/--no-{written[2:]}"
    else:
        shown["metavar"] = declared.metavar(name)
        if isinstance(field.default, tuple):
            kind = list[str] | None
    words = (written, *([setting.short] if setting.short else []))
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind, typer.Option(*words, **shown)],
    )
