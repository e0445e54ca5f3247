"""Passages: a text cut into pieces short enough for a small model to read well."""

from __future__ import annotations

import re
from collections.abc import Iterator

from judge.evidence import SENTENCE_END, UNSPACED

LEAST_WORDS = 25
"""A paragraph of fewer words goes with the one before it, the first with the one after it."""

MOST_WORDS = 90
"""A paragraph of more words is cut at the ends of its sentences."""

_LINE = re.compile(r"[^\n]*\S[^\n]*")
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
"""Of scripts without spaces, every letter."""


def passages(text: str) -> tuple[str, ...]:
    """The text's paragraphs, as they stand in it; short ones joined, long ones cut; none if it is
    blank."""
    made: list[tuple[int, int]] = []
    for start, end in _pieces(text):
        joined = made and min(_words(text, *made[-1]), _words(text, start, end)) < LEAST_WORDS
        if joined and _words(text, made[-1][0], end) <= MOST_WORDS:
            made[-1] = (made[-1][0], end)
        else:
            made.append((start, end))
    return tuple(text[start:end].strip() for start, end in made)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends, a long one in parts of whole sentences."""
    for line in _LINE.finditer(text):
        begun = line.start()
        if _words(text, *line.span()) > MOST_WORDS:
            for sentence in SENTENCE_END.finditer(text, *line.span()):
                if _words(text, begun, sentence.end()) > MOST_WORDS // 2:
                    yield begun, sentence.end()
                    begun = sentence.end()
        if text[begun : line.end()].strip():
            yield begun, line.end()


def _words(text: str, start: int, end: int) -> int:
    return sum(1 for _ in _WORD.finditer(text, start, end))
