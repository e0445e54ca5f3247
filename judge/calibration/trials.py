"""One judge on a check's labelled items: asked, fitted to a part of them, and asked blind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.backends.base import HiddenStates
from judge.calibration import controls
from judge.calibration.fitting import Fit, fit
from judge.calibration.labels import CalibrationJob, split
from judge.calibration.observations import LabelledAnswer, as_read, observe
from judge.calibration.training import TrainingItem
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Probe
from judge.judging.judge import Judge, Sampling
from judge.records.labels import LabelledItem
from judge.run.panels import Resources
from judge.verdict import AnswerOutcome

_HELD_OUT = 0.5
"""Share of the records that nothing is fitted to."""

_GUARANTEED = 0.6
"""The same where a guarantee is wanted, which is tested on two thirds of them."""

Told = Callable[[str, str, int, int], None]
"""Called with check, model, items done and items in all."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The places of the items to fit to, of those that each stage of a guarantee is tested on, and
    of those kept apart for the report.

    With `folds` all items serve for both: each fold is reported on by what was fitted to the others
    (Stone 1974), and the profile gets what was fitted to all.
    """

    fitted: list[int]
    stages: list[list[int]]
    kept: list[int]
    folds: Sequence[list[int]] = ()

    @classmethod
    def of(cls, job: CalibrationJob, items: Sequence[LabelledItem], judges: int) -> Parts:
        """A guarantee takes more labels than the report of it."""
        if job.folds is not None:
            folds = split(items, [1 / job.folds] * job.folds, job.seed)
            everything = [*range(len(items))]
            return cls(everything, [], everything, [one for one in folds if one])
        usual = _HELD_OUT if job.agreement is None else _GUARANTEED
        apart = usual if job.held_out is None else job.held_out
        stages = 0 if job.agreement is None else judges
        share = apart / (2 * stages + 1)
        shares = [1 - apart, *[2 * share] * stages, share]
        fitted, *tested, kept = split(items, shares, job.seed)
        return cls(fitted, tested, kept)


@dataclass(frozen=True, slots=True)
class Trial:
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
    blind: Trial | None = None
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
class Study:
    """One check's items and their parts, and what its judges are asked with.

    `further` has the items of the sets that are only reported on, by source.
    """

    job: CalibrationJob
    resources: Resources
    told: Told
    items: Sequence[LabelledItem]
    parts: Parts
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

    async def tried(self, judge: Judge) -> Trial:
        """Ask a judge, fit to what it said, and do the same without the deciding field."""
        observed = await self.observe(judge, self.items, "")
        name = judge.rubric.deciding
        if name is None or not self.job.controls:
            return self._fitted(judge, observed, {})
        swapped = await self._swapped(judge, name)
        if judge.rubric.fields == (name,):
            # Nothing else is shown: the best that can be said is one answer for all.
            blind = Trial(judge, self._constant(), Fit())
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
    ) -> Trial:
        """The judge with what was fitted to the items to fit to, and to their swapped ones."""
        if not judge.probabilistic:
            reason = "the structured method is taken as it stands"
            return Trial(judge, observed, Fit(reason=reason))
        found, train = self._fit(judge, observed, swapped, self.parts.fitted)
        if found.classifier is None:
            return Trial(judge, observed, found, train)
        method = "probe" if isinstance(found.classifier, Probe) else judge.method
        reads = replace(judge, method=method, reader=AnswerReader(classifier=found.classifier))
        apart: dict[int, AnswerReader] = {}
        for fold in self.parts.folds:
            others = sorted({*self.parts.fitted} - {*fold})
            made, _ = self._fit(judge, observed, swapped, others)
            reader = AnswerReader(classifier=made.classifier) if made.classifier else judge.reader
            apart |= dict.fromkeys(fold, reader)
        return Trial(reads, observed, found, train, apart=apart)

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
