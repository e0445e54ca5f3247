"""From stories, released questions and value files to CQ-Bench's items."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.evaluation.benchmark import Choices
from judge.evaluation.cqbench_conditions import CONDITIONS, Condition
from judge.evaluation.cqbench_distractors import (
    Pair,
    Rule,
    ShortPoolError,
    ValueList,
    distractors,
    list_of,
    tidy_topic,
    value_list,
)
from judge.evaluation.cqbench_options import folded, is_neutral, without_neutral
from judge.evaluation.cqbench_released import (
    attitude_questions,
    is_attitude,
    is_selection,
    selection,
)
from judge.evaluation.cqbench_stories import Story, story_of
from judge.records import Item, Problem, Value, read
from judge.records.fields import LabelError, RecordNames, refused
from judge.records.names import normalised

TOPICS = (
    "social",
    "migration",
    "security",
    "science and technology",
    "religious",
    "ethical",
    "political",
)
"""Topics of the random setting (CQ-Bench, appendix A.2), for extraction without a value file."""

CATEGORIES = frozenset({"social", "religious", "ethical", "political"})
"""The category-specific settings (CQ-Bench, section 2.1)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question before it is put in its conditions: its fields, by what it is known."""

    key: str
    fields: dict[str, Any]


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """The items of CQ-Bench, story by story.

    A source is known by its first record: a value file (`q_content`, `option`), or lines that are
    each a validated story (output of `judge validate`), a released story, or released questions.
    Stories need a value file for attitudes and options; of several, each story takes the one that
    knows its statements. Questions that are already made are asked as they are, selections in the
    conditions `selection` and `selection+steps` only. In the multiple setting there is attitude
    detection alone (section 3.1). A line or value that no question can be made of is an item with
    its problem.

    Raises:
        UsageError: a source that cannot be read, stories whose chosen conditions need a value file
            and there is none, no story or question at all.
    """
    lists, rows = _opened(sources)
    if not rows:
        raise UsageError("the sources are value files only: name stories or questions, too")
    return _items(lists, rows, choices)


def _items(
    lists: Sequence[ValueList], rows: Sequence[tuple[str, Iterator[Item]]], choices: Choices
) -> Iterator[Item]:
    builder = Builder(lists, choices)
    with RecordNames() as names:
        for source, lines in rows:
            for item in lines:
                yield from builder.line(item, names, source)


def _opened(
    sources: Sequence[str],
) -> tuple[list[ValueList], list[tuple[str, Iterator[Item]]]]:
    """The value files, read; and the others, each with the name that its rows go by."""
    lists: list[ValueList] = []
    rows: list[tuple[str, Iterator[Item]]] = []
    times = Counter(Path(source).name for source in sources)
    for source in sources:
        lines = iter(read(source))
        head: list[Item] = []
        for item in lines:
            head.append(item)
            if item.fields is not None:
                break
        content = chain(head, lines)
        if head and {"qcontent", "option"} <= normalised(head[-1].fields or {}):
            lists.append(value_list(source, content))
        else:
            rows.append((source if times[Path(source).name] > 1 else "", content))
    return lists, rows


class Builder:
    """Makes the items of one line after another."""

    def __init__(self, lists: Sequence[ValueList], choices: Choices) -> None:
        self._lists = lists
        self._choices = choices
        self._conditions = [CONDITIONS[name] for name in choices.conditions]

    def line(self, item: Item, names: RecordNames, source: str) -> Iterator[Item]:
        """The items of one line, or the line with its problem."""
        if item.problem is not None or item.fields is None:
            yield item
            return
        try:
            row = names.name(item, item.fields.get("id"), source=source)
            if is_attitude(item.fields):
                found = self._given_attitudes(item, row)
            elif is_selection(item.fields):
                found = self._given_selection(item, row)
            else:
                found = self._story(item, row, story_of(item))
            yield from found
        except LabelError as error:
            yield refused(item, error.problem)

    def _given_attitudes(self, item: Item, row: str) -> Iterator[Item]:
        category = _word(item, "setting") or _word(item, "category")
        for number, question in enumerate(attitude_questions(item), 1):
            fields = {"category": category, **question}
            yield from self._attitude(item, row, Asked(f"{row}/{number}", fields))

    def _given_selection(self, item: Item, row: str) -> Iterator[Item]:
        category = _word(item, "setting") or _word(item, "category")
        asked = Asked(row, {"category": category, **selection(item)})
        for condition in self._of("selection"):
            if condition.rule == "paper":
                yield self._put(item, row, asked, condition)

    def _story(self, item: Item, row: str, story: Story) -> Iterator[Item]:
        known = list_of(self._lists, [value.statement for value in story.original])
        category = _category(story, known)
        setting = "multiple" if story.multiple else "single"
        shared = {"setting": setting, "category": category, "story": story.text}
        selecting = [] if story.multiple else self._of("selection")
        if self._of("attitude") or selecting:
            if known is None:
                raise UsageError(
                    "questions about stories need the attitudes that each statement has: name a "
                    "value file (topic, q_id, q_content, option) among the sources"
                )
            yield from self._by_list(item, row, story, shared, known, selecting)
        if not story.multiple:
            extracting = Asked(row, {**shared, **_extraction_fields(story, category, known)})
            for condition in self._of("extraction"):
                yield self._put(item, row, extracting, condition)

    def _by_list(
        self,
        item: Item,
        row: str,
        story: Story,
        shared: dict[str, Any],
        known: ValueList,
        selecting: Sequence[Condition],
    ) -> Iterator[Item]:
        """What takes the attitudes of a value list: detection, and selection."""
        gold: list[Pair] = []
        for number, value in enumerate(story.values, 1):
            pair = known.pair(value)
            if pair is None:
                yield refused(item, _unknown(value, known))
                continue
            gold.append(pair)
            if not story.is_contradicted(value):
                fields = {**shared, **_attitude_fields(value, pair, known)}
                yield from self._attitude(item, row, Asked(f"{row}/{number}", fields))
        if len(gold) == len(story.values):
            for rule in dict.fromkeys(condition.rule for condition in selecting):
                yield from self._selection(item, row, shared, story, gold, known, rule)

    def _attitude(self, item: Item, row: str, asked: Asked) -> Iterator[Item]:
        for condition in self._of("attitude"):
            if not condition.binary:
                yield self._put(item, row, asked, condition)
                continue
            options, gold = asked.fields["options"], asked.fields["gold"]
            left = without_neutral(options)
            if len(left) < len(options) and len(left) > 1 and not is_neutral(gold):
                binary = Asked(asked.key, {**asked.fields, "options": left})
                yield self._put(item, row, binary, condition)

    def _selection(
        self,
        item: Item,
        row: str,
        shared: dict[str, Any],
        story: Story,
        pairs: Sequence[Pair],
        known: ValueList,
        rule: Rule,
    ) -> Iterator[Item]:
        """The selection of one story with the options of one rule, in the conditions of it."""
        gold = list(dict.fromkeys(pairs))
        rng = random.Random(f"{self._choices.seed}/{row}")
        try:
            others = distractors(
                known,
                gold,
                rule,
                rng,
                original=story.original,
                contradicted=story.contradicted,
            )
        except ShortPoolError as error:
            yield refused(item, Problem(f"no selection can be made of it: {error}", "values"))
            return
        options = [_shown(pair) for pair in (*gold, *others)]
        rng.shuffle(options)
        fields = {**shared, "options": options, "gold": [_shown(pair) for pair in gold]}
        for condition in self._of("selection"):
            if condition.rule == rule:
                yield self._put(item, row, Asked(row, fields), condition)

    def _put(self, item: Item, row: str, asked: Asked, condition: Condition) -> Item:
        id = f"{asked.key}/{condition.name}"
        head = {"id": id, "condition": condition.name, "row": row, "item": asked.key}
        return Item(item.source, item.line, {**head, **asked.fields})

    def _of(self, task: str) -> list[Condition]:
        return [condition for condition in self._conditions if condition.task == task]


def _attitude_fields(value: Value, pair: Pair, known: ValueList) -> dict[str, Any]:
    statement, gold = pair
    return {
        "topic": known.topic(statement),
        **({"character": value.character} if value.character else {}),
        "statement": statement,
        "options": known.statements[folded(statement)].options,
        "gold": gold,
    }


def _extraction_fields(
    story: Story, category: str | None, known: ValueList | None
) -> dict[str, Any]:
    if category in CATEGORIES:
        topics: Sequence[str] = (category,) if category else ()
    else:
        topics = (known.topics if known else ()) or TOPICS
    return {
        "topics": list(topics),
        "gold": [value.display for value in story.values],
        "gold_topics": [known.topic(value.statement) if known else None for value in story.values],
    }


def _category(story: Story, known: ValueList | None) -> str | None:
    """The record's own setting; else that of its value list: one topic, or several at random."""
    own = tidy_topic(story.setting)
    if own not in (None, "single"):
        return own
    if story.multiple:
        return "multiple"
    if known is None or not known.topics:
        return None
    return known.topics[0] if len(known.topics) == 1 else "random"


def _unknown(value: Value, known: ValueList) -> Problem:
    return Problem(
        f"no question can be made of {value.display!r}: {known.name} has no such statement with "
        "such an attitude",
        "values",
    )


def _shown(pair: Pair) -> str:
    return f"{pair[0]}--{pair[1]}"


def _word(item: Item, field: str) -> str | None:
    content = (item.fields or {}).get(field)
    return tidy_topic(content) if isinstance(content, str) else None
