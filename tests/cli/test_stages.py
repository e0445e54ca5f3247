"""A cascade cut in two: the cheap stage, then the strong one, and the bytes of one go."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.records import Item
from judge.run import stages
from judge.run.job import Job

from .conftest import COMMAND, FIXTURES, Shell, jsonl, lines, norm
from .typed import Typed

MODELS = ("--cheap-model", "scripted:cheap.yaml", "-m", "scripted:judge.yaml")
FAULT = "Honestly, I haven't bought a ticket in two years."
"""Words of story-05 that contradict its second value; the fixtures' rewriter takes them out."""

SURE = ("norm-01", "norm-02", "norm-04", "story-01", "story-05")
CHEAP: list[dict[str, Any]] = [
    {"when": {"rubric": "consistency", "contains": FAULT}, "p_yes": 0.95},
    {"when": {"rubric": "derivation", "id": "norm-02"}, "p_yes": 0.6},
    {"when": {"rubric": "leakage", "id": "norm-04"}, "error": "bad-request"},
    *({"when": {"rubric": "leakage", "id": id}, "p_yes": 0.04} for id in SURE),
    *({"when": {"rubric": "consistency", "id": id}, "p_yes": 0.04} for id in SURE),
    *({"when": {"rubric": "implicitness", "id": id}, "p_yes": 0.04} for id in SURE),
    *({"when": {"id": id}, "p_yes": 0.95} for id in SURE),
    {"when": {"id": "story-04"}, "finish_reason": "refusal", "p_yes": 0.5},
    {"p_yes": 0.5},
]
"""Sure of a few records; of story-05 sure that a value is contradicted, of no other sure at all."""


def write(folder: Path, name: str, replies: list[dict[str, Any]]) -> None:
    (folder / name).write_text(json.dumps({"reading": "probability", "replies": replies}))


def records(*ids: str) -> list[dict[str, Any]]:
    read = [
        json.loads(line)
        for name in ("norms.jsonl", "stories.jsonl")
        for line in (FIXTURES / name).read_text("utf-8").splitlines()
    ]
    return [record for record in read if record["id"] in ids]


RECORDS = records(*SURE, "norm-03", "norm-06", "story-03", "story-04")


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    """In a folder with the fixtures' script, a cheap one, and a few of the fixtures' records."""
    typed = Typed(tmp_path, monkeypatch, capfd)
    (tmp_path / "judge.yaml").write_bytes((FIXTURES / "judge.yaml").read_bytes())
    write(tmp_path, "cheap.yaml", CHEAP)
    typed.write("in.jsonl", RECORDS)
    return typed


def run(typed: Typed, source: str, out: str, *more: str, code: int = 0) -> dict[str, Any]:
    """The summary of a run that ends with this code and takes nothing from a cache."""
    flags = (*MODELS, "--no-cache", "--summary", "sums.json")
    done = typed("validate", source, *flags, "-o", out, *more)
    assert done.returncode == code, done.stderr.decode()
    told: dict[str, Any] = json.loads((typed.folder / "sums.json").read_text())
    return told


def calls(sums: dict[str, Any], name: str) -> int:
    return int(sums["models"][f"scripted:{name}.yaml"]["calls"])


def read(typed: Typed, name: str) -> bytes:
    return (typed.folder / name).read_bytes()


def verdicts(typed: Typed, name: str) -> dict[str, str]:
    return {line["id"]: line["judge"]["verdict"] for line in lines(read(typed, name))}


# ---------------------------------------------------------------- the same result


def test_two_stages_write_what_one_go_writes(typed: Typed) -> None:
    whole = run(typed, "in.jsonl", "one.jsonl")
    cheap = run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap")
    strong = run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong")
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")
    edited = [line["id"] for line in lines(read(typed, "two.jsonl")) if line["judge"]["edits"]]
    assert edited == ["norm-06", "story-03", "story-05"]

    left = verdicts(typed, "cheap.jsonl")
    assert [id for id, verdict in left.items() if verdict != "open"] == ["norm-01", "story-01"]
    assert cheap["verdicts"]["open"] == 7 and strong["kept"] == 2
    finished = [line for line in read(typed, "cheap.jsonl").splitlines() if b'"open"' not in line]
    assert set(finished) <= set(read(typed, "one.jsonl").splitlines())

    assert calls(cheap, "judge") == 0
    assert calls(strong, "judge") == calls(whole, "judge") > 0
    # What is read again was edited in between.
    assert 0 < calls(strong, "cheap") < calls(whole, "cheap") / 2
    assert strong["usage"] == whole["usage"] and strong["verdicts"] == whole["verdicts"]


