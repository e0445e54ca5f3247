from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records import Item, Record, SeenIds, build, content_hash

from .test_write import FIELDS


@given(FIELDS, st.randoms())
def test_the_hash_does_not_depend_on_the_order(fields: dict[str, Any], random: Any) -> None:
    pairs = list(fields.items())
    random.shuffle(pairs)
    assert content_hash(dict(pairs)) == content_hash(fields)


def test_the_hash_stays_the_same_from_release_to_release() -> None:
    fields = {"story": "Köln \ud800", "values": ["a--b"], "n": 1.5, "x": None}
    assert content_hash(fields) == "63d5477b5c1013f2b65693f028164a1a"


def record(fields: dict[str, Any]) -> Record:
    built = build(Item("a.jsonl", 1, fields))
    assert isinstance(built, Record), built
    return built


NORM = {
    "ID": 7,
    "Rule-of-Thumb": "One waits.",
    "Story": "Ann waited.",
    "Gold Label": "Yes",
    "judge": {"verdict": "fail"},
    "note": "mine",
}


def test_changes_take_the_place_of_the_own_fields() -> None:
    changed = record(NORM).with_changes({"story": "Ann left.", "label": "no", "extra": 1})
    assert list(changed.items()) == [
        ("ID", 7),
        ("Rule-of-Thumb", "One waits."),
        ("Story", "Ann left."),
        ("Gold Label", "no"),
        ("note", "mine"),
        ("extra", 1),
    ]
    assert NORM["Story"] == "Ann waited."


def test_dropped_values_leave_the_own_form() -> None:
    story = record({"story": "x", "values": "a--b\nc--d\n", "original_values": "kept"})
    kept = story.data.values[:1]  # type: ignore[union-attr]
    assert story.with_changes({"values": kept}) == {
        "story": "x",
        "values": "a--b",
        "original_values": "kept",
    }


def test_texts_by_typed_and_by_own_name() -> None:
    norm = record(NORM)
    assert norm.text("rule_of_thumb") == "One waits."
    assert norm.text("label") == "yes"
    assert norm.text("note") == "mine"
    for lacking in ("background", "nothing"):
        with pytest.raises(KeyError):
            norm.text(lacking)
    story = record({"story": "x", "values": ["a--b", "c--d"], "characters": ["Ann", "Bo"]})
    assert story.text("values") == "a--b\nc--d"
    assert story.text("characters") == "Ann, Bo"


def test_ids_are_remembered_with_their_first_line_and_file() -> None:
    def at(line: int, source: str = "a.jsonl") -> Item:
        return Item(source, line, {})

    with SeenIds() as ids:
        assert ids.already("a", at(1)) is None
        assert ids.already("b", at(2)) is None
        assert ids.already("a", at(3)) == "line 1"
        assert ids.already("a", at(4)) == "line 1"
        assert ids.already("\ud800", at(5)) is None
        assert ids.already("x" * 10_000_000, at(6)) is None
        assert ids.already("\ud800", at(7)) == "line 5"
        assert ids.already("b", at(9, "b.jsonl")) == "line 2 of a.jsonl"
        assert ids.already("b", at(2)) == "line 2 of a.jsonl", "the same file once more"
    with SeenIds() as ids:
        assert ids.already("a", at(9)) is None
