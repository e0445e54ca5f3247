"""Bad input through the real command: what came of each case, as docs/reliability.md has it."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.cli.typed import Typed

from .page import Outcome

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
    (tmp_path / "yes.yaml").write_text('{"reading": "probability", "replies": [{"p_yes": 0.9}]}')
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
    "JSON lists nested 10,000 deep, never closed": ("a.jsonl", among(b"[" * 10_000)),
    "NaN": ("a.jsonl", among(b'{"a": NaN}')),
    "-Infinity": ("a.jsonl", among(b'{"a": -Infinity}')),
    "an exponent of 999": ("a.jsonl", among(b'{"a": 1e999}')),
    "an integer of 5,000 digits": ("a.jsonl", among(b'{"a": ' + b"9" * 5000 + b"}")),
    "an integer of 4,000 digits in a good record": (
        "a.jsonl",
        good(1)[:-2] + b', "n": ' + b"9" * 4000 + b"}\n",
    ),
    "a lone surrogate in story, id and key": (
        "a.jsonl",
        good(1, story="Ann \ud800 greets", **{"k\udfff": 1}).replace(b'"n1"', b'"\\ud800"'),
    ),
    "invalid UTF-8": ("a.jsonl", among(b'{"a": "\xff\xfe"}')),
    "a byte-order mark": ("a.jsonl", b"\xef\xbb\xbf" + good(1)),
    "NUL bytes": ("a.jsonl", among(b"\0\0{}\0")),
    "NUL written as \\u0000 in the story": ("a.jsonl", good(1, story="Ann\0 greets")),
    "CRLF line ends": ("a.jsonl", (good(1) + good(2)).replace(b"\n", b"\r\n")),
    "right-to-left and zero-width characters in id and story": (
        "a.jsonl",
        good(1).replace(b"n1", "\u202e\u200b1".encode()) + good(2, story="\u200fAnn \u2067x"),
    ),
    "two ids that differ by a zero-width space": (
        "a.jsonl",
        good(1) + good(1).replace(b"n1", "n\u200b1".encode()),
    ),
    "a duplicate key": ("a.jsonl", among(b'{"id": 1, "id": 2}')),
    "a template in the story": ("a.jsonl", good(1, story="{{ 7*7 }} {% for x in y %}")),
    "an empty file": ("a.jsonl", b""),
    "a truncated gz": ("a.jsonl.gz", gzip.compress(good(1) * 1, mtime=0)[:-6]),
    "a truncated zst": (
        "a.jsonl.zst",
        # What cannot be packed is read up to the cut: a newline in it would make a line more.
        zstandard.compress(good(1)) + zstandard.compress(bytes(range(100, 199)))[:50],
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
    (typed.folder / "b.parquet").write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1")
    done = typed("validate", "b.parquet", "-m", "scripted:yes.yaml")
    assert b"b.parquet is not a Parquet file" in done.stderr
    told("Parquet: rubbish between its marks", f"exit {done.returncode}; not a Parquet file")


def test_no_file(typed: Typed, told: Told) -> None:
    done = typed("validate", ".", "-m", "scripted:yes.yaml")
    told("a folder as input", f"exit {done.returncode}; {done.stderr.decode().strip()}")
    told("/dev/null as input", judged(typed, "/dev/null")[0])


def test_a_fifo(typed: Typed, told: Told) -> None:
    path = typed.folder / "pipe.jsonl"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(good(1) + good(2)), daemon=True)
    writer.start()
    told("a FIFO as input", judged(typed, "pipe.jsonl")[0])
    writer.join(20)


def test_a_hundred_thousand_values(typed: Typed, told: Told) -> None:
    values = [f"tea {number}--good" for number in range(100_000)]
    record = {"id": "s", "story": "Ann likes tea.", "values": [*values, "no attitude"]}
    (typed.folder / "a.jsonl").write_text(json.dumps(record) + "\n")
    seen, lines = judged(typed, "a.jsonl")
    assert len(lines[0]["values"]) == 100_001
    told("100,000 values and one that is none", seen)


def test_five_thousand_good_values(typed: Typed, told: Told) -> None:
    values = [f"tea {number}--good" for number in range(5_000)]
    typed.write("a.jsonl", [{"id": "s", "story": "Ann likes tea.", "values": values}])
    words = ("-m", "scripted:yes.yaml", "--check", "incorporation", "--no-cache", "-q")
    done = typed("validate", "a.jsonl", *words)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["values"] == values
    told("5,000 values", described(done.returncode, lines))


FILES = {
    "a rubric nested 10,000 deep": "name: " + "[" * 10_000,
    "a rubric nested 100,000 deep, closed": "name: " + "[" * 100_000 + "]" * 100_000,
    "a rubric whose anchors explode": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "a rubric with a key twice": "name: a\nname: b\n",
    "a rubric that holds itself": "name: &a [*a]\n",
}
QUESTIONS = {
    "a question that reaches for __class__": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a question with loops of loops": "{% for a in range(99999) %}{% for b in range(99999) %}x"
    "{% endfor %}{% endfor %}",
    "a question that multiplies text": "{{ 'a' * 10**9 }}",
    "a question that pads text": "{{ 'a'|center(10**9) }}",
    "a question that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a question nested 5,000 deep": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
}


@pytest.mark.parametrize("fault", [*FILES, *QUESTIONS])
def test_a_rubric(typed: Typed, told: Told, fault: str) -> None:
    if fault in FILES:
        text = FILES[fault]
    else:
        question = json.dumps(QUESTIONS[fault])
        text = (
            "name: mine\ntitle: t\nsource: s\nfields: [story]\nreply: YesNo\n"
            "verdict: {pass: 'yes'}\n"
            f"readings: {{structured: {{question: {question}}}}}\n"
        )
    (typed.folder / "mine.yaml").write_text(text)
    (typed.folder / "a.jsonl").write_bytes(good(1))
    done = typed("validate", "a.jsonl", "-m", "scripted:yes.yaml", "--rubric", "mine.yaml")
    assert b"Traceback" not in done.stderr
    told(fault, f"exit {done.returncode}; {done.stderr.decode().strip()}")


SCRIPTS = {
    "a script nested 10,000 deep": "replies: " + "[" * 10_000 + "]" * 10_000,
    "a script whose anchors explode": "replies:\n- reply: {"
    + ", ".join(
        f"{after}: &{after} [{', '.join([f'*{before}' if before else 'x'] * 9)}]"
        for before, after in zip(["", *"abcdefgh"], "abcdefghi", strict=True)
    )
    + "}\n",
    "a script with a date that is none": "replies: 2001-99-99\n",
}


@pytest.mark.parametrize("fault", SCRIPTS)
def test_a_script(typed: Typed, told: Told, fault: str) -> None:
    (typed.folder / "s.yaml").write_text(SCRIPTS[fault])
    (typed.folder / "a.jsonl").write_bytes(good(1))
    done = typed("validate", "a.jsonl", "-m", "scripted:s.yaml")
    told(fault, f"exit {done.returncode}; {done.stderr.decode().strip()}")


def test_settings_nested_deep(typed: Typed, told: Told) -> None:
    (typed.folder / "judge.toml").write_text("model = " + "[" * 10_000 + "]" * 10_000)
    (typed.folder / "a.jsonl").write_bytes(good(1))
    done = typed("validate", "a.jsonl")
    told("a judge.toml nested deep", f"exit {done.returncode}; {done.stderr.decode().strip()}")


def test_a_task_that_explodes(told: Told) -> None:
    from judge.errors import UsageError
    from judge.task import parse_task

    with pytest.raises(UsageError) as refused:
        parse_task(FILES["a rubric whose anchors explode"], "t.yaml")
    told("a task file whose anchors explode", str(refused.value))


def test_terminal_escapes_are_not_printed(typed: Typed, told: Told) -> None:
    steering = "\x1b]0;gone\x07\x1b[2J\u202e\x9b2J"
    labelled = {"story": "A", "labels": {f"check{steering}": {"Ann": "yes", "Bo": "no"}}}
    typed.write("l.jsonl", [labelled, labelled, {"labels": {}, "annotators": {steering: 1}}])
    for more in ([], ["--json"]):
        done = typed("agreement", "l.jsonl", *more)
        shown = (done.stdout + done.stderr).decode()
        assert "check" in shown
        assert not set(shown) & set("\x1b\x07\x9b\u202e"), shown
    assert f"check{steering}" in json.dumps(json.loads(done.stdout), ensure_ascii=False).replace(
        "\\u001b", "\x1b"
    ).replace("\\u0007", "\x07")
    told(
        "terminal escapes in labels (`judge agreement`, tables and --json)",
        f"exit {done.returncode}; written as \\u001b, none reaches the terminal",
    )


def test_half_a_surrogate_pair_in_a_table(typed: Typed, told: Told) -> None:
    labelled = {"story": "A", "labels": {"c\ud800": {"Ann": "yes", "Bo": "no"}}}
    typed.write("l.jsonl", [labelled])
    for more in ([], ["--json"]):
        done = typed("agreement", "l.jsonl", *more)
        assert done.returncode == 0 and b"c\\ud800" in done.stdout, done.stderr
    assert json.loads(done.stdout)
    told("a lone surrogate in labels (`judge agreement`)", f"exit {done.returncode}; \\ud800")


def test_formulas_in_a_table(tmp_path: Path, told: Told) -> None:
    import csv

    from judge.evaluation.tables import Row, Table
    from judge.report.results import write

    labels = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "plain", "a=b"]
    rows = [Row((label,), {"n": -1.5}) for label in labels]
    write([Table("t", "T", ("by",), ("n",), rows)], tmp_path, benchmark="b", model="m")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.reader(file))[1:]
    assert [row[0] for row in found] == [
        *(f"'{label}" for label in labels[:5]),
        "'\nx",
        "plain",
        "a=b",
    ]
    assert {row[1] for row in found} == {"-1.5"}
    told("formulas in labels of a CSV table", "an apostrophe in front; numbers stay numbers")


# ---------------------------------------------------------------- memory, in processes of their own

# The peak that getrusage tells may be that of the process which forked; VmHWM begins with exec.
MEASURED = """
from pathlib import Path
from judge.cli import main
try:
    main()
