"""Reads people's labels, and reports how far they agree with one another and with gold, by check
(`agreement_figures`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from judge.calibration.agreement_figures import CheckAgreement, agreement_on
from judge.calibration.crowd import Annotator, Crowd, demographics, people_of
from judge.calibration.labels import unreadable_lines
from judge.calibration.majority import PLAIN, Majority, VotedQuestion, majority_records
from judge.errors import UsageError
from judge.questions.parts import scores_of_range
from judge.records import Record
from judge.records.answers import OWN_ANSWERS, SEVERAL, in_order, in_own_letters, spelling
from judge.records.base import clip
from judge.records.labels import Annotation, LabelledItem, no_label, read_labels, without_label
from judge.records.labels.matching import SharedNames, mixed_questions, other_texts
from judge.settings import Settings
from judge.stats.intervals import plain

MAX_PROBLEMS = 20
"""Most unreadable lines that are kept."""

_UNSIGNED = (
    "the labels do not say who gave which answer: write them as "
    '{"labels": {"CHECK": {"ann": "yes", "bo": "no"}}}, or as a table of item, annotator and label'
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The report of `judge agreement`.

    Args:
        repeated: answers left out because the annotator had answered the question before.
        differing: those of them that differ from the first answer.
        conflicting: gold answers that contradict an earlier one; the first counts.
        no_label: answers left out because they mean "no label".
        unreadable: lines that could not be read; `problems` are the first of them.
        blank: rows without a label so far.
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
    def dropped_labels(self) -> float | None:
        """The share of labels from dropped annotators; None if there are no labels."""
        total = sum(about.labels for about in self.annotators.values())
        dropped = sum(about.labels for about in self.annotators.values() if about.dropped)
        return dropped / total if total else None

    def as_json(self) -> dict[str, Any]:
        """The report as plain data; numbers rounded to 6 places, undefined ones null."""
        left_out = ("problems", "most_answers", "majorities")
        names = (item.name for item in fields(self) if item.name not in left_out)
        report = {name: plain(getattr(self, name)) for name in names}
        return {**report, "unreadable_lines": unreadable_lines(self.problems)}


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
        settings: `map`, `answers` and `id` (of `records`, and of labels that have it) are used.
        check: report on this check only.
        crowd: which annotators are kept, and how their ratings are mapped.
        records: files with the full records, for `Agreement.majorities`; None: no majorities.
        people: a table about annotators.

    Raises:
        UsageError: there are no labels, or they do not say who gave them.
    """
    items: list[LabelledItem] = []
    problems: list[Record] = []
    unreadable = 0
    blank: list[int] = []
    answers = scores_of_range(settings.answers)
    accepted = (*answers, *(crowd.scale if crowd else ()))
    columns = {name: column for name, column in settings.columns.items() if name != "id"}
    names = SharedNames()
    for source in sources:
        for item in read_labels(source, check, columns, blank, accepted, settings.id):
            if isinstance(item, LabelledItem):
                items.append(names.of(item))
            else:
                unreadable += 1
                problems += [item] if unreadable <= MAX_PROBLEMS else []
    rated, annotators, controls = items, dict[str, Annotator](), frozenset[str]()
    if crowd is not None:
        rated, annotators, controls = crowd.kept(items, check, answers)
    report = agreement(
        rated,
        majority=majority,
        answers=answers,
        seed=seed,
        records=records,
        id_column=settings.id,
        controls=controls,
        people=people_of(people) if people else {},
    )
    if not report.checks:
        lines = ""
        if problems:
            first, count = problems[0], f"{unreadable} line{'s' if unreadable > 1 else ''}"
            lines = f"; {count} could not be read, the first: line {first.line}, {first.fault}"
        absent = f"{', '.join(sources)}: no labels at all"
        if blank:
            absent += f"; {without_label(len(blank))}: people answer in the column label"
        if report.no_label:
            absent += f"; {no_label(report.no_label)}; --answers counts such a word as an answer"
        if annotators:
            absent = (
                f"{', '.join(sources)}: all labels are about controls, or contradict each other"
            )
        unsigned = not annotators and any(item.gold is not None for item in items)
        raise UsageError(f"{_UNSIGNED if unsigned else absent}{lines}")
    return replace(
        report,
        unreadable=unreadable,
        blank=len(blank),
        problems=problems,
        annotators=annotators,
        ratings=crowd.ratings(items, annotators) if crowd else {},
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
    votes = _PeoplesVotes({*map(spelling, answers)})
    for item in items:
        votes.add(item.answered(answers))
    reports = []
    for check, by_item in votes.checks.items():
        rated = [question for question in by_item.values() if question.annotations]
        if rated:
            reports.append(agreement_on(check, rated, majority, draws, seed, people))
    lines = (
        []
        if records is None
        else majority_records(votes.checks, majority, records, controls, id_column)
    )
    questions = [question for by_item in votes.checks.values() for question in by_item.values()]
    annotations = [a for question in questions for a in question.annotations.values()]
    groups = {a.annotator: a.group for a in annotations}
    groups |= {a.annotator: a.group for a in annotations if a.group is not None}
    if people and groups and people.keys().isdisjoint(groups):
        raise UsageError(f"--people names {clip([*people])}, the labels are by {clip([*groups])}")
    return Agreement(
        reports,
        votes.repeated,
        votes.differing,
        votes.conflicting,
        votes.no_label,
        most_answers=max((len(question.annotations) for question in questions), default=0),
        demographics=demographics(groups, people),
        majorities=lines,
        notes=votes.notes,
    )


class _PeoplesVotes:
    """The questions of each check with their answers, as labelled items are read: `answers` as
    they are, others in the letters of the first that was read. `repeated`, `differing`,
    `conflicting` and `no_label` are as in `Agreement`."""

    def __init__(self, answers: set[str]) -> None:
        self._answers, self._listed = answers, {*answers, *OWN_ANSWERS}
        self._letters: dict[str, dict[str, str]] = defaultdict(dict)
        self.checks: dict[str, dict[tuple[str, int], VotedQuestion]] = defaultdict(dict)
        self.repeated = self.differing = self.conflicting = self.no_label = 0
        self._records: list[tuple[Record, Record]] = []
        self._others: dict[str, list[tuple[Annotation, LabelledItem]]] = defaultdict(list)

    def add(self, item: LabelledItem) -> None:
        self.no_label += item.left_out
        letters = self._letters[item.check]
        for form, text in item.written.items():
            if form not in self._answers:
                letters.setdefault(form, in_own_letters(text))

        def spelt(answer: str) -> str:
            parts = answer.split(SEVERAL)
            return in_order(SEVERAL.join(letters.setdefault(part, part) for part in parts))

        gold = None if item.gold is None else spelt(item.gold)
        place = item.record.id, item.number
        question = self.checks[item.check].setdefault(place, VotedQuestion(item, gold))
        self._records.append((question.item.record, item.record))
        self.conflicting += None not in (gold, question.gold) and gold != question.gold
        question.gold = question.gold or gold
        question.rows += item.rows
        question.item = replace(question.item, weight=question.item.weight_beside(item))
        for annotation in item.annotations:
            annotation = replace(annotation, answer=spelt(annotation.answer))
            if not (self._listed.issuperset(annotation.answer.split(SEVERAL)) or item.rows):
                self._others[item.check].append((annotation, item))
            self.repeated += annotation.annotator in question.annotations
            first = question.annotations.setdefault(annotation.annotator, annotation)
            self.differing += first.answer != annotation.answer

    @property
    def notes(self) -> list[str]:
        """As in `Agreement`."""
        mixed = {
            check: mixed_questions(
                (q.item.number, [a.asked for a in q.annotations.values()]) for q in by_item.values()
            )
            for check, by_item in self.checks.items()
        }
        several = (f"{check}: {note}" for check, note in mixed.items() if note)
        return [*several, *self._not_listed(), *self._apart(), *other_texts(self._records)]

    def _apart(self) -> Iterator[str]:
        """The notes that no item of a question has answers of two annotators."""
        for check, by_item in self.checks.items():
            items: dict[str, str] = {}
            for question in by_item.values():
                for annotator in question.annotations:
                    items.setdefault(annotator, question.record)
            if len(items) > 1 and all(len(q.annotations) < 2 for q in by_item.values()):
                (one, its), (other, others), *_ = items.items()
                yield (
                    f"{check}: no two people answered about one item, so that nothing is compared: "
                    f"{one} about {clip(its)}, {other} about {clip(others)}, ..."
                )

    def _not_listed(self) -> Iterator[str]:
        """The notes that people gave further answers to a question with some of `answers`."""
        for check, more in self._others.items() if self._answers else ():
            votes = (a.answer for q in self.checks[check].values() for a in q.annotations.values())
            if self._answers.isdisjoint(part for answer in votes for part in answer.split(SEVERAL)):
                continue
            words = ", ".join(dict.fromkeys(annotation.answer for annotation, _ in more))
            first, item = more[0]
            yield (
                f"{check}: not among --answers, but counted: {clip(words)} ({len(more)} labels; "
                f"the first is by {first.annotator}, item {clip(item.record.id)})"
            )
