"""`judge compare`: two runs on the same items, with paired differences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.options import need_calibrate
from judge.cli.printing import say, tell

if TYPE_CHECKING:
    from judge.evaluation.comparing import Comparison

EPILOG = """**Examples**

`judge compare small.jsonl large.jsonl` — two outputs of judge evaluate: each condition, and overall

`judge compare before.jsonl after.jsonl --by country` — two outputs of judge validate; by country

`judge compare a.jsonl b.jsonl --json | jq '.rows[] | {series, difference}'`

Items are paired by id and condition, records without an id by their content. What only one run
has, or scored, is counted and left out.

**Exit codes**: 0 compared; 2 bad usage: no runs, nothing in common, or not the same items.
"""


def command(
    first: Annotated[
        str,
        typer.Argument(
            metavar="RUN_A",
            help="Output of judge evaluate, validate or score; - reads stdin.",
            show_default=False,
        ),
    ],
    second: Annotated[
        str,
        typer.Argument(metavar="RUN_B", help="Another one, of the same items.", show_default=False),
    ],
    by: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Also apart by this field of the items.")
    ] = None,
    draws: Annotated[
        int, typer.Option(min=1, help="Bootstrap draws for the 95 % intervals.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Say how much better run B is than run A on the items that both have.

    Differences come with paired bootstrap intervals; where scores are right or wrong, McNemar's
    exact test comes beside them. The table goes to standard output, notes to standard error.
    """
    need_calibrate("judge compare")
    from judge.evaluation.comparing import compare

    found = compare(first, second, by=by, draws=draws, seed=seed)
    if as_json:
        say(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        from judge.cli.compare_tables import show

        show(found)
    for note in _notes(found):
        tell(note)


def _notes(found: Comparison) -> Iterator[str]:
    for run, number in zip("AB", found.faulty, strict=True):
        if number:
            yield f"{number} lines of {run} are about input that could not be read: no items"
    if found.changed:
        yield f"{found.changed} records have the same id in A and B, and different content"
    for name, run in found.lone.items():
        yield f"{name} is only in {run}"
    for row in found.rows:
        if row.left_out and row.part is None:
            left = row.difference.of - row.difference.n
            reasons = ", ".join(f"{count} {reason}" for reason, count in row.left_out.items())
            yield f"{row.series}: {left} of {row.difference.of} pairs are left out: {reasons}"
    if any(row.test is not None and row.clusters < row.difference.n for row in found.rows):
        yield (
            "some items share a row of the source: the intervals draw them together, "
            "McNemar's test takes each for itself"
        )
