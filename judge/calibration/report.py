"""What a calibration found: by check and judge, with what a person should read first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge.calibration.fitting import Fit
from judge.calibration.measures import Measures
from judge.calibration.observations import Judged, Unanswered
from judge.calibration.people import AgainstPeople
from judge.calibration.plain import plain
from judge.profiles import JudgeProfile, Profile
from judge.records import Item
from judge.records.labels import Annotation
from judge.stats.bootstrap import Resamples, bootstrap, paired_difference, share_estimate
from judge.stats.guarantee import CascadePolicy
from judge.stats.intervals import Estimate
from judge.stats.votes import PositionEffect, effective_votes, flip_rate, position_effect


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item that the judge answered otherwise than the reference.

    `confidence` is the judge's: the probability of its answer, else the share of its seeds that
    gave it, None where it was asked once without probabilities. `votes` counts the people's
    answers, the most frequent first; `annotations` says who gave them. `held_out` is false for an
    item that something was fitted to: the measures say nothing of it.
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
                confidence=confidence(one),
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


def confidence(judged: Judged) -> float | None:
    """How sure the judge was of its answer, in [0, 1]; None where nothing tells, or no answer."""
    if judged.answer is None:
        return None
    if judged.probabilities:
        return judged.probabilities.get(judged.answer, 0.0)
    if judged.repeats:
        answers = (judged.answer, *judged.repeats)
        return answers.count(judged.answer) / len(answers)
    return None


@dataclass(frozen=True, slots=True)
class Stability:
    """How often answers flip between seeds, and with the order of the alternatives.

    `flips` is over items asked under several seeds; `position` is None where no item was answered
    in both orders.
    """

    flips: Estimate
    position: PositionEffect | None


def stability(
    judged: Sequence[Judged], order: Sequence[str], *, seed: int = 0, draws: int = 1000
) -> Stability | None:
    """Flip rate and position effect of one judge on one check; no reference is needed.

    None where no item was asked again.

    Args:
        judged: the judge's answers, with `repeats` and `swapped`.
        order: the check's alternatives in the order in which the judge was shown them.
        seed: of the bootstrap, which draws whole records, `draws` times.
    """
    if not any(one.repeats or one.swapped for one in judged):
        return None
    records = [one.item.record for one in judged]
    seeds = [(one.answer, *one.repeats) for one in judged]
    orders = [(one.answer, one.swapped) for one in judged]
    both = any(None not in pair for pair in orders)
    return Stability(
        flips=flip_rate(seeds, records, seed=seed, draws=draws),
        position=position_effect(orders, order, records, seed=seed, draws=draws) if both else None,
    )


@dataclass(frozen=True, slots=True)
class PanelMeasures:
    """What a panel, the majority of its judges, adds to the best of them.

    All over the items with a reference that each of its judges answered, `n` of each estimate, out
    of the items with a reference; accuracies only over those with a majority. Of two judges, that
    is where both say the same, so their panel never differs from the better one.

    - `judges`: their names
    - `effective_votes`: as many independent judges would be worth as much (`stats.votes`)
    - `panel`, `single`, `difference`: accuracy of the panel, of its most accurate judge `best`, and
      the one less the other, paired. The best judge is picked on these items too, which flatters
      it: the comparison leans against the panel
    """

    judges: tuple[str, ...]
    effective_votes: Estimate
    panel: Estimate
    best: str
    single: Estimate
    difference: Estimate


def panel_measures(
    judges: Mapping[str, Sequence[Judged]], *, seed: int = 0, draws: int = 1000
) -> PanelMeasures | None:
    """The majority of several judges beside the best of them.

    Args:
        judges: each judge's answers to the same items, in the same order.
        seed: of the bootstrap, which draws whole records, `draws` times.

    Returns:
        None where no item with a reference was answered by all with a majority.

    Raises:
        ValueError: a judge was given other items than the first.
    """
    names = tuple(judges)
    rows = list(zip(*judges.values(), strict=True))
    for row in rows:
        if any(one.item is not row[0].item for one in row):
            raise ValueError("judges of a panel are given the same items")
    rows = [row for row in rows if row[0].item.reference is not None]
    answered = [row for row in rows if all(one.answer is not None for one in row)]
    # An item without a majority tells as much of how alike the judges err as any other.
    votes = bootstrap(
        effective_votes,
        [_hits(row) for row in answered],
        [row[0].item.record for row in answered],
        seed=seed,
        draws=draws,
    )
    settled = [(row, said) for row in answered if (said := _majority(row)) is not None]
    if not settled:
        return None
    hits = [_hits(row) for row, _ in settled]
    best = max(range(len(names)), key=lambda judge: sum(row[judge] for row in hits))
    single = [float(row[best]) for row in hits]
    panel = [float(said == row[0].item.reference) for row, said in settled]
    resamples = Resamples([row[0].item.record for row, _ in settled], seed=seed, draws=draws)
    of = len(rows)
    return PanelMeasures(
        judges=names,
        effective_votes=replace(votes, of=of),
        panel=replace(share_estimate(panel, resamples), of=of),
        best=names[best],
        single=replace(share_estimate(single, resamples), of=of),
        difference=replace(paired_difference(single, panel, resamples), of=of),
    )


def _hits(row: Sequence[Judged]) -> list[bool]:
    return [one.answer == one.item.reference for one in row]


def _majority(row: Sequence[Judged]) -> str | None:
    answer, count = Counter(one.answer for one in row).most_common(1)[0]
    return answer if 2 * count > len(row) else None


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
            "stability": plain(self.stability),
            "skipped": dict(self.skipped),
            "unanswered": plain(self.unanswered),
            "disagreements": plain(self.disagreements),
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
            "panel": plain(self.panel),
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
