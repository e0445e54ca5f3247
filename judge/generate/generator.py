"""The contract of a generator: what is drafted, and the workflow that writes and checks it.

A draft is a record with all that its writer needs (a line of the sources, what was drawn for it).
The generator's workflow is a LangGraph state machine like those of `judge validate`, whose nodes
also write: `compose` fills fields of the draft. A draft is kept, or lost at one of the stages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

from judge.judgement import Judgement, verdict_columns
from judge.judging.prompts import LACKS
from judge.questions.replies import NewFields
from judge.questions.rubric import Rubric
from judge.records import Record, mapped
from judge.records.base import LINEAGE, LabelError, normalise, own_id
from judge.records.labels.own import ABOUT_LABELS
from judge.records.words import MIN_WORDS, telling_texts
from judge.run.job import Job
from judge.verdict import LOST, SOUND, last_of_each
from judge.workflows import Work, Workflow

Lost = tuple[str, str]
"""The stage at which a draft was lost, and the cause, such as `fail`, `refused` or `no closing
question`."""


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """The user's options for the drafts.

    Args:
        seed: for all random draws.
        limit: how many drafts at most; None for the generator's default.
        each: drafts for each line of the sources (and label); None for the generator's default.
        own: the generator's own options, by name.
        columns: columns of the sources to rename.
    """

    seed: int = 0
    limit: int | None = None
    each: int | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def listed(self, name: str, usual: Sequence[str] = ()) -> tuple[str, ...]:
        """The words of a comma-separated option; `usual` if it is not given."""
        words = tuple(part.strip() for part in self.own.get(name, "").split(",") if part.strip())
        return words or tuple(usual)


@dataclass(frozen=True, slots=True)
class Roles:
    """Which model takes which step: the models of the writer and the judge, which of the two takes
    steps that differ from the default, and settings for those that the user does not set."""

    writer: str
    judge: str
    steps: Mapping[str, Literal["writer", "judge"]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def given_up(work: Work) -> Lost:
    """The writer's step that failed, and why."""
    stage, _, why = (work.notes or ["the writer gave up: no reply"])[-1].partition(" gave up: ")
    return stage, why.partition(":")[0]


def first_failure(work: Work, judgement: Judgement) -> Lost | None:
    """The writer's step, if it wrote nothing, or the first check that did not pass; else None."""
    if not work.written:
        return given_up(work)
    for check in last_of_each(work.checks):
        if check.verdict not in SOUND:
            reason = (check.reason or "").partition(": ")[0] if check.by == "counting" else ""
            return check.name, reason or str(check.verdict)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """Makes a set of records; found by name through the entry points `judge.generators`.

    Args:
        workflow: writes and checks a draft; its `rewrites` are the writer's rubrics, its `checks`
            those of judges.
        drafts: makes drafts (`draft_of`) from sources (paths, as the user named them), in an order
            that the options determine. An unusable line becomes a Record with a `problem`. Raises
            UsageError for a source or an option that cannot be used.
        stages: where drafts may be lost, in the order of the funnel.
        lost: where a draft was lost; None if it is kept.
        rubrics: its own rubrics, besides those of the package.
        options: its own options, by name, each with what it does.
        roles: assignments of models to steps, by name, such as a paper's.
        text: the field that is compared with those of other records.
        writes: fields of a source line that what is written replaces.
        counted: fields whose values are counted at the end.
        crossed: two of these fields, counted against each other.
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
    writes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    crossed: tuple[str, str] | None = None


# ---------------------------------------------------------------- making drafts


def rows(sources: Sequence[str], options: DraftOptions) -> Iterator[Record]:
    """The lines of the sources (`-` is standard input), with their columns renamed."""
    return mapped(Job(inputs=sources).items(), options.columns)


def draft_of(
    row: Record, set_name: str, seed: int, index: int, fields: Mapping[str, Any]
) -> Record:
    """A draft with these fields, an id of its own and its lineage; without an earlier verdict, and
    without people's labels, which are about the text of the source.

    Args:
        row: the source line that it is made from, its parent.
        index: the draft's number in its set, from 1.
    """
    parent = own_id(row.visible) or f"{row.source}#{row.line}"
    lineage = {"set": set_name, "seed": seed, "index": index, "parent": parent}
    head = {"id": f"{set_name}-{seed}-{index}"}
    earlier = {*verdict_columns(fields), *ABOUT_LABELS, LINEAGE}
    rest = {n: c for n, c in fields.items() if normalise(n) != "id" and n not in earlier}
    return Record(row.source, row.line, {**head, **rest, LINEAGE: lineage}, among=row.among)


Contents = Callable[[Record, int], Iterable[Mapping[str, Any]]]
"""Makes the fields of the drafts for a line, given its place among all lines (from 0). Raises
LabelError for a line without drafts."""


def drafts_of(
    set_name: str, lines: Iterable[Record], options: DraftOptions, contents: Contents
) -> Iterator[Record]:
    """The drafts for each line, numbered; an unusable line is yielded with its problem."""
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
    """Have a writer fill fields of a draft, or rewrite them; the draft becomes a record of `kind`.

    Args:
        findings: what is wrong with the previous version.

    Returns:
        False, with a note, if no reply was valid, or it copies an example of the prompt; the
        previous version is kept.

    Raises:
        BackendError: the model gave no reply at all.
    """
    work.round += work.written
    texts = await work.ask_rewriter(rubric, reply, findings=findings)
    if texts is None:
        return False
    if _copied(work.context.rewriters[rubric].rubric, written := texts.model_dump()):
        work.give_up(rubric, "copied: most of it is an example of the prompt, word for word")
        return False
    work.wrote(written, kind)
    return True


def _copied(rubric: Rubric, written: Mapping[str, Any]) -> bool:
    """Whether more than half of the words are those of texts in one of the prompt's examples, which
    weak models repeat. If no text has `MIN_WORDS`, all of them must be the example's."""
    texts = {text: len(text.split()) for text in telling_texts(written)}
    long = max(texts.values(), default=0) >= MIN_WORDS
    for example in rubric.examples:
        known = texts.keys() & telling_texts(json.loads(example.reply))
        if known == texts.keys() or (
            long and 2 * sum(texts[text] for text in known) > sum(texts.values())
        ):
            return True
    return False


def objections(work: Work, names: Sequence[str]) -> list[str]:
    """The objections of these checks to the current text, for its writer; none of a check that
    could not be asked, or got no reply that can be read, which another text does not change."""
    latest = (work.last(name) for name in names)
    settled = (*SOUND, *LOST)
    failed = (check for check in latest if check is not None and check.verdict not in settled)
    failed = (check for check in failed if not (check.reason or "").startswith(LACKS))
    return [
        f"{check.name.replace('_', ' ')}: {(best and best.reason) or check.reason or 'no'}"
        for check in failed
        for best in [check.best_evidence]
    ]
