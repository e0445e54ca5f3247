"""`judge agreement`: how far people agree with one another, before a judge is held against them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judge.cli import options as opt
from judge.cli.options import need_calibrate
from judge.cli.printing import say, tell
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.records.labels import LabelledItem

EPILOG = """**Examples**

`judge agreement multipico:MP_en_dev_test.json` — all annotators, each nationality, and across them

`judge agreement votes.jsonl --check relevance --majority 4/5 --json` — one check, as JSON

`judge agreement votes.jsonl gold.jsonl --by country` — gold from another file; by country

**Exit codes**: 0 all lines read; 2 bad usage; 3 some lines could not be read, and are named.
"""

Labels = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[LABELS]...",
        help="Labelled records, FILE or SET:PATH; what several files say of one record goes "
        "together. - reads stdin.",
        show_default=False,
    ),
]
Check = Annotated[
    str | None,
    typer.Option(
        help="Only this check; of a table without a column check: what its labels are about."
    ),
]
By = Annotated[
    str | None, typer.Option(metavar="FIELD", help="Also grouped by this field of the records.")
]
Majority = Annotated[
    str,
    typer.Option(
        metavar="SHARE|K/N|half",
        help="What makes a majority: 0.75, 75%, 4/5 (at least 4 votes), or more than half.",
    ),
]
Scale = Annotated[
    Literal["nominal", "ordinal", "interval"],
    typer.Option("--level", help="Of alpha, and of two raters' kappa."),
]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="All answers that could be given, in the order of their scale.",
    ),
]
Draws = Annotated[int, typer.Option(min=0, help="Bootstrap draws for the 95 % intervals; 0: none.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed for the intervals.")]
Groups = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Annotators and their groups, where the labels do not tell."),
]
AsJson = Annotated[bool, typer.Option("--json", help="All figures as JSON.")]


def command(
    context: typer.Context,
    labels: Labels = None,
    check: Check = None,
    by: By = None,
    majority: Majority = "half",
    level: Scale = "nominal",
    order: Order = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    annotators: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Measure agreement among people: kappas, alpha, majorities, and how groups differ.

    No model is asked. Tables go to standard output, notes to standard error.
    """
    sources = opt.inputs_or_stdin(labels, context)
    need_calibrate("judge agreement")
    from judge.calibration.agreement import Options, agreement
    from judge.stats.votes import Threshold

    named = _ordered(order)
    options = Options(Threshold.parse(majority), level, named, by, draws, seed)
    reading = _Reading(sources, check, annotators)
    report = agreement(reading, options)
    if not report.checks:
        raise UsageError(_nothing(sources, reading))
    if as_json:
        say(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        from judge.cli.agreement_tables import show

        show(report)
    if report.repeated:
        tell(
            f"{report.repeated} answers were left out: their annotator had answered the question "
            f"before ({report.changed} of them differently)"
        )
    if report.conflicting:
        tell(f"{report.conflicting} times a second gold answer differed; the first one holds")
    if reading.unreadable:
        tell(f"{reading.unreadable} line(s) could not be read")
        raise typer.Exit(int(Exit.INCOMPLETE))


class _Reading:
    """The labelled items of all sources; lines that cannot be read are named on stderr."""

    def __init__(self, sources: Sequence[str], check: str | None, annotators: Path | None) -> None:
        self._asked = (sources, check, annotators)
        self.unreadable = 0
        self.labelled = 0

    def __iter__(self) -> Iterator[LabelledItem]:
        from judge.records.labels import LabelledItem, read_labels

        sources, check, annotators = self._asked
        for source in sources:
            for item in read_labels(source, check, annotators=annotators):
                if isinstance(item, LabelledItem):
                    self.labelled += 1
                    yield item
                    continue
                self.unreadable += 1
                message = item.problem.message if item.problem else "holds no label"
                tell(f"{item.source}, line {item.line}: {message}")


def _ordered(text: str | None) -> tuple[str, ...]:
    """The answers of --order, in lower case as labels are."""
    named = tuple(answer.strip().casefold() for answer in (text or "").split(",") if answer.strip())
    if len(set(named)) != len(named):
        raise UsageError(f"--order {text}: names an answer twice")
    return named


def _nothing(sources: Sequence[str], reading: _Reading) -> str:
    lines = f"; {reading.unreadable} line(s) could not be read" if reading.unreadable else ""
    if not reading.labelled:
        return f"{', '.join(sources)}: no labels at all{lines}"
    return (
        "the labels do not say who gave which answer: write them as "
        '{"labels": {"CHECK": {"ann": "yes", "bo": "no"}}}, or as a table of item, annotator and '
        f"label{lines}"
    )
