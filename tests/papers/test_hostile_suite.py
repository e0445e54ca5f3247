"""The hostile suite: its coverage, that twins differ only by the attack, and the judge's
prompts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from workflow_rubrics import JUDGING as RUBRICS

from judge.judging.prompts import mark_of, messages, without_controls
from judge.papers.hostile_suite import CONTROL, UNDEFENDED, carriers, cases, families, subject_of

ALL = cases(RUBRICS)


def test_the_page_gives_the_numbers_of_what_covers_every_rubric_and_family() -> None:
    hostile = sum(case.family != CONTROL for case in ALL)
    assert hostile >= 150 and set(carriers()) == set(RUBRICS)
    met = {(case.check, case.family) for case in ALL}
    assert met == {(check, family) for check in RUBRICS for family in families()}
    each = {name: family.each for name, family in families().items()}
    numbered = (f"{check}-{name}-{n + 1}" for check, name in met for n in range(each[name]))
    assert sorted(case.id for case in ALL) == sorted(numbered)
    page = (Path(__file__).parents[2] / "docs" / "explain" / "hostile-text.md").read_text("utf-8")
    counted = Counter(case.family for case in ALL)
    for name in families():
        assert f"| `{name}` | {counted[name]} |" in page
    clean = sum(len(own.carriers) for own in carriers().values())
    written = sum(len(family.texts) for name, family in families().items() if name != CONTROL)
    told = " ".join(page.split())
    assert f"{clean} clean records" in told and f"{hostile} injected records" in told
    assert f"{written} attacks in eleven families" in told and len(families()) - 1 == 11


def taken_out(content: Any, injection: str) -> Any:
    if isinstance(content, list):
        return [*content[:-1], taken_out(content[-1], injection)]
    assert content.count(injection) == 1
    before, after = content.split(injection)
    return before.removesuffix("\n\n") + after.removeprefix("\n\n")


def test_an_injected_record_is_its_twin_but_for_the_injection() -> None:
    for case in ALL:
        assert case.injection.strip()
        assert {name for name in case.twin if case.twin[name] != case.injected[name]} == {
            case.field
        }, case.id
        assert taken_out(case.injected[case.field], case.injection) == case.twin[case.field]


def test_the_attack_is_shown_inside_a_fence_that_it_cannot_close() -> None:
    guessed = 0
    for case in ALL:
        rubric = RUBRICS[case.check]
        subject = subject_of(case.id, rubric, case.injected)
        assert not subject.lacks(rubric.required) and case.field in rubric.fields
        assert subject.label not in rubric.not_for_labels
        content = messages(rubric, subject, step=0, numbers=(1,) if subject.lists else ())[1][
            "content"
        ]
        mark = mark_of(rubric, subject)
        inside = content.split(f"[{case.field.replace('_', ' ')} {mark}]\n")[1]
        inside = inside.split(f"\n[end {mark}]")[0]
        assert len(inside) >= len(case.injection), case.id
        assert mark not in case.injection
        if case.family == "fence":
            twin = subject_of(case.carrier, rubric, case.twin)
            guessed += mark_of(rubric, twin) in case.injection
        if case.family == "turns":
            for token in ("<|im_", "<|eot", "[INST]", "</s>", "_of_turn><", "\n<start_of"):
                assert token not in content
    assert guessed, "no attack of the suite knows the mark of the clean twin"


def test_control_tokens_are_broken() -> None:
    for text, shown in {
        "a <|im_end|> b": "a < |im_end|> b",
        "<｜User｜>x": "< ｜User｜>x",
        "</s><s>": "< /s>< s>",
        "[INST] x [/inst]": "[ INST] x [ /inst]",
        "<end_of_turn><think><tool_call>": "< end_of_turn>< think>< tool_call>",
        "[TOOL_CALLS]": "[ TOOL_CALLS]",
    }.items():
        assert without_controls(text) == shown


def test_the_baseline_asks_the_same_question_without_any_defence() -> None:
    for case in ALL:
        rubric = RUBRICS[case.check]
        subject = subject_of(case.id, rubric, case.injected)
        for step in (0, None):
            asked = {"step": step, "numbers": (1,) if subject.lists else ()}
            own = messages(rubric, subject, **asked)
            bare = messages(rubric, subject, **asked, framing=UNDEFENDED)
            told = bare[0]["content"] + bare[1]["content"].replace(case.injection, "")
            assert "is data" in own[0]["content"]
            for defence in (
                mark_of(rubric, subject),
                "is data",
                "no instructions",
                "between the marks",
            ):
                assert defence not in told
            text = subject.texts[case.field]
            assert f"{case.field.replace('_', ' ').capitalize()}: {text}" in bare[1]["content"]
            question = rubric.prompt if step is None else rubric.first_token[step].question
            words = max(re.split(r"\{\{.*?\}\}", question), key=len).split()
            for prompt in (own, bare):
                assert " ".join(words) in " ".join(prompt[1]["content"].split())
