"""The papers' replies: about each value of a story, leaks, and rewriters' texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from judge.questions.evidence import EVIDENCE_WORDS, ReplyContext, quote_problem
from judge.questions.replies import YES_NO, JudgingReply, NewFields, Reply, ReplyPart, answers_of
from judge.records.answers import alike
from judge.records.names import apart, plain_name
from judge.records.words import words_of
from judge.verdict import Answer

MOST_NAMED = 30
"""How many characters are listed for a model that names another."""


def _character_problem(name: str, context: ReplyContext) -> str | None:
    character = name.strip()
    if characters := context.typed.get("characters"):
        if alike(character) in map(alike, characters):
            return None
        names = ", ".join(apart(characters[:MOST_NAMED]))
        return f"no character is called {plain_name(name)}; the characters are {names}"
    if character and _stands(character, context.texts.get("story", "")):
        return None
    return f"the name {plain_name(name)} is not in the story"


@lru_cache(maxsize=256)  # Every part of every reply about a story names its speaker.
def _stands(name: str, story: str) -> bool:
    has_case = name[0].isupper() or name[0].islower()
    name, story = alike(name), alike(story)
    if not has_case:
        # Scripts without capitals mostly write without spaces too, so there are no words to match.
        return name != "" and name in story
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", story) is not None


def passage_problems(
    quote: str, character: str | None, context: ReplyContext, least: int = EVIDENCE_WORDS
) -> Iterator[str]:
    """The problems of a passage of the story, and of the character that it is attributed to."""
    if problem := quote_problem(quote, context.texts, "story", least):
        yield problem
    if character is not None and (problem := _character_problem(character, context)):
        yield problem


def new_text_problems(text: str, what: str, context: ReplyContext) -> Iterator[str]:
    """The problems of a new text, which must not be empty or hold the mark that fences the
    record."""
    if not text.strip():
        yield f"{what} empty"
    elif context.mark and context.mark in text:
        yield f"{what} marked with {context.mark}; that mark belongs to the message, leave it out"


# ------------------------------------------------------------ judges


class ValuePart(ReplyPart):
    """The answer about one value."""

    value: int

    def answers(self, context: ReplyContext) -> list[Answer]:
        raise NotImplementedError


class _PerValue(JudgingReply):
    shown = "story"
    parts: ClassVar[str | None] = "values"
    values: list[Any]

    def answers(self, number: int, context: ReplyContext) -> list[Answer]:
        part: ValuePart = next(part for part in self.values if part.value == number)
        return part.answers(context)


class ValueAnswer(ValuePart):
    """One value: the passage that carries it, who says or does it, and whether it is reflected."""

    quote: str | None
    character: str | None
    reason: str
    reflected: Literal["yes", "no"]

    def problems(self, context: ReplyContext) -> Iterator[str]:
        if self.reflected != "yes":
            return
        if not self.quote:
            yield "it is said to be reflected but no passage is quoted"
        else:
            yield from passage_problems(self.quote, self.character or None, context)

    def answers(self, context: ReplyContext) -> list[Answer]:
        quoted = self.quote and self.reflected == "yes"
        passages = [(self.character, self.quote)] if quoted else []
        return answers_of(context, self.value, self.reflected, passages, self.reason)


class ValuesReflected(_PerValue):
    """For each value: is it reflected in the story, and where?"""

    choices = YES_NO
    values: list[ValueAnswer]


class Speech(ReplyPart):
    """A speech or action of one character, in the story's own words."""

    character: str
    quote: str


class ValueSpeeches(ValuePart):
    """The speeches that were asked for, for one value; none is an answer."""

    reason: str
    speeches: Annotated[list[Speech], Field(max_length=6)]

    def problems(self, context: ReplyContext) -> Iterator[str]:
        for speech in self.speeches:
            yield from passage_problems(speech.quote, speech.character, context)

    def answers(self, context: ReplyContext) -> list[Answer]:
        passages = [(speech.character, speech.quote) for speech in self.speeches]
        return answers_of(context, self.value, "yes" if passages else "no", passages, self.reason)


class SpeechesFound(_PerValue):
    """For each value: the speeches that contradict it (or state it outright), with the speaker."""

    choices = YES_NO
    values: list[ValueSpeeches]


