"""Writes docs/reference.md from the code: commands, settings, rubrics, workflows.

python docs/make_reference.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from judge import settings as declared
from judge.cli import EXIT_CODES, app
from judge.cli.options import HELP_ALL
from judge.configuration import MACHINE
from judge.papers.benchmark import benchmark_names, load_benchmark
from judge.papers.tasks import load_task
from judge.questions.ready_made import GROUPS, builtin, ready, ready_made
from judge.workflows.load import load_workflow, workflow_names

TARGET = Path(__file__).with_name("reference.md")
HEAD = "# Reference\n\nMade by docs/make_reference.py from the code; do not edit by hand."


def reference() -> str:
    """The whole page as Markdown."""
    parts = [HEAD, settings(), exit_codes(), rubrics(), workflows(), benchmarks(), commands()]
    text = "\n\n".join(part.strip() for part in parts) + "\n"
    return "\n".join(line.rstrip() for line in text.split("\n"))


def table(*rows: Iterable[object]) -> str:
    """Rows of a Markdown table, the first of them its heads."""
    lines = ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * lines[0].count(" | ") + "|---|", *lines[1:]])


def settings() -> str:
    def row(name: str) -> tuple[str, ...]:
        option = declared.option(name)
        value = "" if declared.is_switch(name) else f" {declared.metavar(name)}"
        flag = f"`{declared.flag(name)}{value}`" if declared.has_flag(name) else ""
        marks = ("yes" if option.harmless else "", "yes" if option.decides else "")
        variable = f"`{declared.variable(name)}`" if declared.has_flag(name) else ""
        return (f"`{declared.key(name)}`", flag, variable, declared.described(name), *marks)

    heads = ("judge.toml", "flag", "variable", "meaning", "untrusted file", "fingerprint")
    return "\n\n".join(
        (
            "# Settings",
            "Flags, then variables, then the `judge.toml` of `--config`, else the one found in the "
            "working directory\nor above it in the repository, then `judge.toml` in the user's "
            "configuration folder, then defaults. Without\n`--trust-config` the file found may set "
            "only what is marked. In variables lists are separated by commas.",
            table(heads, *map(row, declared.Settings.model_fields)),
            "Variables of a machine, which no file sets:",
            table(("variable", "meaning"), *((f"`{n}`", m) for n, m in MACHINE.items())),
        )
    )


def exit_codes() -> str:
    return "# Exit codes\n\n" + table(
        ("code", "meaning"), *((int(c), m) for c, m in EXIT_CODES.items())
    )


def rubrics() -> str:
    """The ready-made rubrics by group, then those of workflows."""
    named = [(name, group, ready(name)) for name, group in ready_made().items()]
    made = (
        (f"`{name}`", group, ", ".join(r.answers), ", ".join(r.required), r.title)
        for name, group, r in sorted(named, key=lambda one: GROUPS.index(one[1]))
        if r
    )
    first = table(("ready-made", "group", "answers", "needs", "question"), *made)
    heads = ("name", "role", "answers", "needs", "question", "source")
    rows = (
        (
            f"`{n}`",
            r.role,
            r.reply or ", ".join(r.answers),
            ", ".join(r.required),
            r.title,
            r.source,
        )
        for n, r in sorted(builtin().items())
    )
    return "\n\n".join(("# Rubrics", first, table(heads, *rows)))


def benchmarks() -> str:
    parts = ["# Benchmarks"]
    for name in benchmark_names():
        one = load_benchmark(name)
        asked = ", ".join(f"`{condition}`" for condition in one.conditions)
        parts.append(f"## {name}\n\n{one.title}. Source: {one.source}.\n\nConditions: {asked}.")
        rows = ((f"`{t.name}`", t.title, t.source) for t in map(load_task, one.tasks))
        if one.tasks:
            parts.append(table(("task", "question", "source"), *rows))
    return "\n\n".join(parts)


def workflows() -> str:
    parts = ["# Workflows"]
    for name in workflow_names():
        workflow = load_workflow(name)
        told = f"## {name}\n\n{workflow.title}."
        if (graph := workflow.compiled) is not None:
            checks = ", ".join((*workflow.checks, *workflow.counted))
            drawn = graph.get_graph().draw_mermaid().strip()
            told += f" RubricSet: {checks}.\n\n```mermaid\n{drawn}\n```"
        parts.append(told)
    return "\n\n".join(parts)


def commands() -> str:
    """The help of every command, as --help-all prints it."""

    def told(command: Any, words: tuple[str, ...], parent: Any) -> Iterator[str]:
        how = {**command.context_settings, "terminal_width": 80}
        context = typer.Context(command, info_name=words[-1], parent=parent, **how)
        context.meta[HELP_ALL] = True
        yield f"## {' '.join(words)}\n\n```text\n{command.get_help(context)}\n```"
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            yield from told(command.get_command(context, name), (*words, name), context)

    return "\n\n".join(("# Commands", *told(typer.main.get_command(app), ("judge",), None)))


if __name__ == "__main__":
    TARGET.write_text(reference(), "utf-8")
