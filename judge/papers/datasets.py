"""Data sets made from records, verdicts and labels, without a model (`judge build`).

Each has one line for each story, answer or record, in the form in which the papers' sets are
released. Everything left out is returned with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

from judge.errors import UsageError
from judge.graphs.values import Value
from judge.papers.cali import HYPOTHESES, groups_of, pair_of, ratings_in
from judge.papers.cqbench_stories import (
    PARTS,
    Story,
    ValueList,
    category_of,
    judgement_of,
    key_of,
    selection,
    story_of,
    values_and_stories,
)
from judge.papers.culturalbench_questions import (
    LETTERS,
    OPTIONS,
    QUESTION,
    options_of,
    question_of,
)
from judge.papers.rows import REJECTED, each_row, own_slices
from judge.records import RESERVED, Problem, Record
from judge.records.answers import OWN_ANSWERS, SEVERAL, scalar_text, spelling
from judge.records.base import clip, own_fields
from judge.records.fields import LabelError, answer_of, listed, object_of, text_of
from judge.records.kinds import normalised
from judge.verdict import SOUND, Verdict, last_of_each

BY_VALUE = ("incorporation", "consistency")
"""Checks on single values of a story: if one fails, the value is left out, not the story."""

Made = Iterator[dict[str, Any] | Record]
"""Lines of a set, and items with the problem that leaves them out, in the order of the rows. The
problem's type is `REJECTED` if a rule of the set leaves them out."""


def _left_out(row: Record, value: Value, reason: str) -> Record:
    """The row with the problem that leaves one value of its story out."""
    return replace(row, problem=Problem(f"{value.display}: {reason}", "values", REJECTED))


OfStory = Callable[[Record, Story, ValueList, int], Made]


def _of_stories(of_story: OfStory, sources: Sequence[str], seed: int) -> Made:
    value_list, stories = values_and_stories(sources)
    assert value_list is not None, "a value file is needed"
    values = value_list

    def of_row(row: Record) -> Made:
        story = story_of(row)
        for check in last_of_each(story.judged.checks) if story.judged is not None else ():
            if check.name not in BY_VALUE and check.verdict not in SOUND:
                raise LabelError(f"{check.name}: {check.verdict}", RESERVED, REJECTED)
        for value in story.absent:
            yield _left_out(row, value, "the story does not carry it")
        yield from of_story(row, story, values, seed)

    return each_row(stories, of_row)


def _attitude_detection(row: Record, story: Story, values: ValueList, seed: int) -> Made:
    """A story with a question for each value that no character contradicts (2.2, A.3)."""
    against = set(map(key_of, story.contradicted))
    questions: list[dict[str, Any]] = []
    for number, value in enumerate(story.values, 1):
        if key_of(value) in against:
            yield _left_out(row, value, "a character contradicts it")
            continue
        try:
            statement, attitude = values.pair(value)
        except LabelError as error:
            yield replace(row, problem=error.problem)
            continue
        question = {"value": statement.text, "options": list(statement.options)}
        head = {"number": number, "name": value.character}
        questions.append({**head, **question, "gold label": attitude})
    if not questions:
        raise LabelError("no value is left to ask about", "values", REJECTED)
    yield {**_about(row, story, values), "story": story.text, "questions": questions}


def _about(row: Record, story: Story, values: ValueList) -> dict[str, Any]:
    """A story's id, its category and what else results can be sliced by."""
    setting = {"setting": category} if (category := category_of(story, values)) else {}
    return {"id": row.id, **own_slices(row, PARTS), **setting}


def _value_selection(row: Record, story: Story, values: ValueList, seed: int) -> Made:
    """A story with 15 values to choose from, drawn by the seed and the row's name (2.2)."""
    if story.multiple:
        message = "in the multiple setting there is attitude detection alone"
        raise LabelError(message, "values", REJECTED)
    pairs = map(values.pair, story.values)
    gold = [(statement.text, attitude) for statement, attitude in pairs]
    question = selection(values, story, gold, f"{seed}/{row.id}")
    yield {
        **_about(row, story, values),
        "story": story.text,
        "options": question["options"],
        "values": question["gold"],
    }


