"""Agreement among people, and of their majority with gold, by check.

The figures are Fleiss's kappa, pairwise agreement, alpha and the accuracy of the majority, for all
annotators and for each group, and how many items have one majority answer, several, or none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from judge.calibration.answer_fields import number_of
from judge.calibration.crowd import Annotator, Crowd, demographics, people_of
from judge.calibration.majority import PLAIN, Majority, VotedQuestion, majority_records
from judge.errors import UsageError
from judge.records import Record
from judge.records.answers import OWN_ANSWERS, SEVERAL, in_order
from judge.records.base import clip
from judge.records.labels import LabelledItem, read_labels, without_label
from judge.records.labels.matching import SharedNames, mixed_questions, other_texts
from judge.settings import Settings
from judge.stats.agreement import class_kappas, count_table, rater_agreement, scale_alphas
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.classification import kappas, numbers_of, weighted_kappas
from judge.stats.intervals import Estimate, plain

MAX_CLASSES = 12
"""With more classes, each class's kappa is computed only on request (`Majority.raters`)."""

MAX_PROBLEMS = 20
"""Most unreadable lines that are kept."""

_UNSIGNED = (
    "the labels do not say who gave which answer: write them as "
    '{"labels": {"CHECK": {"ann": "yes", "bo": "no"}}}, or as a table of item, annotator and label'
)


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


@dataclass(frozen=True, slots=True)
class Agreement:
    """The report of `judge agreement`.

    Args:
        repeated: answers left out because the annotator had answered the question before.
        differing: those of them that differ from the first answer.
        conflicting: gold answers that contradict an earlier one; the first counts.
        no_label: answers left out because they mean "no label".
        unreadable: lines that could not be read; `problems` are the first of them.
        blank: rows of a sheet without a label so far.
        annotators: each annotator's results on control questions.
        ratings: how often the annotators who count gave each rating, by group, before mapping.
        demographics: how many annotators have each value, by column and group (`all` first).
        most_answers: the most answers to one question.
        majorities: the records with people's answers (`majority.majority_records`).
        notes: that annotators answered different questions under one check's name, or that records
            of one id in two files have other texts.
    """

    checks: Sequence[CheckAgreement]
    repeated: int = 0
    differing: int = 0
    conflicting: int = 0
    no_label: int = 0
    unreadable: int = 0
    blank: int = 0
    problems: Sequence[Record] = ()
    annotators: Mapping[str, Annotator] = field(default_factory=dict)
    ratings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    demographics: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    most_answers: int = 0
    majorities: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()

    @property
    def blank_message(self) -> str:
        return without_label(self.blank)

    @property
    def dropped_labels(self) -> float | None:
        """The share of labels from dropped annotators; None if there are no labels."""
        total = sum(about.labels for about in self.annotators.values())
        dropped = sum(about.labels for about in self.annotators.values() if about.dropped)
        return dropped / total if total else None

    def as_json(self) -> dict[str, Any]:
        """The report as plain data; numbers rounded to 6 places, undefined ones null."""
        report: dict[str, Any] = plain(replace(self, problems=(), majorities=()))
        for name in ("problems", "unreadable", "blank", "most_answers", "majorities", "notes"):
            del report[name]
        return report


