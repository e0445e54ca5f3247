"""The reply models of rewriters: new words, and the places where they go (judge/replies.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from judge.replies import (
    About,
    Part,
    Reply,
    character_problem,
    number_problems,
    quote_problem,
)


def _new_text_problem(text: str, what: str, record: About) -> str | None:
    """New text must say something, and must not hold the mark that keeps the record data."""
    if not text.strip():
        return f"{what} empty"
    if record.mark and record.mark in text:
        return f"{what} marked with {record.mark}; that mark belongs to the message, leave it out"
    return None


class Insertion(Part):
    """Dialogue to add for one value, right after a passage of the story."""

    value: int
    after: str
    character: str
    dialogue: str


class Insertions(Reply):
    """Dialogue that carries the missing values; nothing of the story is given back or removed."""

    per_value: ClassVar[str | None] = "insertions"
    insertions: list[Insertion]

    def problems(self, record: About) -> Iterator[str]:
        yield from number_problems([i.value for i in self.insertions], record.numbers, "value")
        for part in self.insertions:
            if problem := quote_problem(part.after, record.texts, "story"):
                yield f"value {part.value}: {problem}"
            if problem := character_problem(part.character, record):
                yield f"value {part.value}: {problem}"
            if problem := _new_text_problem(part.dialogue, "the dialogue is", record):
                yield f"value {part.value}: {problem}"


class Rewrite(Part):
    """New words for one numbered passage."""

    passage: int
    text: str


class Rewrites(Reply):
    """New words for each numbered passage, and for nothing else."""

    per_value: ClassVar[str | None] = "rewrites"
    rewrites: list[Rewrite]

    def problems(self, record: About) -> Iterator[str]:
        wanted = tuple(range(1, record.passages + 1))
        yield from number_problems([r.passage for r in self.rewrites], wanted, "passage")
        for part in self.rewrites:
            if problem := _new_text_problem(part.text, "the new words are", record):
                yield f"passage {part.passage}: {problem}"


class Regeneration(Reply):
    """A new situation in place of the old one."""

    story: str

    def problems(self, record: About) -> Iterator[str]:
        if problem := _new_text_problem(self.story, "the story is", record):
            yield problem
        elif self.story.strip() == record.texts.get("story", "").strip():
            yield "the story is the old one, word for word"


REWRITING_REPLIES: Mapping[str, type[Reply]] = {
    model.__name__: model for model in (Insertions, Rewrites, Regeneration)
}
