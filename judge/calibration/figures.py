"""The figures of one set of annotators over one set of questions, and of two sets crosswise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from judge.calibration.ratings import JOINED, OWN_ANSWERS, Preparation, Question
from judge.stats.agreement import (
    Level,
    agreement_across,
    class_kappa,
    cohen_kappa,
    count_table,
    draw_raters,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
    randolph_kappa,
)
from judge.stats.bootstrap import bootstrap
from judge.stats.classification import Weights
from judge.stats.intervals import Estimate
from judge.stats.votes import (
    MORE_THAN_HALF,
    Threshold,
    majorities,
    majority,
    plurality_credit,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.int64]], float | None]

T = TypeVar("T")

DIVERGE = "diverge"
"""What CALI (3.6) calls a question without a majority."""

_WEIGHTS: dict[Level, Weights] = {"nominal": "none", "ordinal": "linear", "interval": "quadratic"}


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured, and how.

    `order` names the answers in the order of their scale (also answers that nobody gave); numbers
    have their own. `by` names a slice to tell results apart by. `raters`: that many raters of each
    question, drawn at random, make the measures of agreement (CALI 3.6: five); `settled` measures
    only questions on which one group at least has a majority (CALI 3.6: 75 %). `draws` 0 gives no
    intervals.
    """

    majority: Threshold = MORE_THAN_HALF
    level: Level = "nominal"
    order: tuple[str, ...] = ()
    by: str | None = None
    raters: int | None = None
    settled: bool = False
    preparation: Preparation = field(default_factory=Preparation)
    draws: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Majorities:
    """What came of the people's majority, over questions with an answer.

    `single` questions have one majority answer, `several` more than one (where annotators may give
    several), `diverge` none. `accuracy` is the share of right ones among the questions with gold
    and a majority (n), out of those with gold (of); `by_gold` the same for each gold answer;
    `ties_at_random` over all with gold, a tie counting for the chance that a draw would be right.
    """

    questions: int
    single: int
    several: int
    diverge: int
    answers: Mapping[str, int]
    accuracy: Estimate
    by_gold: Mapping[str, Estimate]
    ties_at_random: Estimate


@dataclass(frozen=True, slots=True)
class Figures:
    """One set of annotators over one set of questions.

    `answers` counts every answer, `undecided` is the share of labels that are answers of their own
    ("unsure", "unanswerable"); in all measures but ordered ones they are a class like the others.
    The measures' `n` is the number of questions with two ratings, `of` those with one. `cohen` is
    there for exactly two annotators, weighted by the distance of ranks (ordinal) or its square
    (interval); `classes` holds the kappa of each class against the rest.
    """

    questions: int
    labels: int
    annotators: int
    answers: Mapping[str, int]
    undecided: Estimate
    fleiss: Estimate
    free: Estimate
    pairwise: Estimate
    alpha: Estimate
    cohen: Estimate
    classes: Mapping[str, Estimate]
    majority: Majorities


