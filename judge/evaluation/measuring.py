"""How right a model's answers are: the columns that every benchmark's tables share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from judge.evaluation.benchmark import Result
from judge.evaluation.tables import Cell, Table, bars, grouped
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.classification import f1s, precisions, ratio, recalls
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST = 10
"""Rows of a source that an interval is bootstrapped over; fewer look surer than they are.

With two stories there are three different draws: the interval ends at the stories' own means.
"""

NOTE = (
    "A refusal or an unreadable answer counts as not right; an error (no reply), and an answer "
    "that was not scored, count not at all. Intervals are 95 %, bootstrapped over rows of the "
    "source (stories, premises), a row's items together; a share of nothing or of all has the "
    f"exact one. There is no bootstrapped one over fewer than {FEWEST} rows, nor where no draw "
    "changes the number."
)

Rows = Callable[[Result], Sequence[float]]
Statistic = Callable[..., "NDArray[np.float64]"]


class Sample:
    """The results behind one row of a table, and the measures of them.

    Results without a reply (`error`) count in no measure, but in every `of`. Results of one cluster
    (a row of the source) are drawn together in the bootstrap.
    """

    def __init__(
        self,
        results: Sequence[Result],
        *,
        cluster: Callable[[Result], Hashable] = lambda result: result.row,
    ) -> None:
        self.results = results
        self.there = [result for result in results if result.outcome != "error"]
        self._cluster = cluster

    def counts(self) -> dict[str, Cell]:
        """How many items were asked, and what came of them."""
        found = Counter(result.outcome for result in self.results)
        cells: dict[str, Cell] = {"asked": len(self.results)}
        return cells | {
            name: found[name] for name in ("answered", "refused", "unreadable", "error")
        }

    def rows(self) -> int:
        """How many clusters got a reply about one of their items at least."""
        return len({self._cluster(result) for result in self.there})

    def accuracy(self) -> Estimate:
        """The mean score, a refused or unreadable answer 0, an answer without a score left out."""
        return self.share(
            lambda result: result.score if result.outcome == "answered" else 0.0,
        )

    def share(self, value: Callable[[Result], float | None]) -> Estimate:
        """The mean of values in [0, 1] over the results with a reply; None is left out."""
        found = share_estimate([value(result) for result in self.there], self.resamples)
        return replace(found, of=len(self.results))

    def ratio(self, parts: Callable[[Result], tuple[float, float]]) -> Estimate:
        """The sum of the first parts over the sum of the second."""
        return self.measure(parts, lambda part, whole: ratio(part, whole))

    def measure(
        self, rows: Rows, statistic: Statistic, *, n: int | None = None, of: int | None = None
    ) -> Estimate:
        """A statistic of sums over results.

        Args:
            rows: the numbers of one result that are summed, always as many.
            statistic: from the sums of each number, (stack,) each, to its values, (stack,).
            n: over how many it is taken; the results with a reply, if left out.
            of: out of how many; all results, if left out.
        """
        import numpy as np

        if not self.there:
            return Estimate(None, n=0, of=len(self.results) if of is None else of)
        numbers = np.array([rows(result) for result in self.there], dtype=np.float64)
        return self.resamples.estimate(
            statistic(*self.resamples.sums(numbers).T),
            n=len(self.there) if n is None else n,
            of=len(self.results) if of is None else of,
        )

    def classes(
        self, classes: Sequence[str], *, never_answered: float = float("nan")
    ) -> dict[str, Cell]:
        """Macro precision, recall and F1 over the answers there are.

        Recall is over the classes that items are of, precision and F1 over those that items are of
        or are answered. An item without an answer is missed, and is a false alarm of no class.

        Args:
            classes: each result's gold, and each answer, is one of them.
            never_answered: the precision of a class that occurs and is never answered; undefined,
                if left out.

        Raises:
            ValueError: a gold or an answer that is none of the classes.
        """
        import numpy as np

        stack = self._confusion(classes)
        occurs = (stack.sum(axis=-2) + stack.sum(axis=-1) > 0)[:, :-1]
        each = np.nan_to_num(precisions(stack)[:, :-1], nan=never_answered)
        values = {
            "precision": ratio(
                np.where(occurs, each, 0.0).sum(axis=-1), occurs.sum(axis=-1).astype(np.float64)
            ),
            "recall": _mean(recalls(stack)[:, :-1]),
            "F1": _mean(f1s(stack)[:, :-1]),
        }
        return {
            name: self.resamples.estimate(found, n=len(self.there), of=len(self.results))
            for name, found in values.items()
        }

    @cached_property
    def resamples(self) -> Resamples:
        """The draws of the results with a reply."""
        return Resamples([self._cluster(result) for result in self.there], fewest=FEWEST)

    def _confusion(self, classes: Sequence[str]) -> NDArray[np.float64]:
        """(stack, K + 1, K + 1): the last row is empty, the last column holds missing answers."""
        import numpy as np

        size = len(classes) + 1
        places = {name: place for place, name in enumerate(classes)}
        cells = np.zeros((len(self.there), size * size))
        for number, result in enumerate(self.there):
            gold, given = result.fields["gold"], result.answer
            answered = result.outcome == "answered"
            if gold not in places or (answered and given not in places):
                raise ValueError(f"item {result.id}: {gold!r} or {given!r} is none of {classes}")
            cells[number, places[gold] * size + (places[given] if answered else size - 1)] = 1.0
        return self.resamples.sums(cells).reshape(-1, size, size)


def scores(results: Sequence[Result]) -> dict[str, Cell]:
    """Counts and accuracy."""
    sample = Sample(results)
    return {**sample.counts(), "accuracy": sample.accuracy()}


def class_scores(results: Sequence[Result], classes: Sequence[str]) -> dict[str, Cell]:
    """Counts, accuracy, and macro precision, recall and F1."""
    sample = Sample(results)
    return {**sample.counts(), "accuracy": sample.accuracy(), **sample.classes(classes)}


def label_scores(results: Sequence[Result], label: str) -> dict[str, Cell]:
    """One class among all results: counts and recall of its own items, its precision and F1."""
    own = Sample([result for result in results if result.fields["gold"] == label])
    every = Sample(results)

    def hits(result: Result) -> tuple[float, float, float]:
        given = result.outcome == "answered" and result.answer == label
        right = result.fields["gold"] == label
        return float(given and right), float(given), float(right)

    given = sum(hits(result)[1] for result in every.there)
    return {
        **own.counts(),
        "stories": own.rows(),
        "recall": own.accuracy(),
        "precision": every.measure(hits, lambda hit, given, _: ratio(hit, given), n=int(given)),
        "F1": every.measure(hits, lambda hit, given, right: ratio(2 * hit, given + right)),
    }


def by_condition(name: str, results: Sequence[Result], conditions: Sequence[str]) -> list[Table]:
    """Accuracy by condition: the table of a benchmark that defines none."""
    groups = grouped(results, lambda result: result.condition, known=[conditions])
    title = "Accuracy by condition"
    return [bars(name, title, ("condition",), groups, scores, drawn=("accuracy",), notes=(NOTE,))]


def field(name: str, default: str = "(not said)") -> Callable[[Result], str]:
    """A key of `grouped`: a field of the items as text."""
    return lambda result: str(result.fields.get(name) or default)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over the last axis, nan left out."""
    import numpy as np

    there = (~np.isnan(values)).sum(axis=-1).astype(np.float64)
    return ratio(np.nansum(values, axis=-1), there)
