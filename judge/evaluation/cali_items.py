"""CALI's questions: which line is asked what, in which condition, and what is right there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from judge.errors import UsageError
from judge.evaluation.benchmark import Choices
from judge.evaluation.cali_rows import GROUPS, LABEL_SETS, Row, compared, read_rows
from judge.records import RESERVED, Item
from judge.stats.annotators import ENTAILMENT

ENTAIL, NOT_ENTAIL = "entail", "not entail"
"""Section 5.1: a binary classification that treats only entailment as positive."""

FIRST, SECOND, EQUAL = "hypothesis 1", "hypothesis 2", "same"
ALTERNATIVES = (FIRST, SECOND, EQUAL)
"""Answers of the choice of plausible alternatives, numbered as the hypotheses are in the file."""

_INDICATED = ("entailment", "percentage", "alternatives")
CONDITIONS = (
    *(f"{task}{more}" for task in _INDICATED for more in ("", "+us", "+in")),
    "knowledge",
    "context",
    "inference",
)

_NEEDS = {
    "entailment": "premise, hypothesis and ratings",
    "percentage": "premise, hypothesis and ratings",
    "alternatives": "a premise, hypothesis and ratings, with another hypothesis to the premise",
    "knowledge": "question and norms",
    "context": "premise and norms",
    "inference": "premise, hypothesis, norms, and ratings or effect",
}


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """One item a question. A line is asked in every condition that it has the fields for.

    Beside the line's own fields each item has `row`, the name of its premise (of its question in
    the knowledge task), because what is asked about one premise is drawn together; `pair`, the
    line's own name; `country`, whose culture is indicated or asked about, or None; `kept`, whether
    the paper keeps the pair; and `gold_all`, `gold_us`, `gold_in` (None where raters diverge), of
    which `gold` is the one that the indicator names, else `gold_all`.

    Raises:
        UsageError: as `read_rows`, and where no line can be asked in one of the conditions.
    """
    found = list(read_rows(sources))
    made = _Maker([one for one in found if isinstance(one, Row)], choices)
    asked = [[one] if isinstance(one, Item) else list(made.of(one)) for one in found]
    if made.rows:
        for condition in choices.conditions:
            if condition not in made.counts:
                needs = _NEEDS[condition.partition("+")[0]]
                told = f"no line can be asked in {condition!r}, which takes {needs}"
                raise UsageError(f"{told}: name other conditions")
    return (item for some in asked for item in some)


class _Maker:
    """Makes the items of each line, knowing all lines: hypotheses and norms of one premise."""

    def __init__(self, rows: Sequence[Row], choices: Choices) -> None:
        self.rows = rows
        self.counts: dict[str, int] = defaultdict(int)
        self._choices = choices
        self._premise: dict[str, str] = {}
        self._norms: dict[str, list[str]] = defaultdict(list)
        self._earlier: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row.premise is not None:
                self._premise.setdefault(row.premise, row.place.id)
                known = self._norms[row.premise]
                known.extend(text for text in row.norms.values() if text not in known)

    def of(self, row: Row) -> Iterator[Item]:
        """The items of a line, by condition; pairs of hypotheses come with the later of the two."""
        for condition in self._choices.conditions:
            task, _, indicated = condition.partition("+")
            for name, fields in self._asked(task, row, indicated):
                self.counts[condition] += 1
                yield self._item(row, condition, name, fields)
        if row.premise is not None and row.ratings is not None:
            self._earlier[row.premise].append(row)

    def _item(self, row: Row, condition: str, name: str, fields: Mapping[str, Any]) -> Item:
        item = row.place.item
        own = {key: content for key, content in (item.fields or {}).items() if key != RESERVED}
        told = {
            **own,
            "id": f"{name}/{condition}",
            "condition": condition,
            "row": self._premise.get(row.premise or "", row.place.id),
            "pair": row.place.id,
            **row.slices,
            **fields,
        }
        return Item(item.source, item.line, told)

    def _asked(self, task: str, row: Row, indicated: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if task == "knowledge":
            yield from _knowledge(row)
        elif task == "context":
            if row.premise is not None and self._premise[row.premise] == row.place.id:
                yield from _context(row, self._norms[row.premise])
        elif task == "inference":
            yield from _inference(row)
        elif task == "alternatives":
            for earlier in self._earlier[row.premise or ""]:
                yield from self._alternatives(earlier, row, indicated)
        elif row.ratings is not None:
            yield (
                row.place.id,
                {**_texts(row), **_golds(_entailments(row), indicated), "kept": row.kept},
            )

    def _alternatives(
        self, first: Row, second: Row, indicated: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Two hypotheses of one premise, shown in an order drawn by the seed."""
        if second.ratings is None or first.hypothesis == second.hypothesis:
            return
        name = f"{first.place.id}+{second.place.id}"
        golds = {}
        for labels in LABEL_SETS:
            order = compared(first.labels[labels], second.labels[labels])
            golds[labels] = None if order is None else (EQUAL, FIRST, SECOND)[order]
        yield (
            name,
            {
                "premise": first.premise,
                "hypotheses": [first.hypothesis, second.hypothesis],
                "swapped": Random(f"{self._choices.seed}/{name}").random() < 0.5,
                **_golds(golds, indicated),
                "kept": first.kept and second.kept,
            },
        )


def _texts(row: Row) -> dict[str, Any]:
    return {"premise": row.premise, "hypothesis": row.hypothesis}


def _entailments(row: Row) -> dict[str, str | None]:
    return {
        name: None if label is None else (ENTAIL if label == ENTAILMENT else NOT_ENTAIL)
        for name, label in row.labels.items()
    }


def _golds(golds: Mapping[str, str | None], indicated: str) -> dict[str, Any]:
    return {
        "country": indicated or None,
        **{f"gold_{name}": gold for name, gold in golds.items()},
        "gold": golds[indicated or "all"],
    }


def _knowledge(row: Row) -> Iterator[tuple[str, dict[str, Any]]]:
    if row.question is not None:
        for group, norm in row.norms.items():
            yield (
                f"{row.place.id}/{group}",
                {"question": row.question, "country": group, "gold": norm},
            )


def _context(row: Row, norms: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    if norms:
        yield row.place.id, {"premise": row.premise, "country": None, "gold": list(norms)}


def _inference(row: Row) -> Iterator[tuple[str, dict[str, Any]]]:
    if row.hypothesis is None:
        return
    for group in GROUPS:
        if group in row.norms and (row.ratings is not None or group in row.effects):
            told = {"norm": row.norms[group], "country": group, "gold": row.effect(group)}
            yield f"{row.place.id}/{group}", {**_texts(row), **told}
