"""Flips and position effects of a judge."""

from __future__ import annotations

import json

from judge.calibration.report import stability

from .judgements import judged


def test_seeds_and_orders() -> None:
    items = [
        judged("a", "1", repeats=("1", "1"), swapped="2"),
        judged("b", "2", repeats=("1", None), swapped="2"),
        judged("c", "2"),
        judged("d", None, outcome="unreadable", repeats=("1",)),
    ]
    found = stability(items, ["1", "2"])
    assert found.flips.value == (0 + 1 + 1) / 3
    assert (found.flips.n, found.flips.of) == (3, 4)
    assert found.position is not None
    assert found.position.changed.value == found.position.first.value == 0.5
    assert (found.position.last.value, found.position.last.n) == (0, 2)
    json.dumps(found.as_json(), allow_nan=False)


def test_asked_once() -> None:
    found = stability([judged("a", "yes"), judged("b", None)], ["yes", "no"])
    assert found.flips.value is None
    assert found.position is None
