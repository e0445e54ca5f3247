"""Labels, read and checked; a judge is not shown the fields that hold people's answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from judge.calibration.answer_fields import MAX_CATEGORIES, without_answers
from judge.digest import digest
from judge.errors import UsageError
from judge.questions.rubric import ASKED, Rubric
from judge.records import Problem, Record
from judge.records.answers import OWN_ANSWERS, SEVERAL, words_for
from judge.records.base import clip
from judge.records.labels import UNNAMED, LabelledItem, read_labels, without_label

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

    Answers of other annotators about an item that an earlier source has, too, join its own. Left
    out are lines that cannot be read, items with an answer that is none to their check's rubric,
    and items that a source had already. `columns` maps names of fields to the columns that hold
    them.

    Raises:
        UsageError: a source that cannot be read, no label for a check that was named, labels of
            a check that has no rubric, or an item without the field to group by.
    """
    sources, checks = job.sources, job.checks
    rubrics: dict[str, Rubric] = {}
    labels: dict[str, list[LabelledItem]] = defaultdict(list)
    problems: list[Record] = [*job.problems]
    entries: list[tuple[str, LabelledItem]] = []
    places: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    unknown: dict[str, None] = {}
    blank: list[int] = []
    for source in sources:
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
            alike = places[item.record.id, item.check, item.number]
            index = next((n for n in alike if _same_record(entries[n][1], item)), None)
            if problem is None and index is None:
                alike.append(len(entries))
                entries.append((source, item))
            elif problem is None and index is not None:
                origin, first = entries[index]
                joined = _joined(first, item)
                entries[index] = origin, joined or first
                problem = None if joined else _repeated(item, first)
            if problem is not None:
                problems.append(replace(item.record, fields=None, problem=problem))
    parts: dict[str, dict[str, list[LabelledItem]]] = {}
    for source, item in entries:
        parts.setdefault(source, {}).setdefault(item.check, []).append(item)
    for source, part in parts.items():
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


def _same_record(one: LabelledItem, other: LabelledItem) -> bool:
    """Whether two items of one name are about one record: a sheet has those of its fields alone
    that people were shown."""
    fewer, more = sorted((one.record.fields or {}, other.record.fields or {}), key=len)
    shared = all(name in more and more[name] == content for name, content in fewer.items())
    return shared and bool(fewer) >= bool(more)


def _joined(first: LabelledItem, item: LabelledItem) -> LabelledItem | None:
    """The item with the answers of both, which are of different people; None if they are not."""
    annotators = {annotation.annotator for annotation in first.annotations}
    single = first.gold is None is item.gold and annotators and item.annotations
    if not single or any(one.annotator in annotators for one in item.annotations):
        return None
    return replace(
        first,
        annotations=(*first.annotations, *item.annotations),
        rows=(*first.rows, *item.rows),
        left_out=first.left_out + item.left_out,
        read_as={**first.read_as, **item.read_as},
    )


def _repeated(item: LabelledItem, first: LabelledItem) -> Problem:
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
