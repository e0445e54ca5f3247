"""A rubric in short: a name, a question, and which of its answers pass.

`Ask` holds what a user writes; `long_form` is the whole rubric as plain data, with a question for
each method. Every key is held against those before it, so that all mistakes are told at once.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from judge.questions import (
    MOST_ANSWERS,
    YES_NO,
    Bound,
    Evidence,
    Example,
    Section,
    Text,
    scale_of,
)
from judge.subject import Kind
from judge.templates import fault


class Ask(Section):
    """A question with its answers.

    Without `answers` it is answered yes or no, and yes passes. Answers are labels, of which `pass`
    names those that pass, or rising numbers, which are scores: `pass` is a bound, such as `>= 4`.
    `compare` names two fields: the question is which of them is better, and the answer is the name
    of one; both pass unless `pass` names one.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text | None = None
    source: Text = "the user's own"
    kinds: tuple[Kind, ...] | None = None
    needs: tuple[str, ...] = ()
    fields: tuple[Text, ...] = ()
    question: str
    compare: tuple[Text, Text] | None = None
    answers: Annotated[tuple[Text, ...], Field(max_length=MOST_ANSWERS)] = ()
    passes: Annotated[str | tuple[str, ...] | None, Field(alias="pass")] = None
    evidence: Evidence | None = None
    max_tokens: Annotated[int, Field(ge=16, le=32000)] = 1024
    examples: tuple[Example, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _nothing_passes(cls, given: Any) -> Any:
        """Answers of one's own without a word on what passes: `pass` is empty, not left out."""
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

    @field_validator("evidence")
    @classmethod
    def _shown(cls, evidence: Evidence | None, info: ValidationInfo) -> Evidence | None:
        fields = info.data.get("fields", ())
        if evidence and fields and evidence.field not in fields:
            raise ValueError(f"{evidence.field!r} is not among the fields")
        return evidence

    # ------------------------------------------------------------ the whole rubric

    def long_form(self) -> dict[str, Any]:
        """The rubric as plain data."""
        own = self.compare or self.answers
        fields = tuple(dict.fromkeys((*self.fields, *(self.compare or ()))))
        choices: list[dict[str, Any]] = [
            {"question": self._choice(own), "words": _words(own, self.compare)}
        ]
        if self.compare:
            choices.append({**choices[0], "swapped": True})
        step = {"question": f"{self.question} Answer Yes or No.", "yes": "yes", "no": "no"}
        structured = f"{self.question}\n\n{self._told(own)}"
        return {
            **({"kinds": self.kinds} if self.kinds else {}),
            "name": self.name,
            "title": self.title or self.question,
            "source": self.source,
            "needs": self.needs,
            "fields": fields,
            "order": self.compare,
            "reply": "OwnAnswer" if own else "YesNo",
            "answers": own,
            "verdict": {"pass": self.passes or self.compare or YES_NO[0]},
            "evidence": self.evidence,
            "methods": {
                "structured": {"question": structured, "max_tokens": self.max_tokens},
                "logprobs": {"choices": choices} if own else {"steps": [step]},
            },
            "examples": self.examples,
        }

    def _told(self, own: Sequence[str]) -> str:
        """How the question is answered by a typed reply."""
        if self.compare:
            last = "answer 1 or 2, for the better one"
        elif scale_of(own):
            last = f"answer with one of the scores {', '.join(own)}"
        else:
            last = f"answer {_one_of(own or YES_NO)}"
        return f"Quote the words that decide it exactly, or null; give a short reason; {last}."

    def _choice(self, own: Sequence[str]) -> str:
        """The question whose first token is the answer's word."""
        words = _words(own, self.compare)
        if self.compare:
            return f"{self.question} Answer 1 or 2, for the better one."
        if words == own:
            return f"{self.question} Answer with one of the numbers {', '.join(own)}."
        listed = "\n".join(f"{w.upper()}. {one}" for w, one in zip(words, own, strict=True))
        return f"{self.question}\n{listed}\nAnswer with the letter."


def _words(own: Sequence[str], compare: object) -> tuple[str, ...]:
    """The words that stand for the answers: a first token each, whatever the tokenizer."""
    if compare:
        return ("1", "2")
    if all(len(answer) == 1 and answer in string.digits for answer in own):
        return tuple(own)
    return tuple(string.ascii_lowercase[: len(own)])


def _one_of(answers: Sequence[str]) -> str:
    return f"{', '.join(answers[:-1])} or {answers[-1]}"
