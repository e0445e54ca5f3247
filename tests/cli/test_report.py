"""`judge report` as a user types it: its inputs, refusals and output files."""

from __future__ import annotations

import json

from tests.report.pages import Seen, check, entries, record, rows

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
    assert "21 pass after repair" in seen.text
    drawn = entries(html)
    assert sum(entry["judge"].get("original_verdict") == "fail" for entry in drawn) == 5
    texts = [{name: content for name, content, _ in entry["texts"]} for entry in drawn]
    assert sum(isinstance(content, list) for text in texts for content in text.values()) > 24
    for line, text in zip(typed.read("out.jsonl").decode().splitlines(), texts, strict=True):
        told = text["story"]
        whole = told if isinstance(told, str) else "".join(piece[0] for piece in told)
        assert json.loads(line)["story"] == whole


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
    assert "1 line could not be read as output of judge; the first: line 3: " in told
    words = Seen(typed.read("page.html").decode()).words
    assert "1 further line could not be read as output of judge validate" in words


def test_two_runs_stand_beside_one_another_and_parts_of_one_together(typed: Typed) -> None:
    verdicts = {"a.jsonl": ["pass", "pass", "fail"], "b.jsonl": ["fail", "pass", "fail"]}
    for name, of_run in verdicts.items():
        lines = [record(v, check(verdict=v), id=f"r{n}") for n, v in enumerate(of_run)]
        typed.write(name, lines)
    typed.write("c.jsonl", [record("pass", check(), id="r9")])
    told = typed.text("report", "a.jsonl", "b.jsonl", "-o", "two.html", "--title", "Old & new")
    assert told[0] == 0, told
    html = typed.read("two.html").decode()
    words = Seen(html).words
    assert "Old & new" in words and "2 runs on the 3 records that they share." in words
    heads, whole, *_ = rows(html, "Differences")
    row = dict(zip(heads, whole, strict=True))
    assert (row["pairs"], row["A, not B"], row["B, not A"]) == ("3", "1", "0")
    assert [(entry["run"], entry["key"]) for entry in entries(html)][2:4] == [
        (0, "id r2"),
        (1, "id r0"),
    ]
    assert typed.text("report", "a.jsonl", "c.jsonl", "-o", "one.html")[0] == 0
    words = Seen(typed.read("one.html").decode()).words
    assert "4 records, 3 of them pass" in words and "their records are counted together" in words
    first = typed.read("two.html")
    typed("report", "a.jsonl", "b.jsonl", "-o", "two.html", "--title", "Old & new", "--overwrite")
    assert typed.read("two.html") == first
