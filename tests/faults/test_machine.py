"""Faults of the machine under a run: what was finished is kept, and the message says what to do."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .conftest import Outcome
from .forks import FIXTURES, Ended, Forks, calls, paid_twice

RECORDS = 12


def nothing(folder: Path) -> None:
    """No preparation."""


OUT = ("norms.jsonl", "-o", "out")
PLAIN = ("norms.jsonl",)
BARE = (*OUT, "--no-cache")
RESUMED = (*OUT, "--resume")


@dataclass(frozen=True)
class Fault:
    """A fault, declared.

    Args:
        what: the fault, as the page has it.
        code: the exit code that is right (docs/reference/output.md).
        rig: what happens to the run, as `warm.py` takes it.
        words: the command's, behind `judge validate`.
        prepared, mended: what is done in its folder before the run, and after it as told.
        again: the words that continue the run; None if it has come to its end.
        torn: OUT itself was damaged, so that it need not hold whole lines of ours alone.
    """

    what: str
    code: int
    rig: Mapping[str, Any] = field(default_factory=dict)
    words: Sequence[str] = OUT
    prepared: Callable[[Path], None] = nothing
    mended: Callable[[Path], None] = nothing
    again: Sequence[str] | None = RESUMED
    torn: bool = False


# ---------------------------------------------------------------- preparing and mending


def put_out_away(folder: Path) -> None:
    (folder / "out").rename(folder / "somebody's")


def take_out_line(folder: Path) -> None:
    text = (folder / "out").read_text("utf-8")
    (folder / "out").write_text(text.replace("somebody's line\n", ""), "utf-8")


def move_cache_away(folder: Path) -> None:
    (folder / "cache").rename(folder / "damaged")


def fill_cache(folder: Path) -> sqlite3.Connection:
    """A cache with all replies of the run, as a database to be damaged."""
    shutil.copytree(folder.parent / "whole" / "cache", folder / "cache")
    return sqlite3.connect(folder / "cache" / "cache.db", isolation_level=None)


def rubbish_database(folder: Path) -> None:
    fill_cache(folder).close()
    (folder / "cache" / "cache.db").write_bytes(b"rubbish " * 5000)


def rubbish_entries(folder: Path) -> None:
    """Every entry has another kind of rubbish."""
    database = fill_cache(folder)
    kinds = ("CAST(X'FF00FE' AS TEXT)", "'{\"te'", "'[1, 2]'", "X'8004'", "NULL", "'{\"a\": {}}'")
    kinds = (*kinds, """'{"judgement": {"verdict": "pass"}, "changed": {}}'""")
    for number, (row,) in enumerate(database.execute("SELECT rowid FROM Cache").fetchall()):
        value = kinds[number % len(kinds)]
        database.execute(f"UPDATE Cache SET value = {value} WHERE rowid = ?", (row,))
    database.close()


# ---------------------------------------------------------------- the faults

DISKS = [
    Fault(
        "disk full under OUT (files of 20 kB at most), no cache",
        4,
        {"limits": {"RLIMIT_FSIZE": 20_000}},
        BARE,
        again=(*BARE, "--resume"),
    ),
    Fault("`-o /dev/full`", 4, words=("norms.jsonl", "-o", "/dev/full"), again=OUT),
    Fault("`> /dev/full`", 4, {"streams": {"1": "/dev/full"}}, PLAIN, again=OUT),
    Fault("`2> /dev/full`", 0, {"streams": {"2": "/dev/full"}}, again=None),
    Fault("standard output closed", 2, {"closed": [1]}, PLAIN, again=OUT),
    Fault(
        "standard output: a reader that goes away",
        141,
        {"streams": {"1": "gone"}},
        PLAIN,
        again=OUT,
    ),
    Fault("disk full under the cache", 4, {"pages": 8}, mended=move_cache_away),
]
OUTPUTS = [
    Fault("OUT deleted", 4, {"at": {20: "delete_out"}}),
    Fault(
        "OUT replaced by another file",
        4,
        {"at": {20: "replace_out"}},
        mended=put_out_away,
        torn=True,
    ),
    Fault(
        "another program writes to OUT",
        4,
        {"at": {20: "append_to_out"}},
        mended=take_out_line,
        torn=True,
    ),
]
INPUTS = [
    Fault("the input deleted", 0, {"at": {20: "delete_input"}}, again=None),
]
CACHES = [
    Fault(
        "the cache's database is rubbish",
        2,
        prepared=rubbish_database,
        mended=move_cache_away,
        again=OUT,
    ),
    Fault("each entry of the cache is rubbish", 0, prepared=rubbish_entries, again=None),
    Fault(
        "the cache locked by another process for long (30 s; here 1)", 4, {"at": {20: "lock_cache"}}
    ),
    Fault("the cache locked for a short while", 0, {"at": {20: "lock_cache_shortly"}}, again=None),
]
SIGNALS = [
    Fault("SIGTERM", 130, {"at": {20: "SIGTERM"}}),
    Fault(
        "SIGINT twice, no cache",
        130,
        {"at": {20: "SIGINT", 21: "SIGINT"}},
        BARE,
        again=(*BARE, "--resume"),
    ),
    Fault("SIGHUP", 130, {"at": {20: "SIGHUP"}}),
    Fault("SIGHUP under `nohup`", 0, {"ignored": "SIGHUP", "at": {20: "SIGHUP"}}, again=None),
]
FAULTS = [*DISKS, *OUTPUTS, *INPUTS, *CACHES, *SIGNALS]


# ---------------------------------------------------------------- the test


@pytest.fixture(scope="module")
def whole(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an undisturbed run."""
    folder = tmp_path_factory.mktemp("whole")
    fill(folder)
    assert run(forks, folder, OUT, {}).code == 0
    return folder


