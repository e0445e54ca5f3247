"""Verdicts, answers with their evidence, votes and checks: the parts of a judgement."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, InstanceOf
from pydantic_core import core_schema

from judge.voting import Opinion, decide

RecordText = InstanceOf[str]
"""Text of a record: any string, because a record may hold unpaired surrogates."""

Probability = Annotated[float, Field(ge=0, le=1)]


class Verdict(StrEnum):
    """The outcome of a vote, a check or a record; only checks are `skipped`.

    `answered`: the answer is only counted, and neither passes nor fails.
    """

    PASS = "pass"
    FAIL = "fail"
    ANSWERED = "answered"
    ABSTAIN = "abstain"
    UNREADABLE = "unreadable"
    ERROR = "error"
    SKIPPED = "skipped"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Written as plain text, which every writer of JSON and YAML takes."""
        as_text = core_schema.to_string_ser_schema(when_used="always")
        return {**handler(source), "serialization": as_text}


class AnswerOutcome(StrEnum):
    """The outcome of a question whose answer is compared with a label or a gold answer.

    Separate from `Verdict`, because such an answer neither passes nor fails by itself. Only items
    that lack a field are `skipped`.
    """

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    ERROR = "error"
    SKIPPED = "skipped"


SETTLED = frozenset((Verdict.PASS, Verdict.FAIL, Verdict.ANSWERED))
"""The verdicts of sure answers."""

SOUND = frozenset((Verdict.PASS, Verdict.ANSWERED, Verdict.SKIPPED))
"""The verdicts of checks that let a record through."""

PERSON: Literal["person"] = "person"
"""Who made a check that people decided (`Check.by`)."""

LOST = (Verdict.UNREADABLE, Verdict.ERROR)
"""The verdicts for want of a reply that can be read."""

UNDECIDED = (Verdict.ABSTAIN, *LOST)
"""Verdicts without a decision: no pass, no fail, no counted answer."""