def _refuse_unsound(row: Record) -> None:
    """Raise LabelError for a judged record that did not pass."""
    judgement = judgement_of(row)
    if judgement is not None and judgement.verdict is not Verdict.PASS:
        why = f": {judgement.reason}" if judgement.reason else ""
        raise LabelError(f"{judgement.verdict}{why}", RESERVED, REJECTED)


_PAIR_PARTS = (
    *HYPOTHESES,
    "hypothesis",
    "hypothesis_tasks",
    "premise",
    "premise_task",
    "inference",
)


def _pairs(row: Record) -> Made:
    """A premise with each of its three hypotheses, as `judge generate pairs` wrote them."""
    _refuse_unsound(row)
    fields = row.visible
    script: dict[str, Any] = {
        **own_slices(row, _PAIR_PARTS),
        **{name: fields[name] for name in ("behaviour", "location", "cluster") if name in fields},
    }
    kinds = listed(fields.get("inference", []), "inference")
    if kinds and len(kinds) != len(HYPOTHESES):
        message = f"field 'inference' has {len(kinds)} kinds for {len(HYPOTHESES)} hypotheses"
        raise LabelError(message, "inference")
    for number, (name, kind) in enumerate(zip_longest(HYPOTHESES, kinds), 1):
        texts = {"premise": text_of(fields, "premise"), "hypothesis": text_of(fields, name)}
        yield {"id": f"{row.id}/{number}", **texts, "inference": kind, **script}


_EASY_PARTS = (QUESTION, *OPTIONS, "answer", "question_idx", "data_idx", "scenario")


def _easy(row: Record, seed: int) -> Made:
    """A question with the answers that have people's majority (CulturalBench, 3.3). With one answer
    it keeps its options; with several each option becomes a statement, and the options are
    combinations of these."""
    _refuse_unsound(row)
    labels = object_of(row.visible.get("labels"), "labels")
    if len(labels) != 1:
        raise LabelError("field 'labels' must hold the majority of one check", "labels")
    (majority,) = labels.values()
    if majority is None:
        raise LabelError("no answer has a majority", "labels", REJECTED)
    question = options_of(row.visible)
    texts = {spelling(name): letter for letter, name in zip(LETTERS, question.options, strict=True)}
    letters = {spelling(letter): letter for letter in LETTERS}
    parts = [spelling(part) for part in str(majority).split(SEVERAL)]
    named = [{names[part] for names in (texts, letters) if part in names} for part in parts]
    if not all(named):
        message = f"field 'labels': {clip(majority)} names no options, neither letters nor texts"
        raise LabelError(message, "labels")
    if any(len(letters_of_part) > 1 for letters_of_part in named):
        # Of blood types, say.
        message = f"field 'labels': {clip(majority)} is one option's letter and another's text"
        raise LabelError(message, "labels")
    right = sorted({letter for (letter,) in named})
    several = len(right) > 1
    easy = question.with_several(right, f"{seed}/{row.id}") if several else question
    gold = easy.gold if several else right[0]
    options = dict(zip(OPTIONS, easy.options, strict=True))
    fields = {"question_idx": row.id, QUESTION: easy.text, **options, "answer": gold}
    yield {**fields, **own_slices(row, _EASY_PARTS)}


def _hard(row: Record) -> Made:
    """Each answer of an Easy question as a question of its own, true or false (3.3)."""
    _refuse_unsound(row)
    hard = question_of(row.visible).hard()
    columns = own_slices(row, _EASY_PARTS)
    for number, (option, true) in enumerate(zip(hard["options"], hard["gold"], strict=True), 1):
        yield {
            "id": f"{row.id}/{number}",
            "question_idx": row.id,
            "prompt_question": hard["question"],
            "prompt_option": option,
            "answer": true,
            **columns,
        }


