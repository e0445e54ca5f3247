"""CulturalBench, Easy and Hard."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from judge.records.labelled import LabelledItem
from judge.records.labels import read_labels

from ..conftest import Written
from ..found import faults, sound

EASY = (
    "data_idx,question_idx,prompt_question,prompt_option_a,prompt_option_b,prompt_option_c,"
    "prompt_option_d,answer,country\n"
)
HARD = "data_idx,question_idx,prompt_question,prompt_option,answer,country\n"


def test_culturalbench_easy(write: Written) -> None:
    path = write("CulturalBench-Easy.csv", EASY + "0,7,Q?,One,Two,Three,Four,C,Spain\n")
    (item,) = sound(list(read_labels(str(path), "quiz")))
    assert item == LabelledItem(
        record="7",
        check="quiz",
        fields={
            "question": "Q?",
            "option_a": "One",
            "option_b": "Two",
            "option_c": "Three",
            "option_d": "Four",
        },
        gold="c",
        slices={"country": "Spain"},
        source="CulturalBench-Easy.csv",
        line=2,
    )


def test_culturalbench_hard(write: Written) -> None:
    rows = "0,7,Q?,One,FALSE,Spain\n1,7,Q?,Two,TRUE,Spain\n2,8,R?,One,False,Peru\n"
    items = sound(list(read_labels(str(write("CulturalBench-Hard.csv", HARD + rows)))))
    assert [(one.record, one.number, one.check, one.gold) for one in items] == [
        ("7", 1, "quiz_hard", "no"),
        ("7", 2, "quiz_hard", "yes"),
        ("8", 1, "quiz_hard", "no"),
    ]
    assert items[1].fields == {"question": "Q?", "option": "Two"}
    assert items[2].slices == {"country": "Peru"}


def test_culturalbench_rows_that_are_broken(write: Written) -> None:
    rows = "0,7,Q?,1,2,3,4,E,Spain\n1,8,,1,2,3,4,A,Spain\n2,9,Q?,1,2,3,4,A,\n3,9,Q?,1,2,3,4,A,\n"
    found = list(read_labels(f"culturalbench:{write('easy.csv', EASY + rows)}"))
    assert faults(found) == [
        (2, "field 'answer' must be one of a, b, c, d, not 'E'"),
        (3, "field 'prompt_question' is empty"),
        (5, "id '9' was already on line 4"),
    ]
    hard = write("hard.csv", HARD + "0,7,Q?,One,maybe,Spain\n1,7,Q?,Two,TRUE,Spain\n")
    bad, good = list(read_labels(f"culturalbench:{hard}"))
    assert faults([bad]) == [(2, "field 'answer' must be one of yes, no, not 'maybe'")]
    assert isinstance(good, LabelledItem)
    assert good.number == 2


def test_culturalbench_as_released(public_data: Path) -> None:
    path = public_data / "culturalbench/CulturalBench-Easy.csv"
    items = sound(list(read_labels(str(path))))
    assert Counter(one.gold for one in items) == {"a": 658, "b": 254, "c": 189, "d": 126}
    assert len({one.slices["country"] for one in items}) == 45
