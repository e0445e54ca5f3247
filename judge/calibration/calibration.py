"""`judge calibrate` without its command line: labels to judges to measures to a profile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from judge import __version__
from judge.calibration.cascade import decided, policy_of, refusal
from judge.calibration.fitting import Fit, Read, fit
from judge.calibration.labels import gather, split
from judge.calibration.measures import Measures, measure, slices
from judge.calibration.observations import (
    Judged,
    Observation,
    Unanswered,
    as_read,
    observe,
)
from judge.calibration.people import against_people
from judge.calibration.rating import Rated, data_of, edited, labels_by_key, rates
from judge.calibration.report import (
    Calibration,
    CheckReport,
    Disagreement,
    JudgeReport,
    disagreements,
    position_bias,
)
from judge.errors import UsageError
from judge.judging.judge import Judge, Sampling
from judge.judging.reading import Reader
from judge.profiles import Bond, Guarantee, JudgeProfile, Profile, Rates
from judge.records.labels import LabelledItem
from judge.rubric import Rubric
from judge.run.calibrated import bond_of
from judge.run.setup import Setup
from judge.settings import Settings
from judge.stats.guarantee import CascadePolicy

Told = Callable[[str, str, int, int], None]
"""Is told check, model, items done, items in all."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to calibrate on, and how.

    - `sources`, `checks`, `records`, `records_of`, `annotators`: the labels, as `gather` takes them
    - `held_out`: the share of the records (0 to 1) that nothing is fitted to
    - `by`: fields to tell results apart by
    - `agreement`: what the judge shall be guaranteed to agree; None for no guarantee
    - `level`: the confidence of that guarantee
    - `epsilon`: what the alternative annotator test forgives a judge
    - `draws`, `seed`: resamples of each interval, and the seed of all that is drawn
    """

    sources: Sequence[str]
    checks: Sequence[str] = ()
    held_out: float = 0.5
    records: int | None = None
    records_of: Mapping[str, int | None] = field(default_factory=dict)
    by: Sequence[str] = ()
    agreement: float | None = None
    level: float = 0.95
    epsilon: float = 0.1
    draws: int = 1000
    seed: int = 0
    annotators: Path | None = None


@dataclass(frozen=True, slots=True)
class _Parts:
    """The places of the items that are fitted to, of each stage's own, and of those kept apart."""

    fitted: list[int]
    stages: list[list[int]]
    kept: list[int]


@dataclass(frozen=True, slots=True)
class _Seen:
    """One judge's observations of a check's items, and what was fitted to them."""

    judge: Judge
    observed: Sequence[Observation]
    fit: Fit
    bond: Bond

    @property
    def reader(self) -> Reader:
        if self.fit.combination is None:
            return self.judge.reader
        return Reader(combination=self.fit.combination)

    def answers(self, places: Sequence[int], reader: Reader | None = None) -> list[Judged]:
        """Its answers to the items at these places, under its final reader or another."""
        chosen = reader or self.reader
        return [
            one.said if one.chances is None else as_read(one.item, self.judge, one.chances, chosen)
            for one in (self.observed[place] for place in places)
        ]


def calibrate(job: Job, settings: Settings, told: Told = lambda *_: None) -> Calibration:
    """`acalibrate` with the judges that the settings name; not for use inside an event loop.

    Raises:
        UsageError: as `acalibrate`, and for settings that make no judge.
        BackendError: as `acalibrate`.
    """

    async def go() -> Calibration:
        setup = Setup.of(settings)
        try:
            await setup.prepare_judges()
            return await acalibrate(job, setup, told)
        finally:
            await setup.aclose()

    return asyncio.run(go())


async def acalibrate(job: Job, setup: Setup, told: Told = lambda *_: None) -> Calibration:
    """Put the labelled items to every judge of the setup, and say how far they agree.

    Raises:
        UsageError: see `gather`; a slice that no item has; judges that make no cascade.
        BackendError: a model is out of reach, refuses the key, or the budget is used up.
    """
    judges_of: dict[str, list[Judge]] = {}

    def rubric_of(check: str) -> Rubric:
        judges_of[check] = [setup.judge(check, spec) for spec in setup.judges]
        return judges_of[check][0].rubric

    found, problems = gather(
        job.sources,
        rubric_of,
        checks=job.checks,
        records=job.records,
        records_of=job.records_of,
        annotators=job.annotators,
        seed=job.seed,
    )
    for check, items in found.items():
        _refuse_unusable(job, judges_of[check], items)
    checks, cascades, refused = [], {}, []
    for check, items in found.items():
        report, rates_of_all, why = await _check(job, setup, judges_of[check], items, told)
        checks.append(report)
        if rates_of_all is not None:
            cascades[check] = rates_of_all
        if why:
            refused.append(f"{check}: {why}")
    judges = tuple(
        judge.profile for report in checks for judge in report.judges if not judge.unanswered.silent
    )
    if not judges:
        refused.append("no item got an answer")
    profile = None
    if not refused:
        profile = Profile(made_by=f"judge {__version__}", cascades=cascades, judges=judges)
    told_why = "; ".join(refused) or None
    return Calibration(tuple(job.sources), checks, profile, problems, told_why)


