"""Lines of an evaluation, written and read back; answers made elsewhere, joined with what is right.

A line holds the item's own fields and, under `"judge"`, what came of asking about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.errors import UsageError
from judge.evaluation.benchmark import (
    Benchmark,
    Choices,
    Fields,
    MeasuredModel,
    NoAnswer,
    Outcome,
    Result,
)
from judge.evaluation.rows import Row, asked, each_row, read_sources
from judge.evaluation.tables import Table, bars
from judge.records import RESERVED, Item, read
from judge.records.fields import LabelError, id_text
from judge.records.values import clip
from judge.run.fingerprint import Mark
from judge.run.lines import Line, written
from judge.verdict import Verdict

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_NAMED = 20


class Answered(BaseModel):
    """What stands under `"judge"` in a line of `judge evaluate`."""

    model_config = ConfigDict(extra="ignore")

    verdict: str
    benchmark: str
    condition: str | None = None
    outcome: Outcome
    answer: Any = None
    score: float | None = Field(default=None, ge=0, le=1)
    reason: str | None = None
    probabilities: dict[str, float] | None = None
    steps: dict[str, Any] = Field(default_factory=dict)
    usage: dict[str, Any] = Field(default_factory=dict)
    fingerprint: str = ""
    error: dict[str, Any] | None = None


def verdict_of(result: Result) -> Verdict:
    """A refusal is the model's `abstain`; an answer passes if it is all right, or if nothing about
    it could be right or wrong."""
    if result.outcome == "answered":
        right = result.score is None or result.score == 1
        return Verdict.PASS if right else Verdict.FAIL
    if result.outcome == "refused":
        return Verdict.ABSTAIN
    return Verdict.UNREADABLE if result.outcome == "unreadable" else Verdict.ERROR


def line_of(result: Result, mark: Mark, error: Mapping[str, Any] | None = None) -> Line:
    """The output line: the item's own fields, then under `"judge"` what came of it."""
    chances = result.probabilities
    judgement = Answered(
        verdict=str(verdict_of(result)),
        benchmark=mark.name,
        condition=result.fields.get("condition"),
        outcome=result.outcome,
        answer=result.answer,
        score=None if result.score is None else round(result.score, 6),
        reason=result.reason,
        probabilities=chances and {name: round(p, 6) for name, p in chances.items()},
        steps=dict(result.steps),
        usage=result.usage.as_json(),
        fingerprint=mark.fingerprint,
        error=None if error is None else dict(error),
    ).model_dump()
    for name in ("probabilities", "steps"):
        if not judgement[name]:
            del judgement[name]
    return written(result.fields, judgement)


def result_of(line: Mapping[str, Any]) -> Result | None:
    """An output line's result; None for a line of input that could not be asked about."""
    found = answered_of(line)
    if found is None:
        return None
    return Result(
        fields={name: content for name, content in line.items() if name != RESERVED},
        outcome=found.outcome,
        answer=found.answer,
        score=found.score,
        probabilities=found.probabilities,
        steps=found.steps,
        reason=found.reason,
    )


def answered_of(line: Mapping[str, Any]) -> Answered | None:
    """What a line says under `"judge"`; None where it is no line of `judge evaluate`."""
    judgement = line.get(RESERVED)
    if not isinstance(judgement, dict) or "outcome" not in judgement:
        return None
    try:
        return Answered.model_validate(judgement)
    except ValidationError:
        return None


# ------------------------------------------------------------ answers made elsewhere


@dataclass(slots=True)
class Scored:
    """Results of answers that are at hand, and the lines that are none.

    `missing` names gold items without an answer (unreadable then), `extra` answers to no gold item,
    `faults` what is wrong with lines of the answers.
    """

    results: list[Result] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def table(self) -> Table:
        """What became of the lines; the notes name the first of each kind."""
        counts = {
            "gold items": len(self.results),
            "without an answer": len(self.missing),
            "answers to no gold item": len(self.extra),
            "lines at fault": len(self.faults),
        }
        named = (("no answer, counted as unreadable", self.missing), ("no gold", self.extra))
        notes = [
            f"{name}: {', '.join(ids[:_NAMED])}" + (" and more" if len(ids) > _NAMED else "")
            for name, ids in named
            if ids
        ]
        return bars(
            "joined",
            "Answers and gold, joined by id",
            ("lines",),
            [((name,), count) for name, count in counts.items()],
            lambda count: {"count": count},
            notes=(*notes, *self.faults[:_NAMED]),
        )


