"""Tests and Python functions as checks of a run: no model, first of all, resumed and planned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.backends.scripted import ScriptedBackend
from judge.errors import UsageError

from .conftest import Typed, lines

ANSWERS = ("We guarantee it.", "A refund comes on Monday.", "No.")
CHECKS = '''
def short(record):
    """Also says why."""
    words = len(record.pop("answer").split())
    return {"pass": words < 5, "reason": f"{words} words"}

def broken(record):
    if "refund" in record["answer"]:
        raise KeyError("price")
    return True

def odd(record):
    return "yes"

def loud(record):
    print("a note")
    return True
'''
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "check"
FIRST = "answer: {not_contains: guarantee, first: true}"


@pytest.fixture
def mails(typed: Typed) -> Typed:
    """Three answers, and two rubrics that ask no model."""
    records = [{"id": str(n), "answer": answer} for n, answer in enumerate(ANSWERS, 1)]
    typed.write("m.jsonl", records)
    Path("rules").mkdir()
    Path("rules/checks.py").write_text(CHECKS)
    Path("rules/short.yaml").write_text("name: short\npython: checks.py:short")
    Path("rules/refund.yaml").write_text("name: refund\nfields: [answer]\ntest: {contains: refund}")
    return typed


def checks(out: str, key: str = "verdict") -> list[dict[str, Any]]:
    return [
        {check["check"]: check.get(key) for check in line["judge"]["checks"]}
        for line in lines(out.encode())
    ]


@pytest.mark.parametrize("gate", [("--fail-under", "82.4%"), ("--gate", "a_equals >= 82.4%")])
def test_a_share_in_percent_is_the_share_itself(typed: Typed, gate: tuple[str, str]) -> None:
    """In binary floats 82.4 / 100 is more than 103 / 125."""
    typed.write("k.jsonl", [{"a": "no" if n < 22 else "yes"} for n in range(125)])
    run = ("validate", "k.jsonl", "--test", "a: {equals: yes}", "-o", "o.jsonl", *gate)
    code, _, said = typed.text(*run)
    assert code == 0 and "0.824: holds (82.4%, 103 of 125)" in said, said


def test_a_folder_of_tests_needs_no_model(mails: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.run.models.build_client", lambda *_: pytest.fail("a client"))
    monkeypatch.setenv("JUDGE_MODEL", "openai:gpt-4o")
    run = ("validate", "m.jsonl", "--rubric", "./rules", "--gate", "short >= 60%")
    code, out, told = mails.text(*run)
    assert code == 0 and "no --model" not in told and "label about" not in told
    assert checks(out) == [
        {"refund": "fail", "short": "pass"},
        {"refund": "pass", "short": "fail"},
        {"refund": "fail", "short": "pass"},
    ]
    vote = lines(out.encode())[1]["judge"]["checks"][0]["votes"][0]
    assert (vote["method"], vote["evidence"][0]["quote"]) == ("test", "refund")
    assert lines(out.encode())[1]["answer"] == ANSWERS[1], "a function cannot change the record"
    why = ("--explain-with", "openai:no-key-is-set", "-q")
    assert mails.text("validate", "m.jsonl", "--rubric", "./rules", *why)[0] == 0, "asks none"
    planned = mails.text("plan", "m.jsonl", "--rubric", "./rules")[1]
    assert "most:   0 calls, 0 tokens read, 0 written, 0.0000 USD" in planned


def test_a_failed_first_test_saves_what_the_others_cost(
    mails: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    complete = ScriptedBackend.complete

    async def counted(self: Any, call: Any, mode: Any) -> Any:
        asked.append(call.origin.record)
        return await complete(self, call, mode)

    monkeypatch.setattr(ScriptedBackend, "complete", counted)
    Path("polite.yaml").write_text("name: polite\nquestion: Polite?\nfields: [answer]")
    run = ("m.jsonl", "-m", "scripted:yes.yaml", "--rubric", "polite.yaml")
    tests = ("--test", "answer: {length: {least: 2}}", "--test", FIRST)
    code, out, _ = mails.text("validate", *run, *tests)
    assert code == 0 and asked == ["2", "3"]
    first, second, third = checks(out)
    assert list(first) == ["answer_not_contains", "answer_length", "polite"], "tests come first"
    assert [*first.values()] == ["fail", "skipped", "skipped"]
    assert [*second.values()] == ["pass", "pass", "pass"]
    assert [*third.values()] == ["pass", "fail", "pass"], "only a first test stops the others"
    assert checks(out, "reason")[0]["polite"] == "not made: answer_not_contains failed"
    assert "most:   2 calls" in mails.text("plan", *run, *tests)[1]


def test_a_first_test_stops_a_workflow_too(mails: Typed) -> None:
    norm = {"id": "n1", "rule_of_thumb": "Greet.", "story": "Ann greets Bo.", "label": "yes"}
    mails.write("n.jsonl", [norm])
    test = ("--test", "story: {contains: Cara, first: true}", "--workflow", "norm")
    _, out, told = mails.text("validate", "n.jsonl", *test, "-m", "scripted:yes.yaml")
    verdicts = checks(out)[0]
    assert verdicts["story_contains"] == "fail" and {*verdicts.values()} == {"fail", "skipped"}
    assert verdicts["relevance"] == "skipped" and "0 calls" in told


def test_a_named_model_is_asked_the_workflows_questions_beside_tests(
    mails: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    norm = {"id": "n1", "rule_of_thumb": "Greet.", "story": "Ann greets Bo.", "label": "yes"}
    mails.write("n.jsonl", [norm])
    run = ("validate", "n.jsonl", "--test", "story: {contains: Ann}")
    asked = mails.text(*run, "-m", "scripted:yes.yaml", "--check", "relevance")[1]
    assert checks(asked)[0] == {"story_contains": "pass", "relevance": "pass"}
    with_all = checks(mails.text(*run, "-m", "scripted:yes.yaml")[1])[0]
    assert {"story_contains", "relevance", "leakage"} <= with_all.keys()
    alone = {"story_contains": "pass"}
    assert checks(mails.text(*run)[1])[0] == alone
    monkeypatch.setenv("JUDGE_MODEL", "scripted:yes.yaml")
    assert checks(mails.text(*run)[1])[0] == alone, "a variable names the model of other runs"
    monkeypatch.setenv("JUDGE_PROFILE", "none")
    assert checks(mails.text(*run)[1])[0] == alone, "and their profile"


def test_a_story_that_is_too_short_is_tested_all_the_same(mails: Typed) -> None:
    mails.write("s.jsonl", [{"story": "Ann greets Bo.", "values": ["Greeting is good--Agree"]}])
    Path("polite.yaml").write_text("name: polite\nquestion: Polite?\nfields: [story]")
    tests = ("--test", "story: {contains: Cara}", "--test", "story: {not_contains: Cara}")
    tests += ("--rubric", "polite.yaml", "--workflow", "story")
    _, out, told = mails.text("validate", "s.jsonl", *tests, "-m", "scripted:yes.yaml")
    verdicts = checks(out)[0]
    assert (verdicts["story_contains"], verdicts["story_not_contains"]) == ("fail", "pass")
    assert (verdicts["length"], verdicts["polite"]) == ("fail", "skipped") and "0 calls" in told


def test_own_checks_are_made_where_an_own_graph_makes_none(mails: Typed) -> None:
    situations, polite, graph, model = (
        str(EXAMPLES / name)
        for name in ("situations.jsonl", "polite.yaml", "../graph.py:graph", "judge.yaml")
    )
    run = ("validate", situations, "--workflow", graph, "--repair", "-m", f"scripted:{model}")
    own = ("--rubric", polite, "--test", "story: {contains: Thank}")
    thanks, silence = (line["judge"]["checks"] for line in lines(mails(*run, *own).stdout))
    for name, verdicts in (("story_contains", ["fail", "pass"]), ("polite", ["fail", "fail"])):
        assert [c["verdict"] for c in thanks if c["check"] == name] == ["pass"]
        assert [c["verdict"] for c in silence if c["check"] == name] == verdicts, (
            "as it came, rewritten"
        )


def test_a_function_that_raises_is_an_error_of_that_check_alone(mails: Typed) -> None:
    functions = [w for n in ("short", "broken", "odd") for w in ("--test", f"rules/checks.py:{n}")]
    run = ("validate", "m.jsonl", *functions, "--test", "answer: {contains: refund}")
    code, out, told = mails.text(*run)
    assert code == 3
    reasons = checks(out, "reason")
    assert reasons[1]["broken"] == "test: checks.py:9: KeyError: 'price'"
    assert "odd returned 'yes': return True, False" in reasons[0]["odd"]
    others = {"short": "fail", "answer_contains": "pass"}
    assert checks(out)[1] == {**others, "broken": "error", "odd": "error"}
    assert "3 x test" in told
    told = mails.text(*run, "-o", "o.jsonl")[2]
    assert "error: 3" in told and "to ask another model" not in told
    Path("rules/checks.py").write_text("import gone")
    code, out, told = mails.text(*run)
    assert (code, out) == (2, "") and "ModuleNotFoundError: No module named 'gone'" in told


def test_what_a_function_prints_is_no_data(mails: Typed) -> None:
    Path("rules/loud.py").write_text(f"print('loaded')\n{CHECKS}")
    code, out, told = mails.text("validate", "m.jsonl", "--test", "rules/loud.py:loud")
    assert code == 0 and checks(out) == 3 * [{"loud": "pass"}]
    assert "loaded" in told and "a note" in told


def test_a_changed_function_is_another_question(mails: Typed) -> None:
    run = ("validate", "m.jsonl", "--rubric", "rules/short.yaml", "-o", "o.jsonl")
    assert mails.text(*run)[0] == 0
    before = mails.read("o.jsonl")
    assert mails.text(*run, "--resume")[0] == 0 and mails.read("o.jsonl") == before
    Path("rules/checks.py").write_text(CHECKS.replace("< 5", "< 9"))
    code, _, told = mails.text(*run, "--resume")
    assert code == 2 and "short" in told and mails.read("o.jsonl") == before


def test_python_runs_only_where_the_user_names_it(mails: Typed) -> None:
    Path("rules/checks.py").write_text("open('ran', 'w')\n" + CHECKS)
    run = ("validate", "m.jsonl", "--trust-config")
    for name, value in (("rubric", "rules/short.yaml"), ("test", "rules/checks.py:short")):
        Path("judge.toml").write_text(f'{name} = ["{value}"]')
        code, out, told = mails.text(*run)
        assert (code, out) == (2, "") and "name it on the command line" in told
        assert not Path("ran").exists()
    assert mails.text(*run, "--test", "rules/checks.py:short")[0] == 0 and Path("ran").exists()


def test_a_field_that_no_record_has_is_told_before_anything_is_judged(mails: Typed) -> None:
    code, _, told = mails.text("validate", "m.jsonl", "--test", "anser: {contains: x}")
    assert code == 2 and "did you mean answer?" in told
    mails.write("m.jsonl", [{"id": 1, "answer": ""}, {"id": 2, "other": "x"}])
    two = ("--test", "answer: {length: {least: 1}}", "--test", "other: {contains: x}")
    out = mails.text("validate", "m.jsonl", *two)[1]
    assert [one["answer_length"] for one in checks(out)] == ["fail", "skipped"]
    assert checks(out, "reason")[1]["answer_length"] == "the record has no answer"


def test_each_entry_of_a_list_is_tested(mails: Typed) -> None:
    mails.write("m.jsonl", [{"claims": ["Rain on Monday.", "Rain on Monday.", "Sun."]}])
    Path("claims.yaml").write_text("name: dry\neach: claims\ntest: {not_contains: Rain}")
    (line,) = lines(mails.text("validate", "m.jsonl", "--rubric", "./claims.yaml")[1].encode())
    answers = line["judge"]["checks"][0]["votes"][0]["evidence"]
    assert [(a["value"], a["verdict"]) for a in answers] == [
        ("Rain on Monday.", "fail"),
        ("Sun.", "pass"),
    ]
    mails.write("m.jsonl", [{"claims": []}, {"claims": None}, {"claims": {"first": "Sun."}}])
    code, out, _ = mails.text("validate", "m.jsonl", "--rubric", "./claims.yaml")
    wanted = [*["the record has no text in claims"] * 2, "the record has no list claims"]
    assert code == 3, "no record has anything to test"
    assert checks(out, "reason") == [{"dry": reason} for reason in wanted]


def test_a_test_is_no_question_for_people(mails: Typed) -> None:
    words = ("label", "m.jsonl", "--rubric", "rules/refund.yaml", "--sheet", "s.csv")
    code, _, told = mails.text(*words)
    assert code == 2 and "refund is a test" in told


def test_python_takes_a_function_or_a_test(mails: Typed) -> None:
    def polite(record: dict[str, Any]) -> bool:
        return bool(record["answer"].endswith("."))

    test = {"name": "refund", "fields": ["answer"], "test": {"contains": "refund"}}
    judged = judge.validate(["no"], rubric=[lambda r: r["text"] == "no"]).all()
    assert [str(one.verdict) for one in judged] == ["pass"]
    rows = judge.validate([{"answer": a} for a in ANSWERS], rubric=[polite, test]).all()
    named = [(row["polite.verdict"], row["refund.verdict"]) for row in (r.to_dict() for r in rows)]
    assert named == [("pass", "fail"), ("pass", "pass"), ("pass", "fail")]
    with pytest.raises(UsageError, match="wrap it in a def"):
        judge.validate(["a"], rubric=len)


def test_a_quote_of_a_function_stands_in_the_record(mails: Typed) -> None:
    quotes = iter(('You "fool", go', "Get out", ""))

    def rude(record: dict[str, Any]) -> dict[str, Any]:
        record["turns"] = "Get out."  # What a function does to its copy is no evidence.
        return {"pass": False, "quote": next(quotes)}

    judged = judge.validate([{"turns": ["You “fool”, go."]}] * 3, rubric=rude).all()
    rows = [row.to_dict() for row in judged]
    assert [(row["judge.verdict"], row["rude.quote"]) for row in rows] == [
        ("fail", "You “fool”, go"),
        ("fail", None),
        ("fail", ""),
    ]
    reasons = [row.checks[0].votes[0].reason for row in judged]
    assert reasons == [None, "the function's quote is not in the record, and is left out", None]


def test_a_profile_brings_no_code(mails: Typed) -> None:
    rubric = {"name": "short", "pass": "yes", "first_token": [], "python": "rules/checks.py:short"}
    Path("p.json").write_text(json.dumps({"made_by": "x", "rubrics": [rubric], "judges": []}))
    code, _, told = mails.text("validate", "m.jsonl", "--profile", "p.json")
    assert code == 2 and "a profile cannot hold Python" in told
