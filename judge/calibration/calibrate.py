"""Calibration: turns labels into a report on each judge, and a profile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from threadpoolctl import threadpool_limits

from judge.calibration.controls import Controls, controls_of, leak_of
from judge.calibration.fit import LearningCurve, curve
from judge.calibration.guarantee import decided, policy_of, refusal
from judge.calibration.labels import CalibrationJob, gather, grouped, labels_taken, refuse_mixed
from judge.calibration.measures import Measures, against_people, difference, measure, slices
from judge.calibration.observe import LabelledAnswer, shown_names, texts_of
from judge.calibration.report import (
    Calibration,
    CheckReport,
    JudgeReport,
    disagreements,
    labelled_by,
)
from judge.calibration.split import Split, clustered, untaught
from judge.calibration.trial import (
    CheckData,
    CheckProgress,
    JudgeTrial,
    profile_of,
    rates,
    usable,
)
from judge.errors import UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Classifier
from judge.judging.judge import Judge
from judge.profile import Profile, Rates
from judge.questions.rubric import ASKED, Rubric
from judge.records import Record
from judge.records.base import no_such_field
from judge.records.labels import LabelledItem
from judge.records.labels.matching import other_question
from judge.records.names import entry_name
from judge.run.panels import Resources
from judge.run.profiles import NO_PROFILE, Profiles, shipped
from judge.settings import Settings
from judge.stats.guarantee import ThresholdTest
from judge.verdict import AnswerOutcome
from judge.version import __version__


def calibrate(
    job: CalibrationJob, settings: Settings, rubrics: Sequence[Rubric], progress: CheckProgress
) -> Calibration:
    """Runs `acalibrate` with the judges and rubrics of the settings, and these `rubrics`.

    The judges use no profile. Cannot be called inside an event loop.
    """
    plain = settings.without_steps().model_copy(update={"profile": NO_PROFILE, "check": ()})

    async def go() -> Calibration:
        resources = Resources.of(plain, rubrics=rubrics)
        _refuse_floating(resources)
        try:
            return await acalibrate(job, resources, progress)
        finally:
            await resources.models.aclose()

    return asyncio.run(go())


async def acalibrate(
    job: CalibrationJob, resources: Resources, progress: CheckProgress = lambda *_: None
) -> Calibration:
    """Asks every judge of the run about the labelled items, and measures their agreement.

    Raises:
        UsageError: see `gather`; no item has a field to report by; the judges form no cascade.
        BackendError: a model is unreachable, refuses the key, or the budget is used up.
    """
    own_checks = resources.rubrics.own
    if not job.checks and len(own_checks) == 1:
        job = replace(job, checks=own_checks)
    labels, problems, blank = gather(job, resources.rubrics.asking, resources.settings.columns)
    judges_of = {check: _judges(job, resources, check) for check in labels}
    further, further_problems, further_blank = _further(job, labels, resources)
    studies = []
    for check, judges in judges_of.items():
        sets, joined = clustered([labels[check], *further[check].values()], judges[0].rubric)
        items, *others = untaught(sets, judges)
        _refuse_unusable(job, judges, items)
        whole = job
        if not any(judge.probabilistic for judge in judges):
            # There is nothing to fit, so all items are held out for the report.
            whole = replace(job, held_out=1.0, folds=None)
        study = CheckData(
            job,
            resources,
            progress,
            judges,
            items,
            Split.of(whole, items, len(judges)),
            further=dict(zip(further[check], others, strict=True)),
            joined=joined,
            leak=leak_of(items, [texts_of(item, judges[0].rubric) for item in items]),
        )
        studies.append(study)
    # Only now: it may take a call to each model.
    await resources.prepare()
    # Matrices of a few hundred rows are done before a second thread has started.
    with threadpool_limits(1, user_api="blas"):
        reports = [await _check(study) for study in studies]
    checks = [report for report, _ in reports]
    refusals = [f"{report.check}: {report.refused}" for report in checks if report.refused]
    profiles = tuple(
        judge.profile for report in checks for judge in report.judges if judge.outcomes["answered"]
    )
    if not profiles:
        refusals.append("no item got an answer")
    profile = None
    if not refusals:
        profile = Profile(
            made_by=f"judge {__version__}",
            cascades={report.check: whole for report, whole in reports if whole is not None},
            rubrics=tuple(resources.rubrics.by_name[name] for name in own_checks if name in labels),
            judges=profiles,
        )
    return Calibration(
        tuple(job.sources),
        checks,
        profile,
        problems=[*problems, *further_problems],
        refused="; ".join(refusals) or None,
        taught=sum(map(len, labels.values())) - sum(len(study.items) for study in studies),
        no_label=sum(item.left_out for study in studies for item in study.items),
        blank=blank + further_blank,
    )


def _refuse_floating(resources: Resources) -> None:
    """Raise UsageError for a decision model's floating alias, which may soon be another model."""
    for spec in resources.models.judges:
        if resources.models.client(spec).floating:
            raise UsageError(
                f"{spec} means the newest version, and a profile is for one version: name it, as "
                "in systemone:jev-1.14.0 (a run's lines note the version that answered)"
            )


