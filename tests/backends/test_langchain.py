"""LangChain chat models: fakes by their class path, and ChatOpenAI over a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError, ModelRateLimitError
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from loopback import Answer, Loopback, fails, says

from judge import errors
from judge.backends.base import Call, Message, Mode
from judge.backends.langchain import LangChainBackend
from judge.backends.reading import answer_of
from judge.judging.limits import Budget
from judge.run.models import build_client
from judge.settings import Settings

KEY = "sk-test-0123456789abcdef"
SCHEMA = {
    "title": "Made",
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
}
PROMPT: list[Message] = [
    {"role": "system", "content": "You judge."},
    {"role": "user", "content": "Is it so? {{ 7*7 }} {a}"},
]
CALL = Call(PROMPT, schema_name="Made", schema=SCHEMA, temperature=0.3, max_tokens=99)


class Fake(BaseChatModel):
    """A chat model that returns `answer` (class-wide) and records its input."""

    model: str = "fake"
    answer: Any = None
    seen: list[tuple[Sequence[BaseMessage], dict[str, Any]]] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=tools, tool_choice=tool_choice)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.seen.append((messages, kwargs))
        if isinstance(self.answer, Exception):
            raise self.answer
        return ChatResult(generations=[ChatGeneration(message=self.answer)])


class Toolless(Fake):
    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def faked(answer: object, kind: str = "Fake") -> tuple[LangChainBackend, Fake]:
    backend = LangChainBackend(f"{__name__}.{kind}:tiny")
    model = backend._model
    assert type(model).__name__ == kind
    model.answer, model.seen = answer, []  # type: ignore[attr-defined]
    return backend, model  # type: ignore[return-value]


async def test_json_in_words_from_a_model_without_tools() -> None:
    name = "langchain_core.language_models.fake_chat_models.FakeListChatModel"
    with pytest.raises(errors.UsageError, match="cannot be built"):
        LangChainBackend(name)
    backend, model = faked(AIMessage('```json\n{"a": "b"}\n```'), "Toolless")
    with pytest.raises(errors.BadRequest, match="NotImplementedError"):
        await backend.complete(CALL, Mode.TOOLS)
    got = await backend.complete(CALL, Mode.JSON)
    assert answer_of(CALL, got).text == '{"a": "b"}' and got.finish_reason == "stop"
    messages, settings = model.seen[0]
    assert [m.type for m in messages] == ["system", "human"]
    assert messages[1].content == (
        "Is it so? {{ 7*7 }} {a}\n\nReply with one JSON object and nothing else, no code fence and "
        f"no remark. It must follow this JSON schema:\n{json.dumps(SCHEMA)}"
    )
    assert settings == {"temperature": 0.3, "max_tokens": 99}


async def test_json_by_tool_call() -> None:
    call = {"name": "Made", "args": {"a": "é"}, "id": "1", "type": "tool_call"}
    answer = AIMessage(
        "thinking aloud",
        tool_calls=[call],
        usage_metadata={
            "input_tokens": 5,
            "output_tokens": 3,
            "total_tokens": 48,
            "input_token_details": {"cache_read": 4},
        },
    )
    backend, model = faked(answer)
    got = await backend.complete(CALL, Mode.TOOLS)
    assert got.text == '{"a": "é"}'
    assert (got.input_tokens, got.output_tokens) == (5, 43), "40 of thoughts, in the total alone"
    assert got.cached_tokens == 4
    settings = model.seen[0][1]
    assert settings["tool_choice"] == "any"
    assert settings["tools"][0]["function"]["parameters"] == SCHEMA
    assert model.seen[0][0][1].content == PROMPT[1]["content"]


async def test_of_several_tool_calls_none_is_dropped() -> None:
    def call(args: Any) -> Any:
        return {"name": "Made", "args": args, "id": "1", "type": "tool_call"}

    broken = [{**call('{"a": '), "error": None, "type": "invalid_tool_call"}]
    for message, text in (
        (AIMessage("", tool_calls=[call({"a": "b"}), call({"a": "b"})]), '{"a": "b"}'),
        (AIMessage("", tool_calls=[call({"a": "b"}), call({"a": "c"})]), '{"a": "b"}\n{"a": "c"}'),
        (AIMessage("", tool_calls=[call({})], invalid_tool_calls=broken), '{}\n{"a": '),
    ):
        backend, _ = faked(message)
        assert (await backend.complete(CALL, Mode.TOOLS)).text == text


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "content_filter"}, "refusal"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"stopReason": "max_tokens"}, "length"),
        ({"stopReason": "guardrail_intervened"}, "refusal"),
        ({"done_reason": "length"}, "length"),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"incomplete_details": None, "status": "completed"}, "stop"),
    ],
    ids=str,
)
async def test_tells_how_a_reply_ended(said: dict[str, Any], finish: str) -> None:
    backend, _ = faked(AIMessage("x", response_metadata=said))
    assert (await backend.complete(CALL, Mode.JSON)).finish_reason == finish


async def test_a_reply_that_broke_off_tells_its_tokens() -> None:
    usage: Any = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    said = {"stopReason": "error"}
    backend, _ = faked(AIMessage("x", response_metadata=said, usage_metadata=usage))
    with pytest.raises(errors.NoReply, match="broke off: finish reason 'error'") as caught:
        await backend.complete(CALL, Mode.JSON)
    assert caught.value.tokens == (5, 3)


async def test_log_probabilities_are_not_to_be_had() -> None:
    backend, model = faked(AIMessage("x"))
    with pytest.raises(errors.BadRequest, match="--method structured"):
        await backend.complete(Call(PROMPT, logprobs=5), Mode.JSON)
    assert not model.seen


class StatusError(Exception):
    def __init__(self, status_code: int, message: str = "scripted") -> None:
        super().__init__(message)
        self.status_code = status_code
        self.response = type("Response", (), {"headers": {"retry-after": "2"}})


def of_httpx(status: int) -> Exception:
    """As langchain-mistralai raises it."""
    response = httpx.Response(status, headers={"retry-after": "2"})
    request = httpx.Request("POST", "https://api.mistral.ai/v1/chat/completions")
    return httpx.HTTPStatusError(f"Error response {status}", request=request, response=response)


class APIConnectionError(Exception):
    pass


def refused() -> Exception:
    error = APIConnectionError("Connection error.")
    error.__cause__ = ConnectionRefusedError("refused")
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StatusError(429), "rate-limited"),
        (StatusError(503), "server-fault"),
        (of_httpx(401), "denied"),
        (of_httpx(429), "rate-limited"),
        (refused(), "unreachable"),
        (APIConnectionError("reset by peer"), "server-fault"),
        (RuntimeError("strange"), "server-fault"),
        (ContextOverflowError("too long"), "context-exceeded"),
        (ModelRateLimitError("slow down"), "rate-limited"),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_every_librarys_errors_become_ours(error: Exception, kind: str) -> None:
    backend, _ = faked(error)
    with pytest.raises(errors.BackendError) as caught:
        await backend.complete(CALL, Mode.TOOLS)
    assert caught.value.kind == kind
    if isinstance(error, (StatusError, httpx.HTTPStatusError)) and kind != "denied":
        assert caught.value.retry_after == 2.0


@pytest.mark.parametrize(
    "name",
    ["no_such_provider_at_all:m", "nowhere.Chat:m", "langchain_core.messages.AIMessage:m"],
)
def test_what_cannot_be_built_is_named(name: str) -> None:
    with pytest.raises(errors.UsageError, match=f"langchain:{name}: cannot be built"):
        LangChainBackend(name)


# ---------------------------------------------------------------- ChatOpenAI over a socket


@pytest.fixture(autouse=True)
def _fresh_connections() -> None:
    """LangChain keeps one HTTP client, with connections that belong to an earlier test's loop."""
    from langchain_openai.chat_models import _client_utils

    _client_utils._cached_async_httpx_client.cache_clear()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with Loopback(lambda asked: says('{"a": "b"}'), key=KEY) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield running


