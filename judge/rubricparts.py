"""The sections of a rubric file: questions, readings, verdict rule, evidence, examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer, model_validator

Text = Annotated[str, Field(min_length=1)]
Label = Literal["yes", "no", "neutral"]
Word = Annotated[str, Field(pattern=r"^[a-z0-9]+$")]
YES_NO = ("yes", "no")


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Structured(Section):
    """A question whose answer is a typed reply."""

    question: Text
    max_tokens: Annotated[int, Field(ge=16, le=32000)] = 1024


class Step(Section):
    """One question answered by the first token; `yes`/`no` name the answer that it settles.

    Where one of them is left out, that outcome leaves the matter to the next step. `threshold` is
    the least P(yes) (0 to 1) that counts as yes.
    """

    question: Text
    yes: str | None = None
    no: str | None = None
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5


class Question(Section):
    """A further question answered by the first token, for profiles to read beside the steps.

    `words` are the first words that an answer may have. With `swapped` the two fields of the
    rubric's `order` are shown in each other's place.
    """

    question: Text
    words: Annotated[tuple[Word, ...], Field(min_length=2, max_length=6)] = YES_NO
    swapped: bool = False


class Probability(Section):
    """A short decision list of yes/no questions read from log-probabilities.

    The list alone gives an answer. A profile may go by any of its questions and of those in
    `also`, weighed as calibration found best (judge/judging/combining.py). Questions are numbered
    through: the steps first, from 0.
    """

    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=4)]
    also: Annotated[tuple[Question, ...], Field(max_length=16)] = ()

    @model_validator(mode="after")
    def _settles(self) -> Probability:
        for number, step in enumerate(self.steps, 1):
            last = number == len(self.steps)
            if last and not (step.yes and step.no):
                raise ValueError(f"step {number} is the last one and must settle both yes and no")
            if step.yes and step.no and not last:
                raise ValueError(f"step {number} settles both yes and no; no later step is reached")
            if not (step.yes or step.no):
                raise ValueError(f"step {number} settles nothing; name the answer of yes or of no")
        return self

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question, the steps first."""
        return (*(Question(question=step.question) for step in self.steps), *self.also)

    @property
    def answers(self) -> frozenset[str]:
        """Every answer that some step settles."""
        return frozenset(answer for s in self.steps for answer in (s.yes, s.no) if answer)


class Readings(Section):
    structured: Structured
    probability: Probability | None = None


class VerdictRule(Section):
    """Which answer passes: `pass`, another one for records with a certain label, or the label."""

    passes: str | None = Field(default=None, alias="pass")
    by_label: Mapping[Label, str] = {}
    pass_equals: Literal["label"] | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> VerdictRule:
        if (self.passes is None) == (self.pass_equals is None):
            raise ValueError("name either the answer that passes (pass) or pass_equals: label")
        return self

    def expected(self, label: str | None) -> str:
        """The answer that passes for a record with this label."""
        if self.pass_equals:
            assert label is not None
            return label
        assert self.passes is not None
        return next((answer for key, answer in self.by_label.items() if key == label), self.passes)


class Evidence(Section):
    """The field that a reply must quote, and the answers that need the quote."""

    field: str
    answers: frozenset[str]

    @field_serializer("answers")
    def _sorted(self, answers: frozenset[str]) -> list[str]:
        """In one order: that of a set differs from process to process, and the digest with it."""
        return sorted(answers)


class Example(Section):
    """A worked example of our own making: material, the value asked about if any, and the reply."""

    text: Text
    reply: Text
