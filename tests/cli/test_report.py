"""`judge report` as a user types it: its inputs, refusals and output files."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    words = ("report", "out.jsonl", "-o", "none.html", "--by", "label", "--by", "lable")
    code, _, told_by_none = typed.text(*words)
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


LABELS: list[tuple[str, Any]] = [
    *(("yes", "yes"), ("no", "No."), ("yes", "unsure"), ("yes", {"x": "yes", "y": "no"})),
    *(("yes", "TRUE"), ("no", "I don't know"), ("no", "n/a"), ("yes", 1), ("yes", "maybe")),
    *(("yes", {"x": "no", "y": "no", "z": "yes"}), ("yes", {"x": "yes", "y": "yes", "z": "maybe"})),
]
"""The judge's answer and the label: five are alike or not (four are); n/a and a tie are no label;
of the others one is unsure, one knows nothing, and two say what is no answer."""

SCORES = [("0.5", 0), ("0.5", 1), ("1", 0.5), ("0", 0.5), ("0", 0), ("1", 1)]


@pytest.mark.parametrize(
    ("answers", "flags", "alike", "of", "left_out"),
    [
        (LABELS, (), 4, 5, 4),
        (SCORES, ("--answers", "0,0.5,1", "--pass", ">= 1"), 2, 6, 0),
        # A tie of the two orders' answers is none of the question's answers.
        ([("a", "a"), ("b", "b"), ("b", "a"), ("a", "tie")], ("--answers", "a,b"), 2, 3, 1),
    ],
)
def test_labels_are_held_against_the_judge_as_calibrate_holds_them(
    typed: Typed, answers: Any, flags: tuple[str, ...], alike: int, of: int, left_out: int
) -> None:
    typed.write(
        "in.jsonl",
        [{"id": f"r{n}", "a": a, "labels": {"q": b}} for n, (a, b) in enumerate(answers)],
    )
    reply = '{"quote": null, "reason": "r", "answer": "{{ a }}"}'
    model = ("-m", typed.script("j.yaml", [{"reply": reply}]))
    ask = ("--ask", "Is it good?", "--name", "q", "--on", "id", *flags, *model)
    typed("validate", "in.jsonl", *ask, "-o", "out.jsonl", "-q")
    typed("report", "out.jsonl", "-o", "page.html")
    words = Seen(typed.read("page.html").decode()).words
    assert f"The judge agrees with {alike / of:.1%} of {of} labels" in words
    more = f"{left_out} more are" if left_out > 1 else f"{left_out} more is"
    assert (f"{more} left out" in words) == (left_out > 0)
    _, out, _ = typed.text("calibrate", "in.jsonl", *ask, "--no-controls", "--json")
    (judge,) = json.loads(out)["checks"][0]["judges"]
    accuracy = judge["uncalibrated"]["accuracy"]
    assert (accuracy["n"], accuracy["value"]) == (of, pytest.approx(alike / of))


def test_a_label_of_an_entry_is_held_against_the_answer_to_that_entry(typed: Typed) -> None:
    """The first two entries are one text: the third label is about the third entry."""
    claims = ["The sky is red.", "The sky is red.", "Grass is green."]
    typed.write("in.jsonl", [{"id": "r", "claims": claims, "labels": {"so": ["no", "no", "yes"]}}])
    (typed.folder / "so.yaml").write_text("name: so\nquestion: Is it so?\neach: claims\n")
    no = {"when": {"contains": "red"}, "p_yes": 0.1}
    model = ("-m", typed.script("j.yaml", [no, {"p_yes": 0.9}], method="logprobs"))
    typed("validate", "in.jsonl", "--rubric", "./so.yaml", *model, "-o", "out.jsonl", "-q")
    typed("report", "out.jsonl", "-o", "page.html")
    assert "agrees with 100.0% of 3 labels" in Seen(typed.read("page.html").decode()).words


def test_scores_without_their_scale_are_held_against_no_label(typed: Typed) -> None:
    made = check("polite", "answered", score=3.6)
    typed.write("out.jsonl", [record("answered", made) | {"labels": {"polite": "4"}}])
    typed("report", "out.jsonl", "-o", "page.html")
    words = Seen(typed.read("page.html").decode()).words
    assert "The judge agrees with – of 0 labels" in words and "1 more is left out" in words
    assert "without the description beside the lines (OUT.run.json)" in words


def test_labels_that_stand_for_unlike_numbers_of_records_are_told(typed: Typed) -> None:
    lines = [
        record("pass", check("polite"), id=str(n))
        | {"labels": {"polite": {"ann": "pass"}}, "annotators": {"ann": {"weight": 1 + n}}}
        for n in range(2)
    ]
    typed.write("out.jsonl", lines)
    typed("report", "out.jsonl", "-o", "page.html")
    words = Seen(typed.read("page.html").decode()).words
    assert "The labels stand for different numbers of records; here each counts once" in words
