"""CQ-Bench's stories and value files, and options drawn from the latter (2.1, 2.2, A.1 to A.3)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from judge.errors import UsageError
from judge.graphs.values import Value, is_multiple, values_of
from judge.judgement import Judgement
from judge.papers.rows import REJECTED, asked, head_of, own_slices
from judge.questions.evidence import fold
from judge.records import RESERVED, Record, read, renamed
from judge.records.base import clip, judgement_in, kind_of
from judge.records.fields import LabelError, listed, object_of, text_of
from judge.records.kinds import normalise, normalised
from judge.report.runs import refuse_table
from judge.verdict import Verdict

TOPICS = (
    *("social", "migration", "security", "science and technology"),
    *("religious", "ethical", "political"),
)
"""Topics of the random setting (CQ-Bench, appendix A.2), for extraction without a value file."""

CATEGORIES = frozenset({"social", "religious", "ethical", "political"})
"""The category-specific settings (CQ-Bench, section 2.1)."""

OPTIONS = 15
"""Number of options of a value selection (CQ-Bench, section 2.2)."""

PARTS = (
    *("story", "situation", "setting", "characters", "values", "contradiction"),
    *("original_values", "options", "questions", "item"),
)
"""The fields of a story, and of a row of a built set, that questions are made of."""

_NUMBER = re.compile(r"(?:^|(?<=\s))-?\d+[.):](?!\d)")

ValueKey = tuple[str, str]
"""A statement and an attitude to it."""


def folded(text: str) -> str:
    """A statement or attitude in the form that is compared: without case, spelling of quotes, final
    stop."""
    return fold(text).casefold().rstrip(". ")


def key_of(value: Value) -> ValueKey:
    """A value in the form that is compared: its statement and its attitude, folded."""
    return folded(value.statement), folded(value.attitude or "")


def option_of(options: Sequence[str], text: str) -> str | None:
    """The option that equals a text, both `folded`; None if there is none."""
    return next((option for option in options if folded(option) == folded(text)), None)


def _spelt(fields: Mapping[str, Any], name: str) -> tuple[str, Any]:
    """The record's own spelling of a key, and its content; None if it has no such key."""
    key = next((key for key in fields if normalise(key) == normalise(name)), name)
    return key, fields.get(key)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the World Values Survey and the attitudes to it, in their order and case."""

    text: str
    options: tuple[str, ...]
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class ValueList:
    """A value file: its statements by their folded text, in the order of the file."""

    name: str
    statements: Mapping[str, Statement]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of its statements, each once, in plain spelling."""
        topics = (entry.topic for entry in self.statements.values())
        return tuple(dict.fromkeys(topic for topic in topics if topic))

    def pair(self, value: Value) -> tuple[Statement, str]:
        """A value's statement and attitude as the list spells them; LabelError if it has none."""
        if (entry := self.statements.get(folded(value.statement))) is not None:
            option = option_of(entry.options, value.attitude or "")
            if option is not None:
                return entry, option
        message = f"no question can be made of {value.display!r}: {self.name} has no such statement"
        raise LabelError(f"{message} with such an attitude", "values")


def value_list(name: str, columns: Mapping[str, str] = MappingProxyType({})) -> ValueList:
    """Read a value file (topic, q_id, q_content, option), with `columns` renamed.

    Raises:
        UsageError: a line has no statement, or repeats one with other attitudes; with file and
            line.
    """
    statements: dict[str, Statement] = {}
    for item in renamed(read(name), columns):
        try:
            entry = _statement(item.usable().visible)
            first = statements.setdefault(folded(entry.text), entry)
            if [*map(folded, first.options)] != [*map(folded, entry.options)]:
                message = f"an earlier line has the statement {entry.text!r} with other attitudes"
                raise LabelError(message)
        except LabelError as error:
            raise UsageError(f"{name}, line {item.line}: {error}") from None
    return ValueList(name, statements)


def _statement(fields: Mapping[str, Any]) -> Statement:
    key, option = _spelt(fields, "option")
    options = parse_options(option) if isinstance(option, str) else option
    if not isinstance(options, list) or not options or not all(isinstance(o, str) for o in options):
        raise LabelError(f"field {key!r} must hold attitudes, not {clip(option)}", key)
    text = text_of(fields, _spelt(fields, "q_content")[0]).strip()
    return Statement(text, tuple(options), tidy_topic(_spelt(fields, "topic")[1]))


def parse_options(text: str) -> list[str]:
    """The attitudes in one text, `" 2. agree 3. Disagree "`, without their numbers."""
    return [part.strip() for part in _NUMBER.split(text) if part.strip()]


def tidy_topic(topic: object) -> str | None:
    """`  RELIGIOUS_VALUES` as `religious`; None for a blank text or no text."""
    if not isinstance(topic, str) or not topic.strip():
        return None
    plain = " ".join(topic.replace("_", " ").casefold().split())
    return plain.removesuffix(" values")


