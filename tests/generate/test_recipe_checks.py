"""What a recipe's rubrics may be, and which fields its drafts have."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.conftest import lines
from tests.cli.typed import Typed

RECIPE = """\
name: writer
fields: [email]
question: "Write a reply.{% if findings %} AGAIN {{ findings }}{% endif %}"
writes: [reply]
rubrics: [friendly.yaml]
"""
FRIENDLY = "name: friendly\nfields: [reply]\nquestion: Is it friendly?\n"
SHORT = "name: short\nfields: [reply]\ntest: {length: {of: words, most: 3}}\nfirst: true\n"
YES = {"when": {"rubric": "friendly"}, "reply": {"reason": "", "answer": "yes", "quote": None}}
WRITER = [
    YES,
    {"when": {"contains": "AGAIN"}, "reply": '{"reply": "Thanks for {{ email }}"}'},
    {"reply": '{"reply": "Thank you very much for {{ email }}"}'},
]


@pytest.fixture
def typed(typed: Typed) -> Typed:
    """A recipe, a rubric, a test and two e-mails."""
    for name, text in (("r.yaml", RECIPE), ("friendly.yaml", FRIENDLY), ("short.yaml", SHORT)):
        (typed.folder / name).write_text(text)
    typed.write("in.jsonl", [{"id": n, "email": f"{n}."} for n in "ab"])
    return typed


@pytest.mark.parametrize("own", [True, False])
def test_a_test_comes_before_the_questions_and_is_written_anew_for(typed: Typed, own: bool) -> None:
    typed.script("w.yaml", WRITER)
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml")
    if own:
        (typed.folder / "r.yaml").write_text(RECIPE.replace("y.yaml", "y.yaml, short.yaml"))
    else:
        words += ("--rubric", "./short.yaml")
    code, out, err = typed.text(*words)
    assert code == 0 and "2 of 2 drafts kept" in err, err
    # Of a long reply nothing is asked; of three words the judge is.
    assert " 6 calls" in err
    for line in lines(out.encode()):
        came = {(c["check"], c["round"]): c["verdict"] for c in line["judge"]["checks"]}
        assert came == {
            ("short", 1): "fail",
            ("friendly", 1): "skipped",
            ("short", 2): "pass",
            ("friendly", 2): "pass",
        }
    # A plan makes texts up, of which no test can tell: it counts them as all other questions.
    _, plan, _ = typed.text(*words, "--dry-run")
    rows = dict(row.rsplit(maxsplit=2)[::2] for row in plan.splitlines()[2:5])
    assert rows == {"rewriting": "8", "short (test)": "0", "friendly (loop)": "8"}, plan
    least = {row.split()[0]: row.rsplit(maxsplit=2)[1] for row in plan.splitlines()[2:5]}
    assert least == {"rewriting": "2", "short": "0", "friendly": "2"}


def test_a_question_whose_answers_are_counted_rejects_nothing(typed: Typed) -> None:
    tone = "name: tone\nfields: [reply]\nquestion: Which tone?\nanswers: [formal, casual]\n"
    (typed.folder / "tone.yaml").write_text(tone)
    said = {"reason": "", "answer": "formal", "quote": None}
    typed.script("w.yaml", [{"when": {"rubric": "tone"}, "reply": said}, *WRITER])
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml", "--rubric", "./tone.yaml")
    code, out, err = typed.text(*words)
    assert code == 0 and "2 of 2 drafts kept" in err and " 6 calls" in err, err
    verdicts = [[c["verdict"] for c in line["judge"]["checks"]] for line in lines(out.encode())]
    assert verdicts == [["pass", "answered"]] * 2


def test_a_draft_has_one_id_and_names_the_line_that_it_is_made_from(typed: Typed) -> None:
    typed.script("w.yaml", WRITER)
    words = ("generate", "r.yaml", "in.csv", "-m", "scripted:w.yaml")
    for column, more in (("ID", ()), ("_id", ()), ("nr", ("--map", "id=nr"))):
        (typed.folder / "in.csv").write_text(f"{column},email\nm-1,Hello.\n")
        code, out, err = typed.text(*words, *more)
        (line,) = lines(out.encode())
        assert code == 0 and (line["id"], line["lineage"]["parent"]) == ("r-0-1", "m-1"), err
        assert {*line} == {"id", "email", "lineage", "reply", "judge"}


@pytest.mark.parametrize("rubrics", ["policy.yaml", "friendly.yaml, policy.yaml"])
def test_a_draft_whose_rubric_could_not_be_asked_is_not_kept(typed: Typed, rubrics: str) -> None:
    policy = "name: policy\nfields: [reply, policy]\nquestion: Does it follow the policy?\n"
    (typed.folder / "policy.yaml").write_text(policy)
    (typed.folder / "r.yaml").write_text(RECIPE.replace("friendly.yaml", rubrics))
    typed.script("w.yaml", [{**YES, "when": {"rubric": "policy"}}, *WRITER])
    typed.write("in.jsonl", [{"email": f"{n}.", "policy": "Be short." * n} for n in (1, 0)])
    code, _, err = typed.text("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml")
    assert code == 0 and "1 of 2 drafts kept" in err and "abstain 1" in err
    # Another text would not help, so none is asked for.
    assert f" {2 + len(rubrics.split()) * 2 - 1} calls" in err


def test_a_text_is_not_written_anew_because_a_judge_s_reply_cannot_be_read(typed: Typed) -> None:
    typed.script("w.yaml", [{"when": {"rubric": "friendly"}, "text": "Well."}, *WRITER])
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml", "-o", "kept.jsonl")
    code, _, err = typed.text(*words)
    assert code == 3 and "unreadable 2" in err
    for line in lines(typed.read("kept.jsonl.discarded.jsonl")):
        assert line["reply"].startswith("Thank you very much")
        assert [check["round"] for check in line["judge"]["checks"]] == [1]


def test_people_decide_about_drafts_of_renamed_columns(typed: Typed) -> None:
    no = {**YES, "reply": {"reason": "", "answer": "no", "quote": None}}
    typed.script("w.yaml", [no, *WRITER])
    typed.write("in.jsonl", [{"mail": "Hello."}])
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml", "--map", "email=mail")
    typed.text(*words, "-o", "kept.jsonl", "--review", "mine.jsonl")
    (asked,) = lines(typed.read("mine.jsonl"))
    typed.write("mine.jsonl", [{**asked, "labels": {"friendly": "yes"}}])
    code, _, err = typed.text(*words, "-o", "kept.jsonl", "--resume", "--decisions", "mine.jsonl")
    assert code == 0 and "1 of 1 draft kept; 1 kept by people" in err, err


def test_a_draft_names_the_model_of_the_step_that_writes_it(typed: Typed) -> None:
    for name in ("w.yaml", "other.yaml"):
        typed.script(name, WRITER)
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml", "--judge-model")
    for model, more in (("w", ()), ("other", ("--step", "writer=scripted:other.yaml"))):
        out = typed.text(*words, "scripted:w.yaml", *more)[1]
        assert {one["lineage"]["model"] for one in lines(out.encode())} == {
            f"scripted:{model}.yaml"
        }


def test_a_verdict_about_the_source_is_none_about_the_draft(typed: Typed) -> None:
    typed.script("w.yaml", WRITER)
    heads = "email,judge.verdict,friendly.verdict,friendly.reason"
    (typed.folder / "in.csv").write_text(f"{heads}\nHello.,fail,fail,Rude.\n")
    typed.text("generate", "r.yaml", "in.csv", "-m", "scripted:w.yaml", "-o", "kept.jsonl")
    assert {*lines(typed.read("kept.jsonl"))[0]} == {"id", "email", "lineage", "reply", "judge"}
    assert typed.text("build", "filtered", "kept.jsonl", "-o", "sound.jsonl")[0] == 0


def test_what_is_written_replaces_a_column_however_it_is_spelt(typed: Typed) -> None:
    typed.script("w.yaml", WRITER)
    (typed.folder / "in.csv").write_text("email,Reply\nHello.,Mine.\n")
    words = ("generate", "r.yaml", "in.csv", "-m", "scripted:w.yaml")
    code, _, err = typed.text(*words, "-o", "kept.jsonl")
    assert code == 0 and "what is written replaces Reply of the source" in err
    # So that judges of the set know which of the two is meant.
    assert typed.text("validate", "kept.jsonl", "--rubric", "./friendly.yaml", *words[3:])[0] == 0


@pytest.mark.parametrize("field", ["id", "judge", "lineage", "labels"])
def test_a_field_that_judge_writes_itself_is_refused(typed: Typed, field: str) -> None:
    (typed.folder / "r.yaml").write_text(RECIPE.replace("[reply]", f"[{field}]"))
    code, out, err = typed.text("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml")
    assert (code, out) == (2, "") and "r.yaml:4: writes.0: judge itself writes this field" in err


def test_a_field_inside_an_object_is_counted(typed: Typed) -> None:
    typed.script("w.yaml", WRITER)
    (typed.folder / "r.yaml").write_text(f"{RECIPE}counted: [meta.country, meta.tags]\n")
    metas = [{"country": "JP", "tags": ["x", "y"]}, {"country": "PE", "tags": ["x"]}]
    typed.write("in.jsonl", [{"email": "Hello.", "meta": meta} for meta in metas])
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml", "--summary", "s.json")
    assert typed.text(*words)[0] == 0
    counts = json.loads(typed.read("s.json"))["diversity"]["counts"]
    assert counts == {"meta.country": {"JP": 1, "PE": 1}, "meta.tags": {"x": 2, "y": 1}}


@pytest.mark.skipif(os.name != "posix", reason="there is no such device")
def test_beside_a_device_no_file_is_made(typed: Typed) -> None:
    typed.script("w.yaml", WRITER)
    (typed.folder / "null").symlink_to(os.devnull)
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml", "-o")
    code, _, err = typed.text(*words, "null")
    assert code == 0 and "2 of 2 drafts kept" in err and "not kept:" not in err
    typed.text(*words, "kept.jsonl")
    assert typed.text("build", "filtered", "kept.jsonl", "-o", "null")[0] == 0
    assert [path.name for path in typed.folder.glob("null*")] == ["null"]


@pytest.mark.parametrize(
    ("variable", "content"),
    [
        ("CHECK", "relevance"),
        ("WORKFLOW", "story"),
        ("ASK", "Is it?"),
        ("COMPARE", "a,b"),
        ("TEST", "reply: {contains: nowhere}"),
        ("FINAL_MODEL", "scripted:nowhere.yaml"),
    ],
)
def test_what_other_runs_ask_changes_no_generation(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, variable: str, content: str
) -> None:
    no = {**YES, "reply": {"reason": "", "answer": "no", "quote": None}}
    typed.script("w.yaml", [{**no, "when": {"rubric": "friendly", "contains": "for b."}}, *WRITER])
    words = ("generate", "r.yaml", "in.jsonl", "-m", "scripted:w.yaml")
    plain = typed.text(*words)
    assert "1 of 2 drafts kept" in plain[2]
    monkeypatch.setenv(f"JUDGE_{variable}", content)
    assert typed.text(*words)[:2] == plain[:2]
    hostile = ("evaluate", "hostile", "-m", "scripted:w.yaml", "--dry-run")
    assert typed.text(*hostile)[0] == 0
