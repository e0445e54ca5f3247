"""CALI's lines: pairs rated by people of two countries, and the norms written down beside them.

The released `data.tsv` holds premise, hypothesis, us_ratings and in_ratings, nothing more. What the
diagnostic tasks need besides (CALI 5.2, D.2) was not released; it is read from the same lines, as
JSON lines or in further columns, in a form of our own:

- `norms`: what is the custom, by country: `{"us": "...", "in": "..."}`, one or both of them
- `question`: asks for a custom, with `{country}` where the country's name belongs
- `behavior`: what the norm is about (the rows of table 3)
- `category`: the linguistic phenomenon (the rows of table 4)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from judge.evaluation.rows import Row
from judge.records import Item
from judge.records.fields import ENTAILMENT, LabelError, listed, literal, one_of, text_of
from judge.records.values import clip
from judge.stats.votes import Threshold, majority

GROUPS = ("us", "in")
"""The two groups that rated; ratings, norms and culture indicators go by these names."""

LABEL_SETS = ("all", *GROUPS)
"""The sets of labels of table 2: both groups' ratings together, and each group's own."""

STRONG = Threshold(Fraction(3, 4))
"""Section 3.6: pairs are kept where in one group at least this share gave the same label."""

MORE, LESS, SAME = "more likely true", "less likely true", "does not change"
EFFECTS = (MORE, LESS, SAME)
"""The answers of the inference task (D.2): the norm strengthens, weakens, or changes nothing."""

ENTAIL, NOT_ENTAIL = "entail", "not entail"
"""Section 5.1: a binary classification that treats only entailment as positive."""

FIRST, SECOND, EQUAL = "hypothesis 1", "hypothesis 2", "same"
"""Answers of the choice of plausible alternatives, numbered as the hypotheses are in the file."""

_INDICATED = ("entailment", "percentage", "alternatives")
CONDITIONS = (
    *(f"{task}{more}" for task in _INDICATED for more in ("", "+us", "+in")),
    *("knowledge", "context", "inference"),
)

ENTAILED = "entailment"
_RANK = {"contradiction": 0, "neutral": 1, ENTAILED: 2}
_SCALE = {"1": "contradiction", "2": "neutral", "3": "neutral", "4": "neutral", "5": ENTAILED}


@dataclass(frozen=True)
class Pair:
    """One line. `ratings` are mapped labels by group; None where the line has no such field."""

    id: str
    item: Item
    own: Mapping[str, Any]
    premise: str | None = None
    hypothesis: str | None = None
    question: str | None = None
    ratings: Mapping[str, Sequence[str]] | None = None
    norms: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def labels(self) -> dict[str, str | None]:
        """The majority label of each of LABEL_SETS, None where the ratings diverge (3.6)."""
        rated = self.ratings or {}
        pooled = [label for group in GROUPS for label in rated.get(group, ())]
        return {
            "all": majority(pooled),
            **{group: majority(rated.get(group, ())) for group in GROUPS},
        }

    @property
    def kept(self) -> bool:
        """Whether the paper keeps the pair: one group at least agrees strongly (3.6)."""
        rated = self.ratings or {}
        return any(majority(rated.get(group, ()), STRONG) is not None for group in GROUPS)

    def effect(self, group: str) -> str | None:
        """What this group's norm does to the hypothesis; None where that is not known.

        D.2 takes the difference between the groups' ratings: with its own norm in mind a group
        finds the hypothesis more likely, less likely or as likely as the other group does.
        """
        (other,) = (name for name in GROUPS if name != group)
        order = compared(self.labels[group], self.labels[other])
        return None if order is None else (SAME, MORE, LESS)[order]


def classes_of(task: str) -> tuple[str, ...]:
    """The answers of a task that is answered by a choice."""
    if task == "alternatives":
        return FIRST, SECOND, EQUAL
    return EFFECTS if task == "inference" else (ENTAIL, NOT_ENTAIL)


def compared(first: str | None, second: str | None) -> int | None:
    """1 where the first label holds its hypothesis for likelier than the second label does, -1
    where for less likely, 0 where both are the same; None where one of them diverges."""
    if first is None or second is None:
        return None
    return (_RANK[first] > _RANK[second]) - (_RANK[first] < _RANK[second])


def label_of(rating: object, column: str) -> str:
    """A rating as a label: E, N, C or their words, or 1 to 5.

    On the scale 1 is contradiction, 3 neutral, 5 entailment (3.6). What 2 and 4 stand for depends
    on the annotator, whom the released lists do not name: they are neutral, as for most.

    Raises:
        LabelError: none of these.
    """
    text = str(rating).strip()
    if not isinstance(rating, bool) and text in _SCALE:
        return _SCALE[text]
    return one_of(rating, ENTAILMENT, column)


def pair_of(row: Row) -> Pair:
    """A line of the set.

    Raises:
        LabelError: a field is missing or cannot be read.
    """
    folded = {key.strip().casefold(): content for key, content in row.fields.items()}
    norms = _by_group(folded, "norms")
    content: dict[str, Any]
    if "question" in folded:
        content = {"question": _question(folded, norms)}
    else:
        content = {"premise": text_of(folded, "premise"), **_rated(folded, norms)}
    slices = {name: text_of(folded, name) for name in ("behavior", "category") if folded.get(name)}
    return Pair(row.id, row.item, {**row.own, **slices}, norms=norms, **content)


def _rated(folded: Mapping[str, Any], norms: Mapping[str, str]) -> dict[str, Any]:
    if "hypothesis" not in folded:
        if not norms:
            raise LabelError("field 'hypothesis' is missing, and 'norms' too", "hypothesis")
        return {}
    return {"hypothesis": text_of(folded, "hypothesis"), "ratings": _ratings(folded)}


def _ratings(folded: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    rated = {}
    for group in GROUPS:
        column = f"{group}_ratings"
        if column not in folded:
            raise LabelError(f"field {column!r} is missing", column)
        rated[group] = tuple(label_of(one, column) for one in listed(folded[column], column))
    if not any(rated.values()):
        raise LabelError("fields 'us_ratings' and 'in_ratings' are both empty", "us_ratings")
    return rated


def _question(folded: Mapping[str, Any], norms: Mapping[str, str]) -> str:
    question = text_of(folded, "question")
    if not norms:
        raise LabelError("field 'norms' is missing: it answers the question", "norms")
    if len(norms) > 1 and "{country}" not in question:
        raise LabelError("field 'question' must say {country}: it has two answers", "question")
    return question


def _by_group(folded: Mapping[str, Any], name: str) -> dict[str, str]:
    """The texts under a field that maps countries to texts; none where the field is not there."""
    content = folded.get(name)
    found = literal(content) if isinstance(content, str) and content.strip() else content
    if found is None or found == "":
        return {}
    if not isinstance(found, dict) or not found or not set(found) <= set(GROUPS):
        raise LabelError(
            f"field {name!r} must map us, in or both to a text, not {clip(content)}", name
        )
    return {group: text_of(found, group) for group in GROUPS if group in found}
