"""`judge rubrics`: list and show rubrics."""

from __future__ import annotations

from typing import Annotated

import typer

from judge.cli.printing import print_table
from judge.errors import UsageError, meant

app = typer.Typer(help="Show the questions that judges are asked.", no_args_is_help=True)
Sources = Annotated[
    list[str] | None,
    typer.Option("--rubric", metavar="FILE|FOLDER", help="List your own rubrics, too."),
]


@app.command("list")
def list_(rubric: Sources = None) -> None:
    """List rubrics: name, role, required fields, title.

    Example: judge rubrics list --rubric my-rubrics/
    """
    from judge import api

    rubrics = sorted(api.rubrics(rubric or []).items())
    rows = [(name, r.role, ", ".join(r.required), r.title) for name, r in rubrics]
    print_table(("name", "role", "needs", "title"), rows)


@app.command()
def show(name: Annotated[str, typer.Argument(help="A built-in rubric.")]) -> None:
    """Print a built-in rubric's file, also as a start for your own.

    Example: judge rubrics show consistency > mine.yaml
    """
    from importlib import resources

    from judge.rubric import builtin

    if name not in builtin():
        raise UsageError(f"{name}: no such rubric; {meant(name, builtin())}")
    text = (resources.files("judge.rubrics") / f"{name}.yaml").read_text("utf-8")
    typer.echo(text, nl=False)
