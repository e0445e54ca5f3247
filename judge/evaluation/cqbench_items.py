"""From value files and stories to CQ-Bench's items (sections 2.1, 2.2, A.1 to A.3)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from judge.errors import UsageError
from judge.evaluation.benchmark import Choices
from judge.evaluation.rows import Row, asked, each_row
from judge.evidence import fold
from judge.records import RESERVED, BadValueError, Item, Problem, Value, build, read
from judge.records.base import clip, kind_of
from judge.records.fields import LabelError, refused, text_of
from judge.records.kinds import normalise, normalised
from judge.stats.text import distinct_share
from judge.verdict import Judgement, Verdict

CONDITIONS = (
    *("attitude", "attitude+steps", "selection", "selection+steps"),
    "extraction+steps",
)
"""`+steps`: the model first summarises, then analyses (section 3.1)."""

OPTIONS = 15
"""How many options a value selection has (CQ-Bench, section 2.2)."""

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

_NUMBER = re.compile(r"(?:^|(?<=\s))-?\d+[.):](?!\d)")

Pair = tuple[str, str]
"""A statement and an attitude to it."""


def task_of(condition: str) -> str:
    """`attitude`, `selection` or `extraction`."""
    return condition.split("+")[0]


def folded(text: str) -> str:
    """A statement or attitude as it is compared: without case, spelling of quotes, final stop."""
    return fold(text).casefold().rstrip(". ")


# ------------------------------------------------------------ value files


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
        named = (known.topic for known in self.statements.values())
        return tuple(dict.fromkeys(topic for topic in named if topic))

    def pair(self, value: Value) -> Pair | None:
        """The pair in the list's own spelling; None where it has no such statement or attitude."""
        known = self.statements.get(folded(value.statement))
        if known is None or value.attitude is None:
            return None
        wanted = folded(value.attitude)
        spelt = next((option for option in known.options if folded(option) == wanted), None)
        return None if spelt is None else (known.text, spelt)


def value_list(name: str, items: Iterable[Item]) -> ValueList:
    """Read a value file (topic, q_id, q_content, option).

    Raises:
        UsageError: a line that holds no statement, or a statement that stands twice with different
            attitudes; with file and line.
    """
    statements: dict[str, Statement] = {}
    for item in items:
        try:
            found = _statement(item)
        except LabelError as error:
            raise UsageError(f"{name}, line {item.line}: {error}") from None
        first = statements.setdefault(folded(found.text), found)
        if [folded(o) for o in first.options] != [folded(o) for o in found.options]:
            raise UsageError(
                f"{name}, line {item.line}: the statement {found.text!r} stood there before with "
                "other attitudes"
            )
    return ValueList(name, statements)


def _statement(item: Item) -> Statement:
    if item.fields is None:
        raise LabelError(item.problem.message if item.problem else "there is no record")
    key, option = _spelt(item.fields, "option")
    options = parse_options(option) if isinstance(option, str) else option
    if not isinstance(options, list) or not options or not all(isinstance(o, str) for o in options):
        raise LabelError(f"field {key!r} must hold attitudes, not {clip(option)}", key)
    text = text_of(item.fields, _spelt(item.fields, "q_content")[0]).strip()
    return Statement(text, tuple(options), tidy_topic(_spelt(item.fields, "topic")[1]))


def parse_options(text: str) -> list[str]:
    """The attitudes in one text, `" 2. agree 3. Disagree "`, without their numbers."""
    return [part.strip() for part in _NUMBER.split(text) if part.strip()]


def tidy_topic(topic: object) -> str | None:
    """`  RELIGIOUS_VALUES` as `religious`; None for what is no text or blank."""
    if not isinstance(topic, str) or not topic.strip():
        return None
    plain = " ".join(topic.replace("_", " ").casefold().split())
    return plain.removesuffix(" values")


def selection(
    pool: ValueList, pairs: Sequence[Pair], rng: random.Random, contradicted: Sequence[Value] = ()
) -> dict[str, list[str]]:
    """`OPTIONS` values in random order with the gold ones among them, and the gold ones.

    The others are drawn from the pool without repetition: never a gold value (CQ-Bench, section
    2.2), and no attitude to a statement that a speaker in the story contradicts (appendix A.3).

    Raises:
        LabelError: the pool has too few pairs; how many there are.
    """
    gold = list(dict.fromkeys(pairs))
    barred = {(folded(statement), folded(attitude)) for statement, attitude in gold}
    against = {folded(value.statement) for value in contradicted}
    free = [
        (known.text, option)
        for key, known in pool.statements.items()
        for option in known.options
        if key not in against and (key, folded(option)) not in barred
    ]
    needed = OPTIONS - len(gold)
    if not 0 <= needed <= len(free):
        others = f"{len(free)} other statement-attitude pairs"
        message = f"it has {len(gold)} values, and {pool.name} leaves {others}"
        raise LabelError(f"no selection of {OPTIONS} options can be made: {message}", "values")
    options = ["--".join(pair) for pair in (*gold, *rng.sample(free, needed))]
    rng.shuffle(options)
    return {"options": options, "gold": ["--".join(pair) for pair in gold]}


# ------------------------------------------------------------ stories


@dataclass(frozen=True, slots=True)
class Story:
    """A story with the values that it carries, and those that a speaker in it contradicts.

    `multiple`: each value is one character's (CQ-Bench's multiple attitude setting). `rewritten` is
    what `REWRITTEN` measures of each explicit speech, before and after it was rewritten.
    """

    text: str
    setting: str | None
    values: tuple[Value, ...]
    contradicted: tuple[Value, ...]
    multiple: bool
    rewritten: Mapping[str, Sequence[Sequence[float | None]]]


