"""Runs on the same items: which is better, by how much, and could that be chance?

Runs are paired item by item (`judge.report.runs`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from string import ascii_uppercase
from typing import Any

from judge import plugins
from judge.errors import UsageError
from judge.records.base import clip, strata_of
from judge.report.runs import (
    BENCHMARK,
    NO_SCORE,
    RECORD,
    REPAIRED,
    SCORE,
    ItemScore,
    Run,
    RunItem,
    read_run,
)
from judge.report.table import Cell, Table, TableRow, stacked
from judge.stats.bootstrap import (
    FEWEST,
    Resamples,
    mean_estimate,
    paired_difference,
    share_estimate,
)
from judge.stats.intervals import Estimate, Quartiles
from judge.stats.significance import holm, mcnemar
from judge.verdict import Verdict

OVERALL = "overall"
"""The series of all conditions together."""

ABSENT = "not there"

_NOTE = (
    "Intervals are bootstrapped over rows of the source, with all items of a row, from "
    f"{FEWEST} rows on; where each row has one item, those of differences of shares are Tango's "
    "(1998). McNemar's test counts items."
)
_NO_INTERVAL = (
    f"A difference without an interval is over fewer than {FEWEST} rows, or the same in every "
    "draw, as if the runs never differ (McNemar's p is 1). It does not show that they are equal."
)
_PAPER_NOTE = "Over the items that all runs have; what cannot be read counts as not right."


@dataclass(frozen=True, slots=True)
class FigurePanel:
    """A panel of a figure: each run's estimate by row. `shares`: they are scores in [0, 1], else
    scores on a rubric's scale or a paper's measure."""

    title: str
    shares: bool
    rows: dict[str, dict[str, Estimate | Quartiles]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compared runs, named A, B, C: the number of items in all and in each, tables of scores and
    answers, notes, and the tables of a benchmark's paper."""

    made_by: str
    runs: Mapping[str, str]
    items: Mapping[str, int]
    tables: Sequence[Table]
    notes: Sequence[str]
    paper: Sequence[Table] = ()

    def panels(self, cells: type[Estimate | Quartiles] = Estimate) -> list[FigurePanel]:
        """The panels of a figure: the scores, overall and by stratum; without scores, the measures
        of the paper's tables. `cells`: Quartiles for boxes."""
        panels: dict[str, FigurePanel] = {}
        for table in (*self.tables, *self.paper):
            ours = table.name.startswith("comparison")
            if not ours and any(panel.shares for panel in panels.values()):
                break
            for row in table.rows:
                for column, cell in row.cells.items():
                    unknown = isinstance(cell, Estimate) and cell.value is None
                    if unknown or not isinstance(cell, cells):
                        continue
                    title, name, run = (", ".join(row.labels[1:]), row.labels[0], column)
                    shares = ours and not name.startswith(SCORE)
                    if not ours:
                        title, run = f"{table.name}: {column}", row.labels[-1]
                        name = ", ".join(row.labels[:-1])
                    elif not shares:
                        title = ", ".join(row.labels)
                    if run in self.runs:
                        panel = panels.setdefault(title, FigurePanel(title, shares))
                        panel.rows.setdefault(name, {})[run] = cell
        return [*panels.values()]

    def __str__(self) -> str:
        """What `judge compare` prints, without the notes."""
        runs = [f"{name}: {source}, {self.items[name]} items" for name, source in self.runs.items()]
        tables = [str(table) for table in (*self.tables, *self.paper) if table.rows]
        return "\n\n".join(["\n".join([self.made_by, *runs]), *tables])

    def as_json(self) -> dict[str, Any]:
        return {
            "made_by": self.made_by,
            "runs": {name: str(source) for name, source in self.runs.items()},
            "items": dict(self.items),
            "tables": [table.as_json() for table in (*self.tables, *self.paper)],
            "notes": list(self.notes),
        }


