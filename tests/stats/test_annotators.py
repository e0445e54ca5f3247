"""Who is dropped, and how many labels go along."""

from __future__ import annotations

import pytest

from judge.stats.annotators import Annotator, assess, below

LABELS = [("ann", "yes")] * 10 + [("bo", "no")] * 6 + [("cy", "yes")] * 4
CONTROLS = [("ann", "yes", "yes")] * 3 + [("bo", "no", "yes")] * 2 + [("bo", "yes", "yes")] * 3
PAIRS = [("ann", True, True), ("ann", True, False), ("bo", False, False), ("cy", True, True)]


@pytest.fixture
def found() -> dict[str, Annotator]:
    return assess(LABELS, CONTROLS, PAIRS)


def test_assessed(found: dict[str, Annotator]) -> None:
    assert list(found.values()) == [
        Annotator("ann", 10, 3, 3, 2, 1),
        Annotator("bo", 6, 5, 3, 1, 0),
        Annotator("cy", 4, 0, 0, 1, 1),
    ]
    assert [one.accuracy for one in found.values()] == [1.0, 0.6, None]
    assert [one.contradiction_rate for one in found.values()] == [0.5, 0.0, 1.0]
    assert Annotator("di").contradiction_rate is None


@pytest.mark.parametrize(
    ("accuracy", "contradictions", "expected"),
    [
        (None, None, []),
        (0.6, None, []),
        (0.61, None, ["bo"]),
        (None, 0.5, ["cy"]),
        (None, 0.4, ["ann", "cy"]),
        (0.7, 0.9, ["bo", "cy"]),
        (1.0, None, ["bo"]),
    ],
)
def test_dropped(
    found: dict[str, Annotator],
    accuracy: float | None,
    contradictions: float | None,
    expected: list[str],
) -> None:
    dropped = below(found.values(), accuracy, contradictions=contradictions)
    assert [one.name for one in dropped] == expected


def test_who_answered_no_control_is_not_judged_by_them() -> None:
    assert below([Annotator("cy", labels=4)], 1.0, contradictions=0.0) == []


def test_worst_first() -> None:
    one, other = Annotator("a", 5, 4, 2), Annotator("b", 5, 4, 1)
    assert below([one, other], 0.6) == [other, one]


def test_told(found: dict[str, Annotator]) -> None:
    assert found["bo"].as_json() == {
        "name": "bo",
        "labels": 6,
        "controls": 5,
        "right": 3,
        "pairs": 1,
        "contradictory": 0,
        "accuracy": 0.6,
        "contradiction_rate": 0.0,
    }