def scored(benchmark: Benchmark, answers: str, gold: Sequence[str], choices: Choices) -> Scored:
    """Answers from a file, scored by the benchmark's rule.

    ANSWERS, a line each, is what `judge evaluate` wrote, or `{"id", "answer"}` with `outcome`
    (answered, refused, unreadable or error) and `condition` where these must be told. An id is the
    item's (`7/country`), or what stands before the condition where the line names that, or just one
    condition is chosen. `answer` is null where there is no readable one.

    GOLD are the benchmark's own sources, or lines that hold `id` and `gold` (`condition`, `row` and
    what tables are made by, where they are there); what `judge evaluate` wrote is its own gold.

    A score is the rule's; where no rule scores (answers that judges grade) it is the line's own. An
    answer that the rule does not know is unreadable, and so is a gold item without an answer.

    Raises:
        UsageError: a file cannot be read, a line of GOLD is at fault, or the two have no id in
            common.
    """
    found = Scored()
    told = _read(benchmark, answers, found, not gold)
    if not gold:
        found.results = [rated(benchmark, one) for one in told.values()]
        if not told:
            raise UsageError(f"{answers}: holds no answers of `judge evaluate`")
        return found
    items = {str(fields["id"]): fields for fields in _gold(benchmark, gold, choices)}
    by_item: dict[str, Result] = {}
    only = choices.conditions[0] if len(choices.conditions) == 1 else None
    for id, one in told.items():
        condition = one.fields.get("condition") or only
        key = id if id in items else f"{id}/{condition}"
        if key in items:
            by_item[key] = one
        else:
            found.extra.append(id)
    if not by_item:
        first = f"; the first fault: {found.faults[0]}" if found.faults else ""
        raise UsageError(f"{answers} and {', '.join(gold)} have no id in common{first}")
    conditions = {items[id]["condition"] for id in by_item}
    for id, fields in items.items():
        if fields["condition"] not in conditions:
            continue
        if id not in by_item:
            found.missing.append(id)
            found.results.append(Result(fields, "unreadable", reason="no answer"))
        else:
            found.results.append(rated(benchmark, replace(by_item[id], fields=fields)))
    return found


async def asked_of(benchmark: Benchmark, fields: Fields, model: MeasuredModel) -> Result:
    """The model's answer to one item, with its score.

    Raises:
        BackendError: the model gives no reply.
    """
    try:
        answer = await benchmark.ask(fields, model)
    except NoAnswer as no:
        result = Result(fields, no.outcome, no.answer, reason=no.detail)
        return replace(result, steps=model.steps, usage=model.usage)
    result = Result(fields, "answered", answer, probabilities=model.probabilities)
    result = replace(result, steps=model.steps, reason=model.note, usage=model.usage)
    return rated(benchmark, result)


def rated(benchmark: Benchmark, result: Result) -> Result:
    """An answer with its score by the benchmark's rule, or unreadable where the rule has none.

    Where no rule scores (answers that judges grade), the score that is there stays.
    """
    if result.outcome != "answered":
        return replace(result, score=None)
    try:
        score = benchmark.score(result.fields, result.answer)
    except ValueError as error:
        return Result(result.fields, "unreadable", reason=str(error), usage=result.usage)
    return result if score is None else replace(result, score=score)


def _read(benchmark: Benchmark, path: str, found: Scored, own_gold: bool) -> dict[str, Result]:
    """The answers of a file by id; lines at fault are noted."""
    told: dict[str, Result] = {}
    for item in read(path):
        try:
            one = _told(benchmark, item, own_gold)
            if one.id in told:
                raise LabelError(f"id {clip(one.id)} stood there before", "id")
        except LabelError as error:
            found.faults.append(f"{Path(path).name}, line {item.line}: {error.problem.message}")
        else:
            told[one.id] = one
    return told


def _told(benchmark: Benchmark, item: Item, own_gold: bool) -> Result:
    if item.fields is None:
        raise LabelError(item.problem.message if item.problem else "there is no record")
    id = id_text(item.fields.get("id"), "id")
    if id is None:
        raise LabelError("field 'id' is missing", "id")
    fields = {**item.fields, "id": id}
    if RESERVED in fields:
        line, result = answered_of(fields), result_of(fields)
        if line is None or result is None or line.benchmark != benchmark.name:
            raise LabelError(f"no answer of judge evaluate {benchmark.name}", RESERVED)
        return result
    if own_gold:
        raise LabelError("this line has no gold: name the benchmark's sources as well", "gold")
    if "answer" not in fields and "outcome" not in fields:
        raise LabelError("field 'answer' is missing: write null for an unreadable one", "answer")
    answer = fields.get("answer")
    outcome = fields.get("outcome", "unreadable" if answer is None else "answered")
    if outcome not in OUTCOMES:
        message = f"field 'outcome' must be one of {', '.join(OUTCOMES)}, not {clip(outcome)}"
        raise LabelError(message, "outcome")
    return Result(fields, outcome, answer)


def _gold(
    benchmark: Benchmark, sources: Sequence[str], choices: Choices
) -> Iterator[Mapping[str, Any]]:
    """The fields of the gold items. Raises UsageError for a line at fault."""
    only = choices.conditions[0] if len(choices.conditions) == 1 else None

    def of_line(row: Row) -> Iterator[Item]:
        fields = row.own
        if fields.get("condition") is not None:
            yield Item(row.item.source, row.item.line, {"row": row.id, **fields, "id": row.id})
        elif only is not None and "gold" in fields:
            yield asked(row.item, only, fields, row=row.id)
        else:
            missing = "condition" if "gold" in fields else "gold"
            hint = ": choose one with --condition" if missing == "condition" else ""
            raise LabelError(f"field {missing!r} is missing{hint}", missing)

    first = next((item.fields for item in read_sources(sources) if item.fields is not None), None)
    if first is not None and {"id", "gold"} <= set(first):
        found = each_row(read_sources(sources), of_line)
    else:
        found = benchmark.items(sources, choices)
    for item in found:
        if item.fields is None:
            message = item.problem.message if item.problem else "there is no record"
            raise UsageError(f"{item.source}, line {item.line}: {message}")
        if item.fields["condition"] in choices.conditions or not choices.chosen:
            yield item.fields
