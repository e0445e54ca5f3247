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

_MOST_SHOWN = 5
"""Disagreements of a judge that are printed."""


def print_tables(
    tables: Sequence[Table], *, as_json: bool, every: bool, beside: bool = False
) -> None:
    """Print tables: the headline, every one, or all as JSON.

    They go to standard output, or where answers go there (`beside`) to standard error.
    """
    if as_json:
        text = [table.as_json() for table in tables]
        print_output(json.dumps(text, ensure_ascii=False, indent=1), err=beside)
    else:
        print_results(tables, every=every, err=beside)


def print_results(tables: Sequence[Table], *, every: bool, err: bool = False) -> None:
    """Print the first table that has rows, or every one, each under its title, then the notes.

    What is measured stands before the other counts. An estimate is shown with its interval, and
    over how many items it is where its row does not say that.
    """
    shown, cut = Tables(every=every, err=err), []
    for number, table in enumerate(table for table in tables if table.rows):
        brief = () if every or number else table.brief
        cut += [f"the intervals of {', '.join(brief)}"] if brief else []
        columns = sorted(table.columns, key=lambda name: _place(table, name))
        rows = [
            [*row.labels, *(_told(row.cells, c, brief=c in brief) for c in columns)]
            for row in table.rows
        ]
        shown.add(
            (*table.heads, *columns),
            rows,
            headline=number == 0,
            notes=table.notes,
            title=table.title,
            labels=len(table.heads),
        )
    shown.end(*cut)


_ASKED = ("asked", "pairs")


def _place(table: Table, column: str) -> int:
    """0 for how many there are, 1 for what is measured, 2 for other counts."""
    if column in (*_ASKED, "of"):
        return 0
    return 2 if all(isinstance(row.cells.get(column), int) for row in table.rows) else 1


def _told(cells: Mapping[str, Cell], column: str, *, brief: bool) -> str:
    cell = cells.get(column)
    if not isinstance(cell, Estimate):
        return "–" if cell is None else str(cell)
    if brief:
        return str(replace(cell, low=None))
    over = "" if cell.n in map(cells.get, _ASKED) else f", {cell.n} of {cell.of}"
    return f"{cell}{over}"


def print_calibration(report: Calibration, *, every: bool) -> None:
    """Every check: disagreements, measures, confusion (with `every`), slices, people, policy."""
    tables = Tables(every=every)
    for check in report.checks:
        if check.leak is not None:
            print_lines(["", check.check, *_labels(check), str(check.leak)])
            continue
        print_lines(["", check.check, *_labels(check), *_disagreements(check)])
        shown = [(name, _row(one)) for judge in check.judges for name, one in _methods(judge)]
        measures = [[name, *row.values()] for name, row in shown]
        tables.add(["judge", *shown[0][1]], measures, headline=True)
        for judge in check.judges:
            rows = judge.final.confusion
            counts = [[name, *map(str, row.values())] for name, row in rows.items()]
            heads = ["label", *next(iter(rows.values()))]
            tables.add(heads, counts, headline=False, title=f"answers of {_final(judge)}")
            for name, parts in judge.by.items():
                heads = [name, "items", "answered", "accuracy", "kappa"]
                slices = [
                    [value, *map(str, (m.items, m.accuracy.n, m.accuracy, m.kappa))]
                    for value, m in sorted(parts.items(), key=lambda pair: -pair[1].items)
                ]
                tables.add(heads, slices, headline=True, title=f"{_final(judge)} by {name}")
        print_lines([*_looked(check), *_people(check), *_policy(check)])
    tables.end()


def _labels(check: CheckReport) -> Iterator[str]:
    parts = f"{check.fitted_on} fitted to, {check.held_out} kept apart and reported on"
    if check.folds:
        parts = f"each of {check.folds} parts reported on by what was fitted to the others"
    yield (
        f"{check.items} items about {check.records} records, {check.with_reference} with a "
        f"reference; {parts}"
    )
    if check.joined:
        yield (
            f"{check.joined} records have (nearly) the text of others and count as one with them: "
            f"{check.clusters} are independent"
        )
    for judge in check.judges:
        asked = f", {counted(len(judge.questions), 'question')}" if judge.questions else ""
        text = f"  {judge.model}: {judge.method}{asked}, {judge.fit.how}"
        yield f"{text} ({judge.fit.reason})" if judge.fit.reason else text
        for reason, count in judge.skipped.items():
            yield f"  {judge.model}: {count} items could not be put to it: {reason}"


def _disagreements(check: CheckReport) -> Iterator[str]:
    for judge in check.judges:
        disagreements = [one for one in judge.disagreements if one.held_out]
        if not disagreements:
            continue
        who = f"{_final(judge)}," if judge.calibrated else judge.model
        apart = " kept apart" if check.held_out < check.items else ""
        text = f"{who} disagrees with {len(disagreements)} of the {judge.final.items} labels{apart}"
        yield f"{text}; the surest {min(_MOST_SHOWN, len(disagreements))}:"
        for one in disagreements[:_MOST_SHOWN]:
            yield from _disagreement(one)


def _disagreement(one: Disagreement) -> Iterator[str]:
    number = f", value {one.number}" if one.number else ""
    sure = "" if one.confidence is None else f" ({one.confidence:.2f})"
    votes = ", ".join(f"{n} {answer}" for answer, n in one.votes.items())
    said = f"  {one.record}{number}: says {one.answer}{sure}, the label is {one.reference}"
    yield f"{said} ({votes})" if votes else said
    for name, text in {**one.fields, "evidence": one.evidence}.items():
        if text:
            yield f"    {name}: {shortened(str(text), 400)}"


def _methods(judge: JudgeReport) -> Iterator[tuple[str, Measures]]:
    if judge.calibrated is not None and judge.stands.accuracy.n:
        yield f"{judge.model}, as it stands", judge.stands
    yield _final(judge), judge.final


def _final(judge: JudgeReport) -> str:
    """The name that goes with the measures of the final method."""
    return f"{judge.model}, calibrated" if judge.calibrated else judge.model


def _row(measures: Measures) -> dict[str, str]:
    of_class = list(measures.f1.values())
    shown = {
        "accuracy": measures.accuracy,
        "kappa": measures.kappa,
        "F1": of_class[0] if len(of_class) == 2 else measures.macro_f1,
        "AUC": measures.auc,
        "calibration error": measures.calibration_error,
    }
    if measures.weighted_kappa is not None and measures.spearman is not None:
        shown |= {"weighted κ": measures.weighted_kappa, "Spearman ρ": measures.spearman}
    answered = {"answered": f"{measures.accuracy.n} of {measures.items}"}
    return answered | {name: str(one) for name, one in shown.items()}


def _looked(check: CheckReport) -> Iterator[str]:
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
            yield f"  {controls.told()}"
        for source, one in judge.test_sets.items():
            text = f"kappa {one.kappa}, {one.kappa.n} of {one.items} answered"
            yield f"{_final(judge)}: {source}: {text}"
        if judge.curve is not None:
            yield f"{_final(judge)}: {judge.curve.told()}"


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
