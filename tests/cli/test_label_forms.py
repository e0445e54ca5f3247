"""Published files as they are, typed: with one option at most, and no label in a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judge.records.labels import LabelledItem, read_labels

from .conftest import cells, lines
from .typed import Typed

BETTER = "name: better\nquestion: Which is better?\ncompare: [{}, {}]\n"


def calibrated(typed: Typed, *words: str) -> dict[str, Any]:
    code, out, told = typed.text("calibrate", *words, "--json", "--no-cache", "-q")
    assert code == 0, told
    (check,) = json.loads(out)["checks"]
    (judge,) = check["judges"]
    assert judge["outcomes"]["answered"] == check["items"], judge["unanswered"]
    found: dict[str, Any] = judge
    return found


def counts(report: str) -> dict[str, int]:
    """How often each answer was given, of the one check of a report of `judge agreement`."""
    (check,) = json.loads(report)["checks"]
    found: dict[str, int] = check["overall"]["answers"]
    return found


def pairs(form: str, number: int) -> dict[str, object]:
    """A comparison of a good text and a bad one, the good one in either place."""
    good, bad = f"GOOD text {number}", f"A bad text {number}"
    first, second, left = (good, bad, True) if number % 2 else (bad, good, False)
    talks = [
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": one}]
        for one in (first, second)
    ]
    return {
        "alpaca": {"instruction": f"I{number}", "output_1": first, "output_2": second}
        | {"generator_1": "GOOD" if left else "x", "preference": 1.0 if left else 2.0},
        "mt-bench": {"question_id": number, "model_a": "m1", "model_b": "m2", "turn": 1}
        | {"winner": "model_a" if left else "model_b", "judge": "expert_1"}
        | {"conversation_a": talks[0], "conversation_b": talks[1]},
        "judgebench": {"pair_id": f"p{number}", "question": "Q", "response_A": first}
        | {"response_B": second, "label": "A>B" if left else "B>A"},
        "arena-columns": {"id": number, "prompt": "Hi", "response_a": first, "response_b": second}
        | {"winner_model_a": int(left), "winner_model_b": int(not left), "winner_tie": 0},
        "arena": {"id": f"u{number}", "model_a": "m1", "model_b": "m2", "language": "en"}
        | {"winner": "model_a" if left else "model_b"}
        | {"conversation_a": talks[0], "conversation_b": talks[1]},
        "hh": {"chosen": good, "rejected": bad},
        "ultrafeedback": {"prompt": "Hi", "chosen": talks[0 if left else 1]}
        | {"rejected": talks[1 if left else 0], "score_chosen": 9.0},
    }[form]


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("alpaca", ("output_1", "output_2")),
        ("mt-bench", ("conversation_a", "conversation_b")),
        ("judgebench", ("response_A", "response_B")),
        ("arena-columns", ("response_a", "response_b")),
        ("arena", ("conversation_a", "conversation_b")),
        ("hh", ("response_1", "response_2")),
        ("ultrafeedback", ("response_1", "response_2")),
    ],
)
def test_comparisons_fit_a_comparing_rubric(
    typed: Typed, form: str, fields: tuple[str, str]
) -> None:
    """A judge that reads the texts agrees fully, since names and order tell it nothing."""
    typed.write("a.jsonl", [pairs(form, n) for n in range(12)])
    (typed.folder / "better.yaml").write_text(BETTER.format(*fields))
    answer = "{{ 1 if prompt.index('GOOD') < prompt.index('A bad') else 2 }}"
    replies = [{"reply": f'{{"reason": "r", "answer": "{answer}", "quote": null}}'}]
    model = typed.script("reads.yaml", replies)
    judge = calibrated(typed, "a.jsonl", "--rubric", "better.yaml", "-m", model)
    assert judge["uncalibrated"]["accuracy"]["value"] == 1.0, judge


def test_judgments_of_fastchat_are_answers_of_their_judge(typed: Typed) -> None:
    both = [("model_1", "model_1"), ("model_1", "model_2"), ("tie", "tie"), ("error", "model_2")]
    about = {"model_1": "a", "model_2": "b", "judge": ["gpt-4", "pair-v2"], "turn": 1}
    rows = [
        about | {"question_id": n, "g1_winner": one, "g2_winner": two}
        for n, (one, two) in enumerate(both)
    ]
    typed.write("pairs.jsonl", rows)
    code, out, told = typed.text("agreement", "pairs.jsonl", "--json")
    assert (code, "1 answer, left out" in told) == (0, True)
    assert counts(out) == {"conversation_a": 1, "tie": 2}
    about = {"model": "a", "turn": 2, "user_prompt": "P", "judgment": "[[5]]", "judge": ["gpt-4"]}
    scores = [about | {"question_id": n, "score": score} for n, score in enumerate((5, 7.5, -1))]
    typed.write("scores.jsonl", scores)
    _, out, _ = typed.text("agreement", "scores.jsonl", "--json")
    assert counts(out) == {"5": 1, "7.5": 1}


def test_labels_of_several_questions_are_named_and_one_is_chosen(typed: Typed) -> None:
    """In a project's own form as in Label Studio's; the only question of a file needs no name."""

    def studio(number: int, **answers: str) -> dict[str, Any]:
        results = [{"value": {"choices": [one]}, "from_name": k} for k, one in answers.items()]
        note = {"completed_by": 1, "result": results}
        return {"id": number, "annotations": [note], "data": {"mail": "Hi"}}

    def own(number: int, **answers: str) -> dict[str, Any]:
        return {"id": number, "mail": "Hi", "labels": answers}

    ask = ("--ask", "Is it polite?", "-m", "scripted:yes.yaml", "--no-controls")
    for made in (studio, own):
        typed.write("two.jsonl", [made(n, polite="yes", length="short") for n in range(4)])
        code, _, told = typed.text("calibrate", "two.jsonl", *ask)
        choose = "two.jsonl has labels for polite, length: choose one, --map label=polite"
        assert (code, choose in told) == (2, True), told
        judge = calibrated(typed, "two.jsonl", *ask, "--map", "label=polite")
        assert judge["uncalibrated"]["accuracy"]["value"] == 1.0
        typed.write("alone.jsonl", [made(n, polite="yes") for n in range(4)])
        assert calibrated(typed, "alone.jsonl", *ask)["uncalibrated"]["accuracy"]["value"] == 1.0


def test_an_answer_without_a_name_is_a_persons_and_no_reference(typed: Typed) -> None:
    """As Label Studio exports a deleted user's answers, and Argilla without its users."""

    def annotation(answer: str, **who: Any) -> dict[str, Any]:
        return {"result": [{"from_name": "q", "value": {"choices": [answer]}}], **who}

    given = [
        annotation("yes"),
        annotation("no", completed_by=None),
        annotation("no", completed_by=7),
    ]
    gold = annotation("yes", ground_truth=True)
    texts = [{"text": "One."}, {"text": "Two."}]
    tasks = [{"id": 1, "data": texts[0], "annotations": given}]
    tasks += [{"id": 2, "data": texts[1], "annotations": [*given, gold]}]
    records = [{"id": n, "fields": text, "responses": _argilla()} for n, text in enumerate(texts)]
    for name, rows in {"studio.json": tasks, "argilla.json": records}.items():
        (typed.folder / name).write_text(json.dumps(rows))
        items = [one for one in read_labels(name) if isinstance(one, LabelledItem)]
        people = {annotation.annotator for one in items for annotation in one.annotations}
        assert people == {"annotator-1", "annotator-2", "7"}, name
        golds = [one.gold for one in items]
        assert golds == ([None, "yes"] if name == "studio.json" else [None, None])
        assert items[0].reference == "no"


