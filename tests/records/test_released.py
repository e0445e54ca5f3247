"""The forms in which the papers' data sets are released."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.records import (
    NormRecord,
    Problem,
    Record,
    SeenIds,
    StoryRecord,
    build,
    read,
)

from .conftest import ReadBack


def norms(path: Path) -> list[NormRecord]:
    with SeenIds() as ids:
        built = [build(item, None, ids) for item in read(path)]
    assert all(isinstance(record, Record) for record in built)
    return [
        record.data
        for record in built
        if isinstance(record, Record) and isinstance(record.data, NormRecord)
    ]


def test_normad_as_released(public_data: Path) -> None:
    found = norms(public_data / "normad" / "normad_4_rows.csv")
    assert [norm.id for norm in found] == ["9", "1533", "2371", "2373"]
    assert [norm.label for norm in found] == ["yes", "no", "neutral", "neutral"]
    assert [norm.subcategory for norm in found][:2] == ["gift_giving", "eating"]
    assert found[0].axis == "Etiquette"
    assert found[0].background is not None
    assert found[0].background.startswith("### Gift Giving\n- Gifts are")
    assert all(norm.value and norm.explanation for norm in found)


@pytest.mark.parametrize("name", ["ambient/test.jsonl", "llmbar/LLMBar_Natural.json"])
def test_other_public_files_are_read_and_not_taken_for_ours(public_data: Path, name: str) -> None:
    found = list(read(public_data / name))
    assert len(found) >= 100
    assert all(item.problem is None for item in found)
    assert all(isinstance(build(item), Problem) for item in found)


CQ_STORIES = [
    {
        "original_values": "Jobs: men first--disagree\nGod matters--important\nWork--agree",
        "values": "Jobs: men first--disagree\nGod matters--important",
        "story": "Ann, Bo, Cy and Di talk.",
        "contradiction": {"God matters--important": ["Bo"]},
    },
    {
        "original_values": "Ann:Jobs: men first--disagree\nBo:God matters--important",
        "values": "Ann:Jobs: men first--disagree\nBo:God matters--important",
        "story": "Ann, Bo, Cy and Di talk.",
        "contradiction": None,
    },
]


def test_cqbench_stories(items: ReadBack) -> None:
    found = items("stories.json", json.dumps(CQ_STORIES, indent=4))
    records = [record for item in found if isinstance(record := build(item), Record)]
    assert [record.kind for record in records] == ["story", "story"]
    parsed = [
        [(value.character, value.statement, value.attitude) for value in record.data.values]
        for record in records
        if isinstance(record.data, StoryRecord)
    ]
    assert parsed == [
        [(None, "Jobs: men first", "disagree"), (None, "God matters", "important")],
        [("Ann", "Jobs: men first", "disagree"), ("Bo", "God matters", "important")],
    ]
    assert [record.with_changes({}) for record in records] == CQ_STORIES
    assert [record.id for record in records] == ["#2", "#12"]
