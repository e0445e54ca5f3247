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
_WORD = re.compile(rf"[^\w\s]*(?!\W)[{UNSPACED}][^\w\s]*|[^\s{UNSPACED}]+|[^\w\s]+")
"""Of scripts without spaces, every letter with the marks and signs beside it."""


def passages(text: str) -> tuple[str, ...]:
    """The text's paragraphs, as they stand in it; short ones joined, long ones cut; none if it is
    blank."""
    made: list[tuple[int, int]] = []
    for start, end in _pieces(text):
        joined = (
            made and min(word_count(text, *made[-1]), word_count(text, start, end)) < LEAST_WORDS
        )
        if joined and word_count(text, made[-1][0], end) <= MOST_WORDS:
            made[-1] = (made[-1][0], end)
        else:
            made.append((start, end))
    return tuple(text[start:end].strip() for start, end in made)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends, a long one in parts of whole sentences."""
    for line in _LINE.finditer(text):
        begun = line.start()
        if word_count(text, *line.span()) > MOST_WORDS:
            for sentence in SENTENCE_END.finditer(text, *line.span()):
                if word_count(text, begun, sentence.end()) > MOST_WORDS // 2:
                    yield begun, sentence.end()
                    begun = sentence.end()
        if text[begun : line.end()].strip():
            yield begun, line.end()


def word_count(text: str, start: int = 0, end: int | None = None) -> int:
    """How many words stand between blanks; of a script without spaces (Chinese, Japanese, Thai,
    Lao, Khmer, Burmese) each letter is one."""
    return sum(1 for _ in _WORD.finditer(text, start, len(text) if end is None else end))
