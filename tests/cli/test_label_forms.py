"""Published files as they are, typed: with one option at most, and no label in a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    assert judge["stands"]["accuracy"]["value"] == 1.0, judge


def test_agreement_by_columns_of_annotators(typed: Typed) -> None:
    rows = ["mail,ann,bo,cy", *(f"Mail {n},{n % 2},{n % 2}.0,{'' if n else 0}" for n in range(6))]
    (typed.folder / "a.csv").write_text("\n".join(rows) + "\n")
    code, out, told = typed.text("agreement", "a.csv", "--annotators", "ann,bo,cy", "--all")
    assert code == 0 and cells(out, "label", "all")[0][2] == "13", (out, told)
    code, _, told = typed.text("agreement", "a.csv", "--annotators", "ann,dee")
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
    assert judge["stands"]["accuracy"]["value"] == 1.0


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
    code, _, told = typed.text("validate", "out.jsonl", *asked[:4], "-o", "again.jsonl")
    assert (code, "is kept" in told) == (0, False)
    shown = ("--on", "who", "--map", "who=judge", "--limit", "2", "--overwrite")
    typed.script(
        "who.yaml",
        [{"when": {"contains": "author_2"}, "p_yes": 0.9}, {"p_yes": 0.1}],
        method="logprobs",
    )
    typed("validate", "a.jsonl", *asked[:2], "-m", "scripted:who.yaml", "-o", "out.jsonl", *shown)
    assert [one["judge"]["verdict"] for one in lines(typed.read("out.jsonl"))] == ["fail", "pass"]
