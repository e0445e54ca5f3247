from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records import read

from .conftest import ReadBack
from .test_jsonl import problem_of


def test_a_list_is_read_with_the_line_where_each_record_begins(items: ReadBack) -> None:
    found = items("a.json", '[\n  {"a": 1},\n  {\n    "a": 2\n  }, {"a": 3}\n]\n')
    assert [(item.line, item.fields) for item in found] == [
        (2, {"a": 1}),
        (3, {"a": 2}),
        (5, {"a": 3}),
    ]


def test_objects_one_after_the_other_are_records(items: ReadBack) -> None:
    text = json.dumps({"a": 1}, indent=1) + "\n" + json.dumps({"a": 2}, indent=1)
    found = items("a.json", text)
    assert [(item.line, item.fields) for item in found] == [(1, {"a": 1}), (4, {"a": 2})]
    # As a loop of json.dump writes them.
    found = items("b.json", '{"a": "}{"}{"a": 2}\n {"a": 3}')
    assert [(item.line, item.fields) for item in found] == [
        (1, {"a": "}{"}),
        (2, {"a": 2}),
        (3, {"a": 3}),
    ]


def test_json_lines_under_the_wrong_name_survive_a_bad_line(items: ReadBack) -> None:
    found = items("a.json", '{"a": 1}\n{"a": \n{"a": 3}\n')
    assert [item.fields for item in found] == [{"a": 1}, {}, {"a": 3}]


def test_sound_json_that_is_no_record_does_not_stop_the_list(items: ReadBack) -> None:
    text = (
        b'[{"a": 1}, 17, "t, {", null, [1, [2]], {"b": "\xff"}, {"c": NaN}, {"d":1,"d":2}, {"a":9}]'
    )
    found = items("a.json", text)
    assert [item.problem is None for item in found] == [True] + [False] * 7 + [True]
    assert [item.raw for item in found[1:5]] == ["17", '"t, {"', "null", "[1, [2]]"]
    assert found[-1].fields == {"a": 9}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"a": 1}, {"b" 2}, {"a": 3}]', "not JSON"),
        ('[{"a": 1} {"a": 2}]', "expected ',' or ']', found '{'"),
        ('[{"a": 1}, {"a": "unclosed}, {"a": 3}]', "not JSON: Expecting ',' delimiter"),
        ('[{"a": 1}, {"a": "unclosed', "quote or bracket is not closed"),
        ('[{"a": 1}, ' + '{"a": ' * 100_000, "nested too deep"),
        ('[{"a": 1}', "cut off"),
        ('[{"a": 1}] {"a": 2}', "after the end of the list"),
    ],
)
def test_a_broken_list_gives_what_came_before_and_one_problem(
    items: ReadBack, text: str, says: str
) -> None:
    found = items("a.json", text)
    assert found[0].fields == {"a": 1}
    assert len(found) == 2
    assert says in problem_of(found[1])


def test_a_record_over_the_limit_ends_the_list(items: ReadBack) -> None:
    long = json.dumps({"a": '{"' * 100_000})
    found = items("a.json", f'[{{"a": 1}}, {long}, {{"a": 3}}]', max_line=1000)
    assert [item.fields for item in found] == [{"a": 1}, {}]
    assert "more than 1000 characters, the limit; what follows is not" in problem_of(found[1])


@pytest.mark.slow
def test_the_limit_is_of_one_record_wherever_it_stands_in_the_list(items: ReadBack) -> None:
    found = items("a.json", json.dumps([{"a": n} for n in range(60_000)]), max_line=1000)
    assert len(found) == 60_000 and all(item.problem is None for item in found)


TEXT = st.text(alphabet='ab"\\{}[],: é\n', max_size=6)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)


class Drip(io.BytesIO):
    """A stream that never gives more than a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def readinto(self, buffer: Any) -> int:
        return super().readinto(memoryview(buffer)[: self._size])


@pytest.mark.slow
@given(
    st.lists(st.dictionaries(TEXT, JSON, max_size=3), max_size=3),
    st.sampled_from([None, 0, 3]),
    st.booleans(),
    st.integers(1, 7),
)
def test_every_list_comes_back_whatever_the_chunks(
    records: list[dict[str, Any]], indent: int | None, ascii_only: bool, size: int
) -> None:
    text = json.dumps(records, indent=indent, ensure_ascii=ascii_only).encode()
    found = list(read("-", stdin=Drip(text, size), format="json"))
    assert [item.fields for item in found] == records
    assert all("\n" not in (item.json or "") for item in found)
