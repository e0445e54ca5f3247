"""The tables of `judge agreement`: agreement, classes, majorities, groups crosswise, annotators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from judge.calibration.agreement import means
from judge.cli.printing import WIDEST, plain_console

if TYPE_CHECKING:
    from judge.calibration.agreement import Agreement, CheckAgreement
    from judge.calibration.figures import Figures
    from judge.stats.intervals import Estimate

_NONE = "-"
_MOST_ANSWERS = 12
"""More classes than this make no columns: free answers, or a misread field."""


def show(report: Agreement) -> None:
    """Print every table that has something to say on standard output."""
    made = [_agreement(report), _majorities(report)]
    made += [table for check in report.checks for table in _of_check(check)]
    made += [_annotators(report)]
    # Rich cuts cells to the terminal's width, or to 80 in a pipe; these are the data.
    console = plain_console(width=WIDEST)
    for place, table in enumerate(table for table in made if table.row_count):
        title, table.title = table.title, None
        console.print(*[""] if place else [], title, sep="\n")
        console.print(table, soft_wrap=True)


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in left:
        table.add_column(column, no_wrap=True)
    for column in right:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _rows(check: CheckAgreement) -> Iterator[tuple[str, Figures]]:
    yield "all", check.overall
    yield from check.groups.items()
    yield from check.parts.items()


def _agreement(report: Agreement) -> Table:
    """The columns of NormAd's tables 3 and 4 that measure agreement, and their mean rows."""
    table = _table(
        "agreement (95 % intervals)",
        ["check", "who"],
        ["questions", "labels", "annotators", "Fleiss κ", "free κ", "pairwise", "α", "Cohen κ"],
    )
    for check in report.checks:
        for who, one in _rows(check):
            counts = [str(number) for number in (one.questions, one.labels, one.annotators)]
            measures = [one.fleiss, one.free, one.pairwise, one.alpha, one.cohen]
            table.add_row(check.check, who, *counts, *map(_told, measures))
        for who, rows in _averaged(check):
            table.add_row(check.check, who, "", "", "", *_means(rows), "")
    if len(report.checks) > 1:
        overall = [check.overall for check in report.checks]
        table.add_row("mean", "", "", "", "", *_means(overall), "")
    return table


def _averaged(check: CheckAgreement) -> Iterator[tuple[str, list[Figures]]]:
    for name, rows in (("mean of groups", check.groups), ("mean of parts", check.parts)):
        if len(rows) > 1:
            yield name, list(rows.values())


def _means(rows: list[Figures]) -> list[str]:
    found = means(rows)
    return [_mean(found[name]) for name in ("fleiss", "free", "pairwise", "alpha")]


def _majorities(report: Agreement) -> Table:
    """CulturalBench's step 3 (single, several, none), and NormAd's accuracies."""
    golds = list(
        dict.fromkeys(gold for check in report.checks for gold in check.overall.majority.by_gold)
    )[:_MOST_ANSWERS]
    accuracies = ["accuracy", "ties at random", *golds] if golds else []
    table = _table(
        "majority, and its accuracy against gold (right of questions with gold and a majority)",
        ["check", "who"],
        ["questions", "single", "several", "diverge", *accuracies],
    )
    for check in report.checks:
        for who, figures in _rows(check):
            one = figures.majority
            outcomes = [_of(n, one.questions) for n in (one.single, one.several, one.diverge)]
            told = [_right(one.accuracy), _share(one.ties_at_random)] if golds else []
            told += [_right(one.by_gold.get(gold)) for gold in golds]
            table.add_row(check.check, who, str(one.questions), *outcomes, *told)
        for who, rows in _averaged(check) if golds else ():
            table.add_row(check.check, who, "", "", "", "", *_mean_accuracies(rows, golds))
    if golds and len(report.checks) > 1:
        overall = [check.overall for check in report.checks]
        table.add_row("mean", "", "", "", "", "", *_mean_accuracies(overall, golds))
    return table


def _mean_accuracies(rows: list[Figures], golds: Sequence[str]) -> list[str]:
    found = means(rows)
    names = ["accuracy", "ties_at_random", *(f"accuracy:{gold}" for gold in golds)]
    return [_mean(found[name], "{:.1%}".format) if name in found else _NONE for name in names]


def _of_check(check: CheckAgreement) -> Iterator[Table]:
    if len(check.classes) <= _MOST_ANSWERS:
        yield _answers(check)
        yield _classes(check)
    yield _across(check)


def _answers(check: CheckAgreement) -> Table:
    title = f"{check.check}: answers, and the share that decides nothing"
    table = _table(title, ["who"], [*check.classes, "undecided"])
    for who, one in _rows(check):
        counts = [str(one.answers[name]) for name in check.classes]
        table.add_row(who, *counts, _share(one.undecided))
    return table


def _classes(check: CheckAgreement) -> Table:
    """CALI 3.6: Fleiss's kappa of each class against the rest, a row a group."""
    table = _table(f"{check.check}: Fleiss κ of each answer", ["who"], check.classes)
    for who, one in _rows(check):
        table.add_row(who, *(_told(one.classes[name]) for name in check.classes))
    return table


def _across(check: CheckAgreement) -> Table:
    table = _table(
        f"{check.check}: across groups",
        ["group", "group"],
        ["shared questions", "pairwise", "same majority", "κ of majorities"],
    )
    for one in check.across:
        measures = [_told(one.pairwise), _right(one.same), _told(one.kappa)]
        table.add_row(one.first, one.second, str(one.pairwise.n), *measures)
    return table


def _annotators(report: Agreement) -> Table:
    """CALI B.3: those whom control questions or contradictory ratings tell something about."""
    table = _table(
        "annotators",
        ["annotator"],
        ["labels", "controls", "right", "pairs", "contradictory", "dropped"],
    )
    dropped = {one.name for one in report.prepared.dropped}
    for one in report.prepared.annotators:
        if one.controls or one.pairs:
            right, both = _of(one.right, one.controls), _of(one.contradictory, one.pairs)
            gone = "yes" if one.name in dropped else ""
            counts = (str(one.labels), str(one.controls), right, str(one.pairs), both)
            table.add_row(one.name, *counts, gone)
    return table


def _told(one: Estimate) -> str:
    if one.value is None:
        return _NONE
    if one.low is None or one.high is None:
        return _number(one.value)
    return f"{_number(one.value)} [{_number(one.low)}, {_number(one.high)}]"


def _number(value: float) -> str:
    """Two places, and no minus before 0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def _mean(one: Estimate, told: Callable[[float], str] = _number) -> str:
    return _NONE if one.value is None else f"{told(one.value)} ({one.n} of {one.of})"


def _of(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else _NONE


def _right(one: Estimate | None) -> str:
    if one is None or one.value is None:
        return _NONE
    return f"{one.value:.1%} ({round(one.value * one.n)} of {one.n})"


def _share(one: Estimate) -> str:
    return _NONE if one.value is None else f"{one.value:.1%}"
