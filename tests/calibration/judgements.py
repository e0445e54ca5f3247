"""Judged items in few words, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.calibration.observations import Judged, Outcome
from judge.records.labels import Annotation, LabelledItem


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
    outcome: Outcome | None = None,
    **said: Any,
) -> Judged:
    """An answer to an item; `people` are (annotator, answer) or (annotator, answer, group)."""
    item = LabelledItem(
        record=record,
        check="relevance",
        fields=fields or {},
        number=number,
        gold=gold,
        annotations=tuple(Annotation(*vote) for vote in people),
        slices=slices or {},
        source=source,
    )
    if outcome is None:
        outcome = "abstained" if answer is None else "answered"
    return Judged(item, outcome, answer, **said)
