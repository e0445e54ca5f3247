"""`judge build`: make data sets from records and verdicts, without a model."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, nothing, print_lines, print_message, print_table
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge build --list
  judge build attitude-detection judged.jsonl values.jsonl -o detection.jsonl
  judge build culturalbench-hard easy.csv -o hard.jsonl
  judge build filtered judged.jsonl -o sound.jsonl

Records that are left out are in FILE.discarded.jsonl, a line each: source, line, reason, record.

Exit code 3: some lines could not be used.
"""

_TOLD = 5


@opt.with_settings("seed", seed="Seed of the other values in value-selection.")
def command(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="SET", help="Data set to build; see --list.")] = "",
    inputs: opt.Inputs = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write JSON lines to this file.", metavar="FILE"),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the data sets.")] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Count records by this field; repeatable."),
    ] = None,
    largest: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep the N largest groups of the one --by field."),
    ] = None,
    overwrite: opt.Overwrite = False,
    quiet: opt.Quiet = False,
) -> None:
    """Build a data set by a paper's rules, without a model."""
    from judge.papers import datasets
    from judge.papers.datasets import DATASETS
    from judge.papers.rows import REJECTED
    from judge.records import Problem, dump
    from judge.records.base import stratum
    from judge.report.files import writing
    from judge.run.output import discarded_file, refuse_ending

    if list_:
        rows = [(names, title) for names, (title, _) in DATASETS.items()]
        print_table(("set", "contents, and what they are made from"), rows)
        return
    if name not in DATASETS:
        names = f"there are {', '.join(DATASETS)}"
        raise UsageError(f"no set is called {name!r}; {names}" if name else f"name a set; {names}")
    _, build = DATASETS[name]
    if not inputs or out is None:
        raise UsageError(f"judge build {name}: name the files to build from, and -o FILE")
    refuse_ending("-o", out)
    if largest is not None and len(by or ()) != 1:
        raise UsageError("--largest: name one field to group by, --by FIELD")
    beside = discarded_file(out) or Path(os.devnull)
    lines = discards = bad = 0
    first: list[str] = []
    strata: Counter[tuple[tuple[str, ...], bool]] = Counter()
    with (
        writing(out, inputs, overwrite=overwrite) as file,
        writing(beside, inputs, overwrite=overwrite) as left_out,
    ):
        items = build(inputs, settings.seed)
        for item in datasets.largest(items, largest, by[0]) if largest and by else items:
            if isinstance(item, dict):
                file.write(dump(item))
                lines += 1
                strata[stratum(item, by or ()), True] += 1
                continue
            problem = item.problem or Problem("it cannot be read")
            # A line that `largest` leaves out is the set's own, without a line in a source.
            place = {"source": item.source, "line": item.line} if item.line else {}
            discard = {
                **place,
                "reason": problem.message,
                "record": item.fields or item.raw or item.json,
            }
            left_out.write(dump(discard))
            strata[stratum(item.fields, by or ()), False] += 1
            discards, bad = discards + 1, bad + (problem.type != REJECTED)
            if len(first) < _TOLD:
                line = f"line {item.line}: " if item.line else ""
                first.append(f"  {line}{problem.message}")
    if not lines + discards:
        print_message(nothing(inputs))
    if not quiet:
        remark = f"; {discards} left out: {beside}" if discards else ""
        print_message(f"wrote {out}: {counted(lines, 'line')}{remark}")
        print_lines([*first, *(["  ..."] if discards > len(first) else [])], err=True)
    if by and not quiet:
        counts = [
            [*labels, str(strata[labels, True]), str(strata[labels, False])]
            for labels in sorted({labels for labels, _ in strata})
        ]
        print_table([*by, "written", "left out"], counts, labels=len(by), err=True)
    if bad:
        raise typer.Exit(int(Exit.INCOMPLETE))
