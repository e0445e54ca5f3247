"""`judge agreement`: how far people agree with one another, before a judge is held against them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.options import need_calibrate
from judge.cli.printing import print_table, say, tell
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.calibration.agreement import Across, Agreement, Figures
    from judge.stats.intervals import Estimate

_MOST_ANSWERS = 12
"""More classes than this make no columns: free answers, or a misread field."""

_UNSIGNED = (
    "the labels do not say who gave which answer: write them as "
    '{"labels": {"CHECK": {"ann": "yes", "bo": "no"}}}, or as a table of item, annotator and label'
)

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
    from judge.records.labels import LabelledItem, read_labels
    from judge.stats.votes import Threshold

    unreadable = labelled = 0

    def items() -> Iterator[LabelledItem]:
        nonlocal unreadable, labelled
        for source in sources:
            for item in read_labels(source, check, annotators=annotators):
                if isinstance(item, LabelledItem):
                    labelled += 1
                    yield item
                    continue
                unreadable += 1
                message = item.problem.message if item.problem else "holds no label"
                tell(f"{item.source}, line {item.line}: {message}")

    options = Options(Threshold.parse(majority), by, draws, seed)
    report = agreement(items(), options)
    if not report.checks:
        lines = f"; {unreadable} line(s) could not be read" if unreadable else ""
        if not labelled:
            raise UsageError(f"{', '.join(sources)}: no labels at all{lines}")
        raise UsageError(f"{_UNSIGNED}{lines}")
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
    if unreadable:
        tell(f"{unreadable} line(s) could not be read")
        raise typer.Exit(int(Exit.INCOMPLETE))


def _show(report: Agreement) -> None:
    """Print the tables of each check, and the means over all checks."""
    for check in report.checks:
        name = check.check
        rows = {"all": check.overall, **check.groups, **check.parts}
        labels = f"{check.overall.labels} labels by {check.overall.annotators} annotators"
        heads = {"Fleiss κ": "fleiss", "pairwise": "pairwise", "α": "alpha", "Cohen κ": "cohen"}
        _measures(f"{name}: agreement of {labels} (95 % intervals)", rows, heads, _interval)
        _majorities(name, rows)
        golds = {"all": "accuracy", **{one: f"accuracy of {one}" for one in check.classes}}
        title = f"{name}: accuracy of the majority, over questions with gold and a majority"
        _measures(title, rows, golds, _right)
        if len(check.classes) <= _MOST_ANSWERS:
            _answers(name, rows, check.classes)
            heads = {one: f"fleiss of {one}" for one in check.classes}
            _measures(f"{name}: Fleiss κ of each answer", rows, heads, _interval)
        across = {f"{one.first}, {one.second}": one for one in check.across}
        heads = {"pairwise": "pairwise", "same majority": "same", "κ of majorities": "kappa"}
        _measures(f"{name}: across groups", across, heads, _interval)
        _means(f"{name}: means over groups", check.groups.values())
    _means("means over checks", [check.overall for check in report.checks])


def _measures(
    title: str,
    rows: Mapping[str, Figures | Across],
    heads: Mapping[str, str],
    told: Callable[[Estimate | None], str],
) -> None:
    """A table of those measures that some row has; `heads` maps a column's head to the measure."""
    shown = {
        head: name
        for head, name in heads.items()
        if any(name in one.measures for one in rows.values())
    }
    table = [
        [who, *(told(one.measures.get(name)) for name in shown.values())]
        for who, one in rows.items()
    ]
    if shown:
        print_table(["who", *shown], table, title=title)


def _majorities(check: str, rows: Mapping[str, Figures]) -> None:
    table = [
        [
            who,
            str(one.questions),
            *(f"{count} ({count / one.questions:.0%})" for count in one.outcomes.values()),
        ]
        for who, one in rows.items()
    ]
    heads = ["who", "questions", *rows["all"].outcomes]
    print_table(heads, table, title=f"{check}: majority of each question")


def _answers(check: str, rows: Mapping[str, Figures], classes: Sequence[str]) -> None:
    table = [
        [who, *(str(one.answers[name]) for name in classes), _right(one.measures["undecided"])]
        for who, one in rows.items()
    ]
    title = f"{check}: answers, and the share that decides nothing"
    print_table(["who", *classes, "undecided"], table, title=title)


def _means(title: str, rows: Iterable[Figures]) -> None:
    from judge.calibration.agreement import means

    figures = list(rows)
    table = [
        [name, _interval(one), f"{one.n} of {one.of}"]
        for name, one in means(figures).items()
        if one.value is not None
    ]
    if len(figures) > 1:
        print_table(["measure", "mean", "rows"], table, title=title)


def _interval(one: Estimate | None) -> str:
    if one is None or one.value is None:
        return "-"
    # The sum drops the minus before 0.00.
    value, low, high = (
        "" if part is None else f"{round(part, 2) + 0.0:.2f}"
        for part in (one.value, one.low, one.high)
    )
    return f"{value} [{low}, {high}]" if low else value


def _right(one: Estimate | None) -> str:
    if one is None or one.value is None:
        return "-"
    return f"{one.value:.1%} ({round(one.value * one.n)} of {one.n})"