_GRAVITY = (
    *(Verdict.ERROR, Verdict.FAIL, Verdict.UNREADABLE, Verdict.ABSTAIN, Verdict.PASS),
    Verdict.ANSWERED,
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many parts that must all pass.

    `error` outranks all, because `--resume` asks that part again; `fail` outranks undecided parts,
    however they would turn out. Skipped parts do not count; with no other part the verdict is
    `abstain`, never `pass`.
    """
    present = set(verdicts)
    return next((v for v in _GRAVITY if v in present), Verdict.ABSTAIN)


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of replies, and their tokens when first made; an unknown cost is None.

    `models` names the models that replied, for decision models only, whose versions a profile
    records.
    """

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    models: tuple[str, ...] = ()

    def __add__(self, usage: Usage) -> Usage:
        priced = self.cost_usd is not None and usage.cost_usd is not None
        return Usage(
            self.replies + usage.replies,
            self.input_tokens + usage.input_tokens,
            self.output_tokens + usage.output_tokens,
            (self.cost_usd or 0.0) + (usage.cost_usd or 0.0) if priced else None,
            tuple(dict.fromkeys((*self.models, *usage.models))),
        )

    def as_json(self) -> dict[str, Any]:
        cost = None if self.cost_usd is None else round(self.cost_usd, 8)
        names = (name for name in self.__slots__ if name != "models")
        return {**{name: getattr(self, name) for name in names}, "cost_usd": cost}


class LinePart(BaseModel):
    """A part of the output line."""

    model_config = ConfigDict(
        frozen=True, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class Answer(LinePart):
    """A model's answer to a rubric about one value, or about the record (value None).

    `value` is the value's full text, because numbers shift when values are dropped; `quote` is from
    the record's text as the judge read it. `predicted` has the numbers (from 1) of the predicted
    values that the answer rests on. `probability` is P(pass), 0 to 1; it is None if too little of
    the distribution is listed, and `probability_range` then has its bounds.
    """

    value: RecordText | None = None
    verdict: Verdict
    answer: str | None = None
    character: RecordText | None = None
    quote: RecordText | None = None
    predicted: tuple[int, ...] = Field(default=(), exclude_if=operator.not_)
    reason: RecordText | None = None
    probability: Probability | None = None
    probability_range: tuple[Probability, Probability] | None = None

    @property
    def sure(self) -> bool:
        """Whether the answer is decided."""
        return self.verdict in SETTLED


class Vote(LinePart):
    """One answer to one rubric by one model under one seed, with its evidence.

    `evidence` has at least one answer for each value asked about, or one for the record, also in a
    lost vote (`unreadable`, `error`). `part` is `cheap` for a cascade's cheap judge, which settles
    the values that it is sure of, and `explanation` for one that says why others fail; the verdict
    is counted from the `panel`'s votes. `score` is the answer if answers are scores; with
    log-probabilities, the mean of their distribution. `answered_by` has the versions of a decision
    model that answered.
    """

    model: str
    seed: int | None = None
    temperature: float | None = None
    answered_by: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    method: Literal["structured", "logprobs", "probe", "test"] = "structured"
    part: Literal["panel", "cheap", "explanation"] = Field(
        default="panel", exclude_if=lambda part: part == "panel"
    )
    verdict: Verdict
    evidence: tuple[Answer, ...] = ()
    reason: RecordText | None = None
    score: float | None = None
    usage: Usage = Field(default=Usage(), exclude=True)

    def verdicts(self) -> dict[str | None, Verdict]:
        """The verdict on each value asked about; None stands for the record."""
        return _by_value(self.evidence) or {None: self.verdict}

    def counted_as(self, *, graded: bool = False) -> Mapping[str | None, Opinion]:
        """What the vote counts as on each value: its verdict, with a sure answer if `graded`."""
        verdicts = self.verdicts()
        answers = {
            answer.value: answer.answer
            for answer in self.evidence
            if graded and answer.sure and answer.answer
            if answer.verdict is verdicts[answer.value]
        }
        return {value: (verdict, answers.get(value)) for value, verdict in verdicts.items()}


class Check(LinePart):
    """A rubric's verdict on one record: the votes of a panel, and their outcome.

    `by` says who made it, such as the loop judge or the final judge; `round` (from 1) in which
    round of a rewrite loop. `evidence` is what the check rests on besides its votes. `counted` has
    the answers, from best to worst, if votes are counted by answer and not as pass or fail;
    `answer` is the outcome of a question with its own labels. `score` is the mean of the votes'
    scores. `rubric` is the rubric's digest.
    """

    name: str = Field(alias="check")
    by: Literal["loop", "final", "counting", "person"] = "loop"
    verdict: Verdict
    probability: Probability | None = None
    round: int = 1
    counted: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    votes: tuple[Vote, ...] = ()
    evidence: tuple[Answer, ...] = Field(default=(), exclude_if=operator.not_)
    reason: RecordText | None = None
    answer: str | None = None
    score: float | None = None
    rubric: str | None = None

    @property
    def usage(self) -> Usage:
        return sum((vote.usage for vote in self.votes), Usage())

    def outcomes(self) -> dict[str | None, tuple[Verdict, str | None]]:
        """(verdict, winning answer) for each value, recounted from the votes.

        The value None stands for the record. The answer is None unless `counted` names the answers,
        since votes are counted by answer only then. The cheap judge's opinion decides the values
        that it is sure of, and is not a vote on others. A check without votes is decided by its own
        evidence.
        """
        if self.score is not None:
            return {None: (self.verdict, None)}
        if not self.votes:
            verdicts = _by_value(self.evidence) or {None: self.verdict}
            answers = {answer.value: answer.answer for answer in self.evidence if self.counted}
            return {value: (verdict, answers.get(value)) for value, verdict in verdicts.items()}
        opinions: dict[str | None, list[Opinion]] = {}
        settled: dict[str | None, Opinion] = {}
        for vote in self.votes:
            sure = {answer.value for answer in vote.evidence if answer.sure}
            for value, opinion in vote.counted_as(graded=bool(self.counted)).items():
                cast = opinions.setdefault(value, [])
                if vote.part == "panel":
                    cast.append(opinion)
                elif vote.part == "cheap" and value in sure:
                    settled[value] = opinion
        outcomes: dict[str | None, tuple[Verdict, str | None]] = {}
        for value, cast in opinions.items():
            # The votes cast suffice: asking stops only when further votes could change nothing.
            verdict, answer = settled.get(value) or decide(cast, max(1, len(cast)))
            outcomes[value] = Verdict(verdict), answer
        return outcomes

    def verdicts(self) -> dict[str | None, Verdict]:
        """The verdict on each value after voting; None stands for the record."""
        return {value: verdict for value, (verdict, _) in self.outcomes().items()}

    @property
    def lacks_votes(self) -> bool:
        """Whether it abstains on a value about which the panel lost a vote."""
        undecided = {v for v, verdict in self.verdicts().items() if verdict is Verdict.ABSTAIN}
        return self.verdict is Verdict.ABSTAIN and any(
            answer.verdict in LOST and answer.value in undecided
            for vote in self.votes
            if vote.part == "panel"
            for answer in vote.evidence
        )

    def supporting_evidence(self) -> tuple[Answer, ...]:
        """The answers that support the verdicts, each once, in the order of the values.

        These agree with the check's verdict on the value, and, if answers are counted, with its
        answer. Of those with one answer and quote, or none, it is the first with a reason.
        """
        outcomes = self.outcomes()
        by_value: dict[str | None, dict[tuple[object, ...], Answer]] = {v: {} for v in outcomes}
        # A vote with a reason of its own lost a quote that is not in the text.
        votes = (
            (answer, vote.reason is None)
            for vote in self.votes
            for answer in vote.evidence
            if vote.part != "cheap" or answer.sure
        )
        for answer, whole in (*votes, *((answer, True) for answer in self.evidence)):
            verdict, name = outcomes.get(answer.value, (None, None))
            if answer.verdict is verdict and name in (None, answer.answer):
                key = answer.answer, answer.character, answer.quote
                first = by_value[answer.value].setdefault(key, answer)
                if whole and answer.reason and not first.reason:
                    by_value[answer.value][key] = answer
        return tuple(answer for answers in by_value.values() for answer in answers.values())

    def said(self, value: str | None = None) -> tuple[Verdict, str]:
        """The verdict on a value, or on the record, and its answer in words: the winning answer,
        the mean score, or the only answer of the evidence; else the verdict."""
        verdict, answer = self.outcomes().get(value, (self.verdict, None))
        score = None if self.score is None else f"{self.score:g}"
        only = self.only_answer(value) if verdict in SETTLED else None
        return verdict, answer or self.answer or score or only or str(verdict)

    def only_answer(self, value: str | None = None) -> str | None:
        """The answer of the evidence about a value, or the record; None if votes of one verdict
        differ in it."""
        answers = {found.answer for found in self.supporting_evidence() if found.value == value}
        return answers.pop() if len(answers) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """The outcome: verdict, answer, score, probability, the best evidence's quote and reason,
        and, for a check on entries, the verdict on each; its answer, if answers are only counted.

        If answers have no names of their own, the answer is that of the evidence; of scores it is
        the mean. An undecided check has no answer, so that a count of answers counts only decided
        checks.
        """
        best = self.best_evidence
        decided = self.verdict in SETTLED
        score = None if self.score is None else f"{self.score:g}"
        entries = {
            value: str((verdict is Verdict.ANSWERED and answer) or verdict)
            for value, (verdict, answer) in self.outcomes().items()
            if value is not None
        }
        return {
            "verdict": str(self.verdict),
            "answer": (self.answer or score or self.only_answer()) if decided else None,
            "score": self.score,
            "quote": best and best.quote,
            "reason": (best and best.reason) or self.reason,
            "probability": self.probability,
            **({"entries": entries} if entries else {}),
        }

    @property
    def best_evidence(self) -> Answer | None:
        """The answer that best explains the check's verdict, with a quote if possible.

        For an undecided check, an answer against an undecided value.
        """
        answers = [a for a in self.supporting_evidence() if a.verdict is self.verdict]
        if self.verdict is Verdict.ABSTAIN:
            verdicts = self.verdicts()
            cast = (answer for vote in self.votes for answer in vote.evidence)
            against = (answer for answer in cast if answer.verdict is Verdict.FAIL)
            undecided = [a for a in against if verdicts.get(a.value) is Verdict.ABSTAIN]
            answers = undecided or answers
        return next((a for a in answers if a.quote), answers[0] if answers else None)


def last_of_each(checks: Iterable[Check]) -> list[Check]:
    """The last check of each name, in the order in which the names first appear.

    The final judge comes after the loop judge, and a later round after an earlier one, so the last
    check is about the text that is written out.
    """
    return list({check.name: check for check in checks}.values())


def _by_value(evidence: Iterable[Answer]) -> dict[str | None, Verdict]:
    verdicts: dict[str | None, Verdict] = {}
    for answer in evidence:
        before = verdicts.get(answer.value)
        verdicts[answer.value] = worst((before, answer.verdict)) if before else answer.verdict
    return verdicts