def compare(sources: Sequence[str], *, paper: bool = False, by: Sequence[str] = ()) -> Comparison:
    """Compare two runs or more, each a file, `-` or in memory, on the items that all have.

    Every run is a column of mean scores (of answers and verdicts, right or passing is 1), and every
    later run has its difference from the first, with a paired interval. Where all scores are 0 and
    1, McNemar's exact test (McNemar 1947) is made; its p-values are adjusted (Holm 1979) over a
    table's conditions or checks, strata and runs. An answer that was refused or cannot be read is
    not right; an item without a reply or a score in one run is left out of all. Of verdicts only
    pass and fail count.

    Args:
        paper: add the benchmark's own tables, with a row for each run.
        by: fields of the items; add the table for each stratum of them.

    Raises:
        UsageError: a file is no run, the runs are of different benchmarks or workflows, they share
            no item, an item's gold differs, or no item has a field of `by`.
    """
    if sources.count("-") > 1:
        raise UsageError("standard input can be one run, not both")
    if len(sources) > len(ascii_uppercase):
        raise UsageError(f"{len(sources)} runs: {len(ascii_uppercase)} can be compared at most")
    first = read_run(sources[0])
    later = (read_run(source, first) for source in sources[1:])
    return compared([first, *later], paper=paper, by=by)


def compared(files: Sequence[Run], *, paper: bool = False, by: Sequence[str] = ()) -> Comparison:
    """Compare runs that are already read; arguments and errors as `compare`."""
    runs = dict(zip(ascii_uppercase, files, strict=False))
    keys = _common_keys(list(runs.values()))
    items = {"all": len(keys), **{name: len(run.entries) for name, run in runs.items()}}
    made_by, series = runs["A"].made_by, _series(runs, keys)
    head = "condition" if made_by.startswith(BENCHMARK) else "verdict of"
    if any(name.startswith(SCORE) for name in series):
        head = "verdict or score"
    tables = [_table({(): series}, runs, (head,)), *_answer_tables({(): keys}, runs, ())]
    if by:
        entries = runs["A"].entries
        parts = strata_of(keys, lambda key: entries[key].fields, by)
        strata = {labels: _series(runs, part) for labels, part in parts.items()}
        for table in (_table(strata, runs, (head, *by)), *_answer_tables(parts, runs, by)):
            title = f"{table.title}, by {', '.join(by)}"
            tables.append(replace(table, name=f"{table.name}-by", title=title))
    of_paper: Sequence[Table] = ()
    if paper:
        if not made_by.startswith(BENCHMARK):
            raise UsageError(f"--paper: {files[0].source} holds no answers to a benchmark")
        of_paper = _paper_tables(made_by.removeprefix(BENCHMARK), runs, keys)
    sources = {name: run.source for name, run in runs.items()}
    return Comparison(made_by, sources, items, tables, [*_notes(runs, series)], of_paper)


def _common_keys(runs: Sequence[Run]) -> list[str]:
    """The keys of the items that all runs have. Raises UsageError if there are none, or if the runs
    differ in benchmark, workflow or an item's gold."""
    first, *later = runs
    for run in later:
        if run.made_by != first.made_by:
            raise UsageError(f"{first.source} is of {first.made_by}, {run.source} of {run.made_by}")
    keys = [key for key in first.entries if all(key in run.entries for run in later)]
    if not keys:
        files = " and ".join(run.source for run in runs)
        raise UsageError(f"no item is in both {files}: nothing can be compared")
    for key in keys:
        gold = first.entries[key].gold
        for run in later:
            if gold != (second := run.entries[key].gold):
                golds = f"{clip(gold)} in {first.source}, {clip(second)} in {run.source}"
                raise UsageError(f"{key}: gold is {golds}: the runs did not ask the same")
    return keys


Series = Sequence[tuple[str, tuple[ItemScore, ...]]]
"""The items of a series: each one's cluster, and its mark in every run."""

Strata = Mapping[tuple[str, ...], Mapping[str, Series]]
"""The series of each stratum, by the stratum's labels."""


def _series(runs: Mapping[str, Run], keys: Sequence[str]) -> dict[str, Series]:
    """The series that all runs have, and the one of all conditions together."""
    items = [[run.entries[key] for run in runs.values()] for key in keys]
    first, *later = (run.series for run in runs.values())
    series: dict[str, Series] = {
        name: [
            (pair[0].cluster, marks)
            for pair in items
            if {*(marks := tuple(_mark(item, name) for item in pair))} != {ABSENT}
        ]
        for name in first
        if all(name in names for names in later)
    }
    if series.get(REPAIRED) == series.get(RECORD):
        series.pop(REPAIRED, None)
    if RECORD not in series and len(series) > 1:
        series[OVERALL] = list(chain.from_iterable(series.values()))
    return {name: items for name, items in series.items() if not _only_answered(items)}


