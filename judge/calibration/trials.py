"""One judge on a check's labelled items: asked, fitted to a part of them, and asked blind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.backends.base import HiddenStates
from judge.calibration import controls
from judge.calibration.fitting import Fit, Read, fit
from judge.calibration.labels import split
from judge.calibration.observations import Judged, Taken, as_read, observe
from judge.judging.combinations import Probe
from judge.judging.judge import Judge, Sampling
from judge.judging.logprobs import Reader
from judge.profiles import Binding
from judge.records.labels import LabelledItem
from judge.run.calibrated import binding_of
from judge.run.setup import Setup

_HELD_OUT = 0.5
"""Share of the records that nothing is fitted to."""

_GUARANTEED = 0.6
"""The same where a guarantee is wanted, which is tested on two thirds of them."""

Told = Callable[[str, str, int, int], None]
"""Is told check, model, items done, items in all."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to calibrate on, and how.

    - `sources`, `checks`, `records`: the labels, as `gather` takes them
    - `held_out`: the share of the records (0 to 1) that nothing is fitted to; None for the usual
    - `by`: fields to tell results apart by
    - `group`: a field whose values are never on both sides, of fitting and of reporting
    - `contrast`: a set of labels in which the deciding field is turned round
    - `also`: further sets to report on, to which nothing is fitted
    - `controls`: whether each judge is asked without the deciding field, and with another's
    - `agreement`: what the judge shall be guaranteed to agree; None for no guarantee
    - `draws`, `seed`: resamples of each interval, and the seed of all that is drawn
    """

    sources: Sequence[str]
    checks: Sequence[str] = ()
    held_out: float | None = None
    records: int | Mapping[str, int | None] | None = None
    by: Sequence[str] = ()
    group: str | None = None
    contrast: str | None = None
    also: Sequence[str] = ()
    controls: bool = True
    agreement: float | None = None
    draws: int = 1000
    seed: int = 0

    @property
    def apart(self) -> float:
        """The share of the records that nothing is fitted to."""
        if self.held_out is not None:
            return self.held_out
        return _HELD_OUT if self.agreement is None else _GUARANTEED


@dataclass(frozen=True, slots=True)
class Parts:
    """The places of the items that are fitted to, of each stage's own, and of those kept apart."""

    fitted: list[int]
    stages: list[list[int]]
    kept: list[int]

    @classmethod
    def of(cls, job: Job, items: Sequence[LabelledItem], judges: int) -> Parts:
        if job.agreement is None:
            fitted, kept = split(items, [1 - job.apart, job.apart], job.seed)
            return cls(fitted, [], kept)
        # A guarantee takes more labels than the report of it.
        share = job.apart / (2 * judges + 1)
        shares = [1 - job.apart, *[2 * share] * judges, share]
        fitted, *stages, kept = split(items, shares, job.seed)
        return cls(fitted, stages, kept)


@dataclass(frozen=True, slots=True)
class Trial:
    """What one judge said of a check's items, and what was fitted to it.

    `train` is what was fitted to, `blind` the same judge without the deciding field, and `swapped`
    what it said, by place, with that field of another item.
    """

    judge: Judge
    observed: Sequence[Judged]
    fit: Fit
    binding: Binding
    train: Sequence[Read] = ()
    blind: Trial | None = None
    swapped: Mapping[int, Judged] = field(default_factory=dict)

    @property
    def reader(self) -> Reader:
        if self.fit.combination is None:
            return self.judge.reader
        return Reader(combination=self.fit.combination)

    def answers(self, places: Sequence[int]) -> list[Judged]:
        """Its answers to the items at these places, under its final reader."""
        return self.read(self.observed[place] for place in places)

    def read(self, observed: Iterable[Judged], reader: Reader | None = None) -> list[Judged]:
        """What its final reader, or another one, makes of what was read."""
        return [
            one if one.chances is None else as_read(one, self.judge, reader or self.reader)
            for one in observed
        ]


