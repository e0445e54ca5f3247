"""People's ratings made ready to be compared: put together, mapped, and cleared of bad annotators.

What CALI does before it counts (3.5, 3.6, B.3): control questions and contradictory ratings tell
which annotators are dropped, ratings from 1 to 5 become labels as each annotator means them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from judge.records.labels import Annotation, LabelledItem
from judge.stats.annotators import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    Annotator,
    ScaleMap,
    assess,
    below,
    fit_scales,
)

OWN_ANSWERS = frozenset(
    {"unsure", "unanswerable", "don't know", "i don't know", "can't tell", "discard"}
)
"""Answers that decide nothing: counted as answers of their own, missing from ordered scales."""

AFFIRMED = frozenset({"yes", "true", ENTAILMENT, "5"})
"""Answers that say that a statement holds: two of them for statements that exclude each other
contradict. Of the ratings only the 5 does (CALI, B.3)."""

JOINED = "|"
"""Stands between the answers of an annotator who gave several (AmbiEnt, CulturalBench 3.2)."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """How ratings are made ready.

    `controls` is (slice, value): items of that slice with a gold answer are control questions.
    `exclusive` names a slice: of the statements that share its value (and the check) at most one
    can hold. `drop_below` is the accuracy on controls, and `contradictions_above` the share of
    exclusive pairs affirmed both, beyond which an annotator's labels are dropped. `scale`: answers
    from 1 to 5 become entailment, neutral, contradiction, by the control questions.
    """

    controls: tuple[str, str] | None = None
    exclusive: str | None = None
    drop_below: float | None = None
    contradictions_above: float | None = None
    scale: bool = False


@dataclass(slots=True)
class Question:
    """What was asked of people once: all answers to one check about one record (or value)."""

    record: str
    check: str
    number: int
    gold: str | None
    annotations: list[Annotation]
    slices: dict[str, str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Questions without the control questions, and how they came about.

    `repeated` answers by an annotator who had answered the same question already were left out,
    `changed` of them said something else; `conflicting` questions came with two gold answers, of
    which the first is kept. `dropped` annotators are still among the `annotators`.
    """

    questions: list[Question]
    annotators: list[Annotator]
    dropped: list[Annotator]
    scales: dict[str, ScaleMap]
    controls: int = 0
    repeated: int = 0
    changed: int = 0
    conflicting: int = 0

    @property
    def labels(self) -> int:
        """All labels that were given, those of dropped annotators and controls among them."""
        return sum(one.labels for one in self.annotators)

    @property
    def dropped_labels(self) -> int:
        """The labels that went with dropped annotators."""
        return sum(one.labels for one in self.dropped)

    def as_json(self) -> dict[str, Any]:
        """The counts, every annotator's record, and the scales."""
        dropped = {one.name for one in self.dropped}
        return {
            "questions": len(self.questions),
            "control_questions": self.controls,
            "labels": self.labels,
            "dropped_annotators": len(self.dropped),
            "dropped_labels": self.dropped_labels,
            "repeated": self.repeated,
            "changed": self.changed,
            "conflicting_gold": self.conflicting,
            "annotators": [
                {**one.as_json(), "dropped": one.name in dropped} for one in self.annotators
            ],
            "scales": {
                name: {"2": map.two, "4": map.four, "items": list(map.support.values())}
                for name, map in self.scales.items()
            },
        }


@dataclass(slots=True)
class _Gathered:
    questions: dict[tuple[str, str, int], Question] = field(default_factory=dict)
    repeated: int = 0
    changed: int = 0
    conflicting: int = 0


def prepare(items: Iterable[LabelledItem], how: Preparation) -> Prepared:
    """Items of the same record, check and number become one question; then as `how` says.

    So a file with gold answers and another with annotations of the same records go together.
    Control questions serve to know annotators by, and are left out of the questions. With `scale`,
    they serve twice: an annotator's scale is fitted on the controls that it is then held against.
    """
    gathered = _gather(items)
    questions = list(gathered.questions.values())
    labels = [(a.annotator, a.answer) for q in questions for a in q.annotations]
    contradictions = list(_exclusive_pairs(questions, how.exclusive))
    controls = [q for q in questions if _is_control(q, how.controls)]
    scales: dict[str, ScaleMap] = {}
    if how.scale:
        scales = fit_scales(_calibration(controls))
        for question in questions:
            question.annotations = [_mapped(a, scales) for a in question.annotations]
    known = [(a.annotator, a.answer, q.gold) for q in controls for a in q.annotations if q.gold]
    annotators = list(assess(labels, known, contradictions).values())
    dropped = below(annotators, how.drop_below, contradictions=how.contradictions_above)
    gone = {one.name for one in dropped}
    asked = {id(question) for question in controls}
    kept = [question for question in questions if id(question) not in asked]
    for question in kept:
        question.annotations = [a for a in question.annotations if a.annotator not in gone]
    return Prepared(
        kept,
        annotators,
        dropped,
        scales,
        len(controls),
        gathered.repeated,
        gathered.changed,
        gathered.conflicting,
    )


def _gather(items: Iterable[LabelledItem]) -> _Gathered:
    found = _Gathered()
    for item in items:
        gold = None if item.gold is None else sorted_answer(item.gold)
        key = (item.record, item.check, item.number)
        question = found.questions.get(key)
        if question is None:
            question = Question(*key, gold, [], dict(item.slices))
            found.questions[key] = question
        else:
            found.conflicting += None not in (gold, question.gold) and gold != question.gold
            question.gold = gold if question.gold is None else question.gold
            question.slices = {**item.slices, **question.slices}
        earlier = {a.annotator: a.answer for a in question.annotations}
        for given in item.annotations:
            answer = sorted_answer(given.answer)
            if given.annotator in earlier:
                found.repeated += 1
                found.changed += answer != earlier[given.annotator]
            else:
                earlier[given.annotator] = answer
                question.annotations.append(replace(given, answer=answer))
    return found


def sorted_answer(answer: str) -> str:
    """The answer; of several joined by a bar, the same ones in the order of the alphabet."""
    return JOINED.join(sorted({part.strip() for part in answer.split(JOINED)}))


def _is_control(question: Question, controls: tuple[str, str] | None) -> bool:
    if controls is None or question.gold is None:
        return False
    name, value = controls
    return question.slices.get(name) == value


def _calibration(controls: Iterable[Question]) -> Iterator[tuple[str, int, str]]:
    for question in controls:
        for given in question.annotations:
            rating = _rating(given.answer)
            if rating and question.gold in (ENTAILMENT, NEUTRAL, CONTRADICTION):
                yield given.annotator, rating, question.gold


def _rating(answer: str) -> int | None:
    return int(answer) if answer in {"1", "2", "3", "4", "5"} else None


def _mapped(given: Annotation, scales: dict[str, ScaleMap]) -> Annotation:
    rating = _rating(given.answer)
    if rating is None:
        return given
    return replace(given, answer=scales.get(given.annotator, ScaleMap()).label(rating))


def _exclusive_pairs(
    questions: Iterable[Question], exclusive: str | None
) -> Iterator[tuple[str, bool, bool]]:
    if exclusive is None:
        return
    given: dict[tuple[str, str, str], list[bool]] = {}
    for question in questions:
        if exclusive in question.slices:
            for one in question.annotations:
                key = (question.check, question.slices[exclusive], one.annotator)
                given.setdefault(key, []).append(one.answer in AFFIRMED)
    for (_, _, annotator), affirmed in given.items():
        for first, second in combinations(affirmed, 2):
            yield annotator, first, second
