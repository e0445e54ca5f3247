"""A crowd's votes: annotators held against control questions, ratings read as labels, majorities
written as records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError
from judge.records import Record, read
from judge.records.answers import scalar_text, spelling
from judge.records.fields import LabelError, answer_of, record_name, text_of
from judge.records.labels import UNNAMED, LabelledItem, read_labels
from judge.records.labels.matching import need_same_text

if TYPE_CHECKING:
    from judge.calibration.people import Majority, VotedQuestion

Scale = Mapping[str, tuple[str, ...]]
"""What each rating stands for: a label, or several of which an annotator's own is found."""

CheckOfRecord = tuple[str, str]
"""A check and the record that it is about."""

LEAST = 0.6
"""The share that must be right of the control questions that an annotator answered (B.3)."""


@dataclass(frozen=True, slots=True)
class Annotator:
    """How an annotator did: `right` of `controls` control questions answered, `labels` given to
    others.

    `dropped`: whether the labels do not count; never of one who answered no control question, who
    may have been asked none. `scale` is what the annotator's ratings stand for. `contradictions`
    are the pairs of the annotator's labels that contradict each other, and do not count.
    """

    controls: int
    right: int
    labels: int
    dropped: bool
    scale: Mapping[str, str] = field(default_factory=dict)
    contradictions: int = 0


def scale_of(text: str) -> Scale:
    """The scale of `1=no,2=no|unsure,3=yes`; of several labels the first is the usual one.

    Raises:
        UsageError: it has another form.
    """
    scale: dict[str, tuple[str, ...]] = {}
    for part in text.split(","):
        rating, equals, labels = part.partition("=")
        if not (equals and rating.strip() and labels.strip()):
            raise UsageError(f"--scale {part}: write RATING=LABEL, or RATING=LABEL|LABEL")
        scale[spelling(rating)] = tuple(map(spelling, labels.split("|")))
    return scale


