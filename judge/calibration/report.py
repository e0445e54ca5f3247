"""The report of a calibration, by check and judge; the disagreements first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from judge.calibration import finding
from judge.calibration.controls import Controls, LabelLeak
from judge.calibration.fit import Fit, LearningCurve
from judge.calibration.guarantee import CascadePolicy
from judge.calibration.measures import AgainstPeople, Measures
from judge.calibration.observe import LabelledAnswer
from judge.profile import JudgeProfile, Profile
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.records.names import entry_name
from judge.stats.intervals import plain


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item that the judge answered otherwise than the reference.

    `confidence` is the probability that the judge gave its answer, None where it gives none.
    `votes` counts the people's answers, the most frequent first, `whys` are the reasons that they
    gave, by person. `held_out` is false for an item that something was fitted to: the measures say
    nothing of it.
    """

    record: str
    check: str
    number: int
    answer: str
    reference: str
    confidence: float | None
    quote: str | None
    reason: str | None
    fields: Mapping[str, Any]
    votes: Mapping[str, int]
    whys: Mapping[str, str]
    source: str
    line: int
    held_out: bool = True


def disagreements(
    rubric: Rubric, answers: Sequence[LabelledAnswer], held_out: Container[int]
) -> list[Disagreement]:
    """Those of the items at the places `held_out`, then those of the items that were fitted to;
    of either the surest first, those without a confidence last."""
    items = []
    for place, labelled in enumerate(answers):
        item, answer, reference = labelled.item, labelled.answer, labelled.item.reference
        if answer is None or reference not in rubric.answers or answer == reference:
            continue
        items.append(
            Disagreement(
                record=item.record.id,
                check=item.check,
                number=item.number,
                answer=answer,
                reference=reference,
                confidence=labelled.probabilities.get(answer),
                quote=labelled.quote,
                reason=labelled.reason,
                fields=_shown(rubric, labelled),
                votes=dict(
                    Counter(annotation.answer for annotation in item.annotations).most_common()
                ),
                whys={one.annotator: one.why for one in item.annotations if one.why},
                source=item.record.source,
                line=item.record.line,
                held_out=place in held_out,
            )
        )
    items.sort(key=lambda row: (row.record, row.number))
    return sorted(items, key=lambda row: (not row.held_out, -(row.confidence or 0.0)))


def _shown(rubric: Rubric, answer: LabelledAnswer) -> Mapping[str, Any]:
    """The part of the item that the judge was shown."""
    record, number = answer.record, answer.item.number
    if record is None:
        return answer.item.record.visible
    entry = {}
    if rubric.each and number:
        entry = {entry_name(rubric.each): record.entry(rubric.each, number)}
    return {name: record.texts[name] for name in rubric.fields} | entry