def fill(folder: Path) -> None:
    lines = (FIXTURES / "norms.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "norms.jsonl").write_bytes(b"".join(lines[:RECORDS]))
    (folder / "judge.yaml").write_bytes((FIXTURES / "judge.yaml").read_bytes())


def run(forks: Forks, folder: Path, words: Sequence[str], rig: Mapping[str, Any]) -> Ended:
    pace = () if "--concurrency" in words else ("--concurrency", "1")
    typed = ["validate", *words, "-m", "scripted:judge.yaml", "--summary", "summary.json", *pace]
    return forks.run(folder, [*typed, "-q"], seed=0, rig=rig)


def told(folder: Path) -> str:
    """The messages of the run, without its folder."""
    text = (folder / "stderr.log").read_text().replace(str(folder), "")
    assert "Traceback" not in text, text
    lines = [line.removeprefix("judge: ") for line in text.splitlines()]
    return "; ".join(lines) or "nothing"


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_of_the_machine(
    forks: Forks, whole: Path, tmp_path: Path, outcome: Outcome, fault: Fault
) -> None:
    fill(tmp_path)
    shutil.copytree(whole, tmp_path.parent / "whole", dirs_exist_ok=True)
    fault.prepared(tmp_path)
    ended = run(forks, tmp_path, fault.words, fault.rig)
    said = told(tmp_path)
    assert ended.code == fault.code, said
    bytes_there = (whole / "out").read_bytes()
    out = tmp_path / "out"
    here = out.read_bytes() if out.exists() else b""
    if not fault.torn:
        assert here.endswith(b"\n") or not here, "OUT ends in a torn line"
        assert bytes_there.startswith(here)
    seen = f"exit {ended.code}, {here.count(10)} records in OUT; message: {said}"
    if fault.again is None:
        assert here == bytes_there
    else:
        fault.mended(tmp_path)
        assert run(forks, tmp_path, fault.again, {}).code == 0, told(tmp_path)
        assert out.read_bytes() == bytes_there
        again = asked(tmp_path) - asked(whole)
        seen += f"; continued with `{' '.join(fault.again)}`"
        seen += f", {again} calls made again" if again > 0 else ""
    if "--no-cache" not in fault.words and fault.mended is not move_cache_away:
        assert paid_twice(tmp_path) == []
    outcome("machine", fault.what, seen)


def asked(folder: Path) -> int:
    return sum(word == "asked" for word, _ in calls(folder))