def _argilla() -> list[dict[str, Any]]:
    people: list[dict[str, Any]] = [{}, {"user_id": None}, {"user_id": 7}]
    answers = ({"values": {"q": {"value": said}}} for said in ("yes", "no", "no"))
    return [who | answer for who, answer in zip(people, answers, strict=True)]


def test_a_row_of_nobody_without_a_label_is_no_error(typed: Typed) -> None:
    (typed.folder / "a.csv").write_text("item,annotator,label\n1,ann,yes\n2,,NULL\n3,,\n4,ann,no\n")
    code, _, told = typed.text("agreement", "a.csv")
    assert (code, "1 answer, left out" in told) == (0, True), told
    (typed.folder / "b.csv").write_text("item,annotator,label\n1,ann,yes\n2,,no\n")
    code, _, told = typed.text("agreement", "b.csv")
    assert (code, "b.csv, line 3: field 'annotator' is empty" in told) == (3, True), told


def test_what_stands_for_no_label_is_an_answer_where_it_is_named(typed: Typed) -> None:
    rows = "1,ann,none\n1,bo,None\n2,ann,some\n2,bo,NA\n"
    (typed.folder / "a.csv").write_text("item,annotator,label\n" + rows)
    _, out, _ = typed.text("agreement", "a.csv", "--answers", "none,some", "--json")
    assert counts(out) == {"none": 2, "some": 1}


