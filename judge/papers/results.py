"""Write and read output lines of an evaluation, and score answers made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from judge.errors import UsageError
from judge.papers.asking import MeasuredModel
from judge.papers.tasks import MISSING, Fields, MeasuredAnswer, NoAnswer
from judge.records import RESERVED, read, renamed
from judge.records.answers import NO_LABEL, spelling
from judge.records.base import clip, keys_of
from judge.records.fields import LabelError, id_text
from judge.records.lines import Line, written
from judge.report.files import writing
from judge.run.task import RunInfo, fingerprint
from judge.verdict import AnswerOutcome, Verdict
from judge.version import __version__

if TYPE_CHECKING:
    from judge.papers.benchmark import AnswersById, Benchmark, Choices

_RESULT = TypeAdapter(MeasuredAnswer)
_NO_ANSWER = "no answer"


def verdict_of(result: MeasuredAnswer) -> Verdict:
    """An answer passes if it is entirely right, or was not scored; one that judges graded has
    their verdict. A refusal abstains."""
    right = Verdict.PASS if result.score in (None, 1) else Verdict.FAIL
    if graded := result.steps.get("checks"):
        right = Verdict(graded[0]["verdict"])
    verdicts = {
        AnswerOutcome.REFUSED: Verdict.ABSTAIN,
        AnswerOutcome.UNREADABLE: Verdict.UNREADABLE,
        AnswerOutcome.ERROR: Verdict.ERROR,
    }
    return verdicts.get(result.outcome, right)


def line_of(result: MeasuredAnswer, mark: RunInfo, error: Mapping[str, Any] | None = None) -> Line:
    """The output line: the item's own fields, then the result under `"judge"`."""
    judgement: dict[str, Any] = {
        "verdict": str(verdict_of(result)),
        "benchmark": mark.name,
        "condition": result.fields.get("condition"),
        **({"setting": result.setting} if result.setting else {}),
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


def result_of(line: Line) -> MeasuredAnswer | None:
    """An output line's result; None if it is not a line of `judge evaluate`."""
    if not {"id", "condition"} <= line.fields.keys():
        return None
    try:
        result = _RESULT.validate_python({**line.content, "fields": dict(line.fields)})
    except ValidationError:
        return None
    return result if result.outcome is AnswerOutcome.ANSWERED else replace(result, score=None)


async def asked_of(benchmark: Benchmark, fields: Fields, model: MeasuredModel) -> MeasuredAnswer:
    """The model's answer to one item, with its score; BackendError if it gives no reply."""
    try:
        answer = await benchmark.ask(fields, model)
        result = MeasuredAnswer(fields, AnswerOutcome.ANSWERED, answer, reason=model.note)
        result = replace(result, probabilities=model.probabilities)
    except NoAnswer as no:
        result = MeasuredAnswer(fields, no.outcome, reason=no.detail)
    result = replace(result, steps=model.steps, usage=model.usage, setting=model.setting)
    return rated(benchmark, result)


def rated(benchmark: Benchmark, result: MeasuredAnswer) -> MeasuredAnswer:
    """The answer read and scored by the benchmark's rules. An answer that they refuse is
    unreadable; if its text means no answer, that is the reason.

    If no rule scores it (values that judges credit), the score is kept.
    """
    if result.outcome is not AnswerOutcome.ANSWERED:
        return replace(result, score=None)
    try:
        answer = benchmark.read(result.fields, result.answer)
        score = benchmark.score(result.fields, answer)
    except ValueError as error:
        empty = isinstance(result.answer, str) and spelling(result.answer) in NO_LABEL
        reason = _NO_ANSWER if empty else str(error)
        unreadable = AnswerOutcome.UNREADABLE
        return MeasuredAnswer(
            result.fields, unreadable, reason=reason, usage=result.usage, setting=result.setting
        )
    return replace(result, answer=answer, score=result.score if score is None else score)


@dataclass(frozen=True, slots=True)
class Scored:
    """Results of answers made elsewhere.

    `extra` are answers to no gold item; `unasked` counts lines about input that could not be asked
    about.
    """

    results: Sequence[MeasuredAnswer]
    extra: Sequence[str] = ()
    unasked: int = 0

    @property
    def readable(self) -> bool:
        """Whether any answer can be read; a refusal can."""
        outcomes = (AnswerOutcome.ANSWERED, AnswerOutcome.REFUSED)
        return any(result.outcome in outcomes for result in self.results)

    @property
    def missing(self) -> list[str]:
        """Gold items without an answer, which count as unreadable."""
        return [result.id for result in self.results if result.reason == MISSING]

    @property
    def unread(self) -> list[MeasuredAnswer]:
        """Answers that cannot be read, and items without a reply; missing answers are not here."""
        lost = (AnswerOutcome.UNREADABLE, AnswerOutcome.ERROR)
        results = [result for result in self.results if result.outcome in lost]
        return [r for r in results if r.reason not in (None, _NO_ANSWER, MISSING)]

    @property
    def no_label(self) -> int:
        """The number of answers whose text means none (`NULL`, an empty cell)."""
        return sum(result.reason == _NO_ANSWER for result in self.results)


def scored(
    benchmark: Benchmark,
    answers: str,
    gold: Sequence[str],
    choices: Choices,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Scored:
    """Answers from a file, scored by the benchmark's rule.

    `answers` is a file of lines of `judge evaluate`, which have their own gold, or of lines `{"id",
    "answer"}`, with null for an unreadable answer; or it has the benchmark's released form. An id
    is the item's (`7/country`), or the row's if one condition is chosen. An answer that the rule
    does not accept is unreadable.

    Args:
        gold: the benchmark's own sources.
        columns: columns of `answers` to rename.

    Raises:
        UsageError: a file cannot be read, a line is faulty, two answers are to one item, no answer
            is of a chosen condition, or the two files have no id in common.
    """
    answers_by_id: AnswersById | None = None
    unasked = 0
    if benchmark.released is not None and not columns and answers != "-":
        answers_by_id = benchmark.released(answers, gold, choices)
    if answers_by_id is None:
        answers_by_id, unasked = _read(benchmark, answers, columns)
    if not gold:
        if not answers_by_id or any(
            "condition" not in result.fields for result in answers_by_id.values()
        ):
            hint = "name the benchmark's files as well"
            raise UsageError(f"{answers}: holds no answers of `judge evaluate`: {hint}")
        every = choices.conditions == benchmark.conditions
        results = [
            _in_setting(result, choices)
            for result in answers_by_id.values()
            if every or result.condition in choices.conditions
        ]
        if not results:
            there = ", ".join(dict.fromkeys(r.condition for r in answers_by_id.values()))
            message = f"no answer of condition {', '.join(choices.conditions)}: there are {there}"
            raise UsageError(f"{answers}: {message}")
        return Scored([rated(benchmark, result) for result in results], unasked=unasked)
    items: dict[str, Fields] = {}
    for item in benchmark.items(gold, choices):
        try:
            fields = item.usable().visible
        except LabelError as error:
            raise UsageError(f"{item.source}, line {item.line}: {error}") from None
        items[str(fields["id"])] = fields
    only = choices.conditions[0] if len(choices.conditions) == 1 else None
    by_item: dict[str, MeasuredAnswer] = {}
    for id, result in answers_by_id.items():
        item_id = id if id in items else f"{id}/{only}"
        if item_id in by_item:
            both = f"{clip(by_item[item_id].id)} and {clip(id)}"
            raise UsageError(f"{answers}: ids {both} name the same item")
        by_item[item_id] = result
    conditions = {items[id]["condition"] for id in by_item if id in items}
    if not conditions:
        firsts = [f" ({clip(id)}, ...)" for ids in (answers_by_id, items) for id in [*ids][:1]]
        of_answers, of_gold = firsts if len(firsts) == 2 else ("", "")
        names = ", ".join(dict.fromkeys(str(fields["condition"]) for fields in items.values()))
        rows = f": if ids are those of rows, add one --condition ({names})"
        hint = rows if names and not only else ""
        both = f"{answers}{of_answers} and {', '.join(gold)}{of_gold}"
        raise UsageError(f"{both} have no id in common{hint}")
    gold_items = {id: fields for id, fields in items.items() if fields["condition"] in conditions}
    blank = MeasuredAnswer({}, AnswerOutcome.UNREADABLE, reason=MISSING)
    results = [
        _in_setting(replace(by_item.get(id, blank), fields=fields), choices)
        for id, fields in gold_items.items()
    ]
    return Scored(
        [rated(benchmark, result) for result in results],
        extra=[result.id for id, result in by_item.items() if id not in items],
        unasked=unasked,
    )


def _in_setting(result: MeasuredAnswer, choices: Choices) -> MeasuredAnswer:
    """The result in the setting that the user chose, else in its line's own."""
    return replace(result, setting=choices.setting or result.setting)


def write_scored(out: Path, benchmark: Benchmark, results: Sequence[MeasuredAnswer]) -> None:
    """Write the results as `judge evaluate` does, over an earlier file; raises as `writing`."""
    described = {"benchmark": benchmark.name, "settings": {"version": __version__}}
    mark = RunInfo(benchmark.name, described, fingerprint(described, {}), {})
    with writing(out, [], overwrite=True) as file:
        file.writelines(line_of(result, mark).text for result in results)


def _read(
    benchmark: Benchmark, path: str, columns: Mapping[str, str]
) -> tuple[dict[str, MeasuredAnswer], int]:
    """The answers of a file by id, and the number of lines about input that was not asked about."""
    results: dict[str, MeasuredAnswer] = {}
    unasked = 0
    for item in renamed(read(path), columns):
        try:
            result = _answer(benchmark, item.usable().visible, columns)
            if result is not None and result.id in results:
                raise LabelError(f"an earlier line has id {clip(result.id)}", "id")
        except LabelError as error:
            raise UsageError(f"{path}, line {item.line}: {error}") from None
        if result is None:
            unasked += 1
        else:
            results[result.id] = result
    return results, unasked


def _answer(
    benchmark: Benchmark, fields: Fields, columns: Mapping[str, str]
) -> MeasuredAnswer | None:
    """A line's answer; None if `judge evaluate` could not ask about it."""
    line, labels = Line.of(fields), fields.get("labels")
    # A majority, as judge agreement -o writes it: the record's own `answer` may be the right one.
    voted = isinstance(labels, dict) and "annotators" in fields
    if line is not None and not (voted and line.benchmark is None):
        if line.workflow is None and line.benchmark is None:
            return None
        result = result_of(line)
        if result is None or line.benchmark != benchmark.name:
            raise LabelError(f"no answer of judge evaluate {benchmark.name}", RESERVED)
        return result
    id = id_text(fields.get(keys_of({"id": "id"}, fields).get("id", "id")), "id")
    if id is None:
        raise LabelError("field 'id' is missing", "id")
    if isinstance(labels, dict) and "answer" not in (columns if voted else fields):
        if len(labels) > 1:
            message = f"has majorities of {', '.join(map(clip, labels))}: judge agreement --check"
            raise LabelError(f"field 'labels' {message} writes one", "labels")
        fields = {**fields, "answer": next(iter(labels.values()), None)}
    if "answer" not in fields:
        message = "add --map answer=COLUMN if its name is another, or write null for an unreadable"
        raise LabelError(f"field 'answer' is missing: {message} one", "answer")
    answer = fields["answer"]
    outcome = AnswerOutcome.UNREADABLE if answer is None else AnswerOutcome.ANSWERED
    return MeasuredAnswer({"id": id}, outcome, answer)
