"""Servers' refusals of a part of a request, and the adapted requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judge.graphs.replies import ValuesReflected

from judge.backends.adaptations import (
    LEFT_OUT,
    Adaptations,
    complaint_text,
    known,
    portable_schema,
    remedies,
    thinks,
)
from judge.questions.replies import YesNo, schema_of

SCHEMA = schema_of(YesNo)
REQUEST: dict[str, Any] = {
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
    "max_tokens": 1024,
    "temperature": 0.0,
    "seed": 0,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "YesNo", "schema": SCHEMA, "strict": True},
    },
}
LOGPROBS: dict[str, Any] = {"messages": REQUEST["messages"], "max_tokens": 1, "logprobs": True}
LOGPROBS["top_logprobs"] = 20


def openai(message: str, param: str | None = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "param": param, "type": "invalid_request_error", **more}}


def detail(field: str, said: str = "Extra inputs are not permitted") -> list[dict[str, Any]]:
    """FastAPI's form, which repeats the call."""
    told = {"type": "extra_forbidden", "loc": ["body", field], "msg": said}
    return [{**told, "input": {"messages": "temperature", "seed": 0}}]


ONLY_1 = "Unsupported value: 'temperature' does not support 0 with this model. Only the default"
USE = "is not supported with this model. Use 'max_completion_tokens' instead."
SPEC = 'Invalid JSON payload received. Unknown name "anyOf" at \'generation_config'


@pytest.mark.parametrize(
    ("request_sent", "said", "first"),
    [
        (
            REQUEST,
            openai(f"Unsupported parameter: 'max_tokens' {USE}", "max_tokens"),
            ("max_tokens", "max_completion_tokens"),
        ),
        (
            {**REQUEST, "max_completion_tokens": 1},
            {"detail": detail("max_tokens")},
            ("max_tokens", "max_completion_tokens"),
        ),
        (
            REQUEST,
            openai("max_tokens is too large: 1024. This model supports at most 512", "max_tokens"),
            ("most_tokens", 512),
        ),
        (REQUEST, openai(ONLY_1, "temperature"), ("temperature", "left out")),
        (
            REQUEST,
            openai("`temperature` is deprecated for this model."),
            ("temperature", "left out"),
        ),
        (REQUEST, openai("The parameter seed has been removed."), ("seed", "left out")),
        (
            REQUEST,
            openai("max_tokens is now deprecated in favor of max_completion_tokens"),
            ("max_tokens", "max_completion_tokens"),
        ),
        (
            REQUEST,
            {"error": {"code": "BadRequest", "message": "temperature must be strictly positive"}},
            ("temperature", "left out"),
        ),
        (REQUEST, {"object": "error", "message": {"detail": detail("seed")}}, ("seed", "left out")),
        (REQUEST, {"message": "property 'seed' is unsupported"}, ("seed", "left out")),
        (REQUEST, openai("json_schema.strict: unknown field"), ("strict", "left out")),
        (
            REQUEST,
            openai("x", metadata={"raw": json.dumps({"detail": detail("seed")})}),
            ("seed", "left out"),
        ),
        (REQUEST, {"message": "System role not supported"}, ("system", "in the user's message")),
        (
            REQUEST,
            {"message": "Conversation roles must alternate user/assistant/user/assistant/..."},
            ("system", "in the user's message"),
        ),
        (
            REQUEST,
            openai("Unsupported value: 'messages[0].role' does not support 'system'"),
            ("system", "in the user's message"),
        ),
        (
            REQUEST,
            {"error": {"code": 400, "message": f"{SPEC}.response_schema': Cannot find field."}},
            ("schema", "type, properties, required, items and enum alone"),
        ),
        (
            REQUEST,
            openai("Invalid schema: 'minItems' is not permitted"),
            ("schema", "type, properties, required, items and enum alone"),
        ),
        (LOGPROBS, openai("top_logprobs must be between 0 and 5"), ("top_logprobs", 5)),
        (LOGPROBS, openai("Expected logprobs <= 8, got 20"), ("top_logprobs", 8)),
        (LOGPROBS, openai("top_logprobs: value is too large"), ("top_logprobs", 10)),
        (LOGPROBS, {"error": "`top_n_tokens` must be >= 0 and <= 5"}, ("top_logprobs", 5)),
        (
            REQUEST,
            openai(
                "Could not finish the message because max_tokens or model output limit was reached"
            ),
            ("thinking_tokens", 8000),
        ),
        (REQUEST, openai("This model's maximum context length is 512 tokens; max_tokens"), None),
        (REQUEST, openai("The response was filtered: the temperature of the debate"), None),
        (REQUEST, "no JSON at all", None),
    ],
    ids=lambda one: json.dumps(one)[:60] if isinstance(one, dict) else "",
)
def test_a_refusal_names_its_remedy(request_sent: Any, said: Any, first: object) -> None:
    found = remedies(request_sent, complaint_text(json.dumps(said).encode()), room=8000)
    assert next(found, None) == first


