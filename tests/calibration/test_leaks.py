"""People's answers are hidden from the judge, texts are shown; a field that gives the label away is
reported as a leak, not as agreement."""

from __future__ import annotations

from typing import Any

import pytest

from judge.calibration.answer_fields import without_answers
from judge.calibration.controls import leak_of
from judge.questions.from_flags import rubrics_from_flags
from judge.records import Record
from judge.records.labels import LabelledItem

ANSWERS = ["yes", "no"]
GOLD = [ANSWERS[n % 2] for n in range(40)]
OTHER = [ANSWERS[(n // 2) % 2] for n in range(40)]
"""As often yes as no, whatever the label."""


def labelled(line: int, gold: str) -> LabelledItem:
    return LabelledItem(Record("", line, {}), "q", gold=gold)


def items(**columns: Any) -> list[LabelledItem]:
    return [
        LabelledItem(
            Record("", 0, {name: c[n] for name, c in columns.items()}, name=f"r{n}"),
            "q",
            gold=GOLD[n],
        )
        for n in range(40)
    ]


def mostly(right: int) -> list[str]:
    return [label if n < right else ANSWERS[label == "yes"] for n, label in enumerate(GOLD)]


@pytest.mark.parametrize(
    ("name", "content", "held"),
    [
        ("annotator2", OTHER, True),  # the name says it, however little they agree
        ("humanRating", [str(n / 7) for n in range(40)], True),
        ("humanRating", ["", "n/a", *(str(n / 7) for n in range(38))], True),
        ("winner", [("model_a", "model_b", "tie")[n % 3] for n in range(40)], True),
        ("votes", [[one, "no"] for one in GOLD], True),
        ("w1", mostly(34), True),  # kappa 0.7
        ("w1", ["", "n/a", *mostly(34)[2:]], True),
        ("maria", [one == "yes" for one in mostly(34)], True),
        ("maria", ["Yes." if one == "yes" else " NO" for one in mostly(34)], True),
        ("answer", mostly(24), True),  # kappa 0.2
        ("class", mostly(24), True),
        ("Classes", mostly(24), True),
        ("consensus", [str(n % 5) for n in range(40)], True),
        ("answer", [f"It lies in France, near the river {n}." for n in range(40)], False),
        ("answer", OTHER, False),
        ("gold", [f"the town of {n}" for n in range(40)], False),
        ("has_link", OTHER, False),
        ("topic", [("food", "sport", "law")[n % 3] for n in range(40)], False),
        (
            "scores_of_the_match",
            [f"a report of what was played on day {n}" for n in range(40)],
            False,
        ),
    ],
)
def test_which_fields_hold_answers_of_people(name: str, content: list[Any], held: bool) -> None:
    made = items(mail=[f"mail {n} of many" for n in range(40)], **{name: content})
    found = without_answers(made, rubrics_from_flags("Is it so?", [])[0])
    assert (found[0].withheld == (name,)) is held
    assert [*found[0].record.visible] == ["mail", name][: 2 - held]
    assert without_answers(made, rubrics_from_flags("Is it so?", [name])[0]) == made


@pytest.mark.parametrize("listed", [False, True])
def test_answers_within_objects_are_left_out_like_the_records_own(listed: bool) -> None:
    inner = [
        {"from": f"town {n}", "annotator_2": OTHER[n], "more": {"w1": one}}
        for n, one in enumerate(mostly(34))
    ]
    mail = [f"mail {n} of many" for n in range(40)]
    made = items(mail=mail, meta=[[one] for one in inner] if listed else inner)
    found = without_answers(made, rubrics_from_flags("Is it so?", [])[0])
    assert found[7].withheld == ("meta.annotator_2", "meta.more.w1")
    left = {"from": "town 7", "more": {}}
    assert found[7].record.visible == {"mail": mail[7], "meta": [left] if listed else left}
    assert made[7].record.visible["meta"] == ([inner[7]] if listed else inner[7])


def test_of_an_object_that_is_left_out_its_fields_are_not_named() -> None:
    votes = [{"annotator_2": one} for one in OTHER]
    made = items(mail=[f"mail {n} of many" for n in range(40)], votes=votes)
    assert without_answers(made, rubrics_from_flags("Is it so?", [])[0])[0].withheld == ("votes",)


TEXTS = [f"text number {n} of all" for n in range(40)]


@pytest.mark.parametrize(
    ("content", "leaks"),
    [
        (mostly(36), True),
        (mostly(35), False),
        ([{"yes": "a", "no": "b"}[one] for one in GOLD], True),
        ([{"yes": 0.7, "no": 0.2}[one] + n / 1000 for n, one in enumerate(GOLD)], True),
        (
            ["nan", "", *({"yes": 0.7, "no": 0.2}[one] + n / 1000 for n, one in enumerate(GOLD))][
                :40
            ],
            True,
        ),
        (TEXTS, False),  # each tells its own label only
        ([f"text {n % 10} for {GOLD[n]}" for n in range(40)], False),  # four copies of each text
        (["same"] * 40, False),
        ([str(n / 9) for n in range(40)], False),
    ],
)
def test_which_fields_tell_the_label(content: list[Any], leaks: bool) -> None:
    made = items()
    found = leak_of(made, [{"mail": "a", "x": str(one)} for one in content])
    assert (found is not None) is leaks
    if content == mostly(36):
        assert found is not None
        assert (found.field, found.right, found.items, found.most) == ("x", 36, 40, 20)


def test_by_hand_no_record_tells_its_own_label() -> None:
    """Ten values in 100 items of 50 records: a value is in one record alone, which tells nothing;
    and of a rare label the most frequent one is nearly as good."""
    made = [
        LabelledItem(Record("", 0, {}, name=f"r{n // 10}"), "q", gold=ANSWERS[n // 10 % 2])
        for n in range(100)
    ]
    assert leak_of(made, [{"x": str(n // 10)} for n in range(100)]) is None
    alike = [labelled(n, "yes") for n in range(40)]
    assert leak_of(alike, [{"x": "same"}] * 40) is None
    rare = [
        LabelledItem(Record("", 0, {}, name=f"r{n}"), "q", gold=ANSWERS[n % 20 == 0])
        for n in range(100)
    ]
    assert leak_of(rare, [{"x": str(n % 2)} for n in range(100)]) is None
    assert leak_of(rare, [{"x": str(n % 20 == 0)} for n in range(100)]) is not None
    # A few numbers are categories, the rare one, too: no part holds it and the frequent one.
    assert leak_of(rare, [{"x": "5" if n % 20 else "7"} for n in range(100)]) is not None
