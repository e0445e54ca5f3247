"""The parts of a rubric: questions for the first token, what passes, quotes, controls, examples."""

from __future__ import annotations

import json
import operator
import re
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_serializer,
    model_validator,
)

from judge.problems import Problems, no_such_key
from judge.questions.replies import YES_NO
from judge.records.answers import spelt_as
from judge.verdict import Verdict

Text = Annotated[str, Field(min_length=1)]
Label = Literal["yes", "no", "neutral"]


def _plain_word(word: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+", word):
        raise ValueError("a word has small letters and digits, as in yes")
    return word


Word = Annotated[str, AfterValidator(_plain_word)]

MAX_ANSWERS = 20
"""Most answers of a question: OpenAI's protocol returns this many first tokens."""

_BOUND = re.compile(r"(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)")
_RANGE = re.compile(r"\s*(-?\d+)\s*[-\u2013]\s*(\d+)\s*")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound that a score must satisfy to pass, such as `>= 4`."""

    sign: str
    limit: float

    @classmethod
    def of(cls, text: str) -> Bound | None:
        """The bound in a text such as `>= 4`; None if it is not one."""
        match = _BOUND.fullmatch(text.strip())
        return cls(match[1], float(match[2])) if match else None

    def holds(self, score: float) -> bool:
        return _SIGNS[self.sign](score, self.limit)


EQUALS_LABEL = "= label"
"""The value of `pass` if the answer must be the record's label."""

NONE = "none of these"
"""The answer added by the key `none`: no other answer fits."""

COUNTED = "= none"
"""The value of `pass` if answers are counted, and none passes or fails."""

TIE = "tie"
"""The answer of a comparison that neither field is better."""


@dataclass(frozen=True)
class PassRule:
    """Which of the `answers` pass.

    Args:
        passes: the answers that pass; or one bound, `= label`, or `= none` (answers are counted).
        by_label: the answer that passes instead for records with this label.
        answers: all answers of the rubric.
    """

    passes: tuple[str, ...]
    by_label: Mapping[Any, str]
    answers: tuple[str, ...]

    @cached_property
    def equals_label(self) -> bool:
        """Whether the answer must be the record's label to pass."""
        return self.passes == (EQUALS_LABEL,)

    @cached_property
    def counts(self) -> bool:
        """Whether answers are only counted, and neither pass nor fail."""
        return self.passes == (COUNTED,)

    @cached_property
    def bound(self) -> Bound | None:
        """The bound that a score must satisfy; None if answers pass by name."""
        return Bound.of(self.passes[0]) if len(self.passes) == 1 else None

    def passing(self, label: str | None) -> tuple[str, ...]:
        """The answers that pass for a record with this label; all, if they are only counted.

        They may include answers that are not in `answers`.
        """
        if self.counts:
            return self.answers
        if self.equals_label:
            assert label is not None
            return (spelt_as(label, self.answers) or label,)
        if label in self.by_label:
            return (self.by_label[label],)
        if bound := self.bound:
            return tuple(answer for answer in self.answers if bound.holds(float(answer)))
        return self.passes

    def verdict(self, answer: str, label: str | None) -> Verdict:
        """The verdict of this answer about a record with this label."""
        if self.counts:
            return Verdict.ANSWERED
        return Verdict.PASS if answer in self.passing(label) else Verdict.FAIL

    def passing_ever(self, skipped: Collection[str]) -> set[str]:
        """Every answer that passes for at least one label not in `skipped`."""
        if self.equals_label:
            return set(self.answers)
        labels = set(get_args(Label)) - set(skipped)
        return {answer for label in labels for answer in self.passing(label)}

    def fault(self) -> str | None:
        """What is wrong with the rule, such as that no answer or every answer passes; else None."""
        scale, bound = scale_of(self.answers), self.bound
        if self.counts or (self.by_label and (bound or self.equals_label)):
            return "pass_by_label needs answers that pass by name" if self.by_label else None
        if not all(self.passes):
            return f"say what passes, such as {'>= 4' if scale else self.answers[0]}"
        if bound and not scale:
            return f"{self.passes[0]!r} is a bound on scores, and the answers are labels"
        if scale and not bound and not self.equals_label:
            return "scores pass by a bound, such as '>= 4'"
        verdicts = {bound.holds(score) for score in scale or ()} if bound else ()
        if len(verdicts) == 1:
            return f"{'every' if True in verdicts else 'no'} score passes {self.passes[0]!r}"
        return None


def scale_of(answers: Sequence[str]) -> tuple[float, ...] | None:
    """The answers as rising numbers; None if they are labels."""
    try:
        numbers = tuple(float(answer) for answer in answers)
    except ValueError:
        return None
    return numbers if len(numbers) > 1 and list(numbers) == sorted({*numbers}) else None


def scores_of_range(answers: Any) -> Any:
    """The scores of a range such as `1-5`; anything else unchanged.

    Raises:
        ValueError: it has more scores than a question has answers.
    """
    single = answers
    if isinstance(answers, list | tuple) and len(answers) == 1:
        single = answers[0]
    match = _RANGE.fullmatch(single) if isinstance(single, str) else None
    if match is None or (first := int(match[1])) >= (last := int(match[2])):
        return answers
    if (count := last - first + 1) > MAX_ANSWERS:
        raise ValueError(f"{single} is {count} scores, and a question has {MAX_ANSWERS} at most")
    return tuple(map(str, range(first, last + 1)))


_FEW = 6
"""Most keys of a section that a message about an unknown one lists."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _name_the_keys(cls, content: Any) -> Any:
        """Refuse an unknown key with the known ones, where these are few."""
        names = [field.alias or name for name, field in cls.model_fields.items()]
        unknown = [*map(str, content)] if isinstance(content, dict) and len(names) <= _FEW else []
        if problems := [((n,), no_such_key(n, names, all=True)) for n in unknown if n not in names]:
            raise Problems(problems)
        return content


class FirstToken(Section):
    """A question answered by the first token, with one of `words`.

    Args:
        means: the rubric's answer for each word. A word without one leaves the answer to the next
            question. A question without `means` decides nothing by itself; profiles weigh it.
        swap: two fields that are shown in each other's place.
        passages: some of the words. The question is asked about each passage of the text
            (judge/judging/passages.py) and answered yes or no; P(yes) is the largest sum, over the
            passages, of these words' probabilities.
        overlap: no model is asked. P(yes) is the largest share of the entry's words in one sentence
            of the record (judge/judging/overlap.py).
    """

    question: Text
    words: Annotated[tuple[Word, ...], Field(min_length=2, max_length=MAX_ANSWERS)] = YES_NO
    means: Mapping[Word, Text] = {}
    swap: tuple[Text, Text] | None = None
    passages: tuple[Word, ...] = ()
    overlap: bool = False

    @model_validator(mode="before")
    @classmethod
    def _question_alone(cls, content: object) -> object:
        return {"question": content} if isinstance(content, str) else content

    @model_validator(mode="after")
    def _words_fit(self) -> FirstToken:
        if self.overlap and (self.words != YES_NO or self.passages):
            raise ValueError("overlap has the words yes and no, and no passages")
        for name, words, all_words in (
            ("passages", {*self.passages}, self.words),
            ("means", {*self.means}, self.outcomes),
        ):
            if unknown := sorted(words - {*all_words}):
                raise ValueError(f"{name}: {unknown[0]!r} is not one of the words")
        return self

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The question's outcomes; each has a probability."""
        return YES_NO if self.passages else self.words

    @property
    def settles(self) -> bool:
        """Whether each of its words gives an answer."""
        return self.means.keys() == {*self.outcomes}


class Control(Section):
    """The `field` that decides the answer, or the entry, such as `value`.

    Calibration removes it, and replaces it by another record's, to see whether the judge reads it.
    `swapped` is the right answer for a record with another record's field, where that is certain.
    """

    field: str
    swapped: str | None = None

    @property
    def answers(self) -> frozenset[str]:
        return frozenset([self.swapped] if self.swapped else ())

    @model_validator(mode="before")
    @classmethod
    def _field_alone(cls, content: object) -> object:
        return {"field": content} if isinstance(content, str) else content


class QuoteRule(Section):
    """The field that a reply must quote, and the answers that need the quote."""

    field: str
    answers: frozenset[str]

    @field_serializer("answers")
    def _sorted(self, answers: frozenset[str]) -> list[str]:
        """Sorted, because the order of a set differs between processes."""
        return sorted(answers)


def _as_json(reply: Any) -> Any:
    return json.dumps(reply, ensure_ascii=False) if isinstance(reply, Mapping) else reply


class Example(Section):
    """A worked example: the material, with the entry asked about, if any, and the reply, as JSON or
    as a mapping of quote, reason and answer."""

    text: Text
    reply: Annotated[Text, BeforeValidator(_as_json)]


def as_tuple(content: Any) -> Any:
    """A text as a tuple of one; anything else unchanged."""
    return (content,) if isinstance(content, str) else content


# ---------------------------------------------------------------- wording that a file leaves out


def reply_instructions(answers: Sequence[str], *, comparing: bool) -> str:
    """How to answer in a typed reply, if the rubric does not say."""
    instructions = "Quote the words that decide it exactly, or null; give a short reason; "
    return instructions + answer_instruction(answers, comparing=comparing) + "."


def in_other_order(answers: Sequence[str]) -> tuple[str, ...]:
    """The answers of a comparison whose two fields are swapped."""
    first, second, *tie = answers
    return second, first, *tie


def answer_instruction(answers: Sequence[str], *, comparing: bool = False) -> str:
    if comparing:
        tie = ", or tie where neither is better" if TIE in answers[2:] else ""
        return f"answer 1 or 2, for the better one{tie}"
    if scale_of(answers):
        return f"answer with one of the scores {', '.join(answers)}"
    return f"answer {', '.join(answers[:-1])} or {answers[-1]}"


def joint_question(questions: Mapping[str, tuple[str, Sequence[str]]]) -> str:
    """The prompt of several questions for one reply, from each one's name, text and answers."""
    lines = [
        f"{name}: {question} ({answer_instruction(answers)})"
        for name, (question, answers) in questions.items()
    ]
    instructions = (
        "For each one quote the words that decide it exactly, or null; give a short reason; then "
        "the answer."
    )
    return "\n\n".join(("Answer each of these questions by itself.", *lines, instructions))


def with_criteria(question: str, criteria: Mapping[str, str]) -> str:
    """The question, then a line with the meaning of each answer."""
    return "\n".join((question, *(f"{answer}: {text}" for answer, text in criteria.items())))


def _single_signs(answers: Sequence[str]) -> str | None:
    """`numbers` or `letters`, if all answers are single ones; None if not."""
    kinds = (("numbers", string.digits), ("letters", string.ascii_lowercase))
    return next((kind for kind, signs in kinds if {*map(str.lower, answers)} <= {*signs}), None)


def first_token_question(
    question: str,
    answers: Sequence[str],
    *,
    comparing: bool = False,
    criteria: Mapping[str, str],
) -> FirstToken:
    """The first-token question of a rubric that has none.

    Its words stand for the answers, and each is one token in any tokenizer.
    """
    words, instruction = tuple(string.ascii_lowercase[: len(answers)]), ""
    break_ = "\n" if criteria else " "
    if comparing:
        words, instruction = ("1", "2"), " Answer 1 or 2, for the better one."
        if len(answers) > len(words):
            words, instruction = (*words, "0"), f"{instruction[:-1]}, or 0 where neither is better."
    elif tuple(answers) == YES_NO:
        words, instruction = YES_NO, f"{break_}Answer Yes or No."
    elif (signs := _single_signs(answers)) is not None:
        words = tuple(answer.lower() for answer in answers)
        instruction = f"{break_}Answer with one of the {signs} {', '.join(answers)}."
    else:
        options = (f"{a}: {criteria[a]}" if a in criteria else a for a in answers)
        lines = (f"{word.upper()}. {option}" for word, option in zip(words, options, strict=True))
        instruction, criteria = "\n" + "\n".join((*lines, "Answer with the letter.")), {}
    return FirstToken(question=with_criteria(question, criteria) + instruction, words=words)


def in_orders(
    question: str, answers: Sequence[str], criteria: Mapping[str, str], orders: int
) -> tuple[FirstToken, ...]:
    """The first-token question in `orders` cyclic orders of its answers, evenly spread."""
    starts = (round(place * len(answers) / orders) for place in range(orders))
    turned = [(*answers[start:], *answers[:start]) for start in starts]
    made = [(first_token_question(question, order, criteria=criteria), order) for order in turned]
    return tuple(
        first.model_copy(update={"means": dict(zip(first.words, order, strict=True))})
        for first, order in made
    )


def with_meanings(
    questions: Sequence[FirstToken], answers: Sequence[str], compare: tuple[str, str] | None
) -> tuple[FirstToken, ...]:
    """The questions, with the deciding ones in front.

    If no question has `means`, the words of the first one stand for the answers, in order; in a
    comparison it is asked again with the two fields swapped.

    Raises:
        ValueError: the first question has another number of words than there are answers.
    """
    if not questions or any(question.means for question in questions):
        return tuple(questions)
    first, *tail = questions
    if len(first.outcomes) != len(answers):
        raise ValueError("give the first question one word for each answer, in order, or means")
    means = dict(zip(first.outcomes, answers, strict=True))
    deciding = [first.model_copy(update={"means": means})]
    if compare:
        turned = dict(zip(first.outcomes, in_other_order(answers), strict=True))
        deciding.append(first.model_copy(update={"means": turned, "swap": compare}))
    return (*deciding, *tail)


def decision_fault(
    questions: Sequence[FirstToken],
    answers: Sequence[str],
    compare: tuple[str, str] | None,
    orders: int,
) -> str | None:
    """Why these questions cannot give the rubric's answers; None if they can."""
    outcomes = {answer for question in questions for answer in question.means.values()}
    if unknown := sorted(outcomes - {*answers}):
        return f"{unknown[0]!r} is not one of the answers {', '.join(answers)}"
    deciding = [question for question in questions if question.means]
    if list(questions[: len(deciding)]) != deciding:
        return "put the questions with means, which decide, before the others"
    if compare:
        pair = len(deciding) == 2 and all(question.settles for question in deciding)
        if not pair or (deciding[0].swap, deciding[1].swap) != (None, compare):
            return "a comparison is decided by one question, asked in both orders"
        return None
    if orders > 1:
        settling = len(deciding) == orders and all(question.settles for question in deciding)
        return None if settling else f"the rubric decides by one question in {orders} orders"
    for number, question in enumerate(deciding, 1):
        last = number == len(deciding)
        if question.settles and not last:
            return f"question {number} settles every answer: no question can decide after it"
        if last and not question.settles:
            return f"question {number} decides last: each of its words must mean an answer"
    return None
