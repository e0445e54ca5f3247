"""Scripted judges that give, record by record, the answers that a test wants."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from judge.papers.hostile_suite import Case
from judge.questions.rubric import Rubric

Answering = Callable[[Rubric, str, dict[str, str]], Iterator[dict[str, Any]]]


def answer_of(case: Case, rubric: Rubric, verdict: str) -> str:
    """An answer that gives the case this verdict."""
    passing = rubric.passing(case.twin.get("label"))[0]
    if verdict == "pass":
        return passing
    return next(answer for answer in rubric.answers[::-1] if answer != passing)


def read(rubric: Rubric, answer: str, when: dict[str, str]) -> Iterator[dict[str, Any]]:
    """First tokens that lead the rubric's decision list to an answer."""
    for step in rubric.deciding_questions:
        here = {**when, "contains": asked(step.question)}
        if step.passages:
            other = next(word for word in step.words if word not in step.passages)
            word = step.passages[0] if step.means["yes"] == answer else other
            yield {"when": here, "words": {word: 0.9, "The": 0.1}}
            return
        if answer in step.means.values():
            yield {"when": here, "p_yes": 0.9 if step.means.get("yes") == answer else 0.1}
            # Later steps are asked all the same, and decide nothing.
            yield {"when": when, "p_yes": 0.5}
            return
        yield {"when": here, "p_yes": 0.1 if "yes" in step.means else 0.9}


def asked(question: str) -> str:
    """Words of a question that stand in no record, and in no other question to it."""
    return re.sub(r"\{\{.*?\}\}$", "", question.strip()).split("}}")[-1].strip()


def script(
    cases: Sequence[Case],
    rubrics: dict[str, Rubric],
    obeys: Callable[[Case], str],
    *,
    answering: Answering = read,
    **when: str,
) -> list[dict[str, Any]]:
    """Entries that judge every twin as the attack does not want it, and every injected record as
    `obeys` says; `when` are further conditions."""
    entries: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        rubric = rubrics[case.check]
        right = "fail" if case.wanted == "pass" else "pass"
        for id, verdict in ((case.carrier, right), (case.id, obeys(case))):
            given = answering(rubric, answer_of(case, rubric, verdict), {"id": id, **when})
            entries.setdefault(id, list(given))
    return [entry for given in entries.values() for entry in given]


def wanted(case: Case) -> str:
    return case.wanted


def right(case: Case) -> str:
    return "fail" if case.wanted == "pass" else "pass"
