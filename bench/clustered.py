"""Guarantees and corrected rates of records in groups or copies, and of a judge that abstains: two
tables of bench/coverage.py (`--clustered` prints them alone).

Both run the code of `judge calibrate` from the labels on, and of `judge validate` for the rates.
Each is compared with taking all records as independent and counting only the decided ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from guarantees import RUBRIC, SEED

from judge.calibration.guarantee import policy_of
from judge.calibration.labels import CalibrationJob
from judge.calibration.observe import LabelledAnswer
from judge.calibration.split import Split, clustered
from judge.calibration.trial import rates
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.run.corrected import CorrectedRate, Errors
from judge.stats.corrected_rate import CONTRADICTED, Corrected, rogan_gladen
from judge.verdict import AnswerOutcome, Verdict

PROMISED = 0.9
FEWEST_ANSWERS = 0.1


def fields(kind: str, cluster: int, number: int) -> dict[str, str]:
    """A record of a cluster: by an author (groups), a copy of a text (copies), or neither."""
    text = f"this is text {cluster}" + ("" if kind == "copies" else f" part {number}")
    return {"text": text, **({"author": f"a{cluster}"} if kind == "groups" else {})}


# ---------------------------------------------------------------- guarantees


@dataclass(frozen=True)
class Authors:
    """Labels in clusters of one size; each has one of the agreements, drawn by their shares."""

    kind: str
    clusters: int
    size: int
    agreements: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def truth(self) -> float:
        return sum(np.multiply(self.agreements, self.shares))

    def drawn(self, random: np.random.Generator) -> tuple[list[LabelledItem], list[bool]]:
        """Items, all passed by the judge, and whether it is right about each."""
        chances = random.choice(self.agreements, self.clusters, p=self.shares).repeat(self.size)
        right = (random.random(len(chances)) < chances).tolist()
        items = []
        for number, agrees in enumerate(right):
            shown = fields(self.kind, number // self.size, number)
            group = shown.pop("author", "")
            gold = "yes" if agrees else "no"
            items.append(
                LabelledItem(
                    Record("", 0, shown, name=f"r{number}"), "simulated", gold=gold, group=group
                )
            )
        return items, right


AUTHORS = (
    Authors("single", 400, 1, (0.88,), (1.0,)),
    *(
        Authors(kind, *shape)
        for kind in ("groups", "copies")
        for shape in (
            (12, 40, (1.0, 0.5), (0.75, 0.25)),
            (20, 20, (1.0, 0.5), (0.75, 0.25)),
            (120, 5, (1.0, 0.5), (0.75, 0.25)),
        )
    ),
)


def guaranteed(items: list[LabelledItem], confidences: list[float], seed: int) -> bool:
    """Whether 90 % is guaranteed for a judge that passes all items."""
    parts = Split.of(CalibrationJob((), agreement=PROMISED, seed=seed), items, 1)

    def answers(part: list[int]) -> list[LabelledAnswer]:
        return [
            LabelledAnswer(items[n], AnswerOutcome.ANSWERED, "yes", {"yes": confidences[n]})
            for n in part
        ]

    found = policy_of([answers(parts.held_out)], [[answers(parts.stages[0])]], PROMISED, seed=seed)
    return found.stages[0].threshold is not None


def clustered_guarantees(count: int) -> Iterable[str]:
    """How often 90 % is guaranteed though the truth is less at every confidence."""
    yield "labels   clusters  size   true  promised  as independent   simulations"
    for place, world in enumerate(AUTHORS):
        ours = plain = 0
        for seed in range(count):
            random = np.random.default_rng([SEED, 6, place, seed])
            items, _ = world.drawn(random)
            confidences = (0.5 + random.random(len(items)) / 2).tolist()
            ((joined,), _) = clustered([items], RUBRIC)
            ours += guaranteed(joined, confidences, seed)
            plain += guaranteed([replace(item, group="") for item in items], confidences, seed)
        yield (
            f"{world.kind:7}  {world.clusters:8d}  {world.size:4d}  {world.truth:5.1%}  "
            f"{ours / count:8.1%}  {plain / count:14.1%}  {count:12d}"
        )


# ---------------------------------------------------------------- corrected rates


@dataclass(frozen=True)
class Mails:
    """Labels and judged records in clusters of `size`, which differ in their share of good ones and
    in how mild the judge is (a shift of the log-odds). `shy` are the shares of the good and of the
    bad on which it abstains, among labels and among records."""

    kind: str
    labels: int
    judged: int
    size: int
    rate: float
    labelled_rate: float = 0.5
    shy: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))
    tpr: float = 0.9
    tnr: float = 0.8

    def drawn(
        self, random: np.random.Generator, rate: float, clusters: int, shy: tuple[float, float]
    ) -> Iterator[tuple[int, bool, bool | None]]:
        """Cluster, label, and whether the judge passes it (None: it abstains)."""
        alone = self.size == 1
        good = np.full(clusters, rate) if alone else random.beta(2 * rate, 2 - 2 * rate, clusters)
        shifts = np.zeros(clusters) if alone else random.normal(0, 0.7, clusters)
        cluster = np.arange(clusters).repeat(self.size)
        truth = random.random(len(cluster)) < good[cluster]
        passes = np.where(truth, self.tpr, 1 - self.tnr)
        odds = passes / (1 - passes) * np.exp(shifts[cluster])
        passed = random.random(len(cluster)) < odds / (1 + odds)
        quiet = random.random(len(cluster)) < np.where(truth, *shy)
        for row in zip(cluster.tolist(), truth.tolist(), passed, quiet, strict=True):
            yield row[0], row[1], None if row[3] else bool(row[2])


ALIKE, MORE = ((0.05, 0.5), (0.05, 0.5)), ((0.0, 0.1), (0.05, 0.5))
MAILS = (
    Mails("single", 300, 1000, 1, 0.8),
    Mails("groups", 40, 40, 10, 0.8),
    Mails("groups", 100, 20, 20, 0.8),
    Mails("groups", 60, 12, 20, 0.5),
    Mails("groups", 40, 200, 10, 0.95, 0.8),
    Mails("copies", 40, 40, 10, 0.8),
    Mails("copies", 100, 20, 20, 0.5),
    Mails("single", 300, 1000, 1, 0.7, shy=ALIKE),
    Mails("single", 300, 1000, 1, 0.7, shy=MORE),
    Mails("groups", 60, 60, 10, 0.7, shy=ALIKE),
)
SUBJECT = Record("bench", 1, {"text": "a text"})
WORDS, VERDICTS = {True: "yes", False: "no"}, {True: Verdict.PASS, False: Verdict.FAIL}


@dataclass
class Covered:
    """How many intervals contain the true rate, of how many that were given, and the sum of their
    widths. A refusal because the two samples contradict each other counts as given."""

    held: int = 0
    given: int = 0
    refused: int = 0
    width: float = 0.0

    def add(self, found: Corrected, truth: float, times: int = 1) -> None:
        low, high = found.estimate.low, found.estimate.high
        if low is not None and high is not None:
            self.given += times
            self.held += times * (low <= truth <= high)
            self.width += times * (high - low)
        elif found.reason and found.reason.startswith(CONTRADICTED):
            self.given += times
        else:
            self.refused += times

    @property
    def share(self) -> float | None:
        """The share that holds; None if too few were given."""
        enough = self.given > FEWEST_ANSWERS * (self.given + self.refused)
        return self.held / self.given if enough else None

    def told(self) -> str:
        given = max(1, self.given)
        return f"{self.held / given:6.1%} {self.given:5d} {self.width / given:5.2f}"


def clustered_rates(count: int) -> Iterable[str]:
    """How often the 95 % interval of a corrected rate contains the true one."""
    yield (
        "records  labels    judged    rate  abstains         held given width  "
        "as independent, decided only"
    )
    for place, world in enumerate(MAILS):
        ours, plain = Covered(), Covered()
        for seed in range(count):
            random = np.random.default_rng([SEED, 7, place, seed])
            labels = [
                LabelledAnswer(
                    LabelledItem(
                        Record("", 0, {}, name=f"{cluster}"), "simulated", gold=WORDS[truth]
                    ),
                    AnswerOutcome.ABSTAINED if passed is None else AnswerOutcome.ANSWERED,
                    WORDS.get(passed) if passed is not None else None,
                    record=SUBJECT,
                )
                for cluster, truth, passed in world.drawn(
                    random, world.labelled_rate, world.labels, world.shy[0]
                )
            ]
            known = rates(RUBRIC, labels)
            group = "author" if world.kind == "groups" else None
            rate = CorrectedRate("simulated", Errors(known, group=group))
            judged = [*world.drawn(random, world.rate, world.judged, world.shy[1])]
            for number, (cluster, _, passed) in enumerate(judged):
                verdict = Verdict.ABSTAIN if passed is None else VERDICTS[passed]
                rate.add([verdict], fields(world.kind, cluster, number))
            ours.add(rate.corrected, world.rate)
            decided = [passed for *_, passed in judged if passed is not None]
            errors = known.passed, known.passes, known.failed, known.fails
            plain.add(rogan_gladen(sum(decided), len(decided), *errors), world.rate)
        (a, b), (c, d) = world.shy
        yield (
            f"{world.kind:7}  {world.labels:3d} x {world.size:2d}  {world.judged:4d} x "
            f"{world.size:2d}  {world.rate:4.2f}  {a:.0%} {b:.0%}, {c:.0%} {d:.0%}".ljust(54)
            + f"{ours.told()}  {plain.told()}"
        )
