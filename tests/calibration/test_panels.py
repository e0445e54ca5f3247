"""A panel beside its judges."""

from __future__ import annotations

import json
import random

import pytest

from judge.calibration.observations import Judged
from judge.calibration.report import panel_measures

from .judgements import judged


def answers(said: str, gold: str) -> list[Judged]:
    """One letter an item: y, n, or - for no answer; gold ? is none."""
    words = {"y": "yes", "n": "no", "-": None, "?": None}
    return [
        judged(f"r{number}", words[letter], words[true])
        for number, (letter, true) in enumerate(zip(said, gold, strict=True))
    ]


def test_by_hand() -> None:
    gold = "yyynnn?y"
    judges = {"a": answers("yynnnnyy", gold), "b": answers("nyynyny-", gold)}
    found = panel_measures(answers("yyynnnyy", gold), judges)
    assert found is not None
    assert found.judges == ("a", "b")
    assert (found.panel.value, found.panel.n, found.panel.of) == (1.0, 6, 7)
    assert (found.best, found.single.value) == ("a", pytest.approx(5 / 6))
    assert found.difference.value == pytest.approx(1 / 6)
    # Errors (0 0 1 0 0 0) and (1 0 0 0 1 0): correlation -2 / sqrt(5 * 8).
    assert found.effective_votes.value == pytest.approx(2 / (1 - 2 / 40**0.5))
    json.dumps(found.as_json(), allow_nan=False)


def test_three_independent_judges_beat_one() -> None:
    rng = random.Random(0)
    gold = [rng.choice("yn") for _ in range(400)]
    said = [
        [true if rng.random() < 0.75 else ("n" if true == "y" else "y") for true in gold]
        for _ in range(3)
    ]
    majority = ["y" if votes.count("y") > 1 else "n" for votes in zip(*said, strict=True)]
    found = panel_measures(
        answers("".join(majority), "".join(gold)),
        {str(number): answers("".join(row), "".join(gold)) for number, row in enumerate(said)},
        draws=200,
    )
    assert found is not None
    assert found.difference.low is not None and found.difference.low > 0
    assert found.effective_votes.value == pytest.approx(3, abs=0.6)


def test_nothing_in_common_and_errors() -> None:
    assert panel_measures(answers("y", "?"), {"a": answers("y", "?")}) is None
    with pytest.raises(ValueError, match="judge a was given other items"):
        panel_measures(answers("y", "y"), {"a": answers("yy", "yy")})
    with pytest.raises(ValueError, match="at least one judge"):
        panel_measures(answers("y", "y"), {})
