"""What a person reads of a calibration: disagreements, and what the order of answers does."""

from __future__ import annotations

import json

from judge.calibration.plain import plain
from judge.calibration.report import disagreements, position_bias

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
]


def test_the_surest_disagreements_come_first_with_what_people_said() -> None:
    records = [one.record for one in disagreements(ITEMS)]
    assert records == ["agreed", "divided", "unsure", "asked-once"]
    assert [one.record for one in disagreements(ITEMS[::-1])] == records
    agreed, divided, *_ = disagreements(ITEMS, held_out=False)
    assert (agreed.answer, agreed.reference, agreed.confidence) == ("yes", "no", 0.9)
    assert (agreed.evidence, agreed.held_out) == ("the guest bowed", False)
    assert agreed.fields == {"story": "Ann came in; the guest bowed."}
    assert list(divided.votes.items()) == [("no", 2), ("yes", 1)]
    told = json.loads(json.dumps(plain(divided)))
    assert told["annotations"][0] == {"annotator": "p", "answer": "no", "group": "us"}


def test_position_bias() -> None:
    items = [judged("a", "1", swapped="2"), judged("b", "2", swapped="2"), judged("c", "2")]
    found = position_bias(items, ["1", "2"])
    assert found is not None
    assert found.changed.value == found.first.value == 0.5
    assert (found.last.value, found.last.n) == (0, 2)
    assert position_bias([judged("a", "yes"), judged("b", None)], ["yes", "no"]) is None
