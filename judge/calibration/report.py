"""The report of a calibration, by check and judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import ceil
from typing import Any

from judge.calibration import finding
from judge.calibration.controls import Controls, LabelLeak
from judge.calibration.fit import Fit, LearningCurve
from judge.calibration.guarantee import CascadePolicy
from judge.calibration.labels import unreadable_lines
from judge.calibration.measures import AgainstPeople, JudgeDifference, Measures
from judge.calibration.observe import LabelledAnswer
from judge.judging.prompts import shown_texts
from judge.profile import JudgeProfile, Profile
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.records.names import entry_name
from judge.stats.intervals import plain


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which the judge's answer differs from the reference.

    Args:
        confidence: the judge's probability of its answer; None if it gives none.
        votes: counts of people's answers, the most frequent first.
        whys: people's reasons, by person.
        held_out: false for an item used for fitting, which the measures do not include.
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
    """The disagreements: held-out items (indices in `held_out`) first, then items used for fitting.

    Within both, the most confident come first, and those without a confidence last.
    """
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
    return sorted(
        items,
        key=lambda row: (not row.held_out, -(row.confidence or 0.0), row.record, row.number),
    )


def _shown(rubric: Rubric, answer: LabelledAnswer) -> Mapping[str, Any]:
    """The texts and the entry as shown; all fields if never asked."""
    record, number = answer.record, answer.item.number
    if record is None:
        return answer.item.record.visible
    entry = {}
    if rubric.each and number:
        entry = {entry_name(rubric.each): record.entry(rubric.each, number)}
    return shown_texts(rubric, record) | entry


def labelled_by(items: Sequence[LabelledItem]) -> dict[str, int]:
    """How many items each person labelled, the most first; items without a name count under "".

    Without annotators, the field `labelled_by` names the person, which labels of the project's own
    form may have.
    """
    counts = Counter[str]()
    for item in items:
        person = "" if "labelled_by" in item.record.visible else item.slices.get("labelled_by", "")
        counts.update({one.annotator for one in item.annotations} or {person})
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge on one check.

    - `uncalibrated`: measures of the uncalibrated judge, over the held-out items
    - `calibrated`: measures of the fitted judge over the same items; None if nothing was fitted
    - `by`: measures of the final method by slice: the slice's name, then its value
    - `people`: the judge compared with the items' annotators; None if it answered no item with two
    - `disagreements`: under the final method, over the held-out items, the most confident first;
      then over the items used for fitting, marked
    - `outcomes`: counts over all items; `unanswered`: why the first failed item failed, or, if none
      failed, why the first unreadable or else unanswered item has no answer
    - `lost`: the records of items without a readable reply, first that of `unanswered`
    - `controls`: agreement without the deciding field, and with another's; None if not computed
    - `test_sets`: measures over further sets, by source; their records were not used for fitting,
      and `left_out` items of records that were
    - `curve`: agreement with fewer labels; None if nothing was fitted
    """

    model: str
    method: str
    questions: tuple[str, ...]
    fit: Fit
    uncalibrated: Measures
    calibrated: Measures | None
    by: Mapping[str, Mapping[str, Measures]]
    people: AgainstPeople | None
    disagreements: Sequence[Disagreement]
    skipped: Mapping[str, int]
    profile: JudgeProfile
    outcomes: Counter[str]
    unanswered: str | None = None
    lost: tuple[str, ...] = ()
    controls: Controls | None = None
    test_sets: Mapping[str, Measures] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    curve: LearningCurve | None = None

    @property
    def name(self) -> str:
        """The judge's name beside the measures of the final method."""
        return f"{self.model}, calibrated" if self.calibrated else self.model

    @property
    def final(self) -> Measures:
        """The measures of the method that is stored in the profile."""
        return self.calibrated or self.uncalibrated

    def as_json(self) -> dict[str, Any]:
        report = {item.name: plain(getattr(self, item.name)) for item in fields(self)}
        del report["profile"], report["fit"]["classifier"], report["fit"]["way"]
        if self.controls is not None:
            report["controls"] |= {"looks": self.controls.looks, "finding": self.controls.finding()}
        return report | {"fingerprint": self.profile.fingerprint}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One check: its question, its labels and who gave them, its judges and their cascade.

    Args:
        clusters: how many independent clusters the items form.
        joined: how many records or groups are in another's cluster because of their text
            (judge/calibration/split.py).
        shown: the fields that were shown, and `withheld`: those removed because they hold people's
            answers. Both only if the rubric names no fields.
        leak: a field that predicts the labels; with one, the figures do not measure agreement.
        references: how many items have each answer as their reference.
        policy: the cascade's thresholds; `refused` says why there is no guarantee.
        folds: how many folds there are; each was answered by a fit to the others.
        read_as: maps words of labels to the answers they were read as.
        taken: other checks whose labels were taken as answers to this one.
        other_question: the note that people were asked in other words, if they were.
        differences: each further judge against the first, by the final methods.
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
    references: Mapping[str, int]
    fitted_on: int
    held_out: int
    judges: Sequence[JudgeReport]
    policy: CascadePolicy | None = None
    refused: str | None = None
    folds: int = 0
    read_as: Mapping[str, str] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    other_question: str | None = None
    differences: Sequence[JudgeDifference] = ()

    @property
    def check(self) -> str:
        return self.rubric.name

    @property
    def with_reference(self) -> int:
        """How many items have one of the rubric's answers as their reference."""
        return sum(self.references.values())

    @property
    def classes(self) -> tuple[str, ...]:
        """The rubric's answers."""
        return self.rubric.answers

    @property
    def rows(self) -> list[tuple[str, dict[str, str]]]:
        """The measures of each judge; also uncalibrated, if something was fitted."""
        rows = []
        for judge in self.judges:
            if judge.calibrated is not None and judge.uncalibrated.accuracy.n:
                rows.append((f"{judge.model}, as it stands", judge.uncalibrated.row))
            rows.append((judge.name, judge.final.row))
        return rows

    @property
    def findings(self) -> list[str]:
        """Sentences on the agreement of people with one another, on each judge, and on the
        differences between judges."""
        judges = (f"{judge.name}: {finding.finding(self, judge)}" for judge in self.judges)
        return [*finding.people(self), *judges, *finding.differences(self)]

    @property
    def unanswered(self) -> list[str]:
        """Sentences on the items without a readable reply."""
        return [*finding.unanswered(self)]

    @property
    def labels_told(self) -> list[str]:
        """Sentences on the labels, and on how each judge was asked."""
        return [*finding.labels(self)]

    @property
    def remarks(self) -> list[str]:
        """Sentences on the controls, and those of `further`."""
        return [*finding.controls(self), *self.further]

    @property
    def further(self) -> list[str]:
        """Sentences on further sets, fewer labels, and the guarantee."""
        return [*finding.further(self), *finding.policy(self)]

    def as_json(self) -> dict[str, Any]:
        judges = [
            judge.as_json() | {"finding": finding.finding(self, judge)} for judge in self.judges
        ]
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        about = {"check": self.check, "classes": self.classes, "rubric": own.pop("rubric").keys}
        about |= {"with_reference": self.with_reference}
        return plain({**about, **own, "judges": judges})  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The results of `judge calibrate`.

    Args:
        profile: the judges that gave an answer; None if none did, or if the requested agreement
            cannot be guaranteed (`refused` says why).
        problems: lines that could not be used.
        taught: how many items were left out because a model's adapter was trained on them.
        no_label: how many answers to the other items mean "no label".
        blank: how many rows of the labels have none.
    """

    sources: tuple[str, ...]
    checks: Sequence[CheckReport]
    profile: Profile | None
    problems: Sequence[Record] = field(default_factory=tuple)
    refused: str | None = None
    taught: int = 0
    no_label: int = 0
    blank: int = 0

    def __str__(self) -> str:
        """The findings, by check."""
        return "\n".join(line for check in self.checks for line in (check.check, *check.findings))

    @property
    def uncorrected(self) -> list[str]:
        """Sentences on the checks whose pass rates the profile does not correct: the judge, why,
        and about how many more labels it takes."""
        if self.profile is None:
            return []
        sentences = []
        for check in self.checks:
            if check.leak or check.rubric.rule.counts:
                continue
            rates = [(j.model, j.profile.rates) for j in check.judges if j.outcomes["answered"]]
            if cascade := self.profile.cascades.get(check.check):
                # The rates are those of its judges together.
                rates = [("the cascade", cascade)]
            for model, of in rates:
                if why := of.unfit:
                    more = ceil(of.missing * check.items / max(1, check.held_out))
                    why += f"; label about {more} more" if more else ""
                    sentences.append(
                        f"{check.check}, {model}: the profile corrects no pass rates, {why}"
                    )
        return sentences

    @property
    def failed(self) -> bool:
        """Whether lines, answers or the guarantee are missing, or a field leaks the labels."""
        incomplete = any(check.unanswered for check in self.checks)
        leaks = any(check.leak for check in self.checks)
        return bool(self.problems or self.refused or incomplete or leaks)

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON values, without the profile, which has its own file."""
        return {
            "sources": [str(source) for source in self.sources],
            "checks": [check.as_json() for check in self.checks],
            "unreadable_lines": unreadable_lines(self.problems),
            "taught_left_out": self.taught,
            "no_label": self.no_label,
            "blank": self.blank,
            "refused": self.refused,
            "uncorrected": self.uncorrected,
        }
