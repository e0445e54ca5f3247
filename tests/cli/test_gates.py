"""Several questions in one run, answers that are counted, comparisons with a tie, and gates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from judge.records.lines import Line
from judge.run.gates import Gate
from judge.run.summary import Summary
from tests.report.pages import rows

from .conftest import Typed, lines

TEXTS = ("fine", "fine too", "rude", "odd")


def said(answer: str | None, **when: str) -> dict[str, Any]:
    return {"when": when, "reply": {"quote": None, "reason": "So.", "answer": answer}}


@pytest.fixture
def mails(typed: Typed) -> Typed:
    typed.write("m.jsonl", [{"id": text, "text": text, "other": "x"} for text in TEXTS])
    scores = {"fine": "5", "fine too": "4", "rude": "1"}
    typed.script(
        "j.yaml",
        [
            said(None, rubric="polite", id="odd"),
            said("no", rubric="polite", id="rude"),
            said("yes", rubric="polite"),
            *(said(score, rubric="tone", id=text) for text, score in scores.items()),
            said("yes", rubric="short"),
            said("glad", rubric="mood", contains="fine"),
            said("sad", rubric="mood"),
        ],
    )
    return typed


RUN = ("validate", "m.jsonl", "-m", "scripted:j.yaml", "--on", "text", "--reasks", "0")
TWO = ("--ask", "Is it polite?", "--ask", "Is it short, too?", "--name", "polite,short")
TONE = ("--ask", "What tone?", "--name", "tone", "--answers", "1-5")
RANKED = ("--ask", "Which is best?", "--name", "best", "--compare", "a,b,c")


def test_each_question_is_a_check_by_its_name(mails: Typed) -> None:
    code, out, _ = mails.text(*RUN, *TWO)
    assert code == 3, "one reply is unreadable"
    verdicts = [
        {check["check"]: check["verdict"] for check in line["judge"]["checks"]}
        for line in lines(out.encode())
    ]
    assert verdicts[2] == {"polite": "fail", "short": "pass"}
    assert [one["short"] for one in verdicts] == ["pass"] * 4
    unnamed = mails.text(*RUN[:3], "scripted:yes.yaml", "--ask", "A?", "--ask", "B?")[2]
    assert "question_1" in unnamed and "question_2" in unnamed


def test_answers_without_pass_are_counted(mails: Typed) -> None:
    code, out, told = mails.text(*RUN, "--ask", "Mood?", "--name", "mood", "--answers", "glad,sad")
    assert code == 0
    assert {line["judge"]["verdict"] for line in lines(out.encode())} == {"answered"}
    assert "4 of 4 records answered (100.0%)" in told
    assert "mood: 2 glad, 2 sad (4 of 4 answered)" in told and "pass" not in told
    mails.text(*RUN, "--ask", "Mood?", "--name", "mood", "--answers", "glad,sad", "-o", "o.jsonl")
    mails.text("export", "o.jsonl", "-o", "o.md")
    assert "mood: 2 glad, 2 sad \\(4 of 4 answered\\)\n" in mails.read("o.md").decode()


@pytest.mark.parametrize(
    ("answers", "answered"),
    [("glad,sad", "2 of 2 records answered (100.0%)"), ("a,b", "0 of 2 records answered (0.0%)")],
)
def test_where_answers_are_counted_no_share_passes(
    mails: Typed, answers: str, answered: str
) -> None:
    mood = ("--ask", "Mood?", "--name", "mood", "--answers", answers, "--limit", "2")
    told = mails.text(*RUN, *mood, "-o", "o.jsonl", "--summary", "s.json")[2]
    assert answered in told and "pass" not in told
    rates, undefined = json.loads(mails.read("s.json")), {"value": None, "passed": 0, "of": 2}
    assert rates["pass_rate"] == rates["repaired_pass_rate"] == undefined
    assert mails("export", "o.jsonl", "-o", "o.md").returncode == 0
    assert mails.read("o.md").decode().startswith(f"### judge: {answered}\n")
    keys = {"name": "mood", "question": "Mood?", "fields": ["text"], "answers": answers.split(",")}
    (mails.folder / "mood.yaml").write_text(json.dumps(keys))
    from_file = (*RUN[:4], "--rubric", "./mood.yaml", "--limit", "2", "-o", "file.jsonl")
    assert answered in mails.text(*from_file)[2]
    assert mails("report", "o.jsonl", "-o", "o.html", "--by", "text").returncode == 0
    page = mails.read("o.html").decode()
    assert "By <bdi>text</bdi>" in page and "Share of passes" not in page
    assert "Pass, without skipped" not in page


def test_beside_a_test_counted_answers_have_no_share_of_passes(mails: Typed) -> None:
    mood = ("--ask", "Mood?", "--name", "mood", "--answers", "glad,sad", "--limit", "2")
    mails.text(*RUN, *mood, "--test", "text: {length: {least: 1}}", "-o", "both.jsonl")
    assert mails("report", "both.jsonl", "-o", "both.html").returncode == 0
    assert mails.read("both.html").decode().count('<td class="figure">–</td>') == 2, "of mood"


def test_scores_without_a_bound_have_a_mean_and_an_interval(mails: Typed) -> None:
    code, out, told = mails.text(*RUN, *TONE, "--limit", "3")
    assert code == 0
    # Mean 10/3, s = sqrt(13/3) = 2.0817, t(2) = 4.3027: 3.33 -+ 5.17, cut to the scale.
    mean = "ean score 3.33, 95% interval 1.00 to 5.00 (3 of 3 scored)"
    assert f"tone: m{mean}" in told
    assert lines(out.encode())[0]["judge"]["checks"][0]["score"] == 5
    mails.text(*RUN, *TONE, "--limit", "3", "-o", "o.jsonl")
    mails.text("report", "o.jsonl", "-o", "o.html")
    mails.text("export", "o.jsonl", "-o", "o.md")
    assert mean in mails.read("o.html").decode() and mean in mails.read("o.md").decode()


@pytest.mark.parametrize(
    ("words", "gate", "code", "told"),
    [
        (
            TWO,
            "polite >= 50%",
            3,
            "polite >= 0.5: holds (50.0%, 2 of 4; counted as not passing: 1 unreadable)",
        ),
        (
            TWO,
            "polite <= 0.5",
            1,
            "polite <= 0.5: does not hold (75.0%, 3 of 4; counted as passing: 1",
        ),
        (TWO, "polite < 80%", 3, "polite < 0.8: holds (75.0%, 3 of 4; counted as passing: 1"),
        (TWO, "polite>0.5", 1, "gate polite > 0.5: does not hold (50.0%, 2 of 4"),
        (TWO, "short >= 1", 3, "gate short >= 1: holds (100.0%, 4 of 4)"),
        (TWO, "record >= 0.51", 1, "gate record >= 0.51: does not hold (50.0%, 2 of 4"),
        ((*TONE, "--limit", "3"), "mean tone >= 3.3", 0, "holds (3.33, 3 of 3 decided)"),
        ((*TONE, "--limit", "3"), "mean tone < 3", 1, "gate mean tone < 3: does not hold (3.33"),
    ],
)
def test_a_gate_holds_checks_and_means_to_a_bound(
    mails: Typed, words: tuple[str, ...], gate: str, code: int, told: str
) -> None:
    ended, _, said = mails.text(*RUN, *words, "--gate", gate)
    assert ended == code and told in said, said


@pytest.mark.parametrize(
    ("gate", "code", "told"),
    [
        (
            "mean tone >= 3",
            1,
            "does not hold (5.00, 1 of 10 decided; 9 undecided count as 1: 1.40)",
        ),
        ("mean tone >= 1.4", 3, "holds (5.00, 1 of 10 decided; 9 undecided count as 1: 1.40)"),
        ("mean tone <= 5", 3, "holds (5.00, 1 of 10 decided; 9 undecided count as 5: 5.00)"),
        ("mean tone < 5", 1, "does not hold (5.00, 1 of 10 decided"),
    ],
)
def test_a_mean_holds_only_whatever_undecided_records_would_say(
    mails: Typed, gate: str, code: int, told: str
) -> None:
    rows = [{"id": name, "text": "hm"} for name in ("fine", *map(str, range(8)))]
    mails.write("m.jsonl", rows)
    with (mails.folder / "m.jsonl").open("a") as file:
        file.write('{"id": "torn", "te')
    mails.script("j.yaml", [said("5", id="fine"), said(None, id="1"), said("high")])
    ended, _, err = mails.text(*RUN, *TONE, "--gate", gate)
    assert ended == code and told in " ".join(err.split()), err


def test_a_quiet_run_says_which_gate_does_not_hold(mails: Typed) -> None:
    gates = ("--gate", "polite > 0.5", "--gate", "short >= 1")
    code, _, said = mails.text(*RUN, *TWO, *gates, "-q")
    assert code == 1
    (line,) = (line for line in said.splitlines() if "gate" in line)
    assert line.startswith("judge: gate polite > 0.5: does not hold (50.0%, 2 of 4")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "odd", "text": "odd"}', "1 record undecided because no reply could be read"),
        ("[]", "1 record undecided: 1 x bad-input: line 2: a record must be an object, not a list"),
        ('{"id": "fine too", "text": "fine"}', ""),
    ],
)
def test_a_quiet_run_says_why_its_exit_code_is_3(mails: Typed, line: str, told: str) -> None:
    """Also where its gate holds."""
    mails.write("two.jsonl", [{"id": "fine", "text": "fine"}], line)
    words = ("--ask", "Is it polite?", "--name", "polite", "--gate", "record >= 0.5", "-q")
    code, _, said = mails.text("validate", "two.jsonl", *RUN[2:], *words)
    assert code == (3 if told else 0)
    said = " ".join(said.split())
    assert said.startswith(f"judge: {told}") if told else not said


def test_entries_and_quotes_that_do_not_stand_are_counted(typed: Typed) -> None:
    claims = [["old", "blue"], ["tall"], ["old"]]
    typed.write("c.jsonl", [{"text": "An old house.", "claims": entries} for entries in claims])
    rubric = "name: stated\nquestion: Is it stated?\neach: claims\nfields: [text]\n"
    (typed.folder / "stated.yaml").write_text(rubric)
    found = {"quote": "An old house", "reason": "So.", "answer": "yes"}
    invented = {**found, "quote": "a blue house"}
    script = [
        {"when": {"contains": "blue"}, "reply": invented},
        {"when": {"contains": "tall"}, "reply": {**found, "quote": None, "answer": "no"}},
        {"reply": found},
    ]
    (typed.folder / "j.yaml").write_text(json.dumps({"replies": script}))
    words = ("validate", "c.jsonl", "-m", "scripted:j.yaml", "--rubric", "stated.yaml")
    code, _, said = typed.text(*words, "--summary", "sums.json")
    assert code == 0
    assert "stated: of 4 entries: 3 pass, 1 fail" in said
    assert "stated: quotes of 1 of 3 records are not in the text, and are left out" in said
    sums = json.loads(typed.read("sums.json"))
    assert sums["entries"] == {"stated": {"pass": 3, "fail": 1}}
    assert sums["quotes_not_found"] == {"stated": 1}


def test_a_mean_on_an_unknown_scale_or_of_unsure_scores_does_not_hold() -> None:
    unsure = {"check": "tone", "verdict": "abstain", "score": 5.0}
    checks = [{"check": "tone", "verdict": "answered", "score": 5.0}, unsure]
    for scale, told in (
        ((1.0, 5.0), "1 undecided counts as 1"),
        (None, "1 undecided, on an unknown scale"),
    ):
        gate, summary = replace(Gate.of("mean tone >= 4"), scale=scale), Summary()
        for check in checks:
            summary.add(Line({}, {"verdict": check["verdict"], "checks": [check]}))
        outcome = gate.outcome(summary)
        assert not outcome.holds and outcome.could_hold and told in str(outcome)


def test_answers_and_means_are_told_for_each_value_of_a_field(mails: Typed) -> None:
    """Two texts of each kind: glad and glad, sad and sad; scores 5 and 4, 1 and none."""
    records = [{"id": t, "text": t, "kind": "good" if "fine" in t else "bad"} for t in TEXTS]
    mails.write("m.jsonl", records)
    mood = ("--ask", "Which mood?", "--name", "mood", "--answers", "glad,sad")
    by = ("--by", "kind", "--summary", "s.json", "-o", "o.jsonl", "--overwrite")
    told = " ".join(mails.text(*RUN, *mood, *by)[2].split())
    assert "mood by kind glad sad of " in told and " good 2 2 bad 2 2 " in told
    by_kind = json.loads(mails.read("s.json"))["answers_by"]["kind"]
    assert by_kind == {"good": {"mood": {"glad": 2}}, "bad": {"mood": {"sad": 2}}}
    told = " ".join(mails.text(*RUN, *TONE, *by)[2].split())
    assert "tone by kind mean score 95% interval scored of " in told
    assert " bad 1.00 – 1 2 " in told and " good 4.50 1.00 to 5.00 2 2 " in told
    found = json.loads(mails.read("s.json"))["scores_by"]["kind"]
    assert {k: (m["tone"]["value"], m["tone"]["n"], m["tone"]["of"]) for k, m in found.items()} == {
        "good": (4.5, 2, 2),
        "bad": (1.0, 1, 2),
    }
    mails.text("report", "o.jsonl", "-o", "o.html", "--by", "kind")
    page = mails.read("o.html").decode()
    means = rows(page[page.index("<caption><bdi>tone</bdi>") - 40 :], None)
    assert means[1:] == [["good", "4.50", "1.00 to 5.00", "2", "2"], ["bad", "1.00", "–", "1", "2"]]


def gates_on_page(judge: Typed) -> list[list[str]]:
    assert judge.text("report", "o.jsonl", "-o", "o.html", "--overwrite")[0] == 0
    html = judge.read("o.html").decode()
    assert ("Gates" in html) == ('href="#gates"' in html)
    return rows(html, "Gates")[1:] if "Gates" in html else []


def test_the_page_has_the_outcome_of_each_gate(mails: Typed) -> None:
    def gated(*gates: str) -> list[str]:
        return ["-o", "o.jsonl", "--overwrite", *(w for gate in gates for w in ("--gate", gate))]

    unread = "; counted as not passing: 1 unreadable"
    mails.text(*RUN, *TWO, *gated("polite >= 75%", "polite > 0.75", "polite < 0.7654321"))
    assert gates_on_page(mails) == [
        ["polite >= 0.75", "does not hold yet", "50.0%", f"2 of 4{unread}"],
        ["polite > 0.75", "does not hold", "50.0%", f"2 of 4{unread}"],
        ["polite < 0.765432", "holds", "75.0%", "3 of 4; counted as passing: 1 unreadable"],
    ]
    mails.text("export", "o.jsonl", "-o", "o.md")
    summary = mails.read("o.md").decode().replace("\\", "")
    gates = [line for line in summary.splitlines() if line.startswith("- ")]
    assert gates[0] == f"- gate polite &gt;= 0.75: does not hold (50.0%, 2 of 4{unread})"
    assert len(gates) == 3
    mails.text(*RUN, *TONE, *gated("mean tone > 3.7", "mean tone >= 3.9", "mean tone < 3.75"))
    # 5, 4, 1 and one without a score: from 11 / 4 to 15 / 4.
    scored = "3 of 4 decided; 1 undecided counts as"
    assert gates_on_page(mails) == [
        ["mean tone > 3.7", "does not hold yet", "3.33", f"{scored} 1: 2.75"],
        ["mean tone >= 3.9", "does not hold", "3.33", f"{scored} 1: 2.75"],
        ["mean tone < 3.75", "does not hold yet", "3.33", f"{scored} 5: 3.75"],
    ]
    mails.text(*RUN, *TWO, "-o", "o.jsonl", "--overwrite")
    assert gates_on_page(mails) == []


def test_page_and_markdown_of_a_stopped_run_say_so_until_it_is_resumed(mails: Typed) -> None:
    """The first record passes, so far all; at the end the description tells of no stop."""
    run = [*RUN, *TWO, "--gate", "polite >= 75%", "-o"]
    assert mails.text(*run, "o.jsonl", "--max-calls", "3")[0] == 4
    assert gates_on_page(mails) == [["polite >= 0.75", "open", "100.0%", "1 of 1"]]
    stop = "did not reach the end of its input"
    assert stop in mails.read("o.html").decode()
    mails.text("export", "o.jsonl", "-o", "o.md")
    summary = mails.read("o.md").decode()
    assert stop in summary and "open, because the run is not finished" in summary
    code = mails.text(*run, "whole.jsonl")[0]
    mails.text("report", "o.jsonl", "whole.jsonl", "-o", "both.html")
    assert stop in mails.read("both.html").decode(), "both have one fingerprint"
    assert mails.text(*run, "o.jsonl", "--resume")[0] == code
    assert gates_on_page(mails)[0][1] == "does not hold yet"
    assert stop not in mails.read("o.html").decode()
    assert mails.read("o.jsonl.run.json") == mails.read("whole.jsonl.run.json")


def test_gates_that_a_hand_edited_are_none(mails: Typed) -> None:
    mails.text(*RUN, *TWO, "-o", "o.jsonl", "--gate", "polite >= 0.5")
    runs = json.loads(mails.read("o.jsonl.run.json"))
    (run,) = runs.values()
    (gate,) = run["gates"]
    wrong = [{**gate, name: content} for name in gate for content in ([10**400], "x", {})]
    for gates in (wrong, ["polite >= 0.5", None, 7], "polite >= 0.5", [{**gate, "limit": 10**400}]):
        run["gates"] = gates
        mails.write("o.jsonl.run.json", [runs])
        left = [] if gates is not wrong else ["x >= 0.5"]
        assert [row[0] for row in gates_on_page(mails)] == left


def test_lines_that_are_errors_count_for_gates_on_checks(mails: Typed) -> None:
    with (mails.folder / "m.jsonl").open("a") as file:
        file.write('{"id": "torn", "te')
    code, _, told = mails.text(*RUN, *TWO, "--gate", "short >= 1", "--summary", "s.json")
    assert (
        code == 1
        and "short >= 1: does not hold (80.0%, 4 of 5; counted as not passing: 1 error)" in told
    )


@pytest.mark.parametrize(
    ("words", "gate", "told"),
    [
        (TWO, "polite >= 90", "type 90%; for a mean score type 'mean polite >= 90'\n"),
        (TWO, "polite > -2", "a share is from 0 to 1 (100%); for a mean score type 'mean polite >"),
        (TWO, "record >= 90", "for a share of passes type 90%\n"),
        (TWO, "polite >= 150%", "a share is from 0 to 1 (100%)\n"),
        (TWO, "polite 0.9", "type CHECK >= SHARE or mean CHECK >= SCORE"),
        (TWO, "polit >= 0.9", "this run has no such check; did you mean polite?"),
        (TWO, "mean polite >= 3", "polite has no scores"),
        (TONE, "tone >= 0.5", "no answer to tone passes or fails: add --pass, or gate its mean"),
        (TONE, "record >= 0.5", "no answer passes or fails in this run; add --pass"),
        # --pass is refused for several fields.
        (RANKED, "best_a_b >= 0.5", "none passes; compare two, with --pass"),
        (RANKED, "record >= 0.5", "none passes; compare two, with --pass"),
    ],
)
def test_a_gate_that_cannot_be_is_refused_before_a_call(
    mails: Typed, words: tuple[str, ...], gate: str, told: str
) -> None:
    code, out, said = mails.text(*RUN, *words, "--gate", gate)
    assert (code, out) == (2, "") and told in said


def test_junit_has_abstained_records_as_failures_where_a_gate_was_set(mails: Typed) -> None:
    question = ("--ask", "Is it polite?", "--name", "polite", "--votes", "2", "--limit", "1")
    votes = [{**said("yes"), "when": {"vote": 0}}, {**said("no"), "when": {"vote": 1}}]
    mails.script("split.yaml", votes)
    run = (*RUN[:3], "scripted:split.yaml", *question, "-o", "o.jsonl")
    floor, ceiling = (("--gate", f"polite {sign} {x}") for sign, x in ((">=", 0), ("<=", 1)))
    gates = ((), b"<skipped"), (floor, b"<failure"), (ceiling, b"<skipped")
    # A resumed run that asks nothing has its own gates, too.
    for start, (gate, tag) in product(("--overwrite", "--resume"), gates):
        assert mails.text(*run, start, *gate)[0] == 0
        assert mails.text("export", "o.jsonl", "-o", "o.xml", "--overwrite")[0] == 0
        assert tag in mails.read("o.xml")


def test_a_gate_of_a_run_that_is_not_finished_is_open(mails: Typed) -> None:
    words = (*RUN, *TWO, "--gate", "short >= 0", "--max-calls", "2", "--concurrency", "1")
    code, _, told = mails.text(*words, "--summary", "s.json")
    assert json.loads(mails.read("s.json"))["gates"][0]["holds"] is None
    assert code == 4 and "gate short >= 0: open, because the run is not finished" in told
    assert "gate short >= 0: holds" not in told


def test_the_summary_file_says_how_a_gate_counts_the_undecided(mails: Typed) -> None:
    gates = ("--gate", "polite >= 0.5", "--gate", "polite <= 0.8", "--summary", "s.json")
    assert mails.text(*RUN, *TWO, *gates)[0] == 3
    floor, ceiling = json.loads(mails.read("s.json"))["gates"]
    assert (floor["passing"], floor["value"], floor["counted_as"]) == (2, 0.5, "not passing")
    assert (ceiling["passing"], ceiling["value"], ceiling["counted_as"]) == (3, 0.75, "passing")


def test_gates_stand_in_judge_toml(mails: Typed) -> None:
    (mails.folder / "judge.toml").write_text('gate = ["short >= 1", "polite >= 0.9"]\n')
    code, _, told = mails.text(*RUN, *TWO, "--trust-config", "--summary", "s.json")
    assert code == 1 and "gate polite >= 0.9: does not hold" in told
    sums: Mapping[str, Any] = json.loads(mails.read("s.json"))
    assert [gate["holds"] for gate in sums["gates"]] == [True, False]


def test_a_comparison_may_be_a_tie_and_says_where_the_orders_disagreed(typed: Typed) -> None:
    names = ("first", "tie", "torn")
    typed.write("m.jsonl", [{"id": n, "a": f"{n} one", "b": f"{n} two"} for n in names])
    # In both orders `first one` is the better one; of `torn` always the one shown first.
    replies = [said("tie", id="tie"), said("1", id="torn")]
    replies += [said("1", id="first", contains="1 MARK]\nfirst one"), said("2", id="first")]
    from judge.records import Record

    record = Record("m.jsonl", 1, {"id": "first", "a": "first one", "b": "first two"})
    mark = record.of_kind("record").mark(["a", "b"])
    replies[2]["when"]["contains"] = replies[2]["when"]["contains"].replace("MARK", mark)
    model = typed.script("j.yaml", replies)
    words = ("validate", "m.jsonl", "--compare", "a,b", "--tie", "-m", model)
    code, out, told = typed.text(*words)
    assert code == 0
    answers = [line["judge"]["checks"][0].get("answer") for line in lines(out.encode())]
    assert answers == ["a", "tie", None]
    # One of one, by Wilson's interval: 1 / (1 + 1.96^2) to 1.
    won = "question: 1 a, 1 tie (2 of 3 answered); a wins 100.0% of 1, 95% interval 20.7% to 100.0%"
    assert f"{won}; the orders disagreed in 1" in " ".join(told.split())
    assert "fields shown" not in told
    typed.text(*words, "-o", "o.jsonl")
    typed.text("export", "o.jsonl", "-o", "o.md")
    assert won in typed.read("o.md").decode().replace("\\", "")
    typed.write("m.jsonl", [{"a": "first one", "b": "first two", "prompt": "Hi", "x": "y"}])
    said_shown = "fields shown: a (compared), b (compared); not shown: prompt, x: name those"
    assert said_shown in " ".join(typed.text(*words)[2].split())
    assert "fields shown" not in typed.text(*words, "--on", "prompt")[2]


def test_a_comparison_with_one_unreadable_order_is_unreadable(typed: Typed) -> None:
    """Its reason is that order's, and both orders are paid for."""
    answer = "{{ '1' if prompt.split('[answer 1')[1].split('[end')[0].count('good') else WRONG }}"
    text = '{"quote": null, "reason": "So.", "answer": "' + answer.replace("WRONG", "'9'") + '"}'
    model = typed.script("j.yaml", [{"reply": text}])
    for name, pair in (("first", ("good", "bad")), ("second", ("bad", "good"))):
        typed.write("m.jsonl", [{"id": name, "a": pair[0], "b": pair[1]}])
        words = ("validate", "m.jsonl", "--compare", "a,b", "-m", model, "--reasks", "0")
        code, out, told = typed.text(*words)
        (line,) = lines(out.encode())
        (check,) = line["judge"]["checks"]
        assert code == 3, told
        assert check["verdict"] == "unreadable" and "9" in check["votes"][0]["reason"], check
        assert line["judge"]["usage"]["replies"] == 2, name


