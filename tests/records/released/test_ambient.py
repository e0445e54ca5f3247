"""AmbiEnt, its three files together and one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.records.labels import read_labels

from ..conftest import Written
from ..found import answers, faults, lines, sound

PAIR = {"premise": "P", "hypothesis": "H"}


def linguists(id: object, workers: list[str], given: list[str], **more: str) -> dict[str, Any]:
    return {"id": id, **PAIR, "worker_ids": workers, "annotations": given, **more}


@pytest.fixture
def ambient(write: Written) -> Path:
    """A folder with the three files, which share pairs."""
    write(
        "linguist_annotations.jsonl",
        lines(
            linguists(4, ["ABS", "GFH"], ["neutral|entailment", "discard"]),
            linguists(5, ["BVU", "GFH", "GFH"], ["entailment", "neutral", "entailment"]),
        ),
    )
    crowd = {"id": 4, **PAIR, "q0_gold": ["neutral", "entailment"], "q1_gold": ["neutral"] * 2}
    other = {**crowd, "id": "5", "premise": "P, otherwise"}
    write("crowdworker_annotations.jsonl", lines(crowd, crowd, other))
    path = write(
        "test.jsonl",
        lines(
            {"id": 4, **PAIR, "premise_ambiguous": True, "labels": "neutral, entailment"},
            {"id": "9_c", **PAIR, "premise_ambiguous": False, "labels": "contradiction"},
        ),
    )
    return path.parent


def test_ambient(ambient: Path) -> None:
    items = {one.record: one for one in sound(list(read_labels(f"ambient:{ambient}")))}
    assert list(items) == ["4", "9_c", "5", "5@crowdworker_annotations.jsonl"]
    assert {one.check for one in items.values()} == {"entailment"}
    shared = items["4"]
    assert shared.gold is None
    assert shared.slices == {"labels": "entailment|neutral"}
    assert answers(shared) == {
        "ABS": "entailment|neutral",
        "GFH": "discard",
        "crowd-1": "neutral",
        "crowd-2": "entailment",
        "crowd-1 (2)": "neutral",
        "crowd-2 (2)": "entailment",
    }
    assert Counter(one.group for one in shared.annotations) == {"linguist": 2, "crowd": 4}
    assert items["9_c"].gold == "contradiction"
    assert answers(items["5"]) == {"BVU": "entailment", "GFH": "neutral", "GFH (2)": "entailment"}
    assert items["5@crowdworker_annotations.jsonl"].fields["premise"] == "P, otherwise"


def test_ambient_file_by_file(ambient: Path) -> None:
    (first, last) = sound(list(read_labels(str(ambient / "test.jsonl"))))
    assert (first.gold, last.gold) == (None, "contradiction")
    crowd = sound(list(read_labels(str(ambient / "crowdworker_annotations.jsonl"))))
    assert [(one.record, len(one.annotations)) for one in crowd] == [("4", 4), ("5", 2)]
    linguist = sound(list(read_labels(str(ambient / "linguist_annotations.jsonl"))))
    assert [one.record for one in linguist] == ["4", "5"]


def test_a_linguist_without_a_name_is_kept(write: Written) -> None:
    line = {**linguists(4, ["ABS"], ["neutral", "entailment"]), "worker_ids": ["ABS", None]}
    (item,) = sound(list(read_labels(str(write("a.jsonl", lines(line))))))
    assert answers(item) == {"ABS": "neutral", "linguist-2": "entailment"}


def test_ambient_lines_that_are_broken(write: Written) -> None:
    gold = {"id": 1, **PAIR, "labels": "neutral"}
    text = lines(
        gold,
        gold,
        {"id": 2, **PAIR},
        {"id": 3, "premise": "P", "labels": "neutral"},
        {"id": 4, **PAIR, "labels": "maybe"},
        {"id": 5, **PAIR, "labels": None},
        linguists(6, ["A"], ["neutral", "neutral"]),
        {"id": 7, **PAIR, "q0_gold": ["yes"]},
        {"id": [], **PAIR, "labels": "neutral"},
    )
    found = list(read_labels(f"ambient:{write('a.jsonl', text)}"))
    known = "entailment, neutral, contradiction"
    assert faults(found) == [
        (2, "id '1' was already on line 1"),
        (3, "there is no field 'q0_gold', 'annotations' or 'labels'"),
        (4, "field 'hypothesis' is missing"),
        (5, f"field 'labels' must be one of {known}, not 'maybe'"),
        (6, "field 'labels' holds null for a label"),
        (7, "field 'annotations' has 2 answers of 1 workers"),
        (8, f"field 'q0_gold' must be one of {known}, not 'yes'"),
        (9, "field 'id' must be a text or a number, not a list"),
    ]
    assert len(found) == 9


def test_ambient_as_released(public_data: Path) -> None:
    items = sound(list(read_labels(f"ambient:{public_data / 'ambient'}", "entailment")))
    assert len(items) == 2166
    given = [one for item in items for one in item.annotations]
    assert Counter(one.group for one in given) == {"linguist": 4090, "crowd": 4878}
    golds = Counter(one.gold for one in items if one.gold is not None)
    assert golds == {"neutral": 642, "entailment": 216, "contradiction": 144}
    assert sum("labels" in one.slices for one in items) == 1545
    counts = Counter(one.answer for one in given if one.group == "linguist")
    assert counts["entailment|neutral"] == 686
    assert sum("@" in one.record for one in items) == 2
    twice = [one for one in items if len(one.annotations) >= 18]
    assert {one.record for one in twice} == {"38708", "57249"}
