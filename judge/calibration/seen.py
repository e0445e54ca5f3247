"""What a calibration is asked for, and what it has seen of each judge so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judge.calibration.fitting import Fit
from judge.calibration.judged import Judged
from judge.calibration.observing import Observation, as_read
from judge.calibration.rating import Rated
from judge.judging.judge import Judge
from judge.judging.reading import Reader
from judge.profiles import Bond


@dataclass(frozen=True, slots=True)
class Job:
    """What to calibrate on, and how.

    - `held_out`: the share of the records (0 to 1) that nothing is fitted to
    - `records`: so many records of each check and source, drawn with the seed; None for all
    - `records_of`: the same for single sources
    - `by`: fields to tell results apart by
    - `agreement`: what the judge shall be guaranteed to agree; None for no guarantee
    - `level`: the confidence of that guarantee
    - `repeats`: further votes of a structured judge, for its flip rate
    - `epsilon`: what the alternative annotator test forgives a judge
    """

    sources: Sequence[str]
    checks: Sequence[str] = ()
    held_out: float = 0.5
    records: int | None = None
    records_of: Mapping[str, int | None] = field(default_factory=dict)
    by: Sequence[str] = ()
    agreement: float | None = None
    level: float = 0.95
    repeats: int = 0
    epsilon: float = 0.1
    draws: int = 1000
    seed: int = 0
    annotators: Path | None = None


@dataclass(slots=True)
class Seen:
    """One judge's observations of a check's items, and what was made of them so far."""

    judge: Judge
    observed: Sequence[Observation]
    fit: Fit

    bond: Bond

    @property
    def reader(self) -> Reader:
        if self.fit.combination is None:
            return self.judge.reader
        return Reader(combination=self.fit.combination)

    def answers(self, places: Sequence[int], reader: Reader | None = None) -> list[Judged]:
        """Its answers to the items at these places, under its final reader or another."""
        chosen = reader or self.reader
        return [self._answer(self.observed[place], chosen) for place in places]

    def rated(self, places: Sequence[int]) -> list[Rated]:
        pairs = zip(self.answers(places), places, strict=True)
        found = [(one, self.observed[place].subject) for one, place in pairs]
        return [(one, subject) for one, subject in found if subject is not None]

    def _answer(self, seen: Observation, reader: Reader) -> Judged:
        if seen.chances is None:
            return seen.said
        return as_read(seen.item, self.judge, seen.chances, reader)


@dataclass(frozen=True, slots=True)
class Parts:
    """The places of the items that are fitted to, of each stage's own, and of those kept apart."""

    fitted: list[int]
    stages: list[list[int]]
    kept: list[int]
