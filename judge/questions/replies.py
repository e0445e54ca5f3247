"""Typed replies: the base of all forms, the answer to one question, and several questions at once.

A reply is validated against its record (`ReplyContext`), which is passed in a context variable and
not as instructor's `context`: given one, instructor renders the messages as Jinja templates, and
record text must never be a template (docs/decisions/0003-record-is-data.md). Other forms are found
by the entry points `judge.replies`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
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

from judge import plugins
from judge.problems import problems_of
from judge.questions.evidence import ReplyContext, quote_problem
from judge.records.answers import spelt_as
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
    passages: Sequence[tuple[str | None, str | None]],
    reason: str,
    predicted: tuple[int, ...] = (),
) -> list[Answer]:
    """One answer per quoted passage (character, quote), or one answer without a quote."""
    name = context.names.get(answer, answer)
    verdict = Verdict.ANSWERED
    if context.passing is not None:
        verdict = Verdict.PASS if name in context.passing else Verdict.FAIL
    return [
        Answer(
            value=context.entries.get(number),
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
    """The type of a field that holds one of `answers`, in any spelling."""
    return Annotated[
        Literal[answers],
        BeforeValidator(lambda content: spelt_as(content, answers) or content),
    ]


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a JSON object with two values for one key."""
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            twice = PydanticCustomError("doubled_key", "duplicate key; give it one value")
            raise ValidationError.from_exception_data(
                "reply", [InitErrorDetails(type=twice, loc=(key,), input=key)]
            )


class ReplyPart(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(extra="forbid")

    def problems(self, context: ReplyContext) -> Iterator[str]:
        """What is wrong with this part, given the record."""
        yield from ()


class Reply(BaseModel):
    """Base of all replies. `problems` are checked only inside `held_against(...)`, else the shape.

    `choices` are the answers that a judge can give (none: a rewriter's reply). `shown` is the field
    in which quotes or numbers are checked. `parts` names the list with one part for each entry (or
    passage: see `numbered`) asked about.
    """

    model_config = ConfigDict(extra="forbid")
    choices: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[str | None] = None
    parts: ClassVar[str | None] = None
    numbered: ClassVar[Literal["value", "passage"]] = "value"

    @classmethod
    def sized(cls, count: int) -> type[Self]:
        """This reply with exactly `count` parts, so that constrained decoding cannot go on."""
        return _sized(cls, count) if cls.parts and count else cls

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """As in pydantic, but a duplicate key is invalid; pydantic would take the last value."""
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
        """What is wrong with this reply, given the record: the numbers of its parts, then each
        part."""
        if self.parts is None:
            return
        kind, parts = self.numbered, getattr(self, self.parts)
        numbers = context.entries if kind == "value" else range(1, context.passages + 1)
        counts = Counter(getattr(part, kind) for part in parts)
        for number in sorted(counts):
            if number not in numbers:
                yield f"{kind} {number} was not asked about"
            elif counts[number] > 1:
                yield f"{kind} {number} is answered more than once"
        if unanswered := [str(number) for number in numbers if number not in counts]:
            yield f"{kind} {', '.join(unanswered)} is not answered"
        for part in parts:
            for problem in part.problems(context):
                yield f"{kind} {getattr(part, kind)}: {problem}"


class NewFields(Reply):
    """New fields of a record, each a text (`judge generate`)."""

    def problems(self, context: ReplyContext) -> Iterator[str]:
        for name in type(self).model_fields:
            text = getattr(self, name)
            if not text.strip():
                yield f"{name} is empty"
            elif context.mark and context.mark in text:
                yield f"{name} holds {context.mark}; that mark belongs to the message, leave it out"


@lru_cache(maxsize=256)
def new_fields(fields: tuple[str, ...]) -> type[NewFields]:
    """The type of a reply that writes these fields."""
    parts: dict[str, Any] = dict.fromkeys(fields, (str, ...))
    return create_model("NewFields", __base__=NewFields, __module__=__name__, **parts)


class JudgingReply(Reply):
    """A reply that answers a judging rubric."""

    def part(self, rubric: str) -> JudgingReply:
        """The part that answers the rubric with this name."""
        return self

    def answers(self, number: int, context: ReplyContext) -> list[Answer]:
        """The answers about one entry (0: the record): one per quote, as spelt in the reply, or one
        without a quote."""
        raise NotImplementedError


@lru_cache(maxsize=256)
def _sized(cls: type[Reply], count: int) -> type[Any]:
    name = cls.parts
    assert name is not None
    annotation = cls.model_fields[name].annotation
    parts: Any = {name: (Annotated[annotation, Len(count, count)], ...)}
    return create_model(cls.__name__, __base__=cls, __module__=cls.__module__, **parts)


@lru_cache(maxsize=256)
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a reply."""
    return model.model_json_schema()


# ------------------------------------------------------------ judges


class _OneAnswer(JudgingReply):
    quote: str | None
    reason: str
    answer: str

    def problems(self, context: ReplyContext) -> Iterator[str]:
        if context.evidence is None:
            return
        where, answers = context.evidence
        if context.names.get(self.answer, self.answer) not in answers:
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
    description: str = "One question about the record, and what decides it.",
) -> type[JudgingReply]:
    """The type of a reply to one question with these answers, in any spelling."""
    kind = spelt_literal(answers)
    reply_type = create_model(name, __base__=_OneAnswer, __doc__=description, answer=(kind, ...))
    reply_type.choices = answers
    return reply_type


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
        part: JudgingReply = getattr(self, next(n for n, info in fields if info.alias == question))
        return part


@lru_cache(maxsize=256)
def answers_together(questions: tuple[tuple[str, tuple[str, ...]], ...]) -> type[JudgingReply]:
    """The type of a reply to several questions, from each one's name and answers."""
    # The names are the user's. As aliases they cannot hide an attribute of the model.
    parts: dict[str, Any] = {
        f"part_{n}": (one_answer(answers), Field(alias=name))
        for n, (name, answers) in enumerate(questions)
    }
    return create_model("Answers", __base__=_Together, **parts)


_FORMS = "judge.replies"
"""The entry-point group of the reply forms that a rubric can name. The default is `one_answer`."""


def form_names() -> tuple[str, ...]:
    """The names of the reply forms that a rubric can use."""
    return plugins.names(_FORMS)


def whole_reply(reply: str, form: type[Reply]) -> str:
    """A reply in a rubric's file, with a null for a quote that it leaves out: YAML's null is
    refused. Raises ValueError, with the form, for a text that is no such reply."""
    problem = "it is not JSON"
    try:
        keys = json.loads(reply)
        if isinstance(keys, dict) and "quote" in form.model_fields:
            whole = json.dumps({"quote": None, **keys}, ensure_ascii=False)
            reply = reply if "quote" in keys else whole
        form.model_validate_json(reply)
        return reply
    except ValidationError as error:
        place, problem = next(iter(problems_of(error, form.model_fields)))
        problem = ": ".join(filter(None, (".".join(place), problem)))
    except ValueError:
        pass
    raise ValueError(f"{problem}; write its {', '.join(form.model_fields)}")


@lru_cache(maxsize=256)
def form_of(name: str | None) -> type[Reply] | None:
    """The reply form with this name; None if `name` is None or unknown."""
    form: type[Reply] | None = plugins.load(_FORMS, name, Reply) if name else None
    return form
