"""`judge workflows`: list and draw workflows."""

from __future__ import annotations

from typing import Annotated

import typer

from judge import plugins
from judge.cli.options import completed
from judge.cli.printing import print_table
from judge.errors import UsageError

app = typer.Typer(help="List and draw workflows.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List workflows and their checks.

    Example: judge workflows list
    """
    from judge.workflows.load import load_workflow, workflow_names

    workflows = {name: load_workflow(name) for name in workflow_names()}
    rows = [(n, w.title, ", ".join((*w.checks, *w.counted))) for n, w in workflows.items()]
    print_table(("name", "what for", "checks"), rows)


@app.command()
def draw(
    name: Annotated[
        str,
        typer.Argument(
            help="A name of the list, a set of judge generate, or file.py:variable.",
            autocompletion=completed("judge.workflows"),
        ),
    ],
) -> None:
    """Print a workflow as a Mermaid diagram.

    Example: judge workflows draw graph.py:builder > graph.mmd
    """
    from judge.workflows.load import load_workflow

    generator = plugins.load("judge.generators", name)
    workflow = load_workflow(name) if generator is None else generator.workflow
    if (graph := workflow.compiled) is None:
        raise UsageError(f"{name} asks the questions that you name, and has no graph to draw")
    typer.echo(graph.get_graph().draw_mermaid(), nl=False)