def _mark(item: RunItem, name: str) -> ItemScore:
    """The item's mark in a series; where a check has no score, its verdict says why."""
    mark = item.marks.get(name)
    if mark is None and name.startswith(SCORE):
        verdict = item.marks.get(f"check {name.removeprefix(SCORE)}")
        mark = NO_SCORE if verdict in (0.0, 1.0, Verdict.ANSWERED) else verdict
    return ABSENT if mark is None else mark


def _only_answered(items: Series) -> bool:
    """Whether no answer of a series passes or fails."""
    marks = [mark for _, of_item in items for mark in of_item]
    return Verdict.ANSWERED in marks and not any(isinstance(mark, float) for mark in marks)


def _answer_tables(
    parts: Mapping[tuple[str, ...], Sequence[str]], runs: Mapping[str, Run], by: Sequence[str]
) -> Iterator[Table]:
    """Of questions whose answers have names: how often each later run has A's answer (to a record,
    or to an entry of its list), and which answers became which; by stratum, of the items with these
    keys."""
    entries = [run.entries for run in runs.values()]
    shares, changes = list[TableRow](), list[TableRow]()
    answers_of = [item.answers.items() for of_run in entries for item in of_run.values()]
    names = dict.fromkeys(
        n for items in answers_of for n, answers in items if any(answers.values())
    )
    # A record with an empty list has no entry.
    of_entries = {n for items in answers_of for n, answers in items if answers.keys() - {None}}
    for (name, (labels, keys)), run in product(product(names, parts.items()), [*runs][1:]):
        first, later = runs["A"].entries, runs[run].entries
        units = [
            (first[key].cluster, one.get(value), two.get(value))
            for key in keys
            for one, two in [[run[key].answers.get(name, {}) for run in (first, later)]]
            for value in dict.fromkeys((*one, *two))
            if value is not None or name not in of_entries
        ]
        pairs = [(cluster, a, b) for cluster, a, b in units if a is not None and b is not None]
        if not pairs:
            continue
        resamples = Resamples([cluster for cluster, *_ in pairs], fewest=FEWEST)
        share = share_estimate([float(a == b) for _, a, b in pairs], resamples)
        cells: dict[str, Cell] = {"pairs": len(pairs), "of": len(units)}
        cells["same answer"] = replace(share, of=len(units))
        shares.append(TableRow((name, *labels, run), cells))
        counts = Counter((a, b) for _, a, b in pairs if a != b)
        changes += (
            TableRow((name, *labels, run, *change), {"items": count})
            for change, count in counts.most_common()
        )
    if shares:
        heads = ("check", *by, "run")
        yield Table("answers", "How often each run gives A's answer", heads, shares)
        yield Table(
            "changes", "Answers that differ from A's", (*heads, "in A", "in the run"), changes
        )


def _table(strata: Strata, runs: Mapping[str, Run], heads: tuple[str, ...]) -> Table:
    """A row for each series of each stratum; Holm's adjustment is over all rows except totals."""
    rows, tests = [], []
    names = dict.fromkeys(chain.from_iterable(strata.values()))
    for name, (labels, series) in product(names, strata.items()):
        if name not in series:
            continue
        mean = mean_estimate if name.startswith(SCORE) else share_estimate
        cells, p_values = _cells(series[name], [*runs], mean)
        rows.append(TableRow((name, *labels), cells))
        if name not in (OVERALL, RECORD, REPAIRED):
            tests += [(cells, run, p) for run, p in p_values.items()]
    for (cells, run, _), p in zip(tests, holm([p for _, _, p in tests]), strict=True):
        cells[f"Holm p {run}"] = p
    differences = (row.cells.get(f"{run} - A") for row in rows for run in runs)
    no_interval = any(
        isinstance(cell, Estimate) and cell.value is not None and cell.low is None
        for cell in differences
    )
    # Without the note a reader would take the difference for exact.
    notes = (_NOTE, _NO_INTERVAL) if no_interval else (_NOTE,)
    title = "Mean scores on the same items, and differences from A (95% intervals)"
    return Table("comparison", title, heads, rows, notes, tuple(runs))


