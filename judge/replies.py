"""The reply models of judges and rewriters: what they may hold, and what makes a reply invalid.

A reply is validated against the record that it is about: every value answered exactly once, quotes
that stand in the text, characters that exist. The record comes in through a context
variable, and not through instructor's own `context`: instructor renders the messages as Jinja
templates as soon as it is given one, and record text must never be a template
(docs/decisions/0003-record-is-data.md).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Len
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from judge.answers import spelt_as
from judge.evidence import (
    ReplyContext,
    new_text_problems,
    numbered_problems,
    passage_problems,
    quote_problem,
)
from judge.verdict import Answer, Verdict

YES_NO = ("yes", "no")

_context: ContextVar[ReplyContext | None] = ContextVar("judge_reply_context", default=None)


@contextmanager
def held_against(context: ReplyContext) -> Iterator[None]:
    """Validate replies against `context` inside the block."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def answers_of(
    context: ReplyContext,
    number: int,
    answer: str,
    passages: Sequence[tuple[str | None, str | None]] = (),
    reason: str | None = None,
    predicted: tuple[int, ...] = (),
) -> list[Answer]:
    """An answer for each of the passages quoted, as (character, quote), or one without a quote."""
    name = context.names.get(answer, answer)
    verdict = Verdict.PASS if name in context.passing else Verdict.FAIL
    return [
        Answer(
            value=context.values.get(number),
            verdict=verdict,
            answer=name,
            character=character,
            quote=quote,
            predicted=predicted,
            reason=reason or None,
        )
        for character, quote in passages or ((None, None),)
    ]


