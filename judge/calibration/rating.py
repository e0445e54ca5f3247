"""From held-out answers to a profile: error rates, labels by key, what the judge is bound to."""

from __future__ import annotations

from collections.abc import Sequence

from judge.calibration.observations import Judged
from judge.digest import digest
from judge.profiles import Data, Rates, item_key
from judge.records.labels import LabelledItem
from judge.rubric import Rubric
from judge.stats.labels import design_effect
from judge.subject import Subject

Rated = tuple[Judged, Subject]


def should_pass(rubric: Rubric, subject: Subject, answer: str) -> bool:
    """Whether a record with this answer passes the rubric's check."""
    assert rubric.verdict is not None, "a judging rubric has a verdict rule"
    return answer == rubric.verdict.expected(subject.label)


def rates(rubric: Rubric, held_out: Sequence[Rated]) -> Rates:
    """How the judge's verdicts err on items that nothing was fitted to.

    Those count whose reference is one of the check's answers, and not `unsure`, say.
    """
    counts = {"passed": 0, "passes": 0, "failed": 0, "fails": 0, "undecided": 0}
    right: list[tuple[str, bool]] = []
    for one, subject in held_out:
        if one.item.reference not in rubric.answers:
            continue
        if one.answer is None:
            counts["undecided"] += 1
            continue
        truth = should_pass(rubric, subject, one.item.reference)
        verdict = should_pass(rubric, subject, one.answer)
        counts["passes" if truth else "fails"] += 1
        if truth == verdict:
            counts["passed" if truth else "failed"] += 1
        right.append((one.item.record, truth == verdict))
    return Rates(**counts, design_effect=round(design_effect(right), 4))


def edited(item: LabelledItem) -> bool:
    """Whether the record was edited until the judge passed it: its label says nothing of others."""
    return item.slices.get("edited") == "yes"


def labels_by_key(rubric: Rubric, held_out: Sequence[Rated]) -> dict[str, bool]:
    """For each item with a reference, whether it should pass; edited ones are left out."""
    known = {}
    for one, subject in held_out:
        if one.item.reference not in rubric.answers or edited(one.item):
            continue
        value = subject.value(one.item.number) if one.item.number else None
        known[item_key(subject, value)] = should_pass(rubric, subject, one.item.reference)
    return known


def data_of(
    sources: Sequence[str], items: Sequence[LabelledItem], fitted_on: int, held_out: int
) -> Data:
    """What the labels were, with a digest over items and answers."""
    plain = sorted(
        [
            item.record,
            str(item.number),
            item.gold or "",
            *(f"{one.annotator}={one.answer}" for one in item.annotations),
        ]
        for item in items
    )
    return Data(
        sources=tuple(sources),
        digest=digest(plain)[:16],
        items=len(items),
        records=len({item.record for item in items}),
        fitted_on=fitted_on,
        held_out=held_out,
    )
