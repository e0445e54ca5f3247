"""`judge rubrics`: list and show rubrics."""

from __future__ import annotations

from typing import Annotated

import typer

from judge.cli.options import completed
from judge.cli.printing import print_table
from judge.errors import UsageError, meant

app = typer.Typer(help="Show the questions that judges are asked.", no_args_is_help=True)
Sources = Annotated[
    list[str] | None,
    typer.Option("--rubric", metavar="FILE|FOLDER", help="List your own rubrics, too."),
]


@app.command("list")
def list_(rubric: Sources = None) -> None:
    """List rubrics: the ready-made ones by group, then those of workflows and your own.

    Example: judge rubrics list --rubric my-rubrics/
    """
    from judge import api
    from judge.questions.ready_made import GROUPS, ready, ready_made

    others = sorted(api.rubrics(rubric or []).items())
    for group in GROUPS:
        named = [(name, ready(name)) for name, its in ready_made().items() if its == group]
        its_rows = [(name, ", ".join(r.required), r.title) for name, r in named if r]
        print_table((group, "needs", "title"), its_rows)
        typer.echo()
    role = {r.name: "test" if r.tested else r.role for _, r in others}
    rows = [(name, role[name], ", ".join(r.required), r.title) for name, r in others]
    print_table(("workflows", "role", "needs", "title"), rows)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A built-in rubric.", autocompletion=completed("rubrics"))
    ],
) -> None:
    """Print a built-in rubric's file, also as a start for your own.

    Example: judge rubrics show consistency > mine.yaml
    """
    from judge.questions.ready_made import builtin, ready_made, shipped_text

    if name not in ready_made() and name not in builtin():
        names = (*ready_made(), *builtin())
        raise UsageError(f"{name}: no such rubric; {meant(name, names)}")
    typer.echo(shipped_text(name), nl=False)
