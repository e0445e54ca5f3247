"""Tables of results, and the measures that every benchmark's tables share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from judge.papers.tasks import MeasuredAnswer
from judge.records.base import strata_of
from judge.report.table import Cell, Table, TableRow, stacked
from judge.stats.bootstrap import FEWEST, Resamples, share_estimate
from judge.stats.classification import f1s, known_means, precisions, recalls
from judge.stats.intervals import Estimate
from judge.verdict import AnswerOutcome

if TYPE_CHECKING:
    from judge.papers.benchmark import Benchmark

K = TypeVar("K")
T = TypeVar("T")

NOTE = (
    "A refusal or an unreadable answer counts as not right; an error (no reply), and an answer "
    "that was not scored, count not at all. Intervals are 95%, bootstrapped over rows of the "
    "source (stories, premises), a row's items together; a share of nothing or of all has the "
    f"exact one. There is no bootstrapped one over fewer than {FEWEST} rows, nor where no draw "
    "changes the number."
)

MACRO = {"F1": f1s, "precision": precisions, "recall": recalls}
"""Measures that are means over the classes."""

_NONE = ""
"""The class of a missing answer, or of a missing gold answer."""


class ResultSample:
    """The results behind one row of a table, and the measures of them.

    Results without a reply (`error`) count in no measure, but in every `of`. Results of one row of
    the source are resampled together.
    """

    def __init__(self, results: Sequence[MeasuredAnswer]) -> None:
        self.results = results
        self.there = [result for result in results if result.outcome is not AnswerOutcome.ERROR]

    @cached_property
    def resamples(self) -> Resamples:
        """The resamples of the results with a reply."""
        return Resamples([result.row for result in self.there], fewest=FEWEST)

    def counts(self) -> dict[str, Cell]:
        """The number of items asked, and of each outcome."""
        counts = Counter(str(result.outcome) for result in self.results)
        cells = {name: counts[name] for name in ("answered", "refused", "unreadable", "error")}
        return {"asked": len(self.results), **cells}

    def rows(self) -> int:
        """The number of source rows with a reply about at least one of their items."""
        return len({result.row for result in self.there})

    def accuracy(self) -> Estimate:
        """The mean score, a refused or unreadable answer 0, an answer without a score left out."""
        scores = [
            result.score if result.outcome is AnswerOutcome.ANSWERED else 0.0
            for result in self.there
        ]
        return replace(share_estimate(scores, self.resamples), of=len(self.results))

    def macro(self) -> dict[str, Estimate]:
        """Mean F1, precision and recall over the classes among gold and answers.

        An item without an answer is a miss of its class, and a false positive of none. The
        precision of a class that is never answered is 0.
        """
        gold = [result.fields["gold"] or _NONE for result in self.there]
        answers = [
            result.answer if result.outcome is AnswerOutcome.ANSWERED else _NONE
            for result in self.there
        ]
        classes = sorted({*gold, *answers} - {_NONE})
        counts = self.resamples.confusions(gold, answers, [*classes, _NONE])
        of_classes = {name: measure(counts) for name, measure in MACRO.items()}
        return {
            name: self.resamples.estimate(
                known_means(values[..., : len(classes)]), n=len(self.there), of=len(self.results)
            )
            for name, values in of_classes.items()
        }


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by key, in the order in which keys first occur."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def scores(results: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
    """Counts and accuracy."""
    sample = ResultSample(results)
    return {**sample.counts(), "accuracy": sample.accuracy()}


def class_scores(results: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
    """Counts, accuracy, and macro F1, precision and recall."""
    sample = ResultSample(results)
    return {**sample.counts(), "accuracy": sample.accuracy(), **sample.macro()}


def tables_of(benchmark: Benchmark, results: Sequence[MeasuredAnswer]) -> list[Table]:
    """The benchmark's tables that have rows."""
    if benchmark.tables is not None:
        return [table for table in benchmark.tables(results) if table.rows]
    by = {"condition": ("condition", benchmark.conditions)}
    return [results_table(benchmark.name, "Accuracy by condition", results, by)]


def sliced_tables(
    benchmark: Benchmark, results: Sequence[MeasuredAnswer], by: Sequence[str]
) -> list[Table]:
    """The benchmark's tables and, if `by` names fields of the items, those by their strata. The
    first table of either kind comes before the others.

    Raises:
        UsageError: no item has one of the fields.
    """
    tables = tables_of(benchmark, results)
    if not by:
        return tables
    strata = strata_of(results, lambda result: result.fields, by)
    parts = {labels: tables_of(benchmark, part) for labels, part in strata.items()}
    sliced = [
        replace(table, name=f"{table.name}-by", title=f"{table.title}, by {', '.join(by)}")
        for table in stacked(parts, tuple(by))
    ]
    return [*tables[:1], *sliced[:1], *tables[1:], *sliced[1:]]


def crosstab(
    name: str,
    title: str,
    items: Sequence[MeasuredAnswer],
    by: Sequence[str],
    orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Table:
    """The number of items by the contents of the fields `by`, the last of several across; with
    totals.

    Args:
        orders: the contents of a field that come first, in their order; others follow by name.

    Raises:
        UsageError: no item has one of the fields.
    """
    strata = strata_of(items, lambda item: item.fields, by)
    heads = max(1, len(by) - 1)
    first = [orders.get(field, ()) for field in by]
    counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for labels in sorted(strata, key=lambda labels: [*map(_place, first, labels)]):
        counts[labels[:heads]][labels[-1]] += len(strata[labels])
    columns = {labels[-1] for labels in strata} if len(by) > 1 else set()
    names = sorted(columns, key=lambda label: _place(first[-1], label))
    total = "all"
    while any(total in labels for labels in strata):
        total = f"{total} together"
    counts[total, *[""] * (heads - 1)] = sum(counts.values(), Counter())
    rows = [
        TableRow(labels, {**{name: count[name] for name in names}, total: count.total()})
        for labels, count in counts.items()
    ]
    return Table(name, title, tuple(by[:heads]), rows)


def _place(first: Sequence[str], label: str) -> tuple[int, str]:
    """The sort key of a label: those in `first` in their order, then others by name."""
    order = list(first)
    return (order.index(label) if label in order else len(order), label)


def results_table(
    name: str,
    title: str,
    results: Iterable[MeasuredAnswer],
    by: Mapping[str, tuple[str, Sequence[str]]],
    cells: Callable[[Sequence[MeasuredAnswer]], Mapping[str, Cell]] = scores,
    notes: tuple[str, ...] = (),
) -> Table:
    """A table with a row for all results that have the same fields.

    Args:
        by: for the head of each label column the field with its labels, and the labels that come
            first, in their order; others follow by name.
        cells: the cells of a row, from its results.
        notes: what a reader must know besides `NOTE`.
    """

    def labels_of(result: MeasuredAnswer) -> tuple[str, ...]:
        return tuple(str(result.fields.get(field) or "(not said)") for field, _ in by.values())

    groups = grouped(results, labels_of)
    first = [order for _, order in by.values()]
    in_order = sorted(groups, key=lambda labels: [*map(_place, first, labels)])
    rows = [TableRow(labels, cells(groups[labels])) for labels in in_order]
    return Table(name, title, tuple(by), rows, notes=(*notes, NOTE))
