"""Rewrites: what a rewriter is asked for, and how its reply changes the text.

A rewriter never gives a whole story back. It names places and new words; the program puts them in,
so nothing else of the text can be lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from judge.backends.base import Call, Origin
from judge.evidence import SPEECH_MARKS, locate
from judge.judging.client import Asked, Client
from judge.judging.judge import Sampling
from judge.prompts import messages
from judge.replies import REWRITING_REPLIES, About, Insertions, Rewrites
from judge.rubric import Rubric
from judge.subject import Subject
from judge.verdict import Edit, Finding

_MARKS = frozenset(SPEECH_MARKS)
_CLOSING = rf"[{SPEECH_MARKS}'\u2019)]*"
_SENTENCE_END = re.compile(rf"[.!?\u2026]{_CLOSING}(?=\s|$)|[\u3002\uff01\uff1f]{_CLOSING}")
_OPENING = "\u300c\u300e"
"""Marks that open speech in scripts without spaces, where what stands before tells nothing."""


@dataclass(frozen=True, slots=True)
class Rewriter:
    """A rewriting rubric put to one model."""

    rubric: Rubric
    client: Client
    sampling: Sampling

    async def ask(
        self,
        subject: Subject,
        *,
        round: int,
        numbers: Sequence[int] = (),
        passages: Sequence[str] = (),
        findings: Sequence[str] = (),
    ) -> Asked:
        """One rewriting reply, in round `round` (from 1), about a subject without an `obstacle`.

        Raises:
            BackendError: the model gave no reply.
        """
        model = REWRITING_REPLIES[self.rubric.reply].sized(len(passages) or len(numbers))
        prompt = messages(
            self.rubric, subject, numbers=numbers, passages=passages, findings=findings
        )
        call = Call(
            messages=prompt,
            temperature=self.sampling.temperature,
            seed=self.sampling.seed + round if self.client.backend.seeded else None,
            max_tokens=self.rubric.readings.structured.max_tokens,
            vote=round,
            role="rewriting",
            origin=Origin(self.rubric.name, subject.id, round, 0, subject.as_mapping),
        )
        record = About(
            texts={
                name: subject.texts[name] for name in self.rubric.fields if name in subject.texts
            },
            numbers=tuple(numbers),
            characters=subject.characters,
            passages=len(passages),
            mark=subject.mark,
        )
        return await self.client.ask(call, model, record)

    def obstacle(self, subject: Subject) -> str | None:
        """Why the rubric cannot be put about this subject; None if it can."""
        missing = subject.lacks(self.rubric.required)
        if not missing:
            return None
        return f"the record has no {', '.join(name.replace('_', ' ') for name in missing)}"


@dataclass(frozen=True, slots=True)
class Passage:
    """Words of the story that are to be replaced: half-open offsets, speaker, values concerned."""

    start: int
    end: int
    character: str | None
    numbers: tuple[int, ...]

    def described(self, story: str, how: str) -> str:
        values = ", ".join(map(str, self.numbers))
        return (
            f"{self.character or 'Narrator'} ({how} value {values}): {story[self.start : self.end]}"
        )


def passages(subject: Subject, findings: Sequence[Finding]) -> list[Passage]:
    """The quoted passages in story order; those that overlap become one."""
    number_of = {subject.value(n): n for n in subject.numbers}
    found: list[Passage] = []
    for finding in findings:
        span = locate(finding.quote, subject.story) if finding.quote else None
        if span is not None and finding.value in number_of:
            number = number_of[finding.value]
            found.append(Passage(span.start, span.end, finding.character, (number,)))
    merged: list[Passage] = []
    for passage in sorted(found, key=lambda p: (p.start, -p.end)):
        if merged and passage.start < merged[-1].end:
            last = merged.pop()
            numbers = tuple(sorted({*last.numbers, *passage.numbers}))
            passage = replace(last, end=max(last.end, passage.end), numbers=numbers)
        merged.append(passage)
    return merged


def apply_rewrites(
    subject: Subject, places: Sequence[Passage], reply: Rewrites, edit: Callable[..., Edit]
) -> tuple[str, list[Edit]]:
    """The story with each passage replaced, and the edits in story order.

    Args:
        edit: makes an edit of `character`, `values`, `before` and `after`.
    """
    story, edits = subject.story, []
    texts = {part.passage: part.text for part in reply.rewrites}
    for number, place in reversed(list(enumerate(places, 1))):
        before = story[place.start : place.end]
        after = _fitted(texts[number].strip(), story, place)
        story = story[: place.start] + after + story[place.end :]
        values = tuple(subject.value(n) for n in place.numbers)
        edits.append(edit(character=place.character, values=values, before=before, after=after))
    return story, edits[::-1]


def apply_insertions(
    subject: Subject, reply: Insertions, edit: Callable[..., Edit]
) -> tuple[str, list[Edit]]:
    """The story with the new dialogue put in, and the edits in story order.

    A piece goes behind the sentence that holds its anchor, and never into a speech; behind a
    paragraph's last sentence it becomes a paragraph of its own. Pieces with the same place keep the
    order of the reply.
    """
    placed = []
    for part in reply.insertions:
        span = locate(part.after, subject.story)
        assert span is not None, "validated with the reply"
        placed.append((_sentence_end(subject.story, span.end), part))
    story, edits = subject.story, []
    in_order = sorted(placed, key=lambda pair: pair[0])
    for place, part in reversed(in_order):
        new = part.dialogue.strip()
        closes = subject.story[place:].lstrip(" \t\r")[:1] in ("", "\n")
        gap = _paragraph_gap(subject.story) if closes else " "
        story = story[:place] + gap + new + story[place:]
        values = (subject.value(part.value),)
        edits.append(edit(character=part.character, values=values, before="", after=new))
    return story, edits[::-1]


def _sentence_end(story: str, end: int) -> int:
    """Where the sentence ends that holds the character before `end`: outside any speech."""
    line_end = story.find("\n", end)
    paragraph = story[: line_end if line_end >= 0 else len(story)].rstrip()
    at = max(0, end - 3)
    while found := _SENTENCE_END.search(paragraph, at):
        at = found.end()
        follows = paragraph[at:].lstrip()[:1]
        # A small letter goes on with the sentence, such as "said Tomo" behind a question mark.
        if at >= end and not follows.islower() and not _in_speech(paragraph, at):
            return at
    return len(paragraph)


def _paragraph_gap(story: str) -> str:
    return next((gap for gap in ("\r\n\r\n", "\n\n", "\r\n", "\n") if gap in story), " ")


def _in_speech(story: str, place: int) -> bool:
    """Whether `place` stands between speech marks, counted from its paragraph's beginning."""
    paragraph = story[story.rfind("\n", 0, place) + 1 : place]
    return sum(char in _MARKS for char in paragraph) % 2 == 1


