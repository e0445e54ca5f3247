"""What the page shows of one output line, cut down to what a browser can bear."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from judge.records.kinds import normalise
from judge.report.quotes import Place, Quotes
from judge.report.text import LIMIT, Change, Piece, Room, Text, changes
from judge.verdict import Check, Edit, Extraction, Finding, Judgement, Vote

CHARACTERS = 120_000
"""Characters of one record that are shown, over all its texts."""

SHORT = 2_000
"""Characters shown of any text but a record's own and a rewriter's, which have `LIMIT`."""

MOST, PARTS = 100, 1_000
"""Members that are shown of any list of one record, and of all its lists together."""

_PROSE = 80
"""A text of more characters, or of several lines, is set as prose."""

_SCROLLED = 8_000
"""A text of more characters has a window of its own."""

_STORIES = frozenset({"story", "situation"})
_NONE = "–"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """An output line: the record's own fields, and what was found."""

    source: str
    number: int
    fields: Mapping[str, Any]
    judged: Judgement


@dataclass(frozen=True, slots=True)
class Cut(Sequence[T]):
    """The first members of a list; `left` is how many more there are."""

    members: Sequence[T]
    left: int

    def __getitem__(self, place: Any) -> Any:
        return self.members[place]

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the record: a text in marked pieces, a list of texts, or other JSON."""

    name: Text
    pieces: Sequence[Piece] = ()
    of: int | None = None
    prose: bool = False
    long: bool = False
    items: Sequence[str] | None = None
    text: str | None = None


class Entry:
    """One output line as the template reads it.

    Texts and lists are asked for with `text` and `first`, which share out the record's room.

    Args:
        number: tells the entry from all others on the page.
        classes: what the page's filters know it by.
    """

    def __init__(self, line: Line, number: int, classes: str) -> None:
        self.number, self.classes = number, classes
        self.source, self.line, self.judged = line.source, line.number, line.judged
        self._room, self._parts = Room(CHARACTERS), PARTS
        self._anchored: set[int] = set()
        own = sorted(line.fields.items(), key=lambda pair: normalise(pair[0]) not in _STORIES)
        original = list(self.judged.original.items())
        self._texts: dict[Place, Text] = {
            (time, name): self._room.text(content, LIMIT)
            for time, fields in (("now", own[:MOST]), ("before", original[:MOST]))
            for name, content in fields
            if isinstance(content, str)
        }
        self._quotes = Quotes(
            {place: text.shown for place, text in self._texts.items()},
            self.judged.edits[:MOST],
            any(text.of for text in self._texts.values()) or len(own) > MOST,
        )
        # Before any text is shown, so that all texts are marked with all quotes.
        for finding in _findings(self.judged):
            self._quotes.note(finding)
        self.id = self._id(line.fields)
        named = self.id is not None and self.id.of is None
        kept = [(k, c) for k, c in own[:MOST] if not (named and normalise(k) == "id")]
        fields = {key: self._field(("now", key), content) for key, content in kept}
        self.prose = [field for field in fields.values() if field.prose]
        in_order = [fields[key] for key in line.fields if key in fields]
        self.facts = Cut([field for field in in_order if not field.prose], len(own[MOST:]))
        before = [self._field(("before", key), content) for key, content in original[:MOST]]
        self.original = Cut(before, len(original[MOST:]))

    def text(self, whole: str, most: int = SHORT) -> Text:
        """As much of a text as is shown."""
        return self._room.text(whole, most)

    def first(self, members: Sequence[T]) -> Cut[T]:
        """As many members of a list as are shown."""
        most = min(MOST, self._parts)
        self._parts -= min(most, len(members))
        return Cut(members[:most], len(members[most:]))

    def place(self, finding: Finding) -> tuple[int | None, str | None, bool]:
        """(number of the quote in the text, why there is none, whether the text leads back here).

        Of the findings with one number the first is the anchor that the text leads back to.
        """
        number, note = self._quotes.note(finding)
        anchor = number is not None and number not in self._anchored
        self._anchored |= {number} if number is not None else set()
        return number, note, anchor

    def changes(self, edit: Edit) -> tuple[Sequence[Change], int | None]:
        """A rewrite word by word, and the whole length where it is shown in part only."""
        before, after = self.text(edit.before, LIMIT), self.text(edit.after, LIMIT)
        return changes(before.shown, after.shown), max(before.of or 0, after.of or 0) or None

    def _field(self, place: Place, content: Any) -> Field:
        name = self._room.text(place[1], Room.LEAST)
        text = self._texts.get(place)
        if text is not None:
            prose = len(text.shown) > _PROSE or "\n" in text.shown
            long = len(text.shown) > _SCROLLED
            return Field(name, self._quotes.marked(place), text.of, prose, long)
        if isinstance(content, list) and content and all(isinstance(one, str) for one in content):
            return Field(name, items=content)
        return Field(name, text=json.dumps(content, ensure_ascii=False))

    def _id(self, fields: Mapping[str, Any]) -> Text | None:
        found = next((one for key, one in fields.items() if normalise(key) == "id"), None)
        known = isinstance(found, str | int | float)
        return self._room.text(str(found), Room.LEAST) if known else None


def _findings(judged: Judgement) -> Iterator[Finding]:
    for check in judged.checks:
        for vote in check.votes:
            yield from vote.evidence
    yield from judged.contradictions


def probability(value: float | None) -> str:
    """To three places, but never rounded to 0 or 1; a dash where there is none."""
    if value is None:
        return _NONE
    if 0 < value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def tally(check: Check) -> str:
    """A check's votes in short, such as "2 pass, 1 fail"."""
    counts: dict[str, int] = {}
    for vote in check.votes:
        counts[vote.verdict] = counts.get(vote.verdict, 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def drawn(vote: Vote) -> str:
    """How a vote was drawn: its seed and temperature, where they are known."""
    told = (("seed", vote.seed), ("temperature", vote.temperature))
    return ", ".join(f"{name} {value}" for name, value in told if value is not None)


def credits(found: Extraction) -> str:
    """How many gold values were found, over how many of how many."""
    recall = _NONE if found.recall is None else f"{found.recall:.3f}"
    each = ", ".join(_NONE if one is None else f"{one:g}" for one in found.credits[:MOST])
    more = ", …" if len(found.credits) > MOST else ""
    over, of = len(found.settled), len(found.credits)
    return f"recall {recall} over {over} of {of} gold values; credits {each}{more}"
