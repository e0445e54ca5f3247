"""Labels, scores and comparisons: `--answers`, `--pass`, `answers:`, `pass:`, `compare:`."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from judge.records import Record

from .conftest import Typed, lines, norm

MAILS = [{"id": "a", "text": "Send it on Monday.", "other": "Whenever."}]
SCALE = ("--ask", "How clear is it?", "--answers", "1,2,3,4,5", "--pass", ">= 4")


@pytest.fixture
def judged(typed: Typed) -> Any:
    """The first check and the standard error of a run whose model gives these replies."""
    typed.write("mails.jsonl", MAILS)

    def run(replies: list[dict[str, Any]], *words: str) -> tuple[dict[str, Any], str]:
        Path("judge.yaml").write_text(json.dumps({"replies": replies}))
        done = typed("validate", "mails.jsonl", "-m", "scripted:judge.yaml", *words)
        assert done.returncode in (0, 3), done.stderr
        (line,) = lines(done.stdout)
        return line["judge"]["checks"][0], done.stderr.decode()

    return run


def said(*answers: Any) -> list[dict[str, Any]]:
    """One reply for each vote, in turn; None is an invalid reply."""
    reply = {"quote": None, "reason": "So."}
    return [
        {"when": {"vote": n}, "reply": {**reply, "answer": answer}}
        for n, answer in enumerate(answers)
    ]


@pytest.mark.parametrize(
    ("quote", "stands"),
    [("Send it", True), ("Never send it", False), ("Send it -", True), (None, True)],
)
def test_a_vote_says_where_its_quote_is_not_in_the_text(
    judged: Any, quote: str | None, stands: bool
) -> None:
    reply = {"quote": quote, "reason": "So.", "answer": "yes"}
    check, _ = judged([{"reply": reply}], "--ask", "Is it polite?", "--on", "text")
    (vote,) = check["votes"]
    assert check["verdict"] == "pass"
    told = None if stands else "the judge's quote is not in the text, and is left out"
    assert vote.get("reason") == told
    assert vote["evidence"][0].get("quote") == ("Send it" if quote and stands else None)


def test_a_score_is_the_mean_of_its_distribution(judged: Any) -> None:
    words = {"1": 0.05, "3": 0.15, "4": 0.2, "5": 0.1, "The": 0.5}  # 0.1, 0.3, 0.4, 0.2
    check, _ = judged([{"words": words}], *SCALE, "--method", "logprobs")
    assert check["score"] == check["votes"][0]["score"] == pytest.approx(3.6)
    assert check["verdict"] == "fail"
    assert check["votes"][0]["evidence"][0]["probability"] == pytest.approx(0.6)
    check, _ = judged([{"words": words}], *SCALE[:-1], ">= 3.6", "--method", "logprobs")
    assert check["verdict"] == "pass"


@pytest.mark.parametrize(
    ("votes", "score", "verdict"),
    [
        ((5, 4, 3), 4.0, "pass"),  # two of three votes would be a majority in any case
        ((5, 5, 1), 3.666667, "fail"),  # a majority passes; the mean does not
        (("5", 5, None), 5.0, "abstain"),  # 10 and 1 to 5: a mean between 3.67 and 5
        ((1, 1, None), 1.0, "fail"),  # at most (1 + 1 + 5) / 3, whatever the lost vote said
        ((None, None, None), None, "unreadable"),
    ],
)
def test_a_panel_of_scores_passes_by_its_mean(
    judged: Any, votes: tuple[Any, ...], score: float | None, verdict: str
) -> None:
    check, _ = judged(said(*votes), *SCALE, "--votes", "3")
    assert (check.get("score"), check["verdict"]) == (score, verdict)
    assert len(check["votes"]) == 3


@pytest.mark.parametrize(
    ("votes", "answer", "verdict"),
    [(("a", "b", "a"), "a", "pass"), (("a", "b", "c"), None, "abstain"), (("c", "c"), "c", "fail")],
)
def test_labels_stand_by_strict_majority(
    judged: Any, votes: tuple[str, ...], answer: str | None, verdict: str
) -> None:
    flags = ("--ask", "Which?", "--answers", "a,b,c", "--pass", "a,b", "--votes", "3")
    check, told = judged(said(*votes), *flags)
    assert (check.get("answer"), check["verdict"]) == (answer, verdict)
    assert len(check["votes"]) == len(votes)
    assert not answer or f"question: 1 {answer} (1 of 1 answered)" in told


def test_labels_are_read_by_letters_so_that_any_tokenizer_tells_them_apart(judged: Any) -> None:
    Path("r.yaml").write_text("name: r\nquestion: Q?\nanswers: [formal, former]\npass: former\n")
    check, _ = judged(
        [{"words": {"a": 0.2, "b": 0.6, "The": 0.2}}], "--rubric", "r.yaml", "--method", "logprobs"
    )
    assert (check["verdict"], check["answer"], check["probability"]) == ("pass", "former", 0.75)


def test_scores_have_their_mean_and_interval_in_the_summary(typed: Typed) -> None:
    typed.write("mails.jsonl", [{"id": str(n), "text": f"{n}"} for n in range(4)] + [{"id": "x"}])
    replies = [
        {"when": {"id": str(n)}, "reply": {"quote": None, "reason": "", "answer": score}}
        for n, score in enumerate((2, 4, 4, 5))
    ]
    Path("judge.yaml").write_text(json.dumps({"replies": replies}))
    done = typed("validate", "mails.jsonl", *SCALE, "--on", "text", "-m", "scripted:judge.yaml")
    # Mean 15/4; s = sqrt(19/12) = 1.2583; t(3) = 3.1824: 3.75 -+ 2.0023
    assert (
        "question: mean score 3.75, 95% interval 1.75 to 5.00 (4 of 5 scored)"
        in done.stderr.decode()
    )
    assert b"question: fail (score 2)" in done.stdout


BETTER = "name: better\nquestion: Which is clearer?\ncompare: [text, other]\npass: text\n"


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (1, 2, ("text", "pass")),
        (2, 1, ("other", "fail")),
        (1, 1, (None, "abstain")),
        (2, 2, (None, "abstain")),
    ],
)
@pytest.mark.parametrize("method", ["structured", "logprobs"])
def test_a_comparison_stands_where_both_orders_agree(
    judged: Any, first: int, second: int, found: tuple[str | None, str], method: str
) -> None:
    Path("better.yaml").write_text(BETTER)
    replies = []
    record = Record("mails.jsonl", 1, MAILS[0]).of_kind("record")
    assert isinstance(record, Record)
    head = f"[answer 1 {record.mark(['text', 'other'])}]\n"
    for when, answer in ((f"{head}Send", first), (f"{head}Whenever", second)):
        chances = {"1": 0.9, "2": 0.1} if answer == 1 else {"1": 0.1, "2": 0.9}
        reply = {"quote": None, "reason": "Clear.", "answer": str(answer)}
        both = {"words": chances} if method == "logprobs" else {"reply": reply}
        replies.append((when, both))
    entries = [{"when": {"contains": f"{when}"}, **both} for when, both in replies]
    check, _ = judged(entries, "--rubric", "better.yaml", "--method", method)
    assert (check.get("answer"), check["verdict"]) == found
    if found[0] is None:
        assert check["reason"] == "the orders disagree"


def test_all_mistakes_of_a_question_are_told_at_once(typed: Typed) -> None:
    typed.write("mails.jsonl", MAILS)
    Path("bad.yaml").write_text(
        "name: Bad name\nquestion: Is it so?\nanswer: [a, b]\nanswers: [1, 3, 2]\n"
        "quote: {field: text, answers: [a]}\nfields: [other]\nmax_tokens: 1\n"
    )
    code, _, told = typed.text(
        "validate", "mails.jsonl", "--rubric", "bad.yaml", "-m", "scripted:x"
    )
    assert code == 2
    assert told.removeprefix("judge: ").splitlines() == [
        "bad.yaml:1: name: a name has small letters, digits and _, as in clear_words",
        "bad.yaml:3: answer: unknown key; did you mean 'answers'?",
        "bad.yaml:4: answers: list the scores in rising order",
        "bad.yaml:5: quote: 'text' is not among the fields",
        "bad.yaml:7: max_tokens: must be at least 16",
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("question: Is it so: yes?", """3: not valid YAML: *question: 'Is it so: yes?'"""),
        ("question: Ann's: so?", """3: not valid YAML: *question: 'Ann''s: so?'"""),
        ("question: {email} polite?", "3: not valid YAML: *question: '{email} polite?'"),
        ('question: "It" is?', """3: not valid YAML: *question: '"It" is?'"""),
        ("question: @home?", "3: not valid YAML: *question: '@home?'"),
        ("answers: [a, - b: c: d]", "3: not valid YAML: "),
        ("question: Is it\n  so: yes?", "4: not valid YAML: *a text with ': ' needs quotes, and"),
        ("qestion: Is it so?", "3: qestion: unknown key; did you mean 'question'?"),
        ("questoins: {a: Is it so?}", "3: questoins: unknown key; did you mean 'questions'?"),
    ],
)
def test_a_misspelt_key_or_a_text_without_quotes_is_told_alone(
    typed: Typed, line: str, told: str
) -> None:
    Path("bad.yaml").write_text(f"title: So\nname: so\n{line}\n")
    typed.write("mails.jsonl", MAILS)
    code, _, err = typed.text("validate", "mails.jsonl", "--rubric", "bad.yaml", "-m", "scripted:x")
    assert code == 2 and err.count("\n") == 1
    begins, _, ends = told.partition("*")
    assert err.startswith(f"judge: bad.yaml:{begins}") and ends in err


def test_labels_of_ones_own_are_what_passes(typed: Typed) -> None:
    labels = ("JP", "de", "FR")
    typed.write("in.jsonl", [{"id": label, "text": "Rice.", "label": label} for label in labels])
    Path("country.yaml").write_text(
        "name: country\nquestion: Which one?\nfields: [text]\nanswers: [JP, DE]\npass: = label\n"
    )
    model = typed.script("jp.yaml", [{"reply": {"quote": None, "reason": "", "answer": "JP"}}])
    words = ("validate", "in.jsonl", "--rubric", "country.yaml", "-m", model)
    found = [json.loads(line)["judge"] for line in typed.text(*words)[1].splitlines()]
    assert [one["verdict"] for one in found] == ["pass", "fail", "abstain"]
    assert [one["checks"][0].get("answer") for one in found] == ["JP", "JP", None]
    assert found[1]["reason"] == "country: fail (JP)"
    assert found[2]["checks"][0]["reason"] == "the record's label is not one of JP, DE"
    assert "country: 2 JP (2 of 2 answered)" in typed.text(*words, "-o", "out.jsonl")[2]


def test_wrong_labels_that_differ_are_no_answer(typed: Typed) -> None:
    typed.write("in.jsonl", [{"id": "a", "text": "Rice.", "label": "FR"}])
    keys = {"name": "country", "question": "Which?", "answers": ["JP", "DE", "FR"]}
    Path("country.yaml").write_text(json.dumps({**keys, "pass": "= label", "fields": ["text"]}))
    models = []
    for label in ("JP", "DE"):
        reply = {"quote": None, "reason": "", "answer": label}
        models += ["-m", typed.script(f"{label}.yaml", [{"reply": reply}])]
    told = typed.text("validate", "in.jsonl", "--rubric", "country.yaml", *models, "-o", "o.jsonl")
    (check,) = json.loads(typed.read("o.jsonl"))["judge"]["checks"]
    assert check["verdict"] == "fail" and "answer" not in check and "answered)" not in told[2]
    assert typed("export", "o.jsonl", "-o", "o.csv").returncode == 0
    (row,) = csv.DictReader(typed.read("o.csv").decode("utf-8-sig").splitlines())
    assert (row["country.verdict"], row["country.answer"]) == ("fail", "")


def test_mistakes_of_several_questions_are_told_at_once_with_their_lines(typed: Typed) -> None:
    typed.write("mails.jsonl", MAILS)
    Path("bad.yaml").write_text(
        "name: mail\nquestions:\n  polite: Is {{ it }} so?\n  tone:\n    question: Which?\n"
        "    answers: [a, b]\n    pass: c\n    feilds: [x]\n  json: Is it JSON?\n  list: [x]\n"
    )
    code, _, told = typed.text("validate", "mails.jsonl", "--rubric", "bad.yaml", "-m", "openai:x")
    assert code == 2
    assert told.removeprefix("judge: ").splitlines() == [
        "bad.yaml:3: questions.polite.question: unknown variable 'it'; known are label; name a "
        "field of the record in needs",
        "bad.yaml:7: questions.tone.pass: 'c' is not one of the answers a, b",
        "bad.yaml:8: questions.tone.feilds: unknown key",
        "bad.yaml:10: questions.list: write the question's text, or a mapping of its keys",
    ]


def test_a_plan_of_several_questions_counts_one_call(typed: Typed) -> None:
    typed.write("mails.jsonl", MAILS)
    Path("m.yaml").write_text("name: m\nquestions: {copy: Is it so?, json: Is it JSON?}\n")
    model = ("-m", "scripted:judge.yaml")
    Path("judge.yaml").write_text("replies: []")
    code, told, _ = typed.text("plan", "mails.jsonl", "--rubric", "m.yaml", *model)
    assert code == 0
    assert re.search(r"^m \(final\) +1 +1$", told, re.MULTILINE), told


@pytest.mark.parametrize(
    ("words", "reply", "made"),
    [
        (("-m", "scripted:a.yaml"), "yes", 1),
        (("-m", "scripted:a.yaml", "--votes", "3"), "yes", 3),
        (("-m", "scripted:a.yaml", "--reasks", "1"), "perhaps", 2),
        # The cheap judge decides the first question; the judge's one reply is about the second.
        (("-m", "scripted:a.yaml", "--cheap-model", "scripted:cheap.yaml"), "yes", 3),
        (("-m", "scripted:a.yaml", "--model-for", "m.first=scripted:b.yaml"), "yes", 2),
    ],
)
def test_usage_has_each_reply_to_several_questions_once(
    typed: Typed, words: tuple[str, ...], reply: str, made: int
) -> None:
    typed.write("mails.jsonl", MAILS)
    Path("m.yaml").write_text("name: m\nquestions: {first: Is it so?, second: Is it late?}\n")
    part = {"quote": None, "reason": "So.", "answer": reply}
    script = json.dumps({"replies": [{"reply": {"first": part, "second": part}}]})
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text(script)
    chances = [{"when": {"contains": "Is it so?"}, "p_yes": 0.95}, {"p_yes": 0.5}]
    Path("cheap.yaml").write_text(json.dumps({"replies": chances}))
    done = typed("validate", "mails.jsonl", "--rubric", "./m.yaml", *words)
    (line,) = lines(done.stdout)
    assert line["judge"]["usage"]["replies"] == made, done.stderr.decode()


def test_usage_has_the_reply_about_each_text_of_a_repaired_record(typed: Typed) -> None:
    typed.write("n.jsonl", [norm(1)])
    part = {"quote": None, "reason": "So.", "answer": "no"}
    good = {"quote": "and greets Bo", "reason": "So.", "answer": "yes"}
    script = [
        {"when": {"rubric": "m"}, "reply": {"first": part, "second": part}},
        {"when": {"rubric": "story_regeneration"}, "reply": {"story": "Ann waves and greets Bo."}},
        {"when": {"contains": "number 1"}, "reply": part},
        {"reply": good},
    ]
    judge = typed.script("judge.yaml", script)
    Path("m.yaml").write_text("name: m\nquestions: {first: Is it so?, second: Is it late?}\n")
    words = ("--check", "relevance", "--rubric", "./m.yaml", "--repair", "-m", judge)
    (line,) = lines(typed("validate", "n.jsonl", *words).stdout)
    # Of each text one reply about both questions, and relevance: of the new one by two judges.
    assert line["judge"]["usage"]["replies"] == (1 + 1) + 1 + (1 + 2)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--answers", "0-100", "--ask", "?"), "--answers: 0-100 is 101 scores"),
        (("--ask", "?", "--ask", "!", "--name", "a"), "--name: 1 for 2 questions"),
        (("--ask", "?", "--ask", "!", "--name", "a,a"), "--name a: it is named twice"),
        (("--ask", "?", "--tie"), "--tie needs --compare"),
        (("--compare", "text"), "--compare text: name two fields"),
        (("--answers", "1,2", "--pass", "2", "--ask", "?"), "--pass: scores pass by a bound"),
        (("--answers", "1,2", "--pass", ">= 3", "--ask", "?"), "--pass: no score passes '>= 3'"),
        (("--answers", "a,b", "--pass", "c", "--ask", "?"), "'c' is not one of the answers a, b"),
        (("--answers", "a,a", "--pass", "a", "--ask", "?"), "--answers: give at least two"),
        (("--answers", "a,A", "--pass", "a", "--ask", "?"), "'a' and 'A' are one answer"),
        (("--answers", "no,b,false", "--pass", "b", "--ask", "?"), "'no' and 'false' are one"),
        (("--answers", "a,b"), "--answers, --pass and --name need --ask"),
    ],
)
def test_answers_that_cannot_be_are_refused(
    typed: Typed, words: tuple[str, ...], told: str
) -> None:
    typed.write("mails.jsonl", MAILS)
    code, _, said = typed.text("validate", "mails.jsonl", *words, "-m", "scripted:x.yaml")
    assert code == 2 and told in said


@pytest.mark.parametrize(
    ("answers", "labels", "left_out"),
    [
        # What the rubric has is an answer, whatever it stands for elsewhere.
        ("warm,None", ("Warm.", " NONE ", "NULL", "n/a"), 2),
        ("1,2,3", ("1.0", "2.00", "nan", "None"), 2),
        ("true,false", ("TRUE", "no.", "-", "<NA>"), 2),
    ],
)
def test_calibrate_reads_labels_in_any_spelling(
    typed: Typed, answers: str, labels: tuple[str, ...], left_out: int
) -> None:
    rows = "".join(f"{n},{label},mail {n}\n" for n, label in enumerate(labels))
    Path("labels.csv").write_text(f"item,label,mail\n{rows}")
    one, two = answers.split(",")[:2]
    reply = {"quote": None, "reason": "So."}
    model = typed.script(
        "judge.yaml",
        [
            {"when": {"contains": f"mail {n}"}, "reply": {**reply, "answer": answer}}
            for n, answer in enumerate((one, two.upper() + ".", one, one))
        ],
    )
    words = ("--ask", "What is it?", "--answers", answers, "--pass", one, "--on", "mail")
    if answers.startswith("1"):
        words = (*words[:5], ">= 2", *words[6:])
    done = typed("calibrate", "labels.csv", "-m", model, "--no-controls", "--json", *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (check,) = report["checks"]
    assert (check["with_reference"], report["no_label"]) == (2, left_out)
    assert check["judges"][0]["uncalibrated"]["accuracy"]["value"] == 1.0
    assert b"no label (none, NULL, NA, - and the like): 2 answers, left out" in done.stderr


def test_the_mean_recall_of_extractions_is_told_over_records_and_over_values(typed: Typed) -> None:
    presences = {"a": ("fully", "absent", "absent", "absent"), "b": ("fully",), "c": ("partially",)}
    typed.write(
        "e.jsonl",
        [
            {"id": id, "values": [f"V{n}--Agree" for n in range(len(one))], "predicted": ["P"]}
            for id, one in presences.items()
        ]
        + [{"id": "lost", "values": ["V--Agree", "W--Agree"], "predicted": ["P"]}],
    )
    replies: list[dict[str, Any]] = [
        {
            "when": {"id": id},
            "reply": {
                "values": [
                    {
                        "value": number,
                        "predicted": [] if presence == "absent" else [1],
                        "reason": "",
                        "presence": presence,
                    }
                    for number, presence in enumerate(one, 1)
                ]
            },
        }
        for id, one in presences.items()
    ]
    judge = typed.script("judge.yaml", [*replies, {"text": "no"}])
    run = ("validate", "e.jsonl", "-m", judge, "-o", "o.jsonl", "--summary", "s.json")
    done = typed(*run)
    # Records: (1/4 + 1 + 1/2) / 3; s = 0.3819, t(2) = 4.3027. Values: (1 + 1 + 0.5) / 6.
    told = "mean recall 0.58 (0.00 to 1.00) (3 of 4 records); over values 0.42 (6 of 8)"
    assert told in done.stderr.decode()
    recall = json.loads(typed.read("s.json"))["recall"]
    assert (recall["records"]["value"], recall["values"]["value"]) == (0.583333, 0.416667)
    typed(*run, "--resume")
    assert json.loads(typed.read("s.json"))["recall"] == recall


def test_a_check_of_several_rubrics_of_ones_own_is_made_alone(typed: Typed) -> None:
    typed.write("m.jsonl", [{"id": "1", "text": "Thanks."}])
    (typed.folder / "own").mkdir()
    for name in ("polite", "short"):
        text = f"name: {name}\nquestion: Is it {name}?\nfields: [text]\n"
        (typed.folder / "own" / f"{name}.yaml").write_text(text)
    model = typed.script("yes.yaml", [{"reply": {"reason": "r", "answer": "yes", "quote": None}}])
    done = typed("validate", "m.jsonl", "--rubric", "./own", "--check", "short", "-m", model)
    (line,) = lines(done.stdout)
    assert [check["check"] for check in line["judge"]["checks"]] == ["short"]
    done = typed("label", "m.jsonl", "--rubric", "./own", "--check", "short", "--sheet", "s.csv")
    assert done.returncode == 0 and b"polite" not in typed.read("s.csv")


def test_equal_entries_are_asked_about_once(typed: Typed) -> None:
    typed.write("r.jsonl", [{"text": "Hm.", "moods": ["ok", "ok", "sad"]}])
    rubric = (
        "name: mood\neach: moods\nfields: [text]\nquestion: What is it?\nanswers: [good, bad]\n"
    )
    (typed.folder / "mood.yaml").write_text(rubric)
    typed.script("judge.yaml", said("good"))
    run = ("validate", "r.jsonl", "--rubric", "./mood.yaml", "-m", "scripted:judge.yaml")
    code, out, told = typed.text(*run)
    assert code == 0 and "mood: 2 good (2 of 2 entries answered)" in told
    (vote,) = json.loads(out)["judge"]["checks"][0]["votes"]
    assert [answer["value"] for answer in vote["evidence"]] == ["ok", "sad"]