@dataclass(frozen=True, slots=True)
class Crowd:
    """Which annotators count, and how their ratings are read.

    Args:
        controls: files with control questions and their right answers.
        least: annotators with a smaller share of those that they answered right are dropped.
        scale: what ratings stand for. Where one stands for several labels, each annotator's is the
            label that most of the annotator's control questions of that rating have, else the
            first (B.4).
        contrary: files with pairs of records that cannot both have an `answer` (B.3: two
            hypotheses that contradict each other are both rated 5): `item`, `contrary`, `answer`.
    """

    controls: Sequence[str] = ()
    least: float = LEAST
    scale: Scale = field(default_factory=dict)
    contrary: Sequence[str] = ()

    def kept(
        self, items: Sequence[LabelledItem]
    ) -> tuple[list[LabelledItem], dict[str, Annotator]]:
        """The items that are no control questions, with the labels of the annotators who count;
        and how each annotator did.

        Raises:
            UsageError: controls or contrary pairs cannot be read, are about other checks, or no
                annotator answered one.
        """
        golds = self._golds({item.check for item in items if item.annotations})
        answers: dict[str, list[tuple[str, str]]] = defaultdict(list)
        labels: Counter[str] = Counter()
        others = []
        for item in items:
            place = item.record.id, item.number
            gold = golds.get((*place, item.check), golds.get((*place, UNNAMED)))
            for annotation in item.annotations:
                if gold is None:
                    labels[annotation.annotator] += 1
                else:
                    answers[annotation.annotator].append((annotation.answer, gold))
            others += [item] if gold is None else []
        if self.controls and labels and not answers:
            raise UsageError(f"{self.controls[0]}: no annotator answered one of these questions")
        against = self._against(items)
        annotators = {
            name: self._annotator(answers[name], labels[name], len(against[name]))
            for name in sorted({*labels, *answers})
        }
        if annotators and all(about.dropped for about in annotators.values()):
            message = f"every annotator has fewer than {self.least:.0%} of the controls right"
            raise UsageError(f"{self.controls[0]}: {message}: see --least and --scale")
        return [self._read(item, annotators, against) for item in others], annotators

    def _against(self, items: Sequence[LabelledItem]) -> dict[str, list[set[CheckOfRecord]]]:
        """By annotator the pairs of questions to which the answers contradict each other."""
        given: dict[CheckOfRecord, dict[str, str]] = defaultdict(dict)
        for item in items if self.contrary else ():
            for one in item.annotations:
                given[item.check, item.record.id].setdefault(one.annotator, one.answer)
        checks = {check for check, _ in given}
        found: dict[str, list[set[CheckOfRecord]]] = defaultdict(list)
        for source in self.contrary:
            pairs = [((c, a), (c, b), answer) for a, b, answer in _contrary(source) for c in checks]
            if not any({first, second} <= given.keys() for first, second, _ in pairs):
                raise UsageError(f"{source}: no two of these records both have labels")
            for first, second, answer in pairs:
                for name, label in given.get(first, {}).items():
                    pair, other = {first, second}, given.get(second, {}).get(name)
                    if answer == label == other and pair not in found[name]:
                        found[name].append(pair)
        return found

    def _golds(self, asked: Collection[str]) -> dict[tuple[str, int, str], str]:
        """The right answers by record, number of the entry, and check.

        The one check that the controls are about is the one check that was `asked`, whatever each
        is called.

        Raises:
            UsageError: controls cannot be read, or none is about a check that was asked.
        """
        golds = {}
        for source in self.controls:
            for item in read_labels(source):
                if not isinstance(item, LabelledItem):
                    why = item.problem.message if item.problem else "holds no label"
                    raise UsageError(f"{source}, line {item.line}: {why}")
                if (gold := item.reference) is not None:
                    golds[item.record.id, item.number, item.check] = gold
        names = {check for *_, check in golds}
        if not names or not asked or names & {UNNAMED, *asked}:
            return golds
        if len(names) == len(asked) == 1:
            return {(id, number, UNNAMED): gold for (id, number, _), gold in golds.items()}
        about, labelled = ", ".join(sorted(names)), ", ".join(sorted(asked))
        raise UsageError(f"{self.controls[0]}: about {about}, and the labels about {labelled}")

    def _annotator(
        self, controls: Sequence[tuple[str, str]], labels: int, contradictions: int
    ) -> Annotator:
        scale = {}
        for rating, meanings in self.scale.items():
            golds = Counter(gold for answer, gold in controls if answer == rating)
            scale[rating] = max(meanings, key=lambda label: golds[label])
        right = sum(scale.get(answer, answer) == gold for answer, gold in controls)
        dropped = bool(controls) and right < self.least * len(controls)
        return Annotator(len(controls), right, labels, dropped, scale, contradictions)

    def ratings(
        self, items: Sequence[LabelledItem], annotators: Mapping[str, Annotator]
    ) -> dict[str, dict[str, int]]:
        """How often annotators who count gave each answer of the scale, by group (`all` first)."""
        counts: dict[str, Counter[str]] = {"all": Counter()}
        for one in (annotation for item in items for annotation in item.annotations):
            if one.answer in self.scale and not annotators[one.annotator].dropped:
                for group in ("all", *([one.group] if one.group else [])):
                    counts.setdefault(group, Counter())[one.answer] += 1
        return {group: {r: part[r] for r in self.scale} for group, part in counts.items()}

    @staticmethod
    def _read(
        item: LabelledItem,
        annotators: Mapping[str, Annotator],
        against: Mapping[str, Sequence[set[CheckOfRecord]]],
    ) -> LabelledItem:
        place = item.check, item.record.id
        annotations = tuple(
            replace(one, answer=about.scale.get(one.answer, one.answer))
            for one in item.annotations
            if not (about := annotators[one.annotator]).dropped
            and not any(place in pair for pair in against.get(one.annotator, ()))
        )
        return replace(item, annotations=annotations)


def _contrary(source: str) -> Iterator[tuple[str, str, str]]:
    """Two records and the answer that not both can have, line by line; raises UsageError."""
    for item in read(source):
        try:
            fields = item.usable().fields or {}
            first, second = text_of(fields, "item"), text_of(fields, "contrary")
            if (answer := answer_of(fields.get("answer"), "answer")) is None:
                raise LabelError("field 'answer' is missing", "answer")
            if first == second:
                raise LabelError("item and contrary are the same record", "contrary")
            yield first, second, spelling(answer)
        except LabelError as error:
            raise UsageError(f"{source}, line {item.line}: {error}") from None


