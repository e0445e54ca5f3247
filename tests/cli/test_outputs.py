"""What becomes of OUT and the files beside it when the input, a flag or a server is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import norm
from .typed import Typed

STORY = {"values": ["Thrift--Agree"], "story": "Ann saves a coin."}
RUN = ("-m", "scripted:yes.yaml", "--check", "relevance")


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    typed = Typed(tmp_path, monkeypatch, capfd)
    told = {"reading": "probability", "replies": [{"p_yes": 0.9}]}
    (tmp_path / "yes.yaml").write_text(json.dumps(told))
    typed.write("n.jsonl", [norm(i) for i in range(6)])
    return typed


def names(judge: Typed) -> set[str]:
    return {path.name for path in judge.folder.iterdir()} - {"cache", "yes.yaml", "n.jsonl"}


def test_an_input_without_a_record_empties_out_on_request_alone(judge: Typed) -> None:
    judge.write("none.jsonl", [])
    assert judge("validate", "none.jsonl", *RUN, "-o", "out").returncode == 0
    assert names(judge) == {"none.jsonl", "out"}
    assert judge("validate", "n.jsonl", *RUN, "-o", "out", "--overwrite").returncode == 0
    assert judge("validate", "none.jsonl", *RUN, "-o", "out", "--overwrite").returncode == 0
    assert (judge.folder / "out").read_bytes() == b""


def test_the_cache_in_use_is_no_place_for_out(judge: Typed) -> None:
    run = ("validate", "n.jsonl", *RUN, "--cache-dir", "kept", "--overwrite")
    assert judge(*run, "-o", "out").returncode == 0
    before = (judge.folder / "kept" / "cache.db").stat().st_size
    done = judge(*run, "-o", "kept/cache.db")
    assert done.returncode == 2 and b"is in the cache folder in use" in done.stderr
    assert (judge.folder / "kept" / "cache.db").stat().st_size >= before


def test_a_small_budget_finishes_some_records(judge: Typed) -> None:
    records = [{**norm(i), "country": "Egypt", "value": "Respect"} for i in range(6)]
    judge.write("v.jsonl", records)
    judge.script("clean.yaml", [{"when": {"rubric": "leakage"}, "p_yes": 0.02}, {"p_yes": 0.98}])
    run = ("validate", "v.jsonl", "-m", "scripted:clean.yaml", "--no-cache", "-q", "--rounds", "0")
    run += ("--reading", "probability")
    assert judge(*run, "-o", "whole").returncode == 0
    whole = (judge.folder / "whole").read_bytes()
    stopped = judge(*run, "-o", "out", "--max-calls", "12")
    assert stopped.returncode == 4 and b"--max-calls 12 is reached" in stopped.stderr
    some = (judge.folder / "out").read_bytes()
    assert len(some.splitlines()) >= 2 and whole.startswith(some), "no error lines"
    assert judge(*run, "-o", "out", "--resume").returncode == 0
    assert (judge.folder / "out").read_bytes() == whole


def test_the_first_fault_of_a_kind_is_told_with_its_line(judge: Typed) -> None:
    (judge.folder / "bad.jsonl").write_text('{"id": NaN}\n[1]\n')
    done = judge("validate", "bad.jsonl", *RUN, "-o", "out")
    assert done.returncode == 3
    assert b"2 x bad-input: first, line 1: NaN is no JSON number" in done.stderr
    (judge.folder / "bad.jsonl").write_text(json.dumps(norm(0)) + "\n[1]\n")
    done = judge("validate", "bad.jsonl", *RUN, "-o", "out", "--overwrite")
    assert b"\n1 x bad-input: line 2: " in done.stderr


def test_a_server_that_refuses_leaves_out_to_the_same_command(judge: Typed) -> None:
    judge.script("gone.yaml", [{"error": "unreachable"}])
    run = ("validate", "n.jsonl", "-m", "scripted:gone.yaml", "--check", "relevance", "-q")
    assert judge("validate", "n.jsonl", *RUN, "-o", "out").returncode == 0
    before = (judge.folder / "out").read_bytes()
    done = judge(*run, "-o", "out", "--overwrite")
    assert done.returncode == 4
    assert b"nothing was written and out is as it was; the same command can be" in done.stderr
    assert (judge.folder / "out").read_bytes() == before
    done = judge(*run, "-o", "other")
    assert b"nothing was written; the same command can be run again" in done.stderr
    assert not (judge.folder / "other").exists()


def test_an_input_without_records_is_told(judge: Typed) -> None:
    judge.write("none.jsonl", [])
    done = judge("validate", "none.jsonl", *RUN)
    assert done.returncode == 0
    assert b"judge: no records in none.jsonl\n" in done.stderr
    assert b"unreadable" not in done.stderr, "no table of nothing"
    done = judge("validate", "n.jsonl", *RUN, "--limit", "0")
    assert done.returncode == 0 and b"judge: nothing was done: --limit 0\n" in done.stderr
    assert b"no record" not in judge("validate", "none.jsonl", *RUN, "-q").stderr


def test_the_summary_ends_with_what_a_person_does_next(judge: Typed) -> None:
    judge.script(
        "no.yaml", [{"reply": {"quote": "greets Bo", "reason": "No rule.", "answer": "no"}}]
    )
    run = ("-m", "scripted:no.yaml", "--reading", "structured", "--rounds", "0", "--no-cache")
    done = judge("validate", "n.jsonl", *run, "--check", "relevance", "-o", "my out.jsonl")
    told = done.stderr.decode().splitlines()
    assert told[0].split() == ["check", "fail"], "columns without a record are left out"
    at = told.index("failed: 6, the first 5:")
    assert told[at - 1] == "0 of 6 records pass (0.0%)"
    assert told[at + 1 : at + 6] == [
        f"  n{number}  relevance: “greets Bo” – No rule." for number in range(5)
    ]
    assert told[-2:] == [
        "output: my out.jsonl",
        "next: judge report 'my out.jsonl' -o 'my out.html'",
    ]
    assert all(len(line) <= 80 for line in told)
