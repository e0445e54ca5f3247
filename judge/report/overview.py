"""The figures of a run for people, counted line by line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from judge.judgement import Judgement
from judge.records import Record
from judge.records.answers import spelling
from judge.records.labels.items import LabelledItem, Own
from judge.records.lines import Line
from judge.report.entry import differ
from judge.run.summary import Summary
from judge.stats.intervals import Estimate, wilson
from judge.verdict import SETTLED, Check, Verdict, last_of_each

_BARS = 20
"""Bars of a distribution; up to as many different scores have a bar each."""


class Bar(NamedTuple):
    """The number of records with values from `low` to `high`, by verdict."""

    low: float
    high: float
    counts: Counter[Verdict]


@dataclass(slots=True)
class Distribution:
    """The distribution of a check's scores, or of its probabilities of a pass, by verdict."""

    probabilities: bool
    values: dict[float, Counter[Verdict]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, value: float, verdict: Verdict) -> None:
        """Count a record. Probabilities are counted by bar, scores to two places."""
        place = min(int(value * _BARS), _BARS - 1) / _BARS if self.probabilities else value
        self.values[round(place, 2)][verdict] += 1

    @property
    def bars(self) -> list[Bar]:
        """The bars, lowest first: for probabilities from 0 to 1; one for each score if they are
        few."""
        low, high = (0.0, 1.0) if self.probabilities else (min(self.values), max(self.values))
        if not self.probabilities and len(self.values) <= _BARS:
            return [Bar(value, value, self.values[value]) for value in sorted(self.values)]
        width = (high - low) / _BARS
        bars = [Bar(low + n * width, low + (n + 1) * width, Counter()) for n in range(_BARS)]
        for value, counts in self.values.items():
            bars[min(int((value - low) / width + 1e-9), _BARS - 1)].counts.update(counts)
        return bars

    @property
    def most(self) -> int:
        """The most records in one bar."""
        return max(bar.counts.total() for bar in self.bars)


class LabelPair(NamedTuple):
    """A label and the judge's answer; `alike` is None if the judge is undecided."""

    check: str
    label: str
    said: str
    alike: bool | None


def labels_beside(line: Line, judgement: Judgement) -> Iterator[LabelPair]:
    """The labels of a line, each with its check's answer; labels without a majority are left
    out."""
    if not Own.knows(line.fields):
        return
    record = Record(line.source, line.number, dict(line.fields))
    checks = {check.name: check for check in judgement.by_judges}
    for item in Own(None, None).read([record]):
        if isinstance(item, LabelledItem) and item.reference and item.check in checks:
            verdict, said = _said(checks[item.check], item.number)
            alike = None if verdict not in SETTLED else _alike(item.reference, said, verdict)
            yield LabelPair(item.check, item.reference, said, alike)


def _said(check: Check, number: int) -> tuple[Verdict, str]:
    """A check's verdict and answer, on the record or on the entry of this number (from 1)."""
    if not number:
        return check.said()
    entries = [value for value in check.outcomes() if value is not None]
    abstains = Verdict.ABSTAIN, str(Verdict.ABSTAIN)
    return check.said(entries[number - 1]) if number <= len(entries) else abstains


def _alike(label: str, said: str, verdict: Verdict) -> bool:
    try:  # A mean score is right if it rounds to the label.
        return abs(float(said) - float(label)) <= 0.5
    except ValueError:
        return spelling(label) in (spelling(said), verdict)


@dataclass(slots=True)
class Overview:
    """Counts over output lines.

    `runs` has the verdicts by fingerprint and workflow; `split` counts records with a check whose
    votes differ, `edited` those with edits or dropped values; `judges` has the models that voted,
    with the versions that answered; `labels` counts labels beside answers, by check. `cost` is in
    dollars, without the `unpriced` lines, whose cost is not known.
    """

    summary: Summary
    runs: dict[tuple[str | None, str | None], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    split: int = 0
    edited: int = 0
    cost: float = 0.0
    unpriced: int = 0
    judges: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    labels: dict[str, Counter[LabelPair]] = field(default_factory=lambda: defaultdict(Counter))
    spreads: dict[str, Distribution] = field(default_factory=dict)

    def add(self, line: Line, judgement: Judgement) -> list[LabelPair]:
        """Count one line, and return its labels with the judge's answers."""
        self.summary.add(line)
        self.split += any(map(differ, judgement.checks))
        self.edited += bool(judgement.edits or judgement.dropped)
        # A record that could not be read was judged by no run.
        if (key := (judgement.fingerprint, judgement.workflow)) != (None, None):
            self.runs[key][judgement.verdict] += 1
        cost = line.usage.cost_usd
        self.cost, self.unpriced = self.cost + (cost or 0.0), self.unpriced + (cost is None)
        for check in judgement.checks:
            for vote in check.votes:
                self.judges[vote.model].update(vote.answered_by)
        for check in last_of_each(judgement.checks):
            value = check.probability if check.score is None else check.score
            if value is not None:
                spread = self.spreads.setdefault(check.name, Distribution(check.score is None))
                spread.add(value, check.verdict)
        pairs = [*labels_beside(line, judgement)]
        for pair in pairs:
            self.labels[pair.check][pair] += 1
        return pairs

    @property
    def outcomes(self) -> list[Verdict]:
        """The verdicts that checks have, in the order of `Verdict`."""
        found = {verdict for counts in self.summary.checks.values() for verdict in counts}
        return [verdict for verdict in Verdict if verdict in found]

    @property
    def for_people(self) -> int:
        """Records that judges could not decide."""
        return self.summary.verdicts[Verdict.ABSTAIN] + self.summary.verdicts[Verdict.UNREADABLE]

    def alike(self, check: str) -> Estimate:
        """The share of labels that the judge agrees with, of those where it is decided."""
        pairs = self.labels[check].items()
        decided = [(pair.alike, count) for pair, count in pairs if pair.alike is not None]
        return wilson(sum(n for alike, n in decided if alike), sum(n for _, n in decided))

    def confusion(self, check: str) -> Mapping[str, Counter[str]]:
        """For each label, how often the judge gave each answer."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for pair, count in sorted(self.labels[check].items(), key=lambda found: found[0][:3]):
            counts[pair.label][pair.said] += count
        return counts
