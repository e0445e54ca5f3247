"""One judge on a check's labelled items: asked, fitted to a part of them, and asked blind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.calibration import controls
from judge.calibration.controls import Controls, LabelLeak
from judge.calibration.fit import Fit, fit
from judge.calibration.guarantee import LEVEL, decided
from judge.calibration.labels import CalibrationJob
from judge.calibration.measures import Measures
from judge.calibration.observe import LabelledAnswer, as_read, observe, shown_names
from judge.calibration.probe import TrainingItem
from judge.calibration.split import Split
from judge.digest import digest
from judge.judging.answer_reader import AnswerReader, mean_of
from judge.judging.classifiers import Probe
from judge.judging.judge import Judge, Sampling
from judge.profile import Data, Guarantee, JudgeProfile, Rates
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.run.panels import Resources
from judge.run.profiles import profile_key
from judge.stats.corrected_rate import design_effect
from judge.stats.guarantee import ThresholdTest
from judge.stats.intervals import plain
from judge.verdict import AnswerOutcome, Verdict

CheckProgress = Callable[[str, str, int, int], None]
"""Called with check, model, finished items and all items."""


@dataclass(frozen=True, slots=True)
class JudgeTrial:
    """One judge's answers to a check's items, and what was fitted to them.

    Args:
        judge: the judge, with the fitted reader.
        observed: its answers before any fit, by index; a blind judge's only to items for fitting
            and held-out ones.
        fit: the selected classifier.
        train: the items it was fitted to.
        blind: the trial of the same judge without the deciding field.
        swapped: its answers, by index, to items with that field of another item.
        apart: for indices of items, the reader fitted without them.
        fitted: the indices of the items that every reader was fitted to.
    """

    judge: Judge
    observed: Mapping[int, LabelledAnswer]
    fit: Fit
    train: Sequence[TrainingItem] = ()
    blind: JudgeTrial | None = None
    swapped: Mapping[int, LabelledAnswer] = field(default_factory=dict)
    apart: Mapping[int, AnswerReader] = field(default_factory=dict)
    fitted: frozenset[int] = frozenset()

    def answers(self, places: Iterable[int], *, swapped: bool = False) -> list[LabelledAnswer]:
        """Its answers to the items at these indices, or to their swapped versions."""
        source = self.swapped if swapped else self.observed
        return [self.read(source[n], self.apart.get(n)) for n in places]

    def read(self, answer: LabelledAnswer, reader: AnswerReader | None = None) -> LabelledAnswer:
        """The observed item as answered by its reader, or by another one."""
        if answer.observation is None:
            return answer
        return as_read(answer, self.judge.rubric, reader or self.judge.reader)


@dataclass(frozen=True, slots=True)
class CheckData:
    """One check's judges, items and their split, with the job and resources to ask judges.

    `further` has the items of the sets that are used for reporting only, by source; `joined` says
    how many records are in another's cluster because of their text, `leak` which field gives the
    labels away.
    """

    job: CalibrationJob
    resources: Resources
    progress: CheckProgress
    judges: Sequence[Judge]
    items: Sequence[LabelledItem]
    parts: Split
    further: Mapping[str, Sequence[LabelledItem]]
    joined: int
    leak: LabelLeak | None

    @property
    def drawn(self) -> tuple[int, float]:
        """How often a structured judge is asked, and the temperature."""
        settings = self.resources.settings
        votes = settings.votes or 1
        return votes, settings.vote_temperature if votes > 1 else settings.temperature

    async def observe(
        self, judge: Judge, items: Sequence[LabelledItem], variant: str
    ) -> list[LabelledAnswer]:
        """The judge's answers to the items; `variant` names these in the progress."""
        settings, backend = self.resources.settings, judge.client.backend
        votes, warm = self.drawn
        probed = settings.method == "probe"
        states = backend.states_beside_replies
        name = f"{judge.rubric.name} {variant}".strip()
        return await observe(
            judge,
            items,
            votes=votes,
            sampling=Sampling(warm, settings.seed),
            tokens=not probed,
            state=probed or (settings.method is None and states),
            screened=settings.on_injection == "abstain",
            at_once=self.resources.models.slots,
            budget=self.resources.models.budget,
            progress=lambda count: self.progress(name, judge.client.spec, count, len(items)),
        )

    async def tried(self, judge: Judge) -> JudgeTrial:
        """Ask a judge and fit to its answers, then do the same without the deciding field."""
        observed = dict(enumerate(await self.observe(judge, self.items, "")))
        name = judge.rubric.deciding
        if name is None or not self.job.controls:
            return self._fitted(judge, observed, {})
        swapped = await self._swapped(judge, name)
        if judge.rubric.fields == (name,) and not judge.rubric.each:
            # Nothing else is shown, so the best blind judge gives one answer to all.
            blind = JudgeTrial(judge, self._constant(judge.rubric), Fit())
        else:
            blind = self._fitted(judge, await self._without(judge, name), {})
        return replace(self._fitted(judge, observed, swapped), blind=blind, swapped=swapped)

    async def _without(self, judge: Judge, name: str) -> dict[int, LabelledAnswer]:
        """The judge's answers without a field, to the items for fitting and the held-out ones."""
        places = sorted({*self.parts.fitted, *self.parts.held_out})
        without = controls.blinded([self.items[place] for place in places], judge.rubric, name)
        blind = await self.observe(judge, without, f"without {name}")
        return dict(zip(places, blind, strict=True))

    def _constant(self, rubric: Rubric) -> dict[int, LabelledAnswer]:
        """The rubric's answer that most items for fitting, else of all, have, as every answer."""
        labels = [self.items[place].reference for place in self.parts.fitted or self.parts.held_out]
        counts = Counter(label for label in labels if label in rubric.answers)
        most = max(counts, key=counts.__getitem__, default=None)
        outcome = AnswerOutcome.ANSWERED if most else AnswerOutcome.SKIPPED
        return {n: LabelledAnswer(item, outcome, most) for n, item in enumerate(self.items)}

    async def _swapped(self, judge: Judge, name: str) -> dict[int, LabelledAnswer]:
        """The judge's answers to swapped items, by index.

        Held-out items are swapped, and also the items for fitting if the rubric names the right
        answer. Fields are swapped within a part only.
        """
        rubric, parts = judge.rubric, self.parts
        fits = rubric.control is not None and rubric.control.swapped and judge.probabilistic
        answers: dict[int, LabelledAnswer] = {}
        for part in parts.folds or (parts.held_out, parts.fitted if fits else []):
            items = controls.swapped([self.items[n] for n in part], rubric, name, self.job.seed)
            swapped_answers = await self.observe(
                judge, list(items.values()), f"with {name} of another record"
            )
            answers |= dict(zip((part[n] for n in items), swapped_answers, strict=True))
        return answers

    def _fitted(
        self,
        judge: Judge,
        observed: Mapping[int, LabelledAnswer],
        swapped: Mapping[int, LabelledAnswer],
    ) -> JudgeTrial:
        """The judge with its fit to the training items and their swapped versions."""
        if not judge.probabilistic:
            reason = "a structured judge has nothing to fit"
            return JudgeTrial(judge, observed, Fit(reason=reason))
        best, train = self._fit(judge, observed, swapped, self.parts.fitted)
        if best.classifier is None:
            return JudgeTrial(judge, observed, best, train)
        method = "probe" if isinstance(best.classifier, Probe) else judge.method
        reads = replace(judge, method=method, reader=AnswerReader(classifier=best.classifier))
        apart: dict[int, AnswerReader] = {}
        for fold in self.parts.folds:
            places = sorted({*self.parts.fitted} - {*fold})
            fold_fit, _ = self._fit(judge, observed, swapped, places)
            reader = (
                AnswerReader(classifier=fold_fit.classifier)
                if fold_fit.classifier
                else judge.reader
            )
            apart |= dict.fromkeys(fold, reader)
        fitted = frozenset(self.parts.fitted).difference(apart)
        return JudgeTrial(reads, observed, best, train, apart=apart, fitted=fitted)

    def _fit(
        self,
        judge: Judge,
        observed: Mapping[int, LabelledAnswer],
        swapped: Mapping[int, LabelledAnswer],
        fitted: Sequence[int],
    ) -> tuple[Fit, list[TrainingItem]]:
        """The best fit to the items at these indices, and the training items."""
        rubric = judge.rubric
        answer = rubric.control.swapped if rubric.control else None
        answers = [(observed[place], observed[place].item.reference, True) for place in fitted]
        answers += [(swapped[place], answer, False) for place in fitted if place in swapped]
        questions = {
            n for reading, *_ in answers if reading.observation for n in reading.observation.chances
        }
        train = [
            TrainingItem(observation, reference, reading.item.cluster, natural)
            for reading, reference, natural in answers
            if (observation := reading.observation)
            and observation.chances.keys() == questions
            and not observation.open
            if observation.chances or observation.state is not None
            if reference in rubric.answers
        ]
        found = fit(rubric, judge.reader, train, seed=self.job.seed)
        ranges = sum(bool(one.observation and one.observation.open) for one, *_ in answers)
        if found.reason and ranges:
            why = f"{ranges} readings are only ranges of probabilities, which cannot be fitted to"
            how = "--method probe, for a model with hidden states, has none"
            found = replace(found, reason=f"{found.reason}: {why}; {how}")
        return found, train


