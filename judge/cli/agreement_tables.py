"""The tables of `judge agreement`: agreement, majorities, answers, groups in pairs, means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from judge.calibration.agreement import (
    DIVERGE,
    JOINED,
    Agreement,
    CheckAgreement,
    Figures,
    means,
)
from judge.cli.printing import print_table
from judge.stats.intervals import Estimate

_NONE = "-"
_MOST_ANSWERS = 12
"""More classes than this make no columns: free answers, or a misread field."""


def show(report: Agreement) -> None:
    """Print the tables of each check, and the means over all checks."""
    for check in report.checks:
        rows = {"all": check.overall, **check.groups, **check.parts}
        labels = f"{check.overall.labels} labels by {check.overall.annotators} annotators"
        heads = {"Fleiss κ": "fleiss", "pairwise": "pairwise", "α": "alpha", "Cohen κ": "cohen"}
        title = f"{check.check}: agreement of {labels} (95 % intervals)"
        _measures(title, rows, heads, _interval)
        _majorities(check.check, rows)
        _measures(
            f"{check.check}: accuracy of the majority, over questions with gold and a majority",
            rows,
            {"all": "accuracy", **{name: f"accuracy of {name}" for name in check.classes}},
            _right,
        )
        if len(check.classes) <= _MOST_ANSWERS:
            _answers(check.check, rows, check.classes)
            heads = {name: f"fleiss of {name}" for name in check.classes}
            _measures(f"{check.check}: Fleiss κ of each answer", rows, heads, _interval)
        _across(check)
        _means(f"{check.check}: means over groups", list(check.groups.values()))
        _means(f"{check.check}: means over parts", list(check.parts.values()))
    _means("means over checks", [check.overall for check in report.checks])


def _measures(
    title: str,
    rows: Mapping[str, Figures],
    heads: Mapping[str, str],
    told: Callable[[Estimate], str],
) -> None:
    """A table of those measures that some row has; `heads` maps a column's head to the measure."""
    shown = {
        head: name
        for head, name in heads.items()
        if any(name in one.measures for one in rows.values())
    }
    if shown:
        table = [
            [who, *(told(one.measures.get(name, Estimate(None))) for name in shown.values())]
            for who, one in rows.items()
        ]
        print_table(["who", *shown], table, title=title)


def _majorities(check: str, rows: Mapping[str, Figures]) -> None:
    table = []
    for who, one in rows.items():
        diverge = one.majorities.get(DIVERGE, 0)
        several = sum(count for answer, count in one.majorities.items() if JOINED in answer)
        single = one.questions - several - diverge
        shares = [f"{n} ({n / one.questions:.0%})" for n in (single, several, diverge)]
        table.append([who, str(one.questions), *(shares if one.questions else [_NONE] * 3)])
    heads = ["who", "questions", "single", "several", "diverge"]
    print_table(heads, table, title=f"{check}: majority of each question")


def _answers(check: str, rows: Mapping[str, Figures], classes: Sequence[str]) -> None:
    table = [
        [who, *(str(one.answers[name]) for name in classes), _share(one.measures["undecided"])]
        for who, one in rows.items()
    ]
    title = f"{check}: answers, and the share that decides nothing"
    print_table(["who", *classes, "undecided"], table, title=title)


def _across(check: CheckAgreement) -> None:
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
    heads = ["groups", "shared", "pairwise", "same majority", "κ of majorities"]
    if table:
        print_table(heads, table, title=f"{check.check}: across groups")


def _means(title: str, rows: Sequence[Figures]) -> None:
    table = [
        [name, _number(one.value), f"{one.n} of {one.of}"]
        for name, one in means(rows).items()
        if one.value is not None
    ]
    if len(rows) > 1:
        print_table(["measure", "mean", "rows"], table, title=title)


def _interval(one: Estimate) -> str:
    if one.value is None:
        return _NONE
    if one.low is None or one.high is None:
        return _number(one.value)
    return f"{_number(one.value)} [{_number(one.low)}, {_number(one.high)}]"


def _number(value: float) -> str:
    """Two places, and no minus before 0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def _share(one: Estimate) -> str:
    return _NONE if one.value is None else f"{one.value:.1%}"


def _right(one: Estimate) -> str:
    if one.value is None:
        return _NONE
    return f"{one.value:.1%} ({round(one.value * one.n)} of {one.n})"
