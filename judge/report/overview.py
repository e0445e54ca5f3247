"""The figures of a run for people, counted line by line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from judge.judgement import Judgement
from judge.questions.answers import agree, in_words_of, is_strange, nearest_answer
from judge.records import RECORD, Record, mapped
from judge.records.answers import OWN_ANSWERS, spelling
from judge.records.labels.items import LabelledItem
from judge.records.labels.own import Own
from judge.records.lines import Line
from judge.report.entry import differ
from judge.run.corrected import RatesOfLines
from judge.run.description import RunDescription, RunDescriptions
from judge.run.rubrics import counting_of, pairs_of, scales_of
from judge.run.slices import Slices
from judge.run.summary import Summary
from judge.run.task import FOR_PEOPLE
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


@dataclass(slots=True)
class LabelCounts:
    """The labels of a check beside the judge's answers.

    `left_out` counts labels that are undecided or no answer of the question, and scores of a
    question that is not `known`; `weights` has the numbers of records that items stand for.
    """

    pairs: Counter[LabelPair] = field(default_factory=Counter)
    left_out: int = 0
    known: bool = True
    weights: set[float] = field(default_factory=set)

    @property
    def alike(self) -> Estimate:
        """The share of labels that the judge agrees with, of those where it is decided."""
        decided = [(pair.alike, n) for pair, n in self.pairs.items() if pair.alike is not None]
        return wilson(sum(n for alike, n in decided if alike), sum(n for _, n in decided))

    @property
    def confusion(self) -> Mapping[str, Counter[str]]:
        """For each label, how often the judge gave each answer."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for pair, count in sorted(self.pairs.items(), key=lambda found: found[0][:3]):
            counts[pair.label][pair.said] += count
        return counts


def labels_beside(
    line: Line, judgement: Judgement, run: RunDescription
) -> Iterator[tuple[LabelledItem, LabelPair | None]]:
    """The items of a line with labels, each with the label and its check's answer; None if the
    label cannot be held against it. Items without a label, or a majority, are left out."""
    record = Record(line.source, line.number, dict(line.fields))
    checks = {check.name: check for check in judgement.by_judges}
    for item in Own(None, None).read([record]):
        if isinstance(item, LabelledItem) and item.check in checks:
            item = in_words_of(item, run.rubrics.get(item.check))
            if item.reference is not None:
                yield item, _pair(item, item.reference, checks[item.check], run)


def _pair(item: LabelledItem, label: str, check: Check, run: RunDescription) -> LabelPair | None:
    rubric = run.rubrics.get(check.name)
    if rubric is None:
        # How far a score may be from a label depends on the question's scale.
        if label in OWN_ANSWERS or check.score is not None:
            return None
        values = [value for value in check.outcomes() if value is not None]
        verdict, answer = _said(check, values[item.number - 1 :][:1] if item.number else [None])
        alike = None if verdict not in SETTLED else spelling(label) in (spelling(answer), verdict)
        return LabelPair(item.check, label, answer, alike)
    if label not in rubric.answers or is_strange(item, rubric):
        return None
    record = next(mapped([item.record], run.columns)).of_kind(default=RECORD)
    if record.problem is not None:
        return None
    entries = record.entries(rubric.each)[item.number - 1 :][:1] if rubric.each else [None]
    verdict, answer = _said(check, entries)
    alike = agree(rubric, label, verdict, answer, record.label)
    if rubric.scale and alike is not None and answer != verdict:
        answer = nearest_answer(rubric, float(answer))
    return LabelPair(item.check, label, answer, alike)


def _said(check: Check, values: Sequence[str | None]) -> tuple[Verdict, str]:
    """A check's verdict and answer on the only one of `values` (None: the record); it abstains if
    there is none, or it was not asked about it."""
    if not values or values[0] not in check.outcomes():
        return Verdict.ABSTAIN, str(Verdict.ABSTAIN)
    return check.said(values[0])


def empty_summary(runs: RunDescriptions, by: Sequence[str] = ()) -> Summary:
    """A summary of no lines yet, with what the descriptions say about the rubrics; raises
    UsageError if a rubric cannot be read."""
    return Summary(
        slices=Slices(by),
        scales=scales_of(runs.rubrics),
        rankings=runs.rankings,
        counting=counting_of(runs.rubrics),
        pairs=pairs_of(runs.rubrics),
    )


@dataclass(slots=True)
class Overview:
    """Counts over output lines.

    `described` has the descriptions of runs; `runs` the verdicts by fingerprint and workflow;
    `split` counts records with a check whose votes differ, `edited` those with edits or dropped
    values; `judges` has the models that voted, with the versions that answered; `labels` the labels
    beside answers, by check; `rates` the corrected pass rates. `cost` is in dollars, without the
    `unpriced` lines, whose cost is not known.
    """

    summary: Summary
    described: RunDescriptions = RunDescriptions()  # noqa: RUF009 (frozen)
    runs: dict[tuple[str | None, str | None], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    split: int = 0
    edited: int = 0
    cost: float = 0.0
    unpriced: int = 0
    judges: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    labels: dict[str, LabelCounts] = field(default_factory=lambda: defaultdict(LabelCounts))
    spreads: dict[str, Distribution] = field(default_factory=dict)
    rates: RatesOfLines = field(init=False)

    def __post_init__(self) -> None:
        self.rates = RatesOfLines(self.described)

    @property
    def made_by(self) -> RunDescriptions:
        """The descriptions of the runs that made these lines."""
        return self.described.among(mark for mark, _ in self.runs)

    def add(self, line: Line, judgement: Judgement) -> list[LabelPair]:
        """Count one line, and return its labels with the judge's answers."""
        self.summary.add(line)
        self.rates.add(line)
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
        return [*self._add_labels(line, judgement)] if Own.knows(line.fields) else []

    def _add_labels(self, line: Line, judgement: Judgement) -> Iterator[LabelPair]:
        run = self.described.of(judgement.fingerprint)
        for item, pair in labels_beside(line, judgement, run):
            counts = self.labels[item.check]
            counts.weights.add(item.weight)
            counts.known = counts.known and item.check in run.rubrics
            counts.left_out += pair is None
            if pair is not None:
                counts.pairs[pair] += 1
                yield pair

    @property
    def outcomes(self) -> list[Verdict]:
        """The verdicts that checks have, in the order of `Verdict`."""
        tables = map(self.summary.counts_of, self.summary.checks)
        found = {verdict for counts in tables for verdict in counts if counts[verdict]}
        return [verdict for verdict in Verdict if verdict in found]

    @property
    def for_people(self) -> int:
        """Records that judges could not decide."""
        return sum(self.summary.verdicts[verdict] for verdict in FOR_PEOPLE)
