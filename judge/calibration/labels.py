"""Labels, read and checked; a judge is not shown the fields that hold people's answers."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from judge.digest import digest
from judge.errors import UsageError
from judge.questions.rubric import ASKED, Rubric
from judge.records import Problem, Record
from judge.records.answers import NO_LABEL, OWN_ANSWERS, SEVERAL, scalar_text, spelling, words_for
from judge.records.base import clip
from judge.records.fields import MAX_SLICE
from judge.records.labels import UNNAMED, LabelledItem, read_labels, without_label
from judge.stats.classification import kappas

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
    - `rubrics`: asked besides those that the settings name
    - `problems`: of labels that were left out before
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
    rubrics: Sequence[Rubric] = ()
    problems: Sequence[Record] = ()


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
    labels: dict[str, list[LabelledItem]] = defaultdict(list)
    problems: list[Record] = [*job.problems]
    first: dict[tuple[object, ...], LabelledItem] = {}
    unknown: dict[str, None] = {}
    blank: list[int] = []
    for source in sources:
        part: dict[str, list[LabelledItem]] = defaultdict(list)
        for item in _asked_for(source, checks, columns, blank):
            if isinstance(item, Record):
                problems.append(item)
                continue
            if item.check not in rubrics:
                rubrics[item.check] = _rubric(item, rubric_of, checks)
            answers = rubrics[item.check].answers
            item = item.answered((*answers, *OWN_ANSWERS), _words_for(rubrics[item.check]))
            problem = _no_answer(item, answers)
            if problem is not None and item.check == ASKED:
                unknown |= dict.fromkeys(_answers_of(item))
            if problem is None:
                key = (item.record.id, item.check, item.number, repr(item.record.fields))
                problem = _repeated(item, first.setdefault(key, item))
            if problem is None:
                part[item.check].append(item)
            else:
                problems.append(replace(item.record, fields=None, problem=problem))
        records = job.records.get(source) if isinstance(job.records, Mapping) else job.records
        for check, items in part.items():
            visible_items = without_answers(items, rubrics[check])
            drawn_of = (
                visible_items if records is None else sample(visible_items, records, job.seed)
            )
            labels[check] += drawn_of if job.group is None else grouped(drawn_of, job.group)
    checks_without = [f"for {check}" for check in checks if check not in labels]
    if checks_without or not labels:
        message = f"{', '.join(sources)}: no labels {(checks_without or ['at all'])[0]}"
        if blank:
            message += f"; {without_label(len(blank))}: people answer in the column label"
        for item in problems[:1]:
            place, why = f"{item.source}:{item.line}", item.problem and item.problem.message
            message += f"; the first line that cannot be used is {place}: {why}"
        raise UsageError(f"{message}{_to_type([*unknown])}")
    return labels, problems


def _asked_for(
    source: str, checks: Sequence[str], columns: Mapping[str, str], blank: list[int]
) -> Iterator[LabelledItem | Record]:
    """What the source holds for the checks that were asked for, and its problems.

    Where it does not say what its labels are about, the one check that was named does. The labels
    of its only check are about a question that was asked without a name.
    """
    labels = list(read_labels(source, columns=columns, blank=blank))
    there = dict.fromkeys(item.check for item in labels if isinstance(item, LabelledItem))
    unnamed = [*there] == [UNNAMED] or (len(there) == 1 and [*checks] == [ASKED])
    if len(there) > 1 and [*checks] == [ASKED] and ASKED not in there:
        how = f"choose one, --map label={next(iter(there))}"
        raise UsageError(f"{source} has labels for {', '.join(there)}: {how}")
    for item in labels:
        if isinstance(item, Record) or not checks or item.check in checks:
            yield item
        elif unnamed and len(checks) == 1:
            yield replace(item, check=checks[0])


def _words_for(rubric: Rubric) -> dict[str, str]:
    rule = rubric.rule
    by_name = not (rule.equals_label or rule.counts or rule.bound or rule.by_label)
    return words_for(rubric.answers, rule.passes) if by_name else {}


def _answers_of(item: LabelledItem) -> Iterator[str]:
    yield from [] if item.gold is None else [item.gold]
    yield from (annotation.answer for annotation in item.annotations)


def _to_type(words: Sequence[str]) -> str:
    """What makes such labels answers of a question on the command line."""
    if not 1 < len(words) <= MAX_CATEGORIES or any("," in word for word in words):
        return ""
    answers = ",".join(words)
    return f"; to ask for these words, type --answers '{answers}' --pass and the one that passes"


def _no_answer(item: LabelledItem, answers: Sequence[str]) -> Problem | None:
    pairs = [] if item.gold is None else [("", item.gold)]
    # A table's item stands on its first row, which need not be this annotator's.
    where = f", item {clip(item.record.id)},"
    pairs += [
        (f" of {clip(annotation.annotator)}{where}", annotation.answer)
        for annotation in item.annotations
    ]
    # An answer is one of the rubric's, several of them, or one that decides nothing.
    usable = {*answers, *OWN_ANSWERS}
    for annotator, answer in pairs:
        if not usable.issuperset(answer.split(SEVERAL)):
            message = (
                f"{_told(item)}{annotator} must be one of {', '.join(answers)}, not {clip(answer)}"
            )
            return Problem(message)
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
        message = f"{item.record.source}:{item.record.line}: {_told(item)}: {error}"
        raise UsageError(message if checks else f"{message}{remedy}") from error


def _told(item: LabelledItem) -> str:
    number = f" (value {item.number})" if item.number else ""
    return f"label {clip(item.check)}{number}"


OF_PEOPLE = frozenset(
    [
        "annotation",
        "annotator",
        "consensus",
        "gold",
        "human",
        "judgement",
        "judgment",
        "label",
        "majority",
        "preference",
        "preferred",
        "rater",
        "rating",
        "score",
        "verdict",
        "vote",
        "winner",
    ]
)
"""Words in the names of fields that hold answers of people, where the content is no text."""


PERHAPS = frozenset(["answer", "choice", "class", "decision", "target"])
"""Words in the names of fields that may hold them."""

FieldPath = tuple[str, ...]
"""A field's name, behind those of the objects that it lies in."""

