"""Questions of one's own about any record: `--ask`, `--on`, short rubrics."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Typed, lines

MAILS = [
    {
        "id": 1,
        "email": "Thank you for your patience, Ms Ito.",
        "meta": {"to": "Ito", "urgent": True},
    },
    {"id": 2, "email": "Send it now. I am tired of waiting.", "tags": ["late", 3]},
    {"id": 3, "subject": "no mail"},
]
RUDE = {"quote": "I am tired of waiting", "reason": "It is rude.", "answer": "no"}
KIND = {"quote": None, "reason": "Kind words.", "answer": "yes"}


@pytest.fixture
def mails(typed: Typed) -> str:
    typed.write("mails.jsonl", MAILS)
    script = {"replies": [{"when": {"id": "2"}, "reply": RUDE}, {"reply": KIND}]}
    Path("judge.yaml").write_text(json.dumps(script))
    return "mails.jsonl"


def judged(typed: Typed, *words: str) -> list[dict[str, Any]]:
    done = typed("validate", *words, "-m", "scripted:judge.yaml")
    assert done.returncode == 0, done.stderr
    return [line["judge"] for line in lines(done.stdout)]


def test_a_question_about_a_field_needs_no_file(typed: Typed, mails: str) -> None:
    found = judged(typed, mails, "--ask", "Is this e-mail polite?", "--on", "email")
    assert [one["verdict"] for one in found] == ["pass", "fail", "abstain"]
    assert found[1]["reason"] == 'question: fail: "I am tired of waiting" (It is rude.)'
    assert found[2]["checks"][0]["reason"] == "the record has no email"


def test_a_field_that_no_record_has_is_told_once(typed: Typed, mails: str) -> None:
    ask = ("--ask", "Polite?", "-m", "scripted:judge.yaml", "--quiet")
    misspelt = "judge: rubric short: emial: no record has this field; did you mean email?\n"
    for key in ("fields: [emial]", "needs: [emial]", "each: emial"):
        (typed.folder / "file.yaml").write_text(f"name: short\nquestion: Short?\n{key}\n")
        said = typed.text("validate", mails, "--rubric", "file.yaml", *ask[2:])[2]
        assert said.splitlines(keepends=True)[-1] == misspelt
    for command in ("validate", "plan"):
        for on, told in (
            (["emial"], "judge: --on emial: no record has this field; did you mean email?\n"),
            (["subject", "zz"], "judge: --on zz: no record has this field; the first has ["),
        ):
            flags = ask if command == "validate" else ask[:-1]
            code, out, said = typed.text(command, mails, *(f"--on={one}" for one in on), *flags)
            assert (code, out) == (2, "") and said.startswith(told) and said.count("\n") == 1
        tested = (*ask[:4], "--on=email", "--test=emial: {contains: a}")
        code, out, said = typed.text(command, mails, *tested)
        assert (code, out) == (2, "")
        assert said == "judge: --test emial: no record has this field; did you mean email?\n"
    code, out, said = typed.text("validate", mails, "--on=subject", *ask)
    assert (code, said) == (0, "") and out.count('"verdict":"abstain"') == 4


def test_a_rubric_of_no_workflow_is_asked_and_skipped_where_a_record_lacks_its_fields(
    typed: Typed,
) -> None:
    norm = {"rule_of_thumb": "Greet.", "story": "He greets.", "label": "yes"}
    exchange = {"post": "It rains again.", "reply": "Lovely weather.", "label": "yes"}
    other = {**exchange, "label": "perhaps"}
    typed.write("in.jsonl", [exchange, {"post": "No reply to this."}, norm, other])
    words = ("in.jsonl", "--check", "irony", "--check", "relevance", "-m", "scripted:yes.yaml")
    code, out, _ = typed.text("validate", *words)
    found = [json.loads(line)["judge"] for line in out.splitlines()]
    assert code == 0 and [one["verdict"] for one in found] == ["pass", "abstain", "pass", "abstain"]
    made = [{one["check"]: one["verdict"] for one in line["checks"]} for line in found]
    assert made[0] == {"irony": "pass"} and made[1] == {"irony": "abstain"}
    assert made[2] == {"relevance": "pass", "irony": "skipped"}
    assert found[1]["checks"][0]["reason"] == "the record has no reply, label"
    assert found[3]["checks"][0]["reason"] == "the record's label is not one of yes, no"


def test_nothing_else_is_asked_of_a_record_of_a_known_kind(typed: Typed, mails: str) -> None:
    typed.write("norms.jsonl", [{"rule_of_thumb": "Greet.", "story": "He greets.", "mood": "calm"}])
    (found,) = judged(typed, "norms.jsonl", "--ask", "Is it calm?", "--on", "mood")
    assert [check["check"] for check in found["checks"]] == ["question"]


def test_a_rubric_of_a_name_and_a_question_shows_what_it_names(typed: Typed, mails: str) -> None:
    Path("polite.yaml").write_text("name: polite\nquestion: Is it polite?\nfields: [meta.to]\n")
    found = judged(typed, mails, "--rubric", "polite.yaml")
    assert [one["checks"][0]["verdict"] for one in found] == ["pass", "abstain", "abstain"]
    Path("polite.yaml").write_text("name: polite\nquestion: Is it polite?\n")
    found = judged(typed, mails, "--rubric", "polite.yaml")
    assert [one["verdict"] for one in found] == ["pass", "fail", "pass"]


def test_what_is_printed_of_a_quote_is_the_texts_own_words(typed: Typed) -> None:
    """With a rubric that must quote, and with one that need not."""
    texts = ("I\u00a0am\u200b tired\nof wai\u00adting, Bo", "I am not tired of waiting")
    typed.write("in.jsonl", [{"id": n, "story": text} for n, text in enumerate(texts)])
    script = {"replies": [{"reply": {**RUDE, "quote": "I am tired, of waiting."}}]}
    Path("judge.yaml").write_text(json.dumps(script))
    Path("polite.yaml").write_text(
        'name: polite\nfields: [story]\nquestion: Polite?\nquote: {field: story, answers: ["no"]}\n'
    )
    for words in (("--ask", "Polite?", "--on", "story"), ("--rubric", "polite.yaml")):
        done = typed(
            "validate", "in.jsonl", "--workflow=record", *words, "-m", "scripted:judge.yaml"
        )
        votes = [line["judge"]["checks"][0]["votes"][0] for line in lines(done.stdout)]
        quotes = [vote["evidence"][0].get("quote") for vote in votes]
        assert quotes == [texts[0].removesuffix(", Bo"), None]
        assert votes[0]["verdict"] == "fail"
        assert votes[1]["verdict"] == ("fail" if words[0] == "--ask" else "unreadable")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--ask", " "), "--ask: the question is empty"),
        (("--ask", "Is {{ it }} so?"), "--ask: unknown variable 'it'"),
        (("--on", "email"), "--on needs --ask"),
        (("--workflow", "record"), "add --ask or --rubric"),
        (("--ask", "So?", "--name", "record"), "--name record: it stands for whole records"),
        # Its columns would replace the record's verdict in every table.
        (("--ask", "So?", "--name", "judge"), "--name judge: columns of tables begin with it"),
    ],
)
def test_what_cannot_be_asked_is_said(
    typed: Typed, mails: str, words: tuple[str, ...], told: str
) -> None:
    code, _, said = typed.text("validate", mails, *words, "-m", "scripted:judge.yaml")
    assert code == 2 and told in said


CLAIMS = """
name: faithful
question: Do the contexts say this claim?
fields: [contexts]
each: claims
quote: {field: contexts, answers: ["yes"]}
"""


def test_each_asks_about_every_entry_by_itself(typed: Typed) -> None:
    """The claims of an answer, also as a table has a list in its cell; none of them, no verdict."""
    contexts = ["It was opened in 1894.", "Anna Berg built it."]
    both = ["Anna Berg built it.", "It is blue."]
    claims = [both, both[:1], json.dumps(both), "\n".join(both), [], {"claim": "one"}]
    rows = [{"id": str(n), "contexts": contexts, "claims": one} for n, one in enumerate(claims)]
    typed.write("in.jsonl", rows)
    Path("claims.yaml").write_text(CLAIMS)
    blue = {"quote": None, "reason": "No colour.", "answer": "no"}
    built = {"quote": "Anna Berg built it", "reason": "It says so.", "answer": "yes"}
    asked = {"when": {"contains": "It is blue.\n[end"}, "reply": blue}
    Path("judge.yaml").write_text(json.dumps({"replies": [asked, {"reply": built}]}))
    found = judged(typed, "in.jsonl", "--rubric", "claims.yaml")
    assert [one["verdict"] for one in found] == ["fail", "pass", "fail", "fail", *2 * ["abstain"]]
    assert found[0]["reason"] == "faithful: 1 of 2 failed: It is blue.: No colour."
    (vote,) = found[0]["checks"][0]["votes"]
    assert found[0]["usage"]["replies"] == 2
    assert [(one["value"], one["verdict"], one.get("quote")) for one in vote["evidence"]] == [
        ("Anna Berg built it.", "pass", "Anna Berg built it"),
        ("It is blue.", "fail", None),
    ]
    reasons = [one["checks"][0]["reason"] for one in found[4:]]
    assert reasons == ["the record has no text in claims", "the record has no list claims"]


NOTE = "faithful: claims is one entry in each record, also where it has several sentences: to judge"


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        (["Anna built it. It is blue.", "It stands."], True),
        (["Anna built it. It is blue.", "Anna built it.\nIt is blue."], False),
        (["Anna built it. It is blue.", ["It stands."]], False),
        ([["Anna built it. It is blue."], ["It stands."]], False),
        (["Anna built it.", "It stands", ""], False),
    ],
)
def test_a_text_of_several_sentences_that_each_does_not_split_is_told(
    typed: Typed, claims: list[Any], told: bool
) -> None:
    """Lists of one entry, and short texts, may be meant as one."""
    typed.write("in.jsonl", [{"contexts": "Anna built it.", "answer": one} for one in claims])
    Path("claims.yaml").write_text(CLAIMS)
    reply = {"quote": None, "reason": "So.", "answer": "no"}
    Path("judge.yaml").write_text(json.dumps({"replies": [{"reply": reply}]}))
    words = ("--rubric", "claims.yaml", "--map", "claims=answer", "-m", "scripted:judge.yaml")
    said = typed.text("validate", "in.jsonl", *words)[2]
    assert (NOTE in " ".join(said.split())) == told, said


def test_each_turn_of_a_chat_is_read_by_first_tokens(typed: Typed) -> None:
    said = (("user", "Hello!"), ("assistant", "Go away."))
    chat = [{"role": role, "content": text} for role, text in said]
    typed.write("in.jsonl", [{"id": "1", "messages": chat}])
    Path("kind.yaml").write_text(
        "name: kind\nquestion: 'Is it kind to say {{ message }}?'\neach: messages\n"
    )
    script = [{"when": {"contains": "assistant: Go away.\n"}, "p_yes": 0.1}, {"p_yes": 0.8}]
    Path("judge.yaml").write_text(json.dumps({"method": "logprobs", "replies": script}))
    (found,) = judged(typed, "in.jsonl", "--rubric", "kind.yaml")
    evidence = found["checks"][0]["votes"][0]["evidence"]
    assert [(one["value"], one["verdict"], one["probability"]) for one in evidence] == [
        ("user: Hello!", "pass", 0.8),
        ("assistant: Go away.", "fail", 0.1),
    ]


@pytest.mark.parametrize(
    ("answers", "told", "refused"),
    [
        ((5, 2), "mood: 1 2, 2 5 (3 of 3 entries answered)", "mood has no mean"),
        (("warm", "rude"), "mood: 1 rude, 2 warm (3 of 3 entries answered)", "mood has no scores"),
    ],
)
def test_answers_about_entries_are_counted(
    typed: Typed, answers: tuple[Any, Any], told: str, refused: str
) -> None:
    """Without `pass` each entry is answered, by labels and by scores."""
    high, low = answers
    typed.write("in.jsonl", [{"id": 1, "turns": ["Hello!", "Go."]}, {"id": 2, "turns": ["Hi!"]}])
    rubric = {"name": "mood", "question": "Which?", "each": "turns", "answers": sorted(answers)}
    Path("mood.yaml").write_text(json.dumps(rubric))
    reply = {"quote": None, "reason": "So.", "answer": str(high)}
    curt = {"when": {"contains": "Go."}, "reply": {**reply, "answer": str(low)}}
    Path("judge.yaml").write_text(json.dumps({"replies": [curt, {"reply": reply}]}))
    run = ("validate", "in.jsonl", "--rubric", "mood.yaml", "-m", "scripted:judge.yaml")
    code, _, said = typed.text(*run, "-o", "out.csv", "--summary", "sums.json", "--by", "id")
    sums = json.loads(Path("sums.json").read_text())
    counts = {"1": {str(high): 1, str(low): 1}, "2": {str(high): 1}}
    assert sums["answers_by"] == {"id": {id: {"mood": found} for id, found in counts.items()}}
    assert code == 0 and told in said and sums["verdicts"] == {"answered": 2}
    assert sums["answers"] == {"mood": {str(high): 2, str(low): 1}}
    (first, _) = csv.DictReader(Path("out.csv").read_text().splitlines())
    assert json.loads(first["mood.entries"]) == {"Hello!": str(high), "Go.": str(low)}
    code, _, said = typed.text(*run, "--gate", "mean mood >= 3")
    assert code == 2 and refused in said
