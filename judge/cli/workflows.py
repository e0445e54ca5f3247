"""`judge workflows`: list them, draw them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli.help import Command, Group
from judge.errors import UsageError

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
def draw(
    name: Annotated[
        str,
        typer.Argument(
            help="extraction, norm or story; or majority, by which panels vote in all of them."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write a picture (.svg, .png) instead of Mermaid text."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the picture.")] = False,
) -> None:
    """Print a workflow as Mermaid text, or write it as a picture.

    Example: `judge workflows draw story -o story.svg`
    """
    from judge.run.workflows import load_graph

    graph = load_graph(name)
    if out is None:
        typer.echo(graph.get_graph().draw_mermaid(), nl=False)
        return
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists. Replace it (--overwrite), or name another file with -o")
    from judge.report.drawing import draw as picture

    picture(graph, out)
    typer.echo(f"judge: wrote {out}", err=True)
