"""From value files and stories to CQ-Bench's items (sections 2.1, 2.2, A.1 to A.3)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from judge.errors import UsageError
from judge.evaluation.benchmark import Choices
from judge.evaluation.cqbench_values import (
    Pair,
    ValueList,
    folded,
    key_of,
    selection,
    spelt,
    tidy_topic,
    value_list,
)
from judge.evaluation.rows import Row, asked, each_row
from judge.records import RESERVED, Item, Problem, Value, build, read, renamed
from judge.records.base import kind_of
from judge.records.fields import LabelError, refused
from judge.records.kinds import normalised
from judge.stats.text import distinct_share
from judge.verdict import Judgement, Verdict

CONDITIONS = (
    *("attitude", "attitude+steps", "selection", "selection+steps"),
    "extraction+steps",
)
"""`+steps`: the model first summarises, then analyses (section 3.1)."""

TOPICS = (
    *("social", "migration", "security", "science and technology"),
    *("religious", "ethical", "political"),
)
"""Topics of the random setting (CQ-Bench, appendix A.2), for extraction without a value file."""

CATEGORIES = frozenset({"social", "religious", "ethical", "political"})
"""The category-specific settings (CQ-Bench, section 2.1)."""

REWRITTEN: Mapping[str, Callable[[Sequence[str]], float | None]] = {
    "word count": lambda words: float(len(words)),
    **{f"distinct-{n}": partial(distinct_share, n=n) for n in (3, 4, 5)},
}
"""What table 3 measures of the words of an explicit speech; its similarity takes a model."""


def task_of(condition: str) -> str:
    """`attitude`, `selection` or `extraction`."""
    return condition.split("+")[0]


# ------------------------------------------------------------ stories


@dataclass(frozen=True, slots=True)
class Story:
    """A story with the values that it carries, and those that a speaker in it contradicts.

    `absent` are values that it was written for and does not carry. `multiple`: each value is one
    character's (CQ-Bench's multiple attitude setting). `judged` is its validation, None without.
    """

    text: str
    setting: str | None
    values: tuple[Value, ...]
    contradicted: tuple[Value, ...]
    absent: tuple[Value, ...]
    multiple: bool
    judged: Judgement | None


def story_of(row: Row) -> Story:
    """The story of an output line of `judge validate`, or in CQ-Bench's released form.

    Of the first, what `judge` says is read; of the second `contradiction` and `original_values`,
    mappings or lists of values. A record with none of them is taken as it stands.

    Raises:
        LabelError: it holds no story with values, or its validation rejected it for its length,
            found none of its values, or did not come to an end.
    """
    record = build(row.item, "story")
    if isinstance(record, Problem):
        raise LabelError(record.message, record.field, record.type)
    values = tuple(record.typed["values"])
    multiple = any(value.character is not None for value in values)
    if (judged := judgement_of(row.fields)) is None:
        told, of = spelt(row.fields, "contradiction"), spelt(row.fields, "original_values")
        own = set(map(key_of, values))
        absent = [one for one in _values(*of, named=multiple) if key_of(one) not in own]
    else:
        _refuse_rejected(judged)
        told = RESERVED, [one.value for one in judged.contradictions if one.value is not None]
        missing = _missing(judged)
        absent = _values(RESERVED, list(judged.dropped), named=multiple)
        absent += [value for value in values if value.text in missing]
        values = tuple(value for value in values if value.text not in missing)
        if not values:
            raise LabelError("validation found none of its values in it", RESERVED, "rejected")
    # Characters of the multiple setting differ on purpose: no contradiction is sought there.
    contradicted = () if multiple else tuple(_values(*told))
    text, setting = record.typed["story"], record.typed.get("setting")
    return Story(text, setting, values, contradicted, tuple(absent), multiple, judged)


def _values(field: str, found: object, *, named: bool = False) -> list[Value]:
    """The values of a list, of the keys of an object, or on the lines of a text."""
    texts = found.splitlines() if isinstance(found, str) else found or ()
    if not isinstance(texts, Mapping | list | tuple):
        message = f"field {field!r} must be an object or a list of values"
        raise LabelError(f"{message}, not {kind_of(found)}", field)
    try:
        return [Value.parse(str(text), named=named) for text in texts if str(text).strip()]
    except ValueError as error:
        raise LabelError(f"field {field!r} {error}", field) from error


def _missing(judged: Judgement) -> set[str | None]:
    """The values that the last check of incorporation did not find in the story."""
    last = {check.name: check.verdicts() for check in judged.checks}.get("incorporation", {})
    return {v for v, verdict in last.items() if v and verdict is not Verdict.PASS}


def rewritten(story: Story) -> dict[str, list[list[float | None]]]:
    """Of each speech that was rewritten as it was too explicit: the measures before and after."""
    edits = story.judged.edits if story.judged is not None else ()
    speeches = [(edit.before, edit.after) for edit in edits if edit.check == "implicitness"]
    return {
        name: [[measure(text.split()) for text in sides] for sides in speeches]
        for name, measure in REWRITTEN.items()
        if speeches
    }


def judgement_of(fields: Mapping[str, Any]) -> Judgement | None:
    """What `judge validate` wrote of a record; LabelError where it cannot be read."""
    if RESERVED not in fields:
        return None
    try:
        return Judgement.model_validate(fields[RESERVED])
    except ValidationError:
        raise LabelError("field 'judge' holds no judgement", RESERVED) from None


def _refuse_rejected(judged: Judgement) -> None:
    if judged.verdict in (Verdict.ERROR, Verdict.UNREADABLE):
        told = f"its validation ended as {judged.verdict}: validate it again"
        raise LabelError(told, RESERVED)
    for check in judged.checks:
        if check.name == "length" and check.verdict is Verdict.FAIL:
            message = f"validation rejected it for its length ({check.reason})"
            raise LabelError(message, RESERVED, "rejected")


# ------------------------------------------------------------ items


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """The items of CQ-Bench, story by story.

    Attitudes and options need the value file. In the multiple setting there is attitude detection
    alone (section 3.1). A line or value that no question can be made of is an item with its
    problem.

    Raises:
        UsageError: see `values_and_stories`.
    """
    needed = {"attitude", "selection"} & set(map(task_of, choices.conditions))
    known, rows, columns = values_and_stories(sources, choices.columns, needed=bool(needed))
    return each_row(rows, lambda row: _of_row(row, known, choices), columns=columns)


def values_and_stories(
    sources: Sequence[str],
    columns: Mapping[str, str] = MappingProxyType({}),
    *,
    needed: bool = True,
) -> tuple[ValueList | None, list[str], Mapping[str, str]]:
    """The value file among the sources, the others, and those `columns` that are not the former's.

    A source is known by its first record: the value file (`q_content`, `option`), or lines that are
    each a story, as `judge validate` wrote it or as released.

    Raises:
        UsageError: a source that cannot be read, several value files, none where it is `needed`, no
            story at all.
    """
    if "-" in sources:
        raise UsageError("standard input cannot be read twice, as stories are here: name a file")
    lists: list[str] = []
    rows: list[str] = []
    own: dict[str, str] = {}
    for source in sources:
        head = next((item.fields for item in read(source) if item.fields is not None), {})
        here = {name: column for name, column in columns.items() if column in head}
        if {"qcontent", "option"} <= normalised([*head, *here]):
            lists.append(source)
            own = here
        else:
            rows.append(source)
    if not rows:
        raise UsageError("the sources are value files only: name stories, too")
    if len(lists) > 1:
        raise UsageError(f"{', '.join(lists)}: name one value file, and the stories made of it")
    if not lists and needed:
        raise UsageError(
            "questions about stories need the attitudes that each statement has: name a value "
            "file (topic, q_id, q_content, option) among the sources"
        )
    known = value_list(lists[0], renamed(read(lists[0]), own)) if lists else None
    return known, rows, {name: c for name, c in columns.items() if name not in own}


def _of_row(row: Row, known: ValueList | None, choices: Choices) -> Iterator[Item]:
    """The items of one story. Raises LabelError for a line that no question can be made of."""
    story = story_of(row)
    category = _category(story, known)
    setting = "multiple" if story.multiple else "single"
    wanted = set(map(task_of, choices.conditions))
    shared: dict[str, Any] = {"setting": setting, "category": category, "story": story.text}
    if measures := rewritten(story):
        shared["rewritten"] = measures

    def put(task: str, key: str, fields: Mapping[str, Any]) -> Iterator[Item]:
        for condition in choices.conditions:
            if task_of(condition) == task:
                about = {"item": key, **shared, **fields}
                yield asked(row.item, condition, about, row=row.id, key=key)

    if known is not None and wanted != {"extraction"}:
        gold: list[Pair] = []
        against = [key_of(value) for value in story.contradicted]
        for number, value in enumerate(story.values, 1):
            try:
                pair = known.pair(value)
            except LabelError as error:
                yield refused(row.item, error.problem)
                continue
            gold.append(pair)
            if key_of(value) not in against:
                statement = known.statements[folded(pair[0])]
                about = {
                    "topic": statement.topic,
                    **({"character": value.character} if value.character else {}),
                    "statement": statement.text,
                    "options": list(statement.options),
                    "gold": pair[1],
                }
                yield from put("attitude", f"{row.id}/{number}", about)
        if "selection" in wanted and not story.multiple and len(gold) == len(story.values):
            rng = random.Random(f"{choices.seed}/{row.id}")
            try:
                options = selection(known, gold, rng, story.contradicted, story.absent)
            except LabelError as error:
                yield refused(row.item, error.problem)
            else:
                yield from put("selection", row.id, options)
    if not story.multiple:
        topics = [category] if category in CATEGORIES else (known and known.topics) or TOPICS
        values = [value.display for value in story.values]
        yield from put("extraction", row.id, {"topics": list(topics), "gold": values})


def _category(story: Story, known: ValueList | None) -> str | None:
    """The record's own setting; else that of its value list: one topic, or several at random."""
    own = tidy_topic(story.setting)
    if own not in (None, "single"):
        return own
    if story.multiple:
        return "multiple"
    topics = known.topics if known is not None else ()
    return "random" if len(topics) > 1 else next(iter(topics), None)
