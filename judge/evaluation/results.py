"""Lines of an evaluation, written and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from judge.errors import UsageError
from judge.evaluation.benchmark import Answer, Outcome, Result
from judge.records import RESERVED, Item, read
from judge.run.fingerprint import Mark
from judge.run.lines import Line, written
from judge.verdict import Verdict

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def verdict_of(answer: Answer) -> Verdict:
    """A refusal is the model's `abstain`; an answer passes if it is all right, or if nothing about
    it could be right or wrong."""
    if answer.outcome == "answered":
        right = answer.score is None or answer.score == 1
        return Verdict.PASS if right else Verdict.FAIL
    if answer.outcome == "refused":
        return Verdict.ABSTAIN
    return Verdict.UNREADABLE if answer.outcome == "unreadable" else Verdict.ERROR


def answered(
    item: Item, answer: Answer, mark: Mark, error: Mapping[str, Any] | None = None
) -> Line:
    """The item's own fields, then under `"judge"` what the measured model made of it."""
    assert item.fields is not None
    judgement: dict[str, Any] = {
        "verdict": str(verdict_of(answer)),
        "benchmark": mark.name,
        "condition": item.fields.get("condition"),
        "outcome": answer.outcome,
        "answer": answer.answer,
        "score": None if answer.score is None else round(answer.score, 6),
        "reason": answer.reason,
    }
    if answer.probabilities is not None:
        rounded = {name: round(p, 6) for name, p in answer.probabilities.items()}
        judgement["probabilities"] = rounded
    if answer.steps:
        judgement["steps"] = dict(answer.steps)
    judgement |= {
        "usage": answer.usage.as_json(),
        "models": dict(mark.models),
        "fingerprint": mark.fingerprint,
        "error": None if error is None else dict(error),
    }
    return written(item.fields, judgement)


def result_of(line: Mapping[str, Any]) -> Result | None:
    """An output line's result; None for a line of input that could not be asked about."""
    judgement = line.get(RESERVED)
    if not isinstance(judgement, dict) or judgement.get("outcome") not in OUTCOMES:
        return None
    return Result(
        fields={name: content for name, content in line.items() if name != RESERVED},
        outcome=judgement["outcome"],
        answer=judgement.get("answer"),
        score=judgement.get("score"),
        probabilities=judgement.get("probabilities"),
        steps=judgement.get("steps") or {},
    )


def read_run(path: str) -> tuple[str, list[Result], list[Item]]:
    """The benchmark's name, the results, and the lines that hold none, of a file of answers.

    Raises:
        UsageError: the file cannot be read, holds no answer, or answers to several benchmarks.
    """
    results: list[Result] = []
    others: list[Item] = []
    names: set[str] = set()
    for item in read(path):
        result = result_of(item.fields) if item.fields is not None else None
        if result is None or item.fields is None:
            others.append(item)
            continue
        results.append(result)
        names.add(str(item.fields[RESERVED].get("benchmark")))
    if not results:
        raise UsageError(f"{path}: holds no answers of `judge evaluate`")
    if len(names) > 1:
        raise UsageError(f"{path}: holds answers to {', '.join(sorted(names))}; keep them apart")
    return names.pop(), results, others
