"""What is wrong with a reply, held against the record: quotes, names, numbers, new text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from judge.evidence import fold, locate

EVIDENCE_WORDS = 3
"""Least words of a quote that counts as evidence, unless it is the whole field."""


_MARKS = "\"' .,;:!?"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


@dataclass(frozen=True, slots=True)
class About:
    """What a reply is held against.

    `texts` are the record's fields by name; `numbers` the values asked about (from 1);
    `characters` the names known to act in the story (empty: any name that stands in it);
    `evidence` names the field that a `yes` must quote, with the answers that need a quote;
    `passages` is how many numbered passages a rewriter was given, `predicted` how many predicted
    values a judge was shown; `mark` is the fence around the record in prompts, which new text must
    not hold ("": none).
    """

    texts: Mapping[str, str]
    numbers: tuple[int, ...] = ()
    characters: tuple[str, ...] = ()
    evidence: tuple[str, frozenset[str]] | None = None
    passages: int = 0
    predicted: int = 0
    mark: str = ""


def quote_problem(
    quote: str, texts: Mapping[str, str], where: str, least: int = EVIDENCE_WORDS
) -> str | None:
    """Why a quote is no evidence from the field `where`, or None.

    It stands in the field and has at least `least` words (of a script without spaces: letters), or
    is the whole field.
    """
    text, place = texts.get(where, ""), where.replace("_", " ")
    if (found := locate(quote, text)) is None:
        return f"the quote {quote[:120]!r} does not stand in the {place}; copy the words exactly"
    if sum(1 for _ in islice(_WORD.finditer(quote), least)) == least:
        return None
    if fold(text[found.start : found.end]).strip(_MARKS) == fold(text).strip(_MARKS):
        return None
    return f"the quote {quote!r} is too short; quote at least {least} words of the {place}"


def _character_problem(name: str, record: About) -> str | None:
    wanted = name.strip()
    if record.characters:
        if wanted.casefold() in (known.casefold() for known in record.characters):
            return None
        return f"no character is called {name!r}; the characters are {', '.join(record.characters)}"
    if wanted and _stands(wanted, record.texts.get("story", "")):
        return None
    return f"the name {name!r} does not stand in the story"


@lru_cache(maxsize=256)  # Every part of every reply about a story names its speaker.
def _stands(name: str, story: str) -> bool:
    if not (name[0].isupper() or name[0].islower()):
        # Scripts without capitals mostly write without spaces too, so there are no words to match.
        return name in story
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", story, re.IGNORECASE) is not None


def passage_problems(
    quote: str, character: str | None, record: About, least: int = EVIDENCE_WORDS
) -> Iterator[str]:
    """What is wrong with words of the story and whoever is said to have said or done them."""
    if problem := quote_problem(quote, record.texts, "story", least):
        yield problem
    if character is not None and (problem := _character_problem(character, record)):
        yield problem


def new_text_problems(text: str, what: str, record: About) -> Iterator[str]:
    """New text must say something, and must not hold the mark that keeps the record data."""
    if not text.strip():
        yield f"{what} empty"
    elif record.mark and record.mark in text:
        yield f"{what} marked with {record.mark}; that mark belongs to the message, leave it out"


def numbered_problems(parts: Sequence[Any], what: str, record: About) -> Iterator[str]:
    """What is wrong with parts that each answer to one number: their count, then each part."""
    wanted = record.numbers if what == "value" else range(1, record.passages + 1)
    counts = Counter(getattr(part, what) for part in parts)
    for number in sorted(counts):
        if number not in wanted:
            yield f"{what} {number} was not asked about"
        elif counts[number] > 1:
            yield f"{what} {number} is answered more than once"
    missing = [number for number in wanted if number not in counts]
    if missing:
        yield f"{what} {', '.join(map(str, missing))} is not answered"
    for part in parts:
        yield from (f"{what} {getattr(part, what)}: {told}" for told in part.problems(record))
