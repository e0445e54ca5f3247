"""Writes pages of docs/reference/ from the code: commands, settings, rubrics, workflows, Python.

python docs/make_reference.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import Parameter, Signature, getdoc, isclass, isfunction, signature
from pathlib import Path
from typing import Any

import typer

import judge
from judge import plugins
from judge import settings as declared
from judge.cli import app
from judge.cli.options import HELP_ALL
from judge.configuration import MACHINE
from judge.papers.benchmark import BENCHMARKS, load_benchmark
from judge.papers.tasks import load_task
from judge.questions.ready_made import GROUPS, builtin, ready, ready_made
from judge.testing import assert_judged
from judge.workflows.load import load_workflow, workflow_names

FOLDER = Path(__file__).with_name("reference")
HEAD = "<!-- Made by docs/make_reference.py from the code; do not edit by hand. -->"


def pages() -> dict[str, str]:
    """The pages as Markdown, by name."""
    made = (commands, settings, rubrics, workflows, benchmarks, python)
    return {f"{page.__name__}.md": _page(page()) for page in made}


def _page(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in f"{HEAD}\n\n{text.strip()}".split("\n"))


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
            "A flag decides over a variable, a variable over a file "
            "([more](../howto/settings.md)). A\n`judge.toml` that is found may set only what is "
            "marked, unless `--trust-config` is given.\nIn variables lists are separated by "
            "commas, except that `JUDGE_ASK` is one question and `JUDGE_TEST` one test.",
            table(heads, *map(row, declared.Settings.model_fields)),
            "## Variables of a machine",
            "No file sets these.",
            table(("variable", "meaning"), *((f"`{n}`", m) for n, m in MACHINE.items())),
        )
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
    for name in plugins.names(BENCHMARKS):
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
            told += f" Checks: {checks}.\n\n{_steps(graph)}"
        parts.append(told)
    return "\n\n".join(parts)


def _steps(graph: Any) -> str:
    """The graph's edges: a row for each step, with what may come after it."""
    after: dict[str, list[str]] = {}
    for edge in graph.get_graph().edges:
        after.setdefault(edge.source.strip("_"), []).append(edge.target.strip("_"))
    return table(("step", "then"), *((step, ", ".join(to)) for step, to in after.items()))


def python() -> str:
    """The names of `judge` and `judge.testing`, by signature and docstring."""
    named = [(f"judge.{name}", getattr(judge, name)) for name in judge.__all__]
    named += [("judge.testing.assert_judged", assert_judged)]
    named.sort(key=lambda one: (not isfunction(one[1]), one[0].lower()))
    parts = ["# Python", "[The how-to](../howto/python.md) shows most of these at work."]
    for name, what in named:
        told = _docstring(what)
        if isfunction(what):
            told = f"```py\n{_signature(name, what)}\n```\n\n{told}"
        for method, of in vars(what).items() if isclass(what) else ():
            if isfunction(of) and not method.startswith("_") and of.__doc__:
                told += f"\n\n**`{method}{_arguments(of)}`** {_docstring(of)}"
        parts.append(f"## {name}\n\n{told}")
    return "\n\n".join(parts)


def _arguments(function: Any) -> str:
    """Names and defaults, without types."""
    shown = (p for name, p in signature(function).parameters.items() if name not in ("self", "cls"))
    bare = [p.replace(annotation=Parameter.empty) for p in shown]
    bare = [p.replace(default=...) if isfunction(p.default) else p for p in bare]
    return str(Signature(bare)).replace("Ellipsis", "...")


def _signature(name: str, function: Any) -> str:
    line = f"{name}{_arguments(function)}"
    return line if len(line) <= 100 else line.replace("(", "(\n    ", 1).replace(", ", ",\n    ")


def _docstring(what: Any) -> str:
    """A docstring as Markdown: each entry of `Args:` and `Raises:` in a list."""
    parts = []
    for part in re.split(r"\n\n", getdoc(what) or ""):
        head, _, rest = part.partition("\n")
        if head in ("Args:", "Returns:", "Raises:", "Yields:"):
            entries = re.sub(r"\n {8,}", " ", rest)
            lines = re.sub(r"(?m)^ {4}([\w, .]+?):(?= )", r"- `\1`:", entries)
            part = f"{head.strip(':')}:\n\n" + re.sub(r"(?m)^ {4}", "", lines)
        parts.append(part.replace("docs/reference/", "[settings](settings.md)"))
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
    for page, text in pages().items():
        (FOLDER / page).write_text(text, "utf-8")
