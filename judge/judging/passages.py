"""Passages: a text cut into pieces short enough for a small model to read well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from judge.questions.evidence import SENTENCE_END
from judge.records.words import word_count

MIN_WORDS = 25
"""A paragraph of fewer words is joined to the one before it, the first to the one after it."""

MAX_WORDS = 90
"""A paragraph of more words is cut at the ends of its sentences."""

_LINE = re.compile(r"[^\n]+")


@lru_cache(maxsize=16)  # Every entry, question and vote about a text cuts the same text.
def passages(text: str) -> tuple[str, ...]:
    """The text's paragraphs, verbatim; short ones joined, long ones cut; empty if it is blank."""
    pieces: list[tuple[int, int, int]] = []
    for start, end, words in _pieces(text):
        begun, _, before = pieces[-1] if pieces else (start, 0, MAX_WORDS)
        if min(before, words) < MIN_WORDS and before + words <= MAX_WORDS:
            pieces[-1] = (begun, end, before + words)
        else:
            pieces.append((start, end, words))
    return tuple(text[start:end].strip() for start, end, _ in pieces)


def _pieces(text: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and word count of each line, a long one in parts of whole sentences."""
    for line in _LINE.finditer(text):
        begun, words, remaining = line.start(), 0, word_count(text, *line.span())
        if remaining > MAX_WORDS:
            position = begun
            for sentence in SENTENCE_END.finditer(text, *line.span()):
                words += word_count(text, position, sentence.end())
                position = sentence.end()
                if words > MAX_WORDS // 2:
                    yield begun, position, words
                    begun, remaining, words = position, remaining - words, 0
        if text[begun : line.end()].strip():
            yield begun, line.end(), remaining
