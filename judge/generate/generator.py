"""The contract of a generator: what is drafted, and the workflow that writes and checks it.

A draft is a record with all that its writer is told (a line of the sources, what was drawn for it).
The generator's workflow is a LangGraph state machine as that of `judge validate`, whose nodes also
write: `compose` fills fields of the draft. A draft is kept, or lost at one of the stages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

from judge.judgement import Judgement
from judge.questions.replies import NewFields
from judge.questions.rubric import Rubric
from judge.records import Record, mapped
from judge.records.base import LINEAGE, LabelError
from judge.run.job import Job
from judge.stats.text import telling_texts
from judge.verdict import SOUND, last_of_each
from judge.workflows import Work, Workflow

Lost = tuple[str, str]
"""The stage at which a draft was lost, and the cause: `fail`, `refused`, `no closing question`."""


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """What the user chose of the drafts.

    Args:
        seed: for all that is drawn.
        limit: how many drafts at most; None as many as the generator usually makes.
        each: drafts of each line of the sources (and label); None as many as usual.
        own: the generator's own options, by name.
        columns: of the sources, to be renamed.
    """

    seed: int = 0
    limit: int | None = None
    each: int | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def listed(self, name: str, usual: Sequence[str] = ()) -> tuple[str, ...]:
        """An option of several words with commas between them."""
        words = tuple(part.strip() for part in self.own.get(name, "").split(",") if part.strip())
        return words or tuple(usual)


@dataclass(frozen=True, slots=True)
class Roles:
    """Who takes which step: the models of a writer and of a judge, the steps that do not go to the
    usual one of them, and settings that the user has not made."""

    writer: str
    judge: str
    steps: Mapping[str, Literal["writer", "judge"]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def given_up(work: Work) -> Lost:
    """The writer's step that brought nothing, and why."""
    stage, _, why = (work.notes or ["the writer gave up: no reply"])[-1].partition(" gave up: ")
    return stage, why.partition(":")[0]


def first_failure(work: Work, judgement: Judgement) -> Lost | None:
    """The writer, if it wrote nothing, or the first check that did not pass."""
    if not work.written:
        return given_up(work)
    for check in last_of_each(work.checks):
        if check.verdict not in SOUND:
            counting = check.by == "counting" and check.reason
            return check.name, check.reason or "" if counting else str(check.verdict)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """What makes a set of records, found by name through the entry points `judge.generators`.

    Args:
        workflow: writes and checks a draft; its `rewrites` are the writer's rubrics, its `checks`
            those of judges.
        drafts: from sources (paths, as the user named them) to drafts (`draft_of`), in an order
            that the options decide. A line that cannot be used becomes a Record with a `problem`.
            Raises UsageError for a source or an option that cannot be used.
        stages: where drafts may be lost, in the order of the funnel.
        lost: where this draft was lost; None if it is kept.
        rubrics: its own, besides those that come with the package.
        options: of its own, by name, each with what it does.
        roles: who takes which step, by name, such as a paper's.
        text: the field that is held against those of other records.
        counted: fields whose values are counted at the end.
        crossed: two of them that are counted against each other.
    """

    name: str
    title: str
    source: str
    workflow: Workflow
    drafts: Callable[[Sequence[str], DraftOptions], Iterator[Record]]
    stages: tuple[str, ...]
    text: str
    lost: Callable[[Work, Judgement], Lost | None] = first_failure
    rubrics: Mapping[str, Rubric] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Roles] = field(default_factory=dict)
    counted: tuple[str, ...] = ()
    crossed: tuple[str, str] | None = None


# ---------------------------------------------------------------- what drafts are made of


def rows(sources: Sequence[str], options: DraftOptions) -> Iterator[Record]:
    """The lines of the sources (`-` is standard input), with their columns renamed."""
    return mapped(Job(inputs=sources).items(), options.columns)


def draft_of(
    row: Record, set_name: str, seed: int, index: int, fields: Mapping[str, Any]
) -> Record:
    """A draft of these fields, with an id of its own and its lineage.

    Args:
        row: the line that it is made from, its parent.
        index: the draft's number in its set, from 1.
    """
    parent = (row.fields or {}).get("id", f"{row.source}#{row.line}")
    lineage = {"set": set_name, "seed": seed, "index": index, "parent": parent}
    head = {"id": f"{set_name}-{seed}-{index}"}
    return Record(row.source, row.line, {**head, **fields, LINEAGE: lineage}, among=row.among)


Contents = Callable[[Record, int], Iterable[Mapping[str, Any]]]
"""The fields of the drafts that are made of a line, with its place among all (from 0). Raises
LabelError for a line that none can be made of."""


def drafts_of(
    set_name: str, lines: Iterable[Record], options: DraftOptions, contents: Contents
) -> Iterator[Record]:
    """The drafts of each line, numbered; a line without any comes with its problem."""
    numbers = count(1)
    for place, line in enumerate(lines):
        try:
            made = [*contents(line, place)]
        except LabelError as error:
            yield replace(line, problem=error.problem)
            continue
        yield from (draft_of(line, set_name, options.seed, next(numbers), one) for one in made)


async def compose(
    work: Work, rubric: str, reply: type[NewFields], kind: str, findings: Sequence[str] = ()
) -> bool:
    """Have a writer fill fields of a draft, which then is of this kind, or write them anew.

    Args:
        findings: what is wrong with what it wrote before.

    Returns:
        False, with a note, where no reply was valid, or it copies the prompt: what was written
        before stands.

    Raises:
        BackendError: the model gave no reply at all.
    """
    work.round += work.written
    texts = await work.ask_rewriter(rubric, reply, findings=findings)
    if texts is None:
        return False
    if _copied(work.context.rewriters[rubric].rubric, written := texts.model_dump()):
        work.give_up(rubric, "copied: it is an example of the prompt, word for word")
        return False
    work.wrote(written, kind)
    return True


def _copied(rubric: Rubric, written: Mapping[str, Any]) -> bool:
    """Whether all that was written stands in one of the prompt's examples, which weak models
    repeat."""
    replies = (json.loads(example.reply) for example in rubric.examples)
    return any({*telling_texts(written)} <= {*telling_texts(reply)} for reply in replies)


def objections(work: Work, names: Sequence[str]) -> list[str]:
    """What these checks of the text as it stands object to, for its writer."""
    latest = (work.last(name) for name in names)
    failed = (check for check in latest if check is not None and check.verdict not in SOUND)
    return [
        f"{check.name.replace('_', ' ')}: {(best and best.reason) or check.reason or 'no'}"
        for check in failed
        for best in [check.best_evidence]
    ]
