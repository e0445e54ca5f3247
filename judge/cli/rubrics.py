"""`judge rubrics`: list them, show what a judge is asked."""

from __future__ import annotations

from importlib import resources
from typing import Annotated

import typer

from judge.cli.printing import print_table
from judge.errors import UsageError

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
Sources = Annotated[
    list[str] | None,
    typer.Option("--rubric", metavar="FILE|FOLDER", help="Rubrics of your own as well."),
]


@app.command("list")
def list_(rubric: Sources = None) -> None:
    """List rubrics: name, role, fields that are needed, title.

    Example: judge rubrics list --rubric my-rubrics/
    """
    from judge.collection import collect

    rubrics, _ = collect(rubric or [])
    heads = ("name", "role", "needs", "title")
    rows = [
        (name, one.role, ", ".join(one.required), one.title)
        for name, one in sorted(rubrics.items())
    ]
    print_table(heads, rows, text=heads[1:])


@app.command()
def show(name: Annotated[str, typer.Argument(help="The name of a built-in rubric.")]) -> None:
    """Print the file of a built-in rubric: its questions, or a start for your own.

    Example: judge rubrics show consistency > mine.yaml
    """
    from judge.rubric import builtin

    if name not in builtin():
        raise UsageError(f"{name}: no such rubric; there are {', '.join(builtin())}")
    text = (resources.files("judge.rubrics") / f"{name}.yaml").read_text("utf-8")
    typer.echo(text, nl=False)
