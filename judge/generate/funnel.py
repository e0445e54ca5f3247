"""The funnel of a generation: how many drafts reached each stage, and why some were lost there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BEFORE = ("source", "error")
"""Stages of every set: unusable source lines, and drafts without a reply."""


@dataclass(slots=True)
class Funnel:
    """Drafts by the stage where they were lost, and the cause.

    Args:
        stages: in their order. The last concerns the set as a whole, so checks that are not listed
            come before it.
    """

    stages: Sequence[str]
    drafts: int = 0
    overruled: int = 0
    lost: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, came: Mapping[str, Any], by_person: bool = False) -> None:
        """Count a draft by its outcome (`judge.judgement.DraftOutcome`, as JSON)."""
        self.drafts += 1
        self.overruled += by_person and not came.get("stage")
        if stage := came.get("stage"):
            self.lost[stage][came.get("cause") or ""] += 1

    def rows(self) -> list[tuple[str, int, int, dict[str, int]]]:
        """Stage, drafts in, drafts out, and how many were lost by cause, the most first."""
        *stages, last = self.stages
        before = [stage for stage in BEFORE if stage in self.lost]
        others = [stage for stage in self.lost if stage not in (*BEFORE, *self.stages)]
        rows, number = [], self.drafts
        for stage in (*before, *stages, *others, last):
            causes = dict(sorted(self.lost.get(stage, Counter()).items(), key=lambda c: (-c[1], c)))
            rows.append((stage, number, number := number - sum(causes.values()), causes))
        return rows

    @property
    def kept(self) -> int:
        return self.drafts - sum(counts.total() for counts in self.lost.values())

    def as_json(self) -> dict[str, Any]:
        stages = [
            {"stage": stage, "in": before, "out": after, "lost": causes}
            for stage, before, after, causes in self.rows()
        ]
        return {
            "drafts": self.drafts,
            "kept": self.kept,
            "kept_by_people": self.overruled,
            "stages": stages,
        }
