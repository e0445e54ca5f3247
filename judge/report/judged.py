"""An output line of `judge validate` as the page reads it: checked, because anyone may edit one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError, model_validator

from judge import verdict
from judge.records import RESERVED, Item

Str = InstanceOf[str]
"""A text that need not have a form in UTF-8: a record may hold unpaired surrogates."""

Outcome = Literal["pass", "fail", "abstain", "unreadable", "error", "skipped"]
Result = Literal["fail", "error", "unreadable", "abstain", "open", "pass"]
"""What a line's verdict may be, in the order in which people look at them."""

Probability = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Finding(_Part):
    """One piece of evidence (judge/verdict.py)."""

    verdict: Outcome
    value: Str | None = None
    character: Str | None = None
    quote: Str | None = None
    answer: Str | None = None
    reason: Str | None = None
    probability: Probability | None = None
    predicted: tuple[int, ...] = ()


class Vote(_Part):
    """One reply to one rubric."""

    verdict: Outcome
    model: Str | None = None
    seed: int | None = None
    temperature: float | None = None
    reason: Str | None = None


class Check(_Part):
    """A rubric's verdict on the record."""

    check: Str
    verdict: Outcome
    by: Str | None = None
    round: int = 1
    probability: Probability | None = None
    votes: tuple[Vote, ...] = ()
    findings: tuple[Finding, ...] = ()
    reason: Str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_votes(cls, told: Any) -> Any:
        """What bears the verdict out stands in the votes."""
        if not isinstance(told, dict) or "findings" in told or "votes" not in told:
            return told
        found = verdict.Check.model_validate(told).bearing()
        return {**told, "findings": [one.model_dump() for one in found]}

    @property
    def split(self) -> bool:
        """Whether its votes say different things."""
        return len({vote.verdict for vote in self.votes}) > 1


class Edit(_Part):
    """One rewrite of the record's text."""

    round: int
    check: Str
    before: Str
    after: Str
    model: Str | None = None
    character: Str | None = None
    values: tuple[Str, ...] = ()


class Usage(_Part):
    """The replies that the verdict rests on, and what they took."""

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class Extraction(_Part):
    """How far gold values are found among predicted ones."""

    credits: tuple[float | None, ...]
    recall: float | None = None

    @property
    def over(self) -> int:
        return sum(credit is not None for credit in self.credits)

    @property
    def of(self) -> int:
        return len(self.credits)


class Fault(_Part):
    """Why a record has no verdict."""

    type: Str
    message: Str
    line: int | None = None
    field: Str | None = None


class Judged(_Part):
    """What a line says under `judge`."""

    verdict: Result
    workflow: Str | None = None
    reason: Str | None = None
    checks: tuple[Check, ...] = ()
    edits: tuple[Edit, ...] = ()
    original: dict[Str, Any] = Field(default_factory=dict)
    dropped: tuple[Str, ...] = ()
    contradictions: tuple[Finding, ...] = ()
    extraction: Extraction | None = None
    usage: Usage = Usage()
    models: dict[Str, Any] = Field(default_factory=dict)
    fingerprint: Str | None = None
    error: Fault | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """An output line: the record's own fields, and what was found."""

    source: str
    number: int
    fields: Mapping[str, Any]
    judged: Judged


@dataclass(frozen=True, slots=True)
class Foreign:
    """A line that judge validate did not write: what is wrong with it, and its text if known."""

    source: str
    number: int
    message: str
    raw: str | None


def parsed(item: Item) -> Line | Foreign:
    """The item as an output line, or why it is none."""
    if item.fields is None:
        message = item.problem.message if item.problem else "holds no record"
        return Foreign(item.source, item.line, message, item.raw)
    told = item.fields.get(RESERVED)
    if not isinstance(told, dict) or "verdict" not in told:
        return Foreign(item.source, item.line, "has no verdict under 'judge'", None)
    if "benchmark" in told:
        message = (
            "is a case of judge audit, or an answer of judge evaluate: judge score answers makes "
            "tables of those"
        )
        return Foreign(item.source, item.line, message, None)
    try:
        judged = Judged.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, (RESERVED, *first["loc"])))
        return Foreign(item.source, item.line, f"{place}: {first['msg']}", None)
    fields = {key: content for key, content in item.fields.items() if key != RESERVED}
    return Line(item.source, item.line, fields, judged)