class ExtractedValue(ValuePart):
    """One value: the predicted values that it rests on, by number, and how much of it they say."""

    predicted: Annotated[list[int], Field(max_length=10)]
    reason: str
    presence: Literal["fully", "partially", "absent"]

    def problems(self, context: ReplyContext) -> Iterator[str]:
        if self.presence == "absent" and self.predicted:
            yield "it is said to be absent but predicted values are named"
        elif self.presence != "absent" and not self.predicted:
            yield "it is said to be there but no predicted value is named"
        count = len(context.typed.get("predicted", ()))
        for number in sorted(set(self.predicted).difference(range(1, count + 1))):
            yield f"there is no predicted value {number}; they are numbered from 1 to {count}"

    def answers(self, context: ReplyContext) -> list[Answer]:
        predicted = tuple(sorted(set(self.predicted)))
        return answers_of(context, self.value, self.presence, (), self.reason, predicted)


class ValuesExtracted(_PerValue):
    """For each value: is it fully, partially or not among the predicted ones, and in which?

    A predicted value may serve several values, and several may serve one.
    """

    choices = ("fully", "partially", "absent")
    shown = "predicted"
    values: list[ExtractedValue]


class Leak(ReplyPart):
    """Words that give a place, nationality or culture away, or explain the norm."""

    quote: str
    kind: Literal["place", "nationality", "culture", "explanation"]


class LeaksFound(JudgingReply):
    """Every leak in the story; none is an answer."""

    choices = YES_NO
    shown = "story"
    leaks: Annotated[list[Leak], Field(max_length=8)]

    def problems(self, context: ReplyContext) -> Iterator[str]:
        for leak in self.leaks:
            # The name of a place is a leak by itself.
            yield from passage_problems(leak.quote, None, context, least=1)

    def answers(self, number: int, context: ReplyContext) -> list[Answer]:
        kinds = ", ".join(sorted({leak.kind for leak in self.leaks}))
        passages = [(None, leak.quote) for leak in self.leaks]
        return answers_of(context, number, "yes" if passages else "no", passages, kinds)


# ------------------------------------------------------------ rewriters


class Insertion(ReplyPart):
    """Dialogue to add for one value, right after a passage of the story."""

    value: int
    after: str
    character: str
    dialogue: str

    def problems(self, context: ReplyContext) -> Iterator[str]:
        yield from passage_problems(self.after, self.character, context, least=1)
        yield from new_text_problems(self.dialogue, "the dialogue is", context)


class Insertions(Reply):
    """Dialogue that carries the missing values; nothing of the story is given back or removed."""

    shown = "story"
    parts: ClassVar[str | None] = "insertions"
    insertions: list[Insertion]


class Rewrite(ReplyPart):
    """New words for one numbered passage."""

    passage: int
    text: str

    def problems(self, context: ReplyContext) -> Iterator[str]:
        yield from new_text_problems(self.text, "the new words are", context)


class Rewrites(Reply):
    """New words for each numbered passage, and for nothing else."""

    shown = "story"
    parts: ClassVar[str | None] = "rewrites"
    numbered: ClassVar[Literal["value", "passage"]] = "passage"
    rewrites: list[Rewrite]


class NewStory(NewFields):
    """A story written for its values (CQ-Bench)."""

    story: str


class Situation(NewFields):
    """A situation written for a norm (NormAd)."""

    value: str
    rule_of_thumb: str
    story: str
    explanation: str


class NewPremise(NewFields):
    """A premise that shows or judges a behaviour (CALI)."""

    premise: str


class NewHypotheses(NewFields):
    """Three statements about a premise, by three questions (CALI)."""

    hypothesis_1: str
    hypothesis_2: str
    hypothesis_3: str


class NewQuestion(NewFields):
    """A question with four different options, and the letter of the right one (CulturalBench)."""

    prompt_question: str
    prompt_option_a: str
    prompt_option_b: str
    prompt_option_c: str
    prompt_option_d: str
    answer: Literal["A", "B", "C", "D"]

    def problems(self, context: ReplyContext) -> Iterator[str]:
        yield from super().problems(context)
        options = [text for name, text in self if name.startswith("prompt_option")]
        if len({" ".join(words_of(option)) for option in options}) < len(options):
            yield "two options say the same"


class Hints(NewFields):
    """What could be changed in a question, by each way of making it harder (CulturalBench)."""

    negate: str
    be_concrete: str
    change_things: str
    change_quantities: str
    everyday_life: str
    other_words: str
    foreign_habits: str
    near_misses: str


class Regeneration(Reply):
    """A new situation in place of the old one."""

    shown = "story"
    story: str

    def problems(self, context: ReplyContext) -> Iterator[str]:
        yield from new_text_problems(self.story, "the story is", context)
        if self.story.strip() == context.texts.get("story", "").strip():
            yield "the story is the old one, word for word"
