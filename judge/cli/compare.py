"""`judge compare`: two runs on the same items, with paired differences."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import say, tell

EPILOG = """\b
Examples:
  judge compare small.jsonl large.jsonl
  judge compare before.jsonl after.jsonl
  judge compare a.jsonl b.jsonl --json | jq '.rows[] | {condition, "B - A"}'

Items are paired by id and condition, records without an id by their content. What only one run
has, or scored, is counted and left out.
"""

First = Annotated[
    str,
    typer.Argument(metavar="RUN_A", help="Output of judge evaluate or validate; - reads stdin."),
]
Second = Annotated[str, typer.Argument(metavar="RUN_B", help="Another one, of the same items.")]


def command(first: First, second: Second, as_json: opt.Json = False) -> None:
    """Say how much better run B is than run A on the items that both have.

    Differences come with paired bootstrap intervals; where scores are right or wrong, McNemar's
    exact test comes beside them. The table goes to standard output, notes to standard error.
    """
    opt.need_calibrate("judge compare")
    from judge.evaluation.comparing import compare

    found = compare(first, second)
    if as_json:
        say(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        from judge.cli.tables import print_results

        say(f"{found.made_by}\nA: {first}\nB: {second}")
        told = "{both} items in both, {only_a} only in A, {only_b} only in B\n"
        say(told.format_map(found.items))
        print_results([found.table])
    for note in found.notes:
        tell(note)
