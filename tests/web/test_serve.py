"""`judge serve` over HTTP, with a judge that cannot answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from judge.cache import CacheError
from judge.errors import Denied, RateLimited, ServerFault
from judge.web.serve import DecisionService
from judge.web.typed_questions import ChoiceQuestion, ScoreQuestion, _decided, answer


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Denied("the key is gone"), 503),
        (ServerFault("HTTP 503: busy"), 503),
        (RateLimited("HTTP 429"), 503),
        (CacheError("/c: disk is full; make room"), 500),
    ],
)
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
async def test_a_fault_is_told_in_the_protocols_form_to_who_has_the_key(
    error: Exception, status: int, scheme: str
) -> None:
    async def decide(_: object) -> None:
        raise error

    async def answers(request: Any) -> Any:
        judge: Any = SimpleNamespace(decide=decide)
        return await _decided("q", judge, request.state)

    decider: Any = SimpleNamespace(fingerprint="f", judges={}, answers=answers)
    app = DecisionService(decider, "k", Path(__file__)).app()
    asked = {"model": "jev-x", "state": "s", "questions": {"q": {"type": "noul"}}}
    async with TestClient(TestServer(app)) as client:
        sent = {"json": asked, "headers": {"Authorization": f"{scheme} k"}}
        async with client.post("/v1/systemone", **sent) as reply:
            detail = (await reply.json())["detail"]
    assert (reply.status, detail) == (status, {"error_type": "api_error", "message": str(error)})


async def test_a_body_that_cannot_be_unpacked_is_a_fault_of_the_client() -> None:
    decider: Any = SimpleNamespace(fingerprint="f")
    app = DecisionService(decider, "k", Path(__file__)).app()
    sent = {"Authorization": "Bearer k", "Content-Encoding": "gzip"}
    async with TestClient(TestServer(app)) as client:
        reply = await client.post("/v1/systemone", data=b"no gzip", headers=sent)
        detail = (await reply.json())["detail"]
    assert (reply.status, detail[0]["type"]) == (422, "json_invalid")


def test_the_confidence_of_a_choice_and_of_a_score() -> None:
    """By hand: (0.55 - 1/4) / (3/4); one less the mean distance to the likeliest level, 0.4, over
    that of an even spread to its middle, 2/3; and 0 where the spread is worse than even."""
    choice = ChoiceQuestion(type="choice", criteria=dict.fromkeys("abcd"))
    reply = answer(choice, {"a": 0.15, "b": 0.55, "c": 0.2, "d": 0.1})
    assert (reply["choice"], reply["confidence"]) == ("b", pytest.approx(0.4))
    score = ScoreQuestion(type="score", criteria=["low", "middle", "high"])
    reply = answer(score, {"0": 0.7, "1": 0.2, "2": 0.1})
    assert (reply["score"], reply["confidence"]) == (pytest.approx(0.4), pytest.approx(0.4))
    assert answer(score, {"0": 0.5, "1": 0.0, "2": 0.5})["confidence"] == 0