def _cells(
    items: Series,
    runs: Sequence[str],
    mean: Callable[[Sequence[float | None], Resamples], Estimate],
) -> tuple[dict[str, Cell], dict[str, float]]:
    """A row's cells, and by run McNemar's p of its difference from A."""
    scores = [(cluster, marks) for cluster, marks in items if _scored(marks)]
    resamples, of = Resamples([cluster for cluster, _ in scores], fewest=FEWEST), len(items)
    cells: dict[str, Cell] = {"pairs": len(scores), "of": of}
    columns = {run: [float(marks[n]) for _, marks in scores] for n, run in enumerate(runs)}
    cells |= {run: replace(mean(c, resamples), of=of) for run, c in columns.items()}
    p_values: dict[str, float] = {}
    first = columns.pop(runs[0])
    for run, column in columns.items():
        cells[f"{run} - A"] = replace(paired_difference(first, column, resamples), of=of)
    for run, column in columns.items():
        if scores and {*first, *column} <= {0.0, 1.0}:
            test = mcnemar(first, column)
            p_values[run] = test.p
            cells[f"McNemar p {run}"] = test.p
            cells |= {f"A, not {run}": test.only_first, f"{run}, not A": test.only_second}
    return cells, p_values


def _scored(marks: Sequence[ItemScore]) -> bool:
    return all(isinstance(mark, float) for mark in marks)


def _notes(runs: Mapping[str, Run], series: Mapping[str, Series]) -> Iterator[str]:
    for letter, run in runs.items():
        if run.unread:
            yield f"lines of {letter} about input that could not be read, no items: {run.unread}"
    if REPAIRED in series and series.keys() - {RECORD, REPAIRED}:
        yield f"of repaired records, checks are compared by the new text, as {REPAIRED} is"
    names = {letter: run.series for letter, run in runs.items()}
    for name in dict.fromkeys(chain.from_iterable(names.values())):
        letters = [letter for letter in runs if name in names[letter]]
        if len(letters) < len(runs):
            yield f"{name} is only in {' and '.join(letters)}"
    yield from _other_questions(runs)
    for name, items in series.items():
        reasons = Counter(
            ", ".join(
                f"{mark} in {' and '.join(run for n, run in enumerate(runs) if marks[n] == mark)}"
                for mark in dict.fromkeys(marks)
                if isinstance(mark, str)
            )
            for _, marks in items
            if not _scored(marks)
        )
        if reasons:
            text = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
            yield f"{name}: {reasons.total()} of {len(items)} pairs are left out: {text}"


def _other_questions(runs: Mapping[str, Run]) -> Iterator[str]:
    """A note for each check of which the runs' descriptions have different questions or answers, or
    others that pass."""
    by_check: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for letter, run in runs.items():
        for check, question in run.descriptions.questions.items():
            by_check["asked different questions", check][letter] = question
        for check, rubric in run.descriptions.rubrics.items():
            by_check["have different answers", check][letter] = ", ".join(rubric.answers)
            passes = "none" if rubric.rule.counts else ", ".join(rubric.passes)
            by_check["let different answers pass", check][letter] = passes
    for (differ, check), texts in by_check.items():
        if len({*texts.values()}) > 1:
            by_run = ", ".join(f"{letter} {clip(text)}" for letter, text in texts.items())
            yield f"check {check}: the runs {differ}: {by_run}"


def _paper_tables(name: str, runs: Mapping[str, Run], keys: Sequence[str]) -> list[Table]:
    """The benchmark's tables of measures, of the shared items, with a row for each run."""
    benchmark = plugins.load("judge.benchmarks", name)
    if benchmark is None:
        raise UsageError(f"--paper: no benchmark {name!r} is installed")
    parts: dict[tuple[str, ...], list[Table]] = {
        (letter,): benchmark.tabulate([run.entries[key].answer for key in keys])
        for letter, run in runs.items()
    }
    tables = stacked(parts, ("run",))
    return [replace(table, notes=(*table.notes, _PAPER_NOTE)) for table in tables]
