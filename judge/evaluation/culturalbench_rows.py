"""CulturalBench's questions, read from either of its two released forms, and Hard made from Easy.

Easy: one row a question with four options. Hard: one row an option, true or false. Chiu et al.,
"CulturalBench", section 3.3, says how one is made from the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judge.records import Item, read
from judge.records.fields import LabelError, id_text, one_of, refused, text_of
from judge.records.names import normalise
from judge.records.values import clip

Mode = Literal["single", "multi"]

LETTERS = ("A", "B", "C", "D")
"""The options of a question, by the letters that they have in the released file."""

_EASY = tuple(f"prompt_option_{letter.lower()}" for letter in LETTERS)
_BY_LETTER = {letter.casefold(): letter for letter in LETTERS}
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "1"), "true"),
    **dict.fromkeys(("false", "no", "0"), "false"),
}
_NUMERALS = ("i", "ii", "iii", "iv")
_NUMERAL = re.compile(r"\(?(i{1,3}|iv)\)?")
_STATEMENTS = re.compile(
    r"^(?P<before>.*?)\n\s*\(i\)(?P<i>.*?)\n\s*\(ii\)(?P<ii>.*?)\n\s*\(iii\)(?P<iii>.*?)"
    r"\n\s*\(iv\)(?P<iv>.*)$",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Easy:
    """One question with its four options as released; `gold` is the letter of the right one."""

    question: str
    options: tuple[str, ...]
    gold: str

    @property
    def right(self) -> str:
        """The right option's text."""
        return self.options[LETTERS.index(self.gold)]


