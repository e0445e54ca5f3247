"""`judge compare`: two runs on the same items, with paired differences."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from judge.cli.options import need_calibrate
from judge.cli.printing import say, tell

EPILOG = """**Examples**

`judge compare small.jsonl large.jsonl` — two outputs of judge evaluate: each condition, and overall

`judge compare before.jsonl after.jsonl --by country` — two outputs of judge validate; by country

`judge compare a.jsonl b.jsonl --json | jq '.rows[] | {condition, "B - A"}'`

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
        from judge.cli.result_tables import print_results

        what = "items" if found.kind == "evaluate" else "records"
        say(f"judge {found.kind}, {', '.join(found.names)}")
        say(f"A: {first}\nB: {second}")
        say(f"{found.both} {what} in both, {found.only_a} only in A, {found.only_b} only in B\n")
        print_results([found.table])
    for note in found.notes:
        tell(note)
