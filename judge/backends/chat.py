"""OpenAI's chat protocol: makes requests from calls, and completions from answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from judge.backends.base import Call, Completion, Mode
from judge.backends.reading import arguments_of, ending, is_object, text_of
from judge.errors import NoReply

_MAX_SHOWN = 120
"""Most characters kept of a name that a server gives."""

_MAX_TOKENS = 2**40
"""A higher count of tokens is not believed."""

_JSON_REQUEST = (
    "Reply with one JSON object and nothing else, no code fence and no remark. It must follow this "
    "JSON schema:\n"
)


def with_schema_in_words(call: Call) -> list[dict[str, Any]]:
    """The messages with the schema at the end of the last one, so the prefix stays shared."""
    messages: list[dict[str, Any]] = [dict(message) for message in call.messages]
    request = _JSON_REQUEST + json.dumps(call.schema, ensure_ascii=False)
    messages[-1]["content"] = f"{messages[-1]['content']}\n\n{request}"
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
        function = {"type": "function", "function": {"name": call.schema_name or "reply"}}
        arguments |= {"tools": [tool(call)], "tool_choice": function}
    else:
        arguments["messages"] = with_schema_in_words(call)
        if mode is Mode.JSON:
            arguments["response_format"] = {"type": "json_object"}
    return arguments


# ---------------------------------------------------------------- what comes back


def completion(
    answer: Mapping[str, Any], redact: Callable[[str], str] = str, tool: str | None = None
) -> Completion:
    """The completion in a chat completion's JSON; `redact` removes secrets.

    Args:
        tool: the tool that had to be called (None: a tool call counts only without content).

    Raises:
        NoReply: the model broke off.
        LookupError, TypeError, AttributeError, ValueError: it is not a chat completion.
    """
    choice = answer["choices"][0]
    message = choice["message"]
    refusal, finish = message.get("refusal"), ending(choice.get("finish_reason"))
    tokens = tokens_of(answer)
    if finish == "fault":
        text = f"the reply broke off: finish reason {choice['finish_reason']!r}"
        raise NoReply(text, tokens=tokens)
    is_refusal = bool(refusal) or finish == "refusal"
    text = _text(message, tool)
    details = mapping_of(mapping_of(answer.get("usage")).get("prompt_tokens_details"))
    return Completion(
        text=redact(str(refusal or text) if is_refusal else text),
        finish_reason="refusal" if is_refusal else finish,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cached_tokens=count_of(details.get("cached_tokens")),
        first_token=_first_token(choice["logprobs"], redact) if choice.get("logprobs") else None,
        model=name_of(answer.get("model"), redact),
        system_fingerprint=name_of(answer.get("system_fingerprint"), redact),
    )


def name_of(name: object, redact: Callable[[str], str]) -> str | None:
    """A name that a server gives, shortened, for messages and the cache; None if it is empty."""
    return redact(name)[:_MAX_SHOWN] or None if isinstance(name, str) else None


def _text(message: Mapping[str, Any], tool: str | None) -> str:
    """A message's text: the tool's arguments, else the content, else a JSON reply in thoughts."""
    content = message.get("content")
    if tool is None and isinstance(content, str) and content and not content.isspace():
        return content
    content = text_of(content)
    functions = [mapping_of(call.get("function")) for call in message.get("tool_calls") or ()]
    functions += [mapping_of(message["function_call"])] if message.get("function_call") else []
    functions = [call for call in functions if call.get("name") == tool] or functions
    if functions and (tool is not None or not content.strip()):
        return arguments_of(call.get("arguments") or "" for call in functions)
    if not content.strip():
        # LM Studio and vLLM put a whole reply there, for models whose thoughts they separate.
        thoughts = (message.get(name) for name in ("reasoning_content", "reasoning"))
        return next((t for t in thoughts if isinstance(t, str) and is_object(t)), content)
    return content


def count_of(value: object) -> int | None:
    """A count of tokens, which some servers write as text; None for anything else, which must not
    cost the reply."""
    if isinstance(value, str) and value.isdecimal():
        value = float(value)
    return int(value) if isinstance(value, (int, float)) and 0 <= value <= _MAX_TOKENS else None


def tokens_of(answer: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens of the prompt and of the reply in a chat completion's usage (0: not given)."""
    usage = mapping_of(answer.get("usage"))
    return counted_tokens(usage, "prompt_tokens", "completion_tokens")


def counted_tokens(usage: Mapping[str, object], prompt: str, reply: str) -> tuple[int, int]:
    """Tokens of the prompt and of the reply in a usage that names them so (0: not given).

    Thoughts belong to the reply; xAI and Gemini count them in the total alone.
    """
    names = (prompt, reply, "total_tokens")
    input_tokens, output_tokens, total = (count_of(usage.get(name)) or 0 for name in names)
    return input_tokens, max(output_tokens, total - input_tokens) if input_tokens else output_tokens


def mapping_of(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _first_token(
    logprobs: Mapping[str, Any], redact: Callable[[str], str]
) -> tuple[tuple[str, float], ...] | None:
    """The alternatives for the first token; () for an empty reply, None if none are listed."""
    content = logprobs.get("content")
    if not content:
        return None if content is None else ()
    alternatives = content[0].get("top_logprobs") or [content[0]]
    # The log of zero comes as null, as -Infinity or not at all.
    logs = (-inf if a.get("logprob") is None else float(a["logprob"]) for a in alternatives)
    return tuple((redact(str(a["token"])), log) for a, log in zip(alternatives, logs, strict=True))


def thought(answer: Mapping[str, Any]) -> bool:
    """Whether a reply that was cut off holds thoughts, or nothing, because they took it all."""
    message = answer["choices"][0]["message"]
    details = mapping_of(mapping_of(answer.get("usage")).get("completion_tokens_details"))
    content = message.get("content")
    return bool(
        not content
        or details.get("reasoning_tokens")
        or message.get("reasoning_content")
        or message.get("reasoning")
        or "<think>" in str(content)
    )
