"""How far people agree on one check: kappas, pairwise agreement, alpha, and the accuracy of their
majority, for all annotators and for each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.calibration.majority import Majority, VotedQuestion
from judge.records.answers import OWN_ANSWERS, SEVERAL, number_of
from judge.records.labels import Annotation
from judge.stats.agreement import class_kappas, count_table, rater_agreement, scale_alphas
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.classification import kappas, numbers_of, weighted_kappas
from judge.stats.intervals import Estimate

MAX_CLASSES = 12
"""With more classes, each class's kappa is computed only on request (`Majority.raters`)."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one set of annotators over one set of questions.

    `answers` counts every answer. `majorities` counts the questions by majority answer; several of
    one question (if annotators can give several) are joined by `|`. `diverge` questions have none.

    `measures`: `fleiss` (kappa), `pairwise` (share of agreeing pairs) and `alpha_nominal`
    (Krippendorff's), over the questions with two ratings or more (n) out of those with one (of); if
    the answers are the points of a scale, `alpha_ordinal` and `alpha_interval`; `cohen` (kappa) for
    exactly two annotators, on a scale also with quadratic weights (`weighted`); `accuracy` of the
    majority, if there is gold, over the questions with gold and a majority (n) out of those with
    gold (of). `accuracies` has it for each gold label, `class_kappas` Fleiss's kappa of each class.
    All but the counts weigh questions about records that were drawn with different chances.
    """

    questions: int
    labels: int
    annotators: int
    answers: Mapping[str, int]
    majorities: Mapping[str, int]
    diverge: int
    measures: Mapping[str, Estimate]
    accuracies: Mapping[str, Estimate]
    class_kappas: Mapping[str, Estimate]

    @property
    def outcomes(self) -> dict[str, int]:
        """How many questions have one majority answer, several, or none."""
        several = sum(count for answer, count in self.majorities.items() if SEVERAL in answer)
        single = self.questions - several - self.diverge
        return {"single": single, "several": several, "diverge": self.diverge}


@dataclass(frozen=True, slots=True)
class CheckAgreement:
    """The figures of one check: for all annotators, and for each group."""

    check: str
    classes: tuple[str, ...]
    overall: Figures
    groups: Mapping[str, Figures]


def agreement_on(
    name: str,
    questions: Sequence[VotedQuestion],
    rule: Majority,
    draws: int,
    seed: int,
    people: Mapping[str, Mapping[str, str]],
) -> CheckAgreement:
    """The agreement on a check's answered questions; arguments as `people.agreement`."""
    labels = {a.answer for question in questions for a in question.annotations.values()}
    classes = tuple(
        sorted(labels | {question.gold for question in questions if question.gold}, key=_place)
    )

    def groups_of(annotation: Annotation) -> set[str]:
        about = people.get(annotation.annotator, {})
        of_person = {f"{column}: {content}" for column, content in about.items()}
        return of_person if annotation.group is None else {annotation.group, *of_person}

    def figures(group: str | None = None) -> Figures:
        """The figures of a group's annotators; None: of all."""
        rows = []
        for question in questions:
            answers = {
                a.annotator: a.answer
                for a in question.annotations.values()
                if group is None or group in groups_of(a)
            }
            rows += [(question, answers)] if answers else []
        return _figures(rows, classes, rule, draws, seed)

    groups = {g for q in questions for a in q.annotations.values() for g in groups_of(a)}
    return CheckAgreement(
        name, classes, figures(), {group: figures(group) for group in sorted(groups)}
    )


def _place(answer: str) -> tuple[bool, float, str]:
    """A sort key: numbers by value, undecided answers last."""
    return answer in OWN_ANSWERS, number_of(answer) or 0.0, answer


def _figures(
    rows: Sequence[tuple[VotedQuestion, Mapping[str, str]]],
    classes: tuple[str, ...],
    rule: Majority,
    draws: int,
    seed: int,
) -> Figures:
    # Alpha corrects for the number of ratings, so a question weighs 1 on average.
    mean = sum(question.item.weight for question, _ in rows) / len(rows)

    def resamples(part: Sequence[tuple[VotedQuestion, object]]) -> Resamples:
        records = [question.record for question, _ in part]
        weights = [question.item.weight / mean for question, _ in part]
        return Resamples(records, draws=draws, seed=seed, by_weight=weights)

    counts = Counter(answer for _, answers in rows for answer in answers.values())
    won = [rule.winner([*answers.values()], question.name) for question, answers in rows]
    annotators = sorted({name for _, answers in rows for name in answers})
    paired = [(question, answers) for question, answers in rows if len(answers) > 1]
    answers_of = [answers for _, answers in paired]
    resample = resamples(paired)
    measures = _agreement_measures(answers_of, annotators, classes, resample, of=len(rows))
    golden = [
        (question, winner) for (question, _), winner in zip(rows, won, strict=True) if question.gold
    ]

    def accuracy(part: Sequence[tuple[VotedQuestion, str | None]]) -> Estimate:
        hits = [None if winner is None else float(winner == q.gold) for q, winner in part]
        return share_estimate(hits, resamples(part))

    if golden:
        measures["accuracy"] = accuracy(golden)
    labels = sorted({question.gold or "" for question, _ in golden}, key=_place)
    by_class: dict[str, Estimate] = {}
    if rule.raters or len(classes) <= MAX_CLASSES:
        rated = paired
        if rule.raters:
            rated = [
                (question, answers) for question, answers in rows if len(answers) >= rule.raters
            ]
        by_class = class_kappas(
            [list(answers.values()) for _, answers in rated],
            classes,
            resamples(rated),
            of=len(rows),
            raters=rule.raters,
            seed=seed,
        )
    return Figures(
        questions=len(rows),
        labels=counts.total(),
        annotators=len(annotators),
        answers={name: counts[name] for name in classes},
        majorities=dict(sorted(Counter(filter(None, won)).items())),
        diverge=won.count(None),
        measures=measures,
        accuracies={name: accuracy([q for q in golden if q[0].gold == name]) for name in labels},
        class_kappas=by_class,
    )


def _agreement_measures(
    paired: Sequence[Mapping[str, str]],
    annotators: Sequence[str],
    classes: Sequence[str],
    resample: Resamples,
    of: int,
) -> dict[str, Estimate]:
    """The measures of `Figures` that compare annotators, over questions with two answers or more
    out of `of`."""
    table = count_table([list(answers.values()) for answers in paired], classes)
    measures = rater_agreement(table, resample, of=of)
    # Undecided answers are last in `classes`, so the scale is the table's first columns.
    scale = [name for name in classes if name not in OWN_ANSWERS]
    points = numbers_of(scale)
    if points:
        measures |= scale_alphas(table[:, : len(points)], points, resample, of=of)
    if len(annotators) == 2:
        first, second = ([answers[name] for answers in paired] for name in annotators)
        stack = resample.confusions(first, second, classes)
        measures["cohen"] = resample.estimate(kappas(stack), n=len(paired), of=of)
        if points:
            weighted = weighted_kappas(stack[:, : len(scale), : len(scale)], points)
            count = sum({*pair} <= {*scale} for pair in zip(first, second, strict=True))
            measures["weighted"] = resample.estimate(weighted, n=count, of=of)
    return measures
