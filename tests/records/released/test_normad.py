"""NormAd, with and without the workers' answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from judge.records.labels import read_labels

from ..conftest import Written
from ..found import Found, answers, faults, sound

NORMAD = "ID,Country,Background,Axis,Subaxis,Value,Rule-of-Thumb,Story,Explanation,Gold Label"


def normad(write: Written, header: str, *rows: str, name: str = "normad.csv") -> Found:
    path = write(name, "\n".join((header, *rows)) + "\n")
    return list(read_labels(f"normad:{path}"))


def test_normad(write: Written) -> None:
    write("iw_clusters.csv", "country,cluster\nnew_zealand,English Speaking\n")
    row = "7,New Zealand,Background,Etiquette,eating,Respect,One waits.,Ann waited.,Because,Yes"
    items = sound(normad(write, NORMAD, row))
    assert [(one.check, one.gold) for one in items] == [
        ("label_correctness", "yes"),
        ("relevance", "yes"),
        ("adherence", "yes"),
    ]
    assert all(one.record == "7" for one in items)
    assert items[0].fields == {
        "rule_of_thumb": "One waits.",
        "story": "Ann waited.",
        "country": "New Zealand",
        "background": "Background",
        "value": "Respect",
    }
    assert items[0].slices == {
        "country": "New Zealand",
        "cluster": "English Speaking",
        "subcategory": "eating",
        "label": "yes",
    }


def test_normad_in_short_and_neutral(write: Written) -> None:
    path = write("a.csv", "ID,Country,Rule-of-Thumb,Story,Gold Label\n7,iran,R,S,neutral\n")
    items = sound(list(read_labels(str(path))))
    assert [(one.check, one.gold) for one in items] == [
        ("label_correctness", "neutral"),
        ("relevance", "no"),
    ]
    assert items[0].slices == {"country": "iran", "label": "neutral"}


SHORT = "ID,Country,Rule-of-Thumb,Story,Gold Label"


def test_normad_with_a_column_a_worker(write: Written) -> None:
    header = f"{SHORT},subtask1_w1,Subtask1_w2,value_rot_w1,q3_w9,relevance_w1,q5_w1,q5_w2,q5_w3"
    items = sound(normad(write, header, "7,iran,R,S,no,Yes,No,unsure,,yes,Yes,No,Unsure"))
    found = {one.check: (one.gold, answers(one)) for one in items}
    assert found == {
        "label_correctness": ("no", {"w1": "no", "w2": "not no", "w3": "unsure"}),
        "relevance": ("yes", {"w1": "yes"}),
        "adherence": ("no", {}),
        "derivation": (None, {"w1": "yes", "w2": "no"}),
        "abstraction": (None, {"w1": "unsure"}),
    }


def test_normad_with_lists_of_answers(write: Written) -> None:
    header = f"{SHORT},q1,q2,acceptability"
    row = """7,iran,R,S,yes,"['Yes', 'No', None]","{""A"": ""no""}","[""neutral"", ""yes""]\""""
    items = sound(normad(write, header, row))
    found = {one.check: answers(one) for one in items if one.annotations}
    assert found == {
        "derivation": {"1": "yes", "2": "no"},
        "abstraction": {"A": "no"},
        "label_correctness": {"1": "neutral", "2": "yes"},
    }


def test_normad_rows_that_are_broken(write: Written) -> None:
    found = normad(
        write,
        f"{SHORT},q1,q5_1,acceptability",
        "1,iran,R,S,yes,,,",
        "2,iran,R,S,maybe,,,",
        "3,iran,R,S,,,,",
        "4,iran,,S,yes,,,",
        "5,iran,R,S,yes,Yes,,",
        '6,iran,R,S,yes,"[""perhaps""]",,',
        '7,iran,R,S,yes,,Yes,"[""no""]"',
        "1,iran,R,S,yes,,,",
        "8,iran,R",
    )
    assert faults(found) == [
        (3, "field 'Gold Label' must be yes, no or neutral, not 'maybe'"),
        (4, "field 'Gold Label' must be yes, no or neutral, not empty"),
        (5, "field 'Rule-of-Thumb' is empty"),
        (6, "field 'q1' must hold a list of the workers' answers"),
        (7, "field 'q1' must be one of yes, no, unsure, not 'perhaps'"),
        (8, "worker '1' answered label_correctness twice"),
        (9, "id '1' was already on line 2"),
        (10, "the row has 3 cells, the header 8"),
    ]
    assert len(found) == 3 + 8


def test_normad_as_released(public_data: Path) -> None:
    items = sound(list(read_labels(str(public_data / "normad/normad_odd_rows.csv"))))
    counts = Counter((one.check, one.gold) for one in items)
    assert counts == {
        ("label_correctness", "yes"): 474,
        ("label_correctness", "no"): 435,
        ("label_correctness", "neutral"): 408,
        ("relevance", "yes"): 909,
        ("relevance", "no"): 408,
        ("adherence", "yes"): 474,
        ("adherence", "no"): 435,
    }
    assert all("cluster" in one.slices for one in items)
    assert len({one.slices["cluster"] for one in items}) == 8
    full = sound(list(read_labels(f"normad:{public_data / 'normad/normad_4_rows.csv'}")))
    assert len(full) == 10
    assert all(one.fields["background"] and one.fields["value"] for one in full)
