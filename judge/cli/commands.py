"""The commands by name, each loaded when it is used, and how their help is laid out."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from judge import plugins
from judge.cli.options import HELP_ALL, HelpAllOfGroup, parsed
from judge.errors import UsageError

BUILT_IN = (
    *("validate", "plan", "calibrate", "serve", "label", "review", "agreement", "compare"),
    *("report", "export", "cache", "config", "rubrics", "workflows"),
)
"""Each is a module of this package, with a `command` or, for a group of commands, an `app`."""

ENTRY_POINTS = "judge.commands"
"""Group of entry points for other packages' commands; each names such a module."""

_BRACES = str.maketrans("", "", "{}")
_TYPES = {"str>": "TEXT", "path>": "PATH", "int range>": "N", "float range>": "X"}


class Command(TyperCommand):
    """Shows options by group: those that most runs need (--help), or all (--help-all).

    --help leaves out the options of a group, except settings that most runs need. If it leaves out
    none, --help-all is not listed. Typer's type names, such as `<int range>`, are replaced.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as typer does, but refuse an option that takes one value and is given twice."""
        _, _, options = self.make_parser(ctx).parse_args(args=list(args))
        for option in {option for option in options if options.count(option) > 1}:
            if not (getattr(option, "is_flag", True) or option.multiple):
                ctx.fail(f"{option.opts[-1]} is given twice, and takes one value.")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.translate(_BRACES).upper() for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        parameters = self.get_params(ctx)
        advanced = [parameter for parameter in parameters if _is_advanced(parameter)]
        for parameter in parameters:
            if parameter in advanced and not ctx.meta.get(HELP_ALL):
                continue
            if parameter.name == "help_all" and not advanced:
                continue
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


def _is_advanced(parameter: Any) -> bool:
    """Whether --help leaves the option out."""
    heading = getattr(parameter, "rich_help_panel", None)
    if not heading:
        return False
    from judge import settings

    is_setting = parameter.name in settings.Settings.model_fields
    return not (is_setting and settings.option(parameter.name).common)


class Commands(TyperGroup):
    """All commands. Only the one used is built, and only its settings are loaded."""

    def list_commands(self, ctx: Any) -> list[str]:
        packages = plugins.names(ENTRY_POINTS)
        for name in {*packages}.intersection(BUILT_IN):
            why = "judge has a command of this name"
            plugins.leave_out(plugins.unusable(ENTRY_POINTS, name, why))
        return list(dict.fromkeys((*BUILT_IN, *packages)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        module = _module(cmd_name)
        return None if module is None else _built(cmd_name, module)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as typer does, but say of a command's option that it comes after the command."""
        option = args[0].partition("=")[0] if args else ""
        known = {name for param in self.get_params(ctx) for name in param.opts}
        if option.startswith("-") and option not in known:
            commands = self.list_commands(ctx)
            if command := next((word for word in args if word in commands), None):
                ctx.fail(f"{option} comes after the command: judge {command} ... {option} ...")
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            if Path(args[0]).is_file():
                ctx.fail(f"{args[0]} is a file, not a command: judge validate {args[0]} ...")
            # Typer suggests names from here.
            self.commands = dict.fromkeys(self.list_commands(ctx))  # type: ignore[assignment]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(name)) for name in self.list_commands(ctx)])


def _module(name: str) -> Any:
    if name in BUILT_IN:
        return import_module(f"judge.cli.{name}")
    module = plugins.load(ENTRY_POINTS, name, ModuleType)
    if module is not None and not (
        callable(getattr(module, "command", None))
        or isinstance(getattr(module, "app", None), typer.Typer)
    ):
        raise plugins.unusable(ENTRY_POINTS, name, f"{module.__name__} has no function `command`")
    return module


def _summary(name: str) -> str:
    """The first sentence of a command's help."""
    try:
        module = _module(name)
    except UsageError as error:  # Another package's; the other commands can be used.
        return str(error)
    text = module.app.info.help if hasattr(module, "app") else module.command.__doc__
    return cleandoc(text or "").partition("\n\n")[0].removesuffix(".") + "."


def _group(help_all: HelpAllOfGroup = False) -> None:
    """The callback of a group of commands, which only takes --help-all."""


@cache
def _built(name: str, module: Any) -> Any:
    """The command, or group of commands, of a module."""
    if hasattr(module, "app"):
        app = module.app
        app.callback()(_group)
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, epilog=getattr(module, "EPILOG", None))(module.command)
    for info in app.registered_commands:
        info.cls, info.callback = Command, parsed(info.callback)
    app._add_completion, app.rich_markup_mode = False, None
    command = typer.main.get_command(app)
    command.name = name
    return command
