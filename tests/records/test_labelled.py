"""The answer that judges are held against."""

from __future__ import annotations

import pytest

from judge.records.labelled import Annotation, LabelledItem


@pytest.mark.parametrize(
    ("gold", "answers", "reference"),
    [
        (None, "", None),
        (None, "y", "y"),
        (None, "yn", None),
        (None, "yyn", "y"),
        (None, "yynn", None),
        (None, "yynu", None),
        (None, "yyynu", "y"),
        ("n", "yyy", "n"),
    ],
)
def test_reference(gold: str | None, answers: str, reference: str | None) -> None:
    annotations = tuple(Annotation(str(at), answer) for at, answer in enumerate(answers))
    labelled = LabelledItem("1", "c", {}, gold=gold, annotations=annotations)
    assert labelled.reference == reference
