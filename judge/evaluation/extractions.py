"""Predicted values beside gold ones: what `judge score extraction` puts to judges, and what it
makes of their lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.errors import UsageError
from judge.evaluation.benchmark import Outcome, Result
from judge.evaluation.cqbench_joining import nothing_joined
from judge.evaluation.cqbench_tables import extractions
from judge.evaluation.results import result_of
from judge.evaluation.tables import Row, Table
from judge.records import RESERVED, Item, read
from judge.records.fields import LabelError, RecordNames, id_text, listed
from judge.records.values import clip
from judge.run.lines import Line
from judge.verdict import Verdict

_NAMED = 20
_CONDITION = "extraction"


@dataclass(slots=True)
class Extractions:
    """Gold values with what was predicted for them, joined by id.

    Args:
        gold: what stands in a result's fields, by id, in the order of the file.
        predicted: the predicted values by id, as far as there is a gold line of that id; None
            where the model gave none (refused, unreadable).
        outcomes: what came of asking the model, by the same ids.
        extra: predictions for no gold line.
        bad: prediction lines that cannot be read, with what is wrong.
        judged: what judges made of them, by id, filled as the run goes on.
    """

    gold: dict[str, dict[str, Any]] = field(default_factory=dict)
    predicted: dict[str, list[str] | None] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    judged: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def joined(cls, pred: str, gold: str) -> Extractions:
        """Read both files.

        GOLD, a line each: `{"id", "values": [...]}`, or `gold` in the place of `values`; `category`
        and `gold_topics` (a topic for each value) are read where they are there. PRED, a line each:
        `{"id", "predicted": [...]}`, or `answer` in its place, or a line of `judge evaluate`, which
        may be GOLD at the same time.

        Raises:
            UsageError: a file cannot be read, a line of GOLD is at fault, or no id is in both; with
                file, line and field.
        """
        found = cls()
        found._read_gold(gold)
        found._read_predictions(pred)
        if not found.predicted:
            raise UsageError(nothing_joined(pred, gold, found.bad))
        return found

    @property
    def count(self) -> int:
        """How many items there are."""
        return sum(predicted is not None for predicted in self.predicted.values())

    def items(self) -> Iterator[Item]:
        """One record for the extraction workflow for each gold line with predicted values."""
        for number, (id, fields) in enumerate(self.gold.items(), 1):
            predicted = self.predicted.get(id)
            if predicted is not None:
                slices = {name: fields[name] for name in ("category",) if fields[name] is not None}
                record = {"id": id, "values": fields["gold"], "predicted": predicted, **slices}
                yield Item("<joined>", number, record)

    def take(self, line: Line) -> None:
        """One output line of the run."""
        found = json.loads(line.text)
        self.judged[str(found.get("id"))] = found[RESERVED]

    def tables(self) -> list[Table]:
        """What became of the lines, and recall as the paper has it (CQ-Bench, section 3.1)."""
        results = [self._result(id, fields) for id, fields in self.gold.items()]
        return [self._counts(), extractions(results)]

    # ------------------------------------------------------------ reading

    def _read_gold(self, path: str) -> None:
        with RecordNames() as names:
            for item in read(path):
                try:
                    fields = _readable(item)
                    if fields.get("condition", _CONDITION).split("+")[0] != _CONDITION:
                        continue
                    id = names.name(item, fields.get("id"))
                    if id in self.gold:
                        raise LabelError(f"id {clip(id)} stood there before", "id")
                    self.gold[id] = _gold_fields(id, fields)
                except LabelError as error:
                    raise UsageError(f"{path}:{item.line}: {error.problem.message}") from error
        if not self.gold:
            raise UsageError(f"{path} has no gold values")

    def _read_predictions(self, path: str) -> None:
        for item in read(path):
            try:
                fields = _readable(item)
                if fields.get("condition", _CONDITION).split("+")[0] != _CONDITION:
                    continue
                self._take_prediction(fields)
            except LabelError as error:
                self.bad.append(f"{path}:{item.line}: {error.problem.message}")

    def _take_prediction(self, fields: Mapping[str, Any]) -> None:
        id = id_text(fields.get("id"), "id")
        if id is None:
            raise LabelError("field 'id' is missing", "id")
        if id not in self.gold:
            self.extra.append(id)
            return
        if id in self.predicted:
            raise LabelError(f"id {clip(id)} stood there before", "id")
        told = result_of(fields)
        if told is not None:
            self.outcomes[id] = told.outcome
            answer = told.answer if told.outcome == "answered" else None
        else:
            name = "predicted" if "predicted" in fields else "answer"
            if name not in fields:
                raise LabelError("field 'predicted' is missing", "predicted")
            answer = fields[name]
            self.outcomes[id] = "unreadable" if answer is None else "answered"
        self.predicted[id] = None if answer is None else _texts(answer, "predicted")

    # ------------------------------------------------------------ results

    def _result(self, id: str, fields: dict[str, Any]) -> Result:
        predicted = self.predicted.get(id)
        if predicted is None:
            return Result(fields, self.outcomes.get(id, "unreadable"))
        judgement = self.judged.get(id, {})
        if judgement.get("verdict") in (None, Verdict.ERROR):
            return Result(fields, "error")
        graded = judgement.get("extraction") or {}
        steps = {"credits": graded.get("credits"), "cut": graded.get("cut", 0)}
        return Result(fields, "answered", predicted, graded.get("recall"), steps=steps)

    def _counts(self) -> Table:
        missing = [id for id in self.gold if id not in self.predicted]
        counts = {
            "gold lines": len(self.gold),
            "gold lines with a prediction": len(self.predicted),
            "gold lines without a prediction": len(missing),
            "predictions for no gold line": len(self.extra),
            "prediction lines with a fault": len(self.bad),
        }
        notes = [
            f"{name}: {', '.join(ids[:_NAMED])}" + (" and more" if len(ids) > _NAMED else "")
            for name, ids in (
                ("no prediction, counted as unreadable", missing),
                ("no gold, left out", self.extra),
            )
            if ids
        ]
        return Table(
            "joined",
            "Predictions and gold, joined by id",
            ("lines",),
            ("count",),
            [Row((name,), {"count": count}) for name, count in counts.items()],
            notes=(*notes, *self.bad[:_NAMED]),
        )


def _readable(item: Item) -> Mapping[str, Any]:
    if item.fields is None:
        raise LabelError(item.problem.message if item.problem else "there is no record", "")
    return item.fields


def _gold_fields(id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    name = "gold" if "gold" in fields else "values"
    if name not in fields:
        raise LabelError("field 'values' is missing", "values")
    values = _texts(fields[name], name)
    if not values:
        raise LabelError(f"field {name!r} is empty", name)
    topics = fields.get("gold_topics") or [None] * len(values)
    if not isinstance(topics, list) or len(topics) != len(values):
        raise LabelError("field 'gold_topics' must have a topic for each value", "gold_topics")
    category = fields.get("category")
    row = str(fields.get("row", id))
    return {
        "id": id,
        "row": row,
        "condition": _CONDITION,
        "gold": values,
        "gold_topics": topics,
        "category": category,
    }


def _texts(content: object, name: str) -> list[str]:
    found: Sequence[object] = listed(content, name) if not isinstance(content, str) else ()
    if isinstance(content, str):
        return [line.strip() for line in content.splitlines() if line.strip()]
    if not all(isinstance(one, str) and one.strip() for one in found):
        raise LabelError(f"field {name!r} must be a list of texts, not {clip(content)}", name)
    return [str(one) for one in found]