# ---------------------------------------------------------------- the judge's profile

_MEASURES = ("accuracy", "kappa", "auc", "calibration_error")
_ORDINAL = ("weighted_kappa", "spearman")
"""The measures that a profile keeps; the second only if the answers are a scale."""


def profile_of(
    study: CheckData,
    trial: JudgeTrial,
    stage: ThresholdTest | None,
    final: Measures,
    controls: Controls | None,
) -> JudgeProfile:
    """A judge's profile.

    Args:
        stage: the judge's test for the requested agreement, if any.
        final: its measures over the held-out items.
    """
    agreement, held_out = study.job.agreement, rateable(trial.answers(study.parts.held_out))
    sure_at, guarantee = 0.0, None
    if agreement is not None and stage is not None and stage.threshold is not None:
        sure_at = stage.threshold
        guarantee = Guarantee(
            agreement=agreement,
            level=LEVEL,
            labels=stage.coverage.of,
            decided=round(stage.coverage.value or 0.0, 4),
        )
        held_out = [decided([answer], [sure_at]) for answer in held_out]
    return JudgeProfile(
        binding=profile_key(trial.judge, *study.drawn),
        data=data_of(study),
        combination=trial.fit.classifier,
        sure_at=sure_at,
        guarantee=guarantee,
        rates=rates(trial.judge.rubric, held_out),
        answered_by=trial.judge.client.served.answering,
        measures={
            name: plain(getattr(final, name))
            for name in (*_MEASURES, *(_ORDINAL if final.weighted_kappa else ()))
        },
        controls=controls.as_noted() if controls else {},
        shown=shown_names(study.items, trial.judge.rubric),
        leak=study.leak.field if study.leak else None,
    )


