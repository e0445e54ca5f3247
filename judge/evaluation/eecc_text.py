"""Texts as words, for the measures of EECC.

The paper takes NLTK's `word_tokenize` of lower-cased text, which needs a model that must be
downloaded. Here words are found by one pattern after its rules: punctuation marks are words of
their own, clitics ('s, n't, 'll) are split off, hyphens and marks inside a word are kept.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(
    r"""
    n't\b | '(?:s|re|ve|ll|d|m)\b                # a clitic, after what it is split from
    | (?:(?!n't\b)\w)+                            # a word, up to n't
      (?:(?!'(?:s|re|ve|ll|d|m)\b)(?:[-.,'/]|(?<=\d):(?=\d))(?!n't\b)\w(?:(?!n't\b)\w)*)*
    | \.{2,} | -{2,} | [^\w\s]
    """,
    re.VERBOSE,
)
_FOLDED = str.maketrans({"’": "'", "‘": "'"})


def words_of(text: str) -> list[str]:
    """The lower-cased text's words and punctuation marks, in order."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower().translate(_FOLDED))


def telling(words: list[str]) -> list[str]:
    """The words that can stand in a list of words: two characters or more, one of them a letter."""
    return [word for word in words if len(word) > 1 and any(map(str.isalpha, word))]