def agreement_of(
    sources: Sequence[str],
    settings: Settings,
    check: str | None = None,
    majority: Majority = PLAIN,
    seed: int = 0,
    crowd: Crowd | None = None,
    records: Sequence[str] | None = None,
    people: str | None = None,
) -> Agreement:
    """The report on the labels in files.

    Args:
        sources: files, `-`, or NAME:PATH of a public set.
        settings: `map`, `answers` and `id` (of `records`) are used.
        check: report on this check only.
        crowd: which annotators are kept, and how their ratings are mapped.
        records: files with the full records, for `Agreement.majorities`; None: no majorities.
        people: a table about annotators.

    Raises:
        UsageError: there are no labels, or they do not say who gave them.
    """
    problems: list[Record] = []
    blank: list[int] = []
    accepted = (*settings.answers, *(crowd.scale if crowd else ()))
    unreadable = labelled = 0

    names = SharedNames()
    columns = {name: column for name, column in settings.columns.items() if name != "id"}

    def items() -> Iterator[LabelledItem]:
        nonlocal unreadable, labelled
        for source in sources:
            for item in read_labels(source, check, columns, blank, accepted):
                if isinstance(item, LabelledItem):
                    labelled += 1
                    yield names.of(item)
                else:
                    unreadable += 1
                    problems.extend([item] if unreadable <= MAX_PROBLEMS else [])

    everything: Iterable[LabelledItem] = items()
    annotators: Mapping[str, Annotator] = {}
    ratings: Mapping[str, Mapping[str, int]] = {}
    controls: frozenset[str] = frozenset()
    if crowd is not None:
        given = [*everything]
        everything, annotators, controls = crowd.kept(given, check, settings.answers)
        ratings = crowd.ratings(given, annotators)
    report = agreement(
        everything,
        majority=majority,
        answers=settings.answers,
        seed=seed,
        records=records,
        id_column=settings.id,
        controls=controls,
        people=people_of(people) if people else {},
    )
    if not report.checks:
        lines = ""
        if problems:
            first = problems[0].problem
            message = first.message if first else "holds no label"
            count = f"{unreadable} line{'s' if unreadable > 1 else ''}"
            lines = f"; {count} could not be read, the first: line {problems[0].line}, {message}"
        absent = f"{', '.join(sources)}: no labels at all"
        if blank:
            absent += f"; {without_label(len(blank))}: people answer in the column label"
        raise UsageError(f"{_UNSIGNED if labelled else absent}{lines}")
    return replace(
        report,
        unreadable=unreadable,
        blank=len(blank),
        problems=problems,
        annotators=annotators,
        ratings=ratings,
    )


