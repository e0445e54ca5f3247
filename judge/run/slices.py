"""A run's figures for each value of fields of its records (`--by`)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

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

    def __add__(self, other: ScoreSums) -> ScoreSums:
        return ScoreSums(
            self.count + other.count, self.total + other.total, self.squares + other.squares
        )

    def mean(self, of: int, scale: tuple[float, float] | None) -> Estimate:
        """The mean over `of` records, with its interval, within the scale (None: unknown)."""
        from judge.stats.intervals import mean_of_sums

        return mean_of_sums(self.count, self.total, self.squares, of=of, scale=scale or (-inf, inf))


def decided_score(check: Mapping[str, Any]) -> float | None:
    """The score of a decided check, as in the output line; else None."""
    score: float | None = check.get("score")
    return None if check["verdict"] in UNDECIDED else score


@dataclass(slots=True)
class Slice:
    """The records with one value: their verdicts before repair; by check, how often it was made,
    on how many entries, how often each of its answers was given, and its scores."""

    verdicts: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    entries: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    scores: dict[str, ScoreSums] = field(default_factory=lambda: defaultdict(ScoreSums))

    def add(self, line: Line) -> None:
        self.verdicts[line.first_verdict] += 1
        for name, check in line.last_checks.items():
            self.checks[name] += check["verdict"] != Verdict.SKIPPED
            if has_entries(check) and (read := read_check(check)):
                outcomes = read.outcomes().values()
                self.entries[name] += len(outcomes)
                for _, answer in outcomes:
                    if answer:
                        self.answers[name][answer] += 1
            if (answer := check.get("answer")) is not None:
                self.answers[name][answer] += 1
            if (score := decided_score(check)) is not None:
                self.scores[name].add(score)

    def __add__(self, other: Slice) -> Slice:
        whole = Slice(
            self.verdicts + other.verdicts,
            self.checks + other.checks,
            self.entries + other.entries,
        )
        for part in (self, other):
            for name, counts in part.answers.items():
                whole.answers[name] += counts
            for name, sums in part.scores.items():
                whole.scores[name] += sums
        return whole


Rows = list[list[str]]
"""Rows of a table: the value, and its figures."""


@dataclass(slots=True)
class Slices:
    """The slices by value of the fields `by`; `there` are those of the fields that a record has."""

    by: Sequence[str] = ()
    by_value: dict[str, Slice] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)

    def add(self, line: Line) -> None:
        if not self.by:
            return
        labels = stratum(line.fields, self.by)
        self.there.update(n for n, t in zip(self.by, labels, strict=True) if t != NO_CONTENT)
        fits = (value := _joined(labels)) in self.by_value or len(self.by_value) < _MAX_VALUES
        self.by_value.setdefault(value if fits else OTHERS, Slice()).add(line)

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

    def largest(self, *, all_values: bool = False) -> list[tuple[str, Slice]]:
        """The slices, most records first; rarer values are summed unless `all_values`."""
        most = len(self.by_value) if all_values else LISTED
        pairs = [pair for pair in self.by_value.items() if pair[0] != OTHERS]
        pairs.sort(key=lambda pair: -pair[1].verdicts.total())
        rarer = sum((part for _, part in pairs[most:]), self.by_value.get(OTHERS, Slice()))
        return [*pairs[:most], *([(OTHERS, rarer)] if rarer.verdicts else [])]

    def answers(self, *, all_values: bool = False) -> Iterator[tuple[str, list[str], Rows]]:
        """For each check whose answers have names: these, the most frequent first, and for each of
        `largest` how often each was given, and on how many records, or their entries, the check was
        made."""
        parts = self.largest(all_values=all_values)
        for name in dict.fromkeys(name for _, part in parts for name in part.answers):
            rows_of = [(value, part) for value, part in parts if part.checks[name]]
            of_entries = any(part.entries[name] for _, part in rows_of)
            totals = sum((part.answers[name] for _, part in rows_of), Counter[str]())
            answers = sorted(totals, key=lambda answer: (-totals[answer], answer))
            rows = [
                [
                    value,
                    *(str(part.answers[name][a] or "") for a in answers),
                    str((part.entries if of_entries else part.checks)[name]),
                ]
                for value, part in rows_of
            ]
            yield name, answers, rows

    def means(
        self, scales: Mapping[str, tuple[float, float]], *, all_values: bool = False
    ) -> Iterator[tuple[str, Rows]]:
        """For each check with scores, of each of `largest` the mean score, its interval, over how
        many records, and on how many the check was made."""
        parts = self.largest(all_values=all_values)
        for name in dict.fromkeys(name for _, part in parts for name in part.scores):
            rows = []
            for value, part in ((value, part) for value, part in parts if part.checks[name]):
                mean = part.scores[name].mean(part.checks[name], scales.get(name))
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