def _refuse_unusable(
    job: CalibrationJob, judges: Sequence[Judge], items: Sequence[LabelledItem]
) -> None:
    """Raise UsageError, before any call, for a job that cannot succeed."""
    rubric = judges[0].rubric
    named = rubric.control.field if rubric.control and not rubric.fields else None
    entry = entry_name(rubric.each) if rubric.each else None
    if job.controls and named and named != entry and not any(i.record.has(named) for i in items):
        raise UsageError(f"{rubric.name}: control: no record has a field {named!r}")
    for name in rubric.fields if rubric.name == ASKED else ():
        if not any(item.record.has(name) for item in items):
            raise UsageError(no_such_field(f"--on {name}", name, [*items[0].record.texts]))
    if job.folds is not None and (job.agreement is not None or job.contrast_set):
        option = "--guarantee" if job.agreement is not None else "--contrast-set"
        raise UsageError(f"{option} needs records that are not used for fitting: leave out --folds")
    if job.agreement is not None:
        if len({item.weight for item in items}) > 1:
            raise UsageError(
                "--guarantee takes records drawn with equal chances, and these labels have "
                "different weights (judge label --sample of judged lines): label a plain sample"
            )
        if len(judges) > 2:
            raise UsageError(
                f"--guarantee takes one judge, or a cheap and a strong one; {len(judges)} given"
            )
        if len(judges) == 2 and not judges[0].probabilistic:
            raise UsageError(
                f"--guarantee: {judges[0].client.spec} comes first and must be cheap: it has to "
                "read P(yes) from log-probabilities (--method logprobs, or a model that gives them)"
            )
    if not any(item.reference in rubric.answers for item in items):
        raise UsageError(
            f"{rubric.name}: no item has a right answer, because people differ or decide "
            "nothing: add labels, or a reference (column gold)"
        )
    for name in job.by:
        slices([LabelledAnswer(item, AnswerOutcome.SKIPPED) for item in items], name)


def _judges(job: CalibrationJob, resources: Resources, check: str) -> list[Judge]:
    """The judges of a check, with the shipped adapters if the job uses them."""
    # A cascade's cheap judge has one model for all checks.
    alone = job.agreement is None or len(resources.models.judges) == 1
    plain = not job.adapters or not alone or resources.settings.method == "probe"
    profiles, rubric = Profiles() if plain else shipped(), resources.rubrics.asking(check)
    specs = (profiles.with_adapter(spec, rubric) for spec in resources.models.judges)
    return [resources.judge(check, spec) for spec in specs]


