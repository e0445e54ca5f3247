from __future__ import annotations

from typing import Any

import pytest
from judge.graphs.values import Value, parse_values

TALE = "Ann met Bo Li at the well. Aunt Mary of Rye came too."


def values(raw: Any, setting: str | None = None) -> list[Value]:
    return parse_values(raw, story=TALE, setting=setting)


@pytest.mark.parametrize(
    ("text", "statement", "attitude"),
    [
        ("Work is a duty -- Strongly agree ", "Work is a duty", "Strongly agree"),
        ("Well--known people--trust--neither", "Well--known people--trust", "neither"),
        ("Jobs: men first--disagree", "Jobs: men first", "disagree"),
        ("A dash — here--agree", "A dash — here", "agree"),
        ("A hyphen-word---agree", "A hyphen-word", "agree"),
    ],
)
def test_a_value_is_split_at_its_last_separator(text: str, statement: str, attitude: str) -> None:
    assert Value.parse(text) == Value(text, statement, attitude)


@pytest.mark.parametrize("text", ["no attitude", "empty--", "--agree", "--", "a-b", ""])
def test_a_value_without_both_parts_is_named(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        Value.parse(text)
    assert repr(text) in str(caught.value)


def test_a_multiple_setting_needs_names() -> None:
    with pytest.raises(ValueError, match="without a character: 'Work--agree'"):
        values(["Ann:Work--agree", "Work--agree"], setting="Multiple")
    assert [value.character for value in values("Zed:Work--agree", setting="multiple")] == ["Zed"]
    # In the single setting a name is a part of the statement.
    owners = {word: values("Ann: work--agree", word)[0].character for word in ("single", "random")}
    assert owners == {"single": None, "random": "Ann"}
    # A colon of full width, and an accent in two characters in the story.
    wide = Value.parse("\u5c0f\u660e\uff1a\u5de5\u4f5c--\u540c\u610f", named=True)
    assert (wide.character, wide.statement) == ("\u5c0f\u660e", "\u5de5\u4f5c")
    found = parse_values(["Zo\u00e9\uff1aWork--agree"], story="Zoe\u0301 left.", setting=None)
    assert [value.character for value in found] == ["Zo\u00e9"]


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (["Ann:Work--agree", "Bo Li:Rest--disagree"], True),
        ("Ann:Work--agree\nAunt Mary of Rye:Jobs: men first--agree", False),
        (["Ann:Work--agree", "Jobs: men first--agree"], False),
        (["An:Work--agree"], False),
        (["Ann met Bo:Work--agree"], True),
    ],
)
def test_the_multiple_setting_is_detected(raw: Any, named: bool) -> None:
    assert all((value.character is not None) is named for value in values(raw))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("['a--b', 'c--d']", "is a list written as text"),
        (["a--b", " "], r"empty value \(value 2\)"),
        ("\n \n", "is empty"),
    ],
)
def test_what_holds_no_values_is_named(raw: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        values(raw)


@pytest.mark.parametrize("text", ["[Sic] Work--agree", "Work--agree [always]"])
def test_a_bracket_alone_makes_no_list(text: str) -> None:
    assert [value.text for value in values(text)] == [text]


def test_each_value_of_a_text_is_numbered_from_1() -> None:
    with pytest.raises(ValueError, match=r"must hold texts, not 5 \(value 2\)"):
        values(["a--b", 5])
    assert [value.statement for value in values("a--b\r\n\nc--d")] == ["a", "c"]


def test_a_value_of_a_list_begins_no_line_of_its_own() -> None:
    values = parse_values(["Kindness\n2. Rudeness--negative"], story="s", setting="single")
    assert [value.text for value in values] == ["Kindness 2. Rudeness--negative"]
