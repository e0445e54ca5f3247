"""The kind of a record, its typed fields, and its faults."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records import (
    Problem,
    Record,
    SeenIds,
    content_hash,
    mapped,
    recognise,
)
from judge.records.base import LabelError, at
from judge.records.fields import refused
from judge.records.labels import Annotation, LabelledItem, read_labels

from .conftest import Written
from .test_write import FIELDS

NORM = {"story": "Ann waited.", "rule_of_thumb": "One waits."}
STORY = {"story": "Ann waited.", "values": ["Waiting is good--agree"]}
FOUND = {"values": ["Waiting is good"], "predicted": ["To wait is a virtue"]}


def item(fields: dict[str, Any], line: int = 17) -> Record:
    return Record("a.jsonl", line, fields)


def built(fields: dict[str, Any], kind: str | None = None) -> Record:
    return item(fields).of_kind(kind).usable()


def problem(fields: dict[str, Any], kind: str | None = None) -> Problem:
    found = item(fields).of_kind(kind).problem
    assert found is not None
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
        ({"values": ["a"], "predicted": []}, "extraction"),
    ],
)
def test_the_kind_is_recognised_by_its_fields(fields: dict[str, Any], kind: str | None) -> None:
    assert recognise(fields) == kind


def test_a_norm_record_as_normad_released_it() -> None:
    record = built(
        {
            "ID": 9,
            "Country": "egypt",
            "Subaxis": "gift_giving",
            "Value": "Respect",
            "Rule-of-Thumb": "Use both hands.",
            "Situation": " Ann did. ",
            "Gold Label": " \uff39ES. ",
            "Background": "",
            "other": 1,
        }
    )
    assert record.typed == {
        "id": "9",
        "country": "egypt",
        "subcategory": "gift_giving",
        "value": "Respect",
        "rule_of_thumb": "Use both hands.",
        "story": " Ann did. ",
        "label": "yes",
    }
    assert record.names["rule_of_thumb"] == "Rule-of-Thumb"
    assert record.id == "9"


def test_names_in_one_text_stand_between_commas_of_any_script() -> None:
    ming, hong, ahmad = "\u5c0f\u660e", "\u5c0f\u7ea2", "\u0623\u062d\u0645\u062f"
    text = f"{ming}\u3001{hong}\uff0c{ahmad}\u060c Ann; Bo"
    record = built({**STORY, "characters": text})
    assert record.typed["characters"] == (ming, hong, ahmad, "Ann", "Bo")


def test_without_an_id_the_position_is_the_id() -> None:
    for fields in (NORM, {**NORM, "id": None}, {**NORM, "id": "  "}):
        assert built(fields).id == "#17"
    assert built({**NORM, "id": 0}).id == "0"


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({**NORM, "story": ""}, "story", "'story' is empty"),
        ({**NORM, "Country": ["egypt"]}, "Country", "'Country' must be a text, not a list"),
        ({**NORM, "id": True}, "id", "must be a text or a number, not a truth value"),
        ({**NORM, "Gold Label": "maybe"}, "Gold Label", "yes, no or neutral, not 'maybe'"),
        ({**NORM, "situation": "other"}, "situation", "'story' and 'situation' both stand for"),
        ({**STORY, "values": []}, "values", "'values' is empty"),
        ({**STORY, "values": ["no attitude"]}, "values", "without an attitude: 'no attitude'"),
        ({**STORY, "characters": ["Ann", 5]}, "characters", "holds a number"),
        ({**FOUND, "values": ["a", " "]}, "values", "has an empty value (value 2)"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], field: str, says: str) -> None:
    found = problem(fields)
    assert found.field == field
    assert says in found.message


def test_a_kind_that_is_asked_for_says_what_is_missing() -> None:
    assert problem(NORM, "story").message == "field 'values' is missing"
    assert problem(STORY, "norm").field == "rule_of_thumb"
    assert built({**STORY, **NORM}, "norm").kind == "norm"


def test_any_record_shows_its_fields_but_the_id_and_labels() -> None:
    mail = {"ID": 7, "mail": {"body": "Dear Ann", "lines": 3}, "sent": True, "to": ["A", None, "B"]}
    empty = {"blank": " ", "none": None, "mixed": [{}], "judge": {"verdict": "pass"}}
    people = {"Gold Label": "yes", "annotator1": "no", "winner": "a", "winner_tie": 0}
    people |= {"final_label": "no", "rater_b": 3, "Annotator2 label": 1, "better_response_id": 0}
    people |= {"us_ratings": [1, 5], "ratings": [2], "votes": {"a": "yes"}, "majority": "yes"}
    table = {"judge.verdict": "fail", "judge.id": 7, "tone.verdict": "fail", "tone.answer": "no"}
    record = built({**mail, **empty, **people, **table}, "record")
    texts = record.texts
    assert record.id == "7" and {record.hidden()[name] for name in table} == {"a verdict"}
    # A user's own field of that form is shown, where judge wrote no such table.
    assert "polite.answer" in built({"polite.verdict": "x", "polite.answer": "y"}, "record").texts
    assert dict(texts) == {
        "mail": "body: Dear Ann\nlines: 3",
        "sent": "yes",
        "to": "1. A\n3. B",
    }
    # What a rubric names is shown all the same.
    assert (texts["mail.lines"], texts["to.-1"], texts["annotator1"]) == ("3", "B", "no")
    assert [name for name in ("blank", "to.7", "judge", "nothing") if name in texts] == []
    chat = '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Dear Ann"}]'
    cell = built({"chat": chat}, "record").texts
    assert (cell["chat.-1"], cell["chat.0.content"]) == ("assistant: Dear Ann", "Hi")
    assert "chat.2" not in cell and "chat.0.x" not in cell
    of_norm = built({**NORM, "mood": "calm", "label": "yes"}).texts
    assert dict(of_norm) == {**NORM, "mood": "calm"}


@pytest.mark.parametrize(
    ("fields", "path", "says"),
    [
        (
            {"a.b": "1", "a": {"b": "2"}},
            "a.b",
            "field 'a.b', and field 'b' of 'a', have the same path",
        ),
        ({"a": {"Body": "1", "body": ""}}, "a.body", "fields 'body' and 'Body' have the same name"),
        ({"To": {"x": 1}, "to": {"x": 2}}, "to.x", "fields 'to' and 'To' have the same name"),
    ],
)
def test_two_fields_of_one_path_are_told_and_none_is_chosen(
    fields: dict[str, Any], path: str, says: str
) -> None:
    with pytest.raises(LabelError, match=says):
        at(fields, path)
    (read,) = mapped([item(fields)], {"mail": path})
    assert read.problem is not None and says in read.problem.message


def test_a_record_of_no_kind_is_told_its_fields() -> None:
    assert "may be of kind norm, story: choose a workflow" in problem({**STORY, **NORM}).message
    assert "its fields are ['premise', 'hypo']" in problem({"premise": "x", "hypo": "y"}).message


# ---------------------------------------------------------------- ids, hashes, changes


def test_a_repeated_id_names_the_line_and_file_of_the_first() -> None:
    ids = SeenIds()
    for line, fields in ((3, {**NORM, "ID": "a"}), (4, NORM), (5, NORM)):
        assert item(fields, line).of_kind(None, ids).problem is None
    found = item({**NORM, "ID": "a"}, 9).of_kind(None, ids)
    assert (found.problem, found.called) == (None, "a.jsonl:9")
    assert ids.first_place("\ud800", "line 5 of a.jsonl") is None
    assert ids.first_place("\ud800", "line 7 of a.jsonl") == "line 5 of a.jsonl"


@given(FIELDS, st.randoms())
def test_the_hash_does_not_depend_on_the_order(fields: dict[str, Any], random: Any) -> None:
    pairs = list(fields.items())
    random.shuffle(pairs)
    assert content_hash(dict(pairs)) == content_hash(fields)


def test_the_hash_stays_the_same_from_release_to_release() -> None:
    fields = {"story": "Köln \ud800", "values": ["a--b"], "n": 1.5, "x": None}
    assert content_hash(fields) == "63d5477b5c1013f2b65693f028164a1a"


def test_changes_take_the_place_of_the_own_fields() -> None:
    norm = {
        "ID": 7,
        "Rule-of-Thumb": "One waits.",
        "Story": "Ann waited.",
        "Gold Label": "Yes",
        "judge": {"verdict": "fail"},
        "note": "mine",
    }
    changed = built(norm).with_changes({"story": "Ann left.", "label": "no", "extra": 1})
    assert list(changed.items()) == [
        ("ID", 7),
        ("Rule-of-Thumb", "One waits."),
        ("Story", "Ann left."),
        ("Gold Label", "no"),
        ("note", "mine"),
        ("extra", 1),
    ]
    story = built({"story": "x", "values": "a--b\nc--d\n", "original_values": "kept"})
    assert story.with_changes({"values": story.typed["values"][:1]}) == {
        "story": "x",
        "values": "a--b",
        "original_values": "kept",
    }


def test_a_text_over_the_limit_is_named_wherever_it_stands() -> None:
    long = "word " * 800_001
    told = "has 4000005 characters, the limit is 4000000"
    mail = {"mail": {"": long}, "to": ["Ann"]}
    assert problem(mail, "record").message == f"field 'mail' {told}"
    assert problem({"parts": [long, "end"]}, "record").field == "parts"
    # What a known kind does not show is no hindrance.
    assert built({**NORM, "attachment": long}).kind == "norm"
    assert problem({**NORM, "country": long}).message == f"field 'country' {told}"


def test_a_turn_of_a_chat_in_a_cell_is_mapped_and_changed_in_its_cell() -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ann waited."}]
    own = {"chat": json.dumps(turns), "rule_of_thumb": "One waits."}
    (read,) = mapped([item(own)], {"story": "chat.-1.content"})
    record = read.of_kind()
    assert (record.kind, record.typed["story"]) == ("norm", "Ann waited.")
    changed = record.with_changes({"story": "Ann left."})["chat"]
    assert json.loads(changed) == [turns[0], {**turns[1], "content": "Ann left."}]


def test_a_mapped_column_is_judged_under_its_name_and_changed_where_it_stands() -> None:
    own = {"id": 1, "meta": {"text": "Ann waited.", "n": 2}, "Norm": "One waits.", "ROT": "no"}
    columns = {"story": "meta.text", "rule_of_thumb": "Norm", "note": "ROT"}
    (read,) = mapped([item(own)], columns)
    assert list(read.visible) == ["id", "meta", "rule_of_thumb", "note", "story"]
    record = read.of_kind()
    assert record.kind == "norm"
    assert record.fields is own
    assert record.typed["story"] == "Ann waited." and record.typed["rule_of_thumb"] == "One waits."
    assert record.contents()["note"] == "no"
    changed = record.with_changes({"story": "Ann left.", "rule_of_thumb": "One goes."})
    assert list(changed.items()) == [
        ("id", 1),
        ("meta", {"text": "Ann left.", "n": 2}),
        ("Norm", "One goes."),
        ("ROT", "no"),
    ]
    # What --resume finds the record by.
    assert {**changed, **record.originals(["story", "rule_of_thumb"])} == own
    (swapped,) = mapped([item({"a": "1", "b": "2"})], {"a": "b", "b": "a"})
    assert swapped.problem is None and swapped.visible == {"b": "1", "a": "2"}


def test_labels_are_read_by_their_own_columns(write: Written) -> None:
    text = "who,what,says\nann,1,yes\n"
    columns = {"annotator": "who", "item": "what", "label": "says"}
    (one,) = read_labels(str(write("a.csv", text)), columns=columns)
    assert isinstance(one, LabelledItem) and one.annotations == (Annotation("ann", "yes"),)
    (bad,) = read_labels(str(write("a.csv", text)), columns={"label": "say"})
    assert isinstance(bad, Record) and bad.problem is not None
    assert "the record has no field 'say'" in bad.problem.message


def test_a_record_that_is_refused_keeps_its_text_or_the_beginning_of_it() -> None:
    short, long = (refused(Record("", 1, {"a": n * "x"}), Problem("no")).raw for n in (3, 5000))
    assert short == '{"a":"xxx"}'
    assert long == '{"a":"' + 1994 * "x" + "… [5008 in all]"