def _further(
    job: CalibrationJob,
    labels: Mapping[str, Sequence[LabelledItem]],
    resources: Resources,
) -> tuple[dict[str, dict[str, list[LabelledItem]]], Iterable[Record], int]:
    """The items of the sets that are used for reporting only, by check and source; their lines that
    cannot be used, and how many rows have no label."""
    sets: dict[str, dict[str, list[LabelledItem]]] = {check: {} for check in labels}
    problems, blank = dict[tuple[str, int, str], Record](), 0
    contrast = (job.contrast_set,) if job.contrast_set else ()
    for source in dict.fromkeys((*contrast, *job.test_sets)):
        for check, own in labels.items():
            further_job = CalibrationJob(
                [source],
                [check],
                records=job.records if source in job.test_sets else None,
                seed=job.seed,
            )
            given = gather(further_job, resources.rubrics.asking, resources.settings.columns)
            # Each check reads the whole file anew.
            problems |= {(p.source, p.line, str(p.problem)): p for p in given.problems}
            items = given.items[check]
            refuse_mixed(
                (place, item)
                for place, part in ((job.sources[0], own), (source, items))
                for item in part
            )
            if job.group is not None:
                items = grouped(items, job.group, everywhere=False)
            sets[check][source] = items
        blank += given.blank
    return sets, problems.values(), blank


async def _check(study: CheckData) -> tuple[CheckReport, Rates | None]:
    """The report of one check, and the rates of its cascade, if there is one."""
    job, items, rubric = study.job, study.items, study.judges[0].rubric
    trials = [await study.tried(judge) for judge in study.judges]
    if job.agreement is None and all(trial.fit.classifier is None for trial in trials):
        study = replace(study, parts=Split([], [], list(range(len(items)))))
    parts, policy, whole, refused = study.parts, None, None, None
    if job.agreement is not None:
        held_out = [usable(trial, parts.held_out) for trial in trials]
        policy = policy_of(
            held_out,
            [
                [usable(trial, part) for trial in trials[: n + 1]]
                for n, part in enumerate(parts.stages)
            ],
            job.agreement,
            seed=job.seed,
        )
        if len(trials) > 1:
            thresholds = [stage.threshold for stage in policy.stages]
            rows = zip(*held_out, strict=True)
            whole = rates(rubric, [decided(row, thresholds) for row in rows])
        clusters = {answer.item.cluster for answer in usable(trials[0], range(len(items)))}
        refused = str(study.leak) if study.leak else refusal(policy, len(clusters))
    stages = policy.stages if policy else [None] * len(trials)
    references = Counter(item.reference for item in items if item.reference in rubric.answers)
    first, *others = [(trial.judge.client.spec, trial.answers(parts.held_out)) for trial in trials]
    report = CheckReport(
        rubric=rubric,
        items=len(items),
        records=len({item.record.id for item in items}),
        clusters=len({item.cluster for item in items}),
        joined=study.joined,
        shown=shown_names(items, rubric),
        withheld=tuple(dict.fromkeys(name for item in items for name in item.withheld)),
        leak=study.leak,
        labelled_by=labelled_by(items),
        references={answer: references[answer] for answer in rubric.answers},
        fitted_on=len(parts.fitted),
        held_out=len(parts.held_out),
        folds=len(parts.folds),
        read_as=dict(pair for item in items for pair in item.read_as.items()),
        taken=labels_taken(chain(items, *study.further.values())),
        other_question=other_question(chain(items, *study.further.values()), rubric.question),
        judges=[await _judge(study, *pair) for pair in zip(trials, stages, strict=True)],
        policy=policy,
        refused=refused,
        differences=[
            difference(*other, *first, rubric.answers, seed=job.seed, draws=job.draws)
            for other in others
        ],
    )
    return report, whole


