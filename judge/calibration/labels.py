"""Labels: read and checked, split by record, and turned into what a judge is shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from judge.answers import SEVERAL
from judge.calibration.agreement import OWN_ANSWERS
from judge.calibration.leaks import without_answers
from judge.digest import digest
from judge.errors import UsageError
from judge.names import entry_name
from judge.prompts import lack
from judge.records import Kind, Problem, Record
from judge.records.base import LabelError, clip
from judge.records.labels import UNNAMED, LabelledItem, read_labels
from judge.rubric import ASKED, Rubric

RubricOf = Callable[[str], Rubric]
"""The rubric of a check; raises UsageError where there is none of that name."""


@dataclass(frozen=True, slots=True)
class CalibrationJob:
    """What to calibrate on, and how.

    - `sources`: files with labels, or NAME:PATH of a public set
    - `checks`: those wanted; all if empty. One alone also names the labels that name none
    - `records`: how many records of each check and source are drawn, by source where it is a
      mapping; None for all
    - `held_out`: the share of the records (0 to 1) that nothing is fitted to; None for the usual
    - `folds`: into how many parts the records are cut, each reported on by what was fitted to the
      others; None where one part fits and the other reports
    - `by`: fields to report results by
    - `group`: a field whose values are never on both sides, of fitting and of reporting
    - `contrast_set`: a set of labels in which the deciding field is turned round
    - `test_sets`: further sets to report on, to which nothing is fitted
    - `adapters`: whether the embedded model takes the adapters that come with judge
    - `controls`: whether each judge is asked without the deciding field, and with another's
    - `agreement`: the agreement with people to guarantee (0.5 to 1); None for no guarantee
    - `draws`, `seed`: resamples of each interval, and the seed of everything random
    """

    sources: Sequence[str]
    checks: Sequence[str] = ()
    held_out: float | None = None
    folds: int | None = None
    records: int | Mapping[str, int | None] | None = None
    by: Sequence[str] = ()
    group: str | None = None
    contrast_set: str | None = None
    test_sets: Sequence[str] = ()
    adapters: bool = False
    controls: bool = True
    agreement: float | None = None
    draws: int = 1000
    seed: int = 0


def gather(
    job: CalibrationJob, rubric_of: RubricOf, columns: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, list[LabelledItem]], list[Record]]:
    """The job's labelled items by check, and what was left out: lines with their problem.

    Left out are lines that cannot be read, items with an answer that is none to their check's
    rubric, and items that an earlier source had already. `columns` maps names of fields to the
    columns that hold them.

    Raises:
        UsageError: a source that cannot be read, no label for a check that was named, labels of
            a check that has no rubric, or an item without the field to group by.
    """
    sources, checks = job.sources, job.checks
    rubrics: dict[str, Rubric] = {}
    found: dict[str, list[LabelledItem]] = defaultdict(list)
    problems: list[Record] = []
    first: dict[tuple[object, ...], LabelledItem] = {}
    for source in sources:
        part: dict[str, list[LabelledItem]] = defaultdict(list)
        for one in _asked_for(source, checks, columns):
            if isinstance(one, Record):
                problems.append(one)
                continue
            if one.check not in rubrics:
                rubrics[one.check] = _rubric(one, rubric_of, checks)
            answers = rubrics[one.check].answers
            one = one.answered((*answers, *OWN_ANSWERS))
            problem = _no_answer(one, answers)
            if problem is None:
                key = (one.record.id, one.check, one.number, repr(one.record.fields))
                problem = _repeated(one, first.setdefault(key, one))
            if problem is None:
                part[one.check].append(one)
            else:
                problems.append(replace(one.record, fields=None, problem=problem))
        wanted = job.records.get(source) if isinstance(job.records, Mapping) else job.records
        for check, items in part.items():
            shown = without_answers(items, rubrics[check])
            drawn_of = shown if wanted is None else sample(shown, wanted, job.seed)
            found[check] += drawn_of if job.group is None else grouped(drawn_of, job.group)
    missing = [f"for {check}" for check in checks if check not in found]
    if missing or not found:
        told = f"{', '.join(sources)}: no labels {(missing or ['at all'])[0]}"
        for item in problems[:1]:
            place, why = f"{item.source}:{item.line}", item.problem and item.problem.message
            told += f"; the first line that cannot be used is {place}: {why}"
        raise UsageError(told)
    return found, problems


def _asked_for(
    source: str, checks: Sequence[str], columns: Mapping[str, str]
) -> Iterator[LabelledItem | Record]:
    """What the source holds for the checks that were asked for, and its problems.

    Where it does not say what its labels are about, the one check that was named does. The labels
    of its only check are about a question that was asked without a name.
    """
    read = list(read_labels(source, columns=columns))
    there = dict.fromkeys(one.check for one in read if isinstance(one, LabelledItem))
    unnamed = [*there] == [UNNAMED] or (len(there) == 1 and [*checks] == [ASKED])
    if len(there) > 1 and [*checks] == [ASKED] and ASKED not in there:
        how = f"choose one, --map label={next(iter(there))}"
        raise UsageError(f"{source} has labels for {', '.join(there)}: {how}")
    for one in read:
        if isinstance(one, Record) or not checks or one.check in checks:
            yield one
        elif unnamed and len(checks) == 1:
            yield replace(one, check=checks[0])


def _no_answer(item: LabelledItem, answers: Sequence[str]) -> Problem | None:
    given = [] if item.gold is None else [("", item.gold)]
    # A table's item stands on its first row, which need not be this annotator's.
    where = f", item {clip(item.record.id)},"
    given += [(f" of {clip(one.annotator)}{where}", one.answer) for one in item.annotations]
    # An answer is one of the rubric's, several of them, or one that decides nothing.
    known = {*answers, *OWN_ANSWERS}
    for whose, answer in given:
        if not known.issuperset(answer.split(SEVERAL)):
            told = f"{_told(item)}{whose} must be one of {', '.join(answers)}, not {clip(answer)}"
            return Problem(told)
    return None


def _repeated(item: LabelledItem, first: LabelledItem) -> Problem | None:
    if item is first:
        return None
    place = f"{first.record.source}:{first.record.line}"
    message = f"{_told(item)}: item {clip(item.record.id)} was already on {place}"
    return Problem(f"{message}; give each item once, with all of its answers", type="duplicate-id")


def _rubric(item: LabelledItem, rubric_of: RubricOf, checks: Sequence[str]) -> Rubric:
    try:
        return rubric_of(item.check)
    except UsageError as error:
        remedy = "; name the checks that are meant with --check, or the rubric's file with --rubric"
        if item.check == UNNAMED:
            remedy = "; name the check with --check"
        told = f"{item.record.source}:{item.record.line}: {_told(item)}: {error}"
        raise UsageError(told if checks else f"{told}{remedy}") from error


def _told(item: LabelledItem) -> str:
    number = f" (value {item.number})" if item.number else ""
    return f"label {clip(item.check)}{number}"


# ---------------------------------------------------------------- splitting


def split(items: Sequence[LabelledItem], shares: Sequence[float], seed: int = 0) -> list[list[int]]:
    """The places of the items of each part; all items of a record, or group, fall into one part.

    These are taken in an order that depends on their name and the seed only, reference by reference
    (that of the first item), so that every part has its share of each. `shares` are the parts'
    shares of them.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        places[item.cluster].append(place)
    strata: dict[str, list[str]] = defaultdict(list)
    for record, where in places.items():
        strata[str(items[where[0]].reference)].append(record)
    parts: list[list[int]] = [[] for _ in shares]
    filled = [0] * len(shares)
    for stratum in sorted(strata):
        for record in sorted(strata[stratum], key=lambda name: drawn(name, seed)):
            behind = [
                have / share if share else float("inf")
                for have, share in zip(filled, shares, strict=True)
            ]
            part = behind.index(min(behind))
            filled[part] += 1
            parts[part] += places[record]
    return [sorted(part) for part in parts]


