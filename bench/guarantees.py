"""How often a guarantee is given that does not hold: two tables of bench/coverage.py.

The second one runs all of `judge calibrate --guarantee`: the labels are split, probes and
first-token questions fitted and selected, thresholds tested. It is compared with testing them on
the items used for fitting. Only two strengths of probes and one of first tokens are tried, with all
numbers of components, which takes a quarter of a second for a simulation instead of a half.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from judge.calibration import fit, probe
from judge.calibration.guarantee import policy_of
from judge.calibration.labels import CalibrationJob
from judge.calibration.observe import LabelledAnswer, as_read
from judge.calibration.probe import TrainingItem
from judge.calibration.split import Split
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Observation
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.stats.guarantee import grid_from, threshold_with_guarantee
from judge.verdict import AnswerOutcome

Rates = NDArray[np.float64]
SEED = 20261122
FRESH = 2000
"""New items on which each guarantee is checked against the truth."""


def guarantees(count: int) -> Iterable[str]:
    """How often a threshold is given at which the true agreement is below 90 %.

    `flat`: agreement is 89.9 % at every confidence, so any threshold is wrong. `rising`: it is
    0.6 + 0.4 c at confidence c, even in [0, 1], so a threshold t is wrong below 0.5.
    """
    yield "agreement  items  given out      wrong  mean share decided   simulations"
    for shape, items in product(("flat", "rising"), (100, 300, 1000)):
        random = np.random.default_rng([SEED, 4, items])
        given = wrong = 0
        decided = 0.0
        for _ in range(count):
            confidences = random.random(items)
            chance = 0.899 if shape == "flat" else 0.6 + 0.4 * confidences
            agrees = random.random(items) < chance
            thresholds = grid_from(random.random(items).tolist(), items)
            found = threshold_with_guarantee(confidences.tolist(), agrees.tolist(), thresholds)
            if found.threshold is not None:
                given += 1
                wrong += shape == "flat" or found.threshold < 0.5
                decided += found.coverage.value or 0.0
        yield (
            f"{shape:9}  {items:5d}  {given / count:9.1%}  {wrong / count:9.1%}  "
            f"{decided / count:18.1%}  {count:12d}"
        )


# ---------------------------------------------------------------- the whole way to a guarantee

WIDE, TELLING = 24, 3
"""Dimensions of a simulated hidden state, and how many of them depend on the answer."""

RUBRIC = Rubric.from_text(
    """
    name: simulated
    title: Is it so?
    source: made up
    fields: [text]
    question: Is it so?
    """,
    "simulated.yaml",
)


@dataclass(frozen=True)
class World:
    """The distribution of labels, their number, and the agreement promised of a fitted judge.

    The `TELLING` dimensions of a state are normal, with mean `gap` if the answer is yes and -`gap`
    if it is no; `noise` is the share of labels that are then flipped, so that no judge agrees more
    often than 1 - `noise`. The first token is biased to yes, and depends on these dimensions with
    noise added.
    """

    labels: int
    promised: float
    gap: float
    noise: float

    def drawn(self, random: np.random.Generator, count: int) -> tuple[list[Observation], Rates]:
        """Items as a judge observes them, and the probability that each is labelled yes."""
        states = random.standard_normal((count, WIDE))
        states[:, :TELLING] += self.gap * random.choice((-1, 1), (count, 1))
        told = states[:, :TELLING].sum(axis=1)
        says_yes = np.clip(expit(told + 1 + 2 * random.standard_normal(count)), 1e-4, 1 - 1e-4)
        read = [
            Observation({0: (chance, 1 - chance)}, state)
            for chance, state in zip(says_yes.tolist(), states.tolist(), strict=True)
        ]
        return read, self.noise + (1 - 2 * self.noise) * expit(2 * self.gap * told)


WORLDS = (
    World(240, 0.9, 2.0, 0.02),
    World(480, 0.9, 0.8, 0.02),
    World(480, 0.9, 2.0, 0.101),
)
"""In the last one every guarantee is wrong: agreement with labels is at most 89.9 %."""


@dataclass
class Kept:
    """The number of guarantees given, how many did not hold, and the share that they decide."""

    given: int = 0
    broken: int = 0
    decided: float = 0.0

    def add(
        self, world: World, reader: AnswerReader, fresh: Sequence[Observation], yes: Rates
    ) -> None:
        """Count a guarantee, checked on the reader's decisions about fresh items."""
        found = [reader.decide(RUBRIC, read) for read in fresh]
        sure = np.array([one.sure for one in found])
        agrees = np.where([one.answer == "yes" for one in found], yes, 1 - yes)
        self.given += 1
        self.broken += not sure.any() or agrees[sure].mean() < world.promised
        self.decided += float(sure.mean())

    def told(self, count: int) -> str:
        decided = f"{self.decided / self.given:8.1%}" if self.given else "       -"
        return f"{self.given / count:9.1%} {decided} {self.broken / count:7.1%}"


def whole_way(world: World, seed: int, ours: Kept, leaking: Kept) -> None:
    """Draw labels, fit, and test a threshold; `leaking`: tested on the items used for fitting."""
    place = [world.labels, round(100 * world.promised), round(1000 * world.noise), seed]
    random = np.random.default_rng([SEED, 5, *place])
    read, yes = world.drawn(random, world.labels)
    items = [
        LabelledItem(Record("bench", n, {}), RUBRIC.name, gold="yes" if says else "no")
        for n, says in enumerate(random.random(world.labels) < yes)
    ]
    job = CalibrationJob((), agreement=world.promised, seed=seed)
    parts = Split.of(job, items, judges=1)
    train = [TrainingItem(read[n], str(items[n].gold), items[n].cluster) for n in parts.fitted]
    reader = AnswerReader(classifier=fit.fit(RUBRIC, AnswerReader(), train, seed=seed).classifier)

    def answers(places: Sequence[int]) -> list[LabelledAnswer]:
        answered = AnswerOutcome.UNREADABLE
        return [
            as_read(LabelledAnswer(items[n], answered, observation=read[n]), RUBRIC, reader)
            for n in places
        ]

    fresh = world.drawn(random, FRESH)
    for kept, tested in ((ours, parts.stages[0]), (leaking, parts.fitted)):
        policy = policy_of(
            [answers(parts.held_out)], [[answers(tested)]], world.promised, seed=seed
        )
        sure_at = policy.stages[0].threshold
        if sure_at is not None:
            kept.add(world, replace(reader, sure_at=sure_at), *fresh)


def whole_ways(count: int) -> Iterable[str]:
    """How often the agreement promised of a fitted judge does not hold for its decisions."""
    fit.STRENGTHS, probe.STRENGTHS = (0.1,), (1e-3, 1e-2)
    limit = binom.ppf(0.95, count, 0.05) / count
    yield f"guarantee with fitting, choosing and thresholding in the loop, {count} simulations"
    yield f"(a promise that breaks in 5 % stays within {limit:.1%} of them in 19 of 20 such tables)"
    yield "                       the own part tested          the fitted part tested"
    yield "labels promised  most  given out decided  broken    given out decided  broken"
    for world in WORLDS:
        ours, leaking = Kept(), Kept()
        for seed in range(count):
            whole_way(world, seed, ours, leaking)
        yield (
            f"{world.labels:6d} {world.promised:8.1%} {1 - world.noise:5.1%} "
            f"{ours.told(count)}    {leaking.told(count)}"
        )