def story_of(row: Row) -> Story:
    """The story of an output line of `judge validate`, or in CQ-Bench's released form.

    Of the first, `contradictions` under `judge` are read; of the second `contradiction`, a mapping
    or list of values. A record with neither is taken as it stands.

    Raises:
        LabelError: it holds no story with values, or its validation rejected it for its length or
            did not come to an end.
    """
    record = build(row.item, "story")
    if isinstance(record, Problem):
        raise LabelError(record.message, record.field, record.type)
    field, against = _spelt(row.fields, "contradiction")
    if RESERVED in row.fields:
        field, against = RESERVED, _contradicted(row.fields[RESERVED])
    if against and not isinstance(against, Mapping | list):
        message = f"field {field!r} must be an object or a list of values"
        raise LabelError(f"{message}, not {kind_of(against)}", field)
    try:
        contradicted = tuple(Value.parse(str(text)) for text in against or ())
    except BadValueError as error:
        raise LabelError(f"field {field!r} {error}", field) from error
    values = tuple(record.typed["values"])
    # Characters of the multiple setting differ on purpose: no contradiction is sought there.
    multiple = any(value.character is not None for value in values)
    kept = () if multiple else contradicted
    rewritten = _rewritten(row.fields.get(RESERVED))
    setting = record.typed.get("setting")
    return Story(record.typed["story"], setting, values, kept, multiple, rewritten)


def _rewritten(judged: object) -> dict[str, list[list[float | None]]]:
    """Of each speech that was rewritten as it was too explicit: the measures before and after."""
    if not isinstance(judged, dict):
        return {}
    edits = Judgement.model_validate(judged).edits
    speeches = [(edit.before, edit.after) for edit in edits if edit.check == "implicitness"]
    return {
        name: [[measure(text.split()) for text in sides] for sides in speeches]
        for name, measure in REWRITTEN.items()
        if speeches
    }


def _contradicted(judged: object) -> list[str]:
    """The values that a validation found contradicted."""
    try:
        judgement = Judgement.model_validate(judged)
    except ValidationError:
        raise LabelError("field 'judge' holds no judgement", RESERVED) from None
    if judgement.verdict in (Verdict.ERROR, Verdict.UNREADABLE):
        told = f"its validation ended as {judgement.verdict}: validate it again"
        raise LabelError(told, RESERVED)
    for check in judgement.checks:
        if check.name == "length" and check.verdict is Verdict.FAIL:
            message = f"validation rejected it for its length ({check.reason})"
            raise LabelError(message, RESERVED, "rejected")
    return [finding.value for finding in judgement.contradictions if finding.value is not None]


def _key(value: Value) -> Pair:
    return folded(value.statement), folded(value.attitude or "")


def _spelt(fields: Mapping[str, Any], name: str) -> tuple[str, Any]:
    """The record's own spelling of a key, and what stands there; None where nothing does."""
    key = next((key for key in fields if normalise(key) == normalise(name)), name)
    return key, fields.get(key)


# ------------------------------------------------------------ items


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """The items of CQ-Bench, story by story.

    A source is known by its first record: the value file (`q_content`, `option`), or lines that are
    each a story, as `judge validate` wrote it or as released. Attitudes and options need the value
    file. In the multiple setting there is attitude detection alone (section 3.1). A line or value
    that no question can be made of is an item with its problem.

    Raises:
        UsageError: a source that cannot be read, several value files, stories whose chosen
            conditions need one and there is none, no story at all.
    """
    lists: list[str] = []
    rows: list[str] = []
    for source in sources:
        head = next((item.fields for item in read(source) if item.fields is not None), {})
        (lists if {"qcontent", "option"} <= normalised(head) else rows).append(source)
    if not rows:
        raise UsageError("the sources are value files only: name stories, too")
    if len(lists) > 1:
        raise UsageError(f"{', '.join(lists)}: name one value file, and the stories made of it")
    known = value_list(lists[0], read(lists[0])) if lists else None
    if known is None and {"attitude", "selection"} & set(map(task_of, choices.conditions)):
        raise UsageError(
            "questions about stories need the attitudes that each statement has: name a value "
            "file (topic, q_id, q_content, option) among the sources"
        )
    return each_row(rows, lambda row: _of_row(row, known, choices))


def _of_row(row: Row, known: ValueList | None, choices: Choices) -> Iterator[Item]:
    """The items of one story. Raises LabelError for a line that no question can be made of."""
    story = story_of(row)
    category = _category(story, known)
    setting = "multiple" if story.multiple else "single"
    wanted = set(map(task_of, choices.conditions))
    shared: dict[str, Any] = {"setting": setting, "category": category, "story": story.text}
    if story.rewritten:
        shared["rewritten"] = story.rewritten

    def put(task: str, key: str, fields: Mapping[str, Any]) -> Iterator[Item]:
        for condition in choices.conditions:
            if task_of(condition) == task:
                about = {"item": key, **shared, **fields}
                yield asked(row.item, condition, about, row=row.id, key=key)

    if known is not None and wanted != {"extraction"}:
        gold: list[Pair] = []
        against = [_key(value) for value in story.contradicted]
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
            if _key(value) not in against:
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
                options = selection(known, gold, rng, story.contradicted)
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
