"""How right a model's answers are: the columns that every benchmark's tables share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from judge.evaluation.benchmark import Result
from judge.evaluation.tables import Cell, Row
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.classification import f1s, precisions, ratio, recalls
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNTS = ("asked", "answered", "refused", "unreadable", "error")
"""Columns of every table: how many items were asked, and what came of them."""

ACCURACY = (*COUNTS, "accuracy")
CLASSES = (*ACCURACY, "precision", "recall", "F1")
"""Columns of tables over a fixed set of answers: macro means over them."""

FEWEST = 10
"""Rows of a source that an interval is bootstrapped over; fewer look surer than they are.

With two stories there are three different draws: the interval ends at the stories' own means.
"""

NOTE = (
    "A refusal or an unreadable answer counts as not right; an error (no reply) counts not at all. "
    "Intervals are 95 %, bootstrapped over rows of the source (stories, premises), a row's items "
    "together; a share of nothing or of all has the exact one. There is no bootstrapped one over "
    f"fewer than {FEWEST} rows, nor where no draw changes the number."
)


def resampled(clusters: Sequence[Hashable], *, seed: int = 0) -> Resamples:
    """Draws of items, of which those of one name are of one row; no interval over few rows."""
    return Resamples(clusters, seed=seed, fewest=FEWEST)


def measured(
    labels: tuple[str, ...],
    results: Sequence[Result],
    *,
    classes: Sequence[str] = (),
    cluster: Callable[[Result], Hashable] = lambda result: result.id,
    seed: int = 0,
) -> Row:
    """A row of `ACCURACY`, or with `classes` of `CLASSES`.

    Accuracy is the mean score of the items that got a reply, a missing answer scored 0. Precision,
    recall and F1 are macro means over the classes that items are of (recall) or that items are of
    or are answered (F1, and precision, which is None where one of them is never answered); an item
    without an answer is missed, and is nobody's false alarm.

    Args:
        classes: the answers there are; each result's `fields["gold"]` is one of them.
        cluster: what is drawn together in the bootstrap.
    """
    counts = Counter(result.outcome for result in results)
    there = [result for result in results if result.outcome != "error"]
    resamples = resampled([cluster(result) for result in there], seed=seed)
    cells: dict[str, Cell] = {
        "asked": len(results),
        **{name: counts[name] for name in ("answered", "refused", "unreadable", "error")},
        "accuracy": _of(
            share_estimate([result.score or 0.0 for result in there], resamples), len(results)
        ),
    }
    if classes:
        stack = _stacked(there, classes, resamples)
        for name, statistic in (("precision", _precision), ("recall", _recall), ("F1", _f1)):
            found = resamples.estimate(statistic(stack), n=len(there), of=len(results))
            cells[name] = found
    return Row(labels, cells)


def counted(labels: tuple[str, ...], results: Sequence[Result]) -> dict[str, Cell]:
    """The cells of `COUNTS` alone."""
    counts = Counter(result.outcome for result in results)
    return {
        "asked": len(results),
        **{name: counts[name] for name in ("answered", "refused", "unreadable", "error")},
    }


def _of(estimate: Estimate, of: int) -> Estimate:
    return Estimate(estimate.value, estimate.low, estimate.high, estimate.n, of)


def _stacked(
    results: Sequence[Result], classes: Sequence[str], resamples: Resamples
) -> NDArray[np.float64]:
    """(stack, K + 1, K + 1): confusion matrices; the last row is empty, the last column no answer.

    Raises:
        ValueError: a gold or an answer that is none of the classes.
    """
    import numpy as np

    size = len(classes) + 1
    places = {name: place for place, name in enumerate(classes)}
    cells = np.zeros((len(results), size * size))
    for number, result in enumerate(results):
        gold, given = result.fields["gold"], result.answer
        if gold not in places or (result.outcome == "answered" and given not in places):
            raise ValueError(f"item {result.id}: {gold!r} or {given!r} is none of {classes}")
        column = places[given] if result.outcome == "answered" else size - 1
        cells[number, places[gold] * size + column] = 1.0
    return resamples.sums(cells).reshape(-1, size, size)


def _precision(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    occurs = (counts.sum(axis=-2) + counts.sum(axis=-1) > 0)[:, :-1]
    # A sum over nan is nan: a class that occurs and is never answered leaves no mean.
    each = np.where(occurs, precisions(counts)[:, :-1], 0.0)
    return ratio(each.sum(axis=-1), occurs.sum(axis=-1).astype(np.float64))


def _recall(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return _mean(recalls(counts)[:, :-1])


def _f1(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return _mean(f1s(counts)[:, :-1])


def _mean(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    there = (~np.isnan(scores)).sum(axis=-1).astype(np.float64)
    return ratio(np.nansum(scores, axis=-1), there)
