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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.records.base import Item
from judge.records.labelled import Annotation, LabelledItem
from judge.records.released.common import (
    ENTAILMENT,
    Form,
    LabelError,
    Labelled,
    Place,
    answer_of,
    id_text,
    listed,
    one_of,
    refused,
    text_of,
)
from judge.records.values import clip

_ORDER = ("entailment", "neutral", "contradiction")
_DISCARD = "discard"


@dataclass(slots=True)
class _Pair:
    """What the files say of one pair."""

    source: str
    line: int
    fields: dict[str, str]
    labels: str | None = None
    given: list[Annotation] = field(default_factory=list)

    def take(self, answers: Iterable[tuple[str, str, str]]) -> None:
        """Keep answers as (annotator, answer, group); a second one of the same name is `(2)`."""
        taken = {annotation.annotator for annotation in self.given}
        for annotator, answer, group in answers:
            name, times = annotator, 1
            while name in taken:
                times += 1
                name = f"{annotator} ({times})"
            taken.add(name)
            self.given.append(Annotation(name, answer, group))


def read_ambient(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """One `entailment` item a pair, with what every file says of it; problems come first.

    Annotations: the linguists' (group `linguist`; `entailment|neutral` and `discard` are answers of
    their own) and the crowd's (group `crowd`), who are `crowd-1` and on by position and need not be
    the same people in the next pair. An annotator who labelled a pair twice comes as `NAME` and
    `NAME (2)`, and so does the second group of nine. Gold is the label of `test.jsonl` where it is
    one alone; its labels are always in the slice `labels`, joined by bars. An id under which
    another pair stands becomes `ID@SOURCE`. Holds all pairs in memory.
    """
    pairs: dict[str, _Pair] = {}
    for item in items:
        if item.problem is not None or item.fields is None:
            yield item
            continue
        try:
            _take(pairs, item, item.fields)
        except LabelError as error:
            yield refused(item, error.problem)
    for record, pair in pairs.items():
        labels = pair.labels
        yield LabelledItem(
            record,
            "entailment",
            pair.fields,
            gold=labels if labels in _ORDER else None,
            annotations=tuple(pair.given),
            slices={"labels": labels} if labels is not None else {},
            source=pair.source,
            line=pair.line,
        )


def is_ambient(fields: Mapping[str, Any]) -> bool:
    """Whether a line is of one of the three files."""
    marks = ("q0_gold", "worker_ids", "premise_ambiguous")
    return {"premise", "hypothesis"} <= fields.keys() and any(mark in fields for mark in marks)


def _take(pairs: dict[str, _Pair], item: Item, line: dict[str, Any]) -> None:
    texts = {key: text_of(line, key) for key in ("premise", "hypothesis")}
    labels, answers = None, []
    if "worker_ids" in line:
        answers = _linguists(line)
    elif "q0_gold" in line:
        answers = _crowd(line)
    elif "labels" in line:
        labels = _joined(line["labels"], ",", "labels")
    else:
        raise LabelError("there is no field 'q0_gold', 'annotations' or 'labels'", "labels")
    record = id_text(line.get("id"), "id") or f"{item.source}#{item.line}"
    if record in pairs and pairs[record].fields != texts:
        record = f"{record}@{item.source}"
    pair = pairs.setdefault(record, _Pair(item.source, item.line, texts))
    if pair.fields != texts or None not in (labels, pair.labels):
        raise LabelError(f"id {clip(record)} was already on line {pair.line}", "id", "duplicate-id")
    pair.labels = pair.labels if labels is None else labels
    pair.take(answers)


def _linguists(line: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    answers = listed(line.get("annotations"), "annotations")
    workers = listed(line["worker_ids"], "worker_ids")
    if len(workers) != len(answers):
        message = f"field 'annotations' has {len(answers)} answers of {len(workers)} workers"
        raise LabelError(message, "annotations")
    return [
        (
            id_text(worker, "worker_ids") or f"linguist-{number}",
            _joined(answer, "|", "annotations"),
            "linguist",
        )
        for number, (worker, answer) in enumerate(zip(workers, answers, strict=True), 1)
    ]


def _crowd(line: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    answers = listed(line["q0_gold"], "q0_gold")
    return [
        (f"crowd-{number}", one_of(answer, ENTAILMENT, "q0_gold"), "crowd")
        for number, answer in enumerate(answers, 1)
        if answer is not None
    ]


def _joined(content: object, mark: str, key: str) -> str:
    """Labels that are joined by `mark`, joined by bars, in one order whatever theirs was."""
    answer = answer_of(content, key)
    if answer is None:
        raise LabelError(f"field {key!r} holds null for a label", key)
    if answer == _DISCARD:
        return answer
    found = {one_of(part, ENTAILMENT, key) for part in answer.split(mark)}
    return "|".join(label for label in _ORDER if label in found)


FORM = Form(
    "ambient",
    read_ambient,
    is_ambient,
    checks=("entailment",),
    files=("test.jsonl*", "linguist_annotations.jsonl*", "crowdworker_annotations.jsonl*"),
    merged=True,
)
