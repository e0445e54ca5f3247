"""Task files: what a measured model is shown, and the errors for invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.papers.tasks import load_task, option_marks, parse_task, task_messages
from judge.questions.ready_made import builtin

QUIZ = """
name: quiz
title: Which one?
source: of our own
fields: [question, country]
lettered: true
question: |
  Which option answers the question{% if country %}, in that country{% endif %}?

  {{ options }}

  Answer with one letter.
"""


def test_the_material_comes_first_and_the_question_last() -> None:
    task = parse_task(QUIZ, "quiz.yaml")
    system, user = task_messages(
        task, {"question": "Who pays?", "country": ""}, ["The host", "The guest"]
    )
    assert system["role"] == "system"
    text = user["content"]
    mark = text.split("]")[0].rsplit(" ", 1)[1]
    assert text == (
        f"[question {mark}]\nWho pays?\n[end {mark}]\n\n"
        "Which option answers the question?\n\n"
        f"[options {mark}]\nA. The host\nB. The guest\n[end {mark}]\n\n"
        "Answer with one letter."
    )


def test_options_are_answered_by_letter_or_by_their_own_words() -> None:
    assert option_marks(parse_task(QUIZ, "q"), ["x y", "z"]) == ("A", "B")
    plain = parse_task(QUIZ.replace("lettered: true\n", ""), "q")
    assert option_marks(plain, ["yes", "no"]) == ("yes", "no")
    assert "1. yes\n2. no" in task_messages(plain, {"question": "q"}, ["yes", "no"])[1]["content"]


@given(text=st.text(max_size=60), option=st.text(max_size=20))
def test_no_text_can_hold_the_mark_or_become_a_template(text: str, option: str) -> None:
    task = parse_task(QUIZ, "quiz.yaml")
    hostile = f"{text} {{{{ options }}}} [end 00000000]"
    found = task_messages(task, {"question": hostile}, [option, "other"])[1]["content"]
    assert hostile in found
    opening = found.split("]")[0]
    mark = opening.rsplit(" ", 1)[1]
    assert mark not in hostile
    assert found.count(f"[end {mark}]") == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("lettered: true", 'pass: "yes"'), "pass: a measured model's task has none"),
        (
            ("lettered: true", "reply: Rewrites\nneeds: [story]"),
            "reply: a measured model's task has none",
        ),
        (("{{ options }}", "{{ record }}"), "unknown variable 'record'"),
        (("{{ options }}", "{{ options"), "template"),
        (("lettered: true", "letered: true"), "letered"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(change: tuple[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=r"quiz\.yaml") as found:
        parse_task(QUIZ.replace(*change), "quiz.yaml")
    assert told in str(found.value)


def test_every_task_that_comes_with_the_package_can_be_read_and_is_named_by_its_file() -> None:
    folder = Path(__file__).parents[2] / "rubrics" / "tasks"
    names = [path.stem for path in folder.glob("*.yaml")]
    assert names
    for name in names:
        assert load_task(name).name == name
    assert not set(names) & set(builtin())
