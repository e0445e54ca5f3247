"""Where the judge and the reference differ: what a person should read first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.calibration.judged import Judged
from judge.calibration.plain import plain
from judge.records.labels import Annotation


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item that the judge answered otherwise than the reference.

    `confidence` is the judge's: the probability of its answer, else the share of its seeds that
    gave it, None where it was asked once without probabilities. `votes` counts the people's
    answers, the most frequent first; `annotations` says who gave them. `held_out` is false for an
    item that something was fitted to: the measures say nothing of it.
    """

    record: str
    check: str
    number: int
    answer: str
    reference: str
    confidence: float | None
    evidence: str | None
    fields: Mapping[str, Any]
    votes: Mapping[str, int]
    annotations: tuple[Annotation, ...]
    source: str
    line: int
    held_out: bool = True

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON values, numbers rounded to 6 places."""
        values: dict[str, Any] = plain(self)
        return values


def disagreements(judged: Sequence[Judged], *, held_out: bool = True) -> list[Disagreement]:
    """All of them, the surest first; those without a confidence last.

    `held_out` says of all these items whether they were kept from what was fitted.

    Among equally sure ones the items come first on which more of the people are agreed, then in
    the order of record and number.
    """
    found = [_disagreement(one, held_out) for one in judged if _disagrees(one)]
    return sorted(found, key=_rank)


def confidence(judged: Judged) -> float | None:
    """How sure the judge was of its answer, in [0, 1]; None where nothing tells, or no answer."""
    if judged.answer is None:
        return None
    if judged.probabilities:
        return judged.probabilities.get(judged.answer, 0.0)
    if judged.repeats:
        answers = (judged.answer, *judged.repeats)
        return answers.count(judged.answer) / len(answers)
    return None


def _disagrees(judged: Judged) -> bool:
    reference = judged.item.reference
    return judged.answer is not None and reference is not None and judged.answer != reference


def _disagreement(judged: Judged, held_out: bool) -> Disagreement:
    item = judged.item
    votes = Counter(annotation.answer for annotation in item.annotations)
    return Disagreement(
        record=item.record,
        check=item.check,
        number=item.number,
        answer=str(judged.answer),
        reference=str(item.reference),
        confidence=confidence(judged),
        evidence=judged.evidence,
        fields=item.fields,
        votes=dict(sorted(votes.items(), key=lambda pair: (-pair[1], pair[0]))),
        annotations=item.annotations,
        source=item.source,
        line=item.line,
        held_out=held_out,
    )


def _rank(one: Disagreement) -> tuple[bool, float, float, str, int]:
    agreed = max(one.votes.values()) / len(one.annotations) if one.votes else 0.0
    return one.confidence is None, -(one.confidence or 0.0), -agreed, one.record, one.number
