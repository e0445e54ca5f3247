"""Pass rates by check, as the judge has them and corrected for its errors.

What a profile knows about errors it knows of records as they came. Records that were edited were
rewritten until the judge passed them, so they are left out here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.profiles import Rates, item_key
from judge.records import RESERVED, Item, Problem, build
from judge.run.setup import Bound
from judge.stats.corrected_rate import Corrected, prediction_powered, rogan_gladen
from judge.stats.labels import ClusterSums
from judge.subject import Subject
from judge.verdict import Check, Verdict

_DECIDED = (Verdict.PASS, Verdict.FAIL)


@dataclass(slots=True)
class _Tally:
    """A check's verdicts; `pairs` counts (judge passed, should pass) where known."""

    rates: Rates
    sums: ClusterSums = field(default_factory=ClusterSums)
    undecided: int = 0
    pairs: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def add(
        self, verdicts: Mapping[str | None, str], truth: Callable[[str | None], bool | None]
    ) -> None:
        decided = {value: v == Verdict.PASS for value, v in verdicts.items() if v in _DECIDED}
        self.undecided += len(verdicts) - len(decided)
        if decided:
            self.sums.add(sum(decided.values()), len(decided))
        for value, passed in decided.items():
            known = truth(value)
            if known is not None:
                self.pairs[passed, known] += 1


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """One check's pass rate over records that were not edited.

    `corrected` is Rogan and Gladen's estimate from the profile's error rates, `powered` the
    prediction-powered one from labels on these very records (None where there are none). Both say
    why where they are refused.
    """

    check: str
    undecided: int
    corrected: Corrected
    powered: Corrected | None

    def as_json(self) -> dict[str, Any]:
        def told(found: Corrected) -> dict[str, Any]:
            return {**found.estimate.as_json(), "reason": found.reason}

        return {
            "check": self.check,
            "raw": self.corrected.raw.as_json(),
            "undecided": self.undecided,
            "corrected": told(self.corrected),
            "prediction_powered": told(self.powered) if self.powered else None,
        }


class Corrections:
    """Adds up output lines, check by check, for those checks whose judge has a profile."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def add(self, text: bytes, judgement: Mapping[str, Any], bound: Bound) -> None:
        """Count one output line that a workflow with these errors brought."""
        if judgement.get("edits"):
            return
        subject: Subject | None = None
        for check in {check["check"]: check for check in judgement.get("checks", ())}.values():
            errors = bound.errors.get((check["check"], check["by"]))
            if errors is None or check["verdict"] in (Verdict.SKIPPED, Verdict.ERROR):
                continue
            by_value = _by_value(check, bound)
            if subject is None and (errors.labels or by_value):
                subject = _subject(text, bound)
            tally = self._tallies.setdefault(check["check"], _Tally(errors.rates))
            tally.add(
                _verdicts(check, subject if by_value else None), _truth(errors.labels, subject)
            )

    def rates(self) -> Iterator[CorrectedRate]:
        """One for each check, in the order of their names."""
        for name, tally in sorted(self._tallies.items()):
            yield _rate(name, tally)


def _rate(name: str, tally: _Tally) -> CorrectedRate:
    sums, known = tally.sums, tally.rates
    corrected = rogan_gladen(
        sums.passed,
        sums.n,
        known.passed,
        known.passes,
        known.failed,
        known.fails,
        deff_judged=sums.design_effect,
        deff_labelled=known.design_effect,
    )
    powered = None
    if tally.pairs:
        powered = prediction_powered(
            sums.passed,
            sums.n,
            tally.pairs,
            deff_judged=sums.design_effect,
            deff_labelled=known.design_effect,
        )
    return CorrectedRate(name, tally.undecided, corrected, powered)


def _by_value(check: Mapping[str, Any], bound: Bound) -> bool:
    return bound.context.panel(check["check"], check["by"]).rubric.about == "values"


def _verdicts(check: Mapping[str, Any], asked: Subject | None) -> dict[str | None, str]:
    """The verdict on each value asked about, by its text, or on the record, by None.

    A value on which nothing was found is undecided.
    """
    if asked is None:
        return {None: check["verdict"]}
    found: dict[str | None, str] = {v.text: Verdict.ABSTAIN for v in asked.values}
    told = Check.model_validate(check).verdicts()
    return found | {value: verdict for value, verdict in told.items() if value is not None}


def _truth(
    labels: Mapping[str, bool], subject: Subject | None
) -> Callable[[str | None], bool | None]:
    if subject is None or not labels:
        return lambda value: None
    return lambda value: labels.get(item_key(subject, value))


def _subject(text: bytes, bound: Bound) -> Subject | None:
    """The record of an output line as it was read."""
    line = json.loads(text)
    original = line.pop(RESERVED).get("original") or {}
    record = build(Item("", 0, {**line, **original}), bound.workflow.kind)
    return None if isinstance(record, Problem) else Subject.of(record)
