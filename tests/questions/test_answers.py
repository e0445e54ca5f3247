"""People's labels beside a judge's answer."""

from __future__ import annotations

import pytest

from judge.questions.answers import agree
from judge.questions.rubric import Rubric
from judge.verdict import Verdict

TONE = {"name": "tone", "question": "Which tone?", "answers": ["warm", "plain", "rude"]}
POLITE = {"name": "polite", "question": "Is it polite?"}
SCORE = {"name": "tone", "question": "How warm?", "answers": ["1", "2", "3"], "pass": ">= 2"}


@pytest.mark.parametrize(
    ("keys", "person", "verdict", "said", "agrees"),
    [
        ({**TONE, "pass": ["warm", "plain"]}, "warm", Verdict.PASS, "warm", True),
        ({**TONE, "pass": ["warm", "plain"]}, "plain", Verdict.PASS, "warm", False),
        (POLITE, "no", Verdict.FAIL, "yes", False),
        (POLITE, "yes", Verdict.PASS, "pass", True),
        (POLITE, "no", Verdict.PASS, "pass", False),
        ({**TONE, "pass": ["warm", "plain"]}, "rude", Verdict.ABSTAIN, "abstain", None),
        ({**TONE, "pass": []}, "rude", Verdict.ANSWERED, "rude", True),
        ({**TONE, "pass": []}, "rude", Verdict.ANSWERED, "answered", False),
        (SCORE, "2", Verdict.PASS, "2.4", True),
        (SCORE, "3", Verdict.PASS, "2.4", False),
    ],
)
def test_a_judge_agrees_with_a_person_in_the_answer_or_else_in_the_verdict(
    keys: dict[str, object], person: str, verdict: Verdict, said: str, agrees: bool | None
) -> None:
    assert agree(Rubric.from_dict(keys), person, verdict, said, None) is agrees
