"""The OpenAI backend at its HTTP edge, through respx; and over a real socket once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import respx
from loopback import Answer, Loopback, fails
from routed import Routed

from judge import errors
from judge.backends.base import Call, Completion, Message, Mode
from judge.backends.openai import OpenAIBackend

KEY = "sk-test-0123456789abcdef"
URL = "http://models.test/v1"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
PROMPT: list[Message] = [{"role": "user", "content": "Is it so?"}]
CALL = Call(PROMPT, schema_name="Made", schema=SCHEMA, seed=7, max_tokens=99)

Backend = Callable[..., OpenAIBackend]


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", URL)


@pytest.fixture
def router() -> Iterator[respx.Router]:
    yield respx.Router(assert_all_called=False)


@pytest.fixture
def backend(router: respx.Router) -> OpenAIBackend:
    return OpenAIBackend("m", server=Routed(router))


def replies(router: respx.Router, **response: Any) -> respx.Route:
    return router.post(f"{URL}/chat/completions").mock(
        return_value=httpx.Response(response.pop("status", 200), **response)
    )


def completion(message: object = None, **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "hello"} if message is None else message
    choice = {"index": 0, "finish_reason": "stop", "message": said, "logprobs": None}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    top = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return {**top, "choices": [choice], **more}


async def raised(backend: OpenAIBackend, call: Call = CALL) -> errors.BackendError:
    with pytest.raises(errors.BackendError) as caught:
        await backend.complete(call, Mode.JSON_SCHEMA)
    return caught.value


# ---------------------------------------------------------------- what is sent


async def sent(router: respx.Router, backend: OpenAIBackend, call: Call, mode: Mode) -> Any:
    route = replies(router, json=completion())
    await backend.complete(call, mode)
    request = route.calls.last.request
    return json.loads(request.content)


@pytest.mark.parametrize(
    ("call", "mode", "expected"),
    [
        (
            CALL,
            Mode.JSON_SCHEMA,
            {
                "temperature": 0.0,
                "max_tokens": 99,
                "seed": 7,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "Made", "schema": SCHEMA, "strict": True},
                },
            },
        ),
        (
            CALL,
            Mode.TOOLS,
            {
                "temperature": 0.0,
                "max_tokens": 99,
                "seed": 7,
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": "Made",
                            "description": "Give the answer.",
                            "parameters": SCHEMA,
                        },
                    }
                ],
                "tool_choice": {"type": "function", "function": {"name": "Made"}},
            },
        ),
        (
            Call(PROMPT, logprobs=20),
            Mode.JSON_SCHEMA,
            {"temperature": 0.0, "max_tokens": 1024, "logprobs": True, "top_logprobs": 20},
        ),
    ],
    ids=["schema", "tool", "first token"],
)
async def test_what_is_sent(
    router: respx.Router, backend: OpenAIBackend, call: Call, mode: Mode, expected: dict[str, Any]
) -> None:
    assert await sent(router, backend, call, mode) == {"model": "m", "messages": PROMPT, **expected}


async def test_sends_the_schema_in_words_after_the_last_message(
    router: respx.Router, backend: OpenAIBackend
) -> None:
    body = await sent(router, backend, CALL, Mode.JSON)
    assert body["response_format"] == {"type": "json_object"}
    content = body["messages"][0]["content"]
    assert content.startswith("Is it so?\n\n") and content.endswith(json.dumps(SCHEMA))
    assert PROMPT[0]["content"] == "Is it so?"


# ---------------------------------------------------------------- what comes back


async def test_reads_text_and_tokens(router: respx.Router, backend: OpenAIBackend) -> None:
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    replies(router, json=completion(usage=usage))
    got = await backend.complete(CALL, Mode.JSON_SCHEMA)
    assert (got.text, got.finish_reason) == ("hello", "stop")
    assert (got.input_tokens, got.output_tokens, got.cached_tokens) == (5, 2, 4)
    assert got.first_token is None


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 1041}, (32, 1009)),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 41}, (32, 9)),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 32}, (32, 9)),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 1e30}, (32, 9)),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": "many"}, (32, 9)),
        ({"prompt_tokens": "32", "completion_tokens": "9"}, (32, 9)),
        ({"completion_tokens": 9, "total_tokens": 41}, (0, 9)),
    ],
)
async def test_thoughts_that_only_the_total_counts_are_tokens_of_the_reply(
    router: respx.Router, backend: OpenAIBackend, usage: dict[str, Any], counted: tuple[int, int]
) -> None:
    replies(router, json=completion(usage=usage))
    got = await backend.complete(CALL, Mode.JSON_SCHEMA)
    assert (got.input_tokens, got.output_tokens) == counted


def ended(reason: str, message: dict[str, Any]) -> dict[str, Any]:
    whole = completion({"role": "assistant", **message})
    whole["choices"][0]["finish_reason"] = reason
    return whole


@pytest.mark.parametrize(
    ("body", "finish", "text"),
    [
        (ended("length", {"content": '{"a": "b'}), "length", '{"a": "b'),
        (ended("stop", {"content": None, "refusal": "I will not."}), "refusal", "I will not."),
        (ended("content_filter", {"content": "part"}), "refusal", "part"),
        (ended("stop", {"content": None}), "stop", ""),
    ],
)
async def test_tells_how_a_reply_ended(
    router: respx.Router, backend: OpenAIBackend, body: object, finish: str, text: str
) -> None:
    replies(router, json=body)
    got = await backend.complete(CALL, Mode.JSON_SCHEMA)
    assert (got.finish_reason, got.text) == (finish, text)


def with_logprobs(content: object) -> dict[str, Any]:
    whole = completion()
    whole["choices"][0]["logprobs"] = {"content": content}
    return whole


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            [{"token": "Y", "logprob": -1, "top_logprobs": [{"token": "Z", "logprob": -0.5}]}],
            (("Z", -0.5),),
        ),
        ([{"token": "Y", "logprob": -1.0}], (("Y", -1.0),)),
        ([], ()),
        (None, None),
    ],
    ids=["listed", "no list", "empty reply", "none given"],
)
async def test_reads_the_first_token(
    router: respx.Router, backend: OpenAIBackend, content: Any, expected: object
) -> None:
    replies(router, json=with_logprobs(content))
    assert (await backend.complete(CALL, Mode.JSON_SCHEMA)).first_token == expected


async def test_a_token_that_is_impossible_has_an_infinite_log_probability(
    router: respx.Router, backend: OpenAIBackend
) -> None:
    """Which is not JSON, and what some servers send."""
    top = [{"token": "Y", "logprob": -0.1}, {"token": "N", "logprob": float("-inf")}]
    told = with_logprobs([{"token": "Y", "logprob": -0.1, "top_logprobs": top}])
    replies(router, text=json.dumps(told))
    found = (await backend.complete(CALL, Mode.JSON_SCHEMA)).first_token
    assert found == (("Y", -0.1), ("N", float("-inf")))


async def test_one_answer_that_lacks_them_is_asked_for_again(
    router: respx.Router, backend: OpenAIBackend
) -> None:
    call = Call(PROMPT, logprobs=5)
    lacking, whole = with_logprobs(None), with_logprobs([{"token": "Y", "logprob": -1.0}])
    replies(router, json=lacking)
    assert (await backend.complete(call, Mode.JSON_SCHEMA)).first_token is None, "it may give none"
    replies(router, json=whole)
    assert (await backend.complete(call, Mode.JSON_SCHEMA)).first_token is not None
    replies(router, json=lacking)
    with pytest.raises(errors.ServerFault, match="lacks the log-probabilities"):
        await backend.complete(call, Mode.JSON_SCHEMA)


# ---------------------------------------------------------------- what goes wrong


async def test_what_a_busy_server_says_takes_nothing_out_of_a_call(
    router: respx.Router, backend: OpenAIBackend
) -> None:
    said = {"error": {"message": "Unsupported parameter: 'seed' is not supported"}}
    replies(router, status=429, json=said)
    assert (await raised(backend)).kind == "rate-limited" and not backend.adaptations
    replies(router, status=400, json=said)
    assert isinstance(await raised(backend), errors.Adapted)


@pytest.mark.parametrize(
    ("body", "said", "tokens"),
    [
        ("<html><title>Sign in</title></html>", "it says: <html><title>Sign in", (0, 0)),
        ('data: {"choices": [{"delta": {}}]}', 'it says: data: {"choices": [{"delta"', (0, 0)),
        (json.dumps({**completion(), "choices": []}), "required fields are missing; it", (5, 2)),
    ],
    ids=["login page", "stream", "no choice"],
)
async def test_what_is_no_completion_is_quoted_and_its_tokens_count(
    router: respx.Router, backend: OpenAIBackend, body: str, said: str, tokens: tuple[int, int]
) -> None:
    replies(router, text=body)
    error = await raised(backend)
    assert said in str(error) and error.tokens == tokens


async def test_half_a_surrogate_pair_cannot_be_sent(
    router: respx.Router, backend: OpenAIBackend
) -> None:
    route = replies(router, json=completion())
    call = Call([{"role": "user", "content": "\ud83d"}])
    error = await raised(backend, call)
    assert isinstance(error, errors.BadRequest) and not route.called


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [({"prompt_tokens": 7}, 7), ({"prompt_tokens": "7"}, 7), ({"prompt_tokens": -7}, 0), ({}, 0)],
    ids=str,
)
async def test_a_vector_comes_with_the_tokens_that_the_server_counted(
    monkeypatch: pytest.MonkeyPatch, usage: dict[str, Any], tokens: int
) -> None:
    told = {"data": [{"embedding": [0.6, 0.8]}], "usage": usage}
    with Loopback(lambda asked: Answer(body=json.dumps(told).encode())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        backend = OpenAIBackend("m")
        call = Call([{"role": "user", "content": "Hi."}], layer=-1)
        completion = await backend.complete(call, Mode.JSON_SCHEMA)
        assert completion == Completion.of_state([0.6, 0.8], -1, tokens)
        await backend.aclose()


async def test_a_server_that_refuses_a_vector_is_told_as_any_that_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Loopback(lambda asked: fails(401, "no such key")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        backend = OpenAIBackend("m")
        with pytest.raises(errors.Denied, match="refuses the key"):
            call = Call([{"role": "user", "content": "Hi."}], layer=-1)
            await backend.complete(call, Mode.JSON_SCHEMA)
        await backend.aclose()


# ---------------------------------------------------------------- settings and secrets


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("", ""),
        ("ftp://h.test/v1", "k"),
        ("h.test/v1", "k"),
        ("http://h.test:port/v1", "k"),
        (URL, "sk-…"),
        (URL, "sk\x07bell"),
    ],
)
def test_settings_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, url: str, key: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(errors.UsageError, match="OPENAI_") as caught:
        OpenAIBackend("m")
    assert len(key) < 3 or key not in str(caught.value)
