"""A record's judgement: the output line's `"judge"`.

One schema writes a line and reads it back: `Judgement.as_json` and `Judgement.model_validate`. A
key without a value is left out of the line, except an unknown cost, which is null.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, computed_field

from judge.verdict import (
    PERSON,
    Answer,
    Check,
    LinePart,
    RecordText,
    Usage,
    Verdict,
    last_of_each,
    worst,
)


class Edit(LinePart):
    """One rewrite of the record's text; `before` is empty if dialogue was only added."""

    round: int
    check: str
    character: RecordText | None = None
    values: tuple[RecordText, ...] = ()
    before: RecordText
    after: RecordText
    model: str


class Extraction(LinePart):
    """How far a record's gold values are found among its predicted ones.

    `credits` has 1 (fully), 0.5 (partially) or 0 (absent) for each gold value, in order, or None if
    the judges did not settle it; `recall` is the mean of the settled ones, in [0, 1], None without
    any; `cut` counts the predicted values that were over the limit and left out.
    """

    credits: tuple[float | None, ...]
    cut: int = 0

    @property
    def settled(self) -> tuple[float, ...]:
        """The credits that the judges settled."""
        return tuple(credit for credit in self.credits if credit is not None)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def recall(self) -> float | None:
        credits = self.settled
        return round(sum(credits) / len(credits), 6) if credits else None


class Failure(LinePart):
    """Why a record has no verdict: the error's type and message, and where the record came from."""

    type: str
    message: RecordText
    line: int | None = None
    file: RecordText | None = None
    field: RecordText | None = None


class DraftOutcome(LinePart):
    """The outcome of a draft (`judge generate`).

    `draft` is the hash of what the record was made from. If it was discarded, `stage` says where
    and `cause` why; for a near-duplicate, `verdict` and `reason` are those of its judgement before.
    """

    draft: str
    stage: str | None = None
    cause: str | None = None
    verdict: Verdict | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The checks that a workflow had made, and their usage, when it was cut short."""

    checks: tuple[Check, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A place (from 0) in an index of pandas."""

    index: Any = field(compare=False)  # An index compares label by label, not as a whole.
    place: int


