"""The disagreements that a calibration reports."""

from __future__ import annotations

from judge.calibration.report import disagreements

from .asking import PLAIN
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
        quote="the guest bowed",
        fields={"story": "Ann came in; the guest bowed."},
    ),
]

EVERY = range(len(ITEMS))


def test_the_surest_disagreements_come_first_with_what_people_said() -> None:
    records = [one.record for one in disagreements(PLAIN, ITEMS, EVERY)]
    assert records == ["agreed", "divided", "unsure", "asked-once"]
    assert [one.record for one in disagreements(PLAIN, ITEMS[::-1], EVERY)] == records
    agreed, divided, *_ = disagreements(PLAIN, ITEMS, ())
    assert (agreed.answer, agreed.reference, agreed.confidence) == ("yes", "no", 0.9)
    assert (agreed.quote, agreed.held_out) == ("the guest bowed", False)
    assert agreed.fields == {"story": "Ann came in; the guest bowed."}
    assert list(divided.votes.items()) == [("no", 2), ("yes", 1)]
