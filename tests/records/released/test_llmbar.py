"""LLMBar."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from judge.records.labels import read_labels

from ..conftest import Written
from ..found import faults, lines, sound

OUTPUTS = {"input": "I", "output_1": "A", "output_2": "B"}


def test_llmbar(write: Written) -> None:
    pairs = [{**OUTPUTS, "label": 1}, {**OUTPUTS, "label": 2}]
    path = write("LLMBar_Adversarial_GPTInst.json", json.dumps(pairs))
    write("LLMBar_Natural.json", json.dumps(pairs[:1]))
    items = sound(list(read_labels(f"llmbar:{path.parent}")))
    assert [(one.slices["part"], one.gold) for one in items] == [
        ("GPTInst", "1"),
        ("GPTInst", "2"),
        ("Natural", "1"),
    ]
    assert items[0].fields == {"instruction": "I", "output_1": "A", "output_2": "B"}
    assert items[2].record == "LLMBar_Natural.json#1"
    assert sound(list(read_labels(str(path)))) == items[:2]


def test_llmbar_in_folders(tmp_path: Path) -> None:
    for part in ("Natural", "Adversarial/Manual"):
        (tmp_path / part).mkdir(parents=True)
        (tmp_path / part / "dataset.json").write_text(json.dumps([{**OUTPUTS, "label": 1}]))
    items = sound(list(read_labels(f"llmbar:{tmp_path}")))
    assert [(one.record, one.slices["part"]) for one in items] == [
        ("Natural/dataset.json#1", "Natural"),
        ("Manual/dataset.json#1", "Manual"),
    ]


def test_llmbar_pairs_that_are_broken(write: Written) -> None:
    text = lines({**OUTPUTS, "label": 3}, {**OUTPUTS}, {**OUTPUTS, "output_2": "", "label": 1})
    assert faults(list(read_labels(f"llmbar:{write('LLMBar_x.json', text)}"))) == [
        (1, "field 'label' must be one of 1, 2, not 3"),
        (2, "field 'label' must be one of 1, 2, not None"),
        (3, "field 'output_2' is empty"),
    ]


def test_llmbar_as_released(public_data: Path) -> None:
    items = sound(list(read_labels(f"llmbar:{public_data / 'llmbar'}")))
    assert Counter(one.slices["part"] for one in items) == {
        "Neighbor": 134,
        "Natural": 100,
        "GPTInst": 92,
        "GPTOut": 47,
        "Manual": 46,
    }
    assert Counter(one.gold for one in items) == {"1": 206, "2": 213}