def _passes(rubric: Rubric, record: Record, answer: LabelledAnswer) -> bool | None:
    """Whether the record passes by the judge's answer: by its mean score, where a bound says; None
    if the judge is undecided."""
    if answer.answer is None:
        return {Verdict.PASS: True, Verdict.FAIL: False}.get(answer.verdict or Verdict.ABSTAIN)
    score = mean_of(rubric, answer.probabilities) if answer.score is None else answer.score
    if rubric.rule.bound and score is not None:
        return rubric.rule.bound.holds(score)
    return answer.answer in rubric.passing(record.label)


def rates(rubric: Rubric, held_out: Sequence[LabelledAnswer]) -> Rates:
    """The error rates of the judge's verdicts on held-out items.

    Items count if they got a reply and their reference is one of the check's answers. If items have
    different weights, the counts are weighted, with the same total, and the design effect includes
    that of the weights (Kish 1965, *Survey Sampling*, section 11.7).
    """
    rows: list[tuple[str, bool, bool | None]] = []
    weights: list[float] = []
    for answer in held_out:
        reference = answer.item.reference
        if (
            answer.record is None
            or answer.outcome is AnswerOutcome.ERROR
            or reference not in rubric.answers
        ):
            continue
        truth = reference in rubric.passing(answer.record.label)
        verdict = _passes(rubric, answer.record, answer)
        rows.append((answer.item.cluster, truth, verdict))
        weights.append(answer.item.weight)
    # The correction of a rate counts undecided items once as failed and once as passed.
    as_failed = _design_effect(
        [(cluster, truth, verdict is True) for cluster, truth, verdict in rows]
    )
    as_passed = _design_effect(
        [(cluster, truth, verdict is not False) for cluster, truth, verdict in rows]
    )
    total, sums = sum(weights), defaultdict[tuple[bool, bool | None], float](float)
    for (_, truth, verdict), weight in zip(rows, weights, strict=True):
        sums[truth, verdict] += weight * len(rows) / total
    of_weights = len(rows) * sum(w * w for w in weights) / total**2 if rows else 1.0
    return Rates(
        passed=_whole(sums[True, True]),
        passes=_whole(sums[True, True] + sums[True, False]),
        failed=_whole(sums[False, False]),
        fails=_whole(sums[False, False] + sums[False, True]),
        undecided_passes=_whole(sums[True, None]),
        undecided_fails=_whole(sums[False, None]),
        design_effect=round(max(as_failed, as_passed) * max(1.0, of_weights), 4),
    )


