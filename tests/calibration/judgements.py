"""Judged items in few words, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.calibration.observe import LabelledAnswer
from judge.records import Record
from judge.records.labels import Annotation, LabelledItem
from judge.verdict import AnswerOutcome


def judged(
    record: str,
    answer: str | None,
    gold: str | None = None,
    *,
    people: Sequence[tuple[str, str] | tuple[str, str, str]] = (),
    number: int = 0,
    fields: Mapping[str, Any] | None = None,
    slices: Mapping[str, str] | None = None,
    source: str = "",
    outcome: str | None = None,
    **said: Any,
) -> LabelledAnswer:
    """An answer to an item; `people` are (annotator, answer) or (annotator, answer, group)."""
    item = LabelledItem(
        record=Record(source, 0, dict(fields or {}), name=record),
        check="relevance",
        number=number,
        gold=gold,
        annotations=tuple(Annotation(*vote) for vote in people),
        slices=slices or {},
    )
    if outcome is None:
        outcome = "abstained" if answer is None else "answered"
    return LabelledAnswer(item, AnswerOutcome(outcome), answer, **said)
