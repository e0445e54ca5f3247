"""Measures by slice and by group of annotators."""

from __future__ import annotations

import pytest

from judge.calibration.measures import ABSENT, ANNOTATOR_GROUP, by_slice, measure
from judge.errors import UsageError

from .judgements import judged

YES_NO = ["yes", "no"]
ITEMS = [
    judged("a", "yes", "yes", slices={"country": "egypt"}, fields={"axis": 1}, source="x.csv"),
    judged("b", "no", "yes", slices={"country": "egypt"}, fields={"axis": 2}, source="x.csv"),
    judged("c", "no", "no", slices={"country": "japan"}, fields={"axis": 2, "tags": ["t"]}),
    judged("d", "no", "no", fields={"axis": 2}),
]


def test_by_slice_field_and_source() -> None:
    by_country = by_slice(ITEMS, "country", YES_NO)
    assert {name: (found.accuracy.value, found.items) for name, found in by_country.items()} == {
        ABSENT: (1.0, 1),
        "egypt": (0.5, 2),
        "japan": (1.0, 1),
    }
    assert by_country["egypt"] == measure(ITEMS[:2], YES_NO)
    assert [found.items for found in by_slice(ITEMS, "axis", YES_NO).values()] == [1, 3]
    assert list(by_slice(ITEMS, "tags", YES_NO)) == [ABSENT, '["t"]']
    assert list(by_slice(ITEMS, "source", YES_NO)) == [ABSENT, "x.csv"]


def test_unknown_field() -> None:
    with pytest.raises(UsageError, match=r"no item has 'region'.*axis, country, tags"):
        by_slice(ITEMS, "region", YES_NO)
    with pytest.raises(UsageError, match=ANNOTATOR_GROUP):
        by_slice(ITEMS, ANNOTATOR_GROUP, YES_NO)
    assert by_slice([], "region", YES_NO) == {}


def test_groups_are_held_against_their_own_majority() -> None:
    people = [("p", "yes", "us"), ("q", "yes", "us"), ("r", "no", "in"), ("s", "no"), ("t", "no")]
    items = [
        judged("a", "yes", "no", people=people),
        judged("b", "no", people=[("p", "yes", "us"), ("q", "no", "us"), ("r", "no", "in")]),
    ]
    found = by_slice(items, ANNOTATOR_GROUP, YES_NO)
    assert list(found) == ["in", "us"]
    assert (found["us"].accuracy.value, found["us"].items) == (1.0, 1)
    # The two of the group are divided on b: it has no reference there.
    assert found["us"].without_reference == 1
    assert (found["in"].accuracy.value, found["in"].items) == (0.5, 2)
