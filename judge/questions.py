"""What a rubric is made of: questions by method, the answers that pass, evidence, examples."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_serializer, model_validator

from judge.replies import YES_NO
from judge.templates import fault
from judge.yamlfile import Problem

Text = Annotated[str, Field(min_length=1)]
Label = Literal["yes", "no", "neutral"]
Word = Annotated[str, Field(pattern=r"^[a-z0-9]+$")]

MOST_ANSWERS = 20
"""Answers that a question may have: as many first tokens as OpenAI's protocol gives."""


_BOUND = re.compile(r"(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """What a score must be to pass, such as `>= 4`."""

    sign: str
    limit: float

    @classmethod
    def of(cls, text: object) -> Bound | None:
        """The bound in a text such as `>= 4`; None if it is none."""
        found = _BOUND.fullmatch(text.strip()) if isinstance(text, str) else None
        return cls(found[1], float(found[2])) if found else None

    def holds(self, score: float) -> bool:
        return _SIGNS[self.sign](score, self.limit)


def scale_of(answers: Sequence[str]) -> tuple[float, ...] | None:
    """The answers as rising numbers; None where they are labels."""
    try:
        numbers = tuple(float(answer) for answer in answers)
    except ValueError:
        return None
    return numbers if len(numbers) > 1 and list(numbers) == sorted({*numbers}) else None


def _empty(content: object) -> bool:
    return not content


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Structured(Section):
    """A question whose answer is a typed reply."""

    question: Text
    max_tokens: Annotated[int, Field(ge=16, le=32000)] = 1024


Words = Annotated[tuple[Word, ...], Field(min_length=2, max_length=MOST_ANSWERS)]
Passages = Annotated[tuple[Word, ...], Field(exclude_if=_empty)]


class Step(Section):
    """One question answered by the first token; `yes`/`no` name the answer that it settles, else
    the next step does. `threshold` is the least P(yes) (0 to 1) that counts as yes. Other `words`
    need `passages`, as in `Question`, which say what counts as yes."""

    question: Text
    words: Annotated[Words, Field(exclude_if=YES_NO.__eq__)] = YES_NO
    passages: Passages = ()
    yes: str | None = None
    no: str | None = None
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5

    @model_validator(mode="after")
    def _yes_or_no(self) -> Step:
        if self.words != YES_NO and not self.passages:
            raise ValueError("a step is answered yes or no; name other words' yes in passages")
        return self

    @property
    def asked(self) -> Question:
        return Question(question=self.question, words=self.words, passages=self.passages)


class Question(Section):
    """A further question answered by the first token, one of `words`, for profiles to read.

    With `swapped` the two fields of the rubric's `order` are shown in each other's place. With
    `passages`, some of the words, the question is put to each passage of the text instead of the
    whole (judge/judging/passages.py): yes is as likely as these words together in the passage
    where they are likeliest. With `overlap` no model is asked: yes is as likely as the share of the
    value's words that one sentence of the record has (judge/judging/overlap.py).
    """

    question: Text
    words: Words = YES_NO
    swapped: bool = False
    passages: Passages = ()
    overlap: Annotated[bool, Field(exclude_if=operator.not_)] = False

    @model_validator(mode="after")
    def _sought(self) -> Question:
        if self.overlap and (self.words != YES_NO or self.passages):
            raise ValueError("overlap is a share: its words are yes and no")
        if unknown := sorted({*self.passages} - {*self.words}):
            raise ValueError(f"passages: {unknown[0]!r} is none of the words")
        return self


class Logprobs(Section):
    """How an answer is read from log-probabilities: by a decision list of yes/no questions
    (`steps`), or by one question whose words stand for the rubric's answers in their order
    (`choices`; a comparison has two, the second one swapped, and both must agree).

    A profile may go by any of these questions and of those in `also`, weighed as calibration found
    best. Questions are numbered through, in this order.
    """

    steps: Annotated[tuple[Step, ...], Field(max_length=4)] = ()
    choices: Annotated[tuple[Question, ...], Field(max_length=2, exclude_if=_empty)] = ()
    also: Annotated[tuple[Question, ...], Field(max_length=16)] = ()

    @model_validator(mode="after")
    def _settles(self) -> Logprobs:
        if bool(self.steps) == bool(self.choices):
            raise ValueError("name either steps or choices")
        if any(question.overlap or question.passages for question in self.choices):
            raise ValueError("choices are about the whole; overlap and passages do not suit them")
        for number, step in enumerate(self.steps, 1):
            last, settled = number == len(self.steps), bool(step.yes) + bool(step.no)
            if settled != 1 + last:
                wanted = "both yes and no" if last else "one of yes and no, the next step the rest"
                raise ValueError(f"step {number} must settle {wanted}")
        return self

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question, the deciding ones first."""
        steps = (step.asked for step in self.steps)
        return (*steps, *self.choices, *self.also)

    def misfits(
        self, answers: Sequence[str], passing: Iterable[str], ordered: bool
    ) -> Iterator[str]:
        """Why first tokens cannot give these answers, of which some must be `passing`."""
        if not ordered and any(question.swapped for question in self.questions):
            yield "a swapped question needs an order to swap"
        if any(len(one.words) != len(answers) for one in self.choices):
            yield "the words of choices stand for the answers, one for each"
        settled = {answer for step in self.steps for answer in (step.yes, step.no) if answer}
        for unknown in sorted(settled - {*answers}):
            yield f"{unknown!r} is none of the answers {', '.join(answers)}"
        for unreachable in sorted({*passing} - settled if self.steps else ()):
            yield f"no step of the list answers {unreachable!r}"


class Methods(Section):
    structured: Structured
    logprobs: Logprobs | None = None

    def unrendered(self, structured: Collection[str], token: Collection[str]) -> Iterator[Problem]:
        """The questions that do not render with the variables of their method and any label."""
        asked: list[tuple[str, Structured | Step | Question, Collection[str]]]
        asked = [("structured", self.structured, structured)]
        for part in ("steps", "choices", "also") if self.logprobs else ():
            several = enumerate(getattr(self.logprobs, part))
            asked += [(f"logprobs.{part}.{n}", one, token) for n, one in several]
        labels = [{"label": label} for label in get_args(Label)]
        for place, one, variables in asked:
            if problem := fault(one.question, variables, labels):
                yield (*place.split("."), "question"), problem


class VerdictRule(Section):
    """Which answers pass: `pass` (one, several, or a bound on scores), another one for records
    with a certain label, or the label."""

    passes: str | tuple[str, ...] | None = Field(default=None, alias="pass")
    by_label: Mapping[Label, str] = {}
    pass_equals: Literal["label"] | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> VerdictRule:
        if (self.passes is None) == (self.pass_equals is None):
            raise ValueError("name either the answer that passes (pass) or pass_equals: label")
        return self

    @property
    def bound(self) -> Bound | None:
        """What a score must be to pass; None where answers pass by name."""
        return Bound.of(self.passes)

    def misfit(self, answers: Sequence[str], scale: Sequence[float] | None) -> str | None:
        """Why the rule does not suit these answers, which are scores if there is a scale."""
        bound = self.bound
        if self.passes is not None and not self.passes:
            return f"say what passes, such as {'>= 4' if scale else answers[0]}"
        if bound and not scale:
            return f"{self.passes!r} is a bound on scores, and the answers are labels"
        if scale and not bound:
            return "scores pass by a bound, such as '>= 4'"
        reached = {bound.holds(score) for score in scale or ()} if bound else ()
        if len(reached) == 1:
            return f"{'every' if True in reached else 'no'} score passes {self.passes!r}"
        return None

    def passing(self, answers: Sequence[str], label: str | None) -> tuple[str, ...]:
        """The answers that pass for a record with this label, even ones that `answers` lacks."""
        if self.pass_equals:
            assert label is not None
            return (label,)
        if turned := [answer for key, answer in self.by_label.items() if key == label]:
            return tuple(turned)
        if bound := self.bound:
            return tuple(answer for answer in answers if bound.holds(float(answer)))
        assert self.passes is not None
        return (self.passes,) if isinstance(self.passes, str) else self.passes


class Control(Section):
    """What a judge must look at: the `field` that decides (`value` for a check about values).

    Calibration takes it out, and takes it from another record, to see whether the judge reads it.
    `swapped` is the answer that a record with another's field must get, where that is certain.
    """

    field: str
    swapped: str | None = None

    @property
    def answers(self) -> frozenset[str]:
        return frozenset([self.swapped] if self.swapped else ())

    @model_validator(mode="before")
    @classmethod
    def _in_full(cls, given: object) -> object:
        """A text alone is the field."""
        return {"field": given} if isinstance(given, str) else given


class Evidence(Section):
    """The field that a reply must quote, and the answers that need the quote."""

    field: str
    answers: frozenset[str]

    @field_serializer("answers")
    def _sorted(self, answers: frozenset[str]) -> list[str]:
        """In one order, because that of a set differs from process to process."""
        return sorted(answers)


class Example(Section):
    """A worked example: the material, the value asked about if any, and the reply."""

    text: Text
    reply: Text
