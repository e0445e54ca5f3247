"""What the page shows of one output line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from judge.evidence import Span, locate
from judge.records import RESERVED, Item
from judge.records.kinds import normalise
from judge.verdict import Check, Extraction, Finding, Judgement

LARGEST = 400_000
"""Characters of JSON up to which a record is shown whole; of a larger one its summary alone."""

_PROSE = 80
"""A text of more characters, or of several lines, is set as prose."""

_STORIES = frozenset({"story", "situation"})
_NONE = "–"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the record: a text in marked pieces, a list of texts, or other JSON."""

    name: str
    content: Any
    pieces: list[tuple[str, str, list[int]]]
    prose: bool


class Entry:
    """One output line as the template reads it; its number tells it from all others on the page."""

    def __init__(self, line: Item, judged: Judgement, number: int) -> None:
        self.line, self.number, self.judged = line, number, judged
        fields = {k: content for k, content in (line.fields or {}).items() if k != RESERVED}
        self.classes = [judged.verdict, *(["split"] if any(map(differ, judged.checks)) else [])]
        self.classes += ["edited"] if judged.edits else []
        ids = (content for key, content in fields.items() if normalise(key) == "id")
        self.id = next((one for one in ids if isinstance(one, str | int | float)), None)
        self.size = len(json.dumps(line.fields, ensure_ascii=False))
        if self.size <= LARGEST:
            self._read(fields, judged)

    def _read(self, fields: Mapping[str, Any], judged: Judgement) -> None:
        own = sorted(fields.items(), key=lambda pair: normalise(pair[0]) not in _STORIES)
        everything = [("now", own), ("before", judged.original.items())]
        self.quotes = Quotes(
            {
                (when, name): content
                for when, pairs in everything
                for name, content in pairs
                if isinstance(content, str)
            }
        )
        # Before any text is shown, so that all texts are marked with all quotes.
        votes = [vote for check in judged.checks for vote in check.votes]
        for finding in (*(f for v in votes for f in v.evidence), *judged.contradictions):
            self.quotes.note(finding)
        self._anchored: set[int] = set()
        kept = {
            name: self._field(("now", name), content)
            for name, content in own
            if content is not self.id or normalise(name) != "id"
        }
        self.prose = [field for field in kept.values() if field.prose]
        self.facts = [kept[name] for name in fields if name in kept and not kept[name].prose]
        self.original = [self._field(("before", n), one) for n, one in judged.original.items()]

    def place(self, finding: Finding) -> tuple[int | None, str | None, bool]:
        """(number of the quote in the text, why there is none, whether the text leads back here).

        Of the findings with one number the first is the anchor that the text leads back to.
        """
        number, note = self.quotes.note(finding)
        anchor = number is not None and number not in self._anchored
        self._anchored |= {number} if number is not None else set()
        return number, note, anchor

    def _field(self, place: Place, content: Any) -> Field:
        if isinstance(content, str):
            prose = len(content) > _PROSE or "\n" in content
            return Field(place[1], content, self.quotes.marked(place), prose)
        texts = isinstance(content, list) and all(isinstance(one, str) for one in content)
        told = content if texts and content else json.dumps(content, ensure_ascii=False)
        return Field(place[1], told, [], False)


MOST_WORK = 5_000_000_000
"""Steps of all inexact searches of one record, counted as `judge.evidence.FUZZY_WORK` is: about a
second."""

Place = tuple[str, str]
"""A text of the record: `now` or `before` (it was rewritten), and the name of its field."""


@dataclass(slots=True)
class Mark:
    """A quote found in a text (half-open offsets), its number, and whether it speaks `for` what
    was wanted or `against` it."""

    place: Place
    start: int
    end: int
    number: int
    tone: str = "for"


class Quotes:
    """Finds quotes in texts, in their order, and numbers the places from 1, the same place once."""

    def __init__(self, texts: Mapping[Place, str]) -> None:
        self._texts = texts
        self._found: dict[str, Mark | str] = {}
        self._marks: dict[tuple[Place, int, int], Mark] = {}
        self._work = 0

    def note(self, finding: Finding) -> tuple[int | None, str | None]:
        """The number of the finding's quote, or why there is none; both None without a quote."""
        quote = finding.quote
        if quote is None or not quote.strip():
            return None, None
        if quote not in self._found:
            self._found[quote] = self._find(quote)
        found = self._found[quote]
        if isinstance(found, str):
            return None, found
        if finding.verdict != "pass":
            found.tone = "against"
        return found.number, None

    def marked(self, place: Place) -> list[tuple[str, str, list[int]]]:
        """The text at a place in pieces, with all quotes noted so far.

        Of each piece its text, its tone (`against` where quotes overlap, empty where there is
        none), and the numbers of the quotes that end with it.
        """
        text = self._texts[place]
        marks = [mark for mark in self._marks.values() if mark.place == place]
        cuts = sorted({0, len(text), *(m.start for m in marks), *(m.end for m in marks)})
        pieces = []
        for start, end in pairwise(cuts):
            tones = {mark.tone for mark in marks if mark.start <= start and end <= mark.end}
            ends = [mark.number for mark in marks if mark.end == end]
            pieces.append((text[start:end], min(tones, default=""), ends))
        return pieces

    def _find(self, quote: str) -> Mark | str:
        """The quote's place in the texts as they are, else as they were; else why it has none."""
        for when in ("now", "before"):
            spans = {
                place: span
                for place, text in self._texts.items()
                if place[0] == when and (span := self._located(quote, text))
            }
            if spans:
                place = max(spans, key=lambda place: spans[place].score)
                start, end = spans[place].start, spans[place].end
                mark = Mark(place, start, end, len(self._marks) + 1)
                return self._marks.setdefault((place, start, end), mark)
        if self._work > MOST_WORK:
            return "does not stand in the text word for word; no more was looked for"
        return "does not stand in the text, as it is or as it came"

    def _located(self, quote: str, text: str) -> Span | None:
        # Each search has a bound of its own; a line may ask for thousands of them.
        if quote not in text:
            if self._work > MOST_WORK:
                return None
            self._work += len(text) * len(quote) * (len(quote) // 64 + 1)
        return locate(quote, text)


def differ(check: Check) -> bool:
    """Whether a check's votes say different things."""
    return len({vote.verdict for vote in check.votes}) > 1


def probability(value: float | None) -> str:
    """To three places, but never rounded to 0 or 1; a dash where there is none."""
    if value is None:
        return _NONE
    if 0 < value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def tally(check: Check) -> str:
    """A check's votes in short, such as "2 pass, 1 fail"."""
    counts = Counter(vote.verdict for vote in check.votes)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def credits(found: Extraction) -> str:
    """How many gold values were found, over how many of how many."""
    each = ", ".join(_NONE if one is None else f"{one:g}" for one in found.credits)
    over, of = len(found.settled), len(found.credits)
    return f"recall {probability(found.recall)} over {over} of {of} gold values; credits {each}"
