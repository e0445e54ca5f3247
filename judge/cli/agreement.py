"""`judge agreement`: how far people agree with one another, before a judge is held against them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judge.cli import options as opt
from judge.cli.extras import need_calibrate
from judge.cli.printing import WIDEST, plain_console, say, tell
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.calibration.agreement import Agreement, CheckAgreement, Figures
    from judge.records.labels import LabelledItem
    from judge.stats.intervals import Estimate

EPILOG = """**Examples**

`judge agreement multipico:MP_en_dev_test.json` — all annotators, each nationality, and across them

`judge agreement votes.jsonl --check relevance --majority 4/5 --json` — one check, as JSON

`judge agreement votes.jsonl gold.jsonl --by country` — gold from another file; by country

**Exit codes**: 0 all lines read; 2 bad usage; 3 some lines could not be read, and are named.
"""

_NONE = "-"
_MOST_ANSWERS = 12
"""More classes than this make no columns: free answers, or a misread field."""

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
AsJson = Annotated[bool, typer.Option("--json", help="Everything, also each two annotators.")]


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

    named = _answers(order)
    options = Options(Threshold.parse(majority), level, named, by, draws, seed)
    reading = _Reading(sources, check, annotators)
    report = agreement(reading, options)
    if not report.checks:
        raise UsageError(_nothing(sources, reading))
    if as_json:
        say(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        _show(report)
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


def _answers(text: str | None) -> tuple[str, ...]:
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


def _show(report: Agreement) -> None:
    """Print the tables of each check, and the means over all checks."""
    for check in report.checks:
        rows = {"all": check.overall, **check.groups, **check.parts}
        _agreement(check, rows)
        _majorities(check, rows)
        if len(check.classes) <= _MOST_ANSWERS:
            _answered(check, rows)
        _across(check)
        _means(f"{check.check}: means over groups", list(check.groups.values()))
        _means(f"{check.check}: means over parts", list(check.parts.values()))
    _means("means over checks", [check.overall for check in report.checks])


def _agreement(check: CheckAgreement, rows: dict[str, Figures]) -> None:
    columns = {"Fleiss κ": "fleiss", "pairwise": "pairwise", "α": "alpha"}
    if any(one.cohen.value is not None for one in rows.values()):
        columns["Cohen κ"] = "cohen"
    table = [
        [who, str(one.questions), *(_interval(getattr(one, name)) for name in columns.values())]
        for who, one in rows.items()
    ]
    counts = f"{check.overall.labels} labels by {check.overall.annotators} annotators"
    title = f"{check.check}: agreement of {counts} (95 % intervals)"
    _print(title, ["who", "questions", *columns], table)


def _majorities(check: CheckAgreement, rows: dict[str, Figures]) -> None:
    golds = list(check.overall.by_gold)[:_MOST_ANSWERS]
    table = []
    for who, one in rows.items():
        outcomes = [_of(n, one.questions) for n in (one.single, one.several, one.diverge)]
        right = [_right(one.accuracy), *(_right(one.by_gold.get(gold)) for gold in golds)]
        table.append([who, str(one.questions), *outcomes, *(right if golds else [])])
    columns = ["who", "questions", "single", "several", "diverge"]
    columns += ["accuracy", *golds] if golds else []
    accuracy = ", and its accuracy over questions with gold and a majority" if golds else ""
    _print(f"{check.check}: majority{accuracy}", columns, table)


def _answered(check: CheckAgreement, rows: dict[str, Figures]) -> None:
    title = f"{check.check}: answers, and the share that decides nothing"
    counts = [
        [who, *(str(one.answers[name]) for name in check.classes), f"{one.undecided.value:.1%}"]
        for who, one in rows.items()
    ]
    _print(title, ["who", *check.classes, "undecided"], counts)
    kappas = [
        [who, *(_interval(one.classes[name]) for name in check.classes)]
        for who, one in rows.items()
    ]
    # Of two classes, both have the kappa of the first table.
    if len(check.classes) > 2:
        _print(f"{check.check}: Fleiss κ of each answer", ["who", *check.classes], kappas)


def _across(check: CheckAgreement) -> None:
    columns = ["groups", "questions", "pairwise", "same majority", "κ of majorities"]
    table = [
        [
            f"{one.first}, {one.second}",
            str(one.pairwise.n),
            _interval(one.pairwise),
            _right(one.same),
            _interval(one.kappa),
        ]
        for one in check.across
    ]
    _print(f"{check.check}: across groups", columns, table)


def _means(title: str, rows: list[Figures]) -> None:
    from judge.calibration.agreement import means

    if len(rows) < 2:
        return
    table = [
        [name.replace(":", " of "), _number(one.value), f"{one.n} of {one.of}"]
        for name, one in means(rows).items()
        if one.value is not None
    ]
    _print(title, ["figure", "mean", "defined in"], table)


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output, its first column to the left and the others to the right."""
    from rich import box
    from rich.table import Table

    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    # Rich cuts cells to the terminal's width, or to 80 in a pipe; these are the data.
    console = plain_console(width=WIDEST)
    console.print(title)
    console.print(table, soft_wrap=True)


def _interval(one: Estimate) -> str:
    if one.value is None:
        return _NONE
    if one.low is None or one.high is None:
        return _number(one.value)
    return f"{_number(one.value)} [{_number(one.low)}, {_number(one.high)}]"


def _number(value: float) -> str:
    """Two places, and no minus before 0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def _of(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else _NONE


def _right(one: Estimate | None) -> str:
    if one is None or one.value is None:
        return _NONE
    return f"{one.value:.1%} ({round(one.value * one.n)} of {one.n})"
