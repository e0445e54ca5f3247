"""How far people agree with one another, and their majority with gold.

The figures make up the papers' tables: NormAd table 3 (a row a check: Fleiss's kappa, pairwise
agreement, accuracy of the majority; the mean row) and table 4 (a row a group: accuracy for each
gold label, Fleiss's kappa, alpha; the mean row), CALI figure 3 (the majorities of two groups
against each other, Diverge included), and CulturalBench step 3 (questions with one majority, with
several, with none).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from judge.calibration.plain import plain
from judge.errors import UsageError
from judge.records.labels import Annotation, LabelledItem
from judge.stats.agreement import (
    Level,
    agreement_across,
    class_kappa,
    cohen_kappa,
    count_table,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from judge.stats.bootstrap import bootstrap
from judge.stats.classification import Weights
from judge.stats.intervals import Estimate
from judge.stats.votes import MORE_THAN_HALF, Threshold, majorities, majority

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.int64]], float | None]

T = TypeVar("T")
Answers = Sequence[tuple[str | None, str | None]]

OWN_ANSWERS = frozenset(
    {"unsure", "unanswerable", "don't know", "i don't know", "can't tell", "discard"}
)
"""Answers that decide nothing: counted as answers of their own, missing from ordered scales."""

JOINED = "|"
"""Stands between the answers of an annotator who gave several (AmbiEnt, CulturalBench 3.2)."""

DIVERGE = "diverge"
"""What CALI (3.6) calls a question without a majority."""

_WEIGHTS: dict[Level, Weights] = {"nominal": "none", "ordinal": "linear", "interval": "quadratic"}


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured, and how.

    `order` names the answers in the order of their scale, also those that were never given;
    numbers have their own. `by` names a slice to group results by. `draws` 0 gives no intervals.
    """

    majority: Threshold = MORE_THAN_HALF
    level: Level = "nominal"
    order: tuple[str, ...] = ()
    by: str | None = None
    draws: int = 1000
    seed: int = 0


