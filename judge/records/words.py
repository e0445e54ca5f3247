"""The words of a text, for counts and to recognise copies.

In scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each letter is a word.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from unicodedata import category, normalize

UNSPACED = (
    "\u0e00-\u0e3e\u0e40-\u0e4f\u0e5a-\u0ecf\u0eda-\u0eff\u1000-\u103f\u104a-\u108f\u109a-\u109f"
    "\u1780-\u17da\u17dc-\u17df\u17ea-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U0003ffff"
)
"""The letters of scripts without spaces, for a class of a regular expression. Their digits and
currencies are not among them, because a number is one word in every script."""

MIN_WORDS = 3
"""A field with fewer words is an id, a date, a name or a class. If a record also has a text, such
fields do not distinguish it from others."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
# A letter of a script without spaces has the marks and signs beside it; in half width, katakana
# have two that Unicode classes as letters.
_BETWEEN_SPACES = re.compile(
    rf"[^\w\s]*(?!\W)[{UNSPACED}](?:[^\w\s]|[\uff9e\uff9f])*|[^\s{UNSPACED}]+|[^\w\s]+"
)


def counted_words(text: str) -> list[str]:
    """The words that `word_count` counts."""
    return _BETWEEN_SPACES.findall(text)


def word_count(text: str, start: int = 0, end: int | None = None) -> int:
    """The number of words between spaces; in scripts without spaces, of letters."""
    whole = len(text) if end is None else end
    return sum(1 for _ in _BETWEEN_SPACES.finditer(text, start, whole))


def counts_letters(text: str) -> bool:
    """Whether letters of a script without spaces are among the words that `word_count` counts."""
    return _UNSPACED.search(text) is not None


def caseless(text: str) -> str:
    """The text without case. Turkish has an i with a dot and one without, in both cases; here all
    four are one letter, as in other languages."""
    return text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def spelt_in(text: str, part: str) -> str:
    """A part of the composed text (NFC), as the text itself spells it."""
    composed = normalize("NFC", text)
    if text == composed:
        return part

    def place(count: int) -> int:
        """Where so many characters of the composed text end."""
        ends = range(len(text) + 1)
        before = bisect_right(ends, count, key=lambda end: len(normalize("NFC", text[:end])))
        return before - 1

    start = composed.find(part)
    return text[place(start) : place(start + len(part))]


_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
UNSEEN = {0x200B: " ", **dict.fromkeys((0xAD, *_DIRECTIONS, *range(0x2060, 0x2065), 0xFEFF))}
"""What invisible characters are to words: one separates two, the others are nothing."""

_JOINERS = {0x200C: None, 0x200D: None}
"""Invisible too, but inside of words of Persian, Hindi and others they change a letter's form."""


_VISIBLE = re.compile(rf"[^\s\0-\x1f\x7f-\x9f{''.join(map(chr, [*UNSEEN, *_JOINERS]))}]")


def is_blank(text: str) -> bool:
    """Whether a text has only spaces, control characters and invisible ones."""
    return _VISIBLE.search(text) is None


def words_of(text: str) -> list[str]:
    """The words of a text, without case, punctuation and spaces; the text itself if it has none."""
    folded = normalize("NFKC", text.translate(UNSEEN | _JOINERS)).casefold()
    return find_words(folded, rf"[^\W{UNSPACED}]") or [folded.strip()]


def find_words(text: str, letter: str, least: int = 1) -> list[str]:
    """The words of the text with `least` letters and marks or more, by the expression of a letter;
    of scripts without spaces, every letter with its marks.

    `\\w` does not match marks, such as the vowels of Hindi and Arabic.
    """
    marked = not text.isascii() and marks().search(text) is not None
    return _words(letter, least, marked=marked).findall(text)


@cache
def _words(letter: str, least: int, *, marked: bool) -> re.Pattern[str]:
    """Matches a word; without marks the pattern takes less time."""
    mark = marks().pattern if marked else ""
    after, either = (f"{mark}*", f"(?:{letter}|{mark})") if marked else ("", letter)
    return re.compile(rf"[{UNSPACED}]{after}|{letter}{either}{{{least - 1},}}")


@cache
def marks() -> re.Pattern[str]:
    """Matches a mark on a letter."""
    signs = map(chr, range(0x300, 0x10000))  # With those beyond, `re` would search the whole list.
    return re.compile(f"[{''.join(s for s in signs if category(s)[0] == 'M')}]")


def telling_texts(fields: Mapping[str, object]) -> list[str]:
    """The words of each field with at least MIN_WORDS; all fields if none has.

    Records for which this is equal are copies of one another.
    """
    texts = [words_of(json.dumps(content, ensure_ascii=False)) for content in fields.values()]
    return [" ".join(words) for words in texts if len(words) >= MIN_WORDS] or [*map(str, texts)]