def _filtered(sources: Sequence[str], seed: int) -> Made:
    """Records that passed, whose labels have a majority, and whose raters, if any, agree strongly
    (CALI, 3.6)."""
    # The first lines of a pipe cannot be read ahead: there each row has its own groups.
    groups = groups_of(sources) if sources[0] != "-" else ()

    def of_row(row: Record) -> Made:
        judgement = judgement_of(row)
        raters = tuple(ratings_in(row.visible))
        rated = bool(raters) and "premise" in normalised(row.visible)
        labels = row.visible.get("labels")
        labels = labels if isinstance(labels, dict) else {}
        if judgement is None and not rated and not labels:
            message = (
                "it has no verdict (judge validate), no labels (judge agreement -o), no ratings"
            )
            raise LabelError(message)
        for check, label in ({} if rated else labels).items():
            if label is None or (isinstance(label, list) and None in label):
                raise LabelError(f"{check}: people diverge", "labels", REJECTED)
            if isinstance(label, dict) and not _unanimous(label.values()):
                message = f"field 'labels': {check} has several answers, not a majority"
                raise LabelError(f"{message}: judge agreement -o", "labels")
        _refuse_unsound(row)
        if rated and not pair_of(row, groups or raters).kept:
            raise LabelError("in no group do 75% of the raters agree", None, REJECTED)
        yield own_fields(row.visible)

    return each_row(sources, of_row)


def _unanimous(answers: Iterable[Any]) -> bool:
    """Whether people gave one answer (a list: one to each value), in whatever spelling."""
    parts = [answer if isinstance(answer, list) else [answer] for answer in answers]
    spelt = {tuple(answer_of(part, "labels") for part in of_person) for of_person in parts}
    return len(spelt) == 1 and not {None, *OWN_ANSWERS} & {*next(iter(spelt))}


def largest(lines: Made, count: int, field: str) -> Made:
    """The lines of a set with the `count` most frequent contents of a field, such as the largest
    clusters of behaviours (CALI, 5.1); of equally frequent ones the first.

    Raises:
        UsageError: no line has the field.
    """
    made = [*lines]
    names = [scalar_text(one.get(field)) if isinstance(one, dict) else None for one in made]
    sizes = Counter(filter(None, names))
    if not sizes:
        raise UsageError(f"--largest: no line has a field {field}")
    kept = {name for name, _ in sizes.most_common(count)}
    for one, name in zip(made, names, strict=True):
        if isinstance(one, dict) and name not in kept:
            why = f"{field} {clip(name)} is none of the {count} largest"
            yield Record("", 0, one, problem=Problem(why, field, REJECTED))
        else:
            yield one


Build = Callable[[Sequence[str], int], Made]
"""Makes a set from sources and a seed; raises UsageError for sources that cannot be used."""

DATASETS: Mapping[str, tuple[str, Build]] = {
    "attitude-detection": (
        "CQ-Bench: a story's questions, each value's attitudes; from stories and a value file",
        partial(_of_stories, _attitude_detection),
    ),
    "value-selection": (
        "CQ-Bench: a story and 15 values to choose from; from stories and a value file",
        partial(_of_stories, _value_selection),
    ),
    "pairs": (
        "CALI: each hypothesis with its premise; from what judge generate pairs wrote",
        lambda sources, seed: each_row(sources, _pairs),
    ),
    "culturalbench-easy": (
        "CulturalBench: questions on which people agree, one or several answers; from majorities",
        lambda sources, seed: each_row(sources, lambda row: _easy(row, seed)),
    ),
    "culturalbench-hard": (
        "CulturalBench: each answer alone, true or false; from rows of the Easy file",
        lambda sources, seed: each_row(sources, _hard, "question_idx"),
    ),
    "filtered": (
        "Records that passed, and those with people's majorities; of rated pairs those on which "
        "one group agrees by 75%, as in CALI",
        _filtered,
    ),
}
"""The data sets by name: a title, and the function that builds it."""
