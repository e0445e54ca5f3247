"""A judge's profile from its held-out answers: error rates, measures, and the labels in short."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from judge.calibration.cascade import LEVEL, decided
from judge.calibration.controls import Controls
from judge.calibration.leaks import Leak
from judge.calibration.measures import Measures
from judge.calibration.observations import LabelledAnswer
from judge.calibration.trials import Study, Trial
from judge.digest import digest
from judge.profiles import Data, JudgeProfile, Rates
from judge.profiles import Guarantee as Promise
from judge.records import Record
from judge.rubric import Rubric
from judge.run.panels import profile_key
from judge.stats.corrected_rate import design_effect
from judge.stats.guarantee import Guarantee
from judge.stats.intervals import plain
from judge.verdict import AnswerOutcome

MEASURES = ("accuracy", "kappa", "auc", "calibration_error")
ORDINAL = ("weighted_kappa", "spearman")
"""What a profile keeps of the measures; the second ones where the answers are a scale."""


def profile_of(
    study: Study,
    seen: Trial,
    stage: Guarantee | None,
    final: Measures,
    controls: Controls | None,
    leak: Leak | None,
) -> JudgeProfile:
    """A judge's profile; `stage` is its test for the agreement that was asked for, if one was, and
    `final` what it measures over the items kept apart."""
    agreement, held_out = study.job.agreement, rateable(seen.answers(study.parts.kept))
    sure_at, guarantee = 0.0, None
    if agreement is not None and stage is not None and stage.threshold is not None:
        sure_at = stage.threshold
        guarantee = Promise(
            agreement=agreement,
            level=LEVEL,
            labels=stage.coverage.of,
            decided=round(stage.coverage.value or 0.0, 4),
        )
        held_out = [decided([one], [sure_at]) for one in held_out]
    return JudgeProfile(
        binding=profile_key(seen.judge, *study.drawn),
        data=data_of(study),
        combination=seen.fit.classifier,
        sure_at=sure_at,
        guarantee=guarantee,
        rates=rates(seen.judge.rubric, held_out),
        answered_by=seen.judge.client.answering,
        measures={
            name: plain(getattr(final, name))
            for name in (*MEASURES, *(ORDINAL if final.weighted_kappa else ()))
        },
        controls=controls.as_noted() if controls else {},
        leak=leak.field if leak else None,
    )


def should_pass(rubric: Rubric, record: Record, answer: str) -> bool:
    """Whether a record with this answer passes the rubric's check."""
    return answer in rubric.passing(record.label)


def rates(rubric: Rubric, held_out: Sequence[LabelledAnswer]) -> Rates:
    """How the judge's verdicts err on items that nothing was fitted to.

    Those count that got a reply, and whose reference is one of the check's answers, and not
    `unsure`, say.
    """
    rows: list[tuple[str, bool, bool | None]] = []
    for one in held_out:
        reference = one.item.reference
        if (
            one.record is None
            or one.outcome is AnswerOutcome.ERROR
            or reference not in rubric.answers
        ):
            continue
        truth = should_pass(rubric, one.record, reference)
        passed = None if one.answer is None else should_pass(rubric, one.record, one.answer)
        rows.append((one.item.cluster, truth, passed))
    # The undecided ones count as failed and as passed where a rate is corrected.
    as_failed = _design_effect([(cluster, truth, said is True) for cluster, truth, said in rows])
    as_passed = _design_effect(
        [(cluster, truth, said is not False) for cluster, truth, said in rows]
    )
    met = Counter((truth, passed) for _, truth, passed in rows)
    return Rates(
        passed=met[True, True],
        passes=met[True, True] + met[True, False],
        failed=met[False, False],
        fails=met[False, False] + met[False, True],
        undecided_passes=met[True, None],
        undecided_fails=met[False, None],
        design_effect=round(max(as_failed, as_passed), 4),
    )


def _design_effect(rows: Sequence[tuple[str, bool, bool]]) -> float:
    """That of the passes (cluster, label, passed) about the share of passes of their label."""
    residuals: dict[str, float] = defaultdict(float)
    squares = 0.0
    for label in (True, False):
        given = [(cluster, passed) for cluster, truth, passed in rows if truth is label]
        share = sum(passed for _, passed in given) / max(1, len(given))
        for cluster, passed in given:
            residuals[cluster] += passed - share
            squares += (passed - share) ** 2
    sizes = Counter(cluster for cluster, *_ in rows)
    return design_effect([residuals[cluster] for cluster in sizes], [*sizes.values()], squares)


def rateable(judged: Sequence[LabelledAnswer]) -> list[LabelledAnswer]:
    """Without what could not be put to the judge, and without edited records: they were rewritten
    until the judge passed them, so their labels say nothing of others."""
    return [
        one for one in judged if one.record is not None and one.item.slices.get("edited") != "yes"
    ]


def data_of(study: Study) -> Data:
    """What the labels were, with a digest over items and answers."""
    told = sorted(
        [
            item.record.id,
            str(item.number),
            item.gold or "",
            *(f"{one.annotator}={one.answer}" for one in item.annotations),
        ]
        for item in study.items
    )
    return Data(
        sources=tuple(study.job.sources),
        digest=digest(told)[:16],
        items=len(study.items),
        records=len({item.record.id for item in study.items}),
        fitted_on=len(study.parts.fitted),
        held_out=len(study.parts.kept),
        folds=len(study.parts.folds),
        group=study.job.group,
    )