@dataclass(frozen=True, slots=True)
class Story:
    """A story with the values that it carries, those that a speaker contradicts, and `absent` ones,
    which it was written for but does not carry.

    `multiple`: each value is one character's (the multiple attitude setting). `judged` is its
    validation, if any.
    """

    text: str
    setting: str | None
    values: tuple[Value, ...]
    contradicted: tuple[Value, ...]
    absent: tuple[Value, ...]
    multiple: bool
    judged: Judgement | None


def story_of(row: Record) -> Story:
    """The story of an output line of `judge validate`, or in CQ-Bench's released form.

    From the former `judge` is read, from the latter `contradiction`, and from both
    `original_values`, mappings or lists of values. Of a record with none of these all values count
    as carried.

    Raises:
        LabelError: the row has no story with values, or its validation rejected its length, found
            none of its values, or did not finish.
    """
    if built_task(row.visible):
        raise LabelError("a question of a built set, no story: name the stories", "story")
    record = row.of_kind("story").usable()
    values, multiple = values_of(record), is_multiple(record)
    keys = set(map(key_of, values))
    original = _values(*_spelt(row.visible, "original_values"), named=multiple)
    absent = [value for value in original if key_of(value) not in keys]
    if (judgement := judgement_of(row)) is None:
        contradictions = _spelt(row.visible, "contradiction")
    else:
        _refuse_rejected(judgement)
        contradictions = (
            RESERVED,
            [speech.value for speech in judgement.contradictions if speech.value is not None],
        )
        lost_values = _missing(judgement)
        absent += _values(RESERVED, list(judgement.dropped), named=multiple)
        absent += [value for value in values if value.text in lost_values]
        values = tuple(value for value in values if value.text not in lost_values)
        if not values:
            raise LabelError("validation found none of its values in it", RESERVED, REJECTED)
    # A value that is listed twice is one value; what was dropped is an original value, too.
    values = _once(values)
    # Characters of the multiple setting differ on purpose: no contradiction is sought there.
    contradicted = () if multiple else tuple(_values(*contradictions))
    text, setting = record.typed["story"], record.typed.get("setting")
    return Story(text, setting, values, contradicted, _once(absent), multiple, judgement)


def _once(values: Iterable[Value]) -> tuple[Value, ...]:
    first: dict[tuple[str | None, ...], Value] = {}
    for value in values:
        first.setdefault((value.character, *key_of(value)), value)
    return tuple(first.values())


def category_of(story: Story, values: ValueList | None) -> str | None:
    """The record's own setting; else that of its value list: one topic, or several at random."""
    topic = tidy_topic(story.setting)
    if topic not in (None, "single"):
        return topic
    if story.multiple:
        return "multiple"
    topics = values.topics if values is not None else ()
    return "random" if len(topics) > 1 else next(iter(topics), None)


def _values(field: str, content: object, *, named: bool = False) -> list[Value]:
    """The values in a list, in the keys of an object, or on the lines of a text."""
    texts = content.splitlines() if isinstance(content, str) else content or ()
    if not isinstance(texts, Mapping | list | tuple):
        message = f"field {field!r} must be an object or a list of values"
        raise LabelError(f"{message}, not {kind_of(content)}", field)
    try:
        return [Value.parse(str(text), named=named) for text in texts if str(text).strip()]
    except ValueError as error:
        raise LabelError(f"field {field!r} {error}", field) from error


def _missing(judgement: Judgement) -> set[str | None]:
    """The values that the last check of incorporation did not find in the story."""
    last = {check.name: check.verdicts() for check in judgement.checks}.get("incorporation", {})
    return {v for v, verdict in last.items() if v and verdict is not Verdict.PASS}


def judgement_of(row: Record) -> Judgement | None:
    """The judgement that `judge validate` wrote of a record, if any.

    Raises:
        LabelError: it cannot be read.
        UsageError: the row is of a table of verdicts.
    """
    refuse_table(row)
    if (content := judgement_in(row.visible)) is None:
        return None
    try:
        return Judgement.model_validate(content)
    except ValidationError:
        raise LabelError("field 'judge' holds no judgement", RESERVED) from None


def _refuse_rejected(judgement: Judgement) -> None:
    if judgement.verdict in (Verdict.ERROR, Verdict.UNREADABLE):
        message = f"its validation ended as {judgement.verdict}: validate it again"
        raise LabelError(message, RESERVED)
    for check in judgement.checks:
        if check.name == "length" and check.verdict is Verdict.FAIL:
            message = f"validation rejected it for its length ({check.reason})"
            raise LabelError(message, RESERVED, REJECTED)


def built_task(fields: Mapping[str, Any]) -> str | None:
    """The task of a row of a built set: `attitude` (it has `questions`) or `selection` (it has
    `options`); None for a story."""
    names = normalised(fields)
    if {"story", "questions"} <= names:
        return "attitude"
    return "selection" if {"story", "options", "values"} <= names else None


