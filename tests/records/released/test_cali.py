"""CALI."""

from __future__ import annotations

from judge.records.labelled import Annotation
from judge.records.labels import read_labels

from ..conftest import Written
from ..found import faults, sound

CALI = "premise\thypothesis\tus_ratings\tin_ratings\n"


def test_cali(write: Written) -> None:
    row = "He said \"hi.\t\"Hi\" was said.\t['E', 'N', 'C', 'E']\t['N', 'n']\n"
    (item,) = sound(list(read_labels(str(write("data.tsv", CALI + row)))))
    assert item.fields == {"premise": 'He said "hi.', "hypothesis": '"Hi" was said.'}
    assert item.record == "data.tsv#2"
    assert item.check == "entailment"
    assert item.gold is None
    assert item.annotations == (
        Annotation("us-1", "entailment", "us"),
        Annotation("us-2", "neutral", "us"),
        Annotation("us-3", "contradiction", "us"),
        Annotation("us-4", "entailment", "us"),
        Annotation("in-1", "neutral", "in"),
        Annotation("in-2", "neutral", "in"),
    )


def test_cali_rows_that_are_broken(write: Written) -> None:
    text = CALI + "p\th\t['X']\t[]\np\th\tE,N\t[]\np\t\t['E']\t[]\np\th\t[]\t[]\np\th\t[\n"
    found = list(read_labels(f"cali:{write('data.tsv', text)}"))
    known = "entailment, neutral, contradiction"
    assert faults(found) == [
        (2, f"field 'us_ratings' must be one of {known}, not 'X'"),
        (3, "field 'us_ratings' must be a list, not 'E,N'"),
        (4, "field 'hypothesis' is empty"),
        (5, "fields 'us_ratings' and 'in_ratings' are both empty"),
        (6, "the row has 3 cells, the header 4"),
    ]
    short = write("b.csv", "premise,hypothesis,us_ratings\np,h,['E']\n")
    assert faults(list(read_labels(f"cali:{short}"))) == [(2, "field 'in_ratings' is missing")]
