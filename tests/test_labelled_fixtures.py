"""The labelled fixtures: a set for every judging rubric, enough of each class, in our own form."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from workflow_rubrics import JUDGING

from judge.calibration.observe import record_for
from judge.questions.ready_made import builtin
from judge.records import Record
from judge.records.labels import LabelledItem, read_labels

FOLDER = Path(__file__).parents[1] / "fixtures" / "labelled"


def items() -> list[LabelledItem]:
    found = [item for path in sorted(FOLDER.glob("*.jsonl")) for item in read_labels(str(path))]
    assert not [item for item in found if isinstance(item, Record)]
    return [item for item in found if isinstance(item, LabelledItem)]


ITEMS = items()


@pytest.mark.parametrize("check", sorted(JUDGING))
def test_every_judging_rubric_has_sixty_items_of_all_classes(check: str) -> None:
    counts = Counter(item.reference for item in ITEMS if item.check == check)
    assert sum(counts.values()) >= 60
    assert set(counts) == set(builtin()[check].answers)
    assert min(counts.values()) >= 0.25 * sum(counts.values())


@pytest.mark.parametrize("check", sorted(JUDGING))
def test_every_item_can_be_put_to_its_judge(check: str) -> None:
    rubric = builtin()[check]
    wrong = [
        found
        for item in ITEMS
        if item.check == check and (found := record_for(item, rubric).problem)
    ]
    assert wrong == []


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def test_passages_are_labelled_alike_for_each_value_and_keep_off_the_stories_statements() -> None:
    passages, counts = lines("passages.jsonl"), defaultdict[str, Counter[str]](Counter)
    seen: dict[str, str] = {}
    for row in passages:
        assert row["value"] == f"{row['statement']}--{row['attitude']}"
        if seen.setdefault(row["story"], row["value"]) == row["value"]:
            counts[row["value"]][row["labels"]["passage"]] += 1
    assert len({row["id"] for row in passages}) == len(passages) and len(seen) >= 360
    per_value = {"for": 2, "against": 2, "states": 1, "neither": 1}
    assert all(dict(found) == per_value for found in counts.values())
    asked = {
        value.split("--")[0].lower() for row in lines("stories.jsonl") for value in row["values"]
    }
    taught = lines("../taught/passages.jsonl")
    assert not asked & {row["statement"].lower() for row in (*passages, *taught)}
    assert len({row["statement"].lower() for row in taught}) == len(taught)
    shares = Counter(row["labels"]["passage"] for row in passages)
    told = ", ".join(f"{shares[label]} {label}" for label in per_value)
    readme = (FOLDER.parent / "README.md").read_text("utf-8")
    assert f"| `passages.jsonl` | {len(passages)} | passage: {told} |" in readme
