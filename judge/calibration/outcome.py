"""What a calibration found: by check and judge, with the profile it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.calibration.disagreements import Disagreement
from judge.calibration.fitting import Fit
from judge.calibration.judged import Unanswered
from judge.calibration.measures import Measures
from judge.calibration.panels import PanelMeasures
from judge.calibration.people import AgainstPeople
from judge.calibration.plain import plain
from judge.calibration.stability import Stability
from judge.profiles import JudgeProfile, Profile
from judge.records import Item
from judge.stats.guarantee import CascadePolicy


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge on one check.

    - `stands`: its measures as it stands, over all items that nothing was fitted to
    - `calibrated`: the same items under what was fitted; None where nothing was
    - `by`: the better of the two, by slice: name of the slice, then its value
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
    stability: Stability | None
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
            "fit": self.fit.as_json(),
            "as_it_stands": self.stands.as_json(),
            "calibrated": self.calibrated.as_json() if self.calibrated else None,
            "by": {
                name: {value: measures.as_json() for value, measures in parts.items()}
                for name, parts in self.by.items()
            },
            "people": self.people.as_json() if self.people else None,
            "stability": self.stability.as_json() if self.stability else None,
            "skipped": dict(self.skipped),
            "unanswered": plain(self.unanswered),
            "disagreements": [one.as_json() for one in self.disagreements],
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One check: its labels, its judges, the panel that they make, the policy of their cascade."""

    check: str
    classes: tuple[str, ...]
    items: int
    records: int
    referenced: int
    fitted_on: int
    held_out: int
    judges: Sequence[JudgeReport]
    panel: PanelMeasures | None = None
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
            "panel": self.panel.as_json() if self.panel else None,
            "policy": plain(self.policy) if self.policy else None,
        }


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that `judge calibrate` found; `problems` are lines that could not be used.

    In the profile are the judges that gave an answer, and there is none where nobody did.
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