def labelled_by(items: Sequence[LabelledItem]) -> dict[str, int]:
    """How many of the items each person labelled; those whose labels name nobody under "".

    Where there are no annotators the field `author` tells, which labels of the project's own form
    may have.
    """
    counts = Counter[str]()
    for item in items:
        author = "" if "author" in item.record.visible else item.slices.get("author", "")
        counts.update({one.annotator for one in item.annotations} or {author})
    return dict(counts.most_common())


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge on one check.

    - `stands`: its measures as it stands, over all items that nothing was fitted to
    - `calibrated`: the same items under what was fitted; None where nothing was
    - `by`: the better of the two, by slice: name of the slice, then its value
    - `people`: beside the annotators of the same items; None without two for any item
    - `disagreements`: under the final method, over the items that the measures are over, the
      surest first; then over the items that were fitted to, marked
    - `outcomes`: of all items put to the judge; `unanswered`: why the first one failed, or, where
      none did, why the first is without an answer
    - `controls`: without the deciding field, and with another's; None where none is named
    - `test_sets`: over further sets, by source; nothing was fitted to records of theirs
    - `curve`: with fewer labels; None where nothing was fitted
    """

    model: str
    method: str
    questions: tuple[str, ...]
    fit: Fit
    stands: Measures
    calibrated: Measures | None
    by: Mapping[str, Mapping[str, Measures]]
    people: AgainstPeople | None
    disagreements: Sequence[Disagreement]
    skipped: Mapping[str, int]
    profile: JudgeProfile
    outcomes: Counter[str]
    unanswered: str | None = None
    controls: Controls | None = None
    test_sets: Mapping[str, Measures] = field(default_factory=dict)
    curve: LearningCurve | None = None

    @property
    def name(self) -> str:
        """The name that goes with the measures of the final method."""
        return f"{self.model}, calibrated" if self.calibrated else self.model

    @property
    def final(self) -> Measures:
        """The measures of the method that the profile stands for."""
        return self.calibrated or self.stands

    def as_json(self) -> dict[str, Any]:
        report = {item.name: plain(getattr(self, item.name)) for item in fields(self)}
        del report["profile"], report["fit"]["classifier"], report["fit"]["way"]
        if self.controls is not None:
            report["controls"] |= {"looks": self.controls.looks, "finding": self.controls.finding()}
        return report | {"fingerprint": self.profile.fingerprint}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One check: its question, its labels and who gave them, its judges, the policy of their
    cascade, why it is refused.

    With `folds` each part of the labels was answered by what was fitted to the others. `clusters`
    are independent of one another; `joined` records or groups are in one with others because of
    their texts (judge/calibration/split.py). Where the rubric names no fields, those `shown` and
    those `withheld` as people's answers are told; words of labels were `read_as` answers. With a
    `leak` the figures are no agreement.
    """

    rubric: Rubric
    items: int
    records: int
    labelled_by: Mapping[str, int]
    clusters: int
    joined: int
    shown: tuple[str, ...]
    withheld: tuple[str, ...]
    leak: LabelLeak | None
    with_reference: int
    fitted_on: int
    held_out: int
    judges: Sequence[JudgeReport]
    policy: CascadePolicy | None = None
    refused: str | None = None
    folds: int = 0
    read_as: Mapping[str, str] = field(default_factory=dict)

    @property
    def check(self) -> str:
        return self.rubric.name

    @property
    def classes(self) -> tuple[str, ...]:
        """Its answers."""
        return self.rubric.answers

    @property
    def rows(self) -> list[tuple[str, dict[str, str]]]:
        """The measures of each judge, also as it stands where something was fitted."""
        rows = []
        for judge in self.judges:
            if judge.calibrated is not None and judge.stands.accuracy.n:
                rows.append((f"{judge.model}, as it stands", judge.stands.row))
            rows.append((judge.name, judge.final.row))
        return rows

    @property
    def findings(self) -> list[str]:
        """How far people agree with one another, and a sentence on each judge."""
        judges = (f"{judge.name}: {finding.finding(self, judge)}" for judge in self.judges)
        return [*finding.people(self), *judges]

    @property
    def labels_told(self) -> list[str]:
        """What the labels are, and how each judge was asked."""
        return [*finding.labels(self)]

    @property
    def remarks(self) -> list[str]:
        """What controls found, and what is `further`."""
        return [*finding.controls(self), *self.further]

    @property
    def further(self) -> list[str]:
        """Further sets, fewer labels, and the guarantee."""
        return [*finding.further(self), *finding.policy(self)]

    def as_json(self) -> dict[str, Any]:
        judges = [
            judge.as_json() | {"finding": finding.finding(self, judge)} for judge in self.judges
        ]
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        about = {"check": self.check, "classes": self.classes, "rubric": own.pop("rubric").keys}
        return plain({**about, **own, "judges": judges})  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that `judge calibrate` found; `problems` are lines that could not be used.

    `profile` holds the judges that gave an answer; None where none did, or where the agreement
    that was asked for cannot be guaranteed (`refused` says why). `taught` items were left out,
    because a model's adapter was taught by them; of the others' answers `no_label` stood for no
    label.
    """

    sources: tuple[str, ...]
    checks: Sequence[CheckReport]
    profile: Profile | None
    problems: Sequence[Record] = field(default_factory=tuple)
    refused: str | None = None
    taught: int = 0
    no_label: int = 0

    def __str__(self) -> str:
        """What `judge calibrate` says first, check by check."""
        return "\n".join(line for check in self.checks for line in (check.check, *check.findings))

    @property
    def failed(self) -> bool:
        """Whether lines, answers or the guarantee are missing, or a field tells the labels."""
        came = [judge.outcomes for check in self.checks for judge in check.judges]
        incomplete = any(outcomes["error"] or not outcomes["answered"] for outcomes in came)
        leaks = any(check.leak for check in self.checks)
        return bool(self.problems or self.refused or incomplete or leaks)

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
            "taught_left_out": self.taught,
            "no_label": self.no_label,
            "refused": self.refused,
        }
