"""Pass rates by check, as the judge has them and corrected for its errors.

What a profile knows about errors it knows of records as they came in. A repaired record was
rewritten until the judge passed it, so its checks count as they were before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from judge.profiles import Rates, item_key
from judge.records import RESERVED, Item, Problem, build
from judge.run.setup import Bound
from judge.stats.corrected_rate import ClusterSums, Corrected, prediction_powered, rogan_gladen
from judge.stats.intervals import Estimate, plain
from judge.subject import Subject
from judge.verdict import Check, Verdict

_DECIDED = (Verdict.PASS, Verdict.FAIL)


@dataclass(slots=True)
class CorrectedRate:
    """One check's pass rate over the records, as they came in, whose verdicts were added.

    `unseen` is the deciding field, where calibration did not show that the judge looks at it;
    `pairs` counts (judge passed, should pass) where labels on these very records know it.
    """

    check: str
    rates: Rates
    unseen: str | None = None
    undecided: int = 0
    sums: ClusterSums = field(default_factory=ClusterSums)
    pairs: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def add(self, verdicts: Mapping[str | None, str], truth: Mapping[str | None, bool]) -> None:
        """Count one record's verdicts, by value, and what they should have been."""
        decided = {value: v == Verdict.PASS for value, v in verdicts.items() if v in _DECIDED}
        self.undecided += len(verdicts) - len(decided)
        if decided:
            self.sums.add(sum(decided.values()), len(decided))
        for value in decided.keys() & truth.keys():
            self.pairs[decided[value], truth[value]] += 1

    @property
    def corrected(self) -> Corrected:
        """Rogan and Gladen's estimate from the profile's error rates, or why it is refused."""
        sums, known = self.sums, self.rates
        return rogan_gladen(
            sums.passed,
            sums.n,
            known.passed,
            known.passes,
            known.failed,
            known.fails,
            deff_judged=sums.design_effect,
            deff_labelled=known.design_effect,
        )

    @property
    def powered(self) -> Estimate | None:
        """The prediction-powered estimate from labels on these very records; None without any."""
        sums, design = self.sums, (self.sums.design_effect, self.rates.design_effect)
        found = prediction_powered(
            sums.passed, sums.n, self.pairs, deff_judged=design[0], deff_labelled=design[1]
        )
        return found if found.n else None

    def as_json(self) -> dict[str, Any]:
        corrected = self.corrected
        return {
            "check": self.check,
            "raw": plain(corrected.raw),
            "undecided": self.undecided,
            "corrected": {**plain(corrected.estimate), "reason": corrected.reason},
            "prediction_powered": plain(self.powered),
            "not_shown_to_look_at": self.unseen,
        }


class Corrections:
    """Adds up output lines, check by check, for those checks whose judge has a profile."""

    def __init__(self) -> None:
        self._rates: dict[str, CorrectedRate] = {}

    def add(
        self,
        text: bytes,
        judgement: Mapping[str, Any],
        bound: Bound,
        columns: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Count one output line that a workflow with these errors brought, of a record with these
        columns."""
        subject: Subject | None = None
        checks = _as_it_came(judgement.get("checks", ()))
        for check in {check["check"]: check for check in checks}.values():
            errors = bound.errors.get((check["check"], check["by"]))
            if errors is None or check["verdict"] in (Verdict.SKIPPED, Verdict.ERROR):
                continue
            about = bound.context.panel(check["check"], check["by"]).rubric.about
            if subject is None and (errors.labels or about == "values"):
                subject = _subject(text, bound, columns)
            verdicts: dict[str | None, str] = {None: check["verdict"]}
            if about == "values" and subject is not None:
                # A value on which nothing was found is undecided.
                verdicts = {value.text: Verdict.ABSTAIN for value in subject.values}
                found = Check.model_validate(check).verdicts()
                verdicts |= {value: said for value, said in found.items() if value is not None}
            truth: dict[str | None, bool] = {}
            if subject is not None and errors.labels:
                keys = {value: item_key(subject, value) for value in verdicts}
                truth = {v: errors.labels[key] for v, key in keys.items() if key in errors.labels}
            rate = CorrectedRate(check["check"], errors.rates, errors.unseen)
            self._rates.setdefault(rate.check, rate).add(verdicts, truth)

    def rates(self) -> list[CorrectedRate]:
        """One for each check, in the order of their names."""
        return [rate for _, rate in sorted(self._rates.items())]


def _as_it_came(checks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The checks of the record as it came in: a rewrite makes one that was made before again."""
    made: set[tuple[str, str]] = set()
    for check in checks:
        if (key := (check["check"], check["by"])) in made:
            return
        made.add(key)
        yield check


def _subject(text: bytes, bound: Bound, columns: Mapping[str, str]) -> Subject | None:
    """The record of an output line as it was read."""
    line = json.loads(text)
    original = line.pop(RESERVED).get("original") or {}
    item = Item("", 0, {**line, **original}, columns=columns)
    record = build(item, bound.workflow.kind)
    return None if isinstance(record, Problem) else Subject.of(record)
