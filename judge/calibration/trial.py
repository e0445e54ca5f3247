"""One judge on a check's labelled items: asked, fitted to a part of them, and asked blind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.backends.base import HiddenStates
from judge.calibration import controls
from judge.calibration.controls import Controls, LabelLeak
from judge.calibration.fit import Fit, fit
from judge.calibration.guarantee import LEVEL, decided
from judge.calibration.labels import CalibrationJob
from judge.calibration.measures import Measures
from judge.calibration.observe import LabelledAnswer, as_read, observe
from judge.calibration.probe import TrainingItem
from judge.calibration.split import Split
from judge.digest import digest
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Probe
from judge.judging.judge import Judge, Sampling
from judge.profiles import Data, Guarantee, JudgeProfile, Rates
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.rubric import Rubric
from judge.run.panels import Resources, profile_key
from judge.stats.corrected_rate import design_effect
from judge.stats.guarantee import ThresholdTest
from judge.stats.intervals import plain
from judge.verdict import AnswerOutcome

CheckProgress = Callable[[str, str, int, int], None]
"""Called with check, model, items done and items in all."""


@dataclass(frozen=True, slots=True)
class JudgeTrial:
    """What one judge said of a check's items, and what was fitted to it.

    `judge` reads by what was fitted, and items at the places in `apart` by what was fitted without
    them; `observed` is what it says as it stands. `train` is what was fitted to, `blind` the same
    judge without the deciding field, and `swapped` what it said, by place, with that field of
    another item.
    """

    judge: Judge
    observed: Sequence[LabelledAnswer]
    fit: Fit
    train: Sequence[TrainingItem] = ()
    blind: JudgeTrial | None = None
    swapped: Mapping[int, LabelledAnswer] = field(default_factory=dict)
    apart: Mapping[int, AnswerReader] = field(default_factory=dict)

    def answers(self, places: Iterable[int], *, swapped: bool = False) -> list[LabelledAnswer]:
        """Its answers to the items at these places, or to those with another one's field."""
        said = self.swapped if swapped else self.observed
        return [one for n in places for one in self.read([said[n]], self.apart.get(n))]

    def read(
        self, observed: Iterable[LabelledAnswer], reader: AnswerReader | None = None
    ) -> list[LabelledAnswer]:
        """The answers of its reader, or of another one, to what was read."""
        judge = replace(self.judge, reader=reader or self.judge.reader)
        return [one if one.observation is None else as_read(one, judge) for one in observed]


