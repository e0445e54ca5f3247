"""The JSON of the shared tasks on learning with disagreements (Le-Wi-Di), and MultiPICo in it.

Released as one JSON object a file: id to entry, each with `text` (a text, or an object of texts),
`annotation task`, `annotators` (names with commas between), `annotations` (an object of annotator
to answer, or in the edition of 2023 answers with commas between, in the order of `annotators`),
`split`, `lang`, `other_info`. `hard_label` and `soft_label` are counted from the annotations, so
they are no gold.

MultiPICo (Casola et al., "MultiPICo: Multilingual Perspectivist Irony Corpus"; data set MP of
Le-Wi-Di 2025) has the texts `post` and `reply` and answers 0 and 1: is the reply ironic?
`annotators_meta_LANG.json` beside it holds each annotator's nationality.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from judge.records.base import Item
from judge.records.fields import (
    LabelError,
    answer_of,
    one_of,
    refused,
    slices_of,
    text_of,
)
from judge.records.jsontext import kind_of
from judge.records.labels.items import Annotation, LabelledItem, LabelSet

_BINARY = {"0": "no", "1": "yes"}
_NOT_A_WORD = re.compile(r"[^a-z0-9]+")


class LeWiDi(LabelSet):
    """One item an entry, problems first, without gold.

    The check is the entry's task, as in `irony_detection`, or `label` where it names none. Fields:
    the texts under their own names, or `text`. Where all answers to a check are 0 or 1 they become
    no and yes. Slices: split, lang, and the short facts in `other_info`. A problem names the
    entry, because a file's entries share its line. Holds all entries in memory.
    """

    name = "lewidi"

    def start(self) -> None:
        self._found: list[LabelledItem] = []

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return any(_is_entry(entry) for _, entry in _entries(fields))

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[Item]:
        for id, entry in _entries(fields):
            try:
                one = self._item(item, id, entry)
                self._found.append(replace(one, source=item.source, line=item.line))
            except LabelError as error:
                where = f"entry {id!r}: " if id is not None else ""
                problem = replace(error.problem, message=f"{where}{error.problem.message}")
                own = entry if isinstance(entry, dict) else {str(id): entry}
                yield refused(replace(item, fields=own), problem)

    def rest(self) -> Iterator[LabelledItem]:
        # A scale has 0 and 1 too, so the whole file decides what they mean.
        answers: dict[str, set[str]] = {}
        for item in self._found:
            answers.setdefault(item.check, set()).update(one.answer for one in item.annotations)
        for item in self._found:
            if answers[item.check] <= _BINARY.keys():
                given = (replace(one, answer=_BINARY[one.answer]) for one in item.annotations)
                item = replace(item, annotations=tuple(given))
            yield item

    def describe(
        self, entry: Mapping[str, Any], texts: dict[str, str], info: Mapping[str, Any]
    ) -> tuple[str, dict[str, str], dict[str, str]]:
        """An entry's check, the fields to show, and the slices."""
        task = entry.get("annotation task")
        words = _NOT_A_WORD.sub("_", task.casefold()).strip("_") if isinstance(task, str) else ""
        facts = {key: entry.get(key) for key in ("split", "lang")}
        return words or "label", texts, slices_of({**facts, **info})

    def answer(self, content: object) -> str | None:
        """An annotator's answer; None where there is none."""
        return answer_of(content, "annotations")

    def _item(self, item: Item, id: str | None, entry: Any) -> LabelledItem:
        if not isinstance(entry, dict):
            raise LabelError(f"an entry must be an object, not {kind_of(entry)}")
        texts = entry.get("text")
        shown = {"text": text_of(entry, "text")} if not isinstance(texts, dict) else texts
        info = entry.get("other_info")
        check, fields, slices = self.describe(
            entry,
            {key: text_of(shown, key) for key in shown},
            info if isinstance(info, dict) else {},
        )
        annotations = tuple(
            Annotation(name, answer)
            for name, content in _given(entry).items()
            if (answer := self.answer(content)) is not None
        )
        if not annotations:
            raise LabelError("field 'annotations' holds no answer", "annotations")
        key = next((key for key in entry if key.casefold() == "id"), "id")
        record = self.record(item, entry.get(key) if id is None else id, key)
        return LabelledItem(record, check, fields, annotations=annotations, slices=slices)


class MultiPico(LeWiDi):
    """One `irony` item an entry (yes or no), without gold; problems come first.

    Fields: `post`, `reply`. Slices: language_variety, source. The annotators' group is their
    nationality, where their file is there. Holds all entries in memory.
    """

    name = "multipico"
    checks = ("irony",)
    files = ("MP_*.json*", "*MultiPICo*.json*")
    groups = "annotators_meta*.json*"

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return any(
            _is_entry(entry)
            and isinstance(entry["text"], dict)
            and {"post", "reply"} <= entry["text"].keys()
            for _, entry in _entries(fields)
        )

    def describe(
        self, entry: Mapping[str, Any], texts: dict[str, str], info: Mapping[str, Any]
    ) -> tuple[str, dict[str, str], dict[str, str]]:
        shown = {key: text_of(texts, key) for key in ("post", "reply")}
        return "irony", shown, slices_of({k: info.get(k) for k in ("language_variety", "source")})

    def answer(self, content: object) -> str | None:
        return None if content is None else one_of(content, _BINARY, "annotations")

    def rest(self) -> Iterator[LabelledItem]:
        return iter(self._found)


def _entries(fields: Mapping[str, Any]) -> list[tuple[str | None, Any]]:
    return [(None, fields)] if _is_entry(fields) else list(fields.items())


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and {"text", "annotations"} <= entry.keys()


def _given(entry: Mapping[str, Any]) -> dict[str, Any]:
    given = entry.get("annotations")
    if isinstance(given, str):
        answers = given.split(",")
        names = [name.strip() for name in text_of(entry, "annotators").split(",")]
        if len(names) != len(answers) or len(set(names)) < len(names):
            message = f"field 'annotations' has {len(answers)} answers of {len(names)} annotators"
            raise LabelError(message, "annotations")
        return dict(zip(names, answers, strict=True))
    if not isinstance(given, dict):
        message = f"field 'annotations' must be an object, not {kind_of(given)}"
        raise LabelError(message, "annotations")
    return given
