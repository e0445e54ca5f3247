"""The labelled fixtures: a set for every judging rubric, enough of each class, in our own form."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from judge.calibration.labels import subject_of
from judge.records import Item
from judge.records.labels import LabelledItem, read_labels
from judge.rubric import builtin

FOLDER = Path(__file__).parents[1] / "fixtures" / "labelled"
README = FOLDER.parent / "README.md"
JUDGING = sorted(name for name, rubric in builtin().items() if rubric.role == "judge")


def items() -> list[LabelledItem]:
    found = [item for path in sorted(FOLDER.glob("*.jsonl")) for item in read_labels(str(path))]
    assert not [item for item in found if isinstance(item, Item)]
    return [item for item in found if isinstance(item, LabelledItem)]


ITEMS = items()


@pytest.mark.parametrize("check", JUDGING)
def test_every_judging_rubric_has_sixty_items_of_all_classes(check: str) -> None:
    counts = Counter(item.reference for item in ITEMS if item.check == check)
    assert sum(counts.values()) >= 60
    assert set(counts) == set(builtin()[check].answers)
    assert min(counts.values()) >= 0.25 * sum(counts.values())


@pytest.mark.parametrize("check", JUDGING)
def test_every_item_can_be_put_to_its_judge(check: str) -> None:
    rubric = builtin()[check]
    wrong = [
        found
        for item in ITEMS
        if item.check == check and isinstance(found := subject_of(item, rubric), str)
    ]
    assert wrong == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_nobody_but_the_authors_is_said_to_have_labelled(path: Path) -> None:
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        assert record["author"] == "the project's authors"
        assert not any(isinstance(answers, dict) for answers in record["labels"].values())


def test_the_readme_counts_them() -> None:
    text = README.read_text("utf-8").partition("## Labelled sets")[2]
    for path in sorted(FOLDER.glob("*.jsonl")):
        row = next(line for line in text.splitlines() if line.startswith(f"| `{path.name}`"))
        assert int(row.split("|")[2]) == len(path.read_text("utf-8").splitlines())
        for check, told in re.findall(r"([a-z_]+): ((?:\d+ [a-z]+(?:, )?)+)", row):
            counts = Counter(
                item.reference for item in ITEMS if item.check == check and item.source == path.name
            )
            said = {answer: int(count) for count, answer in re.findall(r"(\d+) ([a-z]+)", told)}
            if "of" not in said and "times" not in said:
                assert said == dict(counts), check