class Judgement(LinePart):
    """A record's judgement: the part of its output line under `"judge"`.

    `name` identifies the record for people if its id does not: the content of the column of `--id`,
    or the file and line. After a repair, `original` has the rewritten fields as they were read, by
    the record's own names, and `original_verdict` the verdict before repair. `dropped` has the
    values that the text does not carry, `contradictions` the speeches against values, dropped ones
    too. `fingerprint` is the key to the run's description beside the output. `record` has the
    record's own fields, repaired ones with their new text, if the judgement is returned in memory;
    `row` is its place in the index of pandas that it came with, and `runs` has the descriptions of
    its run, by fingerprint (`Any`, because pydantic would copy a mapping for each record).
    `generated` is the outcome of the draft of a record that `judge generate` wrote.
    """

    name: RecordText | None = None
    verdict: Verdict
    original_verdict: Verdict | None = None
    workflow: str | None = None
    reason: RecordText | None = None
    checks: tuple[Check, ...] = ()
    edits: tuple[Edit, ...] = ()
    original: Mapping[RecordText, Any] = Field(default_factory=dict, exclude_if=operator.not_)
    dropped: tuple[RecordText, ...] = Field(default=(), exclude_if=operator.not_)
    contradictions: tuple[Answer, ...] = Field(default=(), exclude_if=operator.not_)
    extraction: Extraction | None = None
    generated: DraftOutcome | None = None
    usage: Annotated[Usage, PlainSerializer(Usage.as_json)] = Usage()
    fingerprint: str | None = None
    error: Failure | None = None
    record: Mapping[str, Any] = Field(default_factory=dict, exclude=True)
    row: IndexRow | None = Field(default=None, exclude=True, repr=False)
    runs: Any = Field(default=None, exclude=True, repr=False)

    @property
    def deciding(self) -> list[Check]:
        """The checks that have the record's verdict, those with evidence first; none for a pass."""
        last = last_of_each(self.checks)
        checks = [check for check in last if check.verdict is self.verdict is not Verdict.PASS]
        return sorted(checks, key=lambda check: check.best_evidence is None)

    @property
    def line(self) -> dict[str, Any]:
        """The line that `judge validate` writes: the record's fields, and this under `judge`."""
        return {**self.record, "judge": self.as_json()}

    @property
    def models(self) -> list[str]:
        """The models whose votes the checks have, in the order of their first."""
        return list(dict.fromkeys(vote.model for check in self.checks for vote in check.votes))

    @property
    def by_people(self) -> dict[str, Check | None]:
        """The checks that people decided, by name, each with the judges' last one before it."""
        judged = {check.name: check for check in self.by_judges}
        last = last_of_each(self.checks)
        return {check.name: judged.get(check.name) for check in last if check.by == PERSON}

    @property
    def by_judges(self) -> list[Check]:
        """The last check of each name that judges made."""
        return last_of_each(check for check in self.checks if check.by != PERSON)

    @property
    def judges_verdict(self) -> Verdict | None:
        """The verdict of the judges' checks, if people decided one of them; else None."""
        return worst(check.verdict for check in self.by_judges) if self.by_people else None

    def columns(self) -> dict[str, Any]:
        """The judgement as flat columns: `judge.verdict`, `judge.reason`, `judge.error`,
        `judge.models`, and for each check `NAME.verdict`, `.answer`, `.score`, `.quote`, `.reason`,
        `.probability`; of checks with the same name, the last one's.

        `judge.by_people` names the checks that people decided, and `judge.judges_verdict` is the
        verdict before that; of such a check `NAME.judges_verdict`, `.judges_answer`,
        `.judges_quote` and `.judges_reason` say what the judges said.
        """
        columns: dict[str, Any] = {
            "judge.verdict": str(self.verdict),
            "judge.reason": self.reason,
            "judge.error": self.error.message if self.error else None,
            "judge.models": ", ".join(self.models) or None,
            "judge.by_people": ", ".join(self.by_people) or None,
            "judge.judges_verdict": self.judges_verdict and str(self.judges_verdict),
        }
        for check in self.checks:
            columns |= {f"{check.name}.{part}": cell for part, cell in check.to_dict().items()}
        for name, judged in self.by_people.items():
            cells = judged.to_dict() if judged else {}
            for part in ("verdict", "answer", "quote", "reason"):
                columns[f"{name}.judges_{part}"] = cells.get(part)
        return columns

    def to_dict(self) -> dict[str, Any]:
        """One flat row: the record's own fields, and `columns`. The record's fields keep their
        names; a column of the same name is called `judge.NAME.verdict`, or replaces an earlier
        verdict's, if the record is from a table that judge wrote."""
        columns = self.columns()
        earlier = verdict_columns(self.record) & columns.keys()
        own = {name: cell for name, cell in self.record.items() if name not in earlier}
        return own | named_beside(own, columns)

    def as_json(self) -> dict[str, Any]:
        """Plain data, as in the output line."""
        return self.model_dump(exclude_none=True)


def verdict_columns(fields: Mapping[str, Any]) -> frozenset[str]:
    """The columns that hold a verdict in a row of a table that judge wrote (`-o OUT.csv`)."""
    if "judge.verdict" not in fields:
        return frozenset()
    checks = {key.removesuffix(".verdict") for key in fields if key.endswith(".verdict")}
    return frozenset(key for key in fields if key.rpartition(".")[0] in checks)


def named_beside(fields: Container[str], columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns, with `judge.` before names that a field has."""
    named = {}
    for name, cell in columns.items():
        while name in fields:
            name = f"judge.{name}"
        named[name] = cell
    return named
