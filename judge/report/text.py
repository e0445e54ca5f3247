"""Record text on a page: what cannot be seen is shown, quotes are marked, rewrites are compared.

Nothing in here trusts a text: whatever is put out is escaped, and what could reorder or hide what
stands around it (control characters, directional marks, unpaired surrogates) is named instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

from markupsafe import Markup, escape

Tone = Literal["for", "against"]
"""Whether a quote is evidence for what was wanted, or against it."""

MOST_WORDS = 1_500
"""Words on either side up to which two texts are compared: the time grows with their product."""

LEAST_ALIKE = 0.35
"""Ratio (0 to 1, difflib's) below which a text counts as replaced, not as edited."""

LIMIT = 20_000
"""Characters of any text that a page shows."""

_UNSEEN = re.compile(
    # Controls but tab and newline; fillers, joiners, directional marks and other code points that
    # Unicode calls ignorable; tags; unpaired surrogates; code points that are no characters.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # A joiner (or its opposite) is seen by what it does between letters of most scripts and in
    # emoji; beside ASCII, or at an end, it does nothing.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_WORDS = re.compile(
    # Scripts without blanks are compared by character.
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
    r"|\w+|\s+|[^\w\s]"
)


def plain(text: str) -> str:
    """The text with each character that cannot be seen as `U+200B`."""
    return _UNSEEN.sub(lambda found: _named(found[0]), text)


def visible(content: object) -> Markup:
    """The content escaped, each character that cannot be seen as an element of its own.

    What is markup already stays as it is; a text is cut at `LIMIT`.
    """
    if isinstance(content, Markup):
        return content
    text = str(content)
    if len(text) > LIMIT:
        text = f"{text[:LIMIT]}… [{len(text)} characters in all]"
    parts, end = [], 0
    for found in _UNSEEN.finditer(text):
        parts += [escape(text[end : found.start()]), _MARK.format(_named(found[0]))]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def short(name: str) -> str:
    """A name's first characters, where the whole of it is not needed to know it."""
    return name if len(name) <= Room.LEAST else f"{name[: Room.LEAST]}…"


_MARK = Markup('<span class="unseen">{}</span>')


def _named(letter: str) -> str:
    return f"U+{ord(letter):04X}"


class Room:
    """How much text one record may put on the page: what is over it is left out, and said so.

    Args:
        characters: of all texts together; each one keeps its first `LEAST` in any case.
    """

    LEAST = 200

    def __init__(self, characters: int) -> None:
        self._left = characters

    def text(self, whole: str, most: int) -> Text:
        """A text's first `most` characters at most, its line breaks all alike."""
        kept = whole[: max(self.LEAST, min(most, self._left))]
        self._left -= len(kept)
        return Text(kept.replace("\r\n", "\n"), len(whole) if len(kept) < len(whole) else None)


@dataclass(frozen=True, slots=True)
class Text:
    """A text as far as it is shown; `of` is its whole length in characters if that is not all."""

    shown: str
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Where a quote stands in a text (half-open offsets), its number, and what it speaks for."""

    start: int
    end: int
    number: int
    tone: Tone


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text, how it is marked, and the numbers of the quotes that end with it."""

    text: str
    tone: Tone | None
    ends: tuple[int, ...]


def pieces(text: str, spans: Sequence[Span]) -> list[Piece]:
    """The text cut where quotes begin and end; where they overlap, `against` is what is seen."""
    cuts = sorted({0, len(text), *(s.start for s in spans), *(s.end for s in spans)})
    found = []
    for start, end in pairwise(cuts):
        tones = {span.tone for span in spans if span.start <= start and end <= span.end}
        tone: Tone | None = "against" if "against" in tones else "for" if tones else None
        ends = tuple(sorted(span.number for span in spans if span.end == end))
        found.append(Piece(text[start:end], tone, ends))
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch that two texts share, or that only the one before or the one after has."""

    kind: Literal["same", "gone", "new"]
    text: str


def changes(before: str, after: str) -> list[Change]:
    """What became of a text, word by word; all gone and all new where little was kept.

    Texts of more than `MOST_WORDS` words are not compared.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    whole = [Change("gone", before), Change("new", after)]
    if max(len(old), len(new)) > MOST_WORDS or not (old and new):
        return _filled(whole)
    matcher = SequenceMatcher(None, old, new)
    if matcher.ratio() < LEAST_ALIKE:
        return whole
    return _filled(_joined(matcher.get_opcodes(), old, new))


def _joined(
    codes: Iterable[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]
) -> list[Change]:
    """Changes in reading order; a blank or a mark between two of them is taken to both sides."""
    found: list[Change] = []
    gone: list[str] = []
    come: list[str] = []

    def close() -> None:
        found.extend((Change("gone", "".join(gone)), Change("new", "".join(come))))
        gone.clear()
        come.clear()

    between: Callable[[Sequence[str]], bool] = lambda words: not any(map(str.isalnum, words))  # noqa: E731
    for kind, low, high, new_low, new_high in codes:
        words = old[low:high]
        if kind != "equal":
            gone += words
            come += new[new_low:new_high]
        elif (gone or come) and high < len(old) and between(words):
            gone += words
            come += words
        else:
            close()
            found.append(Change("same", "".join(words)))
    close()
    return found


def _filled(changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.text]