def agreement(
    items: Iterable[LabelledItem],
    *,
    majority: Majority = PLAIN,
    answers: Collection[str] = (),
    draws: int = 1000,
    seed: int = 0,
    records: Sequence[str] | None = None,
    id_column: str | None = None,
    controls: Collection[str] = (),
    people: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Agreement:
    """The report on the items' annotations; items without any contribute their gold only.

    Items of the same record, check and number become one question, so that gold may come from
    another file. Intervals are from a bootstrap over records: questions about one record are drawn
    together, and the annotators are fixed. A spelling of "no label" (`none`) in `answers` counts as
    an answer. `records` need not have the records of `controls`. The columns about `people`
    (`crowd.people_of`) form groups of annotators, too.
    """
    checks: dict[str, dict[tuple[str, int], VotedQuestion]] = defaultdict(dict)
    repeated = differing = conflicting = no_label = 0
    pairs: list[tuple[Record, Record]] = []
    for item in (item.answered(answers) for item in items):
        no_label += item.left_out
        gold = None if item.gold is None else in_order(item.gold)
        by_item = checks[item.check]
        question = by_item.setdefault((item.record.id, item.number), VotedQuestion(item, gold))
        pairs.append((question.item.record, item.record))
        conflicting += None not in (gold, question.gold) and gold != question.gold
        question.gold = question.gold or gold
        question.rows += item.rows
        for annotation in item.annotations:
            answer = in_order(annotation.answer)
            repeated += annotation.annotator in question.answers
            differing += question.answers.setdefault(annotation.annotator, answer) != answer
            question.groups.setdefault(annotation.annotator, annotation.group)
            question.whys.setdefault(annotation.annotator, annotation.why)
            question.asked.setdefault(annotation.annotator, annotation.asked)
    reports = []
    for check, by_item in checks.items():
        rated = [question for question in by_item.values() if question.answers]
        if rated:
            reports.append(_check(check, rated, majority, draws, seed, people))
    lines = (
        [] if records is None else majority_records(checks, majority, records, controls, id_column)
    )
    asked = [question for by_item in checks.values() for question in by_item.values()]
    given = [pair for question in asked for pair in question.groups.items()]
    groups = dict(given) | {name: group for name, group in given if group is not None}
    if people and groups and people.keys().isdisjoint(groups):
        raise UsageError(f"--people names {clip([*people])}, the labels are by {clip([*groups])}")
    mixed = {
        check: mixed_questions((q.item.number, q.asked.values()) for q in by_item.values())
        for check, by_item in checks.items()
    }
    return Agreement(
        reports,
        repeated,
        differing,
        conflicting,
        no_label,
        most_answers=max((len(question.answers) for question in asked), default=0),
        demographics=demographics(groups, people),
        majorities=lines,
        notes=[*(f"{check}: {note}" for check, note in mixed.items() if note), *other_texts(pairs)],
    )


def _check(
    name: str,
    questions: Sequence[VotedQuestion],
    rule: Majority,
    draws: int,
    seed: int,
    people: Mapping[str, Mapping[str, str]],
) -> CheckAgreement:
    labels = {answer for question in questions for answer in question.answers.values()}
    classes = tuple(
        sorted(labels | {question.gold for question in questions if question.gold}, key=_place)
    )

    def groups_of(question: VotedQuestion, annotator: str) -> set[str]:
        own = question.groups[annotator]
        of_person = {f"{column}: {c}" for column, c in people.get(annotator, {}).items()}
        return of_person if own is None else {own, *of_person}

    def figures(group: str | None = None) -> Figures:
        """The figures of a group's annotators; None: of all."""
        rows = [
            (
                question,
                {
                    annotator: a
                    for annotator, a in question.answers.items()
                    if group is None or group in groups_of(question, annotator)
                },
            )
            for question in questions
        ]
        rows = [(question, answers) for question, answers in rows if answers]
        return _figures(rows, classes, rule, draws, seed)

    groups = {g for q in questions for name in q.answers for g in groups_of(q, name)}
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
    def resamples(questions: Iterable[VotedQuestion]) -> Resamples:
        return Resamples([question.record for question in questions], draws=draws, seed=seed)

    ratings = [list(answers.values()) for _, answers in rows]
    counts = Counter(answer for labels in ratings for answer in labels)
    won = [rule.winner([*answers.values()], question.name) for question, answers in rows]
    annotators = sorted({name for _, answers in rows for name in answers})
    paired = [(question, answers) for question, answers in rows if len(answers) > 1]
    resample = resamples(question for question, _ in paired)
    table = count_table([list(answers.values()) for _, answers in paired], classes)
    measures = rater_agreement(table, resample, of=len(rows))
    # Undecided answers are last in `classes`, so the scale is the table's first columns.
    scale = [name for name in classes if name not in OWN_ANSWERS]
    points = numbers_of(scale)
    if points:
        measures |= scale_alphas(table[:, : len(points)], points, resample, of=len(rows))
    if len(annotators) == 2:
        first, second = ([answers[name] for _, answers in paired] for name in annotators)
        stack = resample.confusions(first, second, classes)
        measures["cohen"] = resample.estimate(kappas(stack), n=len(paired), of=len(rows))
        if points:
            weighted = weighted_kappas(stack[:, : len(scale), : len(scale)], points)
            count = sum({*pair} <= {*scale} for pair in zip(first, second, strict=True))
            measures["weighted"] = resample.estimate(weighted, n=count, of=len(rows))
    golden = [
        (question, winner) for (question, _), winner in zip(rows, won, strict=True) if question.gold
    ]
    if golden:
        hits = [
            None if winner is None else float(winner == question.gold)
            for question, winner in golden
        ]
        measures["accuracy"] = share_estimate(hits, resamples(question for question, _ in golden))
    accuracies: dict[str, Estimate] = {}
    for label in sorted({question.gold or "" for question, _ in golden}, key=_place):
        part = [(question, winner) for question, winner in golden if question.gold == label]
        hits = [None if winner is None else float(winner == label) for _, winner in part]
        accuracies[label] = share_estimate(hits, resamples(question for question, _ in part))
    by_class: dict[str, Estimate] = {}
    if rule.raters or len(classes) <= MAX_CLASSES:
        by_class = class_kappas(
            ratings,
            classes,
            lambda numbers: resamples(rows[n][0] for n in numbers),
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
        accuracies=accuracies,
        class_kappas=by_class,
    )
