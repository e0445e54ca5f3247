"""Tables of results and of calibrations: printed, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from judge.cli.printing import Tables, print_lines, print_output, shortened
from judge.report.table import cell_text
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.calibration.report import Calibration, CheckReport, Disagreement
    from judge.report.table import Cell, Table

_MAX_DISAGREEMENTS = 5
"""Most disagreements of a judge that are printed."""


def print_tables(
    tables: Sequence[Table],
    *,
    as_json: bool,
    all_tables: bool,
    beside: bool = False,
    headlines: int = 1,
) -> None:
    """Print tables: the first `headlines`, every one, or all as JSON.

    They go to standard output, or to standard error if answers go to standard output (`beside`).
    """
    if as_json:
        parts = [table.as_json() for table in tables]
        print_output(json.dumps(parts, ensure_ascii=False, indent=1), err=beside)
    else:
        print_results(tables, all_tables=all_tables, err=beside, headlines=headlines)


def print_results(
    tables: Sequence[Table], *, all_tables: bool, err: bool = False, headlines: int = 1
) -> None:
    """Print the first `headlines` tables that have rows, or every one, each under its title, then
    the notes.

    Measures come before counts other than the totals. An estimate is shown with its interval, and
    with its number of items unless the row has a column for it.
    """
    printer, cut = Tables(all_tables=all_tables, err=err), []
    for number, table in enumerate(table for table in tables if table.rows):
        brief = () if all_tables or number >= headlines else table.brief
        cut += [f"the intervals of {', '.join(brief)}"] if brief else []
        columns = sorted(table.columns, key=lambda name: _rank(table, name))
        rows = [
            [*row.labels, *(_text(row.cells, c, brief=c in brief) for c in columns)]
            for row in table.rows
        ]
        printer.add(
            (*table.heads, *columns),
            rows,
            headline=number < headlines,
            notes=table.notes,
            title=table.title,
            labels=len(table.heads),
            totals=_COUNTS,
        )
    printer.end(*dict.fromkeys(cut))


_COUNTS = ("asked", "pairs")


def _rank(table: Table, column: str) -> int:
    """0 for totals, 1 for measures, 2 for other counts."""
    if column in (*_COUNTS, "of"):
        return 0
    return 2 if all(isinstance(row.cells.get(column), int) for row in table.rows) else 1


def _text(cells: Mapping[str, Cell], column: str, *, brief: bool) -> str:
    cell = cells.get(column)
    if not isinstance(cell, Estimate):
        return cell_text(cell)
    if brief:
        return str(replace(cell, low=None))
    over = "" if cell.n in map(cells.get, _COUNTS) else f", {cell.n} of {cell.of}"
    return f"{cell}{over}"


def print_calibration(report: Calibration, *, all_tables: bool) -> None:
    """Print each check: findings, measures, labels, disagreements, confusion (with `all_tables`),
    slices, remarks; for a leak, its labels and the leak alone."""
    tables = Tables(all_tables=all_tables)
    for check in report.checks:
        if check.leak is not None:
            print_lines(["", check.check, *check.labels_told, str(check.leak)])
            continue
        print_lines(["", check.check, *check.findings])
        rows = check.rows
        tables.add(["judge", *rows[0][1]], [[n, *row.values()] for n, row in rows], headline=True)
        print_lines([*check.labels_told, *_disagreements(check)])
        for judge in check.judges:
            confusion = judge.final.confusion
            counts = [[name, *map(str, row.values())] for name, row in confusion.items()]
            heads = ["label", *next(iter(confusion.values()))]
            tables.add(heads, counts, headline=False, title=f"answers of {judge.name}")
            for name, parts in judge.by.items():
                heads = [name, "items", "answered", "accuracy", judge.final.agreement_name]
                slices = [
                    [value, *map(str, (m.items, m.accuracy.n, m.accuracy, m.agreement))]
                    for value, m in sorted(parts.items(), key=lambda pair: -pair[1].items)
                ]
                tables.add(heads, slices, headline=True, title=f"{judge.name} by {name}")
        print_lines(check.remarks)
    tables.end()


def _disagreements(check: CheckReport) -> Iterator[str]:
    for judge in check.judges:
        disagreements = [d for d in judge.disagreements if d.held_out]
        if not disagreements:
            continue
        name = f"{judge.name}," if judge.calibrated else judge.model
        apart = " held out" if check.held_out < check.items else ""
        text = (
            f"{name} disagrees with {len(disagreements)} of the {judge.final.items} labels{apart}"
        )
        order = "first" if disagreements[0].confidence is None else "surest"
        cut = len(disagreements) > _MAX_DISAGREEMENTS
        yield f"{text}; the {order} {_MAX_DISAGREEMENTS}:" if cut else f"{text}:"
        for disagreement in disagreements[:_MAX_DISAGREEMENTS]:
            yield from _disagreement(disagreement)


def _disagreement(case: Disagreement) -> Iterator[str]:
    number = f", value {case.number}" if case.number else ""
    sure = "" if case.confidence is None else f" ({case.confidence:.2f})"
    votes = ", ".join(f"{n} {answer}" for answer, n in case.votes.items())
    text = f"  {case.record}{number}: says {case.answer}{sure}, the label is {case.reference}"
    yield f"{text} ({votes})" if votes else text
    for name, content in (*case.fields.items(), ("quote", case.quote), ("reason", case.reason)):
        if content:
            yield f"    {name}: {shortened(str(content), 400)}"
