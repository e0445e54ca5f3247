"""Lines of an evaluation, written and read back; answers made elsewhere, scored by the rule.

A line holds the item's own fields and, under `"judge"`, what came of asking about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from judge import __version__
from judge.errors import UsageError, why_unread
from judge.evaluation.asking import MeasuredModel
from judge.evaluation.benchmark import (
    Benchmark,
    Choices,
    Fields,
    NoAnswer,
    Result,
    choices_of,
    load_benchmark,
)
from judge.evaluation.tables import Cell, Row, Table, tables_of
from judge.records import RESERVED, Item, read, renamed
from judge.records.base import clip
from judge.records.fields import LabelError, id_text
from judge.run.lines import Line, Mark, fingerprint, written
from judge.run.output import write_whole
from judge.stats.intervals import Estimate
from judge.verdict import Verdict

_RESULT = TypeAdapter(Result)


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
    judgement: dict[str, Any] = {
        "verdict": str(verdict_of(result)),
        "benchmark": mark.name,
        "condition": result.fields.get("condition"),
        "outcome": result.outcome,
        "answer": result.answer,
        "score": None if result.score is None else round(result.score, 6),
        "reason": result.reason,
    }
    if chances := result.probabilities:
        judgement["probabilities"] = {name: round(p, 6) for name, p in chances.items()}
    if result.steps:
        judgement["steps"] = dict(result.steps)
    judgement |= {
        "usage": result.usage.as_json(),
        "fingerprint": mark.fingerprint,
        "error": error and dict(error),
    }
    return written(result.fields, judgement)


def result_of(line: Mapping[str, Any]) -> Result | None:
    """An output line's result; None where it is no line of `judge evaluate`."""
    own = {name: content for name, content in line.items() if name != RESERVED}
    judgement = line.get(RESERVED)
    if not isinstance(judgement, dict) or not {"id", "condition"} <= own.keys():
        return None
    try:
        result = _RESULT.validate_python({**judgement, "fields": own})
    except ValidationError:
        return None
    return result if result.outcome == "answered" else replace(result, score=None)


async def asked_of(benchmark: Benchmark, fields: Fields, model: MeasuredModel) -> Result:
    """The model's answer to one item, with its score.

    Raises:
        BackendError: the model gives no reply.
    """
    try:
        answer = await benchmark.ask(fields, model)
    except NoAnswer as no:
        result = Result(fields, no.outcome, reason=no.detail)
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


# ------------------------------------------------------------ answers made elsewhere


@dataclass(frozen=True, slots=True)
class Scored:
    """Results of answers that are at hand.

    `missing` are the gold items without an answer, which are unreadable then; `extra` the answers
    to no gold item; `unasked` counts lines about input that could not be asked about.
    """

    results: Sequence[Result]
    missing: Sequence[str] = ()
    extra: Sequence[str] = ()
    unasked: int = 0