@dataclass(frozen=True, slots=True)
class Trials:
    """What a check's judges are asked with, and the further sets by source."""

    job: Job
    setup: Setup
    told: Told
    further: Mapping[str, Sequence[LabelledItem]] = field(default_factory=dict)

    async def observe(self, judge: Judge, items: Sequence[LabelledItem], what: str) -> list[Judged]:
        """What the judge says of the items; `what` names them for those who wait."""
        settings, client = self.setup.settings, judge.client
        votes, warm = self.drawn
        given = isinstance(client.backend, HiddenStates) and client.backend.states_beside_replies
        probed = settings.method == "probe"
        name = f"{judge.rubric.name} {what}".strip()
        return await observe(
            judge,
            items,
            votes=votes,
            sampling=Sampling(warm, settings.seed),
            taken=Taken(tokens=not probed, state=probed or (settings.method is None and given)),
            at_once=self.setup.slots,
            told=lambda count: self.told(name, client.spec, count, len(items)),
        )

    @property
    def drawn(self) -> tuple[int, float]:
        """How often a structured judge is asked, and at which temperature."""
        settings = self.setup.settings
        votes = settings.votes or 1
        return votes, settings.vote_temperature if votes > 1 else settings.temperature


async def tried(trials: Trials, judge: Judge, items: Sequence[LabelledItem], parts: Parts) -> Trial:
    """Ask a judge, fit to what it said, and do the same without the deciding field."""
    rubric = judge.rubric
    observed = await trials.observe(judge, items, "")
    deciding = rubric.deciding
    swapped: dict[int, Judged] = {}
    if deciding is not None and trials.job.controls:
        swapped = await _swapped(trials, judge, items, parts, deciding)
    seen = _fitted(trials, judge, observed, parts.fitted, swapped)
    if deciding is None or not trials.job.controls:
        return seen
    if rubric.fields == (deciding,):
        # Nothing else is shown: the best that can be said is one answer for all.
        constant = replace(seen, observed=_most_frequent(items, parts))
        return replace(seen, blind=constant, swapped=swapped)
    wanted = sorted({*parts.fitted, *parts.kept})
    without = controls.blinded([items[place] for place in wanted], rubric, deciding)
    said = await trials.observe(judge, without, f"without {deciding}")
    found = dict(zip(wanted, said, strict=True))
    everything = [found.get(place, Judged(item, "skipped")) for place, item in enumerate(items)]
    return replace(
        seen, blind=_fitted(trials, judge, everything, parts.fitted, {}), swapped=swapped
    )


def _most_frequent(items: Sequence[LabelledItem], parts: Parts) -> list[Judged]:
    """The most frequent label of what is fitted to, or of all, as the answer to every item."""
    known = [items[place].reference for place in parts.fitted or parts.kept]
    counts = Counter(answer for answer in known if answer is not None)
    most = max(counts, key=lambda answer: counts[answer], default=None)
    return [Judged(item, "answered" if most else "skipped", most) for item in items]


async def _swapped(
    trials: Trials,
    judge: Judge,
    items: Sequence[LabelledItem],
    parts: Parts,
    name: str,
) -> dict[int, Judged]:
    """What the judge says of items with another's field, by place: of those kept apart, and of
    those to fit to where the rubric says what must be answered. No part sees another's texts."""
    rubric = judge.rubric
    found: dict[int, Judged] = {}
    taught = rubric.control is not None and rubric.control.swapped and judge.probabilistic
    for part in (parts.kept, parts.fitted if taught else []):
        made = controls.swapped([items[n] for n in part], rubric, name, trials.job.seed)
        said = await trials.observe(judge, list(made.values()), f"with another {name}")
        found |= dict(zip((part[n] for n in made), said, strict=True))
    return found


def _fitted(
    trials: Trials,
    judge: Judge,
    observed: Sequence[Judged],
    fitted: Sequence[int],
    swapped: Mapping[int, Judged],
) -> Trial:
    """The judge with what was fitted to the items at these places, and to their swapped ones."""
    votes, warm = trials.drawn
    answer = judge.rubric.control.swapped if judge.rubric.control else None
    told = [(observed[place], observed[place].item.reference, True) for place in fitted]
    told += [(swapped[place], answer, False) for place in fitted if place in swapped]
    questions = {question for one, *_ in told for question in one.chances or ()}
    train = [
        Read(one.chances, true, one.item.cluster, one.state, natural)
        for one, true, natural in told
        if one.chances is not None and set(one.chances) == questions
        if one.chances or one.state is not None
        if true in judge.rubric.answers
    ]
    found = Fit(reason="the structured method is taken as it stands")
    if judge.probabilistic:
        found = fit(judge.rubric, judge.reader, train, seed=trials.job.seed)
        method = "probe" if isinstance(found.combination, Probe) else judge.method
        judge = replace(judge, method=method)
    return Trial(judge, observed, found, binding_of(judge, votes, warm), train)
