"""Tables of results and of calibrations: printed, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from judge.cli.printing import Tables, counted, print_lines, print_output, shortened
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.calibration.measures import Measures
    from judge.calibration.report import Calibration, CheckReport, Disagreement, JudgeReport
    from judge.report.table import Cell, Table

_MAX_DISAGREEMENTS = 5
"""Disagreements of a judge that are printed."""


def print_tables(
    tables: Sequence[Table],
    *,
    as_json: bool,
    all_tables: bool,
    beside: bool = False,
    headlines: int = 1,
) -> None:
    """Print tables: the first `headlines`, every one, or all as JSON.

    They go to standard output, or where answers go there (`beside`) to standard error.
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

    What is measured stands before the other counts. An estimate is shown with its interval, and
    over how many items it is where its row does not say that.
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
        )
    printer.end(*cut)


_COUNTS = ("asked", "pairs")


def _rank(table: Table, column: str) -> int:
    """0 for how many there are, 1 for what is measured, 2 for other counts."""
    if column in (*_COUNTS, "of"):
        return 0
    return 2 if all(isinstance(row.cells.get(column), int) for row in table.rows) else 1


def _text(cells: Mapping[str, Cell], column: str, *, brief: bool) -> str:
    cell = cells.get(column)
    if not isinstance(cell, Estimate):
        return "–" if cell is None else str(cell)
    if brief:
        return str(replace(cell, low=None))
    over = "" if cell.n in map(cells.get, _COUNTS) else f", {cell.n} of {cell.of}"
    return f"{cell}{over}"


def print_calibration(report: Calibration, *, all_tables: bool) -> None:
    """Every check: disagreements, measures, confusion (of `all_tables`), slices, people, policy."""
    tables = Tables(all_tables=all_tables)
    for check in report.checks:
        if check.leak is not None:
            print_lines(["", check.check, *_labels(check), str(check.leak)])
            continue
        print_lines(["", check.check, *_labels(check), *_disagreements(check)])
        rows = [(name, _row(m)) for judge in check.judges for name, m in _methods(judge)]
        tables.add(["judge", *rows[0][1]], [[n, *row.values()] for n, row in rows], headline=True)
        for judge in check.judges:
            confusion = judge.final.confusion
            counts = [[name, *map(str, row.values())] for name, row in confusion.items()]
            heads = ["label", *next(iter(confusion.values()))]
            tables.add(heads, counts, headline=False, title=f"answers of {_final(judge)}")
            for name, parts in judge.by.items():
                heads = [name, "items", "answered", "accuracy", "kappa"]
                slices = [
                    [value, *map(str, (m.items, m.accuracy.n, m.accuracy, m.kappa))]
                    for value, m in sorted(parts.items(), key=lambda pair: -pair[1].items)
                ]
                tables.add(heads, slices, headline=True, title=f"{_final(judge)} by {name}")
        print_lines([*_controls(check), *_people(check), *_policy(check)])
    tables.end()


def _labels(check: CheckReport) -> Iterator[str]:
    parts = f"{check.fitted_on} for fitting, {check.held_out} held out for the report"
    if check.folds:
        parts = f"{check.folds} parts, each reported on by a fit to the others"
    yield (
        f"{check.items} items about {check.records} records, {check.with_reference} with a "
        f"reference; {parts}"
    )
    if check.joined:
        yield (
            f"{check.joined} records nearly repeat the text of others and count as one with them: "
            f"{check.clusters} are independent"
        )
    for judge in check.judges:
        number = f", {counted(len(judge.questions), 'question')}" if judge.questions else ""
        text = f"  {judge.model}: {judge.method}{number}, {judge.fit.how}"
        yield f"{text} ({judge.fit.reason})" if judge.fit.reason else text
        for reason, count in judge.skipped.items():
            yield f"  {judge.model}: {count} items not sent to it: {reason}"


def _disagreements(check: CheckReport) -> Iterator[str]:
    for judge in check.judges:
        disagreements = [d for d in judge.disagreements if d.held_out]
        if not disagreements:
            continue
        name = f"{_final(judge)}," if judge.calibrated else judge.model
        apart = " held out" if check.held_out < check.items else ""
        text = (
            f"{name} disagrees with {len(disagreements)} of the {judge.final.items} labels{apart}"
        )
        yield f"{text}; the surest {min(_MAX_DISAGREEMENTS, len(disagreements))}:"
        for disagreement in disagreements[:_MAX_DISAGREEMENTS]:
            yield from _disagreement(disagreement)


