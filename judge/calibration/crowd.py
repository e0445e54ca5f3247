"""Crowd votes: annotators are tested by control questions, and ratings become labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from judge.errors import UsageError
from judge.records import read
from judge.records.answers import in_order, scalar_text, spelling, without_no_label
from judge.records.fields import LabelError, answer_of, id_text
from judge.records.labels import UNNAMED, LabelledItem, read_labels
from judge.records.labels.matching import in_column

Scale = Mapping[str, tuple[str, ...]]
"""The label of each rating. Of several labels, the one each annotator means is estimated."""

CheckOfRecord = tuple[str, str]
"""A check, and the id of the record it is about."""

LEAST = 0.6
"""The least share of control questions that an annotator must answer right (B.3)."""


@dataclass(frozen=True, slots=True)
class Annotator:
    """An annotator's results.

    Args:
        controls: how many control questions the annotator answered; `right`: how many rightly.
        labels: how many other labels the annotator gave.
        dropped: whether the labels do not count. Never true without answered control questions:
            the annotator may have been asked none.
        scale: the label that each of the annotator's ratings stands for.
        contradictions: how many pairs of the annotator's labels contradict each other. These labels
            do not count.
    """

    controls: int
    right: int
    labels: int
    dropped: bool
    scale: Mapping[str, str] = field(default_factory=dict)
    contradictions: int = 0


def scale_of(text: str) -> Scale:
    """Parses a scale such as `1=no,2=no|unsure,3=yes`; of several labels the first is the default.

    Raises:
        UsageError: the text has another form.
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
        least: annotators with a smaller share of right answers to controls are dropped.
        scale: the labels of each rating. Of several labels, an annotator's is the most frequent
            right answer of the control questions that the annotator gave this rating, else the
            first (B.4).
        contrary: files with pairs of records that cannot both have an `answer` (B.3: two
            hypotheses that contradict each other are both rated 5): `item`, `contrary`, `answer`.
        id_column: the column that names the controls, if it is not their id.
    """

    controls: Sequence[str] = ()
    least: float = LEAST
    scale: Scale = field(default_factory=dict)
    contrary: Sequence[str] = ()
    id_column: str | None = None

    def kept(
        self,
        items: Sequence[LabelledItem],
        check: str | None = None,
        accepted: Collection[str] = (),
    ) -> tuple[list[LabelledItem], dict[str, Annotator], frozenset[str]]:
        """The items without control questions, with the labels that count; each annotator; and the
        ids of the records of control questions.

        `check` is the only check of the files that was read; None: all were. `accepted` are answers
        even if their words otherwise mean no label.

        Raises:
            UsageError: controls or contrary pairs cannot be read, controls are about other checks,
                no annotator answered one, or every annotator is dropped.
        """
        golds = self._golds({item.check for item in items if item.annotations}, check)
        answers_allowed = {*map(spelling, (*accepted, *self.scale))}
        answers: dict[str, list[tuple[str, str]]] = defaultdict(list)
        labels: Counter[str] = Counter()
        others = []
        for item in items:
            gold = golds.get((item.record.id, item.number, item.check))
            for annotation in item.annotations:
                answer = without_no_label(annotation.answer, answers_allowed)
                if gold is None:
                    labels[annotation.annotator] += answer is not None
                elif answer is not None:
                    answers[annotation.annotator].append((in_order(answer), in_order(gold)))
            others += [item] if gold is None else []
        if self.controls and labels and not answers:
            hint = "" if self.id_column else "; if a column other than id names them, add --id"
            message = f"no annotator answered any of these questions{hint}"
            raise UsageError(f"{self.controls[0]}: {message}")
        against = self._against(items)
        annotators = {
            name: self._annotator(answers[name], labels[name], len(against[name]))
            for name in sorted({a.annotator for item in items for a in item.annotations})
        }
        if annotators and all(about.dropped for about in annotators.values()):
            message = f"every annotator has fewer than {100 * self.least:g}% of the controls right"
            raise UsageError(
                f"{self.controls[0]}: {message}: lower --least, or map ratings with --scale"
            )
        rated = []
        for item in others:
            place = item.check, item.record.id
            annotations = tuple(
                replace(one, answer=about.scale.get(one.answer, one.answer))
                for one in item.annotations
                if not (about := annotators[one.annotator]).dropped
                and not any(place in pair for pair in against[one.annotator])
            )
            rated.append(replace(item, annotations=annotations))
        return rated, annotators, frozenset(id for id, *_ in golds)

    def _against(self, items: Sequence[LabelledItem]) -> dict[str, list[set[CheckOfRecord]]]:
        """By annotator, the pairs of questions whose answers contradict each other."""
        given: dict[CheckOfRecord, dict[str, str]] = defaultdict(dict)
        for item in items if self.contrary else ():
            for one in item.annotations:
                given[item.check, item.record.id].setdefault(one.annotator, one.answer)
        checks = {check for check, _ in given}
        found: dict[str, list[set[CheckOfRecord]]] = defaultdict(list)
        for source in self.contrary:
            lines = [*_contrary(source)]
            unknown = [answer for *_, answer in lines if answer not in self.scale]
            if self.scale and unknown:
                raise UsageError(
                    f"{source}: answer {unknown[0]!r} is none of the ratings of --scale"
                )
            pairs = [((c, a), (c, b), answer) for a, b, answer in lines for c in checks]
            if not any({first, second} <= given.keys() for first, second, _ in pairs):
                raise UsageError(f"{source}: no pair of these records has labels on both")
            for first, second, answer in pairs:
                for name, label in given.get(first, {}).items():
                    pair, other = {first, second}, given.get(second, {}).get(name)
                    if answer == label == other and pair not in found[name]:
                        found[name].append(pair)
        return found

    def _golds(self, asked: Collection[str], check: str | None) -> dict[tuple[str, int, str], str]:
        """The right answers by record, entry number and check.

        If the controls are about one check, and the labels too, their names need not match, unless
        the user named the `check`.

        Raises:
            UsageError: controls cannot be read, or none is about a check that was asked.
        """
        golds = {}
        for source in self.controls:
            for item in read_labels(source):
                if not isinstance(item, LabelledItem):
                    raise UsageError(f"{source}, line {item.line}: {item.fault}")
                if (gold := item.reference) is not None:
                    name = in_column(item.record, self.id_column)
                    for id in (item.record.id, *([name] if name else [])):
                        golds[id, item.number, item.check] = gold
        names = {check for *_, check in golds}
        if len(asked) == len(names) == 1 and (check is None or names == {UNNAMED}):
            (only,) = asked
            return {(id, number, only): gold for (id, number, _), gold in golds.items()}
        if names and asked and not names & {*asked}:
            about, labelled = ", ".join(sorted(names)), ", ".join(sorted(asked))
            raise UsageError(
                f"{self.controls[0]}: its answers are about {about}, the labels about {labelled}"
            )
        return golds

    def _annotator(
        self, controls: Sequence[tuple[str, str]], labels: int, contradictions: int
    ) -> Annotator:
        scale = {}
        for rating, meanings in self.scale.items():
            golds = Counter(gold for answer, gold in controls if answer == rating)
            scale[rating] = max(meanings, key=lambda label: golds[label])
        right = sum(scale.get(answer, answer) == gold for answer, gold in controls)
        # As the fraction that was typed: 14 of 25 are 0.56.
        dropped = bool(controls) and right < Fraction(str(self.least)) * len(controls)
        return Annotator(len(controls), right, labels, dropped, scale, contradictions)

    def ratings(
        self, items: Sequence[LabelledItem], annotators: Mapping[str, Annotator]
    ) -> dict[str, dict[str, int]]:
        """How often annotators who are not dropped gave each rating, by group (`all` first)."""
        counts = _by_group(
            (one.group, one.answer)
            for item in items
            for one in item.annotations
            if one.answer in self.scale and not annotators[one.annotator].dropped
        )
        return {group: {r: part[r] for r in self.scale} for group, part in counts.items()}


def _contrary(source: str) -> Iterator[tuple[str, str, str]]:
    """Each line's two records, and the answer that they cannot both have; raises UsageError."""
    for item in read(source):
        try:
            fields = item.usable().fields
            first, second = _name(fields, "item"), _name(fields, "contrary")
            if (answer := answer_of(fields.get("answer"), "answer")) is None:
                raise LabelError("field 'answer' is missing", "answer")
            if first == second:
                raise LabelError("item and contrary are the same record", "contrary")
            yield first, second, spelling(answer)
        except LabelError as error:
            raise UsageError(f"{source}, line {item.line}: {error}") from None