RANKING = """
{% set one = prompt.split('[answer 1')[1].split('[end')[0] %}
{% set two = prompt.split('[answer 2')[1].split('[end')[0] %}
{% set better = one[-5:-1] < two[-5:-1] %}
{"quote": null, "reason": "So.", "answer":
 "{{ '1' if 'torn' in one else '9' if 'lost' in one else
     'tie' if one[-5:-1] == two[-5:-1] else '1' if better else '2' }}"}
"""


def test_three_fields_are_ranked_by_all_pairs_in_both_orders(typed: Typed) -> None:
    """The text that is first in the alphabet is better; one record's texts are torn."""
    rows = [("aaaa", "bbbb", "cccc"), ("bbbb", "aaaa", "cccc"), ("cccc", "aaaa", "aaaa")]
    rows += [("aaaa", "bbbb", "bbbb"), ("bbbb", "cccc", "aaaa"), ("torn", "torn", "torn")]
    records = [dict(zip(("old", "new", "my own"), row, strict=True)) for row in rows]
    typed.write("c.jsonl", records)
    model = typed.script("r.yaml", [{"reply": RANKING}])
    run = ("--compare", "old,new,my own", "--tie", "--name", "better", "--summary", "s.json")
    code, _, told = typed.text("validate", "c.jsonl", *run, "-m", model, "-o", "o.jsonl")
    assert code == 0, told
    summary = json.loads(typed.read("s.json"))
    made = summary["rankings"]["better"]
    counts = {r["field"]: (r["wins"], r["losses"], r["ties"]) for r in made["fields"]}
    assert counts == {"old": (6, 4, 0), "new": (4, 4, 2), "my own": (3, 5, 2)}
    assert (made["comparisons"], made["undecided"], made["disagreed"]) == (15, 3, 3)
    assert [row["field"] for row in made["fields"]] == ["old", "new", "my own"]
    low, high = (made["fields"][0]["strength"][end] for end in ("low", "high"))
    assert 0 < low < made["fields"][0]["strength"]["value"] < high < 1
    assert "the orders disagreed in 3 of 18 comparisons" in " ".join(told.split())
    assert {*summary["answers"]} == {"better_old_new", "better_old_my_own", "better_new_my_own"}
    lacking = {k: v for k, v in records[5].items() if k != "new"}
    lost = dict.fromkeys(records[0], "lost")  # its replies cannot be read
    typed.write("fewer.jsonl", [lacking, lacking | {"new": ""}, lost, *records[:5]])
    told = typed.text("validate", "fewer.jsonl", *run[:-2], "-m", model, "--reasks", "0")[2]
    assert "the orders disagreed in 2 of 17 comparisons" in " ".join(told.split())
    cheap = typed.script("torn.yaml", [{"words": {"1": 0.9, "2": 0.05, "0": 0.05}}])
    told = typed.text("validate", "c.jsonl", *run, "-m", model, "--cheap-model", cheap)[2]
    assert "the orders disagreed in 3 of 18 comparisons" in " ".join(told.split()), "of the judge"
    assert typed.text("report", "o.jsonl", "-o", "o.html")[0] == 0
    assert "Ranking by <bdi>better</bdi>" in typed.read("o.html").decode()
    code, _, told = typed.text("validate", "c.jsonl", *run[:2], "--pass", "new", "-m", model)
    assert code == 2 and "several fields are ranked" in told


