from __future__ import annotations

from typing import Any

import pytest

from judge.records import (
    ExtractionRecord,
    Item,
    NormRecord,
    Problem,
    Record,
    SeenIds,
    build,
    recognise,
)
from judge.records.kinds import Kind

NORM = {"story": "Ann waited.", "rule_of_thumb": "One waits."}
STORY = {"story": "Ann waited.", "values": ["Waiting is good--agree"]}
FOUND = {"values": ["Waiting is good"], "predicted": ["To wait is a virtue"]}


def item(fields: dict[str, Any], line: int = 17) -> Item:
    return Item("a.jsonl", line, fields)


def built(fields: dict[str, Any], kind: Kind | None = None) -> Record:
    record = build(item(fields), kind)
    assert isinstance(record, Record), record
    return record


def problem(fields: dict[str, Any], kind: Kind | None = None) -> Problem:
    found = build(item(fields), kind)
    assert isinstance(found, Problem)
    assert found.type == "bad-input"
    return found


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (STORY, "story"),
        (NORM, "norm"),
        ({"Situation": "x", "ROT": "y"}, "norm"),
        ({"story": None, "rule-of-thumb": None}, "norm"),
        ({**STORY, "rot": None}, "story"),
        ({**STORY, **NORM}, None),
        ({**NORM, "value": "Patience"}, "norm"),
        (FOUND, "extraction"),
        ({"Values": "a", "Predicted Values": None}, "extraction"),
        ({"values": ["a"], "predicted": []}, "extraction"),
        ({**FOUND, **STORY}, None),
        ({**STORY, "predicted": None}, "story"),
        ({}, None),
    ],
)
def test_the_kind_is_recognised_by_its_fields(fields: dict[str, Any], kind: Kind | None) -> None:
    assert recognise(fields) == kind


def test_a_norm_record_by_its_aliases() -> None:
    record = built(
        {
            "ID": 9,
            "Country": "egypt",
            "Axis": "Etiquette",
            "Subaxis": "gift_giving",
            "Value": "Respect",
            "ROT": "Use both hands.",
            "Situation": " Ann did. ",
            "Gold_Label": " YES ",
            "Background": "",
            "other": 1,
        }
    )
    assert record.data == NormRecord(
        id="9",
        country="egypt",
        axis="Etiquette",
        subcategory="gift_giving",
        value="Respect",
        rule_of_thumb="Use both hands.",
        story=" Ann did. ",
        label="yes",
    )
    assert record.names["rule_of_thumb"] == "ROT"
    assert record.names["label"] == "Gold_Label"
    assert record.id == "9"


def test_an_extraction_record() -> None:
    record = built(
        {"values": "Sport\nHome--Agree", "predicted": ["a \n b", "c"], "category": "social"}
    )
    assert isinstance(record.data, ExtractionRecord)
    assert [(v.text, v.attitude) for v in record.data.values] == [
        ("Sport", None),
        ("Home--Agree", None),
    ]
    assert record.data.predicted == ["a b", "c"] and record.data.category == "social"
    assert record.text("values") == "Sport\nHome--Agree"
    assert record.text("predicted") == "a b\nc"


def test_without_an_id_the_position_is_the_id() -> None:
    for fields in (NORM, {**NORM, "id": None}, {**NORM, "id": "  "}):
        assert built(fields).id == "#17"
    assert built({**NORM, "id": 0}).id == "0"


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({**NORM, "story": ""}, "story", "'story' is empty"),
        ({**NORM, "story": 3}, "story", "must be a text, not a number"),
        ({**NORM, "rule_of_thumb": ""}, "rule_of_thumb", "'rule_of_thumb' is empty"),
        ({**NORM, "Country": ["egypt"]}, "Country", "'Country' must be a text, not a list"),
        ({**NORM, "id": True}, "id", "must be a text, not a truth value"),
        ({**NORM, "Gold Label": "maybe"}, "Gold Label", "yes, no or neutral, not 'maybe'"),
        ({**NORM, "situation": "other"}, "situation", "'story' and 'situation' both stand for"),
        ({**STORY, "values": []}, "values", "'values' is empty"),
        ({**STORY, "values": {"a": 1}}, "values", "must be a list of values"),
        ({**STORY, "Values": ["other--agree"]}, "Values", "both stand for values"),
        ({**STORY, "setting": 5}, "setting", "must be a text, not a number"),
        ({**STORY, "characters": ["Ann", 5]}, "characters", "not a number at position 1"),
        ({**FOUND, "values": []}, "values", "'values' is empty"),
        ({**FOUND, "values": ["a", " "]}, "values", "has an empty value (value 2)"),
        ({**FOUND, "predicted": None}, "predicted", "'predicted' must be a list"),
        ({**FOUND, "predicted": ["a", 5]}, "predicted", "not 5 (value 2)"),
        ({**FOUND, "predicted": '["a"]'}, "predicted", "is a list written as text"),
        ({**NORM, "judge": {"name": "Ann"}}, "judge", "'judge' is reserved"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], field: str, says: str) -> None:
    found = problem(fields)
    assert found.field == field
    assert says in found.message


def test_any_record_if_asked() -> None:
    mail = {"ID": 7, "mail": {"body": "Dear Ann", "lines": 3}, "story": "x", "a.b": "dotted"}
    assert isinstance(build(item(mail)), Problem)
    record = build(item(mail), otherwise="record")
    assert isinstance(record, Record)
    assert (record.kind, record.id) == ("record", "7")
    assert [record.text(name) for name in ("mail.body", "story", "a.b")] == [
        "Dear Ann",
        "x",
        "dotted",
    ]
    for lacking in ("mail", "mail.lines", "mail.body.more", "values"):
        with pytest.raises(KeyError):
            record.text(lacking)
    known = build(item(NORM), otherwise="record")
    assert isinstance(known, Record) and known.kind == "norm"
    assert built(NORM, "record").text("rule_of_thumb") == NORM["rule_of_thumb"]


def test_a_text_that_is_longer_than_a_model_can_be_shown_is_refused() -> None:
    found = problem({"Story": "word " * 800_001, "rot": "x"})
    assert found.field == "Story"
    assert "has 4000005 characters, the limit is 4000000" in found.message
    assert built({**NORM, "story": "x" * 4_000_000}).kind == "norm"


def test_a_kind_that_is_asked_for_says_what_is_missing() -> None:
    assert problem(NORM, "story").message == "field 'values' is missing"
    assert problem(STORY, "norm").field == "rule_of_thumb"
    assert built({**STORY, **NORM}, "norm").kind == "norm"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({**STORY, **NORM}, "may be of kind story, norm: say which it is"),
        ({**STORY, **FOUND}, "may be of kind story, extraction: say which it is"),
        ({"premise": "x", "hypothesis": "y"}, "its fields are 'premise', 'hypothesis'"),
        ({}, "its fields are none"),
        ({f"k{n}": n for n in range(99)}, "'k11', …"),
    ],
)
def test_other_records_are_told_what_they_are(fields: dict[str, Any], says: str) -> None:
    assert says in problem(fields).message


def test_a_repeated_id_names_the_line_of_the_first() -> None:
    with SeenIds() as ids:
        assert isinstance(build(item({**NORM, "ID": "a"}, 3), None, ids), Record)
        assert isinstance(build(item(NORM, 4), None, ids), Record)
        assert isinstance(build(item(NORM, 5), None, ids), Record)
        found = build(item({**NORM, "ID": "a"}, 9), None, ids)
    assert found == Problem("id 'a' was already on line 3", "ID", "duplicate-id")
