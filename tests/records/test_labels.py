"""Reading labels: which form a file has, which check is wanted, the annotators' groups."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.records import Item
from judge.records.labels import SETS, Annotation, LabelledItem, read_labels

from .conftest import Written
from .found import item, lines, read_back

NORM = {"rule_of_thumb": "One waits.", "story": "Ann waited."}


def test_a_check_keeps_its_items_and_every_problem(write: Written) -> None:
    line = {**NORM, "labels": {"relevance": "yes", "adherence": "no"}}
    kept, bad = read_back(write, line, "{", check="adherence")
    assert item([kept]).check == "adherence"
    assert isinstance(bad, Item)


def test_a_check_without_labels_names_those_that_have_some(write: Written) -> None:
    line = {**NORM, "labels": {"relevance": "yes", "adherence": "no"}}
    with pytest.raises(UsageError, match=r"no labels for 'x'.*for adherence, relevance$"):
        read_back(write, line, check="x")
    with pytest.raises(UsageError, match=r"there are labels for nothing$"):
        read_back(write, {**NORM, "labels": {}}, check="x")


def test_a_check_that_the_set_has_not_is_refused_at_the_call(write: Written) -> None:
    path = write("data.tsv", "premise\thypothesis\tus_ratings\tin_ratings\n")
    with pytest.raises(UsageError, match="there are labels for entailment"):
        read_labels(f"cali:{path}", "relevance")
    header = "premise\thypothesis\tus_ratings\tin_ratings\na\tb\t['E']\t['N']\n"
    with pytest.raises(UsageError, match="there are labels for entailment"):
        read_labels(str(write("data.tsv", header)), "relevance")


def test_an_unknown_name_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as error:
        read_labels("moral-storys:/a/b.jsonl")
    assert "'moral-storys'" in str(error.value)
    assert all(name in str(error.value) for name in SETS)


def test_a_path_with_a_colon_is_a_path(write: Written) -> None:
    path = write("set:1.jsonl", json.dumps({**NORM, "labels": {"relevance": "yes"}}))
    assert len(list(read_labels(str(path)))) == 1


@pytest.mark.parametrize("source", ["missing.jsonl", "ambient:missing", "table:missing.csv"])
def test_a_missing_file_is_said_at_the_call(tmp_path: Path, source: str) -> None:
    name, colon, path = source.rpartition(":")
    with pytest.raises(UsageError, match="does not exist"):
        read_labels(f"{name}{colon}{tmp_path / path}")


@pytest.mark.parametrize("name", ["table:", "", "llmbar:"])
def test_a_folder_is_refused_where_there_is_nothing_of_the_set(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"is a folder|holds no file of llmbar: LLMBar_"):
        read_labels(f"{name}{tmp_path}")


def test_what_cannot_be_told_is_said_with_what_to_write(write: Written) -> None:
    path = write("a.jsonl", json.dumps(NORM))
    with pytest.raises(UsageError, match="Give each line a field 'labels'") as error:
        read_labels(str(path))
    assert f"moral-stories:{path}" in str(error.value)


def test_a_file_of_nothing_but_rubbish_is_its_problems(write: Written) -> None:
    assert [isinstance(one, Item) for one in read_back(write, "{", "[]")] == [True, True]
    assert (
        read_back(
            write,
        )
        == []
    )


def test_packed_files_and_standard_input(write: Written, monkeypatch: Any) -> None:
    line = json.dumps({**NORM, "labels": {"relevance": "yes"}}).encode()
    packed = write("a.jsonl.gz", gzip.compress(line))
    assert item(list(read_labels(str(packed)))).gold == "yes"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert item(list(read_labels("-"))).record == "<stdin>#1"


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
        ("[" * 100_000, "line 1: the record is nested too deep"),
        ("[5]", "line 1: a record must be an object"),
    ],
)
def test_a_file_without_groups_is_refused(write: Written, content: str, message: str) -> None:
    path = write("a.jsonl", json.dumps({**NORM, "labels": {"c": "yes"}}))
    with pytest.raises(UsageError, match=message):
        read_labels(str(path), annotators=write("g.json", content))
    with pytest.raises(UsageError, match="does not exist"):
        read_labels(str(path), annotators=path.with_name("none.json"))


@pytest.mark.parametrize(
    ("gold", "answers", "reference"),
    [
        (None, "", None),
        (None, "y", "y"),
        (None, "yn", None),
        (None, "yyn", "y"),
        (None, "yynn", None),
        (None, "yynu", None),
        (None, "yyynu", "y"),
        ("n", "yyy", "n"),
    ],
)
def test_reference(gold: str | None, answers: str, reference: str | None) -> None:
    annotations = tuple(Annotation(str(at), answer) for at, answer in enumerate(answers))
    labelled = LabelledItem("1", "c", {}, gold=gold, annotations=annotations)
    assert labelled.reference == reference


_KEYS = [
    *("ID", "norm", "moral_action", "label", "Country", "Rule-of-Thumb", "Story", "Gold Label"),
    *("premise", "hypothesis", "us_ratings", "in_ratings", "q0_gold", "worker_ids"),
    *("annotations", "labels", "text", "annotators", "other_info", "input", "output_1"),
    *("item",),
    *("annotator", "group", "gold", "check", "id"),
]
_rubbish = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("name", SETS)
@given(st.data())
def test_rubbish_comes_back_as_problems(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / f"{name}-rubbish.jsonl"
    objects = data.draw(
        st.lists(st.dictionaries(st.sampled_from(_KEYS), _rubbish, min_size=3), max_size=3)
    )
    text = lines(*objects).replace("Infinity", "1")
    path.write_text(text, "utf-8")
    for found in read_labels(f"{name}:{path}"):
        assert isinstance(found, LabelledItem) or (found.problem and found.fields is None)
