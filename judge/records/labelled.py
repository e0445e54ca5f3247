"""Labelled items: what people (or the authors of a data set) said about a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answer about one item.

    `answer` is folded to lower case and is one of the answers of the check (`yes`, `no`,
    `neutral`, `entailment`, `1`, ...), or an answer of its own kind such as `unanswerable` or
    `unsure`; `group` is the annotator's group (a nationality, say) where the data has one.
    """

    annotator: str
    answer: str
    group: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One question about one record, with the answers that were given to it.

    `fields` is what a judge may be shown, under typed names (`rule_of_thumb`, `story`, `premise`,
    ...); `number` is the value that the check asks about (from 1), or 0 for the record as a whole;
    `gold` the data set's own reference answer; `annotations` the answers of single annotators;
    `slices` what results can be told apart by. Items with the same `record` are about one record
    and form a cluster.
    """

    record: str
    check: str
    fields: Mapping[str, Any]
    number: int = 0
    gold: str | None = None
    annotations: tuple[Annotation, ...] = ()
    slices: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    line: int = 0

    @property
    def reference(self) -> str | None:
        """The answer that judges are held against: gold, else more than half of the annotations.

        None where there is neither.
        """
        if self.gold is not None:
            return self.gold
        counts = Counter(annotation.answer for annotation in self.annotations)
        if not counts:
            return None
        answer, count = counts.most_common(1)[0]
        return answer if 2 * count > len(self.annotations) else None
