"""`judge calibrate` without its command line: labels to judges to measures to a profile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge import __version__
from judge.calibration.cascade import CascadePolicy, decided, policy_of, refusal
from judge.calibration.fitting import Fit, Read, fit
from judge.calibration.labels import gather, split
from judge.calibration.measures import Measures, measure, slices
from judge.calibration.observations import Judged, Unanswered, as_read, observe
from judge.calibration.people import against_people
from judge.calibration.rating import data_of, profile_of, rateable, rates
from judge.calibration.report import Calibration, CheckReport, JudgeReport, disagreements
from judge.errors import UsageError
from judge.judging.judge import Judge, Sampling
from judge.judging.logprobs import Reader
from judge.profiles import Binding, Profile, Rates
from judge.records.labels import LabelledItem
from judge.rubric import Rubric
from judge.run.calibrated import binding_of
from judge.run.setup import Setup
from judge.settings import Settings

Told = Callable[[str, str, int, int], None]
"""Is told check, model, items done, items in all."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to calibrate on, and how.

    - `sources`, `checks`, `records`: the labels, as `gather` takes them
    - `held_out`: the share of the records (0 to 1) that nothing is fitted to
    - `by`: fields to tell results apart by
    - `agreement`: what the judge shall be guaranteed to agree; None for no guarantee
    - `draws`, `seed`: resamples of each interval, and the seed of all that is drawn
    """

    sources: Sequence[str]
    checks: Sequence[str] = ()
    held_out: float = 0.5
    records: int | Mapping[str, int | None] | None = None
    by: Sequence[str] = ()
    agreement: float | None = None
    draws: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Parts:
    """The places of the items that are fitted to, of each stage's own, and of those kept apart."""

    fitted: list[int]
    stages: list[list[int]]
    kept: list[int]

    @classmethod
    def of(cls, job: Job, items: Sequence[LabelledItem], judges: int) -> _Parts:
        if job.agreement is None:
            fitted, kept = split(items, [1 - job.held_out, job.held_out], job.seed)
            return cls(fitted, [], kept)
        share = job.held_out / (judges + 1)
        fitted, *stages, kept = split(items, [1 - job.held_out, *[share] * (judges + 1)], job.seed)
        return cls(fitted, stages, kept)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one judge said of a check's items, and what was fitted to it."""

    judge: Judge
    observed: Sequence[Judged]
    fit: Fit
    binding: Binding

    @property
    def reader(self) -> Reader:
        if self.fit.combination is None:
            return self.judge.reader
        return Reader(combination=self.fit.combination)

    def answers(self, places: Sequence[int]) -> list[Judged]:
        """Its answers to the items at these places, under its final reader."""
        found = (self.observed[place] for place in places)
        return [
            one if one.chances is None else as_read(one, self.judge, self.reader) for one in found
        ]


def calibrate(job: Job, settings: Settings, told: Told = lambda *_: None) -> Calibration:
    """`acalibrate` with the judges that the settings name; not for use inside an event loop."""

    async def go() -> Calibration:
        setup = Setup.of(settings.without_steps())
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
        seed=job.seed,
        columns=setup.settings.columns,
    )
    for check, items in found.items():
        _refuse_unusable(job, judges_of[check], items)
    checks, cascades, refused = [], {}, []
    for check, items in found.items():
        report, whole, why = await _check(job, setup, judges_of[check], items, told)
        checks.append(report)
        if whole is not None:
            cascades[check] = whole
        if why:
            refused.append(f"{check}: {why}")
    judges = tuple(
        judge.profile for report in checks for judge in report.judges if judge.unanswered.answered
    )
    if not judges:
        refused.append("no item got an answer")
    profile = None
    if not refused:
        profile = Profile(made_by=f"judge {__version__}", cascades=cascades, judges=judges)
    return Calibration(tuple(job.sources), checks, profile, problems, "; ".join(refused) or None)