def _fitted(text: str, story: str, place: Passage) -> str:
    """New words with speech marks so that the story's own around them still come in pairs.

    A rewriter is asked for the bare words, but may put marks around them, or be given a passage
    that has marks itself or holds only one of a pair.
    """
    before = story[place.start : place.end]
    # A mark that touches the passage encloses it, even where marks before it are not in pairs.
    starts_inside = story[place.start - 1 : place.start] in _MARKS or _in_speech(story, place.start)
    ends_inside = story[place.end : place.end + 1] in _MARKS or _in_speech(story, place.end)
    speech = starts_inside or ends_inside or before[0] in _MARKS
    own = [at for at, char in enumerate(text) if char in _MARKS]
    if speech and own == [0, len(text) - 1]:
        text, own = text[1:-1].strip(), []
    text_starts_inside = own[0] > 0 and _closes(text, own[0]) if own else speech
    text_ends_inside = text_starts_inside != (len(own) % 2 == 1)
    marks = [char for char in before if char in _MARKS] or ['"']
    if text_starts_inside and not starts_inside:
        text = (before[0] if before[0] in _MARKS else marks[-1]) + text
    elif starts_inside and not text_starts_inside and text[:1] in _MARKS:
        text = text[1:].lstrip()
    if text_ends_inside and not ends_inside:
        text += before[-1] if before[-1] in _MARKS else marks[0]
    elif ends_inside and not text_ends_inside and text[-1:] in _MARKS:
        text = text[:-1].rstrip()
    return text


def _closes(text: str, at: int) -> bool:
    """Whether the speech mark at `at`, not the first character, closes speech."""
    return text[at] not in _OPENING and not (text[at - 1].isspace() or text[at - 1] in "(-\u2014")
