"""Help as plain text that fits 80 columns, with options under the headings of their groups.

Typer's own, made with Rich, cuts long flags off and costs half a second.
"""

from __future__ import annotations

import inspect
import re
from textwrap import fill
from typing import Any

from typer.core import TyperCommand, TyperGroup

_WIDTH = 80


class _Plain:
    """How a command's help is laid out; for a subclass of `TyperCommand` or `TyperGroup`."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{**more, "rich_markup_mode": None})

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What the command does."""
        about: Any = self
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(about.help or "").replace("`", ""))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, each group under its heading."""
        command: Any = self
        groups: dict[str, list[Any]] = {}
        for parameter in command.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
                heading = getattr(parameter, "rich_help_panel", None) or plain
                groups.setdefault(heading, []).append((record[0], record[1].replace("`", "")))
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=26)
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands of a group, each with the whole first sentence of its help."""
        group: Any = self
        commands = {name: group.get_command(ctx, name) for name in group.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(n, c.get_short_help_str(1000)) for n, c in commands.items()])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Examples and exit codes, from Markdown; a command to copy is never broken."""
        command: Any = self
        told = "\n\n".join(map(_plain, (command.epilog or "").strip().split("\n\n")))
        # Examples stand below one another.
        formatter.write(f"\n{told}\n".replace("\n\n  ", "\n  ") if told else "")


class Command(_Plain, TyperCommand):
    """A command with such a help."""


class Group(_Plain, TyperGroup):
    """A group of commands with such a help."""


def _plain(paragraph: str) -> str:
    text = " ".join(paragraph.split())
    if text.startswith("**") and text.endswith("**"):
        return f"{text.strip('*')}:"
    command, _, about = text.partition(" — ")
    text = text.replace("**", "").replace("`", "")
    if not command.startswith("`"):
        return fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    if len(text) <= _WIDTH - 2:
        return f"  {text}"
    lines = [" "]
    for word in re.findall(r"(?:'[^']*'|[^\s'])+", command.strip("`")):
        if len(lines[-1]) + len(word) > _WIDTH - 4:
            lines.append("    ")
        lines[-1] += f" {word}"
    indent = " " * 6
    about = fill(about.replace("`", ""), _WIDTH, initial_indent=indent, subsequent_indent=indent)
    return " \\\n".join(lines) + f"\n{about}".rstrip()
