"""`judge workflows`: list them, draw them."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.command("list")
def list_() -> None:
    """List workflows, with the checks that each one makes.

    Example: judge workflows list
    """
    from judge.run.workflows import load_workflow, workflow_names

    for name in workflow_names():
        workflow = load_workflow(name)
        typer.echo(f"{name}\t{workflow.title}\t{', '.join((*workflow.checks, *workflow.counted))}")


@app.command()
def draw(name: Annotated[str, typer.Argument(help="extraction, norm or story.")]) -> None:
    """Print a workflow as a Mermaid diagram.

    Example: judge workflows draw story > story.mmd
    """
    from judge.run.workflows import load_workflow

    typer.echo(load_workflow(name).graph.get_graph().draw_mermaid(), nl=False)
