"""What one judge said of one labelled item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from judge.records.labels import LabelledItem

Outcome = Literal["answered", "abstained", "unreadable", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's answer to a labelled item, or why there is none.

    `answer` is there exactly where `outcome` is `answered`; `probabilities` maps every answer of
    the check to its probability, for probability readings only; `evidence` is what the judge quoted
    or gave as its reason; `repeats` the answers under further seeds (None: no answer), `swapped`
    the answer with the order of the alternatives turned round, for checks that have an order.
    """

    item: LabelledItem
    outcome: Outcome
    answer: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    evidence: str | None = None
    repeats: tuple[str | None, ...] = ()
    swapped: str | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Items that a judge gave no answer to.

    `items` were put to it, `answered` of them brought an answer, `errors` no reply at all; `reason`
    is why the first one failed, or, where none did, why the first is without an answer.
    """

    items: int = 0
    answered: int = 0
    errors: int = 0
    reason: str | None = None

    @classmethod
    def of(cls, judged: Sequence[Judged]) -> Unanswered:
        """Counted over what a judge said of each item."""
        failed = [one for one in judged if one.outcome == "error"]
        lost = [*failed, *(one for one in judged if one.outcome != "answered")]
        return cls(
            len(judged),
            sum(one.outcome == "answered" for one in judged),
            len(failed),
            (lost[0].evidence or lost[0].outcome) if lost else None,
        )

    @property
    def silent(self) -> bool:
        """Whether there is nothing that the judge could be known by."""
        return not self.answered