def questions_of(row: Record) -> tuple[str, list[dict[str, Any]]]:
    """The task of a row of a built set, and the fields of its questions, options unchanged.

    Raises:
        LabelError: a question lacks a field, or its gold answer is not one of its options.
    """
    story = text_of(row.visible, _spelt(row.visible, "story")[0])
    category = tidy_topic(_spelt(row.visible, "setting")[1])
    columns = own_slices(row, PARTS)
    if built_task(row.visible) == "selection":
        options = _texts(row.visible, "options")
        gold = [_option(options, entry, "values") for entry in _texts(row.visible, "values")]
        common = {**columns, "setting": "single", "category": category, "story": story}
        return "selection", [{**common, "options": options, "gold": gold}]
    key, questions = _spelt(row.visible, "questions")
    fields = []
    for place, entry in enumerate(listed(questions, key), 1):
        question = object_of(entry, key)
        character, options = _spelt(question, "name")[1], _texts(question, "options")
        fields.append(
            {
                **columns,
                "item": f"{row.id}/{question.get('number', place)}",
                "setting": "multiple" if character else "single",
                "category": "multiple" if character else category,
                "story": story,
                **({"character": character} if character else {}),
                "statement": text_of(question, _spelt(question, "value")[0]),
                "options": options,
                "gold": _option(options, text_of(question, _spelt(question, "gold label")[0]), key),
            }
        )
    return "attitude", fields


def described_story(row: Record, fields: Mapping[str, Any]) -> Record:
    """A story, or a row of a built set, which is counted and not asked about."""
    of_question = ("item", "character", "statement", "options", "gold")
    about = {name: content for name, content in fields.items() if name not in of_question}
    return asked(row, "story", about)


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:
    """The field's list of different texts. Raises LabelError."""
    key, content = _spelt(fields, name)
    texts = listed(content, key)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise LabelError(f"field {key!r} must be a list of texts", key)
    if len({*map(folded, texts)}) < len(texts):
        raise LabelError(f"field {key!r} holds a text twice", key)
    return texts


def _option(options: Sequence[str], gold: str, key: str) -> str:
    """The option that equals a gold answer. Raises LabelError."""
    if (option := option_of(options, gold)) is None:
        raise LabelError(f"field {key!r}: {clip(gold)} is none of the options", key)
    return option


def values_and_stories(
    sources: Sequence[str], *, needed: bool = True, with_questions: bool = False
) -> tuple[ValueList | None, list[str]]:
    """The value file among the sources, and the others.

    A source whose first record has `q_content` and `option` is the value file; `-` has stories.
    With `with_questions` sources whose first record has its own options need no value file.

    Raises:
        UsageError: a source cannot be read, there are several value files, none although `needed`,
            or no stories.
    """
    lists, question_files = [], []
    # The first record of standard input cannot be read ahead: it has stories.
    for source in (source for source in sources if source != "-"):
        head = head_of(source)
        if {"qcontent", "option"} <= normalised(head):
            lists.append(source)
        elif with_questions and built_task(head):
            question_files.append(source)
    stories = [source for source in sources if source not in lists]
    if not stories:
        raise UsageError("the sources are value files only: name stories, too")
    if len(lists) > 1:
        raise UsageError(f"{', '.join(lists)}: name one value file, and the stories made of it")
    if not lists and needed and len(question_files) < len(stories):
        piped = " (built ones have them, but not through a pipe)" if "-" in stories else ""
        raise UsageError(
            "questions about stories need the attitudes that each statement has: name a value "
            f"file (topic, q_id, q_content, option) among the sources{piped}"
        )
    return value_list(lists[0]) if lists else None, stories


def selection(
    value_list: ValueList, story: Story, gold: Sequence[ValueKey], seed: str
) -> dict[str, list[str]]:
    """`OPTIONS` values in random order, the gold ones among them; and the gold ones.

    The others are drawn from the value file without repetition: no gold value (CQ-Bench, section
    2.2), none that is absent from the story (as in the released script), and no attitude to a
    statement that a speaker contradicts (appendix A.3).

    Raises:
        LabelError: the file has too few pairs.
    """
    gold = list(dict.fromkeys(gold))
    barred = {(folded(statement), folded(attitude)) for statement, attitude in gold}
    barred |= set(map(key_of, story.absent))
    against = {folded(value.statement) for value in story.contradicted}
    free = [
        (statement.text, option)
        for key, statement in value_list.statements.items()
        for option in statement.options
        if key not in against and (key, folded(option)) not in barred
    ]
    number = OPTIONS - len(gold)
    if not 0 <= number <= len(free):
        pairs = f"{len(free)} other statement-attitude pairs"
        message = f"it has {len(gold)} values, and {value_list.name} leaves {pairs}"
        raise LabelError(f"no selection of {OPTIONS} options can be made: {message}", "values")
    rng = random.Random(seed)
    options = ["--".join(pair) for pair in (*gold, *rng.sample(free, number))]
    rng.shuffle(options)
    return {"options": options, "gold": ["--".join(pair) for pair in gold]}
