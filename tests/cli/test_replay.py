"""Records judged before are replayed whole, byte for byte, and only while nothing has changed."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from judge.cache import ReplyCache
from judge.run import replay

from .conftest import FIXTURES, Shell
from .typed import Typed

FILES = ("stories.jsonl", "norms.jsonl")


@pytest.fixture
def judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Typed:
    for name in [name for name in os.environ if name.startswith("JUDGE_")]:
        monkeypatch.delenv(name)
    (tmp_path / "judge.yaml").write_bytes((FIXTURES / "judge.yaml").read_bytes())
    return Typed(tmp_path, monkeypatch, capfd)


def run(judge: Typed | Shell, *more: str, model: str = "scripted:judge.yaml") -> tuple[bytes, Any]:
    """(output, summary) of a run over in.jsonl."""
    done = judge("validate", "in.jsonl", "-m", model, "--summary", "sums.json", *more)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout, json.loads((judge.folder / "sums.json").read_text())


def calls(sums: Any) -> int:
    return sum(counters["calls"] + counters["cache_hits"] for counters in sums["models"].values())


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    return [line for name in FILES for line in (FIXTURES / name).read_bytes().splitlines(True)]


@dataclass(frozen=True)
class First:
    """The first run over the records, a process: its folder, output and summary."""

    folder: Path
    out: bytes
    sums: Any


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, records: list[bytes]) -> First:
    shell = Shell(tmp_path_factory.mktemp("first"))
    (shell.folder / "in.jsonl").write_bytes(b"".join(records))
    return First(shell.folder, *run(shell))


@pytest.fixture
def fresh(judge: Typed, first: First) -> bytes:
    """The output of the first run, which has left its records and its cache in the folder."""
    shutil.copytree(first.folder, judge.folder, dirs_exist_ok=True)
    return first.out


def test_replayed_equals_fresh_equals_uncached(
    judge: Typed, fresh: bytes, first: First, records: list[bytes]
) -> None:
    again, second = run(judge)
    assert again == fresh == run(judge, "--no-cache")[0]
    assert first.sums["replayed"] == 0 and calls(first.sums) > len(records)
    assert second["replayed"] == len(records) and calls(second) == 0
    assert any(b'"edits":[{' in line for line in fresh.splitlines()), "edited records among them"
    told = ("verdicts", "checks", "usage", "edits", "dropped_values", "accepted_after_edits")
    assert all(first.sums[name] == second[name] for name in told)


def test_only_what_has_changed_is_judged_anew(
    judge: Typed, fresh: bytes, records: list[bytes]
) -> None:
    changed = json.loads(records[3])
    changed["story"] += " And so it ended."
    (judge.folder / "in.jsonl").write_bytes(
        b"".join([*records[:3], json.dumps(changed).encode() + b"\n", *records[4:]])
    )
    after, sums = run(judge)
    assert sums["replayed"] == len(records) - 1
    before, now = fresh.splitlines(), after.splitlines()
    assert [n for n in range(len(before)) if before[n] != now[n]] == [3]


@pytest.mark.parametrize(
    "more",
    [["--seed", "5"], ["--votes", "5"], ["--rounds", "1"]],
)
def test_other_settings_judge_anew(judge: Typed, fresh: bytes, more: list[str]) -> None:
    _, sums = run(judge, *more)
    assert sums["replayed"] == 0


def test_another_script_judges_anew(judge: Typed, fresh: bytes) -> None:
    text = (judge.folder / "judge.yaml").read_text()
    (judge.folder / "judge.yaml").write_text(text + "\n# another\n")
    assert run(judge)[1]["replayed"] == 0


def test_entries_that_others_have_damaged_are_judged_anew(
    judge: Typed, fresh: bytes, records: list[bytes]
) -> None:
    cache = ReplyCache(judge.folder / "cache")
    rows = cache._cache._sql("SELECT key FROM Cache WHERE tag = 'record'").fetchall()
    assert len(rows) == len(records)
    for number, (key,) in enumerate(rows):
        cache.set(key, [{}, {"judgement": 1, "changed": {}}, {"changed": {}}][number % 3])
    cache.close()
    again, sums = run(judge)
    assert again == fresh and sums["replayed"] == 0


def test_a_record_without_a_verdict_is_asked_again(judge: Typed) -> None:
    failing = [{"when": {"contains": "number 1."}, "error": "bad-request"}, {"p_yes": 0.9}]
    judge.script("part.yaml", failing)
    (judge.folder / "in.jsonl").write_text(
        "".join(
            json.dumps({"id": n, "rule_of_thumb": "Greet.", "story": f"He was number {n}."}) + "\n"
            for n in range(3)
        )
    )
    more = ("--check", "relevance", "--reading", "probability")
    run(judge, *more, model="scripted:part.yaml")
    _, sums = run(judge, *more, model="scripted:part.yaml")
    assert sums["replayed"] == 2 and sums["verdicts"] == {"pass": 2, "error": 1}


def test_the_code_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    def fresh() -> str:
        replay.code_digest.cache_clear()
        return replay.code_digest()

    real = fresh()
    monkeypatch.setattr(replay, "find_spec", lambda name: Spec())
    (tmp_path / "a.py").write_text("x = 1\n")
    first = fresh()
    (tmp_path / "a.py").write_text("x = 2\n")
    assert len({real, first, fresh()}) == 3
    monkeypatch.undo()
    assert fresh() == real
