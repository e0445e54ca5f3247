"""`judge calibrate` without its command line: labels to judges to measures to a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from judge import __version__
from judge.calibration.deciding import decided, policy_of, refusal
from judge.calibration.fitting import Fit, Read, fit
from judge.calibration.gathering import gather
from judge.calibration.judged import Judged
from judge.calibration.observing import Effort, observe
from judge.calibration.outcome import Calibration, CheckReport
from judge.calibration.panels import PanelMeasures, panel_measures
from judge.calibration.rating import edited, rates
from judge.calibration.reporting import report_on
from judge.calibration.seen import Job, Parts, Seen
from judge.calibration.slices import slices
from judge.calibration.splitting import split
from judge.errors import UsageError
from judge.judging.judge import Judge, Sampling
from judge.profiles import Profile, Rates
from judge.records.labels import LabelledItem
from judge.rubric import Rubric
from judge.run.calibrated import bond_of
from judge.run.setup import Setup
from judge.stats.guarantee import CascadePolicy

__all__ = ["Job", "calibrate"]

Told = Callable[[str, str, int, int], None]
"""Is told check, model, items done, items in all."""


async def calibrate(job: Job, setup: Setup, told: Told = lambda *_: None) -> Calibration:
    """Put the labelled items to every judge of the setup, and say how far they agree.

    Raises:
        UsageError: see `gather`; a slice that no item has.
        BackendError: a model is out of reach, refuses the key, or the budget is used up.
    """
    judges_of: dict[str, list[Judge]] = {}

    def rubric_of(check: str) -> Rubric:
        judges_of[check] = [setup.judge(check, spec) for spec in setup.judges]
        return judges_of[check][0].rubric

    found, problems = gather(job, rubric_of)
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
        parts = Parts([], [], list(range(len(items))))
    policy = _policy(job, seen, parts)
    reports = [report_on(job, one, items, parts, policy, n) for n, one in enumerate(seen)]
    report = CheckReport(
        check=judges[0].rubric.name,
        classes=judges[0].rubric.answers,
        items=len(items),
        records=len({item.record for item in items}),
        referenced=sum(item.reference in judges[0].rubric.answers for item in items),
        fitted_on=len(parts.fitted),
        held_out=len(parts.kept),
        judges=reports,
        panel=_panel(job, seen, parts.kept),
        policy=policy,
    )
    if policy is None:
        return report, None, None
    whole = _cascade_rates(seen, parts.kept, policy) if len(seen) > 1 else None
    labelled = {item.record for item in items if item.reference in judges[0].rubric.answers}
    return report, whole, refusal(policy, len(labelled))


def _parts(job: Job, items: Sequence[LabelledItem], judges: int) -> Parts:
    if job.agreement is None:
        fitted, kept = split(items, [1 - job.held_out, job.held_out], job.seed)
        return Parts(fitted, [], kept)
    share = job.held_out / (judges + 1)
    fitted, *stages, kept = split(items, [1 - job.held_out, *[share] * (judges + 1)], job.seed)
    return Parts(fitted, stages, kept)


async def _see(
    job: Job,
    setup: Setup,
    judge: Judge,
    items: Sequence[LabelledItem],
    fitted: Sequence[int],
    told: Told,
) -> Seen:
    settings = setup.settings
    votes = settings.votes or 1
    warm = settings.vote_temperature if votes > 1 else settings.temperature
    effort = Effort(
        votes,
        job.repeats,
        sampling=Sampling(warm, settings.seed),
        # At temperature 0 no seed could change a mind.
        repeated=Sampling(settings.vote_temperature, settings.seed),
    )
    observed = await observe(
        judge,
        items,
        effort,
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
    bond = bond_of(judge, votes, warm)
    return Seen(judge, observed, found, bond)


def _policy(job: Job, seen: Sequence[Seen], parts: Parts) -> CascadePolicy | None:
    if job.agreement is None:
        return None
    return policy_of(
        [one.answers(parts.fitted) for one in seen],
        [
            [one.answers(part) for one in seen[: number + 1]]
            for number, part in enumerate(parts.stages)
        ],
        job.agreement,
        job.level,
    )


def _cascade_rates(seen: Sequence[Seen], kept: Sequence[int], policy: CascadePolicy) -> Rates:
    thresholds = [stage.threshold for stage in policy.stages]
    rows = zip(*(one.answers(kept) for one in seen), strict=True)
    rated = [
        (decided(row, thresholds), subject)
        for row, place in zip(rows, kept, strict=True)
        if (subject := seen[0].observed[place].subject) is not None
    ]
    as_they_came = [pair for pair in rated if not edited(pair[0].item)]
    return rates(seen[0].judge.rubric, as_they_came)


def _panel(job: Job, seen: Sequence[Seen], kept: Sequence[int]) -> PanelMeasures | None:
    """The majority of all judges beside the best of them; None for a single judge."""
    if len(seen) < 2:
        return None
    answers = {one.judge.client.spec: one.answers(kept) for one in seen}
    together = [_majority(row) for row in zip(*answers.values(), strict=True)]
    return panel_measures(together, answers, seed=job.seed, draws=job.draws)


def _majority(row: Sequence[Judged]) -> Judged:
    counts = Counter(one.answer for one in row if one.answer is not None)
    answer, count = counts.most_common(1)[0] if counts else (None, 0)
    if 2 * count > len(row):
        return Judged(row[0].item, "answered", answer)
    return Judged(row[0].item, "abstained")
