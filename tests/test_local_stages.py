"""The two stages of a cascade with the real llama.cpp engine as the cheap one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.run.job import Job
from judge.run.running import Report, Watcher
from judge.run.validate import validate
from judge.settings import resolve
from judge.weights import store

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SMALL = "smollm2-135m"


@pytest.mark.slow
@pytest.mark.skipif(store.path(SMALL) is None, reason=f"judge models pull {SMALL} has not been run")
def test_the_strong_stage_needs_no_weights_where_nothing_is_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(source: str | Path, out: str, **more: object) -> Report:
        settings = resolve(
            {
                "model": (f"scripted:{FIXTURES / 'judge.yaml'}",),
                "cheap_model": f"local:{SMALL}",
                # A model at chance must seldom count as sure.
                "cheap_margin": 0.45,
                "check": ("relevance", "abstraction"),
                "rounds": 0,
                "cache": False,
                **more,
            }
        )
        report = validate(Job([str(source)], Path(out), limit=2), settings, Watcher())
        assert report.exit_code == 0, report.fatal
        return report

    whole = run(FIXTURES / "norms.jsonl", "one.jsonl")
    cheap = run(FIXTURES / "norms.jsonl", "cheap.jsonl", stage="cheap")
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("JUDGE_MODELS_DIR", str(tmp_path / "nothing"))
    strong = run("cheap.jsonl", "two.jsonl", stage="strong")

    assert Path("two.jsonl").read_bytes() == Path("one.jsonl").read_bytes()
    lines = [json.loads(line)["judge"] for line in Path("cheap.jsonl").read_text().splitlines()]
    assert any(line["verdict"] == "open" for line in lines)
    assert all(line["models"]["cheap_identity"]["sha256"] for line in lines)
    spec = f"local:{SMALL}"
    asked = whole.traffic[spec]["calls"]
    assert asked == cheap.traffic[spec]["calls"] == 4
    assert strong.traffic[spec]["calls"] == 0