@dataclass(frozen=True, slots=True)
class Across:
    """Two groups against each other.

    `pairwise`: one rater from each, over the questions that both answered (n) out of all (of).
    `same`: the share of same majorities where both groups have one, `kappa` Cohen's of these.
    `majorities` counts the second group's under each of the first's, Diverge included: CALI's
    figure 3.
    """

    first: str
    second: str
    pairwise: Estimate
    same: Estimate
    kappa: Estimate
    majorities: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two annotators on the `items` questions that both answered.

    Of sets that name nobody (CALI, AmbiEnt's crowd) annotators are places in a list, not persons.
    """

    first: str
    second: str
    items: int
    agreement: float
    kappa: float | None


class Sample:
    """The questions that a group answered (None: everybody), with its annotators' answers."""

    def __init__(self, questions: Sequence[Question], group: str | None = None) -> None:
        chosen = [
            (q, {a.annotator: a.answer for a in q.annotations if group in (None, a.group)})
            for q in questions
        ]
        self.asked = [(question, given) for question, given in chosen if given]
        self.answers = [list(given.values()) for _, given in self.asked]
        self.records = [question.record for question, _ in self.asked]
        self.annotators = sorted({name for _, given in self.asked for name in given})


def figures(sample: Sample, classes: Sequence[str], options: Options) -> Figures:
    """All figures of the sample; `classes` are the check's, those of an order first, in order."""
    ratings = sample.answers
    if options.raters is not None:
        ratings = draw_raters(ratings, options.raters, seed=options.seed)
    counts = count_table(ratings, classes)
    scale = _scale(classes, options)
    values = [float(Fraction(name)) for name in scale] if options.level == "interval" else None
    alpha = partial(krippendorff_alpha, level=options.level, values=values)

    def measured(statistic: Statistic, table: NDArray[np.int64] = counts) -> Estimate:
        return _measured(statistic, table, sample.records, options)

    answers = Counter(answer for given in sample.answers for answer in given)
    labels = answers.total()
    undecided = sum(count for answer, count in answers.items() if answer in OWN_ANSWERS)
    return Figures(
        questions=len(sample.asked),
        labels=labels,
        annotators=len(sample.annotators),
        answers={name: answers[name] for name in classes},
        undecided=Estimate(undecided / labels if labels else None, n=undecided, of=labels),
        fleiss=measured(fleiss_kappa),
        free=measured(randolph_kappa),
        pairwise=measured(percent_agreement),
        alpha=measured(alpha, count_table(ratings, scale)),
        cohen=_cohen(sample, scale, options),
        classes={
            name: measured(partial(class_kappa, column=column))
            for column, name in enumerate(classes)
        },
        majority=_majorities(sample, classes, options),
    )


def outcome(answers: Sequence[str], threshold: Threshold) -> str | None:
    """The majority's answer; several, where annotators may give several, joined; None: Diverge."""
    if any(JOINED in answer for answer in answers):
        return JOINED.join(majorities([a.split(JOINED) for a in answers], threshold)) or None
    return majority(answers, threshold)


def across(
    questions: Sequence[Question],
    first: str,
    second: str,
    classes: Sequence[str],
    options: Options,
) -> Across:
    """The first group against the second, over the questions that both answered."""
    one, other = Sample(questions, first), Sample(questions, second)
    theirs = {id(q): list(given.values()) for q, given in other.asked}
    shared = [
        (question.record, list(given.values()), theirs[id(question)])
        for question, given in one.asked
        if id(question) in theirs
    ]
    records = [record for record, _, _ in shared]
    ours = count_table([answers for _, answers, _ in shared], classes)
    others = count_table([answers for _, _, answers in shared], classes)
    pairwise = _estimate(
        lambda rows: agreement_across(ours[list(rows)], others[list(rows)]),
        range(len(shared)),
        records,
        options,
    )
    won = [(outcome(a, options.majority), outcome(b, options.majority)) for _, a, b in shared]
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for a, b in won:
        table[a or DIVERGE][b or DIVERGE] += 1
    places = [place for place, (a, b) in enumerate(won) if a is not None and b is not None]
    pairs = [won[place] for place in places]
    clusters = [records[place] for place in places]
    same = _estimate(_share_equal, pairs, clusters, options)
    kappa = _estimate(_cohen_of, pairs, clusters, options)
    return Across(
        first,
        second,
        replace(pairwise, of=len(questions)),
        replace(same, of=len(shared)),
        replace(kappa, of=len(shared)),
        {name: dict(counts) for name, counts in table.items()},
    )


def pairs_of_annotators(questions: Sequence[Question]) -> list[Pair]:
    """Every two annotators with a question in common, those with the most questions first."""
    common: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for question in questions:
        given = sorted((a.annotator, a.answer) for a in question.annotations)
        for (one, answer), (other, another) in combinations(given, 2):
            common[one, other].append((answer, another))
    pairs = [
        Pair(one, other, len(given), _share_equal(given) or 0.0, _cohen_of(given))
        for (one, other), given in common.items()
    ]
    return sorted(pairs, key=lambda pair: (-pair.items, pair.first, pair.second))


def _scale(classes: Sequence[str], options: Options) -> list[str]:
    """The classes that the level compares: an answer of its own has no place on a scale."""
    if options.level == "nominal":
        return list(classes)
    return [name for name in classes if name in options.order or name not in OWN_ANSWERS]


def _measured(
    statistic: Statistic, table: NDArray[np.int64], records: Sequence[str], options: Options
) -> Estimate:
    """The statistic over the rows with two ratings or more, out of those with one."""
    raters = table.sum(axis=1)
    paired = table[raters >= 2]
    clusters = [record for record, count in zip(records, raters, strict=True) if count >= 2]
    found = _estimate(
        lambda rows: statistic(paired[list(rows)]), range(len(paired)), clusters, options
    )
    return replace(found, of=int((raters >= 1).sum()))


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


def _cohen(sample: Sample, scale: Sequence[str], options: Options) -> Estimate:
    if len(sample.annotators) != 2:
        return Estimate(None, of=len(sample.asked))
    first, second = sample.annotators
    both = [
        (given[first], given[second], question.record)
        for question, given in sample.asked
        if given.get(first) in scale and given.get(second) in scale
    ]
    statistic = partial(_cohen_of, weights=_WEIGHTS[options.level], order=scale)
    pairs = [(one, other) for one, other, _ in both]
    found = _estimate(statistic, pairs, [record for _, _, record in both], options)
    return replace(found, of=len(sample.asked))


def _cohen_of(
    pairs: Sequence[tuple[str | None, str | None]],
    weights: Weights = "none",
    order: Sequence[str] | None = None,
) -> float | None:
    return cohen_kappa([a for a, _ in pairs], [b for _, b in pairs], weights=weights, order=order)


def _share_equal(pairs: Sequence[tuple[str | None, str | None]]) -> float | None:
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None


def _majorities(sample: Sample, classes: Sequence[str], options: Options) -> Majorities:
    won = [outcome(answers, options.majority) for answers in sample.answers]
    decided = Counter(winner for winner in won if winner is not None)
    several = sum(count for winner, count in decided.items() if JOINED in winner)
    held = [
        (winner, question.gold, answers, question.record)
        for winner, (question, _), answers in zip(won, sample.asked, sample.answers, strict=True)
        if question.gold is not None
    ]

    def accuracy(of: str | None = None) -> Estimate:
        golden = [(w, g, r) for w, g, _, r in held if of in (None, g)]
        pairs = [(w, g) for w, g, _ in golden if w is not None]
        records = [r for w, _, r in golden if w is not None]
        return replace(_estimate(_share_equal, pairs, records, options), of=len(golden))

    credit = [plurality_credit(answers, gold) for _, gold, answers, _ in held]
    return Majorities(
        questions=len(won),
        single=decided.total() - several,
        several=several,
        diverge=len(won) - decided.total(),
        answers=dict(sorted(decided.items())),
        accuracy=accuracy(),
        by_gold={name: accuracy(name) for name in classes if any(g == name for _, g, _, _ in held)},
        ties_at_random=_estimate(_mean, credit, [record for *_, record in held], options),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
