"""The JSON of the shared tasks on learning with disagreements (Le-Wi-Di).

Released as one JSON object a file: id to entry, each with `text` (a text, or an object of texts),
`annotation task`, `annotators` (names with commas between), `annotations` (an object of annotator
to answer, or in the edition of 2023 answers with commas between, in the order of `annotators`),
`split`, `lang`, `other_info`. `hard_label` and `soft_label` are counted from the annotations, so
they are no gold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from judge.records.base import Item
from judge.records.jsontext import kind_of
from judge.records.labelled import Annotation, LabelledItem
from judge.records.released.common import (
    Form,
    LabelError,
    Labelled,
    Place,
    RecordNames,
    answer_of,
    one_of,
    refused,
    slices_of,
    text_of,
)

_BINARY = {"0": "no", "1": "yes"}
_NOT_A_WORD = re.compile(r"[^a-z0-9]+")
_TASK = "annotation task"

_Texts = dict[str, str]


@dataclass(frozen=True, slots=True)
class Shape:
    """How the entries of one set become items.

    `describe` gives from an entry and its texts the fields to show and the slices; `check` is None
    where each entry names its task; where `binary`, every answer must be 0 or 1.
    """

    describe: Callable[[Mapping[str, Any], _Texts], tuple[_Texts, _Texts]]
    check: str | None = None
    binary: bool = False


def read_lewidi(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """One item an entry, problems first, without gold.

    The check is the entry's task, as in `irony_detection`, or `label` where it names none. Fields:
    the texts under their own names, or `text`. Answers are as they stand; where all answers to a
    check are 0 or 1 they become no and yes. Slices: split, lang, and the short facts in
    `other_info`. A problem names the entry, because a file's entries share its line. Holds all
    entries in memory.
    """
    return read_entries(items, Shape(_described))


def is_lewidi(fields: Mapping[str, Any]) -> bool:
    """Whether an object is an entry, or holds entries."""
    return any(_is_entry(entry) for _, entry in _entries(fields))


def read_entries(items: Iterable[Item], shape: Shape) -> Iterator[Labelled]:
    """`read_lewidi` for a set of that shape."""
    found: list[LabelledItem] = []
    with RecordNames() as names:
        for item in items:
            if item.problem is not None or item.fields is None:
                yield item
                continue
            for id, entry in _entries(item.fields):
                try:
                    found.append(_entry(names, item, id, entry, shape))
                except LabelError as error:
                    where = f"entry {id!r}: " if id is not None else ""
                    problem = replace(error.problem, message=f"{where}{error.problem.message}")
                    one = replace(
                        item, fields=entry if isinstance(entry, dict) else {str(id): entry}
                    )
                    yield refused(one, problem)
    yield from found if shape.binary else _folded(found)


def entries(fields: Mapping[str, Any]) -> list[Any]:
    """The entries that a line's fields are or hold."""
    return [entry for _, entry in _entries(fields)]


def _entries(fields: Mapping[str, Any]) -> list[tuple[str | None, Any]]:
    return [(None, fields)] if _is_entry(fields) else list(fields.items())


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and {"text", "annotations"} <= entry.keys()


def _entry(
    names: RecordNames, item: Item, id: str | None, entry: Any, shape: Shape
) -> LabelledItem:
    if not isinstance(entry, dict):
        raise LabelError(f"an entry must be an object, not {kind_of(entry)}")
    fields, slices = shape.describe(entry, _texts(entry))
    annotations = _annotations(entry, binary=shape.binary)
    key = next((key for key in entry if key.casefold() == "id"), "id")
    return LabelledItem(
        names.name(item, entry.get(key) if id is None else id, key),
        shape.check or _check(entry.get(_TASK)),
        fields,
        annotations=annotations,
        slices=slices,
        source=item.source,
        line=item.line,
    )


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    texts = entry.get("text")
    if not isinstance(texts, dict):
        return {"text": text_of(entry, "text")}
    return {key: text_of(texts, key) for key in texts}


def _annotations(entry: Mapping[str, Any], *, binary: bool) -> tuple[Annotation, ...]:
    given = entry.get("annotations")
    if isinstance(given, str):
        answers = given.split(",")
        names = [name.strip() for name in text_of(entry, "annotators").split(",")]
        if len(names) != len(answers) or len(set(names)) < len(names):
            message = f"field 'annotations' has {len(answers)} answers of {len(names)} annotators"
            raise LabelError(message, "annotations")
        given = dict(zip(names, answers, strict=True))
    if not isinstance(given, dict):
        message = f"field 'annotations' must be an object, not {kind_of(given)}"
        raise LabelError(message, "annotations")
    found = tuple(
        Annotation(name, one_of(answer, _BINARY, "annotations") if binary else answer)
        for name, content in given.items()
        if (answer := answer_of(content, "annotations")) is not None
    )
    if not found:
        raise LabelError("field 'annotations' holds no answer", "annotations")
    return found


def _check(task: object) -> str:
    words = _NOT_A_WORD.sub("_", task.casefold()).strip("_") if isinstance(task, str) else ""
    return words or "label"


def _described(entry: Mapping[str, Any], texts: _Texts) -> tuple[_Texts, _Texts]:
    info = entry.get("other_info")
    facts = {key: entry.get(key) for key in ("split", "lang")}
    return texts, slices_of({**facts, **(info if isinstance(info, dict) else {})})


def _folded(found: list[LabelledItem]) -> Iterator[LabelledItem]:
    """The items, with no and yes for 0 and 1 where a check has no other answers.

    A scale has 0 and 1 too, so that the whole file decides.
    """
    answers: dict[str, set[str]] = {}
    for item in found:
        answers.setdefault(item.check, set()).update(one.answer for one in item.annotations)
    for item in found:
        if answers[item.check] <= _BINARY.keys():
            given = (replace(one, answer=_BINARY[one.answer]) for one in item.annotations)
            item = replace(item, annotations=tuple(given))
        yield item


FORM = Form("lewidi", read_lewidi, is_lewidi)