def test_every_check_of_a_record_that_may_be_fine_is_read_at_once(typed: Typed) -> None:
    whole = run(typed, "in.jsonl", "one.jsonl", "--rounds", "0")
    cheap = run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap", "--rounds", "0")
    strong = run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong", "--rounds", "0")
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")
    assert calls(strong, "cheap") == 0, "nothing that was carried is asked again"
    # Two rubrics put the same question about a norm, which a stage asks once.
    norms = sum(record["id"].startswith("norm") for record in RECORDS)
    assert calls(cheap, "cheap") == calls(whole, "cheap") - norms


def test_open_lines_tell_what_they_wait_for_and_final_ones_do_not(typed: Typed) -> None:
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap")
    by_id = {line["id"]: line for line in lines(read(typed, "cheap.jsonl"))}
    told = by_id["norm-02"]["judge"]
    assert told["reason"] == "for the strong stage: derivation"
    assert told["checks"] == told["edits"] == [] and "error" not in told
    assert told["usage"]["replies"] == len(told["stage"]["replies"]) == 6
    assert told["models"]["cheap_identity"]["model"] == "cheap.yaml"
    own = {name: content for name, content in by_id["norm-02"].items() if name != "judge"}
    assert own == next(record for record in RECORDS if record["id"] == "norm-02")
    assert by_id["story-05"]["judge"]["reason"] == "for the strong stage: consistency"
    run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong")
    assert b'"stage"' not in read(typed, "two.jsonl")


def test_the_same_model_may_be_cheap_and_strong(typed: Typed) -> None:
    script = yaml.safe_load((FIXTURES / "judge.yaml").read_text("utf-8"))["replies"]
    both = [{**entry, "p_yes": 0.95 if "norm-01" in str(entry) else 0.6} for entry in script]
    write(typed.folder, "both.yaml", both)
    models = ("--cheap-model", "scripted:both.yaml", "-m", "scripted:both.yaml", "--no-cache")
    models += ("--reading", "structured", "--check", "derivation", "--check", "abstraction")
    typed.write("n.jsonl", records("norm-01", "norm-02"))
    for source, out, more in (
        ("n.jsonl", "one.jsonl", ()),
        ("n.jsonl", "cheap.jsonl", ("--stage", "cheap")),
        ("cheap.jsonl", "two.jsonl", ("--stage", "strong")),
    ):
        done = typed("validate", source, *models, "-o", out, *more)
        assert done.returncode == 0, done.stderr
    assert verdicts(typed, "cheap.jsonl") == {"norm-01": "pass", "norm-02": "open"}
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")


def test_lines_that_are_no_records_and_records_without_ids(typed: Typed) -> None:
    plain = [{k: v for k, v in record.items() if k != "id"} for record in RECORDS[:4]]
    text = [b"\n", b"no json\n", *(jsonl([record]) + b"\n" for record in plain)]
    text += [jsonl([{"id": "x", "story": "S."}]), jsonl([RECORDS[0]]), jsonl([RECORDS[0]])]
    text += [jsonl([{**plain[1], "note": "\ud800", "far": 1e300, "big": 10**30}])]
    (typed.folder / "in.jsonl").write_bytes(b"".join(text))
    # A record without an id is known by its line. Nobody is there to write this one anew.
    write(typed.folder, "cheap.yaml", [{"when": {"id": "#5"}, "p_yes": 0.05}, *CHEAP])
    run(typed, "in.jsonl", "one.jsonl", code=3)
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap", code=3)
    run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong", code=3)
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")
    errors = [e for line in lines(read(typed, "two.jsonl")) if (e := line["judge"].get("error"))]
    told = [(2, "bad-input"), (5, "bad-request"), (11, "bad-input"), (13, "duplicate-id")]
    assert [(error["line"], error["type"]) for error in errors] == told


