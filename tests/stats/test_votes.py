"""The majority of votes."""

from __future__ import annotations

import pytest

from judge.errors import UsageError
from judge.stats.agreement import (
    Threshold,
    majority,
)

# ---------------------------------------------------------------- majority


@pytest.mark.parametrize("text", ["most", "0", "1.2", "5/4", "4/0"])
def test_what_is_no_threshold(text: str) -> None:
    with pytest.raises(UsageError, match="majority"):
        Threshold.parse(text)


@pytest.mark.parametrize(
    ("answers", "threshold", "expected"),
    [
        ("yyn", "half", "y"),
        ("yn", "half", None),
        ("", "half", None),
        ("yyyn", "0.75", "y"),
        ("yyn", "0.75", None),
        ("yyynn", "4/5", None),
        ("yyyy", "4/5", "y"),
        ("yyy", "4/5", None),
        ("yyyynn", "4/5", None),
    ],
)
def test_majority(answers: str, threshold: str, expected: str | None) -> None:
    assert majority(answers, Threshold.parse(threshold)) == expected
