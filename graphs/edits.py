"""Edits of a story: the passages to replace, and how a rewriter's reply changes the text.

A rewriter never returns a whole story. It names places and new words, and the program inserts them,
so no other text can be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from judge.judgement import Edit
from judge.questions.evidence import SENTENCE_END, SPEECH_MARKS, locate
from judge.records import Record
from judge.verdict import Answer

from .replies import Insertions, Rewrites
from .values import values_of

_MARKS = frozenset(SPEECH_MARKS)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the story to replace: half-open offsets, speaker, numbers of its values."""

    start: int
    end: int
    character: str | None
    numbers: tuple[int, ...]

    def described(self, story: str, how: str) -> str:
        values, words = ", ".join(map(str, self.numbers)), story[self.start : self.end]
        return f"{self.character or 'Narrator'} ({how} value {values}): {words}"


def passages(record: Record, answers: Sequence[Answer]) -> list[Passage]:
    """The quoted passages in story order; overlapping ones are merged."""
    number_of = {value.text: n for n, value in enumerate(values_of(record), 1)}
    places: list[Passage] = []
    for answer in answers:
        span = locate(answer.quote, record.texts["story"]) if answer.quote else None
        if span is not None and answer.value in number_of:
            number = number_of[answer.value]
            places.append(Passage(span.start, span.end, answer.character, (number,)))
    merged: list[Passage] = []
    for passage in sorted(places, key=lambda p: (p.start, -p.end)):
        if merged and passage.start < merged[-1].end:
            last = merged.pop()
            numbers = tuple(sorted({*last.numbers, *passage.numbers}))
            passage = replace(last, end=max(last.end, passage.end), numbers=numbers)
        merged.append(passage)
    return merged


def apply_rewrites(
    record: Record, places: Sequence[Passage], reply: Rewrites, edit: Callable[..., Edit]
) -> tuple[str, list[Edit]]:
    """The story with each passage replaced, and the edits in story order.

    Args:
        edit: makes an edit from `character`, `values`, `before` and `after`.
    """
    story, edits = record.texts["story"], []
    texts = {part.passage: part.text for part in reply.rewrites}
    for number, place in reversed(list(enumerate(places, 1))):
        before = story[place.start : place.end]
        after = _fitted(texts[number].strip(), story, place)
        story = story[: place.start] + after + story[place.end :]
        values = tuple(values_of(record)[n - 1].text for n in place.numbers)
        edits.append(edit(character=place.character, values=values, before=before, after=after))
    return story, edits[::-1]


def apply_insertions(
    record: Record, reply: Insertions, edit: Callable[..., Edit]
) -> tuple[str, list[Edit]]:
    """The story with the new dialogue inserted, and the edits in story order.

    A piece is inserted after the sentence that holds its anchor, never inside a speech; after a
    paragraph's last sentence it becomes a paragraph of its own. Pieces at the same place keep the
    order of the reply.
    """
    placed = []
    for part in reply.insertions:
        span = locate(part.after, record.texts["story"])
        assert span is not None, "validated with the reply"
        placed.append((_sentence_end(record.texts["story"], span.end), part))
    story, edits = record.texts["story"], []
    gaps = ("\r\n\r\n", "\n\n", "\r\n", "\n")
    paragraph = next((gap for gap in gaps if gap in story), " ")
    in_order = sorted(placed, key=lambda pair: pair[0])
    for place, part in reversed(in_order):
        new = part.dialogue.strip()
        closes = record.texts["story"][place:].lstrip(" \t\r")[:1] in ("", "\n")
        gap = paragraph if closes else " "
        story = story[:place] + gap + new + story[place:]
        values = (values_of(record)[part.value - 1].text,)
        edits.append(edit(character=part.character, values=values, before="", after=new))
    return story, edits[::-1]


def _sentence_end(story: str, end: int) -> int:
    """The end of the sentence that holds the character before `end`, outside any speech."""
    line_end = story.find("\n", end)
    paragraph = story[: line_end if line_end >= 0 else len(story)].rstrip()
    at = max(0, end - 3)
    while match := SENTENCE_END.search(paragraph, at):
        at = match.end()
        follows = paragraph[at:].lstrip()[:1]
        # A small letter continues the sentence, such as "said Tomo" after a question mark.
        if at >= end and not follows.islower() and not _in_speech(paragraph, at):
            return at
    return len(paragraph)


def _in_speech(story: str, place: int) -> bool:
    """Whether `place` is between speech marks, counted from the beginning of its paragraph."""
    return _unpaired(story[story.rfind("\n", 0, place) + 1 : place])


def _fitted(text: str, story: str, place: Passage) -> str:
    """The new words, with or without speech marks around them, so that the story's marks pair up.

    A rewriter is asked for the bare words, but may put marks around them, or get a passage that has
    marks itself or only one of a pair.
    """
    before, bare = story[place.start : place.end], text.strip(SPEECH_MARKS).strip()
    opening = before[: len(before) - len(before.lstrip(SPEECH_MARKS))]
    closing = before[len(before.rstrip(SPEECH_MARKS)) :]
    # A mark that touches the passage encloses it, even if marks before it are not in pairs.
    inside = story[place.start - 1 : place.start] in _MARKS or _in_speech(story, place.start)
    narration = not (inside or opening or closing)
    for fitted in (text if narration else opening + bare + closing, bare):
        if _unpaired(fitted) == _unpaired(before):
            return fitted
    mark = next((char for char in reversed(before) if char in _MARKS), '"')
    return bare + mark if inside else mark + bare


def _unpaired(text: str) -> bool:
    return sum(char in _MARKS for char in text) % 2 == 1
