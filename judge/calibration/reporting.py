"""One judge's report: how it stands, what was fitted, people beside it, and its profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from judge.calibration.deciding import decided
from judge.calibration.disagreements import Disagreement, disagreements
from judge.calibration.judged import Judged, Unanswered
from judge.calibration.measures import Measures, measure
from judge.calibration.outcome import JudgeReport
from judge.calibration.people import AgainstPeople, against_people
from judge.calibration.rating import data_of, edited, labels_by_key, rates
from judge.calibration.seen import Job, Parts, Seen
from judge.calibration.slices import by_slice
from judge.calibration.stability import Stability, stability
from judge.judging.judge import Judge
from judge.profiles import Guarantee, JudgeProfile
from judge.records.labels import LabelledItem
from judge.stats.guarantee import CascadePolicy


def report_on(
    job: Job,
    seen: Seen,
    items: Sequence[LabelledItem],
    parts: Parts,
    policy: CascadePolicy | None,
    number: int,
) -> JudgeReport:
    judge, kept = seen.judge, seen.answers(parts.kept)
    stands = seen.answers(parts.kept, judge.reader)
    fitted = seen.fit.combination is not None
    used = seen.reader.wanted(judge.rubric) if judge.probabilistic else ()
    everything = seen.answers(range(len(items)))
    calibrated = _measured(job, judge, kept) if fitted else None
    final = calibrated or _measured(job, judge, stands)
    return JudgeReport(
        model=judge.client.spec,
        reading="probability" if judge.probabilistic else "structured",
        questions=tuple(_texts(judge, used)),
        fit=seen.fit,
        stands=_measured(job, judge, stands) if fitted else final,
        calibrated=calibrated,
        by={
            name: by_slice(
                kept,
                name,
                judge.rubric.answers,
                ordinal=judge.rubric.ordinal,
                seed=job.seed,
                draws=job.draws,
            )
            for name in job.by
        },
        people=_people(job, kept),
        stability=_stability(job, judge, [seen.observed[place].said for place in parts.kept]),
        disagreements=_disagreements(seen, parts.kept, len(items)),
        skipped=Counter(one.evidence or "" for one in everything if one.outcome == "skipped"),
        profile=_profile(job, seen, items, parts, policy, number, final),
        unanswered=Unanswered.of(everything),
    )


def _disagreements(seen: Seen, kept: Sequence[int], items: int) -> list[Disagreement]:
    """Those that the measures count, then those of the items that were fitted to, which a person
    should read as well."""
    answers = seen.judge.rubric.answers
    usable = [n for n in range(items) if seen.observed[n].item.reference in answers]
    apart = set(kept)
    return [
        *disagreements([_as_shown(seen, n) for n in usable if n in apart]),
        *disagreements([_as_shown(seen, n) for n in usable if n not in apart], held_out=False),
    ]


def _as_shown(seen: Seen, place: int) -> Judged:
    """The judge's answer to an item of which only that is left which the judge was shown."""
    (judged,), subject = seen.answers([place]), seen.observed[place].subject
    if subject is None:
        return judged
    shown = {name: subject.texts[name] for name in seen.judge.rubric.fields}
    if judged.item.number:
        shown["value"] = subject.value(judged.item.number)
    return replace(judged, item=replace(judged.item, fields=shown))


def _measured(job: Job, judge: Judge, judged: Sequence[Judged]) -> Measures:
    rubric = judge.rubric
    return measure(judged, rubric.answers, ordinal=rubric.ordinal, seed=job.seed, draws=job.draws)


def _texts(judge: Judge, used: Sequence[int]) -> Iterator[str]:
    probability = judge.rubric.readings.probability
    for place in used:
        assert probability is not None
        question = probability.questions[place]
        turned = " (swapped)" if question.swapped else ""
        yield " ".join(question.question.split()) + turned


def _people(job: Job, judged: Sequence[Judged]) -> AgainstPeople | None:
    if all(len(one.item.annotations) < 2 for one in judged):
        return None
    return against_people(judged, epsilon=job.epsilon, seed=job.seed, draws=job.draws)


def _stability(job: Job, judge: Judge, judged: Sequence[Judged]) -> Stability | None:
    if not any(one.repeats or one.swapped for one in judged):
        return None
    return stability(judged, judge.rubric.answers, seed=job.seed, draws=job.draws)


def _profile(
    job: Job,
    seen: Seen,
    items: Sequence[LabelledItem],
    parts: Parts,
    policy: CascadePolicy | None,
    number: int,
    final: Measures,
) -> JudgeProfile:
    rubric, rated = seen.judge.rubric, seen.rated(parts.kept)
    sure_at, guarantee = 0.0, None
    if policy is not None and (threshold := policy.stages[number].threshold) is not None:
        stage = policy.stages[number]
        sure_at = threshold
        guarantee = Guarantee(
            agreement=job.agreement or 0.0,
            level=job.level,
            labels=stage.coverage.of,
            decided=round(stage.coverage.value or 0.0, 4),
        )
        rated = [(decided([one], [threshold]), about) for one, about in rated]
    as_they_came = [pair for pair in rated if not edited(pair[0].item)]
    after_edits = [pair for pair in rated if edited(pair[0].item)]
    return JudgeProfile(
        bond=seen.bond,
        data=data_of(job.sources, items, len(parts.fitted), len(parts.kept)),
        combination=seen.fit.combination,
        sure_at=sure_at,
        guarantee=guarantee,
        rates=rates(rubric, as_they_came),
        edited=rates(rubric, after_edits) if after_edits else None,
        labels=labels_by_key(rubric, rated),
        measures={
            "accuracy": final.accuracy.as_json(),
            "kappa": final.kappa.as_json(),
            "auc": final.auc.as_json(),
            "calibration_error": final.calibration_error.as_json(),
        },
    )
