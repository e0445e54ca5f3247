"""`judge calibrate` without its command line: labels to judges to measures to a profile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from judge import __version__
from judge.backends.local import LocalBackend
from judge.calibration import controls
from judge.calibration.cascade import CascadePolicy, decided, policy_of, refusal
from judge.calibration.controls import Controls
from judge.calibration.curve import Curve, curve
from judge.calibration.labels import gather, grouped
from judge.calibration.measures import Measures, against_people, measure, slices
from judge.calibration.observations import Judged, Unanswered
from judge.calibration.rating import data_of, profile_of, rateable, rates
from judge.calibration.report import Calibration, CheckReport, JudgeReport, disagreements
from judge.calibration.teaching import key_of, taught_by
from judge.calibration.trials import Job, Parts, Told, Trial, Trials, tried
from judge.errors import UsageError
from judge.judging.combinations import Combination
from judge.judging.judge import Judge
from judge.judging.logprobs import Reader
from judge.profiles import Profile, Rates
from judge.records.labels import LabelledItem
from judge.rubric import Rubric
from judge.run.calibrated import NO_PROFILE
from judge.run.setup import Setup
from judge.settings import Settings


def calibrate(job: Job, settings: Settings, told: Told = lambda *_: None) -> Calibration:
    """`acalibrate` with the judges, checks and seed that the settings name, which judge without a
    profile; not for use inside an event loop."""
    job = replace(job, checks=settings.check, seed=settings.seed)
    plain = settings.without_steps().model_copy(update={"profile": NO_PROFILE, "check": ()})

    async def go() -> Calibration:
        setup = Setup.of(plain)
        try:
            await setup.prepare()
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

    own = setup.checks.own
    if not job.checks and len(own) == 1:
        job = replace(job, checks=own)
    found, problems = gather(
        job.sources,
        rubric_of,
        checks=job.checks,
        records=job.records,
        seed=job.seed,
        columns=setup.settings.columns,
    )
    if job.group is not None:
        found = {check: grouped(items, job.group) for check, items in found.items()}
    further = _further(job, rubric_of, found, setup)
    given = sum(map(len, found.values()))
    if taught := frozenset(key for spec in setup.judges for key in _taught(setup, spec)):
        for sets in (found, *further.values()):
            for check, items in sets.items():
                sets[check] = _untaught(items, judges_of[check][0].rubric, taught)
    left_out = given - sum(map(len, found.values()))
    for check, items in found.items():
        _refuse_unusable(job, judges_of[check], items)
    checks, cascades, refused = [], {}, []
    for check, items in found.items():
        trials = Trials(job, setup, told, {name: sets[check] for name, sets in further.items()})
        report, whole, refusal_of = await _check(trials, judges_of[check], items)
        checks.append(report)
        if whole is not None:
            cascades[check] = whole
        if refusal_of:
            refused.append(f"{check}: {refusal_of}")
    judges = tuple(
        judge.profile for report in checks for judge in report.judges if judge.unanswered.answered
    )
    if not judges:
        refused.append("no item got an answer")
    profile = None
    if not refused:
        rubrics = tuple(setup.checks.rubrics[name] for name in own if name in found)
        profile = Profile(
            made_by=f"judge {__version__}", cascades=cascades, rubrics=rubrics, judges=judges
        )
    why = "; ".join(refused) or None
    return Calibration(tuple(job.sources), checks, profile, problems, why, left_out)


def _taught(setup: Setup, spec: str) -> frozenset[str]:
    """The keys of the items that a local model's adapter was taught by."""
    backend = setup.client(spec).backend
    adapter = backend.adapter if isinstance(backend, LocalBackend) else None
    return taught_by(adapter) if adapter else frozenset()


def _untaught(
    items: Sequence[LabelledItem], rubric: Rubric, taught: frozenset[str]
) -> list[LabelledItem]:
    """The items that no judge was taught by: what was fitted never reports."""
    left = [item for item in items if key_of(item, rubric) not in taught]
    if not left:
        raise UsageError(f"{rubric.name}: the model was taught by all of these labels: give others")
    return left


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


def _further(
    job: Job,
    rubric_of: Callable[[str], Rubric],
    found: Mapping[str, Sequence[LabelledItem]],
    setup: Setup,
) -> dict[str, dict[str, list[LabelledItem]]]:
    """The items of the sets that are only reported on, by source and check."""
    sets: dict[str, dict[str, list[LabelledItem]]] = {}
    for source in dict.fromkeys((*([job.contrast] if job.contrast else []), *job.also)):
        sets[source] = {}
        for check in found:
            items, _ = gather(
                [source],
                rubric_of,
                checks=[check],
                records=job.records if source in job.also else None,
                seed=job.seed,
                columns=setup.settings.columns,
            )
            sets[source][check] = items[check]
    return sets


