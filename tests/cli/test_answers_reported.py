"""`judge report` and `judge export` read the lines of `judge evaluate` like judged ones."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree

import pytest

from tests.report.pages import Seen, entries

from .typed import Typed

NORM = {"country": "egypt", "rule_of_thumb": "Greet.", "story": "Ann came."}


@pytest.fixture
def answered(typed: Typed) -> Typed:
    golds = ("yes", "no", "neutral")
    typed.write("n.jsonl", [{"id": str(n), **NORM, "label": gold} for n, gold in enumerate(golds)])
    unread = {"when": {"id": "2/country"}, "reply": {"answer": "maybe"}}
    typed.script("m.yaml", [unread, {"reply": {"answer": "yes"}}])
    run = ("evaluate", "normad", "n.jsonl", "-m", "scripted:m.yaml", "--condition", "country")
    assert typed(*run, "-o", "a.jsonl", "-q").returncode == 3
    return typed


def test_a_page_shows_what_was_answered_and_what_is_right(answered: Typed) -> None:
    code, out, told = answered.text("report", "a.jsonl", "-o", "page.html", "--by", "cluster")
    assert (code, out) == (0, ""), told
    assert "3 records; shown: 1 of 1 fail, 1 of 1 unreadable, 1 of 1 pass" in told
    html = answered.read("page.html").decode()
    words = Seen(html).words
    assert "Workflow normad 3 records: 1 pass, 1 fail, 1 unreadable" in words
    assert "answer: yes; right: no" in json.dumps(entries(html)) and "African-Islamic" in words


def test_an_export_has_a_row_for_each_answer(answered: Typed) -> None:
    for name in ("t.csv", "t.xml", "t.md"):
        assert answered.text("export", "a.jsonl", "-o", name)[0] == 0
    rows = list(csv.DictReader(answered.read("t.csv").decode().splitlines()))
    ours = ("judge.verdict", "judge.workflow", "judge.check")
    assert [(row["id"], *map(row.get, ours)) for row in rows] == [
        ("0/country", "pass", "normad", ""),
        ("1/country", "fail", "normad", "country"),
        ("2/country", "unreadable", "normad", "country"),
    ]
    assert rows[1]["judge.reason"] == "answer: yes; right: no"
    assert rows[1]["rule_of_thumb"] == "Greet."
    suite = ElementTree.fromstring(answered.read("t.xml").decode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert "1/country" in answered.read("t.md").decode()


def test_lines_edited_by_hand_are_no_fault_of_judge(answered: Typed) -> None:
    parts = ({"steps": [1]}, {"steps": {"checks": 5}}, {"reason": [1]})
    made = map(json.loads, answered.read("a.jsonl").splitlines())
    edited = [{**m, "judge": m["judge"] | part} for m, part in zip(made, parts, strict=True)]
    answered.write("e.jsonl", edited)
    code, _, told = answered.text("report", "e.jsonl", "-o", "page.html")
    assert code == 0 and "3 records; shown: 1 of 1 fail" in told, told