FieldContent = tuple[Any, str | None]
"""A field's content in an item, and the item's label."""

MAX_CATEGORIES = 10
_MIN_ITEMS = 10

_AGREES, _AGREES_BY_NAME = 0.4, 0.1
"""Kappa with the label from which on a field of the rubric's answers is another person's; the
second where its name is one of `PERHAPS`."""


def grouped(
    items: Sequence[LabelledItem], name: str, *, everywhere: bool = True
) -> list[LabelledItem]:
    """The items grouped by the value of a slice or field.

    Raises:
        UsageError: an item lacks it, and it has to be there `everywhere`.
    """
    items_grouped = []
    for item in items:
        group = item.slices.get(name, item.record.visible.get(name))
        no_group = group in (None, "")
        if no_group and everywhere:
            place = f"{item.record.source}:{item.record.line}"
            raise UsageError(f"{place}: item {clip(item.record.id)} has no '{name}' to group by")
        items_grouped.append(item if no_group else replace(item, group=f"{name}={group}"))
    return items_grouped


def sample(items: Sequence[LabelledItem], records: int, seed: int = 0) -> list[LabelledItem]:
    """All items of so many records, drawn with the seed."""
    names = sorted({item.record.id for item in items}, key=lambda name: drawn(name, seed))
    names_drawn = set(names[:records])
    return [item for item in items if item.record.id in names_drawn]


def drawn(name: str, seed: int) -> str:
    """What a name is sorted by, in an order that the seed draws."""
    return digest(f"{seed}\n{name}".encode("utf-8", "surrogatepass"), 64)


# ---------------------------------------------------------------- people's answers