def _disagreement(case: Disagreement) -> Iterator[str]:
    number = f", value {case.number}" if case.number else ""
    sure = "" if case.confidence is None else f" ({case.confidence:.2f})"
    votes = ", ".join(f"{n} {answer}" for answer, n in case.votes.items())
    text = f"  {case.record}{number}: says {case.answer}{sure}, the label is {case.reference}"
    yield f"{text} ({votes})" if votes else text
    for name, content in {**case.fields, "evidence": case.evidence}.items():
        if content:
            yield f"    {name}: {shortened(str(content), 400)}"


def _methods(judge: JudgeReport) -> Iterator[tuple[str, Measures]]:
    if judge.calibrated is not None and judge.stands.accuracy.n:
        yield f"{judge.model}, as it stands", judge.stands
    yield _final(judge), judge.final


def _final(judge: JudgeReport) -> str:
    """The name that goes with the measures of the final method."""
    return f"{judge.model}, calibrated" if judge.calibrated else judge.model


def _row(measures: Measures) -> dict[str, str]:
    of_class = list(measures.f1.values())
    row = {
        "accuracy": measures.accuracy,
        "kappa": measures.kappa,
        "F1": of_class[0] if len(of_class) == 2 else measures.macro_f1,
        "AUC": measures.auc,
        "calibration error": measures.calibration_error,
    }
    if measures.weighted_kappa is not None and measures.spearman is not None:
        row |= {"weighted κ": measures.weighted_kappa, "Spearman ρ": measures.spearman}
    answers = f"{measures.accuracy.n} of {measures.items}"
    return {"answered": answers} | {name: str(measure) for name, measure in row.items()}


def _controls(check: CheckReport) -> Iterator[str]:
    """What is left of each judge's agreement without the deciding field; with fewer labels."""
    for judge in check.judges:
        if (controls := judge.controls) is not None:
            field = controls.field
            text = f"{_final(judge)}: kappa {controls.kappa}; without {field} "
            yield f"{text}{controls.blind}; difference {controls.above}"
            right = controls.as_swapped
            text = f"  with another {field} {controls.stays} of the answers stay"
            yield text if right is None else f"{text}, {right} are as they must be"
            if controls.contrast is not None and controls.together is not None:
                text = f"  with {field} turned round: kappa {controls.contrast}"
                yield f"{text}; both sets together {controls.together}"
            yield f"  {controls.finding()}"
        for source, measures in judge.test_sets.items():
            kappa = measures.kappa
            text = f"kappa {kappa}, {kappa.n} of {measures.items} answered"
            yield f"{_final(judge)}: {source}: {text}"
        if judge.curve is not None:
            yield f"{_final(judge)}: {judge.curve.summary()}"


def _people(check: CheckReport) -> Iterator[str]:
    for judge in check.judges:
        if (people := judge.people) is not None:
            yield (
                f"{judge.model} beside {people.annotators} people on {people.human_human.n} items: "
                f"people agree with one another {people.human_human}, with the judge "
                f"{people.human_judge}"
            )
            if (test := people.test) is not None:
                as_good = "as good" if test.passes else "not shown to be as good"
                yield (
                    f"{judge.model}: {as_good} as a person by the alternative annotator test: "
                    f"winning rate {test.winning_rate:.2f} among {len(test.p_values)} people"
                )


def _policy(check: CheckReport) -> Iterator[str]:
    if check.policy is None:
        return
    for judge, stage, share in zip(
        check.judges, check.policy.stages, check.policy.decided, strict=True
    ):
        if stage.threshold is None:
            yield f"{judge.model} cannot be guaranteed: {stage.reason}"
        else:
            yield (
                f"{judge.model} decides from {stage.threshold:.3f} on: {share:.0%} of all; agrees "
                f"{stage.agreement} of {stage.agreement.n}, at least {stage.agreement.low:.3f}"
            )
    yield f"passed on to people: {check.policy.passed_on:.0%}"
