"""A JSON file that is one object: rows that it wraps, one record, or refused."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest

from judge.errors import UsageError
from judge.records import read

from .conftest import ReadBack, Written

ROWS = [{"id": "a", "mail": "Hi"}, {"id": "b", "mail": "Ho"}, {"id": "c", "mail": "Hu"}]
SPLIT = {"columns": ["id", "mail"], "data": [[*row.values()] for row in ROWS]}
WRAPPED: dict[str, dict[str, Any]] = {
    "a list": {"version": "1.0", "data": ROWS},
    "a list alone": {"mails_of_may": ROWS},
    "a reply of an API": {"object": "list", "results": ROWS, "has_more": False, "meta": {"n": 1}},
    "ids": {row["id"]: {"mail": row["mail"]} for row in ROWS},
    "ids in a field": {"name": "x", "records": {row["id"]: {"mail": row["mail"]} for row in ROWS}},
    "records by other keys": {f"k{n}": row for n, row in enumerate(ROWS)},
    "split": {**SPLIT, "index": [0, 1, 2]},
    "columns": {key: {str(n): row[key] for n, row in enumerate(ROWS)} for key in ROWS[0]},
    "index": {str(n): row for n, row in enumerate(ROWS)},
    "table": {"schema": {"fields": [{"name": "id"}], "primaryKey": ["id"]}, "data": ROWS},
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("form", WRAPPED)
def test_rows_are_read(items: ReadBack, form: str, indent: int | None) -> None:
    text = json.dumps(WRAPPED[form], indent=indent)
    found = items("a.json", text)
    assert [item.fields for item in found] == ROWS
    piped = io.BytesIO(text.encode())
    assert [item.fields for item in read("-", stdin=piped)] == ROWS


def test_rows_keep_their_text_and_their_line(items: ReadBack) -> None:
    found = items("a.json", '{"version": 1,\n"rows": [\n{"n": 1.50},\n{"n": -0},\n17]}\n')
    assert [(item.line, item.json) for item in found[:2]] == [(3, '{"n": 1.50}'), (4, '{"n": -0}')]
    assert found[2].problem and "not a number" in found[2].problem.message
    found = items("b.json", '{"a b": {"n": 1.50},\n"c": {},\n"d": {"ID": 7}}\n')
    assert [(item.line, item.fields) for item in found] == [
        (1, {"id": "a b", "n": 1.5}),
        (2, {"id": "c"}),
        (3, {"ID": 7}),
    ]
    assert "1.50" in (found[0].json or "")


def test_an_index_of_pandas_that_counts_nothing_is_kept(items: ReadBack) -> None:
    found = items("a.json", json.dumps({**SPLIT, "index": ["x", "y", "z"]}))
    assert found[0].fields == {"index": "x", **ROWS[0]}


RECORDS: list[dict[str, Any]] = [
    {"id": "a", "mail": "Hi"},
    {"id": "c1", "messages": [{"role": "user", "content": "Hi"}]},
    {"conversations": [{"from": "human", "value": "Hi"}]},
    {"question": "Why?", "contexts": [{"text": "So."}], "answer": "So."},
    {"id": "a", "claims": [{"text": "x"}], "mail": "Hi"},
    {"mail": {"text": "Hi", "to": "Bo"}, "n": 1},
    {"prompt": "Hi", "response": {"data": [{"text": "x"}]}},
    {"id": "s", "story": "x", "values": ["a--b"], "labels": {"c": {"ann": ["yes"]}}},
    {"values": ["a", "b"], "predicted": ["a", "b"]},
    {},
]


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("indent", [None, 1])
def test_one_record_stays_one(items: ReadBack, record: dict[str, Any], indent: int | None) -> None:
    assert [item.fields for item in items("a.json", json.dumps(record, indent=indent))] == [record]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"train": ROWS, "test": ROWS}, """jq -c '.["train"][]' a.json or jq -c '.["test"][]'"""),
        (
            {"mail": "Hi", "claims": [{"text": "x"}]},
            """take the rows, jq -c '.["claims"][]' a.json""",
        ),
        ({"id": "x", "data": ROWS}, "make it one record, jq -c . a.json"),
        ({"may": {"a": {"mail": "Hi"}, "b": {"mail": "Ho"}}}, "take the rows"),
        ({"id": ["a", "b"], "mail": ["Hi", "Ho"]}, "may hold columns: write one object a row"),
        ({"m": {"x": "1", "y": "2", "z": "3"}, "n": {"x": "1", "y": "2", "z": "3"}}, "columns"),
        ({"columns": ["id"], "data": [["a"], ["b", "c"]]}, "take the rows"),
        # promptfoo's -o results.json
        (
            {"evalId": "e", "results": {"version": 3, "results": ROWS}, "config": {"tests": []}},
            """take the rows, jq -c '.["results"]["results"][]' a.json > rows.jsonl""",
        ),
        ({"data": {"items": ROWS}}, """take the rows, jq -c '.["data"]["items"][]' a.json"""),
        ([["a", "Hi"], ["b", "Ho"]], "rows are lists without names"),
    ],
)
def test_what_may_be_either_is_refused(write: Written, content: object, says: str) -> None:
    for indent in (None, 1):
        with pytest.raises(UsageError, match=re.escape(says)):
            read(write("a.json", json.dumps(content, indent=indent)))


def test_a_line_of_json_lines_is_a_record_whatever_it_holds(items: ReadBack) -> None:
    wrapper = WRAPPED["a list"]
    assert [item.fields for item in items("a.jsonl", json.dumps(wrapper))] == [wrapper]
    both = json.dumps(wrapper) + "\n" + json.dumps(wrapper)
    assert [item.fields for item in items("a.json", both)] == [wrapper, wrapper]
