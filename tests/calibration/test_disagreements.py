"""Disagreements: which, in which order, with what."""

from __future__ import annotations

import json

import pytest

from judge.calibration.observations import Judged
from judge.calibration.report import confidence, disagreements

from .judgements import judged

ITEMS = [
    judged("agrees", "yes", "yes"),
    judged("silent", None, "yes"),
    judged("open", "yes", None),
    judged("unsure", "yes", "no", probabilities={"yes": 0.6, "no": 0.4}),
    judged("asked-once", "yes", "no"),
    judged(
        "divided",
        "yes",
        people=[("p", "no", "us"), ("q", "no"), ("r", "yes")],
        probabilities={"yes": 0.9, "no": 0.1},
    ),
    judged(
        "agreed",
        "yes",
        people=[("p", "no"), ("q", "no")],
        probabilities={"yes": 0.9, "no": 0.1},
        evidence="the guest bowed",
        fields={"story": "Ann came in; the guest bowed."},
    ),
    judged("seeds", "yes", "no", repeats=("yes", "no", None)),
]


def test_order() -> None:
    records = [one.record for one in disagreements(ITEMS)]
    assert records == ["agreed", "divided", "unsure", "seeds", "asked-once"]
    assert [one.record for one in disagreements(ITEMS[::-1])] == records


def test_what_is_told() -> None:
    agreed, divided, *_ = disagreements(ITEMS)
    assert (agreed.answer, agreed.reference, agreed.confidence) == ("yes", "no", 0.9)
    assert agreed.evidence == "the guest bowed"
    assert agreed.fields == {"story": "Ann came in; the guest bowed."}
    assert list(divided.votes.items()) == [("no", 2), ("yes", 1)]
    told = json.loads(json.dumps(divided.as_json()))
    assert told["annotations"][0] == {"annotator": "p", "answer": "no", "group": "us"}


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (judged("a", None, probabilities={"yes": 0.5, "no": 0.5}), None),
        (judged("a", "no", probabilities={"yes": 0.3, "no": 0.7}, repeats=("yes",)), 0.7),
        (judged("a", "no", repeats=("yes", "no", None)), 0.5),
        (judged("a", "no"), None),
    ],
)
def test_confidence(one: Judged, expected: float | None) -> None:
    assert confidence(one) == expected
