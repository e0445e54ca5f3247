"""Reading labels: the project's own form and tables, which form a file has, annotators' groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.records import Item
from judge.records.labels import SETS, Annotation, LabelledItem, read_labels

from .conftest import Written
from .found import item, lines, read_back, says

NORM = {"rule_of_thumb": "One waits.", "story": "Ann waited."}
STORY = {"story": "Ann and Bo wait.", "values": ["Waiting--agree", "Haste--disagree"]}


def test_gold_with_typed_fields_and_slices(write: Written) -> None:
    record = {
        "ID": "n1",
        "Rule-of-Thumb": "One waits. " * 6,
        "Story": "Ann waited.",
        "Subaxis": "visiting",
        "real": True,
        "tags": ["a"],
    }
    about = {"author": "Ann", "judge": {"verdict": "pass", "edits": [{"round": 1}]}}
    labels = {"relevance": "Yes ", "derivation": False, "adherence": None}
    relevance, derivation = read_back(write, {**record, **about, "labels": labels})
    fields = {
        "id": "n1",
        "rule_of_thumb": "One waits. " * 6,
        "story": "Ann waited.",
        "subcategory": "visiting",
        "real": True,
        "tags": ["a"],
    }
    slices = {"story": "Ann waited.", "subcategory": "visiting", "real": "yes", "author": "Ann"}
    slices["edited"] = "yes"
    wanted = LabelledItem("n1", "relevance", fields, 0, "yes", (), slices, "a.jsonl", 1)
    assert relevance == wanted
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
    assert (found.gold, found.record) == (None, "a.jsonl#1")


def test_a_list_answers_value_by_value(write: Written) -> None:
    labels = {
        "incorporation": {"ann": ["yes", None], "bo": ["no", None], "cy": None},
        "consistency": [None, "yes"],
        "length": "ok",
    }
    found = read_back(write, {"id": 7, **STORY, "labels": labels})
    items = [one for one in found if isinstance(one, LabelledItem)]
    assert [(one.record, one.check, one.number, one.gold) for one in items] == [
        ("7", "incorporation", 1, None),
        ("7", "consistency", 2, "yes"),
        ("7", "length", 0, "ok"),
    ]
    assert items[0].annotations == (Annotation("ann", "yes"), Annotation("bo", "no"))
    lost = {**STORY, "values": []}
    assert item(read_back(write, {**lost, "labels": {"length": "yes"}})).gold == "yes"


def test_a_line_without_labels_is_told_from_a_bad_one(write: Written) -> None:
    waiting = [{"id": at, **NORM} for at in range(20)]
    found = read_back(write, *waiting, {**NORM, "labels": {}}, {**NORM, "labels": {"c": "yes"}})
    assert len(found) == 21
    assert item(found[-1:]).gold == "yes"
    assert isinstance(found[0], Item) and found[0].problem is not None
    assert (found[0].problem.type, found[0].problem.field) == ("unlabelled", "labels")


@pytest.mark.parametrize(
    ("record", "labels", "message"),
    [
        (NORM, "yes", "field 'labels' must be an object, not a text"),
        (NORM, {"c": ""}, "field 'labels.c' holds an empty answer: write null for none"),
        (NORM, {"c": {"ann": {"x": 1}}}, "field 'labels.c.ann' must hold an answer, not an object"),
        (NORM, {"c": [["yes"]]}, "field 'labels.c' must hold an answer, not a list"),
        (STORY, {"c": ["yes"]}, "field 'labels.c' has 1 answers, the record 2 values"),
        ({**STORY, "values": []}, {"c": {"ann": ["yes"]}}, "field 'values' is empty"),
        (NORM, {"c": {"ann": ["yes"], "bo": ["yes", "no"]}}, "did not answer as many values"),
        ({**NORM, "annotators": ["ann"]}, {"c": "yes"}, "must be an object, not a list"),
        ({**NORM, "annotators": {"ann": "US"}}, {"c": "yes"}, "field 'ann' must be an object"),
        ({**NORM, "id": True}, {"c": "yes"}, "field 'id' must be a text or a number"),
        ({**NORM, "id": "n1"}, {"c": "yes"}, "id 'n1' was already on line 1"),
        ({**NORM, "rot": "Another."}, {"c": "yes"}, "both stand for rule_of_thumb and differ"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    write: Written, record: dict[str, Any], labels: object, message: str
) -> None:
    sound = {**NORM, "labels": {"c": "no"}}
    first, bad, last = read_back(
        write, {**sound, "id": "n1"}, {**record, "labels": labels}, {**sound, "id": "n3"}
    )
    assert message in says([bad])
    assert isinstance(bad, Item)
    assert (bad.source, bad.line) == ("a.jsonl", 2)
    assert bad.raw
    assert item([first]).gold == item([last]).gold == "no"


_words = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
_gold = st.none() | st.sampled_from(["yes", "no", "neutral", "unsure", "a b", "1"])
_given = st.dictionaries(_words, _gold, max_size=4)
_labels = st.dictionaries(_words, _gold | _given | st.lists(_gold, max_size=4), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(_labels, min_size=1, max_size=4))
def test_labels_come_back_as_they_were_written(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({**NORM, "labels": one}) + "\n" for one in lines), "utf-8")
    back: list[dict[str, Any]] = [{} for _ in lines]
    for found in read_labels(str(path)):
        assert isinstance(found, LabelledItem)
        given = {one.annotator: one.answer for one in found.annotations}
        back[found.line - 1].setdefault(found.check, {})[found.number] = found.gold or given

    def told(answer: Any) -> dict[int, Any]:
        if isinstance(answer, list):
            return {number: one for number, one in enumerate(answer, 1) if one is not None}
        if isinstance(answer, dict):
            answer = {annotator: one for annotator, one in answer.items() if one is not None}
        return {0: answer} if answer else {}

    wanted = [{check: told(one) for check, one in line.items() if told(one)} for line in lines]
    assert back == wanted


TABLE = """item,annotator,label,group,gold,country,premise
1,ann,Yes,US,,egypt,P
2,ann,no,US,,iran,Q
1,bo,no,,yes,egypt,P
2,bo,,IN,,iran,Q
3,,,,no,iran,R
"""


@pytest.mark.parametrize("prefix", ["", "table:"])
def test_a_table(write: Written, prefix: str) -> None:
    first, second, third = list(read_labels(f"{prefix}{write('a.csv', TABLE)}"))
    about = {"country": "egypt", "premise": "P"}
    given = (Annotation("ann", "yes", "US"), Annotation("bo", "no"))
    assert first == LabelledItem("1", "label", about, 0, "yes", given, about, "a.csv", 2)
    assert item([second]).annotations == (Annotation("ann", "no", "US"),)
    assert (item([third]).gold, item([third]).annotations) == ("no", ())
    numbers = [{"Item": 1, "Annotator": 2, "Label": True}, {"item": 1, "annotator": 3, "label": 0}]
    found = item(read_back(write, *numbers))
    assert found.annotations == (Annotation("2", "yes"), Annotation("3", "0"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,ann,no,egypt,", "annotator 'ann' labelled item '1' on an earlier line already"),
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


def test_a_check_keeps_its_items_and_every_problem(write: Written) -> None:
    line = {**NORM, "labels": {"relevance": "yes", "adherence": "no"}}
    kept, bad = read_back(write, line, "{", check="adherence")
    assert item([kept]).check == "adherence"
    assert isinstance(bad, Item)
    with pytest.raises(UsageError, match=r"no labels for 'x'.*for adherence, relevance$"):
        read_back(write, line, check="x")
    header = "premise\thypothesis\tus_ratings\tin_ratings\na\tb\t['E']\t['N']\n"
    for prefix in ("cali:", ""):
        with pytest.raises(UsageError, match="there are labels for entailment"):
            read_labels(f"{prefix}{write('data.tsv', header)}", "relevance")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("moral-storys:{}/b.jsonl", "no labelled set 'moral-storys': there are own, moral-stories"),
        ("{}/missing.jsonl", "does not exist"),
        ("ambient:{}/missing", "does not exist"),
        ("table:{}", "is a folder"),
        ("llmbar:{}", "holds no file of llmbar: LLMBar_"),
        ("{}/a.jsonl", "Give each line a field 'labels'.* as in moral-stories:.*a.jsonl"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_at_the_call(
    write: Written, tmp_path: Path, source: str, says: str
) -> None:
    write("a.jsonl", json.dumps(NORM))
    with pytest.raises(UsageError, match=says):
        read_labels(source.format(tmp_path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.json", '{"ann": "US", "bo": {"Group": "IN"}}'),
        ("g.json", '{\n"ann": {"Age": NaN, "Nationality": "US"},\n"bo": {"country": "IN"}\n}'),
        ("g.csv", "annotator,group\nann,US\nbo,IN\n"),
    ],
)
def test_groups_from_a_file(write: Written, name: str, content: str) -> None:
    answers = {"ann": "yes", "bo": "no", "cy": "no", "dee": "no"}
    line = {**NORM, "labels": {"c": answers}, "annotators": {"dee": {"group": "AU"}}}
    path = write("a.jsonl", json.dumps(line))
    found = item(list(read_labels(str(path), annotators=write(name, content))))
    assert [one.group for one in found.annotations] == ["US", "IN", None, "AU"]


@pytest.mark.parametrize(
    ("gold", "answers", "reference"),
    [
        (None, "", None),
        (None, "yyn", "y"),
        (None, "yynn", None),
        (None, "yynu", None),
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
    *("item", "annotator", "group", "gold", "check", "id", "annotation task"),
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
    path.write_text(lines(*objects).replace("Infinity", "1"), "utf-8")
    for found in read_labels(f"{name}:{path}"):
        assert isinstance(found, LabelledItem) or (found.problem and found.fields is None)