def _name(fields: Mapping[str, Any], key: str) -> str:
    """An annotator's or record's name, which may be a number; LabelError if it is missing."""
    if (name := id_text(fields.get(key), key)) is None:
        raise LabelError(f"field {key!r} is missing", key)
    return name


def people_of(path: str) -> dict[str, dict[str, str]]:
    """A table's columns about each annotator, by name, except `annotator` itself.

    Raises:
        UsageError: the table cannot be read or has no such columns, or a row names no annotator, or
            one named before.
    """
    people: dict[str, dict[str, str]] = {}
    for item in read(path):
        try:
            fields = item.usable().fields
            if (name := _name(fields, "annotator")) in people:
                raise LabelError(f"annotator {name!r} is named twice", "annotator")
        except LabelError as error:
            raise UsageError(f"{path}, line {item.line}: {error}") from None
        known = {key: scalar_text(content) for key, content in fields.items() if key != "annotator"}
        people[name] = {key: text for key, text in known.items() if text}
    if not any(people.values()):
        raise UsageError(f"{path}: says nothing about annotators; name them in a column annotator")
    return people


def demographics(
    annotators: Mapping[str, str | None], people: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, dict[str, int]]]:
    """How many annotators have each value, by column and group (`all` first).

    Args:
        annotators: each annotator's group.
        people: each annotator's columns (`people_of`); a missing value counts as `not said`.
    """
    counts = {}
    for column in dict.fromkeys(key for known in people.values() for key in known):
        by_group = _by_group(
            (group, people.get(name, {}).get(column, "not said"))
            for name, group in annotators.items()
        )
        counts[column] = {group: dict(sorted(part.items())) for group, part in by_group.items()}
    return counts


def _by_group(pairs: Iterable[tuple[str | None, str]]) -> dict[str, Counter[str]]:
    """How often each text occurs among the pairs of group and text, by group (`all` first)."""
    counts = {"all": Counter[str]()}
    for group, text in pairs:
        for name in ("all", group) if group else ("all",):
            counts.setdefault(name, Counter())[text] += 1
    return counts
