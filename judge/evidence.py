"""Quotes: where they stand in a text, and what is wrong with a reply held against its record."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from judge.names import apart, plain_name

FUZZY_BOUND = 90.0
"""Least rapidfuzz ratio (0 to 100) at which an inexact quote counts as standing in the text."""

FUZZY_LENGTH = 20
"""Quotes shorter than this many characters must stand in the text exactly."""

FUZZY_WORK = 2_000_000_000
"""Most steps that a fuzzy search may take: characters of the text, times those of the quote, times
64-bit words that the quote fills. That is a few tenths of a second; beyond it a quote must stand
in the text exactly."""

SPEECH_MARKS = '"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d\u300e\u300f'
"""The marks that open and close speech."""

_CLOSING = rf"[{SPEECH_MARKS}'\u2019)]*"
SENTENCE_END = re.compile(rf"[.!?\u2026]{_CLOSING}(?=\s|$)|[\u3002\uff01\uff1f]{_CLOSING}")

_FOLDS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u0060\u00b4\u2039\u203a", "'"),
    **dict.fromkeys(SPEECH_MARKS, '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
}

_TABLE = str.maketrans(_FOLDS)

_AROUND = "".join(fold for fold, plain in _FOLDS.items() if plain in "\"'") + "' \t\r\n"
"""Quotation marks and white space that may stand around a quote."""


_SLACK = 20
"""How far, in characters, a fuzzy match's ends may be moved to where words begin and end."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a quote stands: half-open character offsets, and how alike it is (0 to 100)."""

    start: int
    end: int
    score: float


def fold(text: str) -> str:
    """Text with quotes and dashes made alike, and one blank for each stretch of white space."""
    return " ".join(text.translate(_TABLE).split())


def _places(text: str) -> Iterator[int]:
    """The place in `text` of each character of `fold(text)`."""
    begun = spaced = False
    for place, char in enumerate(text):
        if char.isspace():
            spaced = True
            continue
        if spaced and begun:
            yield place - 1
        begun, spaced = True, False
        yield place
        yield from (place for _ in range(len(_FOLDS.get(char, char)) - 1))


# One reply quotes the same story several times, and every vote and check quotes it again.
_folded = lru_cache(maxsize=64)(fold)


def locate(quote: str, text: str) -> Span | None:
    """The first place where `quote` stands in `text`, or None.

    Letter for letter, without quotation marks around it; else exact after folding white space,
    quotes and dashes; else the best fuzzy match, if the quote has at least `FUZZY_LENGTH`
    characters and the match scores at least `FUZZY_BOUND`. A fuzzy match begins and ends with whole
    words.
    """
    bare = quote.strip(_AROUND)
    if bare and (at := text.find(bare)) >= 0:
        return Span(at, at + len(bare), 100.0)
    wanted = fold(quote).strip("\"' ")
    if not wanted:
        return None
    folded = _folded(text)
    at = folded.find(wanted)
    if at >= 0:
        return _unfolded(text, at, at + len(wanted), 100.0)
    work = len(wanted) * len(folded) * (len(wanted) // 64 + 1)
    if len(wanted) < FUZZY_LENGTH or not folded or work > FUZZY_WORK:
        return None
    found = _alike(wanted, folded)
    return None if found is None else _unfolded(text, *found)


def _unfolded(text: str, start: int, end: int, score: float) -> Span:
    """The span of `text` that became `start` to `end` of its folded form."""
    places = islice(_places(text), start, end)
    first = next(places)
    last = deque(places, maxlen=1) or [first]
    return Span(first, last[0] + 1, score)


def _alike(wanted: str, folded: str) -> tuple[int, int, float] | None:
    """(start, end, score) of the stretch of `folded` that is most like `wanted`."""
    from rapidfuzz import fuzz

    if len(wanted) > len(folded):
        # The partial ratio would look for the text in the quote, and find all of a short one there.
        score = fuzz.ratio(wanted, folded, score_cutoff=FUZZY_BOUND)
        return (0, len(folded), score) if score else None
    found = fuzz.partial_ratio_alignment(wanted, folded, score_cutoff=FUZZY_BOUND)
    if found is None:
        return None
    # The match is as long as the quote, so where words were added or left out its ends lie inside
    # words; a rewrite of it would leave torn words behind.
    start, end = found.dest_start, found.dest_end
    starts = [place for place in _word_edges(folded, start) if place < end]
    start = max(starts or [start], key=lambda place: fuzz.ratio(wanted, folded[place:end]))
    ends = [place for place in _word_edges(folded, end) if place > start]
    end = max(ends or [end], key=lambda place: fuzz.ratio(wanted, folded[start:place]))
    return start, end, found.score


def _word_edges(text: str, near: int) -> Iterator[int]:
    """Places near `near` that do not lie inside a word."""
    for place in range(max(0, near - _SLACK), min(len(text), near + _SLACK) + 1):
        if not (text[place - 1 : place].isalnum() and text[place : place + 1].isalnum()):
            yield place


MOST_NAMED = 30
"""Characters whose names a model is told when it names another."""

EVIDENCE_WORDS = 3
"""Least words of a quote that counts as evidence, unless it is the whole field."""


_MARKS = "\"' .,;:!?"
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


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
    """Why a quote is no evidence from the field `where`; None if it is.

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
        names = ", ".join(apart(record.characters[:MOST_NAMED]))
        return f"no character is called {plain_name(name)}; the characters are {names}"
    if wanted and _stands(wanted, record.texts.get("story", "")):
        return None
    return f"the name {plain_name(name)} does not stand in the story"


@lru_cache(maxsize=256)  # Every part of every reply about a story names its speaker.
def _stands(name: str, story: str) -> bool:
    if not (name[0].isupper() or name[0].islower()):
        # Scripts without capitals mostly write without spaces too, so there are no words to match.
        return name in story
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", story, re.IGNORECASE) is not None


def passage_problems(
    quote: str, character: str | None, record: About, least: int = EVIDENCE_WORDS
) -> Iterator[str]:
    """What is wrong with a passage of the story and the character that it is attributed to."""
    if problem := quote_problem(quote, record.texts, "story", least):
        yield problem
    if character is not None and (problem := _character_problem(character, record)):
        yield problem


def new_text_problems(text: str, what: str, record: About) -> Iterator[str]:
    """New text must not be empty, and must not hold the mark that fences the record."""
    if not text.strip():
        yield f"{what} empty"
    elif record.mark and record.mark in text:
        yield f"{what} marked with {record.mark}; that mark belongs to the message, leave it out"


def numbered_problems(parts: Sequence[Any], what: str, record: About) -> Iterator[str]:
    """What is wrong with parts that answer one number each: their count, then each part."""
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
