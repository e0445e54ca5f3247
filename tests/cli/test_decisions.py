"""`--decisions`: failed records are put to people, and their decisions are read back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import judge
from judge.records.lines import Line
from judge.run.decisions import Decisions
from tests.report.pages import entries

from .typed import Typed

MAILS = [{"id": f"m{n}", "mail": text} for n, text in enumerate(["Dear Ann", "Hm", "Fool"], 1)]
ASK = ("--ask", "Is it polite?", "-m", "scripted:judge.yaml")
RUN = ("validate", "mails.jsonl", *ASK, "-o", "out.jsonl")


@pytest.fixture
def judged(typed: Typed) -> Typed:
    """Three mails, of which the judge fails the last two; these are up for review."""
    typed.write("mails.jsonl", MAILS)
    replies: list[dict[str, Any]] = [{"when": {"contains": "Dear"}, "p_yes": 0.9}, {"p_yes": 0.1}]
    typed.script("judge.yaml", replies, method="logprobs")
    review = ("--review", "review.jsonl", "--review-verdicts", "fail")
    assert typed(*RUN, *review, "--fail-under", "0.6").returncode == 1
    return typed


def lines(typed: Typed, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in typed.read(name).splitlines()]


def decide(typed: Typed, **answers: Any) -> None:
    review = [
        {**line, "labels": {"question": answers[line["id"]]}} if line["id"] in answers else line
        for line in lines(typed, "review.jsonl")
    ]
    typed.write("review.jsonl", review)


def test_decisions_are_no_output(judged: Typed) -> None:
    decide(judged, m2="yes")
    before = judged.read("review.jsonl")
    run = ("validate", "mails.jsonl", *ASK, "--decisions", "review.jsonl", "--overwrite")
    for out in (("-o", "review.jsonl"), ("-o", "new.jsonl", "--review", "review.jsonl")):
        code, _, told = judged.text(*run, *out)
        assert code == 2 and "review.jsonl is the file of --decisions: name another file" in told
    assert judged.read("review.jsonl") == before


def test_people_may_answer_in_out(judged: Typed) -> None:
    judged.write(
        "out.jsonl", [line | {"labels": {"question": "yes"}} for line in lines(judged, "out.jsonl")]
    )
    code, _, told = judged.text(*RUN, "--resume", "--decisions", "out.jsonl")
    assert code == 0, told
    assert [line["judge"]["verdict"] for line in lines(judged, "out.jsonl")] == ["pass"] * 3


def test_a_decision_counts_for_gates_and_sets_and_lasts(judged: Typed) -> None:
    assert [line["id"] for line in lines(judged, "review.jsonl")] == ["m2", "m3"]
    decide(judged, m2="Yes")
    again = (*RUN, "--resume", "--decisions", "review.jsonl", "--summary", "s.json")
    code, _, told = judged.text(*again, "--fail-under", "0.6")
    assert code == 0, told
    summary = json.loads(judged.read("s.json"))
    assert summary["verdicts"] == {"pass": 2, "fail": 1} and summary["resumed"] == 2
    assert "answers" not in summary, "yes and no are counted as verdicts, whoever gives them"
    decided = lines(judged, "out.jsonl")[1]
    assert decided["id"] == "m2" and "labels" not in decided
    by = [(check["by"], check["verdict"]) for check in decided["judge"]["checks"]]
    assert by == [("final", "fail"), ("person", "pass")]
    written = judged.read("out.jsonl")
    assert judged(*again).returncode == 0 and json.loads(judged.read("s.json"))["resumed"] == 3
    assert judged.read("out.jsonl") == written
    fresh = ("validate", "mails.jsonl", *ASK, "-o", "fresh.jsonl", "--decisions", "review.jsonl")
    code, _, told = judged.text(*fresh, "--review", "left.jsonl", "--review-verdicts", "fail")
    assert code == 0 and "for people: 1 record in left.jsonl; answer under labels" in told
    told = judged.text(*fresh, "--overwrite", "--review", "none.jsonl")[2]
    assert "for people: no record in none.jsonl\n" in told
    assert judged.read("fresh.jsonl") == written
    assert [line["id"] for line in lines(judged, "left.jsonl")] == ["m3"]
    decide(judged, m2="yes", m3="no")
    rest = ("--review", "none.jsonl", "--review-verdicts", "fail", "--overwrite")
    assert judged(*fresh, *rest).returncode == 0
    assert lines(judged, "none.jsonl") == [], "a person has confirmed what failed"
    assert judged("build", "filtered", "out.jsonl", "-o", "sound.jsonl").returncode == 0
    assert [line["id"] for line in lines(judged, "sound.jsonl")] == ["m1", "m2"]
    assert judged("report", "out.jsonl", "-o", "page.html").returncode == 0
    assert "a person says yes" in json.dumps(entries(judged.read("page.html").decode()))


def test_tables_and_summaries_tell_who_decided_and_what_the_judge_said(judged: Typed) -> None:
    decide(judged, m2="yes", m3="no")
    again = (*RUN, "--resume", "--decisions", "review.jsonl", "--summary", "s.json")
    said = "people decided 2 records; verdicts changed: 1 from fail to pass"
    assert said in " ".join(judged.text(*again)[2].split())
    assert json.loads(judged.read("s.json"))["by_people"] == {"records": 2, "changed": 1}
    for name in ("o.csv", "o.xml", "o.md"):
        assert judged("export", "out.jsonl", "-o", name).returncode == 0
    with (judged.folder / "o.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    parts = ("by_people", "verdict", "judges_verdict")
    assert [[row[f"judge.{part}"] for part in parts] for row in rows] == [
        ["", "pass", ""],
        ["question", "pass", "fail"],
        ["question", "fail", "fail"],
    ]
    parts = ("answer", "judges_answer", "judges_verdict")
    assert [[row[f"question.{part}"] for part in parts] for row in rows] == [
        ["yes", "", ""],
        ["yes", "no", "fail"],
        ["no", "no", "fail"],
    ]
    assert rows[1]["judge.models"] == "scripted:judge.yaml"
    frame = judge.load_results(judged.folder / "out.jsonl").to_pandas()
    assert [*frame["judge.judges_verdict"].fillna("")] == ["", "fail", "fail"]
    cases = ElementTree.fromstring(judged.read("o.xml"))[0]
    assert [case.findtext("system-out") for case in cases] == [
        None,
        *["question: a person decided, the judges said no"] * 2,
    ]
    assert f"\n{said.capitalize()}.\n" in judged.read("o.md").decode()


def test_a_persons_score_counts_in_the_mean(typed: Typed) -> None:
    typed.write("mails.jsonl", MAILS[:2])
    reply = {"quote": None, "reason": "So so.", "answer": 2}
    typed.script("judge.yaml", [{"reply": reply}])
    scores = ("--answers", "1-5", "--pass", ">= 4", "--gate", "mean question >= 3")
    review = ("--review", "review.jsonl", "--review-verdicts", "fail")
    assert typed(*RUN, *scores, *review).returncode == 1
    decide(typed, m1=4)
    code, _, told = typed.text(*RUN, *scores, "--resume", "--decisions", "review.jsonl")
    assert (code, "mean score 3.00" in told) == (0, True), told


def test_several_people_decide_on_a_sheet(judged: Typed) -> None:
    sheet = ("label", "review.jsonl", "--ask", "Is it polite?", "--sheet", "s.csv")
    assert judged(*sheet).returncode == 0
    with (judged.folder / "s.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        polite = row["mail"] == "Hm" and row["annotator"] != "annotator-1"
        row["label"] = "yes" if polite else "no"
    with (judged.folder / "s.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    for rule, verdicts in (("half", ["pass", "pass", "fail"]), ("3/3", ["pass", "fail", "fail"])):
        words = ("agreement", "s.csv", "--records", "review.jsonl", "--majority", rule)
        assert judged(*words, "-o", "majority.jsonl", "--overwrite").returncode == 0
        run = (*RUN, "--overwrite", "--decisions", "majority.jsonl")
        assert judged(*run).returncode == 0
        assert [line["judge"]["verdict"] for line in lines(judged, "out.jsonl")] == verdicts


def test_bad_decisions_are_refused_before_anything_is_asked(judged: Typed) -> None:
    decide(judged, m2="Unsure.", m3=None)
    before = judged.read("out.jsonl")
    code, _, told = judged.text(*RUN, "--resume", "--decisions", "review.jsonl")
    assert code == 0 and "--decisions review.jsonl: holds no answer" in told
    assert judged.read("out.jsonl") == before, "nobody has decided"
    judged.write("s.csv", [], "item,check,annotator,mail,label\nm2,question,ann,Hm,yes\n")
    judged.write("ann.jsonl", [{"item": "m2", "check": "question", "label": "yes", "mail": "Hm"}])
    judged.write("tasks.json", [], json.dumps([{"data": {"item": "m2", "mail": "Hm"}}]))
    for answers in ("s.csv", "ann.jsonl", "tasks.json"):
        code, _, told = judged.text(*RUN, "--resume", "--decisions", answers)
        assert code == 2 and f"`judge agreement {answers} --records" in " ".join(told.split())
    decide(judged, m2="perhaps")
    before = judged.read("out.jsonl")
    code, out, told = judged.text(*RUN, "--resume", "--decisions", "review.jsonl")
    assert (code, out, judged.read("out.jsonl")) == (2, "", before)
    assert "review.jsonl, line 1: question must be one of yes, no, not 'perhaps'" in told
    judged.write("other.jsonl", [{"id": "x", "mail": "?", "labels": {"polite": "yes"}}])
    code, _, told = judged.text(*RUN, "--resume", "--decisions", "other.jsonl")
    assert code == 2 and "question of --ask, add --name polite" in " ".join(told.split())
    judged.write("other.jsonl", [{"id": "x", "mail": "?", "labels": {"question": "yes"}}])
    code, _, told = judged.text(*RUN, "--resume", "--decisions", "other.jsonl")
    assert code == 0 and "1 decided record is not among the input" in told
    code, _, told = judged.text(*RUN, "--resume", "--review-verdicts", "fail")
    assert code == 2 and "--review-verdicts needs --review" in told


@pytest.mark.slow
@pytest.mark.parametrize("again", ["fail", "pass,fail"])
def test_what_a_person_decided_is_not_judged_again(judged: Typed, again: str) -> None:
    decide(judged, m2="No", m3="Yes")
    assert judged(*RUN, "--resume", "--decisions", "review.jsonl").returncode == 0
    before = judged.read("out.jsonl").splitlines()
    judged.script("judge.yaml", [{"p_yes": 0.8}], method="logprobs")
    code, _, told = judged.text(*RUN, "--resume", "--rejudge", again, "--summary", "s.json")
    after = judged.read("out.jsonl").splitlines()
    assert code == 0 and after[1:] == before[1:], told
    kept = 1 if again == "fail" else 2
    assert (
        f"{kept} record{'s' * (kept > 1)} in out.jsonl decided by people: not judged again" in told
    )
    assert "people decided 2 records" in told and (after[0] == before[0]) == (again == "fail")


def test_an_answer_about_one_entry_leaves_the_judges_verdicts_on_the_others(typed: Typed) -> None:
    """Of three entries the judge fails the second and the third."""
    typed.write("r.jsonl", [{"id": "r", "text": "One.", "values": ["zebra", "quartz", "fjord"]}])
    rubric = "name: says\nfields: [text]\neach: values\nquestion: Does it say {{ value }}?\n"
    (typed.folder / "says.yaml").write_text(rubric)
    entries = [("yes", "zebra"), ("no", "quartz"), ("no", "fjord")]
    replies = [{"when": {"contains": v}, "p_yes": 0.9 if a == "yes" else 0.1} for a, v in entries]
    typed.script("judge.yaml", replies, method="logprobs")
    run = ("validate", "r.jsonl", "--rubric", "says.yaml", "--check", "says")
    run += ("-m", "scripted:judge.yaml", "--gate", "says >= 0.9", "-o", "o.jsonl")
    asked = ("--review", "people.jsonl", "--review-verdicts", "fail")
    assert typed(*run, *asked).returncode == 1
    line = lines(typed, "people.jsonl")[0]
    cases: list[tuple[list[str | None], int, list[str]]] = [
        (["yes", None, None], 1, ["pass", "fail", "fail"]),
        ([None, "yes"], 1, ["pass", "pass", "fail"]),
        ([None, "yes", "yes"], 0, ["pass", "pass", "pass"]),
        (["no", "yes", "yes"], 1, ["fail", "pass", "pass"]),
    ]
    for labels, code, verdicts in cases:
        typed.write("people.jsonl", [{**line, "labels": {"says": labels}}])
        ended, _, told = typed.text(*run, "--resume", "--decisions", "people.jsonl")
        assert ended == code, told
        assert f"of 3 entries: {verdicts.count('pass')} pass" in told
        check = lines(typed, "o.jsonl")[0]["judge"]["checks"][-1]
        by_value = {answer["value"]: answer["verdict"] for answer in check["evidence"]}
        assert check["by"] == "person" and check["verdict"] == ("fail" if code else "pass")
        assert [by_value[value] for _, value in entries] == verdicts
    typed.write("people.jsonl", [{**line, "labels": {"says": ["yes"] * 4}}])
    code, _, told = typed.text(*run, "--resume", "--decisions", "people.jsonl")
    assert code == 2 and "people.jsonl, line 1" in told


def test_a_record_with_one_question_left_open_goes_to_people_again(typed: Typed) -> None:
    """As on the page of `judge review`."""
    typed.write("r.jsonl", [{"id": "r", "text": "One."}])
    typed.script("judge.yaml", [{"p_yes": 0.55}], method="logprobs")
    run = ("validate", "r.jsonl", "--ask", "Kind?", "--ask", "Short?", "--name", "kind,short")
    run += ("-m", "scripted:judge.yaml", "--abstain-margin", "0.1", "-o", "o.jsonl", "--review")
    assert typed(*run, "0.jsonl").returncode == 0
    for n, labels in enumerate(({"kind": "yes"}, {"kind": "yes", "short": "no"})):
        typed.write("d.jsonl", [{**lines(typed, "0.jsonl")[0], "labels": labels}])
        told = typed.text(*run, f"{n + 1}.jsonl", "--resume", "--decisions", "d.jsonl")[2]
        assert f"for people: {'no' if n else 1} record in {n + 1}.jsonl" in told
    assert [len(lines(typed, f"{n}.jsonl")) for n in range(3)] == [1, 1, 0]


def test_a_persons_answer_is_held_against_the_label_as_the_judges_is(typed: Typed) -> None:
    """The judge says yes to all; people say no, which passes for records with the label no."""
    typed.write("r.jsonl", [{"id": n, "text": n, "label": n} for n in ("yes", "no", "other")])
    rules = {"same": {"pass": "= label"}, "by_label": {"pass_by_label": {"no": "no"}}}
    for name, rule in rules.items():
        rubric = {"name": name, "question": "Kind?", "fields": ["text"], **rule}
        (typed.folder / f"{name}.yaml").write_text(json.dumps(rubric))
    run = ("validate", "r.jsonl", "--rubric", "./same.yaml", "--rubric", "./by_label.yaml")
    run += ("-m", "scripted:yes.yaml", "-o", "o.jsonl", "--review", "p.jsonl")
    assert typed(*run, "--review-verdicts", "pass,fail").returncode == 0
    labels = {"same": "no", "by_label": "no"}
    typed.write("d.jsonl", [{**line, "labels": labels} for line in lines(typed, "p.jsonl")])
    assert typed(*run, "--resume", "--decisions", "d.jsonl").returncode == 0
    decided = [
        {c["check"]: c["verdict"] for c in line["judge"]["checks"] if c["by"] == "person"}
        for line in lines(typed, "o.jsonl")
    ]
    passes = {"same": "pass", "by_label": "pass"}
    assert decided == [{"same": "fail", "by_label": "fail"}, passes, {"by_label": "fail"}]


def test_answers_of_every_form_count_as_the_judges_would(typed: Typed) -> None:
    """Labels and scores of entries, without a mean, and a tie."""
    typed.write("r.jsonl", [{"id": "r", "a": "x", "b": "y", "parts": ["one"]}])
    rules: dict[str, dict[str, Any]] = {
        "mood": {"each": "parts", "answers": ["warm", "rude"]},
        "rate": {"each": "parts", "answers": [1, 2, 3]},
        "best": {"compare": ["a", "b"], "tie": True},
    }
    for name, rule in rules.items():
        (typed.folder / f"{name}.yaml").write_text(
            json.dumps({"name": name, "question": "?"} | rule)
        )
    said = {"mood": "warm", "rate": "1", "best": "1"}
    replies = [
        {"when": {"rubric": n}, "reply": {"quote": None, "reason": "", "answer": a}}
        for n, a in said.items()
    ]
    model = typed.script("j.yaml", replies)
    run = ("validate", "r.jsonl", "-m", model, "-o", "o.jsonl", "--summary", "s.json")
    run += tuple(word for name in rules for word in ("--rubric", f"./{name}.yaml"))
    assert typed(*run, "--review", "p.jsonl").returncode == 0
    labels = {"mood": ["rude"], "rate": ["2"], "best": "Tie"}
    typed.write("d.jsonl", [{**line, "labels": labels} for line in lines(typed, "p.jsonl")])
    assert typed(*run, "--resume", "--decisions", "d.jsonl").returncode == 0
    summary = json.loads(typed.read("s.json"))
    assert summary["answers"] == {"mood": {"rude": 1}, "rate": {"2": 1}, "best": {"tie": 1}}
    assert "scores" not in summary and summary["verdicts"] == {"answered": 1}


def test_a_list_of_answers_to_a_check_without_entries_is_refused(judged: Typed) -> None:
    decide(judged, m2=["yes", "no"])
    code, out, told = judged.text(*RUN, "--resume", "--decisions", "review.jsonl")
    assert (code, out) == (2, "")
    assert "review.jsonl, line 1: question is not asked of entries: give one answer" in told


@pytest.mark.parametrize(
    ("labels", "verdict", "said"),
    [
        (["no", "yes", None], "fail", [("quartz", "yes"), ("fjord", None)]),
        (["no", "yes", "yes"], "pass", [("quartz", "yes"), ("fjord", "yes")]),
        (["no", None, None], "fail", []),
    ],
)
def test_answers_given_before_a_value_was_dropped_are_about_the_same_values(
    tmp_path: Path, labels: list[str | None], verdict: str, said: list[tuple[str, str | None]]
) -> None:
    """Of zebra, quartz and fjord a repair dropped the first; people were asked about all three."""
    rubric = {"name": "says", "fields": ["text"], "each": "values", "question": "{{ value }}?"}
    check = {"check": "says", "by": "final", "verdict": "fail", "round": 1, "votes": []}
    whole = {"id": "r", "text": "One.", "values": ["zebra", "quartz", "fjord"]}
    judged = {"verdict": "fail", "workflow": "record", "fingerprint": "f", "checks": [check]}
    judged |= {"original": {"values": whole["values"]}, "dropped": ["zebra"]}
    line = Line.of(whole | {"values": ["quartz", "fjord"], "judge": judged})
    assert line is not None
    (tmp_path / "d.jsonl").write_text(json.dumps(whole | {"labels": {"says": labels}}))
    decisions = Decisions(tmp_path / "d.jsonl", lambda _: judge.Rubric.from_dict(rubric))
    decided = decisions.settled(line, {}).judgement()
    assert decided.verdict == verdict
    assert [(a.value, a.answer) for a in decided.checks[-1].evidence] == said
