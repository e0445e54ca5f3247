"""A rubric in short: a name, a question, and which of its answers pass.

`Ask` and `AskTogether` hold what a user writes; a long form is a whole rubric as plain data, with a
question for each method. Every key is held against those before it, so that all mistakes are told
at once.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from judge.errors import UsageError
from judge.questions import (
    MOST_ANSWERS,
    YES_NO,
    Bound,
    Control,
    Evidence,
    Example,
    Section,
    Text,
    scale_of,
)
from judge.subject import Kind
from judge.templates import fault

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Length = Annotated[int, Field(ge=16, le=32000)]


class Asked(Section):
    """A question with its answers.

    Without `answers` it is answered yes or no, and yes passes. Answers are labels, of which `pass`
    names those that pass, or rising numbers, which are scores: `pass` is a bound, such as `>= 4`.
    `compare` names two fields: the question is which of them is better, and the answer is the name
    of one; both pass unless `pass` names one.
    """

    needs: tuple[str, ...] = ()
    question: str
    compare: tuple[Text, Text] | None = None
    answers: Annotated[tuple[Text, ...], Field(max_length=MOST_ANSWERS)] = ()
    passes: Annotated[str | tuple[str, ...] | None, Field(alias="pass")] = None

    @model_validator(mode="before")
    @classmethod
    def _in_full(cls, given: object) -> object:
        """A text alone is the question; with answers and no word on what passes, `pass` is empty,
        not left out."""
        if isinstance(given, str):
            return {"question": given}
        if not isinstance(given, Mapping):
            raise ValueError("write the question's text, or a mapping of its keys")
        return {"pass": "", **given} if given.get("answers") else given

    @field_validator("question")
    @classmethod
    def _renders(cls, question: str, info: ValidationInfo) -> str:
        known = {"label", *(name for name in info.data.get("needs", ()) if name != "values")}
        if not question.strip():
            raise ValueError("there is no question")
        if problem := fault(question, known):
            raise ValueError(problem)
        return question.strip()

    @field_validator("compare")
    @classmethod
    def _two(cls, compare: tuple[str, str] | None) -> tuple[str, str] | None:
        if compare and compare[0] == compare[1]:
            raise ValueError("name two different fields")
        return compare

    @field_validator("answers")
    @classmethod
    def _apart(cls, answers: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("compare"):
            raise ValueError("a comparison is answered by the name of a field; leave them out")
        if len({*answers}) < max(2, len(answers)):
            raise ValueError("two different ones at least are needed, each once")
        if problem := fault(" ".join(answers), ()):
            raise ValueError(problem)
        numbers = [answer for answer in answers if scale_of((answer, "1e300"))]
        if len(numbers) == len(answers) and scale_of(answers) is None:
            raise ValueError("scores stand in rising order")
        return answers

    @field_validator("passes")
    @classmethod
    def _answered(
        cls, passes: str | tuple[str, ...] | None, info: ValidationInfo
    ) -> str | tuple[str, ...] | None:
        if not {"answers", "compare"} <= info.data.keys():
            return passes  # What passes cannot be said of answers that are wrong.
        answers = info.data["compare"] or info.data["answers"] or YES_NO
        scale, bound = scale_of(answers), Bound.of(passes)
        if not passes:
            told = "'>= 4'" if scale else answers[0]
            raise ValueError(f"say what passes, such as {told}")
        if scale:
            reached = [bound.holds(score) for score in scale] if bound else []
            if bound is None:
                raise ValueError("scores pass by a bound, such as '>= 4'")
            if all(reached) or not any(reached):
                which = "every" if all(reached) else "no"
                raise ValueError(f"{which} score passes {passes!r}")
        else:
            for one in (passes,) if isinstance(passes, str) else passes:
                if one not in answers:
                    raise ValueError(f"{one!r} is none of the answers {', '.join(answers)}")
        return passes

    @property
    def own(self) -> tuple[str, ...]:
        """Its answers, where they are others than yes and no."""
        return self.compare or self.answers

    def methods(self, structured: str, max_tokens: int) -> dict[str, Any]:
        """What makes a rubric's answers, verdict and methods of it, as plain data."""
        own, words = self.own, _words(self.own, self.compare)
        choices: list[dict[str, Any]] = [{"question": self._choice(own), "words": words}]
        if self.compare:
            choices.append({**choices[0], "swapped": True})
        step = {"question": f"{self.question} Answer Yes or No.", "yes": "yes", "no": "no"}
        return {
            "reply": "OwnAnswer" if own else "YesNo",
            "answers": own,
            "verdict": {"pass": self.passes or self.compare or YES_NO[0]},
            "methods": {
                "structured": {"question": structured, "max_tokens": max_tokens},
                "logprobs": {"choices": choices} if own else {"steps": [step]},
            },
        }

    def told(self) -> str:
        """How the question is answered by a typed reply."""
        if self.compare:
            return "answer 1 or 2, for the better one"
        if scale_of(self.answers):
            return f"answer with one of the scores {', '.join(self.answers)}"
        return f"answer {_one_of(self.answers or YES_NO)}"

    def _choice(self, own: Sequence[str]) -> str:
        """The question whose first token is the answer's word."""
        words = _words(own, self.compare)
        if self.compare:
            return f"{self.question} Answer 1 or 2, for the better one."
        if words == own:
            return f"{self.question} Answer with one of the numbers {', '.join(own)}."
        listed = "\n".join(f"{w.upper()}. {one}" for w, one in zip(words, own, strict=True))
        return f"{self.question}\n{listed}\nAnswer with the letter."


