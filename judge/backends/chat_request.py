"""A call as OpenAI's chat protocol puts it, and the schema of its reply in each mode."""

from __future__ import annotations

import json
from typing import Any

from judge.backends.base import Call, Mode

_JSON_REQUEST = (
    "Reply with one JSON object and nothing else, no code fence and no remark. It must follow this "
    "JSON schema:\n"
)


def with_schema_in_words(call: Call) -> list[dict[str, Any]]:
    """The messages with the schema at the end of the last one, so the prefix stays shared."""
    messages: list[dict[str, Any]] = [dict(message) for message in call.messages]
    wanted = _JSON_REQUEST + json.dumps(call.schema, ensure_ascii=False)
    messages[-1]["content"] = f"{messages[-1]['content']}\n\n{wanted}"
    return messages


def tool(call: Call) -> dict[str, Any]:
    """The schema as the one tool that the model must call."""
    return {
        "type": "function",
        "function": {
            "name": call.schema_name or "reply",
            "description": "Give the answer.",
            "parameters": dict(call.schema or {}),
        },
    }


def openai_arguments(call: Call, mode: Mode) -> dict[str, Any]:
    """Arguments for `chat.completions.create`, without the model's name."""
    arguments: dict[str, Any] = {
        "messages": [dict(message) for message in call.messages],
        "max_tokens": call.max_tokens,
    }
    if call.temperature is not None:
        arguments["temperature"] = call.temperature
    if call.seed is not None:
        arguments["seed"] = call.seed
    if call.logprobs is not None:
        arguments |= {"logprobs": True, "top_logprobs": call.logprobs}
    if call.schema is None:
        return arguments
    if mode is Mode.JSON_SCHEMA:
        schema = {"name": call.schema_name or "reply", "schema": dict(call.schema), "strict": True}
        arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif mode is Mode.TOOLS:
        chosen = {"type": "function", "function": {"name": call.schema_name or "reply"}}
        arguments |= {"tools": [tool(call)], "tool_choice": chosen}
    else:
        arguments["messages"] = with_schema_in_words(call)
        if mode is Mode.JSON:
            arguments["response_format"] = {"type": "json_object"}
    return arguments
