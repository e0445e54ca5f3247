"""One call a value: the same vote, put together from its parts."""

from __future__ import annotations

from typing import Any

import pytest

from judge.judging.judge import Judge
from judge.judging.panel import Panel
from judge.questions.ready_made import builtin
from judge.verdict import Verdict

from .test_judge import STORY_SUBJECT, VALUES, client

__all__ = ["client"]  # the fixture

ONE, TWO = (value.text for value in VALUES)


def part(number: int, *quotes: str, **when: Any) -> dict[str, Any]:
    """A script entry that answers about one value."""
    speeches = [{"character": "Bo", "quote": quote} for quote in quotes]
    reply = {"values": [{"value": number, "reason": f"r{number}", "speeches": speeches}]}
    return {"when": {"contains": VALUES[number - 1].text, **when}, "reply": reply}


def judge(client: Any, *script: dict[str, Any], **more: Any) -> Judge:
    return Judge(builtin()["consistency"], client(*script, **more), "structured", per_entry=True)


LOST = {"when": {"contains": TWO}, "text": "{", "finish_reason": "length"}
GONE = {"when": {"contains": TWO}, "error": "bad-request"}


@pytest.mark.parametrize(
    ("script", "opinion", "verdict"),
    [
        ([part(1), LOST], Verdict.UNREADABLE, Verdict.UNREADABLE),
        ([part(1, "Bo left her there."), LOST], Verdict.UNREADABLE, Verdict.FAIL),
        ([part(1), GONE], Verdict.ERROR, Verdict.ERROR),
        ([part(1, "Bo left her there."), GONE], Verdict.ERROR, Verdict.ERROR),
    ],
)
async def test_a_lost_part_is_lost_for_its_value_alone(
    client: Any, script: list[dict[str, Any]], opinion: Verdict, verdict: Verdict
) -> None:
    vote = await judge(client, *script).vote(STORY_SUBJECT)
    assert vote.verdicts()[TWO] is opinion
    assert vote.verdicts()[ONE] in (Verdict.PASS, Verdict.FAIL)
    assert vote.verdict is verdict
    assert vote.reason is not None
    assert [finding.value for finding in vote.evidence] == [ONE, TWO]


@pytest.mark.parametrize(("all_votes", "calls"), [(False, 2 * 2 + 1), (True, 2 * 3)])
async def test_a_value_whose_verdict_is_clear_is_asked_no_more(
    client: Any, all_votes: bool, calls: int
) -> None:
    # Votes 0 and 1 agree on value 2 and differ on value 1, which alone needs the third vote.
    script = [part(1, "Bo left her there.", vote=0), part(1), part(2)]
    asked = judge(client, *script)
    panel = Panel(asked.rubric, (asked,), votes=3, all_votes=all_votes)
    check = await panel.check(STORY_SUBJECT, by="final")
    assert check.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.PASS}
    assert asked.client.counters.calls == check.usage.replies == calls
    assert set(check.votes[2].verdicts()) == ({ONE, TWO} if all_votes else {ONE})