def spelt_literal(answers: tuple[str, ...]) -> Any:
    """The type of a field that holds one of `answers`, whatever its spelling in the reply."""
    return Annotated[
        Literal[answers],
        BeforeValidator(lambda content: spelt_as(content, answers) or content),
    ]


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a JSON object with two values for one key."""
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            twice = PydanticCustomError("doubled_key", "the key stands twice; give it one value")
            raise ValidationError.from_exception_data(
                "reply", [InitErrorDetails(type=twice, loc=(key,), input=key)]
            )


class Part(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(extra="forbid")

    def problems(self, context: ReplyContext) -> Iterator[str]:
        """What is wrong with this part, held against the record."""
        yield from ()


class Reply(BaseModel):
    """Base of all replies. Checks run only inside `held_against(...)`; else the shape alone counts.

    `choices` are the answers that a judge can give (none: a rewriter's reply). `shown` is the field
    that quotes or numbers are held against. `per_value` names the field that has a part for each
    value (or passage: `numbered`) asked about.
    """

    model_config = ConfigDict(extra="forbid")
    choices: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[str | None] = "story"
    per_value: ClassVar[str | None] = None
    numbered: ClassVar[Literal["value", "passage"]] = "value"

    @classmethod
    def sized(cls, count: int) -> type[Self]:
        """The same reply for exactly `count` values, so that constrained decoding cannot run on."""
        return _sized(cls, count) if cls.per_value and count else cls

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """As pydantic's, but a key with two values, of which that takes the last, is invalid."""
        reply = super().model_validate_json(json_data, **options)
        json.loads(json_data, object_pairs_hook=_each_once)
        return reply

    @model_validator(mode="after")
    def _holds(self) -> Self:
        context = _context.get()
        if context is not None and (problems := list(self.problems(context))):
            raise ValueError("; ".join(problems))
        return self

    def problems(self, context: ReplyContext) -> Iterator[str]:
        """What is wrong with this reply, held against the record."""
        if self.per_value is not None:
            yield from numbered_problems(getattr(self, self.per_value), self.numbered, context)


class JudgingReply(Reply):
    """A reply that answers a judging rubric."""

    def part(self, rubric: str) -> JudgingReply:
        """The part that answers the rubric of this name."""
        return self

    def answers(self, number: int, context: ReplyContext) -> list[Answer]:
        """What it says about one value (0: the record): an answer for each quote, in the reply's
        own words, or one without a quote."""
        raise NotImplementedError


class ValuePart(Part):
    """The answer about one value."""

    value: int

    def answers(self, context: ReplyContext) -> list[Answer]:
        raise NotImplementedError


class _PerValue(JudgingReply):
    per_value: ClassVar[str | None] = "values"
    values: list[Any]

    def answers(self, number: int, context: ReplyContext) -> list[Answer]:
        part: ValuePart = next(part for part in self.values if part.value == number)
        return part.answers(context)


@lru_cache(maxsize=256)
def _sized(cls: type[Reply], count: int) -> type[Any]:
    name = cls.per_value
    assert name is not None
    annotation = cls.model_fields[name].annotation
    parts: Any = {name: (Annotated[annotation, Len(count, count)], ...)}
    return create_model(cls.__name__, __base__=cls, __module__=cls.__module__, **parts)


@lru_cache(maxsize=256)
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a reply."""
    return model.model_json_schema()


# ------------------------------------------------------------ judges


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


class Speech(Part):
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
        known = range(1, context.predicted + 1)
        for number in sorted(set(self.predicted).difference(known)):
            yield f"there is no predicted value {number}; they are numbered from 1 to {len(known)}"

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


class _OneAnswer(JudgingReply):
    shown = None
    quote: str | None
    reason: str
    answer: str

    def problems(self, context: ReplyContext) -> Iterator[str]:
        if context.evidence is None:
            return
        where, needed = context.evidence
        if self.answer not in needed:
            return
        if not self.quote:
            yield f"the answer {self.answer!r} needs a quote from the {where.replace('_', ' ')}"
        elif problem := quote_problem(self.quote, context.texts, where):
            yield problem

    def answers(self, number: int, context: ReplyContext) -> list[Answer]:
        passages = [(None, self.quote)] if self.quote else []
        return answers_of(context, number, self.answer, passages, self.reason)


@lru_cache(maxsize=256)
def one_answer(
    answers: tuple[str, ...],
    name: str = "OwnAnswer",
    told: str = "One question about the record, and what decides it.",
) -> type[JudgingReply]:
    """The reply to one question with these answers, in whatever spelling."""
    kind = spelt_literal(answers)
    made = create_model(name, __base__=_OneAnswer, __doc__=told, answer=(kind, ...))
    made.choices = answers
    return made


YesNo = one_answer(
    YES_NO,
    "YesNo",
    "One question about the record, answered yes or no, with the words that it rests on.",
)


class _Together(JudgingReply):
    """Several questions about the record, each with what decides it."""

    def part(self, rubric: str) -> JudgingReply:
        question = rubric.partition(".")[2]
        fields = type(self).model_fields.items()
        part: JudgingReply = getattr(self, next(n for n, one in fields if one.alias == question))
        return part


@lru_cache(maxsize=256)
def answers_together(questions: tuple[tuple[str, tuple[str, ...]], ...]) -> type[JudgingReply]:
    """The reply to several questions at once, given each one's name and answers."""
    # The names are the user's; under an alias none can hide an attribute of the model.
    parts: dict[str, Any] = {
        f"part_{n}": (one_answer(answers), Field(alias=name))
        for n, (name, answers) in enumerate(questions)
    }
    return create_model("Answers", __base__=_Together, **parts)


class Leak(Part):
    """Words that give a place, nationality or culture away, or explain the norm."""

    quote: str
    kind: Literal["place", "nationality", "culture", "explanation"]


class LeaksFound(JudgingReply):
    """Every leak in the story; none is an answer."""

    choices = YES_NO
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


class Insertion(Part):
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

    per_value: ClassVar[str | None] = "insertions"
    insertions: list[Insertion]


class Rewrite(Part):
    """New words for one numbered passage."""

    passage: int
    text: str

    def problems(self, context: ReplyContext) -> Iterator[str]:
        yield from new_text_problems(self.text, "the new words are", context)


class Rewrites(Reply):
    """New words for each numbered passage, and for nothing else."""

    per_value: ClassVar[str | None] = "rewrites"
    numbered: ClassVar[Literal["value", "passage"]] = "passage"
    rewrites: list[Rewrite]


class Regeneration(Reply):
    """A new situation in place of the old one."""

    story: str

    def problems(self, context: ReplyContext) -> Iterator[str]:
        yield from new_text_problems(self.story, "the story is", context)
        if self.story.strip() == context.texts.get("story", "").strip():
            yield "the story is the old one, word for word"


REPLIES: Mapping[str, type[Reply]] = {
    model.__name__: model
    for model in (
        ValuesReflected,
        SpeechesFound,
        ValuesExtracted,
        LeaksFound,
        Insertions,
        Rewrites,
        Regeneration,
    )
}
"""The forms of a reply that a rubric can name; others are `one_answer` of their answers."""