def without_answers(items: Sequence[LabelledItem], rubric: Rubric) -> list[LabelledItem]:
    """The items of a source without the fields that hold people's answers, named in `withheld`.

    Where the rubric names the fields that are shown, all stay. Else a field is left out by its name
    and content together: a score or category under a name such as `winner` or `annotator2`, or, by
    whatever name, nothing but answers of the rubric that agree with the label. A text is shown,
    whatever its name. Fields of objects, also in lists, are judged like the record's own, and named
    by their path (`meta.vote`).
    """
    if rubric.fields:
        return list(items)
    columns: dict[FieldPath, list[FieldContent]] = defaultdict(list)
    for item in items:
        for path, content in _fields_in(item.record.visible):
            columns[path].append((content, item.reference))
    paths = {path for path, rows in columns.items() if _of_people(path[-1], rows, rubric.answers)}
    if not paths:
        return list(items)
    withheld = tuple(
        ".".join(path)
        for path in columns
        if path in paths and not any(path[:n] in paths for n in range(1, len(path)))
    )
    records = (replace(item.record, fields=_without(item.record.visible, paths)) for item in items)
    return [
        replace(item, record=record, withheld=withheld)
        for item, record in zip(items, records, strict=True)
    ]


def _fields_in(content: object, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """The fields of an object, then those within them; entries of lists have their list's path."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield (*path, name), value
            yield from _fields_in(value, (*path, name))
    elif isinstance(content, list):
        for value in content:
            yield from _fields_in(value, path)


def _without(content: Any, paths: Collection[FieldPath], path: FieldPath = ()) -> Any:
    if isinstance(content, Mapping):
        return {
            name: _without(value, paths, (*path, name))
            for name, value in content.items()
            if (*path, name) not in paths
        }
    return (
        [_without(value, paths, path) for value in content]
        if isinstance(content, list)
        else content
    )


def _of_people(name: str, rows: Sequence[FieldContent], answers: Collection[str]) -> bool:
    contents = [content for content, _ in rows if content is not None]
    words = {word.removesuffix("s") for word in _words(name)}
    spelt = [text for content in contents for text in _spelt(content)]
    kinds, spellings = set(spelt), set(map(spelling, answers))
    if not kinds:
        return False
    if any(isinstance(content, list | dict) for content in contents):
        count = sum(not spellings.isdisjoint(_spelt(content)) for content in contents)
        return bool(words & OF_PEOPLE) and 2 * count > len(contents)
    if kinds <= spellings:
        least = _AGREES_BY_NAME if words & PERHAPS else _AGREES
        return bool(words & OF_PEOPLE) or _agreement(rows, sorted(spellings)) >= least
    numbers = all(number_of(text) is not None for text in kinds)
    few = len(kinds) <= min(MAX_CATEGORIES, max(len(spelt) / 2, len(spellings) + 1))
    short = max(map(len, kinds)) <= MAX_SLICE
    return bool(words & OF_PEOPLE) and (numbers or (few and short))


def _words(name: str) -> list[str]:
    """`humanLabel_2` is human and label."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())


def _spelt(content: object) -> Iterator[str]:
    """Every scalar in a field, each of several answers by itself, without what is no label."""
    if isinstance(content, dict | list):
        parts = content.values() if isinstance(content, dict) else content
        for part in parts:
            yield from _spelt(part)
    elif (text := scalar_text(content)) is not None:
        yield from (label for label in spelling(text).split(SEVERAL) if label not in NO_LABEL)


def number_of(spelt: str) -> float | None:
    """The number that an answer's spelling is, if it is a finite one."""
    with suppress(ValueError):
        number = float(spelt)
        return number if math.isfinite(number) else None
    return None


def _agreement(rows: Sequence[FieldContent], labels: Sequence[str]) -> float:
    """Cohen's kappa of a field with the reference, 0 where it is undefined or over few items."""
    counts = np.zeros((1, len(labels), len(labels)))
    for content, reference in rows:
        texts = [*_spelt(content)]
        if reference is not None and len(texts) == 1 and (true := spelling(reference)) in labels:
            counts[0, labels.index(true), labels.index(texts[0])] += 1
    return float(np.nan_to_num(kappas(counts)[0])) if counts.sum() >= _MIN_ITEMS else 0.0
