"""From value files, released questions and stories (cqbench_stories) to CQ-Bench's items."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from judge.errors import UsageError
from judge.evaluation.benchmark import Choices
from judge.evaluation.cqbench_stories import (
    Story,
    attitude_questions,
    is_attitude,
    is_selection,
    selection,
    story_of,
)
from judge.evaluation.cqbench_tables import task_of
from judge.evaluation.cqbench_values import (
    Pair,
    ValueList,
    distractors,
    folded,
    is_neutral,
    list_of,
    shown,
    tidy_topic,
    value_list,
)
from judge.evaluation.rows import Row, asked, each_row, read_sources
from judge.records import Item, Problem, read
from judge.records.fields import LabelError, refused
from judge.records.kinds import normalised

TOPICS = (
    *("social", "migration", "security", "science and technology"),
    *("religious", "ethical", "political"),
)
"""Topics of the random setting (CQ-Bench, appendix A.2), for extraction without a value file."""

CATEGORIES = frozenset({"social", "religious", "ethical", "political"})
"""The category-specific settings (CQ-Bench, section 2.1)."""


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """The items of CQ-Bench, story by story.

    A source is known by its first record: a value file (`q_content`, `option`), or lines that are
    each a validated story (output of `judge validate`), a released story, or released questions.
    Stories need a value file for attitudes and options; of several, each story takes the one that
    knows its statements. Questions that are already made are asked as they are. In the multiple
    setting there is attitude detection alone (section 3.1). A line or value that no question can
    be made of is an item with its problem.

    Raises:
        UsageError: a source that cannot be read, stories whose chosen conditions need a value file
            and there is none, no story or question at all.
    """
    lists: list[ValueList] = []
    rows: list[str] = []
    for source in sources:
        head = next((item for item in read(source) if item.fields is not None), None)
        if head is not None and {"qcontent", "option"} <= normalised(head.fields or {}):
            lists.append(value_list(source, read(source)))
        else:
            rows.append(source)
    if not rows:
        raise UsageError("the sources are value files only: name stories or questions, too")
    maker = _Maker(lists, choices)
    return each_row(read_sources(rows), maker.line)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the items of each line."""

    lists: Sequence[ValueList]
    choices: Choices

    def line(self, row: Row) -> Iterator[Item]:
        """The items of one line. Raises LabelError for a line that no question can be made of."""
        setting = tidy_topic(row.fields.get("setting")) or tidy_topic(row.fields.get("category"))
        if is_attitude(row.fields):
            for number, question in enumerate(attitude_questions(row.fields), 1):
                fields = {"category": setting, **question}
                yield from self._attitude(row, f"{row.id}/{number}", fields)
        elif is_selection(row.fields):
            fields = {"category": setting, **selection(row.fields)}
            for condition in self._of("selection"):
                yield self._put(row, row.id, fields, condition)
        else:
            yield from self._story(row, story_of(row))

    def _story(self, row: Row, story: Story) -> Iterator[Item]:
        known = list_of(self.lists, [value.statement for value in story.original])
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
            yield from self._by_list(row, story, shared, known, selecting)
        if story.multiple:
            return
        topics: Sequence[str] = (known.topics if known else ()) or TOPICS
        extracting = {
            **shared,
            "topics": [category] if category in CATEGORIES else list(topics),
            "gold": [value.display for value in story.values],
        }
        for condition in self._of("extraction"):
            yield self._put(row, row.id, extracting, condition)

    def _by_list(
        self,
        row: Row,
        story: Story,
        shared: Mapping[str, Any],
        known: ValueList,
        selecting: Sequence[str],
    ) -> Iterator[Item]:
        """The questions that take the attitudes of a value list: detection, and selection."""
        gold: list[Pair] = []
        for number, value in enumerate(story.values, 1):
            pair = known.pair(value)
            if pair is None:
                message = (
                    f"no question can be made of {value.display!r}: {known.name} has no such "
                    "statement with such an attitude"
                )
                yield refused(row.item, Problem(message, "values"))
                continue
            gold.append(pair)
            if not story.is_contradicted(value):
                fields = {
                    **shared,
                    "topic": known.topic(pair[0]),
                    **({"character": value.character} if value.character else {}),
                    "statement": pair[0],
                    "options": known.statements[folded(pair[0])].options,
                    "gold": pair[1],
                }
                yield from self._attitude(row, f"{row.id}/{number}", fields)
        if len(gold) < len(story.values):
            return
        try:
            options = self._selection(row, story, gold, known) if selecting else {}
        except LabelError as error:
            yield refused(row.item, error.problem)
            return
        for condition in selecting:
            yield self._put(row, row.id, {**shared, **options}, condition)

    def _attitude(self, row: Row, key: str, fields: Mapping[str, Any]) -> Iterator[Item]:
        options, gold = fields["options"], fields["gold"]
        sided = [option for option in options if not is_neutral(option)]
        for condition in self._of("attitude"):
            if ":binary" not in condition:
                yield self._put(row, key, fields, condition)
            elif 1 < len(sided) < len(options) and not is_neutral(gold):
                yield self._put(row, key, {**fields, "options": sided}, condition)

    def _selection(
        self, row: Row, story: Story, pairs: Sequence[Pair], known: ValueList
    ) -> dict[str, Any]:
        gold = list(dict.fromkeys(pairs))
        rng = random.Random(f"{self.choices.seed}/{row.id}")
        others = distractors(known, gold, rng, story.contradicted)
        options = [shown(pair) for pair in chain(gold, others)]
        rng.shuffle(options)
        return {"options": options, "gold": [shown(pair) for pair in gold]}

    def _put(self, row: Row, key: str, fields: Mapping[str, Any], condition: str) -> Item:
        return asked(row.item, condition, {"item": key, **fields}, row=row.id, key=key)

    def _of(self, task: str) -> list[str]:
        return [name for name in self.choices.conditions if task_of(name) == task]


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
