"""Writes docs/reference.md from the code: commands, settings, rubrics, workflows.

python docs/make_reference.py
"""

from __future__ import annotations

from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from judge.cli import app
from judge.evaluation.benchmark import benchmark_names, load_benchmark
from judge.rubric import builtin
from judge.run.workflows import load_workflow, workflow_names
from judge.settings import Settings
from judge.task import load_task

TARGET = Path(__file__).with_name("reference.md")


def reference() -> str:
    """The whole page as Markdown."""
    command = typer.main.get_command(app)
    context = typer.Context(command)
    parts = [
        "# Reference\n\nMade by docs/make_reference.py from the code; do not edit by hand.",
        settings(),
        rubrics(),
        workflows(),
        benchmarks(),
        get_docs_for_click(obj=command, ctx=context, name="judge", title="Commands", indent=1),
    ]
    text = "\n\n".join(part.strip() for part in parts) + "\n"
    return "\n".join(line.rstrip() for line in text.split("\n"))


def settings() -> str:
    def default(name: str) -> object:
        field = Settings.model_fields[name]
        return "" if field.default_factory or field.default in (None, ()) else field.default

    rows = [f"| `{n}` | `JUDGE_{n.upper()}` | {default(n)} |" for n in Settings.model_fields]
    head = (
        "# Settings\n\nFlags, then variables, then `judge.toml`, then these defaults. In variables "
        "lists are separated by\ncommas; `JUDGE_THRESHOLDS` and `JUDGE_PRICES` hold JSON.\n\n"
    )
    return head + "| judge.toml | variable | default |\n|---|---|---|\n" + "\n".join(rows)


def rubrics() -> str:
    rows = [
        f"| `{name}` | {r.role} | `{r.reply}` | {', '.join(r.required)} | {r.title} | {r.source} |"
        for name, r in sorted(builtin().items())
    ]
    head = "# Rubrics\n\n| name | role | reply | needs | question | source |\n"
    return head + "|---|---|---|---|---|---|\n" + "\n".join(rows)


def benchmarks() -> str:
    parts = ["# Benchmarks"]
    for name in benchmark_names():
        one = load_benchmark(name)
        asked = ", ".join(
            f"`{c}`" + ("" if c in (one.usual or one.conditions) else " (when named)")
            for c in one.conditions
        )
        parts.append(f"## {name}\n\n{one.title}. Source: {one.source}.\n\nConditions: {asked}.")
        if options := one.options.model_fields:
            own = ", ".join(f"`{name}={field.default}`" for name, field in options.items())
            parts.append(f"Options (`--option`): {own}.")
        rows = [f"| `{t.name}` | {t.title} | {t.source} |" for t in map(load_task, one.tasks)]
        parts.append("| task | question | source |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts)


def workflows() -> str:
    parts = ["# Workflows"]
    for name in workflow_names():
        workflow = load_workflow(name)
        drawn = workflow.graph.get_graph().draw_mermaid().strip()
        checks = ", ".join((*workflow.checks, *workflow.counted))
        parts.append(
            f"## {name}\n\n{workflow.title}. Checks: {checks}.\n\n```mermaid\n{drawn}\n```"
        )
    return "\n\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(reference(), "utf-8")
