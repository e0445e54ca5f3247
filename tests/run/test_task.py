"""A run and its files: what is kept after an error, when it reaches the disk, what is written."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from judge.configuration import resolve
from judge.errors import Exit
from judge.run import run
from judge.run.job import Job
from judge.run.task import Progress, Watcher
from judge.run.validate import validate
from judge.settings import Settings


class Deleting(Watcher):
    """Deletes the review once it has content."""

    def wrote(self, progress: Progress) -> None:
        if progress.summary.records == 1 and Path("review").exists():
            Path("review").unlink()


def twenty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a run over in.jsonl, twenty norms that the judge is not sure of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "TICK_SECONDS", 0.0)
    Path("unsure.yaml").write_text("method: logprobs\nreplies: [{p_yes: 0.55}]")
    norm = '{"rule_of_thumb": "Greet.", "story": "He greets %d."}\n'
    Path("in.jsonl").write_text("".join(norm % number for number in range(20)))
    flags = {"check": ("relevance",), "abstain_margin": 0.2, "cache": False, "concurrency": 1}
    return resolve({"model": ("scripted:unsure.yaml",), **flags})


def test_a_review_that_is_deleted_under_the_run_ends_it_and_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = twenty(tmp_path, monkeypatch)
    job = Job(["in.jsonl"], Path("out"), review=Path("review"))
    report = validate(job, given, Deleting())
    assert report.exit_code == Exit.UNAVAILABLE
    assert "review was deleted or replaced" in str(report.fatal)
    again = validate(replace(job, resume=True), given, Watcher())
    assert again.exit_code == 0
    assert Path("review").read_bytes() == Path("out").read_bytes()
    assert len(Path("review").read_bytes().splitlines()) == 20


def test_the_review_holds_unreadable_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = twenty(tmp_path, monkeypatch)
    Path("unsure.yaml").write_text("replies: [{text: no JSON}]")
    report = validate(Job(["in.jsonl"], Path("out"), review=Path("review")), given, Watcher())
    assert report.exit_code == Exit.INCOMPLETE
    assert report.summary.verdicts["unreadable"] == 20
    assert Path("review").read_bytes() == Path("out").read_bytes()


def test_a_run_without_a_line_leaves_the_file_of_its_review_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = twenty(tmp_path, monkeypatch)
    Path("unsure.yaml").write_text("method: logprobs\nreplies: [{error: denied}]")
    Path("review").write_text('{"torn')
    report = validate(Job(["in.jsonl"], review=Path("review"), overwrite=True), given, Watcher())
    assert report.exit_code == Exit.UNAVAILABLE and "denied" in str(report.fatal)
    assert Path("review").read_text() == '{"torn'


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_out_and_its_folder_reach_the_disk_at_intervals_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    given, synced = twenty(tmp_path, monkeypatch), []
    monkeypatch.setattr(run, "SYNC_SECONDS", seconds)
    monkeypatch.setattr("os.fsync", lambda file: synced.append(os.fstat(file).st_ino))
    assert validate(Job(["in.jsonl"], Path("out")), given, Watcher()).exit_code == 0
    out, folder = Path("out").stat().st_ino, tmp_path.stat().st_ino
    # A thread that was still at an interval's sync may come between the last two.
    assert folder in synced[len(synced) - synced[::-1].index(out) :]
    assert (synced.count(out) > 1) is (seconds == 0.0)


def test_nothing_of_a_record_is_lost_or_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = twenty(tmp_path, monkeypatch)
    odd = ["{{ 7*7 }} {% raw %}", "\u202e\u200b\u2066", "a\0b", "\ud800", "=1+1", "\x1b[2J"]
    norms = [json.loads(line) for line in Path("in.jsonl").read_text().splitlines()]
    records = [{**one, "note": note, note: 1} for one, note in zip(norms, odd, strict=False)]
    Path("in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    assert validate(Job(["in.jsonl"], Path("out")), given, Watcher()).exit_code == 0
    found = [json.loads(line) for line in Path("out").read_bytes().splitlines()]
    assert all(one.pop("judge")["verdict"] == "abstain" for one in found)
    assert found == records