def test_agreement_by_columns_of_annotators(typed: Typed) -> None:
    rows = ["mail,ann,bo,cy", *(f"Mail {n},{n % 2},{n % 2}.0,{'' if n else 0}" for n in range(6))]
    (typed.folder / "a.csv").write_text("\n".join(rows) + "\n")
    code, out, told = typed.text("agreement", "a.csv", "--label-column", "ann,bo,cy", "--all")
    assert code == 0 and cells(out, "label", "all")[0][2] == "13", (out, told)
    code, _, told = typed.text("agreement", "a.csv", "--label-column", "ann,dee")
    assert code != 0 and "has no field 'dee', its fields are ['mail', 'ann', 'bo', 'cy']" in told


def test_one_column_with_a_comma_in_its_name(typed: Typed) -> None:
    asked = "Is it polite, yes or no?"
    typed.write("a.jsonl", [{"mail": f"Mail {n}", asked: "yes", "n": n} for n in range(8)])
    typed.script(
        "plain.yaml",
        [{"when": {"contains": asked}, "p_yes": 0.1}, {"p_yes": 0.9}],
        method="logprobs",
    )
    words = ("a.jsonl", "--ask", "Polite?", "-m", "scripted:plain.yaml", "--no-controls")
    judge = calibrated(typed, *words, "--map", f"label={asked}")
    assert judge["uncalibrated"]["accuracy"]["value"] == 1.0


def test_a_field_judge_of_the_input_is_kept(typed: Typed) -> None:
    asked = ("--ask", "Is it polite?", "-m", "scripted:yes.yaml", "-o", "out.jsonl")
    rows: list[dict[str, Any]] = [
        {"id": 1, "judge": ["gpt-4", "pair-v2"], "mail": "Hi"},
        {"id": 2, "judge": "author_2", "input_judge": 3, "mail": "Ho"},
        {"id": 3, "judge": {"verdict": "fail"}, "mail": "Hu"},
    ]
    typed.write("a.jsonl", rows)
    code, _, told = typed.text("validate", "a.jsonl", *asked)
    assert code == 0 and told.count("the input's own field 'judge' is kept as 'input_judge'") == 1
    kept = [
        {k: v for k, v in one.items() if k != "judge"} for one in lines(typed.read("out.jsonl"))
    ]
    assert kept == [
        {"id": 1, "input_judge": ["gpt-4", "pair-v2"], "mail": "Hi"},
        {"id": 2, "input_input_judge": "author_2", "input_judge": 3, "mail": "Ho"},
        {"id": 3, "mail": "Hu"},
    ]
    before = typed.read("out.jsonl")
    assert typed("validate", "a.jsonl", *asked, "--resume").returncode == 0
    assert typed.read("out.jsonl") == before
    again = ("validate", "out.jsonl", *asked[:4], "--on", "mail", "-o", "again.jsonl")
    code, _, told = typed.text(*again)
    assert code == 0 and "is kept" not in told
    assert told.count("judge: the input's earlier verdicts (field 'judge') are replaced\n") == 1
    shown = ("--on", "who", "--map", "who=judge", "--limit", "2", "--overwrite")
    typed.script(
        "who.yaml",
        [{"when": {"contains": "author_2"}, "p_yes": 0.9}, {"p_yes": 0.1}],
        method="logprobs",
    )
    typed("validate", "a.jsonl", *asked[:2], "-m", "scripted:who.yaml", "-o", "out.jsonl", *shown)
    assert [one["judge"]["verdict"] for one in lines(typed.read("out.jsonl"))] == ["fail", "pass"]


@pytest.mark.parametrize(
    ("fields", "similar"),
    [
        ({"text": "a", "human": "yes"}, ""),
        (
            dict.fromkeys(("prompt", "response_0", "response_1", "better"), "a"),
            "Of similar forms, safe-rlhf also has better_response_id. ",
        ),
        (
            dict.fromkeys(("question_id", "model", "turn", "chosen", "annotator", "data"), "a"),
            "Of similar forms, fastchat-single also has judgment, score; label-studio also has "
            "annotations; preference-pairs also has rejected. ",
        ),
    ],
)
def test_labels_of_no_known_form_are_told_with_fields_and_similar_forms(
    typed: Typed, fields: dict[str, str], similar: str
) -> None:
    typed.write("a.jsonl", [fields])
    code, _, told = typed.text("agreement", "a.jsonl")
    assert code == 2 and f"cannot tell what these labels are; the fields are {[*fields]}. " in told
    assert f"item, annotator and label. {similar}All published forms are in docs/howto" in told
    assert "pandalm" not in told