def test_two_checks_of_one_name_are_refused_and_none_is_left_out(typed: Typed) -> None:
    typed.write("c.jsonl", [{"a": "x"}])
    typed.write("own.yaml", [], "name: a_contains\nfields: [a]\nquestion: Is it kind?\n")
    model = typed.script("r.yaml", [{"reply": {"reason": "", "quote": None, "answer": "yes"}}])
    ask, test = ("--ask", "Is it good?", "--name", "a_contains"), ("--test", "a: {contains: x}")
    rubric = ("--rubric", "./own.yaml")
    for words in ((*ask, *test), (*ask, *rubric), (*test, *rubric)):
        code, _, told = typed.text("validate", "c.jsonl", *words, "-m", model)
        assert code == 2 and "two rubrics are called a_contains" in told


def test_pairs_whose_fields_make_one_name_are_numbered_and_all_asked(typed: Typed) -> None:
    typed.write("c.jsonl", [{"a_b": "v", "c": "w", "a": "x", "b_c": "y"}])
    model = typed.script("r.yaml", [{"reply": RANKING}])
    run = ("--compare", "a_b,c,a,b_c", "--name", "best", "-m", model, "-o", "o.jsonl")
    assert typed.text("validate", "c.jsonl", *run)[0] == 0
    checks = json.loads(typed.read("o.jsonl"))["judge"]["checks"]
    numbers = ["1_2", "1_3", "1_4", "2_3", "2_4", "3_4"]
    assert [check["check"] for check in checks] == [f"best_{pair}" for pair in numbers]
