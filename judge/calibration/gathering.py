"""The labels that a calibration is held against: read, looked through, each item once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from judge.calibration.agreement import JOINED, OWN_ANSWERS
from judge.calibration.seen import Job
from judge.calibration.splitting import sample
from judge.errors import UsageError
from judge.records import Item, Problem
from judge.records.labels import LabelledItem, read_labels
from judge.records.values import clip
from judge.rubric import Rubric

UNNAMED = "label"
"""The check of labels that do not say what they are about, as those of a plain table."""

RubricOf = Callable[[str], Rubric]
"""A check's rubric; raises UsageError where no judging rubric is called so."""


def gather(job: Job, rubric_of: RubricOf) -> tuple[dict[str, list[LabelledItem]], list[Item]]:
    """The labelled items by check, and what was left out: lines with their problem.

    Left out are lines that cannot be read, items with an answer that is none to their check's
    rubric, and items that an earlier source had already.

    Raises:
        UsageError: a source that cannot be read, no label for a check that was named, or labels of
            a check that has no rubric.
    """
    labels = _Labels(rubric_of, chosen=bool(job.checks))
    found: dict[str, list[LabelledItem]] = {}
    problems: list[Item] = []
    for source in job.sources:
        part, left_out = labels.of(_asked_for(job, source))
        problems += left_out
        wanted = job.records_of.get(source, job.records)
        for check, items in part.items():
            kept = items if wanted is None else [items[p] for p in sample(items, wanted, job.seed)]
            found.setdefault(check, []).extend(kept)
    if missing := [check for check in job.checks if check not in found]:
        told = f"{', '.join(job.sources)}: no labels for {missing[0]}"
        raise UsageError(f"{told}{_first(problems)}")
    if not found:
        raise UsageError(f"{', '.join(job.sources)}: no labels at all{_first(problems)}")
    return found, problems


def _first(problems: Sequence[Item]) -> str:
    first = next((p for p in problems if p.problem), None)
    if first is None or first.problem is None:
        return ""
    place = f"{first.source}:{first.line}"
    return f"; the first line that cannot be used is {place}: {first.problem.message}"


def _asked_for(job: Job, source: str) -> Iterator[LabelledItem | Item]:
    """What the source holds for the checks that were asked for, and its problems.

    Where it does not say what its labels are about, the one check that was named does.
    """
    read = list(read_labels(source, annotators=job.annotators))
    unnamed = {one.check for one in read if isinstance(one, LabelledItem)} == {UNNAMED}
    for one in read:
        if isinstance(one, Item) or not job.checks or one.check in job.checks:
            yield one
        elif unnamed and len(job.checks) == 1:
            yield replace(one, check=job.checks[0])


@dataclass(slots=True)
class _Labels:
    """Looks items through, source by source; `chosen` says that the checks were named."""

    rubric_of: RubricOf
    chosen: bool
    _rubrics: dict[str, Rubric] = field(default_factory=dict)
    _earlier: dict[tuple[str, str, int], list[LabelledItem]] = field(default_factory=dict)

    def of(
        self, read: Iterator[LabelledItem | Item]
    ) -> tuple[dict[str, list[LabelledItem]], list[Item]]:
        """A source's items that can be used, by check, and what was left out."""
        part: dict[str, list[LabelledItem]] = {}
        left_out: list[Item] = []
        for one in read:
            if isinstance(one, Item):
                left_out.append(one)
            elif problem := self._unusable(one):
                left_out.append(Item(one.source, one.line, None, problem=problem))
            else:
                part.setdefault(one.check, []).append(one)
        # Of a single source its reader says what is there twice.
        for item in (item for items in part.values() for item in items):
            self._earlier.setdefault(_key(item), []).append(item)
        return part, left_out

    def _unusable(self, item: LabelledItem) -> Problem | None:
        return _no_answer(item, self._rubric(item).answers) or self._given_before(item)

    def _given_before(self, item: LabelledItem) -> Problem | None:
        same = (one for one in self._earlier.get(_key(item), ()) if one.fields == item.fields)
        first = next(same, None)
        if first is None:
            return None
        told = f"{_told(item)}: item {clip(item.record)} was already on {first.source}:{first.line}"
        return Problem(f"{told}; give each item once, with all of its answers", type="duplicate-id")

    def _rubric(self, item: LabelledItem) -> Rubric:
        if item.check not in self._rubrics:
            try:
                self._rubrics[item.check] = self.rubric_of(item.check)
            except UsageError as error:
                place = f"{item.source}:{item.line}: {_told(item)}"
                raise UsageError(f"{place}: {error}{self._remedy(item)}") from error
        return self._rubrics[item.check]

    def _remedy(self, item: LabelledItem) -> str:
        if self.chosen:
            return ""
        if item.check == UNNAMED:
            return "; name the check with --check"
        return "; name the checks that are meant with --check, or the rubric's file with --rubric"


def _key(item: LabelledItem) -> tuple[str, str, int]:
    return item.record, item.check, item.number


def _told(item: LabelledItem) -> str:
    number = f" (value {item.number})" if item.number else ""
    return f"label {clip(item.check)}{number}"


def _no_answer(item: LabelledItem, answers: Sequence[str]) -> Problem | None:
    """The item's first answer that is none to its check's rubric."""
    given = [] if item.gold is None else [("", item.gold)]
    # A table's item stands on its first row, which need not be this annotator's.
    where = f", item {clip(item.record)},"
    given += [(f" of {clip(one.annotator)}{where}", one.answer) for one in item.annotations]
    for whose, answer in given:
        if not _is_answer(answer, answers):
            known = ", ".join(answers)
            return Problem(f"{_told(item)}{whose} must be one of {known}, not {clip(answer)}")
    return None


def _is_answer(answer: str, answers: Sequence[str]) -> bool:
    """Whether it is one of the answers, several of them, or one that decides nothing."""
    return all(part.strip() in {*answers, *OWN_ANSWERS} for part in answer.split(JOINED))
