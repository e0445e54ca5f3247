"""Rewrites: what a rewriter is asked for, and how its reply changes the text.

A rewriter never gives a whole story back. It names places and new words; the program puts them in,
so nothing else of the text can be lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from judge.backends.base import Call, Origin
from judge.evidence import locate
from judge.judging.client import Asked, Client
from judge.judging.judge import Sampling
from judge.replies import REWRITING_REPLIES, About, Insertions, Rewrites
from judge.rubric import Rubric, messages
from judge.subject import Subject
from judge.verdict import Edit, Finding

_SENTENCE_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019)]*(?=\s|$)")


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
        """One rewriting reply, in round `round` (from 1).

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
            seed=self.sampling.seed + round,
            max_tokens=self.rubric.readings.structured.max_tokens,
            vote=round,
            role="rewriting",
            origin=Origin(self.rubric.name, subject.id, round, 0, subject.as_mapping()),
        )
        record = About(
            texts={
                name: subject.texts[name] for name in self.rubric.fields if name in subject.texts
            },
            numbers=tuple(numbers),
            characters=subject.characters,
            passages=len(passages),
        )
        return await self.client.ask(call, model, record)


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
    subject: Subject,
    places: Sequence[Passage],
    reply: Rewrites,
    *,
    check: str,
    round: int,
    model: str,
) -> tuple[str, list[Edit]]:
    """The story with each passage replaced, and the edits in story order."""
    story, edits = subject.story, []
    texts = {part.passage: part.text for part in reply.rewrites}
    for number, place in reversed(list(enumerate(places, 1))):
        before = story[place.start : place.end]
        after = _same_marks(texts[number].strip(), before)
        story = story[: place.start] + after + story[place.end :]
        values = tuple(subject.value(n) for n in place.numbers)
        edits.append(Edit(round, check, before, after, model, place.character, values))
    return story, edits[::-1]


def apply_insertions(
    subject: Subject, reply: Insertions, *, check: str, round: int, model: str
) -> tuple[str, list[Edit]]:
    """The story with the new dialogue put in, and the edits in story order.

    A piece goes behind the sentence that holds its anchor; behind a paragraph's last sentence it
    becomes a paragraph of its own.
    """
    placed = []
    for part in reply.insertions:
        span = locate(part.after, subject.story)
        assert span is not None, "validated with the reply"
        placed.append((_sentence_end(subject.story, span.end), part))
    story, edits = subject.story, []
    for place, part in sorted(placed, key=lambda pair: pair[0], reverse=True):
        closes = story[place : place + 1] in ("", "\n")
        gap = "\n\n" if closes and "\n\n" in story else " "
        story = story[:place] + gap + part.dialogue.strip() + story[place:]
        values = (subject.value(part.value),)
        edits.append(Edit(round, check, "", part.dialogue.strip(), model, part.character, values))
    return story, edits[::-1]


def _sentence_end(story: str, end: int) -> int:
    paragraph_end = story.find("\n", end)
    paragraph_end = len(story) if paragraph_end < 0 else paragraph_end
    start = max(0, end - 3)
    found = _SENTENCE_END.search(story, start, paragraph_end)
    while found and found.end() < end:
        found = _SENTENCE_END.search(story, found.end(), paragraph_end)
    return found.end() if found else paragraph_end


def _same_marks(text: str, before: str) -> str:
    """Quotation marks around a passage stay as they were: kept, or kept out."""
    bare = text.strip('"\u201c\u201d') if text[:1] in '"\u201c' and text[-1:] in '"\u201d' else text
    quoted = before[:1] in '"\u201c' and before[-1:] in '"\u201d' and len(before) > 1
    return f"{before[0]}{bare}{before[-1]}" if quoted else bare
