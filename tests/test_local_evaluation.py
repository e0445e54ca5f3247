"""`judge evaluate` on the real llama.cpp engine, with the small model that a package ships."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluation.eecc_folder import write_folder

from judge.evaluation.benchmark import choices_of, load_benchmark
from judge.evaluation.evaluating import Evaluated, evaluate, tables_of
from judge.run.job import Job
from judge.run.task import Watcher
from judge.settings import resolve
from judge.weights import store

ROOT = Path(__file__).resolve().parents[1]
SMALL = "smollm2-135m"
MODEL = f"local:{SMALL}"

pytestmark = pytest.mark.skipif(
    store.path(SMALL) is None, reason=f"judge models pull {SMALL} has not been run"
)


def run(
    tmp_path: Path, name: str, sources: Sequence[Path], conditions: Sequence[str], **flags: Any
) -> tuple[Evaluated, list[dict[str, Any]]]:
    out, limit = tmp_path / f"{name}.jsonl", flags.pop("limit", None)
    draws = flags.pop("draws", None)
    settings = resolve({"model": (MODEL,), "cache_dir": tmp_path / "cache", **flags})
    benchmark = load_benchmark(name)
    found = evaluate(
        Job([str(source) for source in sources], out, limit=limit, overwrite=True),
        settings,
        Watcher(),
        benchmark=benchmark,
        choices=choices_of(benchmark, conditions, settings.seed, draws),
    )
    return found, [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_norms_are_answered_by_the_first_token_and_the_same_again_from_the_cache(
    tmp_path: Path,
) -> None:
    asked = (tmp_path, "normad", [ROOT / "fixtures" / "norms.jsonl"], ("none", "rule-of-thumb"))
    first, lines = run(*asked, limit=2)
    again, same = run(*asked, limit=2)
    assert lines == same
    assert [line["row"] for line in lines] == ["norm-01", "norm-01", "norm-02", "norm-02"]
    for line in lines:
        chances = line["judge"]["probabilities"]
        assert line["judge"]["answer"] == max(chances, key=chances.__getitem__)
        assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
    assert first.report.traffic[MODEL]["calls"] == 4
    assert again.report.traffic[MODEL]["calls"] == 0
    benchmark = load_benchmark("normad")
    assert tables_of(benchmark, first.results, choices_of(benchmark))


def test_a_typed_reply_is_one_of_the_options(tmp_path: Path) -> None:
    norms = [ROOT / "fixtures" / "norms.jsonl"]
    _, lines = run(tmp_path, "normad", norms, ("none",), limit=1, reading="structured")
    assert lines[0]["judge"]["outcome"] == "answered"
    assert lines[0]["judge"]["answer"] in ("yes", "no", "neutral")


def test_two_draws_of_a_text_are_two_texts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "eecc")
    _, lines = run(tmp_path, "eecc", [folder], ("qa",), limit=1, draws=2)
    texts = [line["judge"]["answer"] for line in lines[:2]]
    assert all(texts)
    assert texts[0] != texts[1]