@dataclass(slots=True)
class Question:
    """One check about one record (or value), with each annotator's answer."""

    record: str
    check: str
    gold: str | None
    annotations: dict[str, Annotation] = field(default_factory=dict)
    slices: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figures:
    """One set of annotators over one set of questions.

    `answers` counts every answer. `majorities` counts the majority answers of the questions:
    several of one question (where annotators may give several) joined by bars, DIVERGE for none.

    `measures` are, as far as they can be computed:

    - `fleiss` (kappa), `pairwise` (percent agreement), `alpha` (Krippendorff's), over the questions
      with two ratings (n) out of those with one (of);
    - `cohen` (kappa) for exactly two annotators, weighted by the distance of ranks (ordinal) or its
      square (interval);
    - `fleiss of ANSWER`, against all other answers, where there are more than two;
    - `undecided`, the share of labels that decide nothing ("unsure", "unanswerable"). In all
      measures but ordered ones these are a class like the others;
    - `accuracy` of the majority, over the questions with gold and a majority (n) out of those with
      gold (of), and `accuracy of GOLD`, the same for each gold answer.
    """

    questions: int
    labels: int
    annotators: int
    answers: Mapping[str, int]
    majorities: Mapping[str, int]
    measures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Across:
    """Two groups against each other.

    `pairwise`: one rater from each, over the questions that both answered (n) out of all (of).
    `same`: the share of same majorities where both groups have one, `kappa` Cohen's of these.
    `majorities` counts the second group's under each of the first's, DIVERGE included.
    """

    first: str
    second: str
    pairwise: Estimate
    same: Estimate
    kappa: Estimate
    majorities: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class CheckAgreement:
    """All figures of one check: all annotators, each group, each slice, groups in pairs."""

    check: str
    classes: tuple[str, ...]
    overall: Figures
    groups: Mapping[str, Figures]
    parts: Mapping[str, Figures]
    across: Sequence[Across]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The report. `repeated` answers by an annotator who had answered the question before were left
    out, `changed` of them differed; of `conflicting` second gold answers the first one holds."""

    checks: Sequence[CheckAgreement]
    repeated: int = 0
    changed: int = 0
    conflicting: int = 0

    def as_json(self) -> dict[str, Any]:
        """The report as plain data; numbers rounded to 6 places, undefined ones null."""
        return {
            "repeated": self.repeated,
            "changed": self.changed,
            "conflicting_gold": self.conflicting,
            "checks": [
                {
                    **plain(one),
                    "group_means": plain(means(list(one.groups.values()))),
                    "part_means": plain(means(list(one.parts.values()))),
                }
                for one in self.checks
            ],
            "means": plain(means([one.overall for one in self.checks])),
        }


def agreement(items: Iterable[LabelledItem], options: Options | None = None) -> Agreement:
    """The report on the items' annotations; items without any only bring gold.

    Items of the same record, check and number become one question, so that gold may come from
    another file. Intervals come from a bootstrap of records: questions about one record are drawn
    together, the annotators are taken as they are.

    Raises:
        UsageError: an ordered level with answers that have no order, an order without one of the
            answers, or a field to group results by that no record has.
    """
    options = options or Options()
    questions, repeats = _gather(items)
    checks: dict[str, list[Question]] = {}
    for question in questions:
        if question.annotations:
            checks.setdefault(question.check, []).append(question)
    known = {name for asked in checks.values() for question in asked for name in question.slices}
    if options.by is not None and checks and options.by not in known:
        there = ", ".join(sorted(known)) or "none"
        raise UsageError(f"no record has '{options.by}' to slice by; records have: {there}")
    reports = [_check(name, asked, options) for name, asked in checks.items()]
    return Agreement(reports, **repeats)


def means(rows: Sequence[Figures]) -> dict[str, Estimate]:
    """Each measure's mean over the rows where it is defined (n), out of all rows (of).

    The last row of NormAd's tables 3 (rows are checks) and 4 (rows are groups).
    """
    found = {}
    for name in dict.fromkeys(name for row in rows for name in row.measures):
        values = [row.measures[name].value for row in rows if name in row.measures]
        defined = [value for value in values if value is not None]
        average = sum(defined) / len(defined) if defined else None
        found[name] = Estimate(average, n=len(defined), of=len(rows))
    return found


def sorted_answer(answer: str) -> str:
    """The answer; several joined by a bar are sorted and each named once."""
    return JOINED.join(sorted({part.strip() for part in answer.split(JOINED)}))


def _gather(items: Iterable[LabelledItem]) -> tuple[list[Question], dict[str, int]]:
    questions: dict[tuple[str, str, int], Question] = {}
    counts = {"repeated": 0, "changed": 0, "conflicting": 0}
    for item in items:
        gold = None if item.gold is None else sorted_answer(item.gold)
        key = (item.record, item.check, item.number)
        question = questions.setdefault(key, Question(item.record, item.check, gold))
        counts["conflicting"] += None not in (gold, question.gold) and gold != question.gold
        question.gold = gold if question.gold is None else question.gold
        question.slices = {**item.slices, **question.slices}
        for given in item.annotations:
            answer = sorted_answer(given.answer)
            earlier = question.annotations.get(given.annotator)
            if earlier is None:
                question.annotations[given.annotator] = replace(given, answer=answer)
            else:
                counts["repeated"] += 1
                counts["changed"] += answer != earlier.answer
    return list(questions.values()), counts


def _check(check: str, questions: Sequence[Question], options: Options) -> CheckAgreement:
    classes = _classes(questions, options)
    groups = {a.group for q in questions for a in q.annotations.values() if a.group is not None}
    samples = {group: _Sample(questions, group) for group in sorted(groups)}
    parts: dict[str, list[Question]] = defaultdict(list)
    if options.by is not None:
        for question in questions:
            parts[question.slices.get(options.by, "(none)")].append(question)
    crosswise = [
        _across((a, samples[a]), (b, samples[b]), len(questions), classes, options)
        for a, b in combinations(samples, 2)
    ]
    return CheckAgreement(
        check,
        classes,
        _figures(_Sample(questions), classes, options),
        {group: _figures(sample, classes, options) for group, sample in samples.items()},
        {name: _figures(_Sample(parts[name]), classes, options) for name in sorted(parts)},
        [one for one in crosswise if one.pairwise.n],
    )


def _classes(questions: Sequence[Question], options: Options) -> tuple[str, ...]:
    """Every answer given, or gold, or named in the order; sorted, undecided ones last.

    Raises:
        UsageError: answers that an order lacks, or that the level cannot rank.
    """
    found = {a.answer for q in questions for a in q.annotations.values()}
    found |= {q.gold for q in questions if q.gold is not None}
    own = sorted((found & OWN_ANSWERS) - set(options.order))
    rest = sorted(found - set(own) - set(options.order))
    # Two spellings of one number would be two places on its scale.
    numbers = [_number(answer) for answer in (*options.order, *rest)]
    numeric = None not in numbers and len(set(numbers)) == len(numbers)
    if options.level == "interval" and not numeric:
        raise UsageError(f"level interval needs numbers, not {', '.join((*options.order, *rest))}")
    if rest and (options.order or (options.level == "ordinal" and not numeric)):
        # A misspelt answer would count as one more that could be given.
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


class _Sample:
    """The questions that a group answered (None: all annotators), with their answers."""

    def __init__(self, questions: Sequence[Question], group: str | None = None) -> None:
        given = [
            (q, {n: a.answer for n, a in q.annotations.items() if group in (None, a.group)})
            for q in questions
        ]
        self.asked = [(question, answers) for question, answers in given if answers]
        self.answers = [list(answers.values()) for _, answers in self.asked]
        self.records = [question.record for question, _ in self.asked]
        self.annotators = sorted({name for _, answers in self.asked for name in answers})


def _figures(sample: _Sample, classes: Sequence[str], options: Options) -> Figures:
    counts = count_table(sample.answers, classes)
    answers = Counter(answer for given in sample.answers for answer in given)
    undecided = sum(count for answer, count in answers.items() if answer in OWN_ANSWERS)
    won = [_winner(given, options.majority) for given in sample.answers]
    # An answer that decides nothing has no place on a scale.
    ranked = [one for one in classes if one in options.order or one not in OWN_ANSWERS]
    scale = list(classes) if options.level == "nominal" else ranked
    values = [float(Fraction(name)) for name in scale] if options.level == "interval" else None
    alpha = partial(krippendorff_alpha, level=options.level, values=values)
    measures = {
        "fleiss": _measured(fleiss_kappa, counts, sample, options),
        "pairwise": _measured(percent_agreement, counts, sample, options),
        "alpha": _measured(alpha, count_table(sample.answers, scale), sample, options),
        "undecided": Estimate(
            undecided / answers.total() if answers else None, n=undecided, of=answers.total()
        ),
    }
    if len(sample.annotators) == 2:
        measures["cohen"] = _cohen(sample, scale, options)
    for column, name in enumerate(classes if len(classes) > 2 else ()):
        kappa = partial(class_kappa, column=column)
        measures[f"fleiss of {name}"] = _measured(kappa, counts, sample, options)
    return Figures(
        questions=len(sample.asked),
        labels=answers.total(),
        annotators=len(sample.annotators),
        answers={name: answers[name] for name in classes},
        majorities=dict(sorted(Counter(winner or DIVERGE for winner in won).items())),
        measures=measures | _accuracies(sample, won, classes, options),
    )


def _measured(
    statistic: Statistic, counts: NDArray[np.int64], sample: _Sample, options: Options
) -> Estimate:
    """A statistic of the count table, over its rows with two ratings or more."""
    raters = counts.sum(axis=1)
    paired = counts[raters >= 2]
    clusters = [r for r, count in zip(sample.records, raters, strict=True) if count >= 2]
    rows = range(len(paired))
    found = _estimate(lambda drawn: statistic(paired[list(drawn)]), rows, clusters, options)
    return replace(found, of=int((raters >= 1).sum()))


def _accuracies(
    sample: _Sample, won: Sequence[str | None], classes: Sequence[str], options: Options
) -> dict[str, Estimate]:
    golden = [
        ((winner, question.gold), question.record)
        for winner, (question, _) in zip(won, sample.asked, strict=True)
        if question.gold is not None
    ]
    found = {}
    for gold in (None, *classes):
        held = [one for one in golden if gold in (None, one[0][1])]
        decided = [one for one in held if one[0][0] is not None]
        if held:
            pairs, records = [pair for pair, _ in decided], [record for _, record in decided]
            name = "accuracy" if gold is None else f"accuracy of {gold}"
            found[name] = replace(_estimate(_share_equal, pairs, records, options), of=len(held))
    return found


def _winner(answers: Sequence[str], threshold: Threshold) -> str | None:
    """The majority's answer; several, where annotators may give several, joined; None: Diverge."""
    if any(JOINED in answer for answer in answers):
        return JOINED.join(majorities([a.split(JOINED) for a in answers], threshold)) or None
    return majority(answers, threshold)