def _whole(count: float) -> int | float:
    """A weighted count to four places, as a whole number if it is one."""
    count = round(count, 4)
    return int(count) if count.is_integer() else count


def _design_effect(rows: Sequence[tuple[str, bool, bool]]) -> float:
    """The design effect of the passes (cluster, label, passed), about each label's pass rate."""
    residuals: dict[str, float] = defaultdict(float)
    squares = 0.0
    for label in (True, False):
        members = [(cluster, outcome) for cluster, truth, outcome in rows if truth is label]
        share = sum(outcome for _, outcome in members) / max(1, len(members))
        for cluster, outcome in members:
            residuals[cluster] += outcome - share
            squares += (outcome - share) ** 2
    sizes = Counter(cluster for cluster, *_ in rows)
    return design_effect([residuals[cluster] for cluster in sizes], [*sizes.values()], squares)


def rateable(answers: Sequence[LabelledAnswer]) -> list[LabelledAnswer]:
    """The answers without records that the judge could not be asked about, and without edited ones.

    Edited records were rewritten until the judge passed them, so their labels are not
    representative.
    """
    return [
        answer
        for answer in answers
        if answer.record is not None and answer.item.slices.get("edited") != "yes"
    ]


def usable(trial: JudgeTrial, places: Iterable[int]) -> list[LabelledAnswer]:
    """The rateable answers to the items at these indices whose label is an answer of the check."""
    answers = rateable(trial.answers(places))
    return [a for a in answers if a.item.reference in trial.judge.rubric.answers]


def data_of(study: CheckData) -> Data:
    """A description of the labels, with a digest over items and answers."""
    rows = sorted(
        [
            item.record.id,
            str(item.number),
            item.gold or "",
            *(f"{annotation.annotator}={annotation.answer}" for annotation in item.annotations),
        ]
        for item in study.items
    )
    return Data(
        sources=tuple(study.job.sources),
        digest=digest(rows)[:16],
        items=len(study.items),
        records=len({item.record.id for item in study.items}),
        fitted_on=len(study.parts.fitted),
        held_out=len(study.parts.held_out),
        folds=len(study.parts.folds),
        group=study.job.group,
    )
