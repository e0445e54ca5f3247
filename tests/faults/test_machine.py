"""Faults of the machine under a run: what was finished is kept, and the message says what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from judge.backends.faults import retry_after
from judge.errors import Exit, JudgeError
from judge.records import Item, SeenIds

from .forks import FIXTURES, Ended, Forks, calls, paid_twice
from .page import Outcome, rows

RECORDS = 12


def nothing(folder: Path) -> None:
    """No preparation."""


OUT = ("norms.jsonl", "-o", "out")
PLAIN = ("norms.jsonl",)
BARE = (*OUT, "--no-cache")
RESUMED = (*OUT, "--resume")
LONG = ("long.jsonl", "-o", "out")


@dataclass(frozen=True)
class Fault:
    """A fault, declared.

    Args:
        what: the fault, as the page has it.
        code: the exit code that is right (README, "Output").
        rig: what happens to the run, as `mishaps.py` takes it.
        words: the command's, behind `judge validate`.
        prepared, mended: what is done in its folder before the run, and after it as told.
        again: the words with which it is gone on with; None where it has come to its end.
        torn: OUT itself was damaged, so that it need not hold whole lines of ours alone.
        whole: the bytes at the end are those of an undisturbed run (else: begin with them).
        counted: how many records are written is the same each time.
    """

    what: str
    code: int
    rig: Mapping[str, Any] = field(default_factory=dict)
    words: Sequence[str] = OUT
    prepared: Callable[[Path], None] = nothing
    mended: Callable[[Path], None] = nothing
    again: Sequence[str] | None = RESUMED
    torn: bool = False
    whole: bool = True
    counted: bool = True


# ---------------------------------------------------------------- preparing and mending


def put_out_away(folder: Path) -> None:
    (folder / "out").rename(folder / "somebody's")


def move_cache_away(folder: Path) -> None:
    (folder / "cache").rename(folder / "damaged")


def fill_cache(folder: Path) -> sqlite3.Connection:
    """A cache with all replies of the run, as a database to be damaged."""
    shutil.copytree(folder.parent / "whole" / "cache", folder / "cache")
    return sqlite3.connect(folder / "cache" / "cache.db", isolation_level=None)


def rubbish_database(folder: Path) -> None:
    fill_cache(folder).close()
    (folder / "cache" / "cache.db").write_bytes(b"rubbish " * 5000)


def cut_database(folder: Path) -> None:
    fill_cache(folder).close()
    database = folder / "cache" / "cache.db"
    os.truncate(database, database.stat().st_size // 2)


def other_schema(folder: Path) -> None:
    database = fill_cache(folder)
    database.execute("DROP TABLE Cache")
    database.execute("CREATE TABLE Cache (id INTEGER, words TEXT)")
    database.close()


def other_settings(folder: Path) -> None:
    database = fill_cache(folder)
    database.execute("INSERT INTO Settings VALUES ('disk_colour', 'blue')")
    database.close()


def rubbish_entries(folder: Path) -> None:
    """Every entry has another kind of rubbish."""
    database = fill_cache(folder)
    kinds = ("CAST(X'FF00FE' AS TEXT)", "'{\"te'", "'[1, 2]'", "X'8004'", "NULL", "'{\"a\": {}}'")
    kinds = (*kinds, """'{"judgement": {"verdict": "pass"}, "changed": {}}'""")
    for number, (row,) in enumerate(database.execute("SELECT rowid FROM Cache").fetchall()):
        value = kinds[number % len(kinds)]
        database.execute(f"UPDATE Cache SET value = {value} WHERE rowid = ?", (row,))
    database.close()


def long_input(folder: Path) -> None:
    """More than is read ahead."""
    text = (folder / "norms.jsonl").read_bytes()
    (folder / "long.jsonl").write_bytes(text * 80)


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
    Fault("standard error closed", 0, {"closed": [2]}, again=None),
    Fault("standard error: a reader that goes away", 0, {"streams": {"2": "gone"}}, again=None),
    Fault("standard output closed", 2, {"closed": [1]}, PLAIN, again=OUT),
    Fault(
        "standard output: a reader that goes away",
        141,
        {"streams": {"1": "gone"}},
        PLAIN,
        again=OUT,
    ),
    Fault("disk full under the cache", 4, {"pages": 8}, mended=move_cache_away),
    Fault(
        "`-o` in a folder that cannot be written",
        2,
        words=("norms.jsonl", "-o", "/proc/self/out"),
        again=OUT,
    ),
    Fault(
        "OUT in a folder that is not there",
        2,
        words=("norms.jsonl", "-o", "nowhere/out"),
        again=OUT,
    ),
]
OUTPUTS = [
    Fault("OUT deleted", 4, {"at": {20: "delete_out"}}),
    Fault("OUT deleted, no cache", 4, {"at": {20: "delete_out"}}, BARE, again=(*BARE, "--resume")),
    Fault("OUT moved away", 4, {"at": {20: "move_out"}}),
    Fault(
        "OUT replaced by another file",
        4,
        {"at": {20: "replace_out"}},
        mended=put_out_away,
        torn=True,
    ),
    Fault("OUT cut short", 4, {"at": {20: "shorten_out"}}, torn=True),
    Fault("another program writes to OUT", 4, {"at": {20: "append_to_out"}}, torn=True),
]
INPUTS = [
    Fault("the input deleted", 0, {"at": {20: "delete_input"}}, again=None),
    Fault(
        "the input cut short while it is read",
        3,
        {"at": {5: "shorten_input"}},
        LONG,
        long_input,
        again=None,
        whole=False,
        counted=False,
    ),
]
CACHES = [
    Fault(
        "the cache's database is rubbish",
        2,
        prepared=rubbish_database,
        mended=move_cache_away,
        again=OUT,
    ),
    Fault(
        "the cache's database is cut off",
        2,
        prepared=cut_database,
        mended=move_cache_away,
        again=OUT,
    ),
    Fault(
        "the cache's table is another program's",
        2,
        prepared=other_schema,
        mended=move_cache_away,
        again=OUT,
    ),
    Fault("the cache's settings are another program's", 0, prepared=other_settings, again=None),
    Fault("each entry of the cache is rubbish", 0, prepared=rubbish_entries, again=None),
    Fault("the cache folder removed under the run", 0, {"at": {20: "remove_cache"}}, again=None),
    Fault(
        "the cache locked by another process for long (60 s; here 1)", 4, {"at": {20: "lock_cache"}}
    ),
    Fault("the cache locked for a short while", 0, {"at": {20: "lock_cache_shortly"}}, again=None),
]
CLOCKS = [
    Fault(
        "the clock goes forward by an hour, then back by two",
        0,
        {"at": {10: "clock_forward", 20: "clock_back"}},
        again=None,
    ),
]
SIGNALS = [
    Fault("SIGTERM", 130, {"at": {20: "SIGTERM"}}),
    Fault("SIGINT", 130, {"at": {20: "SIGINT"}}),
    Fault(
        "SIGINT twice, no cache",
        130,
        {"at": {20: "SIGINT", 21: "SIGINT"}},
        BARE,
        again=(*BARE, "--resume"),
    ),
    Fault("SIGHUP", 130, {"at": {20: "SIGHUP"}}),
    Fault("SIGHUP under `nohup`", 0, {"ignored": "SIGHUP", "at": {20: "SIGHUP"}}, again=None),
    Fault("SIGPIPE", 0, {"at": {20: "SIGPIPE"}}, again=None),
    Fault("SIGSTOP, and SIGCONT a second later", 0, {"at": {20: "SIGSTOP"}}, again=None),
]
FAULTS = [*DISKS, *OUTPUTS, *INPUTS, *CACHES, *CLOCKS, *SIGNALS]


# ---------------------------------------------------------------- the test


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with Forks(tmp_path_factory.mktemp("warm")) as forks:
        yield forks


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
    """What the run said, without its folder."""
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
    assert took(tmp_path) < 600, "durations rest on a clock that does not jump"
    said = said if fault.counted else re.sub(r"\b\d+ records", "N records", said)
    bytes_there = (whole / "out").read_bytes()
    out = tmp_path / "out"
    here = out.read_bytes() if out.exists() else b""
    if not fault.torn:
        assert here.endswith(b"\n") or not here, "OUT ends in a torn line"
        assert fault.whole is False or bytes_there.startswith(here)
    seen = f"exit {ended.code}, {written(here, fault)}; told: {said}"
    if fault.again is None:
        assert here == bytes_there if fault.whole else here.startswith(bytes_there)
    else:
        fault.mended(tmp_path)
        assert run(forks, tmp_path, fault.again, {}).code == 0, told(tmp_path)
        assert out.read_bytes() == bytes_there
        again = asked(tmp_path) - asked(whole)
        seen += f"; gone on with `{' '.join(fault.again)}`"
        seen += f", {again} calls made again" if again > 0 else ""
    if "--no-cache" not in fault.words and fault.mended is not move_cache_away:
        assert paid_twice(tmp_path) == []
    outcome("machine", fault.what, seen)


def written(here: bytes, fault: Fault) -> str:
    """What stands in OUT: how many records, and what the last line says is wrong, if it does."""
    if fault.counted:
        return f"{here.count(10)} records in OUT"
    error = json.loads(here.splitlines()[-1])["judge"]["error"]
    told = f", then an error line: {error['message']}" if error else ""
    return f"what was judged is in OUT{told}"


def took(folder: Path) -> float:
    """The seconds of the run, as its summary has them; 0 where it has none."""
    summary = folder / "summary.json"
    return float(json.loads(summary.read_text())["seconds"]) if summary.exists() else 0.0


def asked(folder: Path) -> int:
    return sum(word == "asked" for word, _ in calls(folder))


def test_the_page_tells_of_these_alone() -> None:
    assert list(rows("machine")) == [fault.what for fault in FAULTS]


# ---------------------------------------------------------------- beside the table


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("full", ["out", "cache"])
def test_a_disk_that_is_full(forks: Forks, whole: Path, tmp_path: Path, full: str) -> None:
    """A real one, of 32 kB (the cache's: 400), for OUT and for the cache."""
    disk = tmp_path / "disk"
    disk.mkdir()
    size = "400k" if full == "cache" else "32k"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=False
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        fill(tmp_path)
        out = "out" if full == "cache" else "disk/out"
        words = ["norms.jsonl", "-o", out]
        words += ["--cache-dir", "disk"] if full == "cache" else ["--no-cache"]
        words += ["--concurrency", "1"]
        ended = run(forks, tmp_path, words, {})
        assert ended.code == 4, told(tmp_path)
        assert re.search("make room|full", told(tmp_path)), told(tmp_path)
        there = (whole / "out").read_bytes()
        here = (tmp_path / out).read_bytes()
        assert there.startswith(here) and here.endswith(b"\n")
        assert paid_twice(tmp_path) == []
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        assert run(forks, tmp_path, [*words, "--resume"], {}).code == 0, told(tmp_path)
        assert (tmp_path / out).read_bytes() == there
    finally:
        subprocess.run(["umount", disk], check=True)


def test_ids_that_find_no_room() -> None:
    with SeenIds() as ids:
        ids._db.execute("PRAGMA max_page_count=3").fetchall()
        with pytest.raises(JudgeError, match="cannot be remembered in") as caught:
            for number in range(10_000):
                ids.already(str(number), Item("a.jsonl", number, {}))
        assert caught.value.exit_code == Exit.UNAVAILABLE


def test_a_pause_is_held_against_the_clock_of_the_server() -> None:
    then = "Wed, 21 Oct 2015 07:28:{:02} GMT"
    assert retry_after({"retry-after": then.format(9), "date": then.format(4)}) == 5.0
