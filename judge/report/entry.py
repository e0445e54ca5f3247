"""What the page shows of one output line, cut down to what a browser can bear."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from judge.records.names import normalise
from judge.report.judged import Check, Edit, Extraction, Finding, Judged, Line, Result, Vote
from judge.report.quotes import Place, Quotes
from judge.report.text import LIMIT, Change, Piece, Room, Text, changes

CHARACTERS = 120_000
"""Characters of one record that are shown, over all its texts."""

LONG, SHORT = LIMIT, 2_000
"""Characters shown of a record's or a rewriter's text, and of any other."""

MOST, PARTS = 100, 1_000
"""Members that are shown of any list of one record, and of all its lists together."""

_PROSE = 80
"""A text of more characters, or of several lines, is set as prose."""

_SCROLLED = 8_000
"""A text of more characters has a window of its own."""

_STORIES = frozenset({"story", "situation"})
_NONE = "–"

S = TypeVar("S")
T = TypeVar("T")


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
    """A field of the record: a text in pieces (`of` as in Text), a list of texts, or other JSON."""

    name: Text
    pieces: Sequence[Piece] = ()
    of: int | None = None
    prose: bool = False
    long: bool = False
    items: Cut[Text] | None = None
    text: Text | None = None


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding; `number` leads to its quote in the text, `note` says why there is none.

    Of the findings with one number the first is the `anchor` that the text leads back to.
    """

    finding: Finding
    value: Text | None
    quote: Text | None
    reason: Text | None
    number: int | None
    anchor: bool
    note: str | None
    probability: str


@dataclass(frozen=True, slots=True)
class ShownCheck:
    """A check with its findings and votes; `tally` is its votes in short."""

    check: Check
    name: Text
    reason: Text | None
    probability: str
    findings: Cut[ShownFinding]
    votes: Cut[Vote]
    tally: str

    @property
    def reasoned(self) -> bool:
        """Whether a vote says why."""
        return any(vote.reason is not None for vote in self.votes)


