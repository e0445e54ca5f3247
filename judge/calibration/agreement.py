"""How far people agree with one another, and their majority with gold: the people's own report.

Its columns make up the tables of the papers: NormAd table 3 (a row a check: Fleiss kappa, pairwise
agreement, accuracy of the majority; the mean row) and table 4 (a row a group: accuracy for each
gold label, Fleiss kappa, alpha; the mean row), CALI 3.6 (a row a group: kappa of each class; the
majorities of two groups against each other, Diverge included, figure 3), and CulturalBench step 3
(questions with one majority, with several, with none).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from judge.calibration.figures import (
    Across,
    Figures,
    Options,
    Pair,
    Sample,
    across,
    figures,
    outcome,
    pairs_of_annotators,
)
from judge.calibration.plain import plain
from judge.calibration.ratings import OWN_ANSWERS, Prepared, Question, prepare
from judge.errors import UsageError
from judge.records.labels import LabelledItem
from judge.stats.intervals import Estimate
from judge.stats.votes import Threshold

__all__ = ["Agreement", "CheckAgreement", "Options", "Threshold", "agreement", "means"]


@dataclass(frozen=True, slots=True)
class CheckAgreement:
    """All figures of one check: everybody, each group, each part by slice, groups crosswise."""

    check: str
    classes: tuple[str, ...]
    overall: Figures
    groups: Mapping[str, Figures]
    parts: Mapping[str, Figures]
    across: Sequence[Across]
    pairs: Sequence[Pair]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The report: how the ratings were made ready, and each check's figures.

    `unsettled` questions were left out because no group has a majority (`Options.settled`).
    """

    prepared: Prepared
    checks: Sequence[CheckAgreement]
    unsettled: int = 0

    def as_json(self) -> dict[str, Any]:
        """The report as plain data; numbers rounded to 6 places, undefined ones null."""
        checks = [
            {
                **plain(one),
                "group_means": plain(means(list(one.groups.values()))),
                "part_means": plain(means(list(one.parts.values()))),
            }
            for one in self.checks
        ]
        return {
            "prepared": self.prepared.as_json(),
            "unsettled": self.unsettled,
            "checks": checks,
            "means": plain(means([one.overall for one in self.checks])),
        }


def agreement(items: Iterable[LabelledItem], options: Options | None = None) -> Agreement:
    """The report on the items' annotations; items without any only bring gold.

    Intervals come from a bootstrap of records: questions about one record are drawn together, the
    annotators are taken as they are.

    Raises:
        UsageError: an ordered level with answers that have no order, an order without one of the
            answers, or a field to tell results apart by that no record has.
    """
    options = options or Options()
    prepared = prepare(items, options.preparation)
    questions = [question for question in prepared.questions if question.annotations]
    _refuse_unknown(options.by, questions)
    kept = [q for q in questions if not options.settled or _settled(q, options.majority)]
    checks: dict[str, list[Question]] = {}
    for question in kept:
        checks.setdefault(question.check, []).append(question)
    reports = [_check(name, asked, options) for name, asked in checks.items()]
    return Agreement(prepared, reports, len(questions) - len(kept))


def _refuse_unknown(by: str | None, questions: Sequence[Question]) -> None:
    known = {name for question in questions for name in question.slices}
    if by is not None and questions and by not in known:
        there = ", ".join(sorted(known)) or "none"
        raise UsageError(f"no record has '{by}' to slice by; records have: {there}")


def means(rows: Sequence[Figures]) -> dict[str, Estimate]:
    """Each figure's mean over the rows where it is defined (n), out of all rows (of).

    The last row of NormAd's tables 3 (rows are checks) and 4 (rows are groups). Accuracies by gold
    label are under `accuracy:LABEL`.
    """
    golds = dict.fromkeys(gold for row in rows for gold in row.majority.by_gold)
    columns: dict[str, list[Estimate]] = {
        "fleiss": [row.fleiss for row in rows],
        "free": [row.free for row in rows],
        "pairwise": [row.pairwise for row in rows],
        "alpha": [row.alpha for row in rows],
        "accuracy": [row.majority.accuracy for row in rows],
        "ties_at_random": [row.majority.ties_at_random for row in rows],
    }
    for gold in golds:
        columns[f"accuracy:{gold}"] = [
            row.majority.by_gold.get(gold, Estimate(None)) for row in rows
        ]
    return {name: _mean(column) for name, column in columns.items()}


def _mean(column: Sequence[Estimate]) -> Estimate:
    defined = [one.value for one in column if one.value is not None]
    average = sum(defined) / len(defined) if defined else None
    return Estimate(average, n=len(defined), of=len(column))


def _settled(question: Question, threshold: Threshold) -> bool:
    groups: dict[str | None, list[str]] = {}
    for given in question.annotations:
        groups.setdefault(given.group, []).append(given.answer)
    return any(outcome(answers, threshold) is not None for answers in groups.values())


def _check(check: str, questions: Sequence[Question], options: Options) -> CheckAgreement:
    classes = _classes(questions, options)

    def of(asked: Sequence[Question], group: str | None = None) -> Figures:
        return figures(Sample(asked, group), classes, options)

    groups = sorted({a.group for q in questions for a in q.annotations if a.group is not None})
    parts: dict[str, list[Question]] = {}
    if options.by is not None:
        for question in questions:
            parts.setdefault(question.slices.get(options.by, "(none)"), []).append(question)
    crosswise = [across(questions, a, b, classes, options) for a, b in combinations(groups, 2)]
    return CheckAgreement(
        check,
        classes,
        of(questions),
        {group: of(questions, group) for group in groups},
        {name: of(parts[name]) for name in sorted(parts)},
        [one for one in crosswise if one.pairwise.n],
        pairs_of_annotators(questions),
    )


def _classes(questions: Sequence[Question], options: Options) -> tuple[str, ...]:
    """Every answer given, or gold, or named in the order; ordered, answers of their own last.

    Raises:
        UsageError: answers that an order lacks, or has not at this level.
    """
    found = {a.answer for q in questions for a in q.annotations}
    found |= {q.gold for q in questions if q.gold is not None}
    own = sorted((found & OWN_ANSWERS) - set(options.order))
    rest = sorted(found - set(own) - set(options.order))
    numbers = {
        number for answer in (*options.order, *rest) if (number := _number(answer)) is not None
    }
    numeric = len(numbers) == len(options.order) + len(rest)
    if options.level == "interval" and not numeric:
        raise UsageError(f"level interval needs numbers, not {', '.join((*options.order, *rest))}")
    if rest and (options.order or (options.level == "ordinal" and not numeric)):
        # A misspelt answer would count as one more that could be given, and raise the free kappa.
        needed = "the order must name all answers, or be left out"
        if options.level == "ordinal":
            needed = "level ordinal needs the order of all answers"
        raise UsageError(f"{questions[0].check}: {needed}; without: {rest}")
    if (numeric and not options.order) or options.level == "interval":
        return (*sorted((*options.order, *rest), key=Fraction), *own)
    return (*options.order, *rest, *own)


def _number(answer: str) -> Fraction | None:
    try:
        return Fraction(answer)
    except (ValueError, ZeroDivisionError):
        return None
