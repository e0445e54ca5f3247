"""`judge workflows`: list them, draw them."""

from __future__ import annotations

from typing import Annotated

import typer

from judge.cli.help import Command, Group

app = typer.Typer(cls=Group, no_args_is_help=True, add_completion=False)


@app.command("list", cls=Command)
def list_() -> None:
    """The workflows that are installed, with the checks that each one makes.

    Example: `judge workflows list`
    """
    from judge.run.workflows import load_workflow, workflow_names

    for name in workflow_names():
        workflow = load_workflow(name)
        typer.echo(f"{name}\t{workflow.title}\t{', '.join((*workflow.checks, *workflow.counted))}")


@app.command(cls=Command)
def draw(name: Annotated[str, typer.Argument(help="extraction, norm or story.")]) -> None:
    """Print a workflow as a Mermaid diagram, which GitHub and most editors draw.

    Example: `judge workflows draw story > story.mmd`
    """
    from judge.run.workflows import load_workflow

    typer.echo(load_workflow(name).graph.get_graph().draw_mermaid(), nl=False)
