"""AmbiEnt: entailment pairs that may be ambiguous.

Released (Liu et al., "We're Afraid Language Models Aren't Modeling Ambiguity") as JSON lines in
three files, which overlap:

- `linguist_annotations.jsonl`: id, premise, hypothesis, worker_ids, annotations. An annotation may
  be several labels joined by a bar, or `discard`.
- `crowdworker_annotations.jsonl`: id, premise, hypothesis, q0_gold: nine workers' labels of the
  pair as it stands (the further questions are about its rewritten forms). The workers are not
  named. Two pairs were labelled by two groups of nine.
- `test.jsonl`: id, premise, hypothesis, labels: one label, or several with commas between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.records.base import Item
from judge.records.fields import (
    ENTAILMENT,
    LabelError,
    answer_of,
    id_text,
    listed,
    one_of,
    text_of,
)
from judge.records.labels.items import Annotation, LabelledItem, LabelSet
from judge.records.values import clip

_ORDER = ("entailment", "neutral", "contradiction")
_DISCARD = "discard"


@dataclass(slots=True)
class _Pair:
    """What the files say of one pair; `given` maps annotators to their answers."""

    source: str
    line: int
    fields: dict[str, str]
    labels: str | None = None
    given: dict[str, Annotation] = field(default_factory=dict)

    def add(self, given: Annotation) -> None:
        """Keep an answer; the second one under the same name is `NAME (2)`."""
        name, times = given.annotator, 1
        while name in self.given:
            times += 1
            name = f"{given.annotator} ({times})"
        self.given[name] = Annotation(name, given.answer, given.group)


class Ambient(LabelSet):
    """One `entailment` item a pair, with what every file says of it; problems come first.

    Annotations: the linguists' (group `linguist`; `entailment|neutral` and `discard` are answers of
    their own) and the crowd's (group `crowd`), who are `crowd-1` and on by position and need not be
    the same people in the next pair. An annotator who labelled a pair twice comes as `NAME` and
    `NAME (2)`, and so does the second group of nine. Gold is the label of `test.jsonl` where it is
    a single one; its labels are always in the slice `labels`, joined by bars. An id under which
    another pair stands becomes `ID@SOURCE`. Holds all pairs in memory.
    """

    name = "ambient"
    checks = ("entailment",)
    files = ("test.jsonl*", "linguist_annotations.jsonl*", "crowdworker_annotations.jsonl*")
    merged = True

    def start(self) -> None:
        self._pairs: dict[str, _Pair] = {}

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        marks = ("q0_gold", "worker_ids", "premise_ambiguous")
        return {"premise", "hypothesis"} <= fields.keys() and any(one in fields for one in marks)

    def items(self, item: Item, fields: dict[str, Any]) -> tuple[()]:
        texts = {key: text_of(fields, key) for key in ("premise", "hypothesis")}
        labels: str | None = None
        answers: list[Annotation] = []
        if "worker_ids" in fields:
            answers = list(_linguists(fields))
        elif "q0_gold" in fields:
            answers = list(_crowd(fields))
        elif "labels" in fields:
            labels = _joined(fields["labels"], ",", "labels")
        else:
            raise LabelError("there is no field 'q0_gold', 'annotations' or 'labels'", "labels")
        record = id_text(fields.get("id"), "id") or f"{item.source}#{item.line}"
        if record in self._pairs and self._pairs[record].fields != texts:
            record = f"{record}@{item.source}"
        pair = self._pairs.setdefault(record, _Pair(item.source, item.line, texts))
        if pair.fields != texts or None not in (labels, pair.labels):
            message = f"id {clip(record)} was already on line {pair.line}"
            raise LabelError(message, "id", "duplicate-id")
        pair.labels = pair.labels if labels is None else labels
        for one in answers:
            pair.add(one)
        return ()

    def rest(self) -> Iterator[LabelledItem]:
        for record, pair in self._pairs.items():
            yield LabelledItem(
                record,
                "entailment",
                pair.fields,
                gold=pair.labels if pair.labels in _ORDER else None,
                annotations=tuple(pair.given.values()),
                slices={} if pair.labels is None else {"labels": pair.labels},
                source=pair.source,
                line=pair.line,
            )


def _linguists(fields: Mapping[str, Any]) -> Iterator[Annotation]:
    answers = listed(fields.get("annotations"), "annotations")
    workers = listed(fields["worker_ids"], "worker_ids")
    if len(workers) != len(answers):
        message = f"field 'annotations' has {len(answers)} answers of {len(workers)} workers"
        raise LabelError(message, "annotations")
    for number, (worker, answer) in enumerate(zip(workers, answers, strict=True), 1):
        name = id_text(worker, "worker_ids") or f"linguist-{number}"
        yield Annotation(name, _joined(answer, "|", "annotations"), "linguist")


def _crowd(fields: Mapping[str, Any]) -> Iterator[Annotation]:
    for number, answer in enumerate(listed(fields["q0_gold"], "q0_gold"), 1):
        if answer is not None:
            yield Annotation(f"crowd-{number}", one_of(answer, ENTAILMENT, "q0_gold"), "crowd")


def _joined(content: object, mark: str, key: str) -> str:
    """Labels joined by `mark`, now joined by bars and in one order."""
    answer = answer_of(content, key)
    if answer is None:
        raise LabelError(f"field {key!r} holds null for a label", key)
    if answer == _DISCARD:
        return answer
    found = {one_of(part, ENTAILMENT, key) for part in answer.split(mark)}
    return "|".join(label for label in _ORDER if label in found)
