"""How the two stages are set up: who is built, who bounds the work, whose profile is in force."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_profiles import GOOD, judge_profile, profile

from judge.errors import UsageError
from judge.records import Item, SeenIds
from judge.run.calibrated import bond_of
from judge.run.job import Job
from judge.run.running import Watcher
from judge.run.setup import Setup
from judge.run.stages import cheap_stage, strong_stage
from judge.run.validate import validate
from judge.settings import Settings, resolve

CHEAP, STRONG = "scripted:cheap.yaml", "scripted:strong.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    unsure = [{"when": {"contains": f"number {n}"}, "p_yes": n / 10} for n in range(1, 10)]
    for name, replies in (("cheap", unsure), ("strong", [{"p_yes": 0.9}])):
        script = {"reading": "probability", "replies": replies}
        Path(f"{name}.yaml").write_text(json.dumps(script))
    records = [{"rule_of_thumb": "Greet.", "story": f"He was number {n}."} for n in range(1, 10)]
    Path("in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path


def settings(**more: Any) -> Settings:
    plain = {"cache": False, "rounds": 0, "check": ("relevance",), "concurrency": 8}
    return resolve({**plain, **more})


def test_a_cascade_that_a_profile_makes_needs_no_cheap_model_in_the_strong_stage() -> None:
    def known(spec: str, **more: Any) -> Any:
        judge = Setup.of(settings(model=(spec,), profile="none")).judge("relevance", spec)
        return judge_profile(bond_of(judge, 1, 0.0), **more)

    made = profile(known(CHEAP, sure_at=0.75), known(STRONG), cascades={"relevance": GOOD})
    Path("p.json").write_text(made.model_dump_json())

    def run(source: str, out: str, **more: Any) -> Any:
        given = settings(profile="p.json", **more)
        return validate(Job([source], Path(out)), given, Watcher())

    run("in.jsonl", "one.jsonl")
    assert run("in.jsonl", "cheap.jsonl", stage="cheap").summary.open == 5
    Path("cheap.yaml").unlink()
    report = run("cheap.jsonl", "two.jsonl", stage="strong")
    assert report.exit_code == 0, report.fatal
    assert Path("two.jsonl").read_bytes() == Path("one.jsonl").read_bytes()
    with pytest.raises(UsageError, match=r"cheap\.yaml"):
        run("in.jsonl", "three.jsonl")


@pytest.mark.parametrize("stage", [cheap_stage, strong_stage])
@pytest.mark.parametrize(("narrow", "idle"), [(CHEAP, strong_stage), (STRONG, cheap_stage)])
def test_a_model_that_is_hardly_asked_does_not_bound_the_work(
    stage: Callable[..., Any], narrow: str, idle: Callable[..., Any]
) -> None:
    item = Item("in", 1, {"rule_of_thumb": "Greet.", "story": "He greets."})
    with SeenIds() as ids:
        work = stage(settings(model=(STRONG,), cheap_model=CHEAP), ids, iter([item]))
        work.setup.client(narrow).backend.slots = 1
        assert work.setup.slots == (8 if stage is idle else 1)
        assert list(work.items()) == [item], "what was read ahead is not lost"


def test_the_cheap_model_of_a_strong_one_by_the_same_name_has_to_be_here() -> None:
    # What is a strong model, too, is asked; knowing it is not enough.
    given = {"model": (CHEAP,), "cheap_model": CHEAP}
    validate(Job(["in.jsonl"], Path("c.jsonl")), settings(stage="cheap", **given), Watcher())
    Path("cheap.yaml").unlink()
    with pytest.raises(UsageError, match="No such file"):
        validate(Job(["c.jsonl"], Path("o.jsonl")), settings(stage="strong", **given), Watcher())
