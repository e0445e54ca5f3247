"""CQ-Bench: which values does a conversation carry without naming them?

Three tasks on validated stories (section 2.2): attitude detection, one of a statement's attitudes;
value selection, exactly X of 15 options; value extraction, at most ten values in the model's own
words, credited by judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from statistics import fmean
from typing import Any

from judge.errors import UsageError
from judge.graphs.extraction import MOST_PREDICTED
from judge.papers.asking import MeasuredModel
from judge.papers.benchmark import PAPER, Benchmark, Choices, label_of
from judge.papers.cqbench_speech import SPEECH, VERSIONS, speech_table, speeches
from judge.papers.cqbench_stories import (
    CATEGORIES,
    PARTS,
    TOPICS,
    ValueKey,
    ValueList,
    built_task,
    category_of,
    described_story,
    folded,
    key_of,
    option_of,
    questions_of,
    selection,
    story_of,
    values_and_stories,
)
from judge.papers.rows import asked, each_row, own_slices
from judge.papers.tables import ResultSample, results_table
from judge.papers.tasks import Fields, MeasuredAnswer, NoAnswer, unanswered
from judge.records import Record
from judge.records.base import clip
from judge.records.fields import LabelError
from judge.report.table import Cell, Table
from judge.stats.classification import ratio
from judge.stats.intervals import Estimate
from judge.verdict import AnswerOutcome
from judge.yamlfile import read_mapping

CONDITIONS = (
    *("attitude", "attitude+steps", "selection", "selection+steps"),
    "extraction+steps",
)
"""`+steps`: the model first summarises, then analyses (section 3.1)."""

MERGED, BINARY, ONE_SHOT = "merged", "binary", "one-shot"
"""Settings: attitude detection with options merged that differ only in severity (table 1), and
without the middle stance (B.1); and with a worked example (3.4)."""

MIDDLE = "neither"
"""The first word of the middle stance."""

_SEVERITY = re.compile(
    r"\b(?:(?<=\w )very much|definitely|probably|very|rather|quite|somewhat|fairly|strongly|"
    r"completely|at all)\b",
    re.IGNORECASE,
)


def task_of(condition: str) -> str:
    """`attitude`, `selection` or `extraction`."""
    return condition.split("+")[0]


def items(sources: Sequence[str], choices: Choices) -> Iterator[Record]:
    """The items of CQ-Bench, story by story.

    Attitudes and options need the value file, except in rows of a built set (`judge build`, or as
    released), which have their own and only the questions of their own task. The multiple setting
    has only attitude detection (section 3.1). A line or value without a possible question becomes
    an item with its problem. In the setting SPEECH items are speeches, not questions.
    """
    if choices.setting == SPEECH:
        stories = values_and_stories(sources, needed=False)[1]
        return each_row(stories, speeches, columns=choices.columns)
    if choices.setting in (MERGED, BINARY):
        attitudes = tuple(name for name in choices.conditions if task_of(name) == "attitude")
        if not attitudes:
            return iter(())
        choices = replace(choices, conditions=attitudes)
    with_list = {"attitude", "selection"} & set(map(task_of, choices.conditions))
    values, stories = values_and_stories(sources, needed=bool(with_list), with_questions=True)

    def of_row(row: Record) -> Iterator[Record]:
        return _of_built(row, choices) if built_task(row.visible) else _of_row(row, values, choices)

    found = each_row(stories, of_row, columns=choices.columns)
    return _simpler(found, choices.setting) if choices.setting in (MERGED, BINARY) else found


def _simpler(items: Iterable[Record], setting: str | None) -> Iterator[Record]:
    """The questions about attitudes with fewer options, without those whose answer is the middle
    stance (BINARY), and those left with only one option or, of words of severity alone, an empty
    one (MERGED: `Very`)."""
    for item in items:
        if item.problem is not None:
            yield item
            continue
        fields = item.fields
        options, gold = fields["options"], fields["gold"]
        if setting == MERGED:
            options, gold = [*dict.fromkeys(map(_mild, options))], _mild(gold)
        else:
            options = [option for option in options if not folded(option).startswith(MIDDLE)]
        if gold in options and len(options) > 1 and all(options):
            yield replace(item, fields={**fields, "options": options, "gold": gold})


def _mild(option: str) -> str:
    """The option without words of severity: `not often` for `Not at all often`."""
    return " ".join(_SEVERITY.sub(" ", option).split()).casefold()


@lru_cache(maxsize=1)
def _examples() -> Mapping[str, Any]:
    """The worked example of each task."""
    name = "cqbench_examples.yaml"
    return read_mapping((resources.files("judge.papers") / name).read_text("utf-8"), name).data


def _of_built(row: Record, choices: Choices) -> Iterator[Record]:
    """The items of a row with its own options. Raises LabelError as `questions_of`."""
    task, questions = questions_of(row)
    if not choices.conditions:
        yield from (described_story(row, fields) for fields in questions[:1])
    for fields in questions:
        yield from _asked(row, task, fields.get("item", row.id), fields, choices)


def _asked(
    row: Record, task: str, key: str, fields: Mapping[str, Any], choices: Choices
) -> Iterator[Record]:
    """A question in each of the conditions of its task."""
    for condition in choices.conditions:
        if task_of(condition) == task:
            yield asked(row, condition, {"item": key, **fields}, key=key)


def _of_row(row: Record, value_list: ValueList | None, choices: Choices) -> Iterator[Record]:
    """The items of one story. Raises LabelError for a line without a possible question."""
    story = story_of(row)
    category = category_of(story, value_list)
    setting = "multiple" if story.multiple else "single"
    common: dict[str, Any] = {**own_slices(row, PARTS), "setting": setting}
    common |= {"category": category, "story": story.text}
    if not choices.conditions:
        yield described_story(row, common)

    def put(task: str, key: str, fields: Mapping[str, Any]) -> Iterator[Record]:
        return _asked(row, task, key, {**common, **fields}, choices)

    tasks = set(map(task_of, choices.conditions))
    if value_list is not None and tasks - {"extraction"}:
        gold: list[ValueKey] = []
        against = [key_of(value) for value in story.contradicted]
        for number, value in enumerate(story.values, 1):
            try:
                statement, attitude = value_list.pair(value)
            except LabelError as error:
                yield replace(row, problem=error.problem)
                continue
            gold.append((statement.text, attitude))
            if key_of(value) not in against:
                about = {
                    "topic": statement.topic,
                    **({"character": value.character} if value.character else {}),
                    "statement": statement.text,
                    "options": list(statement.options),
                    "gold": attitude,
                }
                yield from put("attitude", f"{row.id}/{number}", about)
        if "selection" in tasks and not story.multiple and len(gold) == len(story.values):
            try:
                options = selection(value_list, story, gold, f"{choices.seed}/{row.id}")
            except LabelError as error:
                yield replace(row, problem=error.problem)
            else:
                yield from put("selection", row.id, options)
    if not story.multiple:
        all_topics = (value_list and value_list.topics) or TOPICS
        topics = [category] if category in CATEGORIES else all_topics
        values = [value.display for value in story.values]
        yield from put("extraction", row.id, {"topics": list(topics), "gold": values})


async def ask(fields: Fields, model: MeasuredModel) -> str | list[str]:
    """Ask the model about one item, step by step if its condition says so.

    For a speech the answer is the version whose embedding is less like that of its value (appendix
    A.3).
    """
    if fields["condition"] == SPEECH:
        versions = {name: fields[name] for name in VERSIONS}
        by_version = await model.similarities(fields["value"], versions)
        return min(VERSIONS, key=by_version.__getitem__)
    steps = fields["condition"].endswith("+steps")
    texts: dict[str, str] = {"story": fields["story"]}
    task = task_of(fields["condition"])
    if task == "extraction":
        return await _extraction(fields, model, texts)
    if model.setting == ONE_SHOT:
        texts["example"] = _examples()[task]
    options: Sequence[str] = fields["options"]
    option_lines = "\n".join(options)
    if task == "attitude":
        texts["statement"] = fields["statement"]
        if character := fields.get("character"):
            texts["character"] = character
        if steps:
            await _step(model, texts, "related_speech", "cqbench_attitude_speech")
            await _step(
                model, texts, "analysis", "cqbench_attitude_analysis", attitudes=option_lines
            )
        return await model.choose("cqbench_attitude", texts, options)
    texts["count"] = str(len(fields["gold"]))
    if steps:
        inserts = {"candidate_values": option_lines}
        await _step(model, texts, "topics", "cqbench_selection_topics", **inserts)
        await _step(model, texts, "analysis", "cqbench_selection_analysis", **inserts)
    return await model.select("cqbench_selection", texts, options, len(fields["gold"]))


async def _extraction(fields: Fields, model: MeasuredModel, texts: dict[str, str]) -> list[str]:
    summaries: dict[str, str] = {}
    model.steps["summaries"] = summaries
    for topic in fields["topics"]:
        summaries[topic] = await _written(model, "cqbench_summary", {**texts, "topic": topic})
    texts["topics"] = "\n".join(fields["topics"])
    texts["summary"] = "\n\n".join(f"{topic}: {text}" for topic, text in summaries.items())
    entries = await model.list_texts("cqbench_extraction", texts)
    filled = [entry for entry in entries if entry.strip()]
    model.steps |= {"predicted": len(filled), "cut": max(0, len(filled) - MOST_PREDICTED)}
    return filled[:MOST_PREDICTED]


async def _step(
    model: MeasuredModel, texts: dict[str, str], name: str, task: str, **inserts: str
) -> None:
    """Have the model write a text that later tasks show under `name`."""
    model.steps[name] = texts[name] = await _written(model, task, {**texts, **inserts})


async def _written(model: MeasuredModel, task: str, texts: Mapping[str, str]) -> str:
    try:
        return await model.write(task, texts)
    except NoAnswer as no:
        raise NoAnswer(no.outcome, f"step {task}: {no.detail or no.outcome}") from no


def _read(fields: Fields, answer: Any) -> str | list[str]:
    """An attitude in its option's spelling; a list of texts; a version of a speech. Raises
    ValueError for any other answer."""
    if fields["condition"] == SPEECH:
        return label_of(answer, VERSIONS)
    if task_of(fields["condition"]) == "attitude":
        option = option_of(fields["options"], answer) if isinstance(answer, str) else None
        if option is None:
            raise ValueError(f"{clip(answer)} is none of the options")
        return option
    if not isinstance(answer, list) or not all(isinstance(value, str) for value in answer):
        raise ValueError(f"{clip(answer)} is no list of texts")
    return answer


def score(fields: Fields, answer: Any) -> float | None:
    """1 or 0 for an attitude, and for a speech, which is right if the refined one is less like its
    value; F1 for a selection; None for an extraction, which judges credit.

    Case, blanks and repetition do not count.
    """
    task, gold = task_of(fields["condition"]), fields["gold"]
    if task in ("attitude", SPEECH):
        return float(folded(answer) == folded(gold))
    if task == "extraction":
        return None
    answers, right = set(map(folded, answer)), set(map(folded, gold))
    # The harmonic mean of precision and recall.
    return 2 * len(answers & right) / (len(answers) + len(right)) if answers or right else 0.0


_MEANING = (
    "score: accuracy (attitude detection), mean F1 of the items (selection), mean recall of the "
    "stories (extraction). stories: how many the questions with a reply are about. over values: "
    "the mean credit of all values of extractions; the released script has it, without those that "
    "cannot be read."
)


def tables(results: Sequence[MeasuredAnswer]) -> list[Table]:
    """Tables 1 and 6: by setting and by category of the stories. Table 3, of speech."""
    if speech := [result for result in results if result.condition == SPEECH]:
        return [speech_table(speech)]
    condition = ("condition", CONDITIONS)
    whole, by_category = "CQ-Bench by setting (table 1)", "CQ-Bench by category (table 6)"
    by = {"setting": ("setting", ()), "condition": condition}
    by_slice = {"category": ("category", ()), "condition": condition}
    categorised = [result for result in results if result.fields.get("category")]
    return [
        results_table("cqbench", whole, results, by, _cells, (_MEANING,)),
        results_table(
            "cqbench-categories", by_category, categorised, by_slice, _cells, (_MEANING,)
        ),
    ]


def _cells(results: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
    sample = ResultSample(results)
    score = _as_scripts(results) if results[0].setting == PAPER else sample.accuracy()
    cells: dict[str, Cell] = {**sample.counts(), "stories": sample.rows(), "score": score}
    if any("credits" in result.steps for result in results):
        credits = [credit for result in results for credit in _credits(result)]
        settled = [credit for credit in credits if credit is not None]
        mean = fmean(settled) if settled else None
        cells["over values"] = Estimate(mean, n=len(settled), of=len(credits))
    return cells


def _credits(result: MeasuredAnswer) -> Sequence[float | None]:
    """The credit of each gold value of an extraction. Without an answer to credit it is 0, as the
    score is; in the setting of the paper, and without a reply, there is none."""
    lost = result.outcome is AnswerOutcome.ERROR or result.setting == PAPER
    unread = result.outcome is not AnswerOutcome.ANSWERED and not lost
    blank = [0.0 if unread else None] * len(result.fields["gold"])
    credits: Sequence[float | None] = result.steps.get("credits", blank)
    return credits


def _as_scripts(results: Sequence[MeasuredAnswer]) -> Estimate:
    """The score of the released scripts, over answers that can be read; for selections the harmonic
    mean of mean precision and mean recall."""
    read = [result for result in results if result.outcome is AnswerOutcome.ANSWERED]
    sample = ResultSample(read)
    if task_of(results[0].condition) != "selection":
        return replace(sample.accuracy(), of=len(results))
    import numpy as np

    rows = np.zeros((len(read), 2))
    for number, result in enumerate(read):
        answers, right = ({*map(folded, texts)} for texts in (result.answer, result.fields["gold"]))
        hits = len(answers & right)
        rows[number] = hits / max(1, len(answers)), hits / max(1, len(right))
    sizes = sample.resamples.sums(np.ones((len(read), 1)))
    precision, recall = ratio(sample.resamples.sums(rows), sizes).T
    both = precision + recall
    values = np.where(both == 0, 0.0, ratio(2 * precision * recall, both))
    return sample.resamples.estimate(values, n=len(read), of=len(results))


def described(questions: Sequence[MeasuredAnswer], sources: Sequence[str]) -> list[Table]:
    """Table 3 without its similarity, which needs a model: `judge evaluate --setting speech`."""
    if "-" in sources:
        raise UsageError("standard input cannot be read twice, as stories are here: name a file")
    return [speech_table(unanswered(items(sources, Choices((), setting=SPEECH))))]


benchmark = Benchmark(
    name="cqbench",
    title="Values that conversations carry without naming them (CQ-Bench)",
    source="CQ-Bench, sections 2.2 and 3.1, appendices A.1, A.2 and A.3",
    conditions=CONDITIONS,
    tasks=(
        *("cqbench_attitude", "cqbench_attitude_speech", "cqbench_attitude_analysis"),
        *("cqbench_selection", "cqbench_selection_topics", "cqbench_selection_analysis"),
        *("cqbench_summary", "cqbench_extraction"),
    ),
    items=items,
    ask=ask,
    read=_read,
    score=score,
    tables=tables,
    described=described,
    counted_in=(),
    settings={
        PAPER: "scores of the released scripts: what cannot be read is left out; selection has the "
        "harmonic mean of mean precision and mean recall",
        MERGED: "attitudes: options that differ in severity alone are one (table 1); without "
        "questions that are left with one, or with an empty one",
        BINARY: "attitudes: without the middle stance, and without questions it answers (B.1)",
        ONE_SHOT: "attitudes and selection: with a worked example (3.4)",
        SPEECH: "table 3: repaired speech and its value by their embeddings, -m an embedding model",
    },
    without_json=frozenset({SPEECH}),
    credited=lambda fields: task_of(fields["condition"]) == "extraction",
)