def _refuse_unusable(job: Job, judges: Sequence[Judge], items: Sequence[LabelledItem]) -> None:
    """Find out before anything is asked what would only show at the end.

    Raises:
        UsageError: judges that make no cascade, or a slice that no item has.
    """
    if job.agreement is not None:
        if len(judges) > 2:
            told = f"{len(judges)} given"
            raise UsageError(f"--agree takes one judge, or a cheap and a strong one; {told}")
        if len(judges) == 2 and not judges[0].probabilistic:
            raise UsageError(
                f"--agree: {judges[0].client.spec} comes first and must be cheap: it has to read "
                "P(yes) from log-probabilities (--reading probability, or a model that gives them)"
            )
    stand_ins = [Judged(item, "skipped") for item in items]
    for name in job.by:
        slices(stand_ins, name)


async def _check(
    job: Job, setup: Setup, judges: Sequence[Judge], items: Sequence[LabelledItem], told: Told
) -> tuple[CheckReport, Rates | None, str | None]:
    """The report of one check, the rates of its cascade, and why it has no profile."""
    parts = _parts(job, items, len(judges))
    seen = [await _see(job, setup, judge, items, parts.fitted, told) for judge in judges]
    if job.agreement is None and all(one.fit.combination is None for one in seen):
        parts = _Parts([], [], list(range(len(items))))
    policy = None
    if job.agreement is not None:
        policy = policy_of(
            [one.answers(parts.fitted) for one in seen],
            [[one.answers(part) for one in seen[: n + 1]] for n, part in enumerate(parts.stages)],
            job.agreement,
            job.level,
            seed=job.seed,
        )
    rubric = judges[0].rubric
    referenced = [item for item in items if item.reference in rubric.answers]
    report = CheckReport(
        check=rubric.name,
        classes=rubric.answers,
        items=len(items),
        records=len({item.record for item in items}),
        referenced=len(referenced),
        fitted_on=len(parts.fitted),
        held_out=len(parts.kept),
        judges=[_report_on(job, one, items, parts, policy, n) for n, one in enumerate(seen)],
        policy=policy,
    )
    if policy is None:
        return report, None, None
    whole = _cascade_rates(seen, parts.kept, policy) if len(seen) > 1 else None
    return report, whole, refusal(policy, len({item.record for item in referenced}))


def _parts(job: Job, items: Sequence[LabelledItem], judges: int) -> _Parts:
    if job.agreement is None:
        fitted, kept = split(items, [1 - job.held_out, job.held_out], job.seed)
        return _Parts(fitted, [], kept)
    share = job.held_out / (judges + 1)
    fitted, *stages, kept = split(items, [1 - job.held_out, *[share] * (judges + 1)], job.seed)
    return _Parts(fitted, stages, kept)


async def _see(
    job: Job,
    setup: Setup,
    judge: Judge,
    items: Sequence[LabelledItem],
    fitted: Sequence[int],
    told: Told,
) -> _Seen:
    settings = setup.settings
    votes = settings.votes or 1
    warm = settings.vote_temperature if votes > 1 else settings.temperature
    observed = await observe(
        judge,
        items,
        votes=votes,
        sampling=Sampling(warm, settings.seed),
        at_once=setup.slots,
        told=lambda count: told(judge.rubric.name, judge.client.spec, count, len(items)),
    )
    questions = {question for one in observed for question in one.chances or ()}
    train = [
        Read(one.chances, one.item.reference, one.item.record)
        for one in (observed[place] for place in fitted)
        if one.chances and set(one.chances) == questions
        if one.item.reference in judge.rubric.answers
    ]
    found = Fit(reason="a structured reading is taken as it stands")
    if judge.probabilistic:
        found = fit(judge.rubric, judge.reader, train, seed=job.seed)
    return _Seen(judge, observed, found, bond_of(judge, votes, warm))


# ---------------------------------------------------------------- one judge's report


