"""Reading labels: the project's own form and tables, which form a file has, annotators' groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.records import Record
from judge.records.labels import Annotation, LabelledItem, read_labels
from judge.records.labels.matching import other_question
from judge.records.labels.own import label_key

from .conftest import Written
from .found import item, read_back, says

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
    about = {"labelled_by": "Ann", "judge": {"verdict": "pass", "edits": [{"round": 1}]}}
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
    slices = {
        "story": "Ann waited.",
        "subcategory": "visiting",
        "real": "yes",
        "labelled_by": "Ann",
    }
    slices["edited"] = "yes"
    wanted = LabelledItem(
        Record("a.jsonl", 1, fields, name="n1"), "relevance", 0, "yes", (), slices
    )
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
    assert (found.gold, found.record.id) == (None, "a.jsonl#1")


def test_a_list_answers_value_by_value(write: Written) -> None:
    labels = {
        "incorporation": {"ann": ["yes", None], "bo": ["no", None], "cy": None},
        "consistency": [None, "yes"],
        "length": "ok",
    }
    found = read_back(write, {"id": 7, **STORY, "labels": labels})
    items = [one for one in found if isinstance(one, LabelledItem)]
    assert [(one.record.id, one.check, one.number, one.gold) for one in items] == [
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
    assert isinstance(found[0], Record) and found[0].problem is not None
    assert (found[0].problem.type, found[0].problem.field) == ("unlabelled", "labels")


@pytest.mark.parametrize(
    ("record", "labels", "message"),
    [
        (NORM, "yes", "field 'labels' must be an object, not a text"),
        (NORM, {"c": [["yes"]]}, "field 'labels.c' must hold an answer, not a list"),
        (
            NORM,
            {"c": {"ann": ["yes"], "bo": ["yes", "no"]}},
            "answered about different numbers of entries",
        ),
        ({**NORM, "annotators": {"ann": "US"}}, {"c": "yes"}, "field 'ann' must be an object"),
        ({**NORM, "id": "n1"}, {"c": "yes"}, "id 'n1' was already on line 1"),
        ({**NORM, "rot": "Another."}, {"c": "yes"}, "both stand for rule_of_thumb and differ"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    write: Written, record: dict[str, Any], labels: object, message: str
) -> None:
    sound = {**NORM, "labels": {"c": "no"}}
    bad, first, last = read_back(
        write, {**sound, "id": "n1"}, {**record, "labels": labels}, {**sound, "id": "n3"}
    )
    assert message in says([bad])
    assert isinstance(bad, Record)
    assert (bad.source, bad.line) == ("a.jsonl", 2)
    assert bad.raw
    assert item([first]).gold == item([last]).gold == "no"


TABLE = """item,annotator,label,group,gold,country,premise
1,ann,Yes,US,,egypt,P
2,ann,no,US,,iran,Q
1,bo,no,,yes,egypt,P
2,bo,,IN,,iran,Q
3,,,,no,iran,R
"""


def test_a_table_of_items_and_labels_alone(write: Written) -> None:
    (one,) = read_labels(str(write("b.csv", "item,label\n1,yes\n")))
    assert item([one]).gold == "yes"


def test_a_label_beside_gold_is_one_persons(write: Written) -> None:
    """As in a table with a reference and what one person said, whom no column names."""
    found = item(list(read_labels(str(write("b.csv", "item,label,gold\n1,yes,no\n")))))
    assert (found.gold, found.annotations) == ("no", (Annotation("label", "yes"),))


def test_beside_the_column_that_a_user_calls_the_label_a_record_has_its_fields(
    write: Written,
) -> None:
    head = "id,item,answer,gold,label,group,human"
    rows = [head, "1,mug,Milan,Rome,quiz,A,no", "2,mug,Rome,Rome,quiz,A,yes"]
    path = str(write("a.csv", "\n".join(rows)))
    found = [item([one]) for one in read_labels(path, columns={"label": "human"})]
    assert [(one.record.id, one.gold, one.annotations) for one in found] == [
        ("1", "no", ()),
        ("2", "yes", ()),
    ]
    own = {"answer": "Milan", "gold": "Rome", "label": "quiz", "group": "A"}
    assert found[0].record.visible.items() >= own.items()
    named = {"label": "human", "gold": "gold"}
    assert item([next(read_labels(path, columns=named))]).gold == "rome"


def test_two_records_of_one_name_are_not_taken_for_one(write: Written) -> None:
    rows = "id,item,review,label\n1,mug,Good.,yes\n2,mug,Nice.,yes\n3,cup,Bad.,no\n"
    found = list(read_labels(str(write("a.csv", rows))))
    bad = [one for one in found if isinstance(one, Record)]
    told = "item 'mug' was already on line 2, with other fields: name the column of ids with --id"
    assert says(bad) == told and [one.line for one in bad] == [3]
    assert [one.record.id for one in found if isinstance(one, LabelledItem)] == ["mug", "cup"]


def test_two_columns_of_one_name_are_told_and_none_is_chosen(write: Written) -> None:
    found = list(read_labels(str(write("a.csv", "item,Label,label\na,yes,no\nb,yes,yes\n"))))
    assert [getattr(one, "gold", None) for one in found] == [None, "yes"]
    assert isinstance(found[0], Record) and found[0].problem is not None
    assert "'Label' and 'label' both stand for label" in found[0].problem.message


@pytest.mark.parametrize("prefix", ["", "table:"])
def test_a_table(write: Written, prefix: str) -> None:
    first, second, third = list(read_labels(f"{prefix}{write('a.csv', TABLE)}"))
    about = {"country": "egypt", "premise": "P"}
    given = (Annotation("ann", "yes", "US"), Annotation("bo", "no"))
    assert first == LabelledItem(
        Record("a.csv", 2, about, name="1"), "label", 0, "yes", given, about
    )
    assert item([second]).annotations == (Annotation("ann", "no", "US"),)
    assert (item([third]).gold, item([third]).annotations) == ("no", ())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,ann,no,egypt,", "annotator 'ann' labelled item '1' on an earlier line already"),
        ("1,bo,no,egypt,no", "field 'gold' differs from line 2 of this item"),
        (",bo,no,egypt,", "field 'item' is empty"),
        ("1,,no,egypt,", "field 'annotator' is empty beside a label"),
    ],
)
def test_a_row_that_contradicts_is_a_problem(write: Written, row: str, message: str) -> None:
    header = "item,annotator,label,country,gold"
    bad, good = read_back(write, header, "1,ann,yes,egypt,yes", row, name="a.csv")
    assert says([bad]) == message
    assert isinstance(bad, Record) and bad.raw is not None
    assert [*json.loads(bad.raw).values()] == row.split(",")
    assert item([good]).annotations == (Annotation("ann", "yes"),)


def test_a_check_keeps_its_items_and_every_problem(write: Written) -> None:
    line = {**NORM, "labels": {"relevance": "yes", "adherence": "no"}}
    bad, kept = read_back(write, line, "{", check="adherence")
    assert item([kept]).check == "adherence"
    assert isinstance(bad, Record)
    with pytest.raises(UsageError, match=r"no labels for 'x'.*for adherence, relevance$"):
        read_back(write, line, check="x")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "moral-storys:{}/b.jsonl",
            "no labelled set 'moral-storys'; did you mean moral-stories",
        ),
        ("{}/missing.jsonl", "does not exist"),
        ("table:{}", "is a folder"),
        ("llmbar:{}", "holds no file of llmbar: LLMBar_"),
        ("{}/a.jsonl", "--label-column NAME.* a field 'labels'.* docs/howto/calibrate.md"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_at_the_call(
    write: Written, tmp_path: Path, source: str, says: str
) -> None:
    write("a.jsonl", json.dumps(NORM))
    with pytest.raises(UsageError, match=says):
        read_labels(source.format(tmp_path))


@pytest.mark.parametrize(
    ("gold", "answers", "reference"),
    [(None, "", None), (None, "yyn", "y"), (None, "yynu", None), ("n", "yyy", "n")],
)
def test_reference(gold: str | None, answers: str, reference: str | None) -> None:
    annotations = tuple(Annotation(str(at), answer) for at, answer in enumerate(answers))
    assert (
        LabelledItem(Record("", 0, {}, name="1"), "c", 0, gold, annotations).reference == reference
    )


@pytest.mark.parametrize(
    ("asked", "number", "template", "same"),
    [
        ("Is it kind?", 0, "Is it  kind?\n", True),
        ("Is it kind?", 0, "Is it rude?", False),
        ("Yes or no: is it kind?", 0, "is it kind?", False),
        ("Does it say zebra?", 1, "Does it say {{ value }}?", True),
        ("Does it mean zebra?", 1, "Does it say {{ value }}?", False),
        ("zebra\n\nIs it said?", 1, "Is it said?", True),
        ("Is it fair?", 0, "Is it {% if label %}fair{% else %}right{% endif %}{# #}?", True),
        ("'=x is a sum. Is it '=y?", 0, "=x is a sum. Is it =y?", True),
        (None, 0, "Is it rude?", True),
    ],
)  # fmt: skip
def test_a_row_of_a_sheet_shows_the_question_or_another(
    asked: str | None, number: int, template: str, same: bool
) -> None:
    answer = Annotation("ann", "yes", asked=asked)
    items = [LabelledItem(Record("s.csv", 1, {}), "kind", number, annotations=(answer,))]
    assert (other_question(items, template) is None) == same


@pytest.mark.parametrize("turned", [False, True])
def test_the_weight_of_a_record_is_that_of_any_of_its_lines(write: Written, turned: bool) -> None:
    plain = {"id": "m", "email": "Hi.", "labels": {"polite": {"ann": "yes"}}}
    drawn = plain | {"labels": {"polite": {"bo": "no"}}, "annotators": {"bo": {"weight": 9}}}
    lines = [drawn, plain] if turned else [plain, drawn]
    assert item(read_back(write, *lines)).weight == 9


def test_a_majority_of_annotators_who_give_several_answers() -> None:
    """What `judge agreement` writes as the majority of these is what a judge is compared with."""

    def of(*answers: str) -> LabelledItem:
        given = tuple(Annotation(str(n), answer) for n, answer in enumerate(answers))
        return LabelledItem(Record("", 0, {}), "topic", annotations=given).answered(["a", "b", "c"])

    assert of("b|a", "a|c", "a").reference == "a"
    assert of("b|a", "a|b", "c").reference == "a|b"
    assert of("a|b", "c").reference is None
    assert [one.answer for one in of("b|a", "a|b").annotations] == ["a|b", "a|b"]


def test_a_records_author_is_a_field_like_any_other(write: Written) -> None:
    """An e-mail has one; who gave the labels is another field."""
    mail = {"email": "Thanks.", "author": "Ann Lee"}
    found = item(read_back(write, mail | {"labels": {"polite": "yes"}, "labelled_by": "bo"}))
    assert found.record.visible == mail and found.slices["labelled_by"] == "bo"
    assert label_key(mail) != label_key(mail | {"author": "Bo Roe"})