async def _judge(study: CheckData, trial: JudgeTrial, stage: ThresholdTest | None) -> JudgeReport:
    """The report of one judge; `stage` is its test for the guarantee, if one was requested."""
    job, judge, parts = study.job, trial.judge, study.parts
    rubric, held_out = judge.rubric, trial.answers(parts.held_out)

    def measured(labelled: Sequence[LabelledAnswer]) -> Measures:
        return measure(labelled, rubric.answers, seed=job.seed, draws=job.draws)

    uncalibrated = measured([trial.observed[place] for place in parts.held_out])
    calibrated = measured(held_out) if trial.fit.classifier is not None else None
    test_sets = {name: await _apart(study, trial, name) for name in study.further}
    looks = _controls(study, trial, test_sets.get(job.contrast_set or ""))
    everything = trial.answers(range(len(study.items)))
    several = any(answer.answer and len(answer.item.annotations) > 1 for answer in held_out)
    people = against_people(held_out, seed=job.seed, draws=job.draws) if several else None
    unanswered = [answer for answer in everything if answer.answer is None]
    order = AnswerOutcome.ERROR, AnswerOutcome.UNREADABLE
    unanswered.sort(key=lambda answer: [answer.outcome is not outcome for outcome in order])
    lost = dict.fromkeys(one.item.record.id for one in unanswered if one.outcome in order)
    return JudgeReport(
        model=judge.client.spec,
        method=judge.method if judge.probabilistic else "structured",
        questions=tuple(_questions(judge)),
        fit=trial.fit,
        uncalibrated=uncalibrated,
        calibrated=calibrated,
        by={
            name: {value: measured(part) for value, part in slices(held_out, name).items()}
            for name in job.by
        },
        people=people,
        disagreements=disagreements(rubric, everything, set(parts.held_out)),
        skipped=Counter(a.reason or "" for a in everything if a.outcome is AnswerOutcome.SKIPPED),
        profile=profile_of(study, trial, stage, calibrated or uncalibrated, looks),
        outcomes=Counter(str(answer.outcome) for answer in everything),
        unanswered=(unanswered[0].reason or unanswered[0].outcome) if unanswered else None,
        lost=tuple(lost),
        controls=looks,
        test_sets={source: measured(answers) for source, answers in test_sets.items()},
        left_out={
            s: len(study.further[s]) - len(a) for s, a in test_sets.items() if s in job.test_sets
        },
        curve=_curve(study, trial),
    )


async def _apart(study: CheckData, trial: JudgeTrial, source: str) -> list[LabelledAnswer]:
    """The judge's answers to a further set, without clusters that have items used for fitting.

    Of a contrast set only the held-out records count, if it has any of them.
    """
    items, parts = study.items, study.parts
    fitted = {items[n].cluster for n in parts.fitted}
    new = [item for item in study.further[source] if item.cluster not in fitted]
    if source == study.job.contrast_set:
        records = {items[place].record.id for place in parts.held_out}
        new = [item for item in new if item.record.id in records] or new
    observed = await study.observe(trial.judge, new, f"of {source}")
    return [trial.read(answer) for answer in observed]


def _controls(
    study: CheckData, trial: JudgeTrial, contrast: Sequence[LabelledAnswer] | None
) -> Controls | None:
    if trial.blind is None:
        return None
    # If the judge as it stands is best, all items are held out, and some not from the blind one.
    kept = [place for place in study.parts.held_out if place not in trial.blind.fitted]
    places = [place for place in kept if place in trial.swapped]
    return controls_of(
        trial.judge.rubric,
        trial.answers(kept),
        trial.blind.answers(kept),
        trial.answers(places),
        trial.answers(places, swapped=True),
        contrast,
        seed=study.job.seed,
        draws=study.job.draws,
    )


def _curve(study: CheckData, trial: JudgeTrial) -> LearningCurve | None:
    if study.parts.folds:
        return None
    observed = [trial.observed[place] for place in study.parts.held_out]

    def kappa(classifier: Classifier) -> float | None:
        answers = [trial.read(one, AnswerReader(classifier=classifier)) for one in observed]
        return measure(answers, trial.judge.rubric.answers, draws=1).agreement.value

    return curve(trial.fit, trial.train, kappa, seed=study.job.seed)


def _questions(judge: Judge) -> Iterator[str]:
    """The questions that the judge asks, in the rubric's words."""
    if not judge.probabilistic:
        return
    questions = judge.rubric.first_token or ()
    states = (0,) if judge.reader.probe else ()
    for place in dict.fromkeys((*states, *judge.reader.questions(judge.rubric))):
        question = questions[place]
        turned = " (swapped)" if question.swap else ""
        yield " ".join(question.question.split()) + turned