def grouped(
    items: Sequence[LabelledItem], name: str, *, everywhere: bool = True
) -> list[LabelledItem]:
    """The items grouped by the value of a slice or field.

    Raises:
        UsageError: an item lacks it, and it has to be there `everywhere`.
    """
    found = []
    for item in items:
        group = item.slices.get(name, item.record.visible.get(name))
        missing = group in (None, "")
        if missing and everywhere:
            place = f"{item.record.source}:{item.record.line}"
            raise UsageError(f"{place}: item {clip(item.record.id)} has no '{name}' to group by")
        found.append(item if missing else replace(item, group=f"{name}={group}"))
    return found


def sample(items: Sequence[LabelledItem], records: int, seed: int = 0) -> list[LabelledItem]:
    """All items of so many records, drawn with the seed."""
    names = sorted({item.record.id for item in items}, key=lambda name: drawn(name, seed))
    chosen = set(names[:records])
    return [item for item in items if item.record.id in chosen]


def drawn(name: str, seed: int) -> str:
    """What a name is sorted by, in an order that the seed draws."""
    return digest(f"{seed}\n{name}".encode("utf-8", "surrogatepass"), 64)


# ---------------------------------------------------------------- what a judge is shown

_MARKS: Mapping[Kind, str] = {
    "story": "values",
    "norm": "rule_of_thumb",
    "extraction": "predicted",
}
"""The field that tells records of a kind from others."""


