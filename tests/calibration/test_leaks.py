"""People's answers are not shown, texts are; a field that tells the label is no agreement."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from judge.backends.base import Call
from judge.calibration.calibrate import acalibrate
from judge.calibration.controls import leak_of
from judge.calibration.labels import CalibrationJob, without_answers
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.rubric import rubric_from_flags

from .asking import client, resources_of, yes_no

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
        ("winner", [("model_a", "model_b", "tie")[n % 3] for n in range(40)], True),
        ("votes", [[one, "no"] for one in GOLD], True),
        ("w1", mostly(34), True),  # kappa 0.7
        ("maria", [one == "yes" for one in mostly(34)], True),
        ("maria", ["Yes." if one == "yes" else " NO" for one in mostly(34)], True),
        ("answer", mostly(24), True),  # kappa 0.2
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
    found = without_answers(made, rubric_from_flags("Is it so?", []))
    assert (found[0].withheld == (name,)) is held
    assert [*found[0].record.visible] == ["mail", name][: 2 - held]
    assert without_answers(made, rubric_from_flags("Is it so?", [name])) == made


@pytest.mark.parametrize("listed", [False, True])
def test_answers_within_objects_are_left_out_like_the_records_own(listed: bool) -> None:
    inner = [
        {"from": f"town {n}", "annotator_2": OTHER[n], "more": {"w1": one}}
        for n, one in enumerate(mostly(34))
    ]
    mail = [f"mail {n} of many" for n in range(40)]
    made = items(mail=mail, meta=[[one] for one in inner] if listed else inner)
    found = without_answers(made, rubric_from_flags("Is it so?", []))
    assert found[7].withheld == ("meta.annotator_2", "meta.more.w1")
    left = {"from": "town 7", "more": {}}
    assert found[7].record.visible == {"mail": mail[7], "meta": [left] if listed else left}
    assert made[7].record.visible["meta"] == ([inner[7]] if listed else inner[7])


TEXTS = [f"text number {n} of all" for n in range(40)]


@pytest.mark.parametrize(
    ("content", "leaks"),
    [
        (mostly(36), True),
        (mostly(35), False),
        ([{"yes": "a", "no": "b"}[one] for one in GOLD], True),
        ([{"yes": 0.7, "no": 0.2}[one] + n / 1000 for n, one in enumerate(GOLD)], True),
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


@pytest.mark.parametrize("named", [False, True])
def test_calibrate_shows_no_label_and_calls_a_copy_no_agreement(
    tmp_path: Path, named: bool
) -> None:
    rows = [
        {"item": f"r{n}", "label": GOLD[n], "second": mostly(38)[n], "mail": TEXTS[n]}
        for n in range(40)
    ]
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    prompts = []

    def answer(call: Call) -> Any:
        prompts.append(str(call.messages))
        return yes_no(rows[int(call.origin.record[1:])]["second"])

    resources = resources_of(client("one", answer, "structured"))
    rubric = rubric_from_flags("Is it so?", ["mail", "second"] if named else [])
    resources.rubrics.by_name["polite"] = rubric.model_copy(update={"name": "polite"})
    job = CalibrationJob([str(labels)], ["polite"], controls=False, draws=50)
    found = asyncio.run(acalibrate(job, resources))
    (check,) = found.checks
    assert found.profile is not None
    (profile,) = found.profile.judges
    assert any("second" in prompt for prompt in prompts) is named
    if named:
        assert check.leak is not None and check.leak.field == profile.leak == "second"
        assert found.failed and profile.guesses
        assert found.as_json()["checks"][0]["leak"]["right"] == 38
        refused = asyncio.run(
            acalibrate(CalibrationJob([str(labels)], ["polite"], agreement=0.6), resources)
        )
        assert refused.profile is None
        assert "'second' alone predicts 38 of 40" in str(refused.refused)
    else:
        assert (check.shown, check.withheld, check.leak) == (("mail",), ("second",), None)
        assert not found.failed and "leak" not in found.profile.model_dump_json()