@dataclass(frozen=True, slots=True)
class ShownEdit:
    """A rewrite, word by word; `of` is the length of what is shown in part only."""

    edit: Edit
    values: Cut[Text]
    changes: Sequence[Change]
    of: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One output line on the page; `number` tells it from all others there."""

    number: int
    source: str
    line: int
    id: Text | None
    judged: Judged
    reason: Text | None
    facts: Cut[Field]
    prose: Sequence[Field]
    original: Cut[Field]
    checks: Cut[ShownCheck]
    edits: Cut[ShownEdit]
    dropped: Cut[Text]
    contradictions: Cut[ShownFinding]
    credits: str | None
    message: Text | None
    classes: str

    @property
    def result(self) -> Result:
        return self.judged.verdict


def entry(line: Line, number: int, classes: str) -> Entry:
    """What is shown of an output line.

    Args:
        classes: what the filters of the page know it by; names of ours, no text of the record.
    """
    room, judged = Room(CHARACTERS), line.judged
    own = sorted(line.fields.items(), key=lambda pair: normalise(pair[0]) not in _STORIES)
    texts: dict[Place, Text] = {}
    for time, fields in (("now", own[:MOST]), ("before", list(judged.original.items())[:MOST])):
        for name, content in fields:
            if isinstance(content, str):
                texts[time, name] = room.text(content, LONG)
    quotes = Quotes(
        {place: text.shown for place, text in texts.items()},
        judged.edits[:MOST],
        any(text.of for text in texts.values()) or len(own) > MOST,
    )
    made = _Maker(room, quotes, texts)
    checks = made.cut(judged.checks, made.check)
    contradictions = made.cut(judged.contradictions, made.finding)
    # Last, so that the texts are marked with the quotes of all findings.
    shown = {name: made.field(("now", name), content) for name, content in own[:MOST]}
    id = _id(line.fields, room)
    in_order = [shown[key] for key in line.fields if key in shown and not _told(key, id)]
    return Entry(
        number=number,
        source=line.source,
        line=line.number,
        id=id,
        judged=judged,
        reason=made.maybe(judged.reason),
        facts=Cut([one for one in in_order if not one.prose], len(own[MOST:])),
        prose=[one for one in shown.values() if one.prose],
        original=made.cut(
            list(judged.original.items()), lambda pair: made.field(("before", pair[0]), pair[1])
        ),
        checks=checks,
        edits=made.cut(judged.edits, made.edit),
        dropped=made.cut(judged.dropped, made.short),
        contradictions=contradictions,
        credits=_credits(judged.extraction),
        message=made.maybe(judged.error.message if judged.error else None),
        classes=classes,
    )


def _told(key: str, id: Text | None) -> bool:
    """Whether a field stands in the heading already."""
    return normalise(key) == "id" and id is not None and id.of is None


def _id(fields: Mapping[str, Any], room: Room) -> Text | None:
    """What the record calls itself, if it does."""
    found = next((one for key, one in fields.items() if normalise(key) == "id"), None)
    return room.text(str(found), Room.LEAST) if isinstance(found, str | int | float) else None


class _Maker:
    """Makes the parts of one entry, out of the same room."""

    def __init__(self, room: Room, quotes: Quotes, texts: Mapping[Place, Text]) -> None:
        self._room, self._quotes, self._texts = room, quotes, texts
        self._anchored: set[int | None] = {None}
        self._parts = PARTS

    def cut(self, members: Sequence[S], make: Callable[[S], T]) -> Cut[T]:
        """The first members, each as `make` shows it."""
        most = min(MOST, self._parts)
        self._parts -= min(most, len(members))
        return Cut([make(one) for one in members[:most]], len(members[most:]))

    def short(self, text: str) -> Text:
        return self._room.text(text, SHORT)

    def maybe(self, text: str | None) -> Text | None:
        return None if text is None else self.short(text)

    def field(self, place: Place, content: Any) -> Field:
        name = self._room.text(place[1], Room.LEAST)
        text = self._texts.get(place)
        if text is not None:
            prose = len(text.shown) > _PROSE or "\n" in text.shown
            long = len(text.shown) > _SCROLLED
            return Field(name, self._quotes.marked(place), text.of, prose, long)
        if isinstance(content, list) and content and all(isinstance(one, str) for one in content):
            return Field(name, items=self.cut(content, self.short))
        return Field(name, text=self.short(json.dumps(content, ensure_ascii=False)))

    def check(self, check: Check) -> ShownCheck:
        return ShownCheck(
            check,
            self._room.text(check.check, Room.LEAST),
            self.maybe(check.reason),
            probability(check.probability),
            self.cut(check.findings, self.finding),
            self.cut(check.votes, lambda vote: vote),
            _tally(check.votes),
        )

    def finding(self, finding: Finding) -> ShownFinding:
        number, note = self._quotes.note(finding)
        anchor = number not in self._anchored
        self._anchored.add(number)
        return ShownFinding(
            finding,
            self.maybe(finding.value),
            self.maybe(finding.quote),
            self.maybe(finding.reason),
            number,
            anchor,
            note,
            probability(finding.probability),
        )

    def edit(self, edit: Edit) -> ShownEdit:
        before, after = (self._room.text(text, LONG) for text in (edit.before, edit.after))
        return ShownEdit(
            edit,
            self.cut(edit.values, self.short),
            changes(before.shown, after.shown),
            max(before.of or 0, after.of or 0) or None,
        )


def probability(value: float | None) -> str:
    """To three places, but never rounded to 0 or 1; a dash where there is none."""
    if value is None:
        return _NONE
    if 0 < value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def _tally(votes: Sequence[Vote]) -> str:
    counts: dict[str, int] = {}
    for vote in votes:
        counts[vote.verdict] = counts.get(vote.verdict, 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def _credits(found: Extraction | None) -> str | None:
    if found is None:
        return None
    recall = _NONE if found.recall is None else f"{found.recall:.3f}"
    each = ", ".join(_NONE if one is None else f"{one:g}" for one in found.credits[:MOST])
    more = ", …" if len(found.credits) > MOST else ""
    return f"recall {recall} over {found.over} of {found.of} gold values; credits {each}{more}"
