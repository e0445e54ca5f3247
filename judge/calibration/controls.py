"""Controls: whether a judge reads the deciding field, and whether another field leaks the label.

Three controls, after "blind" baselines of reading comprehension (Kaushik and Lipton 2018) and
contrast sets (Gardner et al. 2020): *blind*, the same questions with the deciding field left out;
*swap*, that field taken from another record; *contrast*, a set in which it is turned round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judge.calibration.answer_fields import MAX_CATEGORIES
from judge.calibration.labels import drawn
from judge.calibration.measures import agreement_name, agreements, resamples_of
from judge.calibration.observe import LabelledAnswer, record_for
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.answers import NO_LABEL, number_of, spelling
from judge.records.fields import MAX_SLICE
from judge.records.labels import LabelledItem
from judge.records.names import entry_name
from judge.stats.bootstrap import share_estimate
from judge.stats.intervals import Estimate

LEFT_OUT = "(left out)"
"""Replaces the deciding field where it is left out."""

_MIN_ITEMS = 20
"""Fewest items at which a value is trusted although no resample differs."""

_NO_AGREEMENT = 0.05
"""Kappa below which there is no agreement to lose."""


@dataclass(frozen=True, slots=True)
class Controls:
    """How much of a judge's agreement depends on the `field` that decides.

    - `kappa`: the judge's agreement, by the `measure` (`kappa`, or of scores `weighted kappa`), as
      are `blind`, `above`, `contrast` and `together`
    - `blind`: the same over the same items without the field, by
      the judge refitted; `above`: the difference
    - `stays`: share of the answers that stay when the field is another record's
    - `as_swapped`: share of those items answered as the rubric requires; None if it requires
      nothing
    - `contrast`: kappa over a set in which the field is turned round, on records not used for
      fitting; `together`: over these and the other items
    """

    field: str
    measure: str
    kappa: Estimate
    blind: Estimate
    above: Estimate
    stays: Estimate
    as_swapped: Estimate | None = None
    contrast: Estimate | None = None
    together: Estimate | None = None

    @property
    def looks(self) -> bool:
        """Whether the judge is clearly better than blind and, on the contrast set, than chance."""
        turned = self.contrast is None or _least(self.contrast) > 0
        return turned and _least(self.above) > 0

    def finding(self) -> str:
        """Whether the judge reads the field, in one sentence."""
        with_it, without = self.kappa.value, self.blind.value
        turned = None if self.contrast is None else _most(self.contrast)
        if turned is not None and turned <= 0 < (with_it or 0):
            return (
                f"with {self.field} turned round agreement is no better than chance: the judge "
                f"does not read {self.field}"
            )
        if with_it is None or without is None:
            return (
                f"{self.measure} is undefined, so whether the judge reads {self.field} is unknown"
            )
        if with_it < _NO_AGREEMENT:
            return f"no agreement, with {self.field} or without it"
        change = f"{self.measure} falls from {with_it:.2f} to {without:.2f} without {self.field}"
        if self.looks:
            return f"{change}: the judge reads it"
        if without >= with_it:
            return (
                f"agreement does not fall without {self.field}: it is not shown that the judge "
                "reads it"
            )
        if self.contrast is not None and turned is None and _least(self.above) > 0:
            return (
                f"{change}, but with {self.field} turned round {self.measure} is undefined, so "
                "whether the judge reads it is unknown"
            )
        return f"{change}: these labels are too few to show that the judge reads it"

    def as_noted(self) -> dict[str, object]:
        """The values that a profile keeps."""
        return {
            "field": self.field,
            "looks": self.looks,
            "blind": self.blind.value,
            "above": [self.above.value, self.above.low, self.above.high],
            "stays": self.stays.value,
            "as_swapped": self.as_swapped.value if self.as_swapped else None,
            "contrast": self.contrast.value if self.contrast else None,
        }


def _least(estimate: Estimate) -> float:
    """The lower end of an estimate.

    Without one (no resample differs): the value if it is over enough items, else 0.
    """
    if estimate.low is not None:
        return estimate.low
    return estimate.value if estimate.value is not None and estimate.n >= _MIN_ITEMS else 0.0


def _most(estimate: Estimate) -> float | None:
    """The upper end of an estimate, or its value if there is none; None if it is undefined."""
    return estimate.value if estimate.high is None else estimate.high


# ---------------------------------------------------------------- without the field


def blinded(items: Sequence[LabelledItem], rubric: Rubric, field: str) -> list[LabelledItem]:
    """The items with the field left out; an item that cannot be shown is unchanged."""

    def without(item: LabelledItem) -> LabelledItem:
        record = record_for(item, rubric)
        if record.problem is not None:
            return item
        return _with(item, record, rubric, field, LEFT_OUT)

    return [without(item) for item in items]


def swapped(
    items: Sequence[LabelledItem], rubric: Rubric, field: str, seed: int = 0
) -> dict[int, LabelledItem]:
    """The items with another item's field, by index.

    The donor is the next item with another text and cluster, in an order drawn with the seed. Items
    without a donor are left out.
    """
    records = {n: record_for(item, rubric) for n, item in enumerate(items)}
    records = {n: record for n, record in records.items() if record.problem is None}
    order = sorted(records, key=lambda n: drawn(f"{items[n].record.id}\n{items[n].number}", seed))
    texts = {n: _text(items[n], records[n], rubric, field) for n in order}
    items_swapped = {}
    for place, n in enumerate(order):
        for donor in (*order[place + 1 :], *order[:place]):
            if items[donor].cluster != items[n].cluster and texts[donor] != texts[n]:
                items_swapped[n] = _with(items[n], records[n], rubric, field, texts[donor])
                break
    return items_swapped


def _text(item: LabelledItem, record: Record, rubric: Rubric, field: str) -> str:
    if rubric.each is None or field != entry_name(rubric.each):
        return record.texts.get(field, "")
    return record.typed_entry(rubric.each, item.number).claim


def _with(
    item: LabelledItem, record: Record, rubric: Rubric, field: str, text: str
) -> LabelledItem:
    """The item with this text in the field, which may be the entry that it is about."""
    changes: dict[str, object] = {field: text}
    if rubric.each and field == entry_name(rubric.each):
        entries = list(record.entries(rubric.each))
        entry = record.typed_entry(rubric.each, item.number)
        entries[item.number - 1] = entry.claiming(text)
        changes = {rubric.each: entries}
    return replace(item, record=item.record.with_fields(changes))


# ---------------------------------------------------------------- measuring


def controls_of(
    rubric: Rubric,
    judge: Sequence[LabelledAnswer],
    blind: Sequence[LabelledAnswer],
    before: Sequence[LabelledAnswer],
    swapped: Sequence[LabelledAnswer],
    contrast: Sequence[LabelledAnswer] | None,
    *,
    seed: int,
    draws: int,
) -> Controls:
    """The controls, from answers.

    Args:
        judge: the judge's answers to the items, unchanged.
        blind: the blind judge's answers to the same items.
        before: the judge's answers to the items that have a swapped version.
        swapped: its answers to these versions.
        contrast: its answers to the contrast set, if there is one.
    """

    def kappa(*sides: Sequence[LabelledAnswer]) -> Estimate:
        """Agreement of a judge's answers, minus that of another's to the same items, if given.

        Both are computed on the same resamples.
        """
        places = [n for n, answer in enumerate(sides[0]) if answer.item.reference in rubric.answers]
        reference = [str(sides[0][n].item.reference) for n in places]
        resample = resamples_of([sides[0][n] for n in places], seed=seed, draws=draws)
        answers = [[side[n].answer for n in places] for side in sides]
        stacks = [
            agreements(resample.confusions(reference, side, rubric.answers), rubric.answers)
            for side in answers
        ]
        answered = sum(None not in both for both in zip(*answers, strict=True))
        values = stacks[0] - stacks[1] if len(stacks) > 1 else stacks[0]
        return resample.estimate(values, n=answered, of=len(places))

    def share_of(expected: Sequence[str | None]) -> Estimate:
        """The share answered as expected, of the swapped items that have an answer and one."""
        pairs = [(answer.answer, label) for answer, label in zip(swapped, expected, strict=True)]
        hits = [None if None in pair else float(pair[0] == pair[1]) for pair in pairs]
        return share_estimate(hits, resamples_of(swapped, seed=seed, draws=draws))

    def kappa_turned(contrast: Sequence[LabelledAnswer]) -> Estimate:
        """Kappa on the contrast set; undefined under a single label, where one error makes it 0."""
        labels = {answer.item.reference for answer in contrast} & {*rubric.answers}
        estimate = kappa(contrast)
        return estimate if len(labels) > 1 else replace(estimate, value=None, low=None, high=None)

    must = rubric.control.swapped if rubric.control else None
    return Controls(
        field=rubric.deciding or "",
        measure=agreement_name(rubric.answers),
        kappa=kappa(judge),
        blind=kappa(blind),
        above=kappa(judge, blind),
        stays=share_of([answer.answer for answer in before]),
        as_swapped=share_of([must] * len(swapped)) if must else None,
        contrast=None if contrast is None else kappa_turned(contrast),
        together=None if contrast is None else kappa([*judge, *contrast]),
    )


# ---------------------------------------------------------------- fields that leak the label

_NINE_IN_TEN = 0.9
_MIN_LABELS = 20


@dataclass(frozen=True, slots=True)
class LabelLeak:
    """A field whose value alone predicts `right` of `items` labels.

    The most frequent label alone predicts `most`.
    """

    field: str
    right: int
    items: int
    most: int

    def __str__(self) -> str:
        return (
            f"field '{self.field}' alone predicts {self.right} of {self.items} labels, the most "
            f"frequent label {self.most}: the judge may only copy it. Name the fields to show, "
            "without it (--on)"
        )


def leak_of(items: Sequence[LabelledItem], texts: Sequence[Mapping[str, str]]) -> LabelLeak | None:
    """The field that predicts the label best, if it leaks the label; else None.

    An item's prediction is the most frequent label of the other records with the same value (for
    numbers with many values: in the same quantile bin, of at most ten); without a unique one it
    counts as wrong. So a text that no other record has predicts nothing. A field leaks if it is
    right for nine items in ten, and makes at most half of the errors of the most frequent label.
    Fields of long texts, and those with more different values than twice the number of labels and
    the root of the number of items, are not considered.

    Args:
        texts: the fields shown to a judge for each item.
    """
    rows = [
        (item.record.id, item.reference, texts_of)
        for item, texts_of in zip(items, texts, strict=True)
        if item.reference is not None
    ]
    if len(rows) < _MIN_LABELS:
        return None
    labels = Counter(label for _, label, _ in rows)
    most = max(labels.values())
    leaks = []
    for field in dict.fromkeys(name for *_, texts_of in rows for name in texts_of):
        values = _values([texts_of.get(field, "") for *_, texts_of in rows])
        kinds = {value for value in values if value}
        if len(kinds) <= max(2 * len(labels), len(rows) ** 0.5):
            labelled = [(record, label) for record, label, _ in rows]
            leaks.append(LabelLeak(field, _right(labelled, values), len(rows), most))
    best = max(leaks, key=lambda leak: leak.right, default=None)
    if best is None or best.right < max(_NINE_IN_TEN * best.items, most + 1):
        return None
    return best if 2 * (best.items - best.right) <= best.items - most else None


def _values(texts: Sequence[str]) -> list[str | None]:
    """The values to predict from: normalised texts, and None for a long text.

    Numbers with many values become up to ten quantile bins, and spellings of "no label" among them
    become "".
    """
    values = [spelling(text) if len(text) <= MAX_SLICE else None for text in texts]
    there = [n for n, value in enumerate(values) if value not in NO_LABEL]
    numbers = [number_of(values[n] or "") for n in there]
    finite = [number for number in numbers if number is not None]
    if len(finite) == len(there) and len(set(finite)) > MAX_CATEGORIES:
        parts = min(MAX_CATEGORIES, int(len(finite) ** 0.5))
        edges = np.quantile(finite, np.linspace(0, 1, parts + 1)[1:-1])
        part_of = dict(zip(there, np.digitize(finite, edges).tolist(), strict=True))
        return [str(part_of.get(n, "")) for n in range(len(texts))]
    return values


def _right(rows: Sequence[tuple[str, str]], values: Sequence[str | None]) -> int:
    """For how many rows (record, label) the label is the most frequent in other records with the
    row's value."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    by_record: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (record, label), value in zip(rows, values, strict=True):
        if value is not None:
            counts[value][label] += 1
            by_record[value, record][label] += 1
    right = 0
    for (record, label), value in zip(rows, values, strict=True):
        if value is not None:
            rivals = (counts[value] - by_record[value, record]).most_common(2)
            tied = len(rivals) > 1 and rivals[0][1] == rivals[1][1]
            right += bool(rivals) and not tied and rivals[0][0] == label
    return right
