"""The annotators' groups, from a file of their own."""

from __future__ import annotations

import json

import pytest

from judge.errors import UsageError
from judge.records.labels import read_labels

from ..conftest import Written
from ..found import item

NORM = {"rule_of_thumb": "One waits.", "story": "Ann waited."}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.json", '{"ann": "US", "bo": {"Group": "IN"}}'),
        ("g.json", '{\n"ann": {"Age": NaN, "Nationality": "US"},\n"bo": {"country": "IN"}\n}'),
        ("g.csv", "annotator,group\nann,US\nbo,IN\n"),
        ("g.jsonl", '{"annotator": "ann", "group": "US"}\n{"annotator": "bo", "group": "IN"}\n'),
    ],
)
def test_groups_from_a_file(write: Written, name: str, content: str) -> None:
    answers = {"ann": "yes", "bo": "no", "cy": "no", "dee": "no"}
    line = {**NORM, "labels": {"c": answers}, "annotators": {"dee": {"group": "AU"}}}
    path = write("a.jsonl", json.dumps(line))
    found = item(list(read_labels(str(path), annotators=write(name, content))))
    assert [one.group for one in found.annotations] == ["US", "IN", None, "AU"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "gives no annotator a group"),
        ('{"ann": {"age": 5}}', "gives no annotator a group"),
        ("{", "line 1: the input ends inside"),
        ("[" * 100_000, "line 1: the input ends inside"),
        ("[5]", "line 1: a record must be an object"),
    ],
)
def test_a_file_without_groups_is_refused(write: Written, content: str, message: str) -> None:
    path = write("a.jsonl", json.dumps({**NORM, "labels": {"c": "yes"}}))
    with pytest.raises(UsageError, match=message):
        read_labels(str(path), annotators=write("g.json", content))
    with pytest.raises(UsageError, match="does not exist"):
        read_labels(str(path), annotators=path.with_name("none.json"))
