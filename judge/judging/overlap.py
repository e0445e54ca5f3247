"""Word overlap: how much of a statement one sentence of a text repeats, counted without a model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from unicodedata import normalize

from judge.questions.evidence import SENTENCE_END, SPEECH_MARKS
from judge.records.words import UNSPACED, find_words

_LETTER = rf"[^\W\d_{UNSPACED}]"
_LEAST = 3
"""Fewest letters of a word that is compared."""

_PREFIX = 5
"""Words are compared by this many first letters, so that *allow* equals *allowed*."""

_AROUND = f"{SPEECH_MARKS} "


def overlap(statement: str, text: str) -> tuple[float, str]:
    """The largest share (between 0 and 1) of the statement's words that one sentence of the text
    has, and the first such sentence, without speech marks around it.

    Half a word is added to the shared ones and one to all, so that log-odds are finite.
    """
    wanted = _words(statement)
    shared, found = 0, ""
    for sentence, words in _cut(text):
        if (count := len(wanted & words)) > shared:
            shared, found = count, sentence
    return (shared + 0.5) / (len(wanted) + 1), found


def _words(text: str) -> set[str]:
    folded = normalize("NFC", text).casefold()
    return {word[:_PREFIX] for word in find_words(folded, _LETTER, _LEAST)}


@lru_cache(maxsize=16)  # Every value of a record is compared with the same text.
def _cut(text: str) -> tuple[tuple[str, set[str]], ...]:
    return tuple((sentence, _words(sentence)) for sentence in _sentences(text))


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        begun = 0
        for end in SENTENCE_END.finditer(line):
            yield line[begun : end.end()].strip(_AROUND)
            begun = end.end()
        yield line[begun:].strip(_AROUND)