finally:
    status = Path("/proc/self/status").read_text()
    Path("peak").write_text(status.split("VmHWM:")[1].split()[0])
"""
MOST_MB = 1024


def measured(folder: Path, name: str) -> str:
    (folder / "yes.yaml").write_text('{"reading": "probability", "replies": [{"p_yes": 0.9}]}')
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "validate", name, *CHECK, "-q"],
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    peak = int((folder / "peak").read_text()) // 1024
    assert peak < MOST_MB, f"{peak} MB"
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
    return f"{described(done.returncode, lines)}; below {MOST_MB} MB"


def bomb(kind: str, megabytes: int) -> bytes:
    packed = io.BytesIO()
    opened: Any = (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0)
        if kind == "gz"
        else zstandard.ZstdCompressor().stream_writer(packed, closefd=False)
    )
    with opened as file:
        file.write(good(1))
        for _ in range(megabytes):
            file.write(b" " * 500_000 + b"a" * 500_000)
        file.write(b"\n" + good(3))
    return packed.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_bomb(tmp_path: Path, told: Told, kind: str) -> None:
    (tmp_path / f"a.jsonl.{kind}").write_bytes(bomb(kind, 200))
    told(f"a line of 200 MB in a small {kind}", measured(tmp_path, f"a.jsonl.{kind}"))


@pytest.mark.slow
def test_fifty_megabytes(tmp_path: Path, told: Told) -> None:
    (tmp_path / "a.jsonl").write_bytes(good(1, story="Ann greets Bo. " * 3_500_000) + good(2))
    told("a story of 50 MB", measured(tmp_path, "a.jsonl"))


def test_a_record_without_an_end(typed: Typed, monkeypatch: pytest.MonkeyPatch, told: Told) -> None:
    monkeypatch.setattr("judge.records.streams.LONGEST", 100 << 20)
    (typed.folder / "a.jsonl").symlink_to("/dev/zero")
    told("/dev/zero (with the bound at 100 MiB in place of 4 GiB)", judged(typed, "a.jsonl")[0])
