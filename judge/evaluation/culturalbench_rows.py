"""CulturalBench's questions, read from either of its two released forms, and Hard made from Easy.

Easy: one row a question with four options. Hard: one row an option, true or false. Chiu et al.,
"CulturalBench", section 3.3, says how one is made from the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from judge.evaluation.rows import Row, each_row, read_sources
from judge.records import Item
from judge.records.fields import LabelError, one_of, refused, text_of
from judge.records.kinds import normalise
from judge.records.values import clip

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
    mode: Literal["single", "multi"]
    hard: Hard
    easy: Easy | None
    country: str | None
    topic: str | None


def questions(sources: Sequence[str]) -> Iterator[Question | Item]:
    """Every question of the sources, those of Easy rows first; rows with a problem come before.

    A question of which both Easy and Hard rows were read has its Hard form from the Hard rows, and
    else from its Easy row (`hard_of`). Its name is its `question_idx`, else `SOURCE#LINE`. All
    questions are held in memory.

    Raises:
        UsageError: a source cannot be read at all.
    """
    easy: dict[str, Question] = {}
    hard: dict[str, list[Item]] = {}
    single: list[Item] = []
    for item in read_sources(sources):
        if "prompt_option" in (item.fields or {}):
            # All four Hard rows of a question have its id: they are no rows of their own.
            index = (item.fields or {}).get("question_idx") or f"{item.source}#{item.line}"
            hard.setdefault(str(index), []).append(item)
        else:
            single.append(item)
    for found in each_row(single, lambda row: [_easy(row)], "question_idx"):
        if isinstance(found, Item):
            yield found
        else:
            easy[found.row] = found
    released: dict[str, Question] = {}
    for row, items in hard.items():
        try:
            released[row] = _released(row, items)
        except LabelError as error:
            yield refused(items[0], error.problem)
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
    if found is None:
        if any(numbers is not None and len(numbers) > 1 for numbers in named):
            message = "options name statements that the question does not list"
            raise LabelError(message, "prompt_question")
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


def _easy(row: Row) -> Question:
    fields = row.fields
    easy = Easy(
        text_of(fields, "prompt_question"),
        tuple(text_of(fields, key) for key in _EASY),
        one_of(fields.get("answer"), _BY_LETTER, "answer"),
    )
    multi = _STATEMENTS.match(easy.question) is not None
    about = _text(fields, "country"), _text(fields, "topic")
    return Question(row.id, row.item, "multi" if multi else "single", hard_of(easy), easy, *about)


def _released(row: str, items: Sequence[Item]) -> Question:
    """The question of Hard rows, one for each of its four options."""
    fields = [item.fields or {} for item in items]
    texts = [text_of(one, "prompt_question") for one in fields]
    options = tuple(text_of(one, "prompt_option") for one in fields)
    truths = tuple(one_of(one.get("answer"), _TRUTHS, "answer") == "true" for one in fields)
    name = f"question {clip(row)}"
    for item, text in zip(items, texts, strict=True):
        if text != texts[0]:
            message = f"{name} reads otherwise on line {item.line} of {item.source}"
            raise LabelError(message, "prompt_question")
    if len(items) != len(LETTERS):
        message = f"{name} has {len(items)} rows, one for each option makes 4"
        raise LabelError(message, "question_idx")
    if not any(truths):
        raise LabelError(f"{name} has no option that is true", "answer")
    mode: Literal["single", "multi"] = "multi" if sum(truths) > 1 else "single"
    about = _text(fields[0], "country"), _text(fields[0], "topic")
    return Question(row, items[0], mode, Hard(texts[0], options, truths), None, *about)


def _text(fields: dict[str, object], name: str) -> str | None:
    content = next((text for key, text in fields.items() if normalise(key) == name), None)
    return (content.strip() or None) if isinstance(content, str) else None


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
