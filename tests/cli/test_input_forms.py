"""The input forms that the README names: the same records give the same verdicts in each."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from backports import zstd

import judge

from .conftest import jsonl, lines, norm
from .typed import Typed

ROWS = [norm(number) for number in range(3)]
NORM = ("-m", "scripted:yes.yaml", "--check", "relevance", "-q")


def table(separator: str) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [*ROWS[0]], delimiter=separator)
    writer.writeheader()
    writer.writerows(ROWS)
    return out.getvalue().encode()


def parquet() -> bytes:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out)
    return out.getvalue()


def arrow() -> bytes:
    pa = pytest.importorskip("pyarrow")
    rows, out = pa.Table.from_pylist(ROWS), io.BytesIO()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    return out.getvalue()


def xlsx() -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in ([*ROWS[0]], *([*row.values()] for row in ROWS)):
        book.active.append(row)
    book.save(out)
    return out.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "jsonl": lambda: jsonl(ROWS),
    "json": lambda: json.dumps(ROWS, indent=1).encode(),
    "csv": lambda: table(","),
    "tsv": lambda: table("\t"),
    "parquet": parquet,
    "arrow": arrow,
    "xlsx": xlsx,
}
PACKS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstd.compress,
}


# Other compressed forms: tests/records/test_compression.py.
@pytest.mark.parametrize(
    ("form", "pack"), [*((form, "") for form in FORMS), ("csv", ".gz"), ("jsonl", ".zst")]
)
def test_files_and_standard_input(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, form: str, pack: str
) -> None:
    name, data = f"a.{form}{pack}", PACKS[pack](FORMS[form]())
    (typed.folder / name).write_bytes(data)
    read = typed("validate", name, *NORM)
    assert read.returncode == 0, read.stderr
    own = [{k: v for k, v in line.items() if k != "judge"} for line in lines(read.stdout)]
    assert own == ROWS
    for named in (("--format", form), ()):
        pipe(monkeypatch, data)
        assert typed("validate", "-", *named, *NORM).stdout == read.stdout


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Pipe the data into the next command."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    monkeypatch.setattr("sys.stdin", os.fdopen(reading))


OPEN = b'id,story,label\n1,x,yes\n2,"y,no\n3,z,yes\n'


def test_a_quote_that_never_closes_is_an_error_with_its_line(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (typed.folder / "a.csv").write_bytes(OPEN)
    asked = ("--ask", "Is it polite?", "--on", "story", "-m", "scripted:yes.yaml")
    read = typed("validate", "a.csv", *asked)
    pipe(monkeypatch, OPEN)
    for done in (read, typed("validate", "-", *asked)):
        assert done.returncode == 3 and b"the quote opened on line 3 is never" in done.stderr
        good, bad = lines(done.stdout)
        assert good["id"] == "1" and bad["raw"] == '2,"y,no\n3,z,yes'
    assert b"line 3, the quote opened on line 3 is never" in typed("agreement", "a.csv").stderr


@pytest.mark.parametrize("content", ["x" * 4_100_000, ["x" * 100] * 45_000], ids=["text", "list"])
def test_an_error_line_carries_no_field_of_megabytes(typed: Typed, content: object) -> None:
    asked = ("--ask", "Is it polite?", "-m", "scripted:yes.yaml", "-q")
    typed.write("a.jsonl", [{"id": "long", "mail": content}, {"id": "b", "mail": "Hi"}])
    long, short = lines(typed("validate", "a.jsonl", *asked).stdout)
    assert long["judge"]["verdict"] == "error" and long["id"] == "long"
    assert long["mail"].endswith("characters in all]") and len(long["mail"]) < 3_000
    assert short["judge"]["verdict"] == "pass"


@pytest.mark.parametrize(
    ("content", "numbers"),
    [
        ('[{"text": "a"}, {"text": "b"}, {"text": "c"}]', (1, 2, 3)),
        ('{"rows": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}', (1, 2, 3)),
        ('{"text": {"0": "a", "1": "b", "2": "c"}, "n": {"0": 1, "1": 2, "2": 3}}', (1, 2, 3)),
        ('[{"text": "a"},\n\n{"text": "b"}, {"text": "c"}]', (1, 3, 4)),
        ('[\n{"text":\n"a"},\n{"text": "b"},\n{"text": "c"}\n]', (2, 4, 5)),
    ],
)
def test_records_on_one_line_are_told_apart(
    typed: Typed, content: str, numbers: tuple[int, ...]
) -> None:
    (typed.folder / "l.json").write_text(content)
    typed.script("yes.yaml", [{"reply": {"quote": None, "reason": "So.", "answer": "yes"}}])
    asked = ("l.json", "--ask", "Polite?", "--on", "text")
    code, out, told = typed.text("validate", *asked, "-m", "scripted:yes.yaml")
    assert code == 0, told
    assert [line["judge"]["name"] for line in lines(out.encode())] == [
        f"l.json:{number}" for number in numbers
    ]
    code, _, told = typed.text("label", *asked, "--sheet", "sheet.csv", "--workers", "1")
    assert code == 0 and "3 rows about 3 records" in told, told


TORN = 'id,text\na,thanks\nb,x,"=y",z thank you\n'
WHY = "the row has 4 cells, the header 2"
KIND = {"quote": None, "reason": "Kind.", "answer": "yes"}


@pytest.mark.parametrize("on", [(), ("--on", "text")])
@pytest.mark.parametrize(
    ("first", "name"),
    [
        *[(file, file) for file in ("t.csv", "t.xlsx", "t.parquet", "judged.jsonl")],
        ("t.csv", "t.csv.jsonl"),
        ("judged.jsonl", "frame.json"),
        ("judged.jsonl", "frame.parquet"),
    ],
)
def test_input_that_cannot_be_read_stays_so_when_it_is_judged_again(
    typed: Typed, first: str, name: str, on: tuple[str, ...]
) -> None:
    asked = ("--ask", "Polite?", "-m", typed.script("yes.yaml", [{"reply": KIND}]))
    (typed.folder / "torn.csv").write_text(TORN)
    assert typed("validate", "torn.csv", *asked, "-o", first).returncode == 3
    if name.startswith("frame"):  # Each row of a frame has all fields, nested ones, too.
        pandas = pytest.importorskip("pandas")
        frame = pandas.read_json(typed.folder / first, lines=True)
        if name == "frame.json":
            frame.to_json(name, orient="records")
        else:
            frame.to_parquet(name)
    for source, out in ((name, "again.csv"), ("again.csv", "more.jsonl")):
        code, _, told = typed.text("validate", source, *asked, *on, "-o", out)
        assert code == 3 and WHY in told and "1 of 2 records pass" in told, told
    good, bad = map(json.loads, typed.read("more.jsonl").splitlines())
    assert (good["judge"]["verdict"], bad["judge"]["verdict"]) == ("pass", "error")
    assert bad["judge"]["error"] == {"type": "bad-input", "line": 3, "message": WHY}
    assert bad.keys() == {"raw", "judge"} and "z thank you" in bad["raw"]
    typed("label", name, *asked[:2], *on, "--sheet", "sheet.csv")
    assert b"thanks" in typed.read("sheet.csv") and b"thank you" not in typed.read("sheet.csv")


def test_in_memory_too_it_stays_unreadable(typed: Typed) -> None:
    asked = {"ask": "Polite?", "model": typed.script("yes.yaml", [{"reply": KIND}])}
    (typed.folder / "torn.csv").write_text(TORN)
    first = judge.validate("torn.csv", **asked).all()
    for records in (first, [one.line for one in first], [one.to_dict() for one in first]):
        good, bad = judge.validate(records, **asked).all()
        assert (good.verdict, bad.verdict) == ("pass", "error")
        assert bad.error is not None and bad.error.message == WHY
        assert bad.record == first[1].record


ERROR = {"verdict": "error", "error": {"type": "bad-input", "message": "torn", "line": 1}}


@pytest.mark.parametrize(
    "record",
    [
        {"raw": "thanks"},
        {"raw": "thanks", "judge": "a person"},
        {"raw": "thanks", "judge": {"verdict": "error", "fingerprint": "0f", **ERROR}},
        {"raw": "thanks", "judge": {"verdict": "pass", "fingerprint": "0f"}},
        {"raw": "thanks", "id": "a", "judge": ERROR},
        {"raw": "thanks", "judge.verdict": "error", "judge.error": "x", "judge.fingerprint": "0f"},
        {"raw": "thanks", "judge.verdict": "error", "judge.error": None},
    ],
)
def test_a_field_raw_of_the_users_own_is_a_field(typed: Typed, record: dict[str, Any]) -> None:
    typed.write("in.jsonl", [record])
    model = typed.script("yes.yaml", [{"when": {"contains": "thanks"}, "reply": KIND}])
    code, out, told = typed.text("validate", "in.jsonl", "--ask", "Polite?", "-m", model, "-q")
    assert code == 0 and json.loads(out)["judge"]["verdict"] == "pass", told