def record_for(item: LabelledItem, rubric: Rubric) -> Record:
    """The item's record as the rubric's judges see it, or with why they cannot be asked about it.

    A rubric that passes what bears out the record's label is given the reference answer where the
    record has no label of its own, and any answer where there is no reference: its question is
    asked all the same, and the label is no part of it.
    """
    fields = item.record.visible
    kinds = (kind for kind, mark in _MARKS.items() if kind in rubric.kinds and fields.get(mark))
    # A rubric on fields of its own sees the whole record.
    record = item.record.of_kind(next(kinds, "record"))
    if record.problem is not None:
        return record
    if rubric.rule.equals_label and record.label is None:
        known = item.reference in rubric.answers
        record = record.with_typed(label=item.reference if known else rubric.answers[0])
    reason = _misfit(item, record, rubric)
    return record if reason is None else replace(record, problem=Problem(reason))


def _misfit(item: LabelledItem, record: Record, rubric: Rubric) -> str | None:
    try:
        record.texts.refuse_ambiguous(rubric.fields)
    except LabelError as error:
        return str(error)
    if reason := lack(rubric, record):
        return reason
    if rubric.each and not item.number:
        return f"the label is about the record, the check about its {rubric.each}"
    if rubric.each and item.number > len(record.entries(rubric.each)):
        return f"the record has no {entry_name(rubric.each)} {item.number}"
    if not rubric.each and item.number:
        return "the label is about a value, the check about the record"
    return None


def texts_of(item: LabelledItem, rubric: Rubric) -> dict[str, str]:
    """The texts of the record that the rubric's judges see, by field; none where it cannot be put
    to them."""
    record = record_for(item, rubric)
    names = rubric.shown(record.texts).values() if record.problem is None else ()
    return {name: record.texts[name] for name in names if name in record.texts}


def key_of(item: LabelledItem, rubric: Rubric) -> str:
    """A key that identifies a labelled item by all that its judges see of it; "" for one that they
    cannot be asked about."""
    record = record_for(item, rubric)
    if record.problem is not None:
        return ""
    names = (*rubric.shown(record.texts).values(), *rubric.needs)
    texts = {name: record.texts[name] for name in names if name in record.texts}
    return digest({"texts": texts, "value": record.entry(rubric.each, item.number)})[:16]
