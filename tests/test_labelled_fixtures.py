"""The labelled fixtures: a set for every judging rubric, enough of each class, in our own form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from judge.calibration.labels import subject_of
from judge.records import Item
from judge.records.labels import LabelledItem, read_labels
from judge.rubric import builtin

FOLDER = Path(__file__).parents[1] / "fixtures" / "labelled"
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
