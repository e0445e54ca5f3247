from __future__ import annotations

import json

import pytest

from judge.records import Record

from .conftest import ReadBack


def problem_of(item: Record) -> str:
    assert item.fields == {}
    assert item.problem is not None
    assert item.problem.type == "bad-input"
    return item.problem.message


def test_each_line_is_a_record_with_its_line_number(items: ReadBack) -> None:
    found = items("a.jsonl", '{"a": 1}\n\n   \n{"b": [2, {"c": null}]}\n')
    assert [(item.source, item.line, item.fields, item.problem) for item in found] == [
        ("a.jsonl", 1, {"a": 1}, None),
        ("a.jsonl", 4, {"b": [2, {"c": None}]}, None),
    ]


def test_other_line_breaks_inside_text_do_not_split(items: ReadBack) -> None:
    story = "one\u2028two\u2029three\u0085four"
    found = items("a.jsonl", json.dumps({"story": story}, ensure_ascii=False) + "\n")
    assert [item.fields for item in found] == [{"story": story}]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"a": 1', "not JSON: Expecting ',' delimiter at column 8"),
        (b'{"a": 1} trailing', "Extra data at column 10"),
        (b'{"a": "tab\there"}', "Invalid control character"),
        (b'{"a": "\xff\xfe"}', "byte 8, 0xff, is not UTF-8: iconv -f ENCODING -t UTF-8 FILE > NEW"),
        (b"[1, 2]", "must be an object, not a list"),
        (b'"text"', "not a text"),
        (b'{"a": 1e999}', "number 1e999 is too large"),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested more than 200 deep"),
        (b'[{"role": "user", "content": "Hi"}]', "one chat, jq -c '{messages: .}' FILE"),
        (b'[{"id": 1}]', "if it is a list of records, --format json"),
        (b"[" * 250 + b"]" * 250, "nested more than 200 deep"),
        (b'{"a": NaN}', "NaN is not a JSON number: write null, as pandas' to_json does"),
        (b'{"a": ' + b"9" * 5000 + b"}", "holds a whole number with too many digits"),
        (b"\0\0{}\0", "not JSON: Expecting value at column 1"),
    ],
)
def test_a_malformed_line_is_named_and_the_next_is_read(
    items: ReadBack, line: bytes, says: str
) -> None:
    found = items("a.jsonl", b'{"id": 1}\n' + line + b'\n{"id": 3}\n')
    assert [item.line for item in found] == [1, 2, 3]
    assert found[0].fields == {"id": 1}
    assert found[2].fields == {"id": 3}
    assert says in problem_of(found[1])
    assert found[1].raw == line.decode("utf-8", "backslashreplace")


@pytest.mark.parametrize("first", ["[", "{", '[{"id": 1,', '{"a": [', '[{"id": 1},'])
def test_the_first_line_of_json_over_several_says_how_it_is_read(
    items: ReadBack, first: str
) -> None:
    hint = ": if JSON runs over several lines, --format json"
    told = [problem_of(item).endswith(hint) for item in items("a.jsonl", f"\n{first}\r\n" * 2)]
    assert told == [True, False]


def test_a_repeated_key_is_named(items: ReadBack) -> None:
    found = items("a.jsonl", '{"a": 1, "b": {"story": "x", "story": "y"}}')
    assert "'story' stands twice" in problem_of(found[0])
    assert found[0].problem is not None and found[0].problem.field == "story"


def test_a_line_over_the_limit_is_named_and_skipped(items: ReadBack) -> None:
    long = '{"a": "' + "é" * 5000 + '"}'
    found = items("a.jsonl", f'{{"id": 1}}\n{long}\n{{"id": 3}}\n{long}', max_line=1000)
    assert [item.line for item in found] == [1, 2, 3, 4]
    assert found[2].fields == {"id": 3}
    for item in (found[1], found[3]):
        assert "has 10009 bytes, more than the limit of 1000" in problem_of(item)
        assert item.raw is not None
        assert item.raw.startswith('{"a": "ééé')
        assert item.raw.endswith("… [10009 bytes in all]")
        assert len(item.raw) < 2_100


@pytest.mark.parametrize(("deep", "sound"), [(200, True), (201, False)])
def test_the_deepest_nesting_that_is_read(items: ReadBack, deep: int, sound: bool) -> None:
    # The record itself is one level.
    (item,) = items("a.jsonl", '{"a": ' + "[" * (deep - 1) + "]" * (deep - 1) + "}")
    assert (item.problem is None) is sound
    wide = items("a.jsonl", json.dumps({"a": [{}] * 500}))
    assert wide[0].problem is None


@pytest.mark.parametrize(("limit", "sound"), [(8, True), (7, False)])
def test_a_record_of_just_the_limit_is_read(items: ReadBack, limit: int, sound: bool) -> None:
    assert (items("a.jsonl", '{"a": 1}\n', max_line=limit)[0].problem is None) is sound
    row = items("a.csv", "a,b\n123,5678\n", max_line=limit)[0]
    assert (row.problem is None) is sound
    assert sound or "it has 8 bytes, more than the limit of 7" in problem_of(row)