@dataclass(frozen=True, slots=True)
class Hard:
    """One question and its four answers, each true or false."""

    question: str
    options: tuple[str, ...]
    truths: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the set; `easy` is None where only Hard rows of it were read.

    `mode` is `multi` where several answers are right. `country` and `topic` are the file's own; the
    released files have no topic.
    """

    row: str
    item: Item
    mode: Mode
    hard: Hard
    easy: Easy | None = None
    country: str | None = None
    topic: str | None = None


@dataclass(slots=True)
class _HardRows:
    """The Hard rows of one question."""

    first: Item
    question: str
    about: tuple[str | None, str | None]
    options: list[tuple[str, bool]] = field(default_factory=list)


def questions(sources: Sequence[str]) -> Iterator[Question | Item]:
    """Every question of the sources, those of Easy rows first; rows with a problem come before.

    A question of which both Easy and Hard rows were read has its Hard form from the Hard rows, and
    else from its Easy row (`hard_of`). Its name is its `question_idx`, else `SOURCE#LINE`. All
    questions are held in memory.

    Raises:
        UsageError: a source cannot be read at all.
    """
    easy: dict[str, Question] = {}
    hard: dict[str, _HardRows] = {}
    for source in sources:
        for item in read(source):
            if item.problem is not None or item.fields is None:
                yield item
                continue
            try:
                if "prompt_option" in item.fields:
                    _take_hard(hard, item, item.fields)
                else:
                    _take_easy(easy, item, item.fields)
            except LabelError as error:
                yield refused(item, error.problem)
    released: dict[str, Question] = {}
    for row, rows in hard.items():
        try:
            released[row] = _released_hard(row, rows)
        except LabelError as error:
            yield refused(rows.first, error.problem)
    for row, question in easy.items():
        other = released.pop(row, None)
        yield replace(question, hard=other.hard) if other else question
    yield from released.values()


def hard_of(easy: Easy) -> Hard:
    """The Hard form of an Easy question: four answers, each true or false (section 3.3).

    Of a single-mode question they are its options, the right one true. A multi-mode question lists
    the four answers as statements (i) to (iv) and its options are combinations of them: the answers
    are the statements, those that the right option names true, and the question is what stands
    before the statements and the line that introduces them.

    Raises:
        LabelError: statements without options that name them, or such options without statements.
    """
    found = _STATEMENTS.match(easy.question)
    named = [_numerals(option) for option in easy.options]
    if found is None and any(numbers is not None and len(numbers) > 1 for numbers in named):
        raise LabelError(
            "options name statements that the question does not list", "prompt_question"
        )
    if found is None:
        return Hard(easy.question, easy.options, tuple(name == easy.gold for name in LETTERS))
    for key, option, numbers in zip(_EASY, easy.options, named, strict=True):
        if numbers is None:
            message = f"field {key!r} must name statements (as i, iii), not {clip(option)}"
            raise LabelError(message, key)
    true = named[LETTERS.index(easy.gold)] or frozenset()
    return Hard(
        _before_statements(found["before"]),
        tuple(found[numeral].strip() for numeral in _NUMERALS),
        tuple(numeral in true for numeral in _NUMERALS),
    )


def mode_of(easy: Easy) -> Mode:
    """`multi` where the question lists statements and its options name them (section 3.3)."""
    return "multi" if _STATEMENTS.match(easy.question) else "single"


def _take_easy(easy: dict[str, Question], item: Item, row: dict[str, Any]) -> None:
    name = _row_name(item, row)
    if name in easy:
        first = easy[name].item
        message = f"question {clip(name)} was already on line {first.line} of {first.source}"
        raise LabelError(message, "question_idx", "duplicate-id")
    asked = Easy(
        text_of(row, "prompt_question"),
        tuple(text_of(row, key) for key in _EASY),
        one_of(row.get("answer"), _BY_LETTER, "answer"),
    )
    country, topic = _about(row)
    easy[name] = Question(name, item, mode_of(asked), hard_of(asked), asked, country, topic)


def _take_hard(hard: dict[str, _HardRows], item: Item, row: dict[str, Any]) -> None:
    name = _row_name(item, row)
    question = text_of(row, "prompt_question")
    answer = (text_of(row, "prompt_option"), one_of(row.get("answer"), _TRUTHS, "answer") == "true")
    rows = hard.setdefault(name, _HardRows(item, question, _about(row)))
    if rows.question != question:
        message = (
            f"question {clip(name)} reads otherwise on line {rows.first.line} of "
            f"{rows.first.source}"
        )
        raise LabelError(message, "prompt_question")
    rows.options.append(answer)


def _released_hard(name: str, rows: _HardRows) -> Question:
    options = tuple(option for option, _ in rows.options)
    truths = tuple(truth for _, truth in rows.options)
    if len(options) != len(LETTERS):
        message = f"question {clip(name)} has {len(options)} rows, one for each option makes 4"
        raise LabelError(message, "question_idx")
    if not any(truths):
        raise LabelError(f"question {clip(name)} has no option that is true", "answer")
    country, topic = rows.about
    mode: Mode = "multi" if sum(truths) > 1 else "single"
    return Question(
        name, rows.first, mode, Hard(rows.question, options, truths), None, country, topic
    )


def _row_name(item: Item, row: Mapping[str, Any]) -> str:
    return id_text(row.get("question_idx"), "question_idx") or f"{item.source}#{item.line}"


def _about(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The row's country and topic, None where there is none."""
    found = {normalise(key): content for key, content in row.items()}
    country, topic = (
        content.strip() if isinstance(content := found.get(name), str) else ""
        for name in ("country", "topic")
    )
    return country or None, topic or None


def _numerals(option: str) -> frozenset[str] | None:
    """The statements that an option names (`i, iii`), None where it is anything else."""
    parts = [part.strip() for part in option.strip().rstrip(".").split(",")]
    found = [_NUMERAL.fullmatch(part) for part in parts]
    return None if None in found else frozenset(one[1] for one in found if one is not None)


def _before_statements(text: str) -> str:
    """The question without the line on that it says what to do with the statements."""
    lines = text.split("\n")
    for number, line in enumerate(lines[1:], 1):
        if "statements" in line.casefold():
            return "\n".join(lines[:number]).strip()
    return text.strip()
