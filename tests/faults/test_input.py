"""Bad input through the real command: what came of each case, as docs/reliability.md has it."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from judge.evaluation.tables import Row, Table
from judge.report.results import write
from tests.cli.typed import Typed

from .conftest import Outcome

Told = Callable[[str, str], None]
GOOD = {"rule_of_thumb": "It is polite to greet.", "story": "Ann greets Bo.", "label": "yes"}


CHECK = ("--check", "relevance", "-m", "scripted:yes.yaml", "--no-cache", "-o", "out.jsonl")


def good(number: int, **more: Any) -> bytes:
    return json.dumps({"id": f"n{number}", **GOOD, **more}).encode() + b"\n"


def among(bad: bytes) -> bytes:
    """One line between two good ones."""
    return good(1) + bad + b"\n" + good(3)


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    (tmp_path / "yes.yaml").write_text('{"method": "logprobs", "replies": [{"p_yes": 0.9}]}')
    return Typed(tmp_path, monkeypatch, capfd)


@pytest.fixture
def told(outcome: Outcome) -> Told:
    return lambda fault, seen: outcome("input", fault, seen)


def judged(typed: Typed, *inputs: str) -> tuple[str, list[dict[str, Any]]]:
    """What came of validating: exit code, verdicts, complaints; and the lines."""
    done = typed(
        "validate", *inputs, "-m", "scripted:yes.yaml", *CHECK, "-o", "out.jsonl", "--no-cache"
    )
    assert b"Traceback" not in done.stderr, done.stderr
    lines = [json.loads(line) for line in (typed.folder / "out.jsonl").read_bytes().splitlines()]
    return described(done.returncode, lines), lines


def described(code: int, lines: list[dict[str, Any]]) -> str:
    verdicts = [line["judge"]["verdict"] for line in lines]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in sorted(set(verdicts)))
    seen = f"exit {code}; {counts or 'no record'}"
    for line in lines:
        if error := line["judge"].get("error"):
            where = f"line {error['line']}"
            where += f", field {error['field']}" if "field" in error else ""
            seen += f"; {where}: {error['message']}"
    return seen.replace("|", "/").replace("\n", " ")


INPUTS: dict[str, tuple[str, bytes]] = {
    "JSON nested 10,000 deep": ("a.jsonl", among(b'{"a":' * 10_000 + b"1" + b"}" * 10_000)),
    "NaN": ("a.jsonl", among(b'{"a": NaN}')),
    "an integer of 5,000 digits": ("a.jsonl", among(b'{"a": ' + b"9" * 5000 + b"}")),
    "a lone surrogate in story, id and key": (
        "a.jsonl",
        good(1, story="Ann \ud800 greets", **{"k\udfff": 1}).replace(b'"n1"', b'"\\ud800"'),
    ),
    "invalid UTF-8": ("a.jsonl", among(b'{"a": "\xff\xfe"}')),
    "NUL bytes": ("a.jsonl", among(b"\0\0{}\0")),
    "a truncated gz": ("a.jsonl.gz", gzip.compress(good(1) * 1, mtime=0)[:-6]),
    "a truncated zst": (
        "a.jsonl.zst",
        # What cannot be packed is read up to the cut: a newline in it would make a line more.
        zstd.compress(good(1)) + zstd.compress(bytes(range(100, 199)))[:50],
    ),
    "a CSV header of 100,000 columns": (
        "a.csv",
        b"id,story,rule_of_thumb," + b",".join(b"c%d" % n for n in range(100_000)) + b"\nn1,x\n",
    ),
}


@pytest.mark.parametrize("fault", INPUTS)
def test_an_input(typed: Typed, told: Told, fault: str) -> None:
    name, content = INPUTS[fault]
    (typed.folder / name).write_bytes(content)
    told(fault, judged(typed, name)[0])


def test_nothing_of_a_record_is_lost_or_rendered(typed: Typed) -> None:
    odd = ["{{ 7*7 }} {% raw %}", "\u202e\u200b\u2066", "a\0b", "\ud800", "=1+1", "\x1b[2J"]
    (typed.folder / "a.jsonl").write_bytes(b"".join(good(n, note=t) for n, t in enumerate(odd)))
    _, lines = judged(typed, "a.jsonl")
    assert [line["note"] for line in lines] == odd
    assert {line["judge"]["verdict"] for line in lines} == {"pass"}


def test_parquet_with_rubbish(typed: Typed, told: Told) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    texts = pa.array([b"Ann greets.", b"\xff", b"Bo greets."]).view(pa.string())
    rows = {"id": ["1", "2", "3"], "rule_of_thumb": ["x"] * 3, "label": ["yes"] * 3}
    parquet.write_table(pa.table({**rows, "story": texts}), typed.folder / "a.parquet")
    told("Parquet: a text that is no UTF-8", judged(typed, "a.parquet")[0])


def test_no_file(typed: Typed, told: Told) -> None:
    done = typed("validate", ".", "-m", "scripted:yes.yaml")
    told("a folder as input", f"exit {done.returncode}; {done.stderr.decode().strip()}")
    told("/dev/null as input", judged(typed, "/dev/null")[0])


FILES = {
    "a rubric nested 100,000 deep, closed": "name: " + "[" * 100_000 + "]" * 100_000,
    "a rubric that holds itself": "name: &a [*a]\n",
}


@pytest.mark.parametrize("fault", FILES)
def test_a_rubric(typed: Typed, told: Told, fault: str) -> None:
    (typed.folder / "mine.yaml").write_text(FILES[fault])
    (typed.folder / "a.jsonl").write_bytes(good(1))
    done = typed("validate", "a.jsonl", "-m", "scripted:yes.yaml", "--rubric", "mine.yaml")
    assert b"Traceback" not in done.stderr
    told(fault, f"exit {done.returncode}; {done.stderr.decode().strip()}")


def test_no_spreadsheet_runs_a_cell_of_a_table(tmp_path: Path) -> None:
    labels = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "plain", "a=b"]
    rows = [Row((label,), {"n": -1.5}) for label in labels]
    write([Table("t", "T", ("by",), rows)], tmp_path, benchmark="b", model="m")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.reader(file))[1:]
    assert [row[0] for row in found] == [*(f"'{label}" for label in labels[:5]), "plain", "a=b"]
    assert {row[1] for row in found} == {"-1.5"}


def test_a_record_without_an_end(typed: Typed, monkeypatch: pytest.MonkeyPatch, told: Told) -> None:
    monkeypatch.setattr("judge.records.streams.LONGEST", 100 << 20)
    (typed.folder / "a.jsonl").symlink_to("/dev/zero")
    told("/dev/zero (with the bound at 100 MiB in place of 4 GiB)", judged(typed, "a.jsonl")[0])
