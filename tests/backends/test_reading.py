"""Servers' replies and how the client reads them, over a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from clients import Outcome, outcome_of
from loopback import Answer, Asked, Loopback, chances, completion, fails, says

from judge import errors
from judge.backends.base import Call, Completion, Mode
from judge.backends.openai import OpenAIBackend
from judge.backends.reading import answer_of, ending
from judge.judging.client import Client
from judge.judging.limits import Budget, BudgetReached
from judge.model_tables import Price
from judge.questions.evidence import ReplyContext
from judge.questions.replies import YesNo

GOOD = json.dumps({"quote": None, "reason": "kind", "answer": "no"})
DRAFT = json.dumps({"quote": None, "reason": "a first thought", "answer": "yes"})
QUOTING = json.dumps({"quote": None, "reason": "it says </think> aloud", "answer": "no"})
CALL = Call([{"role": "user", "content": "Is it kind?"}], temperature=0.0, max_tokens=60)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Loopback() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def client(**settings: Any) -> Client:
    defaults: dict[str, Any] = {"cache": None, "budget": Budget(), "limit": 4, "backoff": 0.001}
    return Client("openai:m", OpenAIBackend("m"), timeout=30.0, **(defaults | settings))


async def ask(server: Loopback, *messages: object, **choice: Any) -> Outcome:
    """What is made of a message with this content, or of this message; then of the next one."""

    def script(asked: Asked) -> Answer:
        made = completion(asked, Answer(""))
        message = messages[min(len(server.asked), len(messages)) - 1]
        content = message if isinstance(message, dict) else {"content": message}
        made["choices"][0] |= {"message": {"role": "assistant", **content}, **choice}
        return Answer(body=json.dumps(made).encode())

    server.script = script
    asker = client()
    try:
        return await outcome_of(asker.ask(CALL, YesNo, ReplyContext({})))
    finally:
        await asker.aclose()


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def called(arguments: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "YesNo", "arguments": arguments}}


THINKING = {"type": "thinking", "thinking": [text(DRAFT)]}


@pytest.mark.parametrize(
    "message",
    [
        [text(GOOD)],
        [THINKING, text(GOOD[:9]), text(GOOD[9:])],
        [{"type": "reasoning", "text": DRAFT}, {"type": "output_text", "text": GOOD}],
        [GOOD],
        {"content": None, "tool_calls": [{"function": {"arguments": json.loads(GOOD)}}]},
        {"content": GOOD, "tool_calls": [{"function": {"name": "search", "arguments": "{}"}}]},
        {"content": "", "function_call": {"name": "YesNo", "arguments": GOOD}},
        {"content": None, "tool_calls": [called(GOOD), called(GOOD)]},
        f"<think>\n{DRAFT} But wait.\n</think>\n\n{GOOD}",
        f"{DRAFT} But wait.</think>{GOOD}",
        f"<think>a</think><think>{DRAFT}</think>```json\n{GOOD}\n```",
        f"[THINK]{DRAFT}[/THINK]{GOOD}",
        f"<THINKING>hm</THINKING> {GOOD}",
        f"<seed:think>{DRAFT}</seed:think>{GOOD}",
        f"<|channel|>analysis<|message|>{DRAFT}<|channel|>final<|message|>{GOOD}",
        QUOTING,
        {"content": "", "reasoning_content": GOOD},
        {"content": None, "reasoning": f"\n{GOOD}\n"},
        {"content": GOOD, "reasoning_content": DRAFT},
    ],
    ids=lambda message: json.dumps(message)[:60],
)
async def test_an_answer_in_another_form_is_read_at_once(server: Loopback, message: object) -> None:
    outcome = await ask(server, message)
    assert isinstance(outcome.reply, YesNo), outcome.detail
    assert outcome.reply.answer == "no" and outcome.usage.replies == 1


@pytest.mark.parametrize("modes", [{"json_schema"}, {"tools"}])
async def test_two_calls_of_the_tool_with_different_answers_are_no_answer(
    server: Loopback, modes: set[str]
) -> None:
    server.modes = modes
    outcome = await ask(server, {"content": None, "tool_calls": [called(DRAFT), called(GOOD)]})
    assert (outcome.reply, outcome.trouble) == (None, "invalid")


async def test_thoughts_are_not_the_answer(server: Loopback) -> None:
    for message in ({"content": None, "reasoning_content": f"It is kind: {GOOD}"}, [THINKING]):
        outcome = await ask(server, message)
        assert (outcome.reply, outcome.trouble) == (None, "invalid")
    server.calls.clear()
    outcome = await ask(server, f"<think>I would say {DRAFT}")
    assert (outcome.trouble, outcome.usage.replies) == ("truncated", 1)
    assert outcome.detail == (
        "the reply has no text: thoughts may have taken its 60 tokens; --max-tokens N allows more"
    )


@pytest.mark.parametrize(
    ("reason", "trouble"),
    [
        ("max_tokens", "truncated"),
        ("MAX_TOKENS", "truncated"),
        ("model_length", "truncated"),
        ("SAFETY", "refused"),
        ("RECITATION", "refused"),
        ("content_filter: PROHIBITED_CONTENT", "refused"),
        ("ERROR_LIMIT", "truncated"),
        ("guardrail_intervened", "refused"),
    ],
)
async def test_a_finish_reason_by_another_name(server: Loopback, reason: str, trouble: str) -> None:
    outcome = await ask(server, GOOD[:20], finish_reason=reason)
    assert (outcome.trouble, len(server.asked)) == (trouble, 1)


@pytest.mark.parametrize("reason", ["end_turn", "STOP", "eos", None, "something new"])
async def test_other_finish_reasons_end_a_whole_reply(server: Loopback, reason: object) -> None:
    assert (await ask(server, GOOD, finish_reason=reason)).reply is not None


async def test_a_reply_that_broke_off_is_the_servers_fault(server: Loopback) -> None:
    with pytest.raises(errors.ServerFault, match="broke off: finish reason 'error'"):
        await ask(server, GOOD[:9], finish_reason="error")
    with pytest.raises(errors.ServerFault, match="HTTP 200 with error 502: Upstream"):
        await ask(
            server, GOOD[:9], finish_reason="error", error={"code": 502, "message": "Upstream"}
        )
    for reason in ("network_error", "function_call_filter: MALFORMED_FUNCTION_CALL", "USER_CANCEL",
                   "time_limit", "malformed_model_output", "malformed_tool_use"):  # fmt: skip
        assert ending(reason) == "fault"


@pytest.mark.parametrize("more", [{}, {"error": {"code": 502, "message": "Upstream"}}])
async def test_the_tokens_of_a_reply_that_broke_off_cost(
    server: Loopback, more: dict[str, Any]
) -> None:
    def script(asked: Asked) -> Answer:
        made = completion(asked, Answer(GOOD[:9]))
        made["choices"][0] |= {"finish_reason": "error", **more}
        made["usage"] = {"prompt_tokens": 5000, "completion_tokens": 900, "total_tokens": 5900}
        return Answer(body=json.dumps(made).encode())

    server.script, budget = script, Budget(max_cost=0.04)
    asker = client(budget=budget, price=Price(input=3, output=15))
    with pytest.raises(BudgetReached):
        await asker.write(CALL)
    await asker.aclose()
    assert len(server.asked) == 2, "the second of three tries is over 0.04"
    assert budget.cost == pytest.approx(2 * (5000 * 3 + 900 * 15) / 1e6)
    assert (asker.counters.input_tokens, asker.counters.output_tokens) == (10_000, 1800)


async def test_a_first_token_keeps_its_thoughts(server: Loopback) -> None:
    server.script = lambda asked: chances(**{"<think>": -0.1, "Yes": -3.0})
    asker = client()
    tokens, _ = await asker.first_token(Call(CALL.messages, logprobs=5, max_tokens=1))
    await asker.aclose()
    assert set(tokens) == {"<think>", "Yes"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (f"Sure! Here it is:\n```json\n{GOOD}\n```\nHope this helps.", GOOD),
        (f"```\n{GOOD}\n```", GOOD),
        (f"Either ```{GOOD}``` or ```{GOOD}```", None),
        (f'{{"reason": "see"}} ```json\n{GOOD}\n```', None),
        ("Sure!\n```json\n[1]\n```", None),
    ],
)
def test_words_around_the_only_object_in_a_fence_are_dropped(said: str, meant: str | None) -> None:
    call = replace(CALL, schema={"type": "object"})
    assert answer_of(call, Completion(said)).text == (meant or said)


@pytest.mark.parametrize("mode", list(Mode))
def test_free_text_keeps_its_fence_and_loses_its_thoughts(mode: Mode) -> None:
    said = Completion("<think>hm</think>\n```\ncode\n```")
    assert answer_of(CALL, said).text == "```\ncode\n```"


# ---------------------------------------------------------------- errors


def under_200(error: object) -> Answer:
    return Answer(body=json.dumps({"error": error, "user_id": "u"}).encode())


CREDIT = "Your credit balance is too low to access the API."


@pytest.mark.parametrize(
    ("answer", "kind", "words", "calls"),
    [
        (under_200({"message": "Insufficient credits", "code": 402}), "denied", "out of credit", 1),
        (under_200({"message": "bad key", "code": 401}), "denied", "refuses the key", 1),
        (under_200({"message": "no", "type": "authentication_error"}), "denied", "the key", 1),
        (under_200("This model's maximum context length is 8 tokens"), "context-exceeded", "8", 1),
        (fails(400, "x", code="context_length_exceeded"), "context-exceeded", "HTTP 400", 1),
        (under_200({"message": "no room", "code": "503"}), "server-fault", "no room", 6),
        (fails(402, "no balance"), "denied", "HTTP 402", 1),
        (fails(400, CREDIT), "denied", "out of credit", 2),
        (fails(403, "Key limit exceeded (total limit)"), "denied", "out of credit", 2),
        (fails(429, "x", code="insufficient_quota"), "denied", "out of credit", 1),
        (fails(429, "Insufficient balance, please recharge"), "denied", "out of credit", 1),
        (fails(403, "not for you"), "denied", "refuses the key or the model", 2),
        (fails(429, "You exceeded your current quota, please check your plan. Retry in 0.01s"),
         "rate-limited", "quota", 6),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
async def test_an_error_means_what_it_says(
    server: Loopback, answer: Answer, kind: str, words: str, calls: int
) -> None:
    """`calls`: with the small one that tells a refused call from a refused caller."""
    server._scripted_probe, server.script = True, lambda asked: answer
    asker = client()
    asker._mode = Mode.JSON_SCHEMA
    with pytest.raises(errors.BackendError, match=words) as caught:
        await asker.first_token(Call(CALL.messages, logprobs=5, max_tokens=1))
    await asker.aclose()
    assert caught.value.kind == kind
    assert len(server.calls) - (kind in ("server-fault", "rate-limited")) <= calls


@pytest.mark.parametrize(
    "answer",
    [
        fails(400, "Filtered by the content management policy.", code="content_filter"),
        fails(403, "Your chosen model requires moderation and your input was flagged"),
        fails(400, "Input data may contain inappropriate content."),
        fails(403, "<html>blocked by the firewall</html>"),
        under_200({"code": 403, "message": "flagged by moderation"}),
        fails(400, f"the request says: {CREDIT}"),
    ],
    ids=lambda answer: answer.body.decode()[:60],
)  # fmt: skip
async def test_a_refusal_of_one_input_is_no_refusal_of_the_caller(
    server: Loopback, answer: Answer
) -> None:
    server.script = lambda asked: answer if "BAD" in asked.prompt else says(GOOD)
    asker = client()
    bad = Call([{"role": "user", "content": "BAD"}], temperature=0.0)
    outcome = await outcome_of(asker.ask(bad, YesNo, ReplyContext({})))
    assert outcome.trouble == "refused" and outcome.detail
    assert len(server.asked) == 1, "the call itself is made once"
    await asker.ask(CALL, YesNo, ReplyContext({}))
    await asker.aclose()
