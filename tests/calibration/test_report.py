"""What a person reads of a calibration: disagreements, stability, a panel beside its best judge."""

from __future__ import annotations

import json
import random

import pytest

from judge.calibration.observations import Judged
from judge.calibration.plain import plain
from judge.calibration.report import confidence, disagreements, panel_measures, stability

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


def test_the_surest_disagreements_come_first_with_what_people_said() -> None:
    records = [one.record for one in disagreements(ITEMS)]
    assert records == ["agreed", "divided", "unsure", "seeds", "asked-once"]
    assert [one.record for one in disagreements(ITEMS[::-1])] == records
    agreed, divided, *_ = disagreements(ITEMS, held_out=False)
    assert (agreed.answer, agreed.reference, agreed.confidence) == ("yes", "no", 0.9)
    assert (agreed.evidence, agreed.held_out) == ("the guest bowed", False)
    assert agreed.fields == {"story": "Ann came in; the guest bowed."}
    assert list(divided.votes.items()) == [("no", 2), ("yes", 1)]
    told = json.loads(json.dumps(plain(divided)))
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


def test_flips_and_position_effect() -> None:
    items = [
        judged("a", "1", repeats=("1", "1"), swapped="2"),
        judged("b", "2", repeats=("1", None), swapped="2"),
        judged("c", "2"),
        judged("d", None, outcome="unreadable", repeats=("1",)),
    ]
    found = stability(items, ["1", "2"])
    assert found is not None
    assert (found.flips.value, found.flips.n, found.flips.of) == ((0 + 1 + 1) / 3, 3, 4)
    assert found.position is not None
    assert found.position.changed.value == found.position.first.value == 0.5
    assert (found.position.last.value, found.position.last.n) == (0, 2)
    assert stability([judged("a", "yes"), judged("b", None)], ["yes", "no"]) is None


# ---------------------------------------------------------------- panels


def panel(gold: str, **said: str) -> dict[str, list[Judged]]:
    """One letter an item: y, n, or - for no answer; gold ? is none."""
    words = {"y": "yes", "n": "no", "-": None, "?": None}
    items = [judged(f"r{number}", None, words[true]).item for number, true in enumerate(gold)]
    return {
        name: [
            Judged(item, "abstained" if words[letter] is None else "answered", words[letter])
            for item, letter in zip(items, answers, strict=True)
        ]
        for name, answers in said.items()
    }


def test_a_panel_by_hand() -> None:
    found = panel_measures(panel("yyynnn?y", a="yynnnnyy", b="nyynyny-", c="nyynnnyy"))
    assert found is not None
    assert found.judges == ("a", "b", "c")
    # Each errs alone but on the first item, where b and c are wrong together.
    assert (found.panel.value, found.panel.n, found.panel.of) == (pytest.approx(5 / 6), 6, 7)
    assert (found.best, found.single.value) == ("a", pytest.approx(5 / 6))
    assert found.difference.value == pytest.approx(0)
    # Errors (0 0 1 0 0 0), (1 0 0 0 1 0), (1 0 0 0 0 0): correlations -2 / sqrt(40), -0.2 and
    # 4 / sqrt(40).
    r = (2 / 40**0.5 - 0.2) / 3
    assert found.effective_votes.value == pytest.approx(3 / (1 + 2 * r))
    json.dumps(plain(found), allow_nan=False)


def test_two_judges_that_differ_have_no_majority() -> None:
    found = panel_measures(panel("yyyy", a="yyyn", b="ynny"))
    assert found is not None
    assert (found.panel.value, found.panel.n, found.panel.of) == (1.0, 1, 4)
    assert found.effective_votes.n == 4
    assert panel_measures(panel("?", a="y", b="y")) is None
    with pytest.raises(ValueError, match="the same items"):
        panel_measures({"a": panel("y", a="y")["a"], "b": panel("y", b="y")["b"]})


def test_three_independent_judges_beat_one() -> None:
    rng = random.Random(0)
    gold = "".join(rng.choice("yn") for _ in range(400))
    turned = {"y": "n", "n": "y"}
    said = {
        name: "".join(true if rng.random() < 0.75 else turned[true] for true in gold)
        for name in "abc"
    }
    found = panel_measures(panel(gold, **said), draws=200)
    assert found is not None
    assert found.difference.low is not None and found.difference.low > 0
    assert found.effective_votes.value == pytest.approx(3, abs=0.6)
