"""The single rows of CQ-Bench's tables: what is counted, summed and bootstrapped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from judge.evaluation.benchmark import Result
from judge.evaluation.cqbench_scores import Hits, as_released, selection_hits
from judge.evaluation.measuring import counted, measured, resampled
from judge.evaluation.tables import Cell, Row
from judge.stats.bootstrap import mean_estimate, share_estimate
from judge.stats.classification import ratio
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def attitude_row(labels: tuple[str, ...], results: Sequence[Result]) -> Row:
    """Accuracy and macro scores over the attitudes that are right or given somewhere in `results`.

    Right answers and answers are compared as they stand; `score` is set accordingly.
    """
    given = (r.answer for r in results if r.outcome == "answered")
    classes = list(dict.fromkeys([*(r.fields["gold"] for r in results), *given]))
    row = measured(labels, results, classes=classes, cluster=_row)
    return Row(labels, {**row.cells, "stories": _stories(results)})


def option_row(labels: tuple[str, ...], results: Sequence[Result], option: str) -> Row:
    """How one attitude fares among all questions: recall, precision, F1 of it as a class."""
    own = [result for result in results if result.fields["gold"] == option]
    there = _there(results)
    resamples = resampled([_row(result) for result in there])
    rows = _triples(
        (
            result.fields["gold"] == option == result.answer,
            result.answer == option,
            result.fields["gold"] == option,
        )
        for result in there
    )
    hits, given, right = resamples.sums(rows).T
    asked = _there(own)
    found = [float(result.answer == option) for result in asked]
    recall = share_estimate(found, resampled([_row(result) for result in asked]))
    cells: dict[str, Cell] = {
        **counted(labels, own),
        "stories": _stories(own),
        "recall": _of(recall, len(own)),
        "precision": resamples.estimate(
            ratio(hits, given), n=int(rows[:, 1].sum()), of=len(results)
        ),
        "F1": resamples.estimate(ratio(2 * hits, given + right), n=len(there), of=len(results)),
    }
    return Row(labels, cells)


def selection_row(labels: tuple[str, ...], results: Sequence[Result]) -> Row:
    """Mean precision, recall and F1 of the items, an item without an answer 0; and pooled F1."""
    there = _there(results)
    resamples = resampled([_row(result) for result in there])
    found = [_hits(result) for result in there]
    means: dict[str, Cell] = {
        name: _of(share_estimate([value or 0.0 for value in values], resamples), len(results))
        for name, values in (
            ("precision", [hits.precision for hits in found]),
            ("recall", [hits.recall for hits in found]),
            ("F1", [hits.f1 for hits in found]),
        )
    }
    hits, given, right = resamples.sums(_triples((h.hits, h.given, h.right) for h in found)).T
    pooled = resamples.estimate(ratio(2 * hits, given + right), n=len(there), of=len(results))
    stories = {"stories": _stories(results)}
    return Row(labels, {**counted(labels, results), **stories, **means, "pooled F1": pooled})


def released_row(labels: tuple[str, ...], results: Sequence[Result]) -> Row:
    """The released script's figures: means over items with a readable answer, and F1 of the two."""
    taken = [(result, hits) for result in results if (hits := _released_hits(result)) is not None]
    resamples = resampled([_row(result) for result, _ in taken])
    rows = _triples((hits.precision or 0.0, hits.recall or 0.0, 1.0) for _, hits in taken)
    precision, recall, items = resamples.sums(rows).T
    mean_precision, mean_recall = ratio(precision, items), ratio(recall, items)
    # Where both are 0 the script divides by 0; the limit of F1 there is 0.
    f1 = ratio(2 * mean_precision * mean_recall, mean_precision + mean_recall)
    f1[mean_precision + mean_recall == 0] = 0.0
    n, of = len(taken), len(results)
    cells: dict[str, Cell] = {
        **counted(labels, results),
        "left out": of - n,
        "precision": resamples.estimate(mean_precision, n=n, of=of),
        "recall": resamples.estimate(mean_recall, n=n, of=of),
        "F1": resamples.estimate(f1, n=n, of=of),
    }
    return Row(labels, cells)


def extraction_row(
    labels: tuple[str, ...], results: Sequence[Result], topic: str | None = None
) -> Row:
    """Recall over gold values, those of one topic where it is named, and its mean over stories.

    A refused or unreadable answer finds no value; an answer that nobody graded is left out.
    """
    there = _there(results)
    resamples = resampled([_row(result) for result in there])
    credits = [_credits(result, topic) for result in there]
    settled = [[c for c in own if c is not None] for own in credits]
    rows = _triples(
        (sum(own), len(own), len(every)) for own, every in zip(settled, credits, strict=True)
    )
    sums, numbers, _ = resamples.sums(rows).T
    gold = int(rows[:, 2].sum())
    n = sum(len(own) for own in settled)
    means = [sum(own) / len(own) if own else None for own in settled]
    cells: dict[str, Cell] = {
        **counted(labels, results),
        "stories": _stories(results),
        "gold values": gold,
        "unsettled": gold - n,
        "recall": resamples.estimate(ratio(sums, numbers), n=n, of=gold),
        "story recall": _of(share_estimate(means, resamples), len(results)),
    }
    if topic is None:
        answered = [result for result in there if result.outcome == "answered"]
        every = resampled([_row(result) for result in answered])
        cut = [_number(result.steps, "cut") for result in answered]
        cells["predictions"] = _of(
            mean_estimate([float(len(result.answer)) for result in answered], every), len(results)
        )
        cells |= {"cut": sum(cut), "stories cut": sum(one > 0 for one in cut)}
    return Row(labels, cells)


def _hits(result: Result) -> Hits:
    given = result.answer if result.outcome == "answered" else []
    return selection_hits(given, result.fields["gold"])


def _released_hits(result: Result) -> Hits | None:
    gold = result.fields["gold"]
    if result.outcome != "answered" or not gold:
        return None
    given = as_released(result.answer, result.fields.get("options") or gold)
    return None if given is None else selection_hits(given, gold)


def _credits(result: Result, topic: str | None) -> list[float | None]:
    """A credit for each gold value of the topic; None for one that nobody settled."""
    gold: Sequence[str] = result.fields["gold"]
    credits: Sequence[float | None] = [0.0] * len(gold)
    if result.outcome == "answered":
        credits = result.steps.get("credits") or [None] * len(gold)
    if topic is None:
        return list(credits)
    topics: Sequence[str | None] = result.fields["gold_topics"]
    return [credit for credit, own in zip(credits, topics, strict=True) if own == topic]


def _there(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.outcome != "error"]


def _row(result: Result) -> str:
    return str(result.fields["row"])


def _stories(results: Sequence[Result]) -> int:
    """How many stories got a reply to a question at least."""
    return len(set(map(_row, _there(results))))


def _number(steps: Mapping[str, object], name: str) -> int:
    found = steps.get(name)
    return found if isinstance(found, int) else 0


def _triples(rows: Iterable[tuple[float, float, float]]) -> NDArray[np.float64]:
    import numpy as np

    return np.array(list(rows), dtype=np.float64).reshape(-1, 3)


def _of(estimate: Estimate, of: int) -> Estimate:
    return Estimate(estimate.value, estimate.low, estimate.high, estimate.n, of)
