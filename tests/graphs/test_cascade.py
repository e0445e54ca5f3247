"""The cheap judge keeps what it is sure of; the panel is asked about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from judge.judging.answer_reader import AnswerReader
from judge.judging.judge import Judge
from judge.judging.panel import Panel
from judge.questions.ready_made import builtin
from judge.verdict import Check, Verdict

from .conftest import Entry, entry
from .test_majority import SUBJECT, VALUES, Models, models

__all__ = ["models"]  # the fixture
ONE, TWO = (value.text for value in VALUES)
FOUND = [{"character": "Bo", "quote": "Bo left the room."}]


def chances(*p: float) -> list[Entry]:
    """How likely the cheap judge finds it that somebody is against each value, which fails."""
    words = [{"against": one, "neither": 1 - one} for one in p]
    return [entry(words=said, contains=v.text) for said, v in zip(words, VALUES, strict=True)]


def reply(*numbers: int, against: tuple[int, ...] = ()) -> dict[str, Any]:
    return {
        "values": [
            {"value": n, "reason": "", "speeches": FOUND if n in against else []} for n in numbers
        ]
    }


async def cascade(
    models: Models, cheap: list[Entry], strong: list[Entry], margin: float = 0.3, **panel: Any
) -> tuple[Check, int]:
    """The consistency check, and how often the strong judge was asked."""
    rubric, client = builtin()["consistency"], models.client(*strong)
    screen = Judge(
        rubric, models.client(*cheap, name="b"), "logprobs", reader=AnswerReader(margin=margin)
    )
    asked = Panel(rubric, (Judge(rubric, client, "structured"),), cheap=screen, **panel)
    check = await asked.check(SUBJECT, by="loop")
    return check, client.counters.calls


async def test_what_the_cheap_judge_is_sure_of_never_reaches_the_panel(models: Models) -> None:
    check, calls = await cascade(models, chances(0.1, 0.9), [], votes=3)
    assert calls == 0
    assert check.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.FAIL}
    assert [(v.model, v.verdict) for v in check.votes] == [("scripted:b", Verdict.FAIL)]
    assert check.probability == pytest.approx(0.1)
    assert [(f.value, f.verdict) for f in check.supporting_evidence()] == [
        (VALUES[0].text, Verdict.PASS),
        (VALUES[1].text, Verdict.FAIL),
    ]
    assert check.usage.replies == 2


async def test_only_the_other_values_are_put_to_the_panel(models: Models) -> None:
    check, calls = await cascade(
        models, chances(0.1, 0.6), [entry("consistency", reply(2, against=(2,)))], votes=3
    )
    assert calls == 2, "two votes of three agree"
    assert check.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.FAIL}
    cheap, *panel = check.votes
    assert (cheap.model, cheap.verdict) == ("scripted:b", Verdict.ABSTAIN)
    assert cheap.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.ABSTAIN}
    assert [vote.verdicts() for vote in panel] == [{TWO: Verdict.FAIL}] * 2
    # Of value 2 the words of the panel count, not what the cheap judge left open.
    assert [(f.value, f.quote) for f in check.supporting_evidence()] == [
        (VALUES[0].text, None),
        (VALUES[1].text, "Bo left the room."),
    ]
    assert check.probability is None, "one value was not settled by a probability"
    assert check.usage.replies == 4


async def test_a_cheap_judge_that_is_lost_leaves_everything_to_the_panel(models: Models) -> None:
    strong = [entry("consistency", reply(1, 2))]
    check, calls = await cascade(models, [entry(error="bad-request")], strong)
    assert (check.verdict, calls) == (Verdict.PASS, 1)
    assert [vote.verdict for vote in check.votes] == [Verdict.ERROR, Verdict.PASS]
    check, _ = await cascade(models, [entry(error="bad-request")], [entry(text="?")])
    assert check.verdict is Verdict.UNREADABLE
    assert check.reason == check.votes[1].reason != check.votes[0].reason, "the panel's reason"