def _refuse_unusable(job: Job, judges: Sequence[Judge], items: Sequence[LabelledItem]) -> None:
    """Refuse before anything is asked what would only show at the end."""
    if job.agreement is not None:
        if len(judges) > 2:
            told = f"{len(judges)} given"
            raise UsageError(f"--agree takes one judge, or a cheap and a strong one; {told}")
        if len(judges) == 2 and not judges[0].probabilistic:
            raise UsageError(
                f"--agree: {judges[0].client.spec} comes first and must be cheap: it has to read "
                "P(yes) from log-probabilities (--method logprobs, or a model that gives them)"
            )
    for name in job.by:
        slices([Judged(item, "skipped") for item in items], name)


async def _check(
    job: Job, setup: Setup, judges: Sequence[Judge], items: Sequence[LabelledItem], told: Told
) -> tuple[CheckReport, Rates | None, str | None]:
    """The report of one check, the rates of its cascade, and why it has no profile."""
    parts = _Parts.of(job, items, len(judges))
    seen = [await _see(job, setup, judge, items, parts.fitted, told) for judge in judges]
    if job.agreement is None and all(one.fit.combination is None for one in seen):
        parts = _Parts([], [], list(range(len(items))))
    policy = None
    if job.agreement is not None:
        policy = policy_of(
            [one.answers(parts.fitted) for one in seen],
            [[one.answers(part) for one in seen[: n + 1]] for n, part in enumerate(parts.stages)],
            job.agreement,
            seed=job.seed,
        )
    rubric = judges[0].rubric
    referenced = [item for item in items if item.reference in rubric.answers]
    report = CheckReport(
        check=rubric.name,
        classes=rubric.answers,
        items=len(items),
        records=len({item.record for item in items}),
        with_reference=len(referenced),
        fitted_on=len(parts.fitted),
        held_out=len(parts.kept),
        judges=[_report_on(job, one, items, parts, policy, n) for n, one in enumerate(seen)],
        policy=policy,
    )
    if policy is None:
        return report, None, None
    whole = None
    if len(seen) > 1:
        thresholds = [stage.threshold for stage in policy.stages]
        rows = zip(*(rateable(one.answers(parts.kept)) for one in seen), strict=True)
        whole = rates(rubric, [decided(row, thresholds) for row in rows])
    return report, whole, refusal(policy, len({item.record for item in referenced}))


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
    found = Fit(reason="the structured method is taken as it stands")
    if judge.probabilistic:
        found = fit(judge.rubric, judge.reader, train, seed=job.seed)
    return _Seen(judge, observed, found, binding_of(judge, votes, warm))


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
        return measure(judged, rubric.answers, seed=job.seed, draws=job.draws)

    stands = measured([seen.observed[place] for place in parts.kept])
    calibrated = measured(kept) if seen.fit.combination is not None else None
    everything = seen.answers(range(len(items)))
    people = None
    if any(len(one.item.annotations) > 1 for one in kept):
        people = against_people(kept, seed=job.seed, draws=job.draws)
    return JudgeReport(
        model=judge.client.spec,
        method="logprobs" if judge.probabilistic else "structured",
        questions=tuple(_questions(seen)),
        fit=seen.fit,
        stands=stands,
        calibrated=calibrated,
        by={
            name: {value: measured(part) for value, part in slices(kept, name).items()}
            for name in job.by
        },
        people=people,
        disagreements=disagreements(rubric, everything, set(parts.kept)),
        skipped=Counter(one.evidence or "" for one in everything if one.outcome == "skipped"),
        profile=profile_of(
            seen.binding,
            rubric,
            rateable(kept),
            data_of(job.sources, items, len(parts.fitted), len(parts.kept)),
            combination=seen.fit.combination,
            stage=None if policy is None else policy.stages[number],
            agreement=job.agreement,
            final=calibrated or stands,
        ),
        unanswered=Unanswered.of(everything),
    )


def _questions(seen: _Seen) -> Iterator[str]:
    """The questions that the final method asks, in the rubric's words."""
    logprobs = seen.judge.rubric.methods.logprobs
    if not seen.judge.probabilistic or logprobs is None:
        return
    for place in seen.reader.wanted(seen.judge.rubric):
        question = logprobs.questions[place]
        turned = " (swapped)" if question.swapped else ""
        yield " ".join(question.question.split()) + turned
