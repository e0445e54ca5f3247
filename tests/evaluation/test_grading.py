from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.errors import BackendError, Denied, UsageError
from judge.evaluation.benchmark import Grader
from judge.evaluation.grading import JudgedGrader
from judge.run.setup import Setup
from judge.settings import resolve

Make = Callable[..., JudgedGrader]
GOLD = ["Sport matters--Agree", "Lying is wrong--Agree"]


def part(value: int, presence: str, *predicted: int) -> dict[str, Any]:
    named = [*predicted]
    return {"value": value, "predicted": named, "reason": f"see {named}", "presence": presence}


@pytest.fixture
def grader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A grader whose judge answers from a script: `grader(entries, setting=...)`."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("JUDGE_")]:
        monkeypatch.delenv(name)

    def make(script: Sequence[dict[str, Any]], **settings: Any) -> JudgedGrader:
        path = tmp_path / "judge.yaml"
        path.write_text(yaml.safe_dump({"replies": list(script)}), "utf-8")
        given = {"model": (f"scripted:{path}",), "cache": False, **settings}
        return JudgedGrader(Setup.of(resolve(given)))

    return make


async def test_credits_reasons_and_places_as_the_caller_counts_them(grader: Make) -> None:
    reply = {"values": [part(1, "fully", 1, 2), part(2, "partially", 2)]}
    judges: Grader = grader([{"when": {"id": "row/ve"}, "reply": reply}])
    # Blank entries are not shown; places are those of the list that was handed in.
    graded = await judges.extraction("row/ve", ["", "Sport", "  ", "Sport\nand lies"], GOLD)
    assert graded.credits == (1.0, 0.5)
    assert graded.named == ((1, 3), (3,))
    assert graded.reasons == ("see [1, 2]", "see [2]")
    assert graded.usage.replies == 1


async def test_votes_that_settle_nothing_are_none(grader: Make) -> None:
    first = [part(1, "fully", 1), part(2, "fully", 1)]
    replies = [
        first,
        [part(1, "fully", 1), part(2, "partially", 1)],
        [part(1, "absent"), part(2, "absent")],
    ]
    script = [{"when": {"vote": n}, "reply": {"values": v}} for n, v in enumerate(replies)]
    graded = await grader(script, votes=3).extraction("a", ["Sport"], GOLD)
    assert graded.credits == (1.0, None)
    assert graded.named == ((0,), ())
    assert graded.usage.replies == 3


async def test_ten_predictions_count(grader: Make) -> None:
    reply = {"values": [part(1, "fully", 10), part(2, "fully", 11)]}
    graded = await grader([{"reply": reply}], reasks=0).extraction("a", ["x"] * 12, GOLD)
    assert graded.credits == (None, None)
    assert graded.reasons == ("no vote could be read",) * 2


async def test_a_judge_without_reply_is_raised_and_no_credit(grader: Make) -> None:
    with pytest.raises(BackendError, match="context-exceeded"):
        await grader([{"error": "context-exceeded"}]).extraction("a", ["Sport"], GOLD)
    with pytest.raises(Denied):
        await grader([{"error": "denied"}]).extraction("a", ["Sport"], GOLD)


async def test_what_cannot_be_graded_is_a_usage_error(grader: Make) -> None:
    with pytest.raises(UsageError, match="a: field 'values' has an empty value"):
        await grader([]).extraction("a", ["Sport"], [" "])
    with pytest.raises(UsageError, match="leave out the check"):
        judges = grader([], rubric=("adherence",), check=("adherence",))
        await judges.extraction("a", ["Sport"], GOLD)
