"""`judge rubrics`: list them, show what a judge is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from judge.cli.help import Command, Group
from judge.cli.printing import print_table, say

app = typer.Typer(cls=Group, no_args_is_help=True, add_completion=False)
Sources = Annotated[
    list[str] | None,
    typer.Option("--rubric", metavar="FILE|FOLDER", help="Rubrics of your own as well."),
]


@app.command("list", cls=Command)
def list_(rubric: Sources = None) -> None:
    """Every rubric: name, role, fields that it needs, title.

    Example: `judge rubrics list --rubric my-rubrics/`
    """
    from judge.rubric import collect

    rubrics, _ = collect(rubric or [])
    heads = ("name", "role", "needs", "title")
    rows = [
        (name, one.role, ", ".join(one.required), one.title)
        for name, one in sorted(rubrics.items())
    ]
    print_table(heads, rows, text=heads[1:])


@app.command(cls=Command)
def show(
    name: Annotated[str, typer.Argument(help="A rubric's name, or a rubric file.")],
    as_json: Annotated[bool, typer.Option("--json", help="The rubric itself, as JSON.")] = False,
) -> None:
    """The questions of one rubric, in the words that a judge reads.

    Example: `judge rubrics show consistency`
    """
    from judge.rubric import as_text, named, system_text

    rubric = named(name)
    if as_json:
        say(as_text(rubric))
        return
    say(f"{rubric.name} ({rubric.digest}): {rubric.title}\nsource: {rubric.source}")
    say(f"shows: {', '.join(rubric.fields)}; needs: {', '.join(rubric.required)}")
    say(f"reply: {rubric.reply}\n\nsystem\n{system_text()}\n")
    say(f"structured question\n{rubric.readings.structured.question}")
    steps = rubric.readings.probability.steps if rubric.readings.probability else ()
    for number, step in enumerate(steps, 1):
        outcome = f"yes: {step.yes or 'go on'}, no: {step.no or 'go on'}"
        say(f"probability question {number} (threshold {step.threshold}, {outcome})")
        say(step.question)
