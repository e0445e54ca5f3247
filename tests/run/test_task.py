"""A run that an error of ours ends: what is kept for the next one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import Exit
from judge.judging.client import Client
from judge.run import task
from judge.run.job import Job
from judge.run.setup import Setup
from judge.run.summary import Summary
from judge.run.task import Watcher
from judge.run.validate import validate
from judge.settings import Settings, resolve


class Stumbling(Watcher):
    def wrote(self, summary: Summary, setup: Setup) -> None:
        raise ValueError("stumbled")


@pytest.mark.parametrize("stumbles", [True, False])
def test_what_lies_at_a_provider_is_forgotten_only_by_a_run_that_came_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stumbles: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("yes.yaml").write_text("reading: probability\nreplies: [{p_yes: 0.9}]")
    Path("in.jsonl").write_text('{"rule_of_thumb": "Greet.", "story": "He greets."}\n')
    told: list[bool] = []

    def left(settings: Settings, clients: Iterable[Client], *, finished: bool) -> int:
        told.append(finished)
        return 0

    monkeypatch.setattr(task, "left_at_provider", left)
    given = resolve({"model": ("scripted:yes.yaml",), "check": ("relevance",), "cache": False})
    job = Job(["in.jsonl"], Path("out"))
    if stumbles:
        with pytest.raises(ValueError, match="stumbled"):
            validate(job, given, Stumbling())
    else:
        validate(job, given, Watcher())
    assert told == [not stumbles]


class Deleting(Watcher):
    """Takes the review away once something stands in it."""

    def wrote(self, summary: Summary, setup: Setup) -> None:
        if summary.records == 1:
            Path("review").unlink()


def test_a_review_that_is_deleted_under_the_run_ends_it_and_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(task, "TICK_SECONDS", 0.0)
    Path("unsure.yaml").write_text("reading: probability\nreplies: [{p_yes: 0.55}]")
    norm = '{"rule_of_thumb": "Greet.", "story": "He greets %d."}\n'
    Path("in.jsonl").write_text("".join(norm % number for number in range(20)))
    flags = {"check": ("relevance",), "margin": 0.2, "cache": False, "concurrency": 1}
    given = resolve({"model": ("scripted:unsure.yaml",), **flags})
    job = Job(["in.jsonl"], Path("out"), review=Path("review"))
    report = validate(job, given, Deleting())
    assert report.exit_code == Exit.UNAVAILABLE
    assert "review was deleted or moved away" in str(report.fatal)
    again = validate(replace(job, resume=True), given, Watcher())
    assert again.exit_code == 0
    assert Path("review").read_bytes() == Path("out").read_bytes()
    assert len(Path("review").read_bytes().splitlines()) == 20