@dataclass(frozen=True, slots=True)
class CheckData:
    """One check's items and their parts, and what its judges are asked with.

    `further` has the items of the sets that are only reported on, by source.
    """

    job: CalibrationJob
    resources: Resources
    told: CheckProgress
    items: Sequence[LabelledItem]
    parts: Split
    further: Mapping[str, Sequence[LabelledItem]]

    @property
    def drawn(self) -> tuple[int, float]:
        """How often a structured judge is asked, and at which temperature."""
        settings = self.resources.settings
        votes = settings.votes or 1
        return votes, settings.vote_temperature if votes > 1 else settings.temperature

    async def observe(
        self, judge: Judge, items: Sequence[LabelledItem], what: str
    ) -> list[LabelledAnswer]:
        """What the judge says of the items; `what` names them in the progress."""
        settings, backend = self.resources.settings, judge.client.backend
        votes, warm = self.drawn
        probed = settings.method == "probe"
        given = isinstance(backend, HiddenStates) and backend.states_beside_replies
        name = f"{judge.rubric.name} {what}".strip()
        return await observe(
            judge,
            items,
            votes=votes,
            sampling=Sampling(warm, settings.seed),
            tokens=not probed,
            state=probed or (settings.method is None and given),
            at_once=self.resources.models.slots,
            told=lambda count: self.told(name, judge.client.spec, count, len(items)),
        )

    async def tried(self, judge: Judge) -> JudgeTrial:
        """Ask a judge, fit to what it said, and do the same without the deciding field."""
        observed = await self.observe(judge, self.items, "")
        name = judge.rubric.deciding
        if name is None or not self.job.controls:
            return self._fitted(judge, observed, {})
        swapped = await self._swapped(judge, name)
        if judge.rubric.fields == (name,):
            # Nothing else is shown: the best that can be said is one answer for all.
            blind = JudgeTrial(judge, self._constant(), Fit())
        else:
            blind = self._fitted(judge, await self._without(judge, name), {})
        return replace(self._fitted(judge, observed, swapped), blind=blind, swapped=swapped)

    async def _without(self, judge: Judge, name: str) -> list[LabelledAnswer]:
        """What the judge says of the items to fit to and of those kept apart, without a field."""
        wanted = sorted({*self.parts.fitted, *self.parts.kept})
        without = controls.blinded([self.items[place] for place in wanted], judge.rubric, name)
        found = [LabelledAnswer(item, AnswerOutcome.SKIPPED) for item in self.items]
        said = await self.observe(judge, without, f"without {name}")
        for place, one in zip(wanted, said, strict=True):
            found[place] = one
        return found

    def _constant(self) -> list[LabelledAnswer]:
        """The most frequent label of the items to fit to, or of all, as the answer to each."""
        labels = [self.items[place].reference for place in self.parts.fitted or self.parts.kept]
        counts = Counter(label for label in labels if label is not None)
        most = max(counts, key=counts.__getitem__, default=None)
        outcome = AnswerOutcome.ANSWERED if most else AnswerOutcome.SKIPPED
        return [LabelledAnswer(item, outcome, most) for item in self.items]

    async def _swapped(self, judge: Judge, name: str) -> dict[int, LabelledAnswer]:
        """What the judge says of items with another's field, by place: of those kept apart, and of
        those to fit to where the rubric says what must be answered. No part sees another's
        texts."""
        rubric, parts = judge.rubric, self.parts
        taught = rubric.control is not None and rubric.control.swapped and judge.probabilistic
        found: dict[int, LabelledAnswer] = {}
        for part in parts.folds or (parts.kept, parts.fitted if taught else []):
            made = controls.swapped([self.items[n] for n in part], rubric, name, self.job.seed)
            said = await self.observe(judge, list(made.values()), f"with another {name}")
            found |= dict(zip((part[n] for n in made), said, strict=True))
        return found

    def _fitted(
        self,
        judge: Judge,
        observed: Sequence[LabelledAnswer],
        swapped: Mapping[int, LabelledAnswer],
    ) -> JudgeTrial:
        """The judge with what was fitted to the items to fit to, and to their swapped ones."""
        if not judge.probabilistic:
            reason = "the structured method is taken as it stands"
            return JudgeTrial(judge, observed, Fit(reason=reason))
        found, train = self._fit(judge, observed, swapped, self.parts.fitted)
        if found.classifier is None:
            return JudgeTrial(judge, observed, found, train)
        method = "probe" if isinstance(found.classifier, Probe) else judge.method
        reads = replace(judge, method=method, reader=AnswerReader(classifier=found.classifier))
        apart: dict[int, AnswerReader] = {}
        for fold in self.parts.folds:
            others = sorted({*self.parts.fitted} - {*fold})
            made, _ = self._fit(judge, observed, swapped, others)
            reader = AnswerReader(classifier=made.classifier) if made.classifier else judge.reader
            apart |= dict.fromkeys(fold, reader)
        return JudgeTrial(reads, observed, found, train, apart=apart)

    def _fit(
        self,
        judge: Judge,
        observed: Sequence[LabelledAnswer],
        swapped: Mapping[int, LabelledAnswer],
        fitted: Sequence[int],
    ) -> tuple[Fit, list[TrainingItem]]:
        """What is best fitted to the items at these places, and what it was fitted to."""
        rubric = judge.rubric
        answer = rubric.control.swapped if rubric.control else None
        answers = [(observed[place], observed[place].item.reference, True) for place in fitted]
        answers += [(swapped[place], answer, False) for place in fitted if place in swapped]
        questions = {n for one, *_ in answers if one.observation for n in one.observation.chances}
        train = [
            TrainingItem(seen, reference, one.item.cluster, natural)
            for one, reference, natural in answers
            if (seen := one.observation) and seen.chances.keys() == questions and not seen.open
            if seen.chances or seen.state is not None
            if reference in rubric.answers
        ]
        return fit(rubric, judge.reader, train, seed=self.job.seed), train


# ---------------------------------------------------------------- the judge's profile


MEASURES = ("accuracy", "kappa", "auc", "calibration_error")


ORDINAL = ("weighted_kappa", "spearman")
"""What a profile keeps of the measures; the second ones where the answers are a scale."""


def profile_of(
    study: CheckData,
    seen: JudgeTrial,
    stage: ThresholdTest | None,
    final: Measures,
    controls: Controls | None,
    leak: LabelLeak | None,
) -> JudgeProfile:
    """A judge's profile; `stage` is its test for the agreement that was asked for, if one was, and
    `final` what it measures over the items kept apart."""
    agreement, held_out = study.job.agreement, rateable(seen.answers(study.parts.kept))
    sure_at, guarantee = 0.0, None
    if agreement is not None and stage is not None and stage.threshold is not None:
        sure_at = stage.threshold
        guarantee = Guarantee(
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


def data_of(study: CheckData) -> Data:
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