async def test_chat_openai(server: Loopback) -> None:
    backend = LangChainBackend("openai:m")
    got = await backend.complete(CALL, Mode.TOOLS)
    assert json.loads(got.text) == {"a": "b"}
    assert got.input_tokens > 0 and got.output_tokens > 0
    body = server.calls[0].body
    assert body["temperature"] == 0.3
    assert body.get("max_completion_tokens", body.get("max_tokens")) == 99
    assert "{{ 7*7 }} {a}" in server.calls[0].prompt
    assert backend.identity() == {
        "provider": "langchain",
        "model": "openai:m",
        "server": server.url,
    }


async def test_chat_openai_fails_once_and_does_not_retry_by_itself(server: Loopback) -> None:
    server.script = lambda asked: fails(429, f"saw {KEY}", retry_after="1")
    with pytest.raises(errors.RateLimited) as caught:
        await LangChainBackend("openai:m").complete(CALL, Mode.TOOLS)
    assert KEY not in str(caught.value) and caught.value.retry_after == 1.0
    assert server.count == 1


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"message": f"upstream saw {KEY}", "code": 502}, errors.NoReply),
        ({"message": "slow down", "code": 429}, errors.RateLimited),
        ({"message": "no such parameter", "code": 400}, errors.BadRequest),
    ],
)
async def test_an_error_under_http_200_counts_by_its_own_status(
    server: Loopback, said: dict[str, Any], kind: type[errors.BackendError]
) -> None:
    server.script = lambda asked: Answer(body=json.dumps({"error": said}).encode())
    with pytest.raises(kind, match="HTTP 200 with error") as caught:
        await LangChainBackend("openai:m").complete(CALL, Mode.TOOLS)
    assert KEY not in str(caught.value)


def test_a_list_price_is_not_that_of_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    spec = "langchain:openai:gpt-4o"
    price = build_client(spec, Settings(), None, Budget()).price
    assert price is not None and (price.input, price.output) == (2.5, 10)
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    assert build_client(spec, Settings(), None, Budget()).price is None
