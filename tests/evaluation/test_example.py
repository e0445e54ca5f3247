"""The benchmark of docs/examples, run as its page says."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import yaml

from judge.configuration import resolve
from judge.evaluation.benchmark import Benchmark, choices_of
from judge.evaluation.evaluating import evaluate
from judge.evaluation.tables import tables_of
from judge.run.job import Job
from judge.run.task import Watcher

from .examinee import rows, value, written

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "benchmark.py"


def loaded() -> Benchmark:
    spec = importlib.util.spec_from_file_location("example_benchmark", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    benchmark: Benchmark = module.benchmark
    return benchmark


def test_the_example_is_short_and_asks_scores_and_makes_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 45
    monkeypatch.chdir(tmp_path)
    known = {"continent": "South America", "options": ["Lima", "Cusco", "Quito"]}
    lines = [
        {"id": "pe", "country": "Peru", "gold": "Lima", **known},
        {"id": "ec", "country": "Ecuador", "gold": "Quito", **known},
    ]
    source = written(tmp_path / "capitals.jsonl", lines)
    replies = [
        {"when": {"contains": "South America", "id": "ec/continent"}, "reply": {"answer": "C"}},
        {"reply": {"answer": "A"}},
    ]
    Path("model.yaml").write_text(yaml.safe_dump({"replies": replies}), "utf-8")
    benchmark = loaded()
    choices = choices_of(benchmark)
    _, results = evaluate(
        Job([source], tmp_path / "out.jsonl"),
        resolve({"model": ("scripted:model.yaml",), "cache": False}),
        Watcher(),
        benchmark=benchmark,
        choices=choices,
    )
    told = map(json.loads, Path("out.jsonl").read_text("utf-8").splitlines())
    scores = {line["id"]: line["judge"]["score"] for line in told}
    assert scores == {"pe/bare": 1.0, "pe/continent": 1.0, "ec/bare": 0.0, "ec/continent": 1.0}
    made = rows(tables_of(benchmark, results), "capitals")
    assert value(made["bare",]["accuracy"]) == 0.5
    assert value(made["continent",]["accuracy"]) == 1.0