def test_what_a_request_has_not_is_not_left_out() -> None:
    said = "'strict' is not supported, nor is 'seed'"
    assert [*remedies(LOGPROBS, said)] == []
    assert [*remedies(REQUEST, said)] == [("strict", LEFT_OUT), ("seed", LEFT_OUT)]
    alone = {"messages": REQUEST["messages"][1:], "max_tokens": 1}
    assert [*remedies(alone, "conversation roles must alternate")] == []


CALL, OTHER = object(), object()


def refused(adapted: Adaptations, said: str, times: int = 1) -> list[bool]:
    return [
        adapted.again(CALL, adapted.state, adapted.applied(REQUEST), said.lower())
        for _ in range(times)
    ]


def test_what_helps_is_kept_and_what_does_not_is_taken_back() -> None:
    adapted = Adaptations({})
    assert refused(adapted, "temperature 0 is not supported") == [True]
    assert refused(adapted, "seed is not supported") == [True], "another complaint: it helped"
    assert adapted.state == {"temperature": "left out", "seed": "left out"}
    before = adapted.state
    adapted.answered(OTHER, adapted.state)
    assert adapted.kept == {"temperature": "left out"}, "the success of others proves nothing"
    adapted.answered(CALL, adapted.state)
    assert adapted.kept == before
    # A refusal of the text, which names a part by chance and says the same without it.
    blames = "request 7f3a: system prompts are not allowed"
    assert refused(adapted, blames, 2) == [True, False]
    assert adapted.state == before
    assert refused(adapted, blames) == [False], "nothing is tried twice"


def test_a_call_under_way_while_another_learns_is_made_again() -> None:
    adapted = Adaptations({})
    sent, request = adapted.state, adapted.applied(REQUEST)
    assert refused(adapted, "seed is not supported") == [True]
    assert adapted.again(OTHER, sent, request, "seed is not supported")
    assert adapted.state == {"seed": "left out"}


def test_what_is_sent_instead() -> None:
    state = {"temperature": "left out", "seed": "left out", "system": "x", "schema": "x"}
    sent = Adaptations({**state, "max_tokens": "max_completion_tokens"}).applied(REQUEST)
    assert sent["messages"] == [{"role": "user", "content": "S\n\nU"}]
    assert sent["max_completion_tokens"] == 1024
    assert not sent.keys() & {"temperature", "seed", "max_tokens"}
    form = sent["response_format"]["json_schema"]
    assert form == {"name": "YesNo", "schema": portable_schema(SCHEMA)}
    assert REQUEST["response_format"]["json_schema"]["strict"], "the request stays as it was"
    assert Adaptations({"thinking_tokens": 8000}).applied(REQUEST)["max_tokens"] == 9024
    assert (
        Adaptations({"thinking_tokens": 8000, "most_tokens": 4096}).applied(REQUEST)["max_tokens"]
        == 4096
    )
    assert Adaptations({"thinking_tokens": 8000}).applied(LOGPROBS)["max_tokens"] == 1
    assert Adaptations({"top_logprobs": 5}).applied(LOGPROBS)["top_logprobs"] == 5


@pytest.mark.parametrize("left_out", ["strict", "schema"])
def test_a_schema_gets_portable_only_where_a_server_refused_it(left_out: str) -> None:
    tools = [{"type": "function", "function": {"name": "YesNo", "parameters": SCHEMA}}]
    request = {"messages": REQUEST["messages"], "max_tokens": 9, "tools": tools}
    (sent,) = Adaptations({left_out: "x"}).applied(request)["tools"]
    wanted = SCHEMA if left_out == "strict" else portable_schema(SCHEMA)
    assert sent["function"] == {"name": "YesNo", "parameters": wanted}
    bare = {"messages": REQUEST["messages"], "max_tokens": 9}
    assert Adaptations({left_out: "x"}).applied(bare) == bare


def test_a_portable_schema_has_no_reference_and_no_choice() -> None:
    made = portable_schema(schema_of(ValuesReflected.sized(2)))
    text = json.dumps(made)
    assert not any(word in text for word in ("$", "anyOf", "minItems", "title", "additional"))
    part = made["properties"]["values"]["items"]
    assert part["properties"]["quote"] == {"type": "string"}
    assert part["properties"]["reflected"] == {"enum": ["yes", "no"], "type": "string"}
    assert part["required"] == ["value", "quote", "character", "reason", "reflected"]


def test_models_that_think_are_known_by_name() -> None:
    thinking = "o3 o4-mini openai/o3 gpt-5-mini deepseek-r1:8b qwq qwen3:8b Qwen3-4B-Thinking-2507"
    plain = "gpt-4o chatgpt-4o gpt-5-chat-latest qwen3-30b-instruct llama3.1 mistral-small r100"
    assert [name for name in thinking.split() if not thinks(name)] == []
    assert [name for name in plain.split() if thinks(name)] == []
    assert known("o3")["temperature"] == "left out" and "temperature" not in known("gpt-4o")