def scored(
    benchmark: Benchmark,
    answers: str,
    gold: Sequence[str],
    choices: Choices,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Scored:
    """Answers from a file, scored by the benchmark's rule.

    ANSWERS, a line each, is what `judge evaluate` wrote, which is its own gold, or `{"id",
    "answer"}`; `answer` is null where there is no readable one. An id is the item's (`7/country`),
    or the row's where one condition is chosen. GOLD are the benchmark's own sources.
    `columns` of ANSWERS are renamed.

    An answer that the rule does not know is unreadable, and so is a gold item without an answer.

    Raises:
        UsageError: a file cannot be read, a line is at fault, or the two have no id in common.
    """
    told, unasked = _read(benchmark, answers, columns)
    if not gold:
        if not told or any("condition" not in one.fields for one in told.values()):
            hint = "name the benchmark's files as well"
            raise UsageError(f"{answers}: holds no answers of `judge evaluate`: {hint}")
        return Scored([rated(benchmark, one) for one in told.values()], unasked=unasked)
    items: dict[str, Fields] = {}
    for item in benchmark.items(gold, choices):
        if item.fields is None:
            message = item.problem.message if item.problem else "there is no record"
            raise UsageError(f"{item.source}, line {item.line}: {message}")
        items[str(item.fields["id"])] = item.fields
    only = choices.conditions[0] if len(choices.conditions) == 1 else None
    found = {id if id in items else f"{id}/{only}": (id, one) for id, one in told.items()}
    there = {key: one for key, (_, one) in found.items() if key in items}
    if not there:
        hint = "" if only else ": ids are those of judge evaluate, or rows' with one --condition"
        raise UsageError(f"{answers} and {', '.join(gold)} have no id in common{hint}")
    conditions = {items[key]["condition"] for key in there}
    wanted = {key: one for key, one in items.items() if one["condition"] in conditions}
    lost = Result({}, "unreadable", reason="no answer")
    results = [replace(there.get(key, lost), fields=fields) for key, fields in wanted.items()]
    return Scored(
        [rated(benchmark, one) for one in results],
        missing=[key for key in wanted if key not in there],
        extra=[id for key, (id, _) in found.items() if key not in items],
        unasked=unasked,
    )


def write_scored(out: Path, benchmark: Benchmark, results: Sequence[Result]) -> None:
    """Write the results as output lines of `judge evaluate`.

    Raises:
        UsageError: the file cannot be written; it is as it was.
    """
    described = {"benchmark": benchmark.name, "settings": {"version": __version__}}
    mark = Mark(benchmark.name, described, fingerprint(described, {}))
    try:
        write_whole(out, b"".join(line_of(one, mark).text for one in results))
    except OSError as error:
        raise UsageError(f"-o {out}: cannot be written: {why_unread(error)}") from error


def _read(
    benchmark: Benchmark, path: str, columns: Mapping[str, str]
) -> tuple[dict[str, Result], int]:
    """The answers of a file by id, and how many lines are about input that was not asked about."""
    told: dict[str, Result] = {}
    unasked = 0
    for item in renamed(read(path), columns):
        try:
            one = _answer(benchmark, item)
            if one is not None and one.id in told:
                raise LabelError(f"id {clip(one.id)} stood there before", "id")
        except LabelError as error:
            raise UsageError(f"{path}, line {item.line}: {error}") from None
        if one is None:
            unasked += 1
        else:
            told[one.id] = one
    return told, unasked


def _answer(benchmark: Benchmark, item: Item) -> Result | None:
    """A line's answer; None where `judge evaluate` could not ask about it."""
    if item.fields is None:
        raise LabelError(item.problem.message if item.problem else "there is no record")
    judgement = item.fields.get(RESERVED)
    if isinstance(judgement, dict):
        if judgement.keys() <= {"verdict", "error"}:
            return None
        result = result_of(item.fields)
        if result is None or judgement.get("benchmark") != benchmark.name:
            raise LabelError(f"no answer of judge evaluate {benchmark.name}", RESERVED)
        return result
    id = id_text(item.fields.get("id"), "id")
    if id is None:
        raise LabelError("field 'id' is missing", "id")
    if "answer" not in item.fields:
        raise LabelError("field 'answer' is missing: write null for an unreadable one", "answer")
    answer = item.fields["answer"]
    return Result({"id": id}, "unreadable" if answer is None else "answered", answer)


_NOTE = "Each over the items that all runs have; what cannot be read counts as not right."


def tables_of_runs(name: str, sources: Mapping[str, str]) -> list[Table]:
    """The benchmark's tables of the items that all runs have.

    Args:
        name: the benchmark's.
        sources: by the letter that a run's columns bear, its file.

    Raises:
        UsageError: a file cannot be read twice, or is no run of the benchmark.
    """
    if "-" in sources.values():
        raise UsageError("--paper reads its runs twice: standard input cannot be one of them")
    runs: dict[str, dict[str, Result]] = {}
    for letter, source in sources.items():
        benchmark = load_benchmark(name, [source])
        found = scored(benchmark, source, (), choices_of(benchmark)).results
        runs[letter] = {one.id: one for one in found}
    shared = [id for id in next(iter(runs.values())) if all(id in run for run in runs.values())]
    made = {
        letter: {one.name: one for one in tables_of(benchmark, [run[id] for id in shared])}
        for letter, run in runs.items()
    }
    of_first = next(iter(made.values()))
    merged = (
        _merged([run.get(name) for run in made.values()], tuple(made), first)
        for name, first in of_first.items()
    )
    return [table for table in merged if table.brief]


def _merged(tables: Sequence[Table | None], runs: Sequence[str], first: Table) -> Table:
    """The tables' measures beside one another, named in `brief`; words, and how many were asked,
    once."""
    by_labels = {
        run: {row.labels: row.cells for row in table.rows} if table else {}
        for run, table in zip(runs, tables, strict=True)
    }
    measures = [c for c in first.columns if any(_measured(row.cells.get(c)) for row in first.rows)]
    rows = []
    for row in first.rows:
        cells: dict[str, Cell] = {
            name: cell
            for name, cell in row.cells.items()
            if isinstance(cell, str) or name == "asked"
        }
        for measure in measures:
            for run, known in by_labels.items():
                cells[f"{measure} {run}"] = known.get(row.labels, {}).get(measure)
        rows.append(Row(row.labels, cells))
    brief = tuple(f"{measure} {run}" for measure in measures for run in runs)
    return replace(first, rows=rows, notes=(*first.notes, _NOTE), brief=brief)


def _measured(cell: Cell) -> bool:
    return isinstance(cell, Estimate)