async def _check(
    trials: Trials, judges: Sequence[Judge], items: Sequence[LabelledItem]
) -> tuple[CheckReport, Rates | None, str | None]:
    """The report of one check, the rates of its cascade, and why it has no profile."""
    import sklearn.linear_model  # noqa: F401 - only libraries that are loaded are limited
    from threadpoolctl import threadpool_limits

    # Matrices of some hundred rows are done before a second thread has begun.
    with threadpool_limits(1, user_api="blas"):
        return await _checked(trials, judges, items)


async def _checked(
    trials: Trials, judges: Sequence[Judge], items: Sequence[LabelledItem]
) -> tuple[CheckReport, Rates | None, str | None]:
    job = trials.job
    if not any(judge.probabilistic for judge in judges):
        # There is nothing to fit.
        job = replace(job, held_out=1.0)
    parts = Parts.of(job, items, len(judges))
    seen = [await tried(trials, judge, items, parts) for judge in judges]
    if job.agreement is None and all(one.fit.combination is None for one in seen):
        parts = Parts([], [], list(range(len(items))))
    policy = None
    if job.agreement is not None:
        policy = policy_of(
            [one.answers(parts.kept) for one in seen],
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
        judges=[
            await _report_on(trials, one, items, parts, policy, n) for n, one in enumerate(seen)
        ],
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


# ---------------------------------------------------------------- one judge's report


async def _report_on(
    trials: Trials,
    seen: Trial,
    items: Sequence[LabelledItem],
    parts: Parts,
    policy: CascadePolicy | None,
    number: int,
) -> JudgeReport:
    job, judge, rubric, kept = trials.job, seen.judge, seen.judge.rubric, seen.answers(parts.kept)

    def measured(judged: Sequence[Judged]) -> Measures:
        return measure(judged, rubric.answers, seed=job.seed, draws=job.draws)

    stands = measured([seen.observed[place] for place in parts.kept])
    calibrated = measured(kept) if seen.fit.combination is not None else None
    everything = seen.answers(range(len(items)))
    people = None
    if any(len(one.item.annotations) > 1 for one in kept):
        people = against_people(kept, seed=job.seed, draws=job.draws)
    fitted = {name for n in parts.fitted for name in (items[n].cluster, items[n].record)}
    apart = {items[place].record for place in parts.kept}
    also = {}
    for source, of in trials.further.items():
        new = [item for item in of if fitted.isdisjoint((item.cluster, item.record))]
        if source == job.contrast:
            # The same records turned round, where it has them.
            new = [item for item in new if item.record in apart] or new
        also[source] = seen.read(await trials.observe(judge, new, f"of {source}"))
    looks = _controls(job, seen, parts.kept, also.get(job.contrast or ""), measured)
    return JudgeReport(
        model=judge.client.spec,
        method=judge.method if judge.probabilistic else "structured",
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
            controls=looks.as_noted() if looks else {},
        ),
        unanswered=Unanswered.of(everything),
        controls=looks,
        also={source: measured(found) for source, found in also.items()},
        curve=_curve(job, seen, parts.kept, rubric),
    )


def _controls(
    job: Job,
    seen: Trial,
    kept: Sequence[int],
    contrast: Sequence[Judged] | None,
    measured: Callable[[Sequence[Judged]], Measures],
) -> Controls | None:
    rubric = seen.judge.rubric
    if seen.blind is None or rubric.deciding is None:
        return None
    drawn = {"seed": job.seed, "draws": job.draws}
    own, without = seen.answers(kept), seen.blind.answers(kept)
    places = [place for place in kept if place in seen.swapped]
    swapped, before = seen.read(seen.swapped[place] for place in places), seen.answers(places)
    right = None
    if rubric.control is not None and rubric.control.swapped is not None:
        right = controls.share_of(swapped, [rubric.control.swapped] * len(swapped), **drawn)
    return Controls(
        field=rubric.deciding,
        kappa=measured(own).kappa,
        blind=measured(without),
        above=controls.above(own, without, rubric.answers, **drawn),
        stays=controls.share_of(swapped, [one.answer for one in before], **drawn),
        as_swapped=right,
        contrast=None if contrast is None else measured(contrast),
        together=None if contrast is None else measured([*own, *contrast]),
    )


def _curve(job: Job, seen: Trial, kept: Sequence[int], rubric: Rubric) -> Curve | None:
    observed = [seen.observed[place] for place in kept]

    def kappa(made: Combination) -> float | None:
        read = seen.read(observed, Reader(combination=made))
        return measure(read, rubric.answers, seed=job.seed, draws=1).kappa.value

    return curve(seen.fit, seen.train, kappa, seed=job.seed)


def _questions(seen: Trial) -> Iterator[str]:
    """The questions that the final method asks, in the rubric's words."""
    logprobs = seen.judge.rubric.methods.logprobs
    if not seen.judge.probabilistic or logprobs is None:
        return
    states = (0,) if seen.reader.probe else ()
    for place in dict.fromkeys((*states, *seen.reader.wanted(seen.judge.rubric))):
        question = logprobs.questions[place]
        turned = " (swapped)" if question.swapped else ""
        yield " ".join(question.question.split()) + turned