def _report_on(
    job: Job,
    seen: _Seen,
    items: Sequence[LabelledItem],
    parts: _Parts,
    policy: CascadePolicy | None,
    number: int,
) -> JudgeReport:
    judge, rubric, kept = seen.judge, seen.judge.rubric, seen.answers(parts.kept)

    def measured(judged: Sequence[Judged]) -> Measures:
        return measure(
            judged, rubric.answers, ordinal=rubric.ordinal, seed=job.seed, draws=job.draws
        )

    stands = measured(seen.answers(parts.kept, judge.reader))
    calibrated = measured(kept) if seen.fit.combination is not None else None
    everything = seen.answers(range(len(items)))
    people = None
    if any(len(one.item.annotations) > 1 for one in kept):
        people = against_people(kept, epsilon=job.epsilon, seed=job.seed, draws=job.draws)
    return JudgeReport(
        model=judge.client.spec,
        reading="probability" if judge.probabilistic else "structured",
        questions=tuple(_questions(seen)),
        fit=seen.fit,
        stands=stands,
        calibrated=calibrated,
        by={
            name: {value: measured(part) for value, part in slices(kept, name).items()}
            for name in job.by
        },
        people=people,
        position=position_bias(
            [seen.observed[place].said for place in parts.kept],
            rubric.answers,
            seed=job.seed,
            draws=job.draws,
        ),
        disagreements=_disagreements(seen, parts.kept, len(items)),
        skipped=Counter(one.evidence or "" for one in everything if one.outcome == "skipped"),
        profile=_profile(job, seen, items, parts, policy, number, calibrated or stands),
        unanswered=Unanswered.of(everything),
    )


def _questions(seen: _Seen) -> Iterator[str]:
    """The questions that the final reading asks, in the rubric's words."""
    probability = seen.judge.rubric.readings.probability
    if not seen.judge.probabilistic or probability is None:
        return
    for place in seen.reader.wanted(seen.judge.rubric):
        question = probability.questions[place]
        turned = " (swapped)" if question.swapped else ""
        yield " ".join(question.question.split()) + turned


def _disagreements(seen: _Seen, kept: Sequence[int], items: int) -> list[Disagreement]:
    """Those that the measures count, then those of the items that were fitted to, which a person
    should read as well."""
    answers = seen.judge.rubric.answers
    usable = [n for n in range(items) if seen.observed[n].item.reference in answers]
    apart = set(kept)
    return [
        *disagreements([_as_shown(seen, n) for n in usable if n in apart]),
        *disagreements([_as_shown(seen, n) for n in usable if n not in apart], held_out=False),
    ]


def _as_shown(seen: _Seen, place: int) -> Judged:
    """The judge's answer to an item of which only that is left which the judge was shown."""
    (judged,), subject = seen.answers([place]), seen.observed[place].subject
    if subject is None:
        return judged
    shown = {name: subject.texts[name] for name in seen.judge.rubric.fields}
    if judged.item.number:
        shown["value"] = subject.value(judged.item.number)
    return replace(judged, item=replace(judged.item, fields=shown))


# ---------------------------------------------------------------- what the profile keeps


def _profile(
    job: Job,
    seen: _Seen,
    items: Sequence[LabelledItem],
    parts: _Parts,
    policy: CascadePolicy | None,
    number: int,
    final: Measures,
) -> JudgeProfile:
    rubric = seen.judge.rubric
    rated = _rated(seen, parts.kept, seen.answers(parts.kept))
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
    return JudgeProfile(
        bond=seen.bond,
        data=data_of(job.sources, items, len(parts.fitted), len(parts.kept)),
        combination=seen.fit.combination,
        sure_at=sure_at,
        guarantee=guarantee,
        rates=rates(rubric, rated),
        labels=labels_by_key(rubric, rated),
        measures={
            "accuracy": final.accuracy.as_json(),
            "kappa": final.kappa.as_json(),
            "auc": final.auc.as_json(),
            "calibration_error": final.calibration_error.as_json(),
        },
    )


def _cascade_rates(seen: Sequence[_Seen], kept: Sequence[int], policy: CascadePolicy) -> Rates:
    """How the cascade as a whole errs, on records that nothing was fitted to or tested on."""
    thresholds = [stage.threshold for stage in policy.stages]
    rows = zip(*(one.answers(kept) for one in seen), strict=True)
    whole = _rated(seen[0], kept, [decided(row, thresholds) for row in rows])
    return rates(seen[0].judge.rubric, whole)


def _rated(seen: _Seen, places: Sequence[int], answers: Sequence[Judged]) -> list[Rated]:
    """Each answer with what the judge was shown.

    Left out are items that could not be put to it, and records that were edited.
    """
    subjects = (seen.observed[place].subject for place in places)
    return [
        (one, subject)
        for one, subject in zip(answers, subjects, strict=True)
        if subject is not None and not edited(one.item)
    ]
