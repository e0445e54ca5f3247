"""`judge report` as it is typed: what it reads, what it refuses, what it leaves behind."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from tests.cli.conftest import FIXTURES
from tests.cli.typed import Typed
from tests.report.pages import Seen, record, rows


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    return Typed(tmp_path, monkeypatch, capfd)


def test_the_page_of_a_real_run_counts_as_its_summary_does(typed: Typed) -> None:
    words = (str(FIXTURES / "norms.jsonl"), "-m", f"scripted:{FIXTURES / 'judge.yaml'}")
    typed("validate", *words, "-o", "out.jsonl", "--summary", "summary.json", "-q")
    summary = json.loads((typed.folder / "summary.json").read_text())
    done = typed("report", "out.jsonl", "-o", "page.html")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"wrote page.html: 24 records; shown: 3 of 3 fail, 21 of 21 pass" in done.stderr
    html = (typed.folder / "page.html").read_text("utf-8")
    counts = {row[0]: int(row[1]) for row in rows(html, "Verdicts")[1:]}
    assert counts == summary["verdicts"]
    head, *body = rows(html, "Checks")
    told = {
        row[0]: {name: int(n) for name, n in zip(head[1:7], row[1:7], strict=True) if n != "0"}
        for row in body
    }
    assert told == summary["checks"]
    seen = Seen(html)
    marks = sum(tag == "mark" for tag, _ in seen.elements)
    assert marks > 24
    assert "does not stand in the text" not in seen.words
    for line in (typed.folder / "out.jsonl").read_text("utf-8").splitlines():
        assert json.loads(line)["story"] in seen.text


def test_an_existing_page_and_the_input_are_not_written_over(typed: Typed) -> None:
    typed.write("out.jsonl", [record()])
    assert typed("report", "out.jsonl", "-o", "page.html", "-q").returncode == 0
    first = (typed.folder / "page.html").read_bytes()
    typed.write("out.jsonl", [record("fail")])
    done = typed("report", "out.jsonl", "-o", "page.html")
    assert done.returncode == 2
    assert b"page.html exists. Replace it (--overwrite)" in done.stderr
    assert (typed.folder / "page.html").read_bytes() == first
    assert typed("report", "out.jsonl", "-o", "page.html", "--overwrite").returncode == 0
    assert (typed.folder / "page.html").read_bytes() != first
    done = typed("report", "out.jsonl", "-o", "out.jsonl", "--overwrite")
    assert done.returncode == 2 and b"out.jsonl is the input" in done.stderr
    assert sorted(path.name for path in typed.folder.iterdir()) == ["out.jsonl", "page.html"]


def test_a_page_that_cannot_be_made_leaves_the_old_one(typed: Typed) -> None:
    (typed.folder / "page.html").write_text("old")
    typed.write("records.jsonl", [{"story": "s"}, {"story": "t"}])
    done = typed("report", "records.jsonl", "-o", "page.html", "--overwrite")
    assert done.returncode == 2
    assert b"records.jsonl: none of the 2 lines was written by judge validate" in done.stderr
    assert (typed.folder / "page.html").read_text() == "old"
    assert len(list(typed.folder.iterdir())) == 2
    done = typed("report", "absent.jsonl", "-o", "new.html")
    assert done.returncode == 2 and b"absent.jsonl does not exist" in done.stderr
    typed.write("out.jsonl", [record()])
    done = typed("report", "out.jsonl", "-o", "no/such/page.html")
    assert done.returncode == 2
    assert b"no/such/page.html: cannot be written: No such file" in done.stderr
    assert b"Traceback" not in done.stderr


def test_torn_and_foreign_lines_are_shown_and_told_by_the_exit_code(typed: Typed) -> None:
    typed.write("out.jsonl", [record(), record("fail")])
    with (typed.folder / "out.jsonl").open("ab") as file:
        file.write(b'{"id": "x", "sto\xff')
    done = typed("report", "out.jsonl", "-o", "page.html")
    assert done.returncode == 3
    assert b"1 line could not be read as output of judge validate" in done.stderr
    seen = Seen((typed.folder / "page.html").read_text("utf-8"))
    assert '{"id": "x", "sto\\xff' in seen.text
    assert "2 records, 1 of them pass: 50.0%" in seen.words


def test_names_without_a_form_in_utf8_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes = {"relevance": {"ann": "yes", "bo": "yes", "cy": "no"}}
    lines = [
        {"rule_of_thumb": "Greet.", "story": f"S{n}", "country": "A\ud800", "labels": votes}
        for n in range(4)
    ]
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["judge", "agreement", str(labels), "--by", "country", "--draws", "0"]
    for more in ([], ["--json"]):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "utf-8"))
        monkeypatch.setattr(sys, "argv", words + more)
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        assert not ended.value.code
        assert b"A\\ud800" in written.getvalue()
    assert "A\\ud800" in json.dumps(json.loads(written.getvalue()))
