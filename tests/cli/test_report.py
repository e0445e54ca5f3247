"""`judge report` as it is typed: what it reads, what it refuses, what it leaves behind."""

from __future__ import annotations

import json

from tests.report.pages import Seen, record, rows

from .conftest import FIXTURES
from .typed import Typed


def test_the_page_of_a_real_run_counts_as_its_summary_does(typed: Typed) -> None:
    words = (str(FIXTURES / "norms.jsonl"), "-m", f"scripted:{FIXTURES / 'judge.yaml'}")
    run = ("validate", *words, "--repair", "-o", "out.jsonl", "--summary", "summary.json", "-q")
    run = (*run, "--by", "label")
    assert typed(*run).returncode == 0
    summary = json.loads(typed.read("summary.json"))
    code, out, told = typed.text("report", "out.jsonl", "-o", "page.html", "--by", "label")
    assert (code, out) == (0, "")
    assert "wrote page.html: 24 records; shown: 3 of 3 fail, 21 of 21 pass" in told
    html = typed.read("page.html").decode()
    counts = {row[0]: int(row[1]) for row in rows(html, "Verdicts")[1:]}
    assert counts == summary["verdicts"]
    heads, *slices = rows(html, "By <bdi>label</bdi>")
    told_by = [dict(zip(heads[1:], map(int, row[1:3]), strict=False)) for row in slices]
    assert dict(zip([row[0] for row in slices], told_by, strict=True)) == summary["by"]["label"]
    code, _, told_by_none = typed.text("report", "out.jsonl", "-o", "none.html", "--by", "lable")
    assert code == 2 and "--by lable: no record has this field; did you mean label?" in told_by_none
    assert not (typed.folder / "none.html").exists()
    seen = Seen(html)
    assert "24 records, 16 of them pass as they came in: 66.7%" in seen.text
    assert "21 pass after repair" in seen.text and "as it came in: fail" in seen.text
    assert sum(tag == "mark" for tag, _ in seen.elements) > 24
    for line in typed.read("out.jsonl").decode().splitlines():
        assert json.loads(line)["story"] in seen.text


def test_an_existing_page_and_the_input_are_not_written_over(typed: Typed) -> None:
    typed.write("out.jsonl", [record()])
    typed.write("page.html", [], "mine")
    typed.write("records.jsonl", [{"story": "s"}])
    for words, message in (
        (("out.jsonl", "-o", "page.html"), "page.html exists. Replace it (--overwrite)"),
        (("out.jsonl", "-o", "out.jsonl", "--overwrite"), "out.jsonl is the input"),
        (("absent.jsonl", "-o", "new.html"), "absent.jsonl does not exist"),
        (("out.jsonl", "-o", "no/such/page.html"), "no/such/page.html: cannot be written: No such"),
        (("records.jsonl", "-o", "page.html", "--overwrite"), "was written by judge validate"),
    ):
        code, _, told = typed.text("report", *words)
        assert code == 2 and message in told, told
        assert "Traceback" not in told
    assert typed.read("page.html") == b"mine"
    assert typed("report", "out.jsonl", "-o", "page.html", "--overwrite").returncode == 0
    assert typed.read("page.html").startswith(b"<!")


def test_torn_and_foreign_lines_are_shown_and_told_by_the_exit_code(typed: Typed) -> None:
    typed.write("out.jsonl", [record(), record("fail")])
    with (typed.folder / "out.jsonl").open("ab") as file:
        file.write(b'{"id": "x", "sto\xff')
    code, _, told = typed.text("report", "out.jsonl", "-o", "page.html")
    assert code == 3
    assert "1 line could not be read as output of judge, the first: line 3: " in told
    assert "1 further line could not be read" in Seen(typed.read("page.html").decode()).words