class Ask(Asked):
    """A file of one question."""

    name: Name
    title: Text | None = None
    source: Text = "the user's own"
    kinds: tuple[Kind, ...] | None = None
    fields: tuple[Text, ...] = ()
    evidence: Evidence | None = None
    control: Control | None = None
    max_tokens: Length = 1024
    examples: tuple[Example, ...] = ()

    @field_validator("evidence", "control")
    @classmethod
    def _shown(
        cls, one: Evidence | Control | None, info: ValidationInfo
    ) -> Evidence | Control | None:
        fields = (*info.data.get("fields", ()), *(info.data.get("compare") or ()))
        if one and fields and one.field not in fields:
            raise ValueError(f"{one.field!r} is not among the fields")
        return one

    def long_form(self) -> dict[str, Any]:
        """The rubric as plain data."""
        structured = f"{self.question}\n\nQuote the words that decide it exactly, or null; "
        structured += f"give a short reason; {self.told()}."
        return {
            **_common(self),
            "name": self.name,
            "title": self.title or self.question,
            "needs": self.needs,
            "fields": tuple(dict.fromkeys((*self.fields, *(self.compare or ())))),
            "order": self.compare,
            "evidence": self.evidence,
            "control": self.control,
            "examples": self.examples,
            **self.methods(structured, self.max_tokens),
        }


class AskTogether(Section):
    """A file of several questions, by name, that are put in one reply; each is a check."""

    name: Name
    source: Text = "the user's own"
    kinds: tuple[Kind, ...] | None = None
    fields: tuple[Text, ...] = ()
    questions: Annotated[Mapping[Name, Asked], Field(min_length=1, max_length=12)]
    max_tokens: Length = 2048

    @field_validator("questions")
    @classmethod
    def _one_order(cls, questions: Mapping[str, Asked]) -> Mapping[str, Asked]:
        for name, one in questions.items():
            if one.compare:
                raise ValueError(f"{name}.compare: a comparison is asked in a file of its own")
        return questions

    def long_forms(self) -> list[dict[str, Any]]:
        """A rubric for each question as plain data; all have the same structured question."""
        listed = (f"{k}: {one.question} ({one.told()})" for k, one in self.questions.items())
        structured = "\n\n".join(("Answer each of these questions by itself.", *listed))
        structured += "\n\nFor each one quote the words that decide it exactly, or null; give a "
        structured += "short reason; then the answer."
        needs = tuple(dict.fromkeys(n for one in self.questions.values() for n in one.needs))
        return [
            {
                **_common(self),
                "name": f"{self.name}.{name}",
                "title": one.question,
                "needs": needs,
                "fields": self.fields,
                "together": {k: each.own or YES_NO for k, each in self.questions.items()},
                **one.methods(structured, self.max_tokens),
            }
            for name, one in self.questions.items()
        ]


_FLAGS = {"question": "--ask", "fields": "--on", "answers": "--answers", "pass": "--pass"}


def typed(
    question: str, fields: Sequence[str], answers: Sequence[str] = (), passes: str | None = None
) -> Ask:
    """A question on the command line.

    Raises UsageError with every mistake, each with its flag.
    """
    given: dict[str, Any] = {"name": "question", "question": question.strip(), "fields": fields}
    given |= {"answers": answers} if answers else {}
    if passes:
        # One label, several with commas between them, or a bound.
        given["pass"] = tuple(map(str.strip, passes.split(","))) if "," in passes else passes
    try:
        return Ask.model_validate(given)
    except ValidationError as error:
        told = [
            f"{_FLAGS[str(one['loc'][0])]}: {one['msg'].removeprefix('Value error, ')}"
            for one in error.errors(include_url=False)
        ]
        raise UsageError("\n".join(told)) from error


def _common(asked: Ask | AskTogether) -> dict[str, Any]:
    kinds = {"kinds": asked.kinds} if asked.kinds else {}
    return {"source": asked.source, **kinds}


def _words(own: Sequence[str], compare: object) -> tuple[str, ...]:
    """The words that stand for the answers: a first token each, whatever the tokenizer."""
    if compare:
        return ("1", "2")
    if all(len(answer) == 1 and answer in string.digits for answer in own):
        return tuple(own)
    return tuple(string.ascii_lowercase[: len(own)])


def _one_of(answers: Sequence[str]) -> str:
    return f"{', '.join(answers[:-1])} or {answers[-1]}"
