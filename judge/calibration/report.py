"""What a calibration found: by check and judge, with what a person should read first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.calibration.fitting import Fit
from judge.calibration.measures import Measures
from judge.calibration.observations import Judged, Unanswered
from judge.calibration.people import AgainstPeople
from judge.calibration.plain import plain
from judge.profiles import JudgeProfile, Profile
from judge.records import Item
from judge.records.labels import Annotation
from judge.stats.guarantee import CascadePolicy
from judge.stats.votes import PositionEffect, position_effect


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item that the judge answered otherwise than the reference.

    `confidence` is the probability that the judge gave its answer, None where it gives none.
    `votes` counts the people's answers, the most frequent first; `annotations` says who gave them.
    `held_out` is false for an item that something was fitted to: the measures say nothing of it.
    """

    record: str
    check: str
    number: int
    answer: str
    reference: str
    confidence: float | None
    evidence: str | None
    fields: Mapping[str, Any]
    votes: Mapping[str, int]
    annotations: tuple[Annotation, ...]
    source: str
    line: int
    held_out: bool = True


def disagreements(judged: Sequence[Judged], *, held_out: bool = True) -> list[Disagreement]:
    """All of them, the surest first; those without a confidence last.

    Among equally sure ones the items come first on which more of the people are agreed, then in
    the order of record and number.

    Args:
        judged: one judge's answers on one check.
        held_out: whether these items were kept from what was fitted.
    """
    found = []
    for one in judged:
        item, answer, reference = one.item, one.answer, one.item.reference
        if answer is None or reference is None or answer == reference:
            continue
        votes = Counter(annotation.answer for annotation in item.annotations)
        found.append(
            Disagreement(
                record=item.record,
                check=item.check,
                number=item.number,
                answer=answer,
                reference=reference,
                confidence=one.probabilities.get(answer),
                evidence=one.evidence,
                fields=item.fields,
                votes=dict(sorted(votes.items(), key=lambda pair: (-pair[1], pair[0]))),
                annotations=item.annotations,
                source=item.source,
                line=item.line,
                held_out=held_out,
            )
        )

    def rank(one: Disagreement) -> tuple[bool, float, float, str, int]:
        agreed = max(one.votes.values()) / len(one.annotations) if one.votes else 0.0
        return one.confidence is None, -(one.confidence or 0.0), -agreed, one.record, one.number

    return sorted(found, key=rank)


def position_bias(
    judged: Sequence[Judged], order: Sequence[str], *, seed: int = 0, draws: int = 1000
) -> PositionEffect | None:
    """What turning round the order of the alternatives did; None where no item was asked in both.

    Args:
        judged: the answers of one judge on one check.
        order: the check's alternatives in the order in which the judge was shown them.
        seed: of the bootstrap, which draws whole records, `draws` times.
    """
    orders = [(one.answer, one.swapped) for one in judged]
    if all(None in pair for pair in orders):
        return None
    records = [one.item.record for one in judged]
    return position_effect(orders, order, records, seed=seed, draws=draws)


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge on one check.

    - `stands`: its measures as it stands, over all items that nothing was fitted to
    - `calibrated`: the same items under what was fitted; None where nothing was
    - `by`: the better of the two, by slice: name of the slice, then its value
    - `position`: what naming the alternatives in the other order did
    - `people`: beside the annotators of the same items; None without two for any item
    - `disagreements`: under the final reading, over the items that the measures are over, the
      surest first; then over the items that were fitted to, marked
    - `unanswered`: over all items put to the judge
    """

    model: str
    reading: str
    questions: tuple[str, ...]
    fit: Fit
    stands: Measures
    calibrated: Measures | None
    by: Mapping[str, Mapping[str, Measures]]
    people: AgainstPeople | None
    position: PositionEffect | None
    disagreements: Sequence[Disagreement]
    skipped: Mapping[str, int]
    profile: JudgeProfile
    unanswered: Unanswered

    @property
    def final(self) -> Measures:
        """The measures of the reading that the profile stands for."""
        return self.calibrated or self.stands

    def as_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "reading": self.reading,
            "fingerprint": self.profile.fingerprint,
            "questions": list(self.questions),
            "fit": {
                "how": self.fit.how,
                "questions": list(self.fit.combination.questions) if self.fit.combination else None,
                "items": self.fit.items,
                "reason": self.fit.reason,
                "tried": plain(self.fit.tried),
            },
            "as_it_stands": plain(self.stands),
            "calibrated": plain(self.calibrated),
            "by": plain(self.by),
            "people": plain(self.people),
            "position": plain(self.position),
            "skipped": dict(self.skipped),
            "unanswered": plain(self.unanswered),
            "disagreements": plain(self.disagreements),
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One check: its labels, its judges, the policy of their cascade."""

    check: str
    classes: tuple[str, ...]
    items: int
    records: int
    referenced: int
    fitted_on: int
    held_out: int
    judges: Sequence[JudgeReport]
    policy: CascadePolicy | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "classes": list(self.classes),
            "items": self.items,
            "records": self.records,
            "with_reference": self.referenced,
            "fitted_on": self.fitted_on,
            "held_out": self.held_out,
            "judges": [judge.as_json() for judge in self.judges],
            "policy": plain(self.policy),
        }


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that `judge calibrate` found; `problems` are lines that could not be used.

    `profile` holds the judges that gave an answer; None where none did, or where the agreement
    that was asked for cannot be guaranteed (`refused` says why).
    """

    sources: tuple[str, ...]
    checks: Sequence[CheckReport]
    profile: Profile | None
    problems: Sequence[Item] = field(default_factory=tuple)
    refused: str | None = None

    @property
    def failed(self) -> bool:
        """Whether something is missing that was asked for."""
        lost = (judge.unanswered for check in self.checks for judge in check.judges)
        return bool(self.problems or self.refused or any(one.errors or one.silent for one in lost))

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON values; the profile is a file of its own."""
        return {
            "sources": list(self.sources),
            "checks": [check.as_json() for check in self.checks],
            "unreadable_lines": [
                {
                    "source": item.source,
                    "line": item.line,
                    "message": item.problem.message if item.problem else "",
                }
                for item in self.problems
            ],
            "refused": self.refused,
        }
