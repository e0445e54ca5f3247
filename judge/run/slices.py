"""A run's figures for each value of fields of its records (`--by`)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from judge.records.base import NO_CONTENT, stratum
from judge.records.lines import Line, has_entries, read_check
from judge.verdict import UNDECIDED, Verdict

if TYPE_CHECKING:
    from judge.stats.intervals import Estimate

LISTED = 20
"""How many values of a field are listed with their counts; rarer ones are summed."""

_MAX_VALUES = 10_000
"""How many values are counted separately; later ones are counted together."""

OTHERS = "(others)"
"""The name for the rarer values together."""


@dataclass(slots=True)
class ScoreSums:
    """The scores of a check, where it is decided: their number, sum, and sum of squares."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, score: float) -> None:
        self.count += 1
        self.total += score
        self.squares += score * score

    def include(self, other: ScoreSums) -> None:
        self.count += other.count
        self.total += other.total
        self.squares += other.squares

    def mean(self, of: int, scale: tuple[float, float] | None) -> Estimate:
        """The mean over `of` records, with its interval, within the scale (None: unknown)."""
        from judge.stats.intervals import mean_of_sums

        return mean_of_sums(self.count, self.total, self.squares, of=of, scale=scale or (-inf, inf))


@dataclass(slots=True)
class Slice:
    """Counts over records: their verdicts `before_repair`; by check, its verdicts on them and on
    their entries, how often each of its answers was given, and the sums of its decided scores."""

    before_repair: Counter[str] = field(default_factory=Counter)
    checks: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    entries: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    answers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    scores: dict[str, ScoreSums] = field(default_factory=lambda: defaultdict(ScoreSums))

    def count(self, line: Line) -> None:
        self.before_repair[line.first_verdict] += 1
        for name, check in line.last_checks.items():
            self.checks[name][check["verdict"]] += 1
            if answer := check.get("answer"):
                self.answers[name][answer] += 1
            if has_entries(check) and (read := read_check(check)):
                for outcome, answer in read.outcomes().values():
                    self.entries[name][outcome] += 1
                    if answer:
                        self.answers[name][answer] += 1
            if (score := check.get("score")) is not None and check["verdict"] not in UNDECIDED:
                self.scores[name].add(score)

    def include(self, other: Slice) -> None:
        """Count the records of another slice, too."""
        self.before_repair += other.before_repair
        for counts, more in (
            (self.checks, other.checks),
            (self.entries, other.entries),
            (self.answers, other.answers),
        ):
            for name, count in more.items():
                counts[name] += count
        for name, sums in other.scores.items():
            self.scores[name].include(sums)

    def asked(self, name: str) -> int:
        """How many records a check was made on."""
        counts = self.checks.get(name, Counter())
        return counts.total() - counts[Verdict.SKIPPED]

    def mean(self, name: str, scale: tuple[float, float] | None) -> Estimate:
        """The mean of a check's decided scores."""
        return self.scores[name].mean(self.asked(name), scale)


Parts = list[tuple[str, Slice]]
"""Values of the fields of `--by`, with their slices."""

Rows = list[list[str]]
"""Rows of a table: the value, and its figures."""


@dataclass(slots=True)
class Slices:
    """The slices by value of the fields `by`; `there` are those of the fields that a record has."""

    by: Sequence[str] = ()
    by_value: dict[str, Slice] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)

    def add(self, line: Line) -> None:
        labels = stratum(line.fields, self.by)
        self.there.update(n for n, t in zip(self.by, labels, strict=True) if t != NO_CONTENT)
        fits = (value := _joined(labels)) in self.by_value or len(self.by_value) < _MAX_VALUES
        self.by_value.setdefault(value if fits else OTHERS, Slice()).count(line)

    def __len__(self) -> int:
        return len(self.by_value)

    @property
    def head(self) -> str:
        """The names of the fields `by`."""
        return _joined(self.by)

    @property
    def absent(self) -> str | None:
        """The first of the fields `by` that no record has."""
        return next((name for name in self.by if name not in self.there), None)

    def largest(self, *, all_values: bool = False) -> Parts:
        """The slices, most records first; rarer values are summed unless `all_values`."""
        most = len(self.by_value) if all_values else LISTED
        pairs = [pair for pair in self.by_value.items() if pair[0] != OTHERS]
        pairs.sort(key=lambda pair: -pair[1].before_repair.total())
        rarer = Slice()
        for part in (self.by_value.get(OTHERS, Slice()), *(part for _, part in pairs[most:])):
            rarer.include(part)
        return [*pairs[:most], *([(OTHERS, rarer)] if rarer.before_repair else [])]

    @staticmethod
    def answers(parts: Parts) -> Iterator[tuple[str, list[str], Rows]]:
        """For each check whose answers have names: these, the most frequent first, and for each
        value how often each was given, and on how many records, or their entries, the check was
        made."""
        for name in dict.fromkeys(name for _, part in parts for name in part.answers):
            rows_of = [(value, part) for value, part in parts if part.asked(name)]
            of_entries = any(name in part.entries for _, part in rows_of)
            totals = sum((part.answers[name] for _, part in rows_of), Counter[str]())
            answers = sorted(totals, key=lambda answer: (-totals[answer], answer))
            rows = [
                [
                    value,
                    *(str(part.answers[name][a] or "") for a in answers),
                    str(part.entries[name].total() if of_entries else part.asked(name)),
                ]
                for value, part in rows_of
            ]
            yield name, answers, rows

    @staticmethod
    def means(
        parts: Parts, scales: Mapping[str, tuple[float, float]]
    ) -> Iterator[tuple[str, Rows]]:
        """For each check with scores, of each value the mean score, its interval, over how many
        records, and on how many the check was made."""
        for name in dict.fromkeys(name for _, part in parts for name in part.scores):
            rows = []
            for value, part in ((value, part) for value, part in parts if part.asked(name)):
                mean = part.mean(name, scales.get(name))
                figure = "–" if mean.value is None else f"{mean.value:.2f}"
                interval = "–" if mean.low is None else f"{mean.low:.2f} to {mean.high:.2f}"
                rows.append([value, figure, interval, str(mean.n), str(mean.of)])
            yield name, rows


def _joined(contents: Sequence[str]) -> str:
    """The contents of several fields as one text. Those with a comma are quoted, to distinguish
    (`X, Y`, `Z`) from (`X`, `Y, Z`)."""
    if len(contents) == 1:
        return contents[0]
    return ", ".join(
        json.dumps(text, ensure_ascii=False) if "," in text or text.startswith('"') else text
        for text in contents
    )