def test_tables_come_out_as_in_one_go(typed: Typed) -> None:
    rows = ["id,rule_of_thumb,story,label", "norm-01,Greet.,He greets.,yes", "a,Greet.,No.,yes"]
    (typed.folder / "in.csv").write_text("\n".join(rows))
    more = ("--check", "relevance", "--rounds", "0")
    script = [{"when": {"rubric": "relevance"}, "reply": {"quote": None, "reason": "r"}}]
    script[0]["reply"]["answer"] = "no"  # type: ignore[index]
    (typed.folder / "judge.yaml").write_text(json.dumps({"replies": script}))
    run(typed, "in.csv", "one.jsonl", *more)
    run(typed, "in.csv", "cheap.jsonl", "--stage", "cheap", *more)
    assert verdicts(typed, "cheap.jsonl") == {"norm-01": "pass", "a": "open"}
    run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong", *more)
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")


def test_the_cheap_stage_reaches_no_strong_model(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing listens there: a probe would end the run.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    models = ("--cheap-model", "scripted:cheap.yaml", "-m", "openai:big")
    done = typed("validate", "in.jsonl", *models, "-o", "cheap.jsonl", "--stage", "cheap")
    assert done.returncode == 0, done.stderr
    assert verdicts(typed, "cheap.jsonl")["norm-03"] == "open"
    done = typed("validate", "cheap.jsonl", *models, "-o", "two.jsonl", "--stage", "strong")
    assert done.returncode == 4, "the strong stage does"


# ---------------------------------------------------------------- without the cheap model


def test_the_strong_stage_needs_no_cheap_model_where_nothing_is_edited(typed: Typed) -> None:
    run(typed, "in.jsonl", "one.jsonl", "--rounds", "0")
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap", "--rounds", "0")
    (typed.folder / "cheap.yaml").unlink()
    sums = run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong", "--rounds", "0")
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")
    assert calls(sums, "cheap") == 0


def test_a_record_that_needs_it_says_so_and_is_taken_up_where_it_is(typed: Typed) -> None:
    run(typed, "in.jsonl", "one.jsonl")
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap")
    (typed.folder / "cheap.yaml").rename(typed.folder / "away.yaml")
    sums = run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong", code=3)
    assert sums["errors"] == {"not-here": 3} and calls(sums, "cheap") == 0
    error = next(e for line in lines(read(typed, "two.jsonl")) if (e := line["judge"].get("error")))
    assert "read by scripted:cheap.yaml again, which is not here" in error["message"]
    assert "--resume" in error["message"]
    (typed.folder / "away.yaml").rename(typed.folder / "cheap.yaml")
    sums = run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong", "--resume")
    assert sums["kept"] == 6
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")


# ---------------------------------------------------------------- going on


def test_the_cheap_stage_keeps_what_it_left_open_and_one_go_does_not(typed: Typed) -> None:
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap")
    whole = read(typed, "cheap.jsonl")
    torn = b"".join(whole.splitlines(True)[:5]) + b'{"id": "torn'
    (typed.folder / "cheap.jsonl").write_bytes(torn)
    sums = run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap", "--resume")
    assert sums["kept"] == 5 and read(typed, "cheap.jsonl") == whole
    run(typed, "in.jsonl", "one.jsonl")
    sums = run(typed, "in.jsonl", "cheap.jsonl", "--resume")
    assert sums["kept"] == 2
    assert read(typed, "cheap.jsonl") == read(typed, "one.jsonl")


def test_replayed_records_are_whole_ones(typed: Typed) -> None:
    cached = ("validate", "in.jsonl", *MODELS, "--cache-dir", "shared")
    open_first = typed(*cached, "--stage", "cheap")
    assert open_first.stdout.count(b'"verdict":"open"') == 7
    again = typed(*cached, "--stage", "cheap")
    assert again.stdout == open_first.stdout, "what is open is not remembered as finished"
    whole = typed(*cached)
    known = typed(*cached, "--stage", "cheap")
    # norm-04 lost a vote, which is asked again.
    new = [
        a["id"] for a, b in zip(*map(lines, (known.stdout, whole.stdout)), strict=True) if a != b
    ]
    assert new == ["norm-04"], "what was judged whole is known, also to the cheap stage"


@pytest.mark.slow
def test_killed_and_resumed_in_both_stages(judge: Shell) -> None:
    cheap = [{"when": {"contains": f"number {d}"}, "p_yes": 0.95} for d in range(1, 4)]
    judge.script("cheap.yaml", [{**entry, "delay": 0.01} for entry in [*cheap, {"p_yes": 0.6}]])
    judge.script("judge.yaml", [{"p_yes": 0.9, "delay": 0.02}])
    judge.write("in.jsonl", map(norm, range(60)))
    run = ("validate", *MODELS, "--check", "relevance", "-q", "--no-cache", "--concurrency", "3")
    assert judge(*run, "in.jsonl", "-o", "one.jsonl").returncode == 0
    for source, out, stage in (
        ("in.jsonl", "cheap.jsonl", "cheap"),
        ("cheap.jsonl", "two.jsonl", "strong"),
    ):
        staged = (*run, source, "-o", out, "--stage", stage)
        killed = judge.start(*staged)
        until = time.monotonic() + 60
        while not (judge.folder / out).exists() or judge.read(out).count(b"\n") < 20:
            assert time.monotonic() < until, "the run writes nothing"
            time.sleep(0.005)
        killed.kill()
        killed.communicate()
        done = judge(*staged, "--resume", "--summary", "sums.json")
        assert done.returncode == 0, done.stderr
        assert json.loads(judge.read("sums.json"))["kept"] >= 20
    assert b'"open"' in judge.read("cheap.jsonl")
    assert judge.read("two.jsonl") == judge.read("one.jsonl")


@pytest.mark.slow
def test_one_stage_piped_into_the_other(judge: Shell) -> None:
    write(judge.folder, "cheap.yaml", CHEAP)
    judge.write("in.jsonl", RECORDS)
    run = (*COMMAND, "validate", "-", *MODELS, "-q", "--no-cache")
    place: dict[str, Any] = {"cwd": judge.folder, "env": judge.env, "stdout": subprocess.PIPE}
    with (judge.folder / "in.jsonl").open("rb") as source:
        first = subprocess.Popen([*run, "--stage", "cheap"], stdin=source, **place)
        second = subprocess.Popen([*run, "--stage", "strong"], stdin=first.stdout, **place)
    assert first.stdout is not None
    first.stdout.close()
    out, _ = second.communicate(timeout=100)
    assert first.wait(60) == 0 and second.returncode == 0
    assert out == judge(*run[len(COMMAND) :], stdin=judge.read("in.jsonl")).stdout


def test_a_strong_stage_that_still_waits_for_its_input_can_be_stopped(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: Job) -> Iterator[Item]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(stages, "select", interrupted)
    done = typed("validate", "in.jsonl", *MODELS, "--stage", "strong")
    assert done.returncode == 130
    assert b"interrupted before the first line" in done.stderr


# ---------------------------------------------------------------- what is said and refused


def test_the_summary_counts_open_records(typed: Typed) -> None:
    done = typed("validate", "in.jsonl", *MODELS, "--stage", "cheap", "--review", "people.jsonl")
    told = done.stderr.decode()
    assert "7 of 9 records are open: --stage strong goes on with them" in told
    assert "skipped  open" in told
    assert read(typed, "people.jsonl") == b"", "an open record is not for people yet"
    assert "open" not in typed("validate", "in.jsonl", *MODELS).stderr.decode()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-m", "scripted:judge.yaml", "--stage", "cheap"), "needs a cascade"),
        (("-m", "scripted:judge.yaml", "--stage", "strong"), "needs a cascade"),
        ((*MODELS, "--stage", "cheap", "--cheap-margin", "0.5"), "leaves the cheap model out"),
        ((*MODELS, "--stage", "cheap", "--fail-under", "0.5"), "--fail-under is for the strong"),
        ((*MODELS, "--stage", "strong", "--engine", "ray"), "does not run on Ray"),
        ((*MODELS, "--stage", "strong", "--dry-run"), "--dry-run plans a run in one go"),
        (
            ("--cheap-model", "scripted:cheap.yaml", "-m", "scripted:no.yaml", "--stage", "cheap"),
            "asks scripted:no.yaml nothing, but its lines say which model it is",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(typed: Typed, words: tuple[str, ...], told: str) -> None:
    done = typed("validate", "in.jsonl", "-o", "out.jsonl", *words)
    assert done.returncode == 2 and told in done.stderr.decode()
    assert not (typed.folder / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--seed", "5"), "settings.seed was 0, is 5"),
        (("--votes", "5"), "settings.votes was"),
        (("--workflow", "story"), "made under another fingerprint"),
        (("--cheap-model", "scripted:other.yaml"), "made with --cheap-model scripted:cheap.yaml"),
    ],
)
def test_another_cheap_stage_is_refused_before_anything_is_written(
    typed: Typed, more: tuple[str, ...], told: str
) -> None:
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap")
    write(typed.folder, "other.yaml", CHEAP)
    done = typed("validate", "cheap.jsonl", *MODELS, "--stage", "strong", "-o", "two.jsonl", *more)
    assert done.returncode == 2 and told in done.stderr.decode(), done.stderr
    assert "cheap.jsonl line 1" in done.stderr.decode()
    assert not (typed.folder / "two.jsonl").exists()


def test_another_model_under_the_same_name_is_refused(typed: Typed) -> None:
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap")
    write(typed.folder, "cheap.yaml", CHEAP[:-1])
    done = typed("validate", "cheap.jsonl", *MODELS, "--stage", "strong", "-o", "two.jsonl")
    assert done.returncode == 2 and b"cheap_identity.script was" in done.stderr


def test_a_foreign_line_further_down_ends_the_run(typed: Typed) -> None:
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap")
    run(typed, "in.jsonl", "more.jsonl", "--stage", "cheap", "--seed", "5", "--limit", "1")
    text = read(typed, "cheap.jsonl").replace(b'"id":"norm-01"', b'"id":"norm-00"')
    (typed.folder / "both.jsonl").write_bytes(text + read(typed, "more.jsonl"))
    done = typed("validate", "both.jsonl", *MODELS, "--stage", "strong", "-o", "two.jsonl")
    assert done.returncode == 2
    assert "both.jsonl line 10 was made under another fingerprint" in done.stderr.decode()


def test_records_that_no_cheap_stage_wrote_are_judged_in_one_go(typed: Typed) -> None:
    run(typed, "in.jsonl", "one.jsonl")
    run(typed, "in.jsonl", "two.jsonl", "--stage", "strong")
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")
    (typed.folder / "cheap.yaml").unlink()
    done = typed("validate", "in.jsonl", *MODELS, "--stage", "strong", "-o", "three.jsonl")
    assert done.returncode == 2
    assert "its first record was not written by --stage cheap" in done.stderr.decode()


def test_a_line_that_only_looks_staged_is_judged_as_in_one_go(typed: Typed) -> None:
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap", "--limit", "2")
    text = read(typed, "cheap.jsonl").replace(b'"verdict":"open"', b'"verdict":["open"]')
    (typed.folder / "cheap.jsonl").write_bytes(text)
    run(typed, "in.jsonl", "one.jsonl", "--limit", "2")
    run(typed, "cheap.jsonl", "two.jsonl", "--stage", "strong")
    assert read(typed, "two.jsonl") == read(typed, "one.jsonl")


def test_damaged_replies_are_told(typed: Typed) -> None:
    run(typed, "in.jsonl", "cheap.jsonl", "--stage", "cheap", "--limit", "2")
    text = read(typed, "cheap.jsonl").replace(b'["length",', b'["broken",')
    (typed.folder / "cheap.jsonl").write_bytes(text)
    done = typed("validate", "cheap.jsonl", *MODELS, "--stage", "strong", "-o", "two.jsonl")
    assert done.returncode == 2
    assert "cheap.jsonl line 2: the replies that --stage cheap left" in done.stderr.decode()
