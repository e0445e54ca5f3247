"""What one judge said of one labelled item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from judge.records.labelled import LabelledItem

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
