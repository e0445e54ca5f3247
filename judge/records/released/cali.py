"""CALI: entailment pairs, each rated by people of two countries.

Released (Huang & Yang, "Culturally Aware Natural Language Inference") as `data.tsv` with a header:
premise, hypothesis, us_ratings, in_ratings. The ratings are lists of E, N and C as Python writes
them, four to eight a country. The workers are not named: `us-1` is whoever stands first in a
pair's list, and need not be the same person in the next pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from judge.records.base import Item
from judge.records.labelled import Annotation, LabelledItem
from judge.records.released.common import (
    ENTAILMENT,
    Form,
    LabelError,
    Labelled,
    Place,
    RecordNames,
    each_line,
    listed,
    one_of,
    text_of,
)

_COLUMNS = {"us_ratings": "us", "in_ratings": "in"}


def read_cali(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """One `entailment` item a row, without gold; the annotations' groups are `us` and `in`.

    Fields: `premise`, `hypothesis`. The record is an `id` where the file has one, else its line.
    """
    with RecordNames() as names:
        yield from each_line(items, partial(_row, names))


def is_cali(fields: Mapping[str, Any]) -> bool:
    """Whether a row is of this set."""
    return {"premise", "hypothesis", *_COLUMNS} <= {key.strip().casefold() for key in fields}


def _row(names: RecordNames, item: Item, row: dict[str, Any]) -> list[LabelledItem]:
    folded = {key.strip().casefold(): content for key, content in row.items()}
    texts = {key: text_of(folded, key) for key in ("premise", "hypothesis")}
    annotations: list[Annotation] = []
    for column, group in _COLUMNS.items():
        if column not in folded:
            raise LabelError(f"field {column!r} is missing", column)
        for number, rating in enumerate(listed(folded[column], column), 1):
            answer = one_of(rating, ENTAILMENT, column)
            annotations.append(Annotation(f"{group}-{number}", answer, group))
    if not annotations:
        raise LabelError("fields 'us_ratings' and 'in_ratings' are both empty", "us_ratings")
    return [
        LabelledItem(
            names.name(item, folded.get("id")),
            "entailment",
            texts,
            annotations=tuple(annotations),
            source=item.source,
            line=item.line,
        )
    ]


FORM = Form("cali", read_cali, is_cali, checks=("entailment",))
