"""The fixtures keep what their README promises, and the workflows find every planted fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.configuration import resolve
from judge.run.job import Job
from judge.run.task import Watcher
from judge.run.validate import validate

FIXTURES = Path(__file__).parents[2] / "fixtures"
Row = dict[str, Any]

FOUND_BY = {
    "missing_value": "incorporation",
    "contradiction": "consistency",
    "explicit": "implicitness",
    "too_short": "length",
    "leak": "leakage",
    "irrelevant": "relevance",
    "neutral_relevant": "relevance",
    "wrong_label": "label_correctness",
    "bad_abstraction": "abstraction",
    "underived": "derivation",
}
BESIDES = {
    ("norm-24", "value_derivation"),
    *((id, "label_correctness") for id in ("norm-06", "norm-15", "norm-16")),
}
"""Checks that fail beside the planted fault's own: by the labels' own word, and because a story
that is not about the rule neither follows nor breaks it."""


def rows(name: str) -> list[Row]:
    lines = (FIXTURES / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Every fixture record as it comes out, by id."""
    folder = tmp_path_factory.mktemp("judged")
    out: dict[str, Row] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, rubrics in (("stories", ("leakage",)), ("norms", ())):
            model = f"scripted:{FIXTURES / 'judge.yaml'}"
            given = {"model": (model,), "rubric": rubrics, "cache": False, "repair": True}
            settings = resolve(given)
            path = folder / f"{name}.jsonl"
            report = validate(Job([str(FIXTURES / f"{name}.jsonl")], path), settings, Watcher())
            assert report.exit_code == 0
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                out[row["id"]] = row
    return out


def failed(judgement: Row) -> set[str]:
    """The checks that failed at any time."""
    return {c["check"] for c in judgement["checks"] if c["verdict"] == "fail"}


PAIRS = [
    (record, label)
    for name in ("stories", "norms")
    for record, label in zip(rows(f"{name}.jsonl"), rows(f"{name}.labels.jsonl"), strict=True)
]


@pytest.mark.parametrize(("record", "label"), PAIRS, ids=[label["id"] for _, label in PAIRS])
def test_a_planted_fault_is_found(judged: dict[str, Row], record: Row, label: Row) -> None:
    row = judged[record["id"]]
    judgement, fault, repair = row["judge"], label["fault"], label["repair"]
    besides = {check for id, check in BESIDES if id == record["id"]}
    assert failed(judgement) == ({FOUND_BY[fault]} if fault else set()) | besides
    assert judgement["verdict"] == ("pass" if repair or not fault else "fail")
    assert {key: row[key] for key in record if key != "story"} == {
        key: record[key] for key in record if key != "story"
    }
    if not repair:
        assert row["story"] == record["story"] and judgement["edits"] == []
        assert "original" not in judgement
        return
    assert row["story"] == repaired(record, repair)
    assert judgement["original"] == {"story": record["story"]}
    assert judgement["original_verdict"] == "fail"
    last = [c["verdict"] for c in judgement["checks"] if c["check"] == FOUND_BY[fault]][-1]
    assert last == "pass"


def repaired(record: Row, repair: Row) -> str:
    """The story as the sidecar says that a good rewriter would leave it."""
    if "story" in repair:
        return str(repair["story"])
    story = str(record["story"])
    for part in repair.get("rewrites", []):
        story = story.replace(part["before"], part["after"])
    for part in repair.get("insertions", []):
        at = story.index(part["anchor"]) + len(part["anchor"])
        closes = story[at : at + 1] in ("", "\n")
        story = f"{story[:at]}{chr(10) * 2 if closes else ' '}{part['text']}{story[at:]}"
    return story
