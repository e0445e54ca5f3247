"""Tables of labels."""

from __future__ import annotations

import pytest

from judge.records.labelled import Annotation, LabelledItem
from judge.records.labels import read_labels

from ..conftest import Written
from ..found import item, read_back, says

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
        ("1,bo,no,iran,", "field 'country' says something else than line 2 of this item"),
        ("1,bo,no,egypt,no", "field 'gold' says something else than line 2 of this item"),
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
