"""`judge workflows`: list them, draw them."""

from __future__ import annotations

from typing import Annotated

import typer

from judge.cli.printing import print_table

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.command("list")
def list_() -> None:
    """List workflows, with the checks that each one makes.

    Example: judge workflows list
    """
    from judge.run.checks import load_workflow, workflow_names

    rows = [
        (name, one.title, ", ".join((*one.checks, *one.counted)))
        for name, one in zip(workflow_names(), map(load_workflow, workflow_names()), strict=True)
    ]
    heads = ("name", "what for", "checks")
    print_table(heads, rows, text=heads[1:])


@app.command()
def draw(name: Annotated[str, typer.Argument(help="extraction, norm or story.")]) -> None:
    """Print a workflow as a Mermaid diagram.

    Example: judge workflows draw story > story.mmd
    """
    from judge.run.checks import load_workflow

    typer.echo(load_workflow(name).graph.get_graph().draw_mermaid(), nl=False)
