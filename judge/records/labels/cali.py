"""CALI: entailment pairs, each rated by people of two countries.

Released (Huang & Yang, "Culturally Aware Natural Language Inference") as `data.tsv` with a header:
premise, hypothesis, us_ratings, in_ratings. The ratings are lists of E, N and C as Python writes
them, four to eight a country. The workers are not named: `us-1` is the first of a pair's list,
and need not be the same person in the next pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.records.base import Item
from judge.records.fields import ENTAILMENT, LabelError, listed, one_of, text_of
from judge.records.labels.items import Annotation, LabelledItem, LabelSet

_COLUMNS = {"us_ratings": "us", "in_ratings": "in"}


class Cali(LabelSet):
    """One `entailment` item a row, without gold; the annotators' groups are `us` and `in`.

    Fields: `premise`, `hypothesis`. The record is an `id` where the file has one, else its line.
    """

    name = "cali"
    checks = ("entailment",)

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return {"premise", "hypothesis", *_COLUMNS} <= {key.strip().casefold() for key in fields}

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        row = {key.strip().casefold(): content for key, content in fields.items()}
        texts = {key: text_of(row, key) for key in ("premise", "hypothesis")}
        annotations: list[Annotation] = []
        for column, group in _COLUMNS.items():
            if column not in row:
                raise LabelError(f"field {column!r} is missing", column)
            for number, rating in enumerate(listed(row[column], column), 1):
                answer = one_of(rating, ENTAILMENT, column)
                annotations.append(Annotation(f"{group}-{number}", answer, group))
        if not annotations:
            raise LabelError("fields 'us_ratings' and 'in_ratings' are both empty", "us_ratings")
        record = self.record(item, row.get("id"))
        yield LabelledItem(record, "entailment", texts, annotations=tuple(annotations))
