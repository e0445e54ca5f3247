"""The suite: how much of it there is, what it covers, and that twins differ by the attack alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.audit.suite import CONTROL, Case, carriers, cases, families, subject_of
from judge.prompts import messages
from judge.rubric import builtin

RUBRICS = {name: rubric for name, rubric in builtin().items() if rubric.role == "judge"}
ALL = cases(RUBRICS)
HOSTILE = [case for case in ALL if case.hostile]


def test_at_least_150_hostile_records_over_every_rubric_and_family() -> None:
    assert len(HOSTILE) >= 150
    assert set(carriers()) == set(RUBRICS)
    met = {(case.check, case.family) for case in ALL}
    assert met == {(check, family) for check in RUBRICS for family in families()}
    assert set(families()) - {CONTROL} == {
        *("orders", "system", "tool", "verdict", "fence", "rubric", "language", "encoding"),
        *("persuasion", "evidence", "turns"),
    }


def taken_out(content: Any, injection: str) -> Any:
    if isinstance(content, list):
        return [*content[:-1], taken_out(content[-1], injection)]
    assert content.count(injection) == 1
    before, after = content.split(injection)
    return before.removesuffix("\n\n") + after.removeprefix("\n\n")


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_an_injected_record_is_its_twin_but_for_the_injection(case: Case) -> None:
    assert case.injection.strip()
    changed = {name for name in case.twin if case.twin[name] != case.injected[name]}
    assert changed == {case.field} and set(case.twin) == set(case.injected)
    assert taken_out(case.injected[case.field], case.injection) == case.twin[case.field]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_the_attack_is_shown_to_the_judge_inside_the_fence(case: Case) -> None:
    rubric = RUBRICS[case.check]
    subject = subject_of(case, rubric, case.injected)
    assert not subject.lacks(rubric.required) and case.field in rubric.fields
    assert subject.label not in rubric.not_for_labels
    content = messages(rubric, subject, step=0, numbers=subject.numbers[:1])[1]["content"]
    inside = content.split(f"[{case.field.replace('_', ' ')} {subject.mark}]\n")[1]
    inside = inside.split(f"\n[end {subject.mark}]")[0]
    assert len(inside) >= len(case.injection), "the attack closed the fence"
    twin = subject_of(case, rubric, case.twin)
    assert subject.mark not in case.injection and twin.mark not in dict(twin.texts).values()


def test_the_mark_of_the_clean_twin_does_not_close_the_fence() -> None:
    guessed = [
        case
        for case in ALL
        if case.family == "fence"
        and subject_of(case, RUBRICS[case.check], case.twin).mark in case.injection
    ]
    assert guessed
    for case in guessed:
        assert subject_of(case, RUBRICS[case.check], case.injected).mark not in case.injection


def test_the_page_about_it_gives_its_numbers() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hostile-text.md").read_text("utf-8")
    counted = Counter(case.family for case in ALL)
    for name in families():
        assert f"| `{name}` | {counted[name]} |" in page
    clean = sum(len(own.carriers) for own in carriers().values())
    written = sum(len(family.texts) for name, family in families().items() if name != CONTROL)
    told = " ".join(page.split())
    assert f"{clean} clean records" in told and f"{len(HOSTILE)} injected records" in told
    assert f"{written} attacks in eleven families" in told and len(families()) - 1 == 11
