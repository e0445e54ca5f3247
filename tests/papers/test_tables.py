"""The columns that every benchmark's tables share, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from judge.papers.tables import ResultSample
from judge.papers.tasks import MeasuredAnswer
from judge.stats.bootstrap import FEWEST
from judge.stats.intervals import Estimate
from judge.verdict import AnswerOutcome


def result(
    number: int, gold: str, given: str | None, outcome: str = "answered", **more: Any
) -> MeasuredAnswer:
    score = float(gold == given) if outcome == "answered" else None
    return MeasuredAnswer(
        {"id": str(number), "gold": gold, "condition": "x", **more},
        AnswerOutcome(outcome),
        given,
        score,
    )


def test_an_answer_without_a_score_counts_as_not_scored_and_never_as_wrong() -> None:
    unscored = MeasuredAnswer({"id": "2", "condition": "x"}, AnswerOutcome.ANSWERED, "yes")
    found = ResultSample([result(1, "yes", "yes"), unscored]).accuracy()
    assert (found.value, found.n, found.of) == (1.0, 1, 2)
    assert ResultSample([unscored]).accuracy().value is None


def test_few_rows_bear_no_bootstrapped_interval_and_the_exact_one_where_all_are_alike() -> None:
    def accuracy(rows: int, right: int) -> Estimate:
        """Of `rows` rows with four items each, the first `right` items of each answered right."""
        results = [
            result(n, "yes", "yes" if n % 4 < right + n // 4 % 2 else "no", row=n // 4)
            for n in range(4 * rows)
        ]
        return ResultSample(results).accuracy()

    few = accuracy(FEWEST - 1, 2)
    assert few.value is not None and 0.5 < few.value < 0.75 and few.n == 4 * (FEWEST - 1)
    assert (few.low, few.high) == (None, None)
    enough = accuracy(FEWEST, 2)
    assert enough.low is not None and enough.high is not None and enough.low < enough.high
    alike = accuracy(2, 4)
    # 0.05 / 2 = low ** 2, of as many trials as there are rows.
    assert (alike.value, alike.high) == (1.0, 1.0)
    assert alike.low == pytest.approx(0.025**0.5)
