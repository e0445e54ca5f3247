"""Labelled records in the project's own form, and in plain tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.records import Item
from judge.records.labels import Annotation, LabelledItem, read_labels

from .conftest import Written
from .found import item, read_back, says

NORM = {"rule_of_thumb": "One waits.", "story": "Ann waited."}
STORY = {"story": "Ann and Bo wait.", "values": ["Waiting--agree", "Haste--disagree"]}


def test_one_answer_is_gold(write: Written) -> None:
    line = {"id": "n1", **NORM, "labels": {"relevance": "Yes ", "derivation": False}}
    relevance, derivation = read_back(write, line)
    assert relevance == LabelledItem(
        record="n1",
        check="relevance",
        fields={"id": "n1", **NORM},
        gold="yes",
        slices={"rule_of_thumb": "One waits.", "story": "Ann waited."},
        source="a.jsonl",
        line=1,
    )
    assert isinstance(derivation, LabelledItem)
    assert (derivation.check, derivation.gold) == ("derivation", "no")


def test_annotators_and_their_groups(write: Written) -> None:
    line = {
        **NORM,
        "labels": {"relevance": {"ann": "yes", "bo": 1, "cy": None}},
        "annotators": {"ann": {"group": "US", "age": 30}, "dee": {}},
    }
    found = item(read_back(write, line))
    assert found.annotations == (Annotation("ann", "yes", "US"), Annotation("bo", "1"))
    assert found.gold is None
    assert found.record == "a.jsonl#1"


def test_a_list_answers_value_by_value(write: Written) -> None:
    line = {"id": 7, **STORY, "labels": {"incorporation": ["yes", None], "length": "ok"}}
    found = [one for one in read_back(write, line) if isinstance(one, LabelledItem)]
    assert [(one.record, one.check, one.number, one.gold) for one in found] == [
        ("7", "incorporation", 1, "yes"),
        ("7", "length", 0, "ok"),
    ]


def test_a_story_that_lost_its_values_keeps_its_other_labels(write: Written) -> None:
    story = {**STORY, "values": []}
    assert item(read_back(write, {**story, "labels": {"length": "yes"}})).gold == "yes"
    found = read_back(write, {**story, "labels": {"incorporation": {"ann": ["yes"]}}})
    assert "field 'values' is empty" in says(found)


def test_annotators_answer_value_by_value(write: Written) -> None:
    answers = {"ann": ["yes", None], "bo": ["no", None], "cy": None}
    found = item(read_back(write, {**STORY, "labels": {"incorporation": answers}}))
    assert (found.number, found.gold) == (1, None)
    assert found.annotations == (Annotation("ann", "yes"), Annotation("bo", "no"))


@pytest.mark.parametrize("answers", [None, {}, {"relevance": None}, {"relevance": {"ann": None}}])
def test_null_is_no_label(write: Written, answers: object) -> None:
    found = read_back(write, {**NORM, "labels": answers}, {**NORM, "labels": {"relevance": "no"}})
    if answers is None:
        assert says(found[:1]) == "field 'labels' is missing: the line has no labels"
        found = found[1:]
    assert item(found).gold == "no"


def test_a_line_without_labels_is_told_from_a_bad_one(write: Written) -> None:
    (found,) = read_back(write, {**NORM, "labels": {}}, NORM)
    assert isinstance(found, Item)
    bad = found.problem
    assert bad is not None
    assert (bad.type, bad.field) == ("unlabelled", "labels")


@pytest.mark.parametrize(
    ("edits", "edited"), [([], "no"), (None, "no"), ([{"round": 1, "before": "x"}], "yes")]
)
def test_an_output_line_of_a_validation(write: Written, edits: object, edited: str) -> None:
    judged = {"verdict": "pass", "edits": edits}
    found = item(read_back(write, {**NORM, "labels": {"relevance": "yes"}, "judge": judged}))
    assert found.slices["edited"] == edited
    assert "judge" not in found.fields


def test_fields_get_typed_names_and_short_ones_are_slices(write: Written) -> None:
    line = {
        "ID": "n1",
        "Country": "egypt",
        "Rule-of-Thumb": "One waits. " * 6,
        "Story": "Ann waited. " * 6,
        "Gold Label": "yes",
        "Subaxis": "visiting",
        "round": 2,
        "real": True,
        "note": None,
        "tags": ["a"],
        "author": "the project's authors",
        "labels": {"relevance": "yes"},
    }
    found = item(read_back(write, line))
    assert found.record == "n1"
    assert found.fields["rule_of_thumb"] == line["Rule-of-Thumb"]
    assert found.fields["tags"] == ["a"]
    assert found.slices == {
        "country": "egypt",
        "label": "yes",
        "subcategory": "visiting",
        "round": "2",
        "real": "yes",
        "author": "the project's authors",
    }


@pytest.mark.parametrize(
    ("record", "labels", "message"),
    [
        (NORM, "yes", "field 'labels' must be an object, not a text"),
        (NORM, {"c": ""}, "field 'labels.c' holds an empty answer: write null for none"),
        (NORM, {"c": {"ann": {"x": 1}}}, "field 'labels.c.ann' must hold an answer, not an object"),
        (NORM, {"c": [["yes"]]}, "field 'labels.c' must hold an answer, not a list"),
        (STORY, {"c": ["yes"]}, "field 'labels.c' has 1 answers, the record 2 values"),
        ({**STORY, "values": ["broken"]}, {"c": ["yes"]}, "has a value without an attitude"),
        (NORM, {"c": {"ann": ["yes"], "bo": ["yes", "no"]}}, "did not answer as many values"),
        (NORM, {"c": {"ann": "yes", "bo": ["yes"]}}, "did not answer as many values"),
        ({**NORM, "annotators": ["ann"]}, {"c": "yes"}, "must be an object, not a list"),
        ({**NORM, "annotators": {"ann": "US"}}, {"c": "yes"}, "hold {'group': TEXT} for 'ann'"),
        ({**NORM, "author": 5}, {"c": "yes"}, "field 'author' must be a text"),
        ({**NORM, "judge": 5}, {"c": "yes"}, "field 'judge' must be an object"),
        ({**NORM, "id": True}, {"c": "yes"}, "field 'id' must be a text or a number"),
        ({**NORM, "rot": "Another."}, {"c": "yes"}, "both stand for rule_of_thumb and differ"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    write: Written, record: dict[str, Any], labels: object, message: str
) -> None:
    sound = {**NORM, "labels": {"c": "no"}}
    first, bad, last = read_back(write, sound, {**record, "labels": labels}, sound)
    assert message in says([bad])
    assert isinstance(bad, Item)
    assert (bad.source, bad.line) == ("a.jsonl", 2)
    assert bad.raw
    assert item([first]).gold == item([last]).gold == "no"


def test_an_id_that_comes_again_is_a_problem(write: Written) -> None:
    line = {"id": "n1", **NORM, "labels": {"relevance": "yes"}}
    first, again = read_back(write, line, line)
    assert isinstance(first, LabelledItem)
    assert isinstance(again, Item)
    assert again.problem is not None
    assert again.problem.type == "duplicate-id"
    assert again.problem.message == "id 'n1' was already on line 1"


def test_records_on_one_line_have_names_of_their_own(write: Written) -> None:
    line = {**NORM, "labels": {"relevance": "yes"}}
    path = write("a.json", json.dumps([line, line, line]))
    found = [one.record for one in read_labels(str(path)) if isinstance(one, LabelledItem)]
    assert found == ["a.json#1", "a.json#1.2", "a.json#1.3"]


_words = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
_answers = st.sampled_from(["yes", "no", "neutral", "unsure", "a b", "1"])
_gold = st.one_of(st.none(), _answers)
_given = st.dictionaries(_words, st.one_of(st.none(), _answers), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(
        st.dictionaries(_words, st.one_of(_gold, _given, st.lists(_gold, max_size=4)), max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_labels_come_back_as_they_were_written(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({**NORM, "labels": one}) + "\n" for one in lines), "utf-8")
    back: list[dict[str, Any]] = [{} for _ in lines]
    for found in read_labels(str(path)):
        assert isinstance(found, LabelledItem)
        given = {one.annotator: one.answer for one in found.annotations}
        answer = found.gold if found.gold is not None else given
        of_check = back[found.line - 1].setdefault(found.check, {})
        of_check[found.number] = answer
    wanted = [
        {check: told for check, one in line.items() if (told := _told(one))} for line in lines
    ]
    assert back == wanted


def _told(answer: Any) -> dict[int, Any]:
    """What an answer says, by number, less what is null."""
    if isinstance(answer, list):
        return {number: one for number, one in enumerate(answer, 1) if one is not None}
    if isinstance(answer, dict):
        given = {annotator: one for annotator, one in answer.items() if one is not None}
        return {0: given} if given else {}
    return {0: answer} if answer is not None else {}


def test_lines_that_wait_for_labels_do_not_hide_the_form(write: Written) -> None:
    waiting = [{"id": at, **NORM} for at in range(20)]
    found = read_back(write, *waiting, {**NORM, "labels": {"relevance": "yes"}})
    assert len(found) == 21
    assert item(found[-1:]).gold == "yes"
    assert (
        says(read_back(write, NORM, set="own"))
        == "field 'labels' is missing: the line has no labels"
    )


TABLE = """item,annotator,label,group,gold,country,premise
1,ann,Yes,US,,egypt,P
2,ann,no,US,,iran,Q
1,bo,no,,yes,egypt,P
2,bo,,IN,,iran,Q
"""


@pytest.mark.parametrize("prefix", ["", "table:"])
def test_a_table(write: Written, prefix: str) -> None:
    path = write("a.csv", TABLE)
    first, second = list(read_labels(f"{prefix}{path}"))
    assert first == LabelledItem(
        record="1",
        check="label",
        fields={"country": "egypt", "premise": "P"},
        gold="yes",
        annotations=(Annotation("ann", "yes", "US"), Annotation("bo", "no")),
        slices={"country": "egypt", "premise": "P"},
        source="a.csv",
        line=2,
    )
    assert item([second]).annotations == (Annotation("ann", "no", "US"),)


def test_a_table_of_other_formats(write: Written) -> None:
    found = read_back(write, "Item\tAnnotator\tLabel", "1\tann\tyes", name="a.tsv")
    assert item(found).annotations == (Annotation("ann", "yes"),)
    found = read_back(
        write, {"item": 1, "annotator": 2, "label": True}, {"item": 1, "annotator": 3, "label": 0}
    )
    assert item(found).annotations == (Annotation("2", "yes"), Annotation("3", "0"))


def test_the_checks_of_a_table(write: Written) -> None:
    rows = ("item,annotator,label,check", "1,ann,yes,relevance", "1,ann,no,adherence")
    assert (
        item(read_back(write, *rows, name="a.csv", check="adherence")).annotations[0].answer == "no"
    )
    named = read_back(write, "item,annotator,label", "1,ann,yes", name="b.csv", check="relevance")
    assert item(named).check == "relevance"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,ann,no,egypt,", "annotator 'ann' labelled item '1' on line 2 already"),
        ("1,bo,no,egypt,no", "field 'gold' differs from line 2 of this item"),
        (",bo,no,egypt,", "field 'item' is empty"),
        ("1,,no,egypt,", "field 'annotator' is empty beside a label"),
        ("1,bo,no", "the row has 3 cells, the header 5"),
    ],
)
def test_a_row_that_contradicts_is_a_problem(write: Written, row: str, message: str) -> None:
    header = "item,annotator,label,country,gold"
    bad, good = read_back(write, header, "1,ann,yes,egypt,yes", row, name="a.csv")
    assert says([bad]) == message
    assert item([good]).annotations == (Annotation("ann", "yes"),)


def test_a_table_without_its_columns(write: Written) -> None:
    found = read_back(write, "item,label", "1,yes", name="a.csv", set="table")
    assert says(found) == "field 'annotator' is missing"
    found = read_back(write, {"item": 1, "annotator": 2, "label": ["yes"]})
    assert says(found) == "field 'label' must hold an answer, not a list"


def test_a_gold_answer_needs_no_annotator(write: Written) -> None:
    found = item(read_back(write, "item,annotator,label,gold", "1,,,Yes", name="a.csv"))
    assert (found.gold, found.annotations) == ("yes", ())