def people_of(path: str) -> dict[str, dict[str, str]]:
    """What a table says of annotators, by their names: all columns but `annotator`.

    Raises:
        UsageError: it cannot be read or says nothing of them, or a row names no annotator, or one
            whom an earlier line names.
    """
    people: dict[str, dict[str, str]] = {}
    for item in read(path):
        try:
            fields = item.usable().fields or {}
            if (name := text_of(fields, "annotator")) in people:
                raise LabelError(f"an earlier line names annotator {name!r}, too", "annotator")
        except LabelError as error:
            raise UsageError(f"{path}, line {item.line}: {error}") from None
        known = {key: scalar_text(content) for key, content in fields.items() if key != "annotator"}
        people[name] = {key: text for key, text in known.items() if text}
    if not any(people.values()):
        raise UsageError(f"{path}: says nothing of annotators: name them in a column annotator")
    return people


def demographics(
    annotators: Mapping[str, str | None], people: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, dict[str, int]]]:
    """By column of what is known of people, and group (`all` first), how many of the annotators,
    each with a group, have which content; `not said` of whom it is not known."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for column in dict.fromkeys(key for known in people.values() for key in known):
        by_group = counts.setdefault(column, {"all": Counter()})
        for name, group in annotators.items():
            content = people.get(name, {}).get(column, "not said")
            for one in ("all", *([group] if group else [])):
                by_group.setdefault(one, Counter())[content] += 1
    return {
        column: {group: dict(sorted(part.items())) for group, part in by_group.items()}
        for column, by_group in counts.items()
    }


def majority_records(
    checks: Mapping[str, Mapping[tuple[str, int], VotedQuestion]],
    majority: Majority,
    records: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """A line for each record that people answered questions about, in the order of `records`, else
    of the questions.

    Behind the record's fields stand `labels`, the majority's answer by check (null where there is
    none; of a check about list entries one for each), and `annotators`, each with the own `labels`
    and, where known, the `group` and `why`. Fields are those that the labels came with, or of the
    record of that name in the files `records`.

    Raises:
        UsageError: a file of `records` cannot be read, lacks a record, or has another text in it
            than people were shown.
    """
    whole = {record_name(item): item for path in records for item in read(path) if item.fields}
    lines: dict[str, dict[str, Any]] = {}
    for check, questions in checks.items():
        # The number of the last entry that anybody answered: blank ones before it count.
        entries: dict[str, int] = {}
        for id, number in questions:
            entries[id] = max(number, entries.get(id, 0))
        for (id, number), question in questions.items():
            if not question.answers:
                continue
            if id not in lines:
                if records and id not in whole:
                    raise UsageError(f"{records[0]}: there is no record {id!r}, which has labels")
                fields = _fields(whole.get(id), id, question)
                lines[id] = {**fields, "labels": dict(fields.get("labels") or {}), "annotators": {}}
            for row in question.rows if id in whole else ():
                need_same_text(row, whole[id])
            line = lines[id]
            winner = majority.winner([*question.answers.values()], id)
            _put(line["labels"], check, winner, number, entries.get(id, 0))
            for annotator, answer in question.answers.items():
                about = line["annotators"].setdefault(annotator, {"labels": {}})
                _put(about["labels"], check, answer, number, entries.get(id, 0))
                if (group := question.groups[annotator]) is not None:
                    about["group"] = group
                if (why := question.whys[annotator]) is not None:
                    _put(about.setdefault("why", {}), check, why, number, entries.get(id, 0))
    return [lines[id] for id in (whole or lines) if id in lines]


def _fields(record: Record | None, id: str, question: VotedQuestion) -> Mapping[str, Any]:
    """The record's own fields, else those that its labels came with."""
    own = None if record is None else record.fields
    return own or {"id": id, **question.item.record.visible}


def _put(answers: dict[str, Any], name: str, answer: str | None, number: int, entries: int) -> None:
    """Set an answer; that of a list's entry (from 1) in the list of all entries' answers."""
    if number and isinstance(several := answers.setdefault(name, [None] * entries), list):
        several[number - 1] = answer
    else:
        answers[name] = answer
