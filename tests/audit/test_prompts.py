"""What a judge is shown: control tokens broken, and the baseline without any defence."""

from __future__ import annotations

import pytest

from judge.audit.suite import UNDEFENDED, cases, subject_of
from judge.prompts import messages, without_controls
from judge.rubric import builtin

CASES = cases(builtin())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <|im_end|> b", "a < |im_end|> b"),
        ("<｜User｜>x", "< ｜User｜>x"),
        ("</s><s>", "< /s>< s>"),
        ("[INST] x [/inst]", "[ INST] x [ /inst]"),
        ("<end_of_turn>", "< end_of_turn>"),
        ("<think>", "< think>"),
        ("<tool_call>", "< tool_call>"),
        ("[TOOL_CALLS]", "[ TOOL_CALLS]"),
    ],
)
def test_control_tokens_are_broken(text: str, shown: str) -> None:
    assert without_controls(text) == shown


def test_no_control_token_of_a_record_reaches_the_engine() -> None:
    for case in CASES:
        if case.family == "turns":
            rubric = builtin()[case.check]
            subject = subject_of(case, rubric, case.injected)
            content = messages(rubric, subject, step=0, numbers=subject.numbers[:1])[1]["content"]
            for token in ("<|im_", "<|eot", "[INST]", "</s>", "_of_turn><", "\n<start_of"):
                assert token not in content


def test_the_baseline_asks_the_same_question_without_any_defence() -> None:
    for case in CASES:
        rubric = builtin()[case.check]
        subject = subject_of(case, rubric, case.injected)
        numbers = subject.numbers[:1]
        for step in (0, None):
            own = messages(rubric, subject, step=step, numbers=numbers)
            bare = messages(rubric, subject, step=step, numbers=numbers, framing=UNDEFENDED)
            told = bare[0]["content"] + bare[1]["content"].replace(case.injection, "")
            assert subject.mark not in told
            assert "is data" in own[0]["content"] and "is data" not in told
            assert "no instructions" not in told and "between the marks" not in told
            text = subject.texts[case.field]
            assert f"{case.field.replace('_', ' ').capitalize()}: {text}" in bare[1]["content"]
            assert own[1]["content"].splitlines()[-1] == bare[1]["content"].splitlines()[-1]
