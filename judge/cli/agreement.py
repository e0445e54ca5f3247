"""`judge agreement`: how far people agree with one another, before a judge is held against them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judge.cli import options as opt
from judge.cli.extras import need_calibrate
from judge.cli.printing import say, tell
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.calibration.agreement import Agreement
    from judge.calibration.ratings import Preparation
    from judge.records.labels import LabelledItem

_MEASURES, _ANNOTATORS = "Measures", "Annotators"

EPILOG = """**Examples**

`judge agreement multipico:MP_en_dev_test.json` — everybody, each nationality, and across them

`judge agreement votes.jsonl --check relevance --majority 4/5 --json` — one check, as JSON

`judge agreement ratings.csv --scale --controls control=yes --drop-below 0.6` — as CALI does

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
    str | None, typer.Option(metavar="FIELD", help="Also apart by this field of the records.")
]
Majority = Annotated[
    str,
    typer.Option(
        metavar="SHARE|K/N|half",
        help="What makes a majority: 0.75, 75%, 4/5 (at least 4 votes), or more than half.",
        rich_help_panel=_MEASURES,
    ),
]
Scale = Annotated[
    Literal["nominal", "ordinal", "interval"],
    typer.Option("--level", help="Of alpha, and of two raters' kappa.", rich_help_panel=_MEASURES),
]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="All answers that could be given, in the order of their scale; none that was given "
        "may be missing.",
        rich_help_panel=_MEASURES,
    ),
]
Settled = Annotated[
    bool,
    typer.Option(
        "--settled",
        help="Only questions on which one group at least has a majority.",
        rich_help_panel=_MEASURES,
    ),
]
Raters = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Measure agreement of N raters a question, drawn with --seed.",
        rich_help_panel=_MEASURES,
    ),
]
Draws = Annotated[
    int,
    typer.Option(
        min=0, help="Bootstrap draws for the 95 % intervals; 0: none.", rich_help_panel=_MEASURES
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Of --raters and the intervals.", rich_help_panel=_MEASURES)
]
Groups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Annotators and their groups, where the labels do not tell.",
        rich_help_panel=_ANNOTATORS,
    ),
]
Ratings = Annotated[
    bool,
    typer.Option(
        "--scale",
        help="Ratings 1 to 5 become entailment, neutral, contradiction; what an annotator's 2 and "
        "4 mean is fitted to the --controls.",
        rich_help_panel=_ANNOTATORS,
    ),
]
Controls = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Control questions: these records, where they have a gold answer. They count for "
        "nothing else.",
        rich_help_panel=_ANNOTATORS,
    ),
]
DropBelow = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Drop annotators whose accuracy on --controls is lower.",
        rich_help_panel=_ANNOTATORS,
    ),
]
Exclusive = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD",
        help="Of the statements that share this field's value at most one can hold.",
        rich_help_panel=_ANNOTATORS,
    ),
]
DropContradictory = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Drop annotators who affirm both statements of more than this share of such pairs.",
        rich_help_panel=_ANNOTATORS,
    ),
]


def command(
    context: typer.Context,
    labels: Labels = None,
    check: Check = None,
    by: By = None,
    majority: Majority = "half",
    level: Scale = "nominal",
    order: Order = None,
    settled: Settled = False,
    raters: Raters = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    annotators: Groups = None,
    scale: Ratings = False,
    controls: Controls = None,
    drop_below: DropBelow = None,
    exclusive: Exclusive = None,
    drop_contradictory: DropContradictory = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Everything, also each two annotators, as JSON.")
    ] = False,
) -> None:
    """Measure agreement among people: kappas, alpha, majorities, and whose labels to drop.

    No model is asked anything. Tables go to standard output, notes to standard error.
    """
    sources = opt.inputs_or_stdin(labels, context)
    need_calibrate("judge agreement")
    from judge.calibration.agreement import Options, Threshold, agreement

    options = Options(
        majority=Threshold.parse(majority),
        level=level,
        order=_answers(order),
        by=by,
        raters=raters,
        settled=settled,
        preparation=_preparation(controls, exclusive, drop_below, drop_contradictory, scale),
        draws=draws,
        seed=seed,
    )
    reading = _Reading(sources, check, annotators)
    report = agreement(reading, options)
    if not report.checks:
        raise UsageError(_nothing(sources, reading, report))
    if as_json:
        say(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        from judge.cli.agreement_tables import show

        show(report)
    for note in _notes(report, scale=scale):
        tell(note)
    if reading.unreadable:
        tell(f"{reading.unreadable} line(s) could not be read")
        raise typer.Exit(int(Exit.INCOMPLETE))


class _Reading:
    """The labelled items of all sources; lines that cannot be read are told as they come."""

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


def _answers(text: str | None) -> tuple[str, ...]:
    """The answers of --order, folded as labels are."""
    named = tuple(answer.strip().casefold() for answer in (text or "").split(",") if answer.strip())
    if len(set(named)) != len(named):
        raise UsageError(f"--order {text}: names an answer twice")
    return named


def _preparation(
    controls: str | None,
    exclusive: str | None,
    drop_below: float | None,
    drop_contradictory: float | None,
    scale: bool,
) -> Preparation:
    from judge.calibration.ratings import Preparation

    name, found, value = (controls or "").partition("=")
    if controls is not None and not (name and found and value):
        raise UsageError(f"--controls {controls}: give FIELD=VALUE, such as control=yes")
    if drop_below is not None and controls is None:
        raise UsageError("--drop-below needs --controls: they tell how well an annotator does")
    if drop_contradictory is not None and exclusive is None:
        raise UsageError("--drop-contradictory needs --exclusive: which statements contradict")
    chosen = (name, value) if controls is not None else None
    return Preparation(chosen, exclusive, drop_below, drop_contradictory, scale)


def _nothing(sources: Sequence[str], reading: _Reading, report: Agreement) -> str:
    lines = f"; {reading.unreadable} line(s) could not be read" if reading.unreadable else ""
    if not reading.labelled:
        return f"{', '.join(sources)}: no labels at all{lines}"
    if report.prepared.labels:
        return f"no label is left of {report.prepared.labels}{lines}"
    return (
        "the labels do not say who gave which answer: write them as "
        '{"labels": {"CHECK": {"ann": "yes", "bo": "no"}}}, or as a table of item, annotator and '
        f"label{lines}"
    )


def _notes(report: Agreement, *, scale: bool) -> Iterator[str]:
    prepared = report.prepared
    if prepared.dropped:
        names = ", ".join(one.name for one in prepared.dropped)
        share = prepared.dropped_labels / prepared.labels
        yield (
            f"dropped {len(prepared.dropped)} of {len(prepared.annotators)} annotators, "
            f"{prepared.dropped_labels} of {prepared.labels} labels ({share:.0%}): {names}"
        )
    if scale:
        without = len(prepared.annotators) - len(prepared.scales)
        yield (
            f"scales were fitted for {len(prepared.scales)} annotators; the 2s and 4s of "
            f"{without} without control questions are neutral"
        )
    if report.unsettled:
        yield f"{report.unsettled} questions were left out: no group has a majority"
    if prepared.repeated:
        yield (
            f"{prepared.repeated} answers were left out: their annotator had answered the "
            f"question before ({prepared.changed} times otherwise)"
        )
    if prepared.conflicting:
        yield f"{prepared.conflicting} times a second gold answer differed; the first one holds"
