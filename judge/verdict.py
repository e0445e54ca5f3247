"""What judging leaves behind: verdicts, votes, checks, edits, and how verdicts combine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class Verdict(StrEnum):
    """The outcome of a vote, a check or a record; `skipped` is for checks only."""

    PASS = "pass"
    FAIL = "fail"
    ABSTAIN = "abstain"
    UNREADABLE = "unreadable"
    ERROR = "error"
    SKIPPED = "skipped"


_GRAVITY = (Verdict.ERROR, Verdict.FAIL, Verdict.UNREADABLE, Verdict.ABSTAIN, Verdict.PASS)


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many parts that must all pass.

    `error` outweighs all, because the part may still turn out either way and `--resume` asks it
    again; a `fail` stands whatever the undecided parts would say. Skipped parts say nothing; with
    no other part the answer is `abstain`, never `pass`.
    """
    present = set(verdicts)
    return next((v for v in _GRAVITY if v in present), Verdict.ABSTAIN)


@dataclass(frozen=True, slots=True)
class Usage:
    """Replies that were needed, and the tokens each took when it was first made.

    `cost_usd` is None where a price is not known.
    """

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.replies + other.replies,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )

    def as_json(self) -> dict[str, Any]:
        cost = None if self.cost_usd is None or not self.replies else round(self.cost_usd, 8)
        return {
            "replies": self.replies,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": cost,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """One piece of evidence: what was said of one value, or of the record (value None).

    `value` is the value's full text, because numbers shift when values are dropped; `quote` stands
    in the record's text as it was when the judge read it. `predicted` are the numbers (from 1) of
    the predicted values that an answer rests on. `number` is the value's own, not written out.
    """

    verdict: Verdict
    value: str | None = None
    character: str | None = None
    quote: str | None = None
    answer: str | None = None
    reason: str | None = None
    probability: float | None = None
    predicted: tuple[int, ...] = ()
    number: int | None = field(default=None, compare=False)

    def as_json(self) -> dict[str, Any]:
        pairs = {
            "value": self.value,
            "verdict": str(self.verdict),
            "answer": self.answer,
            "character": self.character,
            "quote": self.quote,
            "predicted": list(self.predicted) or None,
            "reason": self.reason,
            "probability": None if self.probability is None else round(self.probability, 6),
        }
        return {key: value for key, value in pairs.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Vote:
    """One reply to one rubric by one model.

    `opinions` maps what was asked about (a value's number from 1, or 0 for the record) to a
    verdict; a lost vote (`unreadable`, `error`) has the same verdict for each. `answers` maps it to
    the answer, where one was read and the reading was sure of it.
    """

    verdict: Verdict
    model: str
    seed: int | None
    temperature: float | None
    opinions: Mapping[int, Verdict]
    probabilities: Mapping[int, float] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    reason: str | None = None
    answers: Mapping[int, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "verdict": str(self.verdict),
            "model": self.model,
            "seed": self.seed,
            "temperature": self.temperature,
        }
        if self.reason is not None:
            shown["reason"] = self.reason
        return shown


@dataclass(frozen=True, slots=True)
class Check:
    """A rubric's verdict on one record.

    `by` tells the steering judge's asks from the accepting judge's; `opinions` holds the verdict
    for each value (0: the record) after voting; `answers` the answer that stands, for rubrics whose
    votes are counted by answers, without the values where none does; `rubric` is the rubric's
    digest.
    """

    name: str
    verdict: Verdict
    by: Literal["steering", "accepting", "counting"] = "steering"
    round: int = 1
    votes: tuple[Vote, ...] = ()
    opinions: Mapping[int, Verdict] = field(default_factory=dict)
    answers: Mapping[int, str] = field(default_factory=dict)
    probability: float | None = None
    findings: tuple[Finding, ...] = ()
    reason: str | None = None
    rubric: str | None = None

    @property
    def usage(self) -> Usage:
        return sum((vote.usage for vote in self.votes), Usage())

    def as_json(self) -> dict[str, Any]:
        return {
            "check": self.name,
            "by": self.by,
            "verdict": str(self.verdict),
            "probability": None if self.probability is None else round(self.probability, 6),
            "round": self.round,
            "votes": [vote.as_json() for vote in self.votes],
            "findings": [finding.as_json() for finding in self.findings],
            "reason": self.reason,
            "rubric": self.rubric,
        }


@dataclass(frozen=True, slots=True)
class Edit:
    """One rewrite of the record's text; `before` is empty where dialogue was only added."""

    round: int
    check: str
    before: str
    after: str
    model: str
    character: str | None = None
    values: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "round": self.round,
            "check": self.check,
            "character": self.character,
            "values": list(self.values),
            "before": self.before,
            "after": self.after,
            "model": self.model,
        }


@dataclass(frozen=True, slots=True)
class Extraction:
    """How far a record's gold values are found among its predicted ones (CQ-Bench, section 3.1).

    `credits` has 1 (fully), 0.5 (partially) or 0 (absent) for each gold value, in their order, None
    where the judges did not settle it; `cut` is how many predicted values were left out because
    they were over the limit.
    """

    credits: tuple[float | None, ...]
    cut: int = 0

    @property
    def settled(self) -> tuple[float, ...]:
        """The credits that the judges settled."""
        return tuple(credit for credit in self.credits if credit is not None)

    @property
    def recall(self) -> float | None:
        """The mean of the settled credits, in [0, 1]; None where none is settled."""
        return sum(self.settled) / len(self.settled) if self.settled else None

    def as_json(self) -> dict[str, Any]:
        """`recall` is over `over` gold values out of `of`."""
        return {
            "credits": list(self.credits),
            "recall": None if self.recall is None else round(self.recall, 6),
            "over": len(self.settled),
            "of": len(self.credits),
            "cut": self.cut,
        }


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a workflow had asked, and what that took, when it was cut short."""

    checks: tuple[Check, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that is written about one record under `"judge"`."""

    verdict: Verdict
    workflow: str | None
    reason: str | None = None
    checks: tuple[Check, ...] = ()
    edits: tuple[Edit, ...] = ()
    original: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    contradictions: tuple[Finding, ...] = ()
    extraction: Extraction | None = None
    usage: Usage = field(default_factory=Usage)
    error: Mapping[str, Any] | None = None

    def as_json(self, models: Mapping[str, Any], fingerprint: str) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "verdict": str(self.verdict),
            "workflow": self.workflow,
            "reason": self.reason,
            "checks": [check.as_json() for check in self.checks],
            "edits": [edit.as_json() for edit in self.edits],
        }
        if self.original:
            shown["original"] = dict(self.original)
        if self.dropped:
            shown["dropped"] = list(self.dropped)
        if self.contradictions:
            shown["contradictions"] = [finding.as_json() for finding in self.contradictions]
        if self.extraction is not None:
            shown["extraction"] = self.extraction.as_json()
        shown["usage"] = self.usage.as_json()
        shown["models"] = dict(models)
        shown["fingerprint"] = fingerprint
        shown["error"] = None if self.error is None else dict(self.error)
        return shown