def _cohen(sample: _Sample, scale: Sequence[str], options: Options) -> Estimate:
    first, second = sample.annotators
    both = [
        ((given[first], given[second]), question.record)
        for question, given in sample.asked
        if given.get(first) in scale and given.get(second) in scale
    ]
    kappa = partial(_kappa, weights=_WEIGHTS[options.level], order=scale)
    found = _estimate(kappa, [pair for pair, _ in both], [r for _, r in both], options)
    return replace(found, of=len(sample.asked))


def _across(
    one: tuple[str, _Sample],
    other: tuple[str, _Sample],
    of: int,
    classes: Sequence[str],
    options: Options,
) -> Across:
    theirs = {id(question): list(given.values()) for question, given in other[1].asked}
    shared = [
        (question.record, list(given.values()), theirs[id(question)])
        for question, given in one[1].asked
        if id(question) in theirs
    ]
    records = [record for record, _, _ in shared]
    first = count_table([answers for _, answers, _ in shared], classes)
    second = count_table([answers for _, _, answers in shared], classes)
    pairwise = _estimate(
        lambda rows: agreement_across(first[list(rows)], second[list(rows)]),
        range(len(shared)),
        records,
        options,
    )
    won = [(_winner(a, options.majority), _winner(b, options.majority)) for _, a, b in shared]
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for a, b in won:
        table[a or DIVERGE][b or DIVERGE] += 1
    decided = [(pair, r) for pair, r in zip(won, records, strict=True) if None not in pair]
    pairs, clusters = [pair for pair, _ in decided], [record for _, record in decided]
    return Across(
        one[0],
        other[0],
        replace(pairwise, of=of),
        replace(_estimate(_share_equal, pairs, clusters, options), of=len(shared)),
        replace(_estimate(_kappa, pairs, clusters, options), of=len(shared)),
        {name: dict(counts) for name, counts in table.items()},
    )


def _estimate(
    statistic: Callable[[Sequence[T]], float | None],
    items: Sequence[T],
    clusters: Sequence[str],
    options: Options,
) -> Estimate:
    if not items:
        return Estimate(None)
    if not options.draws:
        return Estimate(statistic(items), n=len(items), of=len(items))
    return bootstrap(statistic, items, clusters, draws=options.draws, seed=options.seed)


def _kappa(
    pairs: Answers, weights: Weights = "none", order: Sequence[str] | None = None
) -> float | None:
    return cohen_kappa([a for a, _ in pairs], [b for _, b in pairs], weights=weights, order=order)


def _share_equal(pairs: Answers) -> float | None:
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None
