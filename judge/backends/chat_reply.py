"""A completion out of what a server of OpenAI's chat protocol answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import orjson

from judge.backends.base import Completion
from judge.backends.reading import arguments_of, ending, is_object, text_of
from judge.errors import NoReply

_MOST_SHOWN = 120
"""Characters of a name that a server gives."""

_MOST_TOKENS = 2**40
"""No server counts more tokens than this."""


def completion(
    answer: Mapping[str, Any], redact: Callable[[str], str] = str, tool: str | None = None
) -> Completion:
    """The completion in a chat completion's JSON; `redact` takes secrets out.

    Args:
        tool: the one that had to be called; without it a call counts where there is no content.

    Raises:
        NoReply: the model broke off.
        LookupError, TypeError, AttributeError, ValueError: it is not a chat completion.
    """
    choice = answer["choices"][0]
    message = choice["message"]
    refusal, finish = message.get("refusal"), ending(choice.get("finish_reason"))
    if finish == "fault":
        raise NoReply(f"the reply broke off: finish reason {choice['finish_reason']!r}")
    refused = bool(refusal) or finish == "refusal"
    text = _said(message, tool)
    usage = mapping_of(answer.get("usage"))
    details = mapping_of(usage.get("prompt_tokens_details"))
    return Completion(
        text=redact(str(refusal or text) if refused else text),
        finish_reason="refusal" if refused else finish,
        input_tokens=count_of(usage.get("prompt_tokens")) or 0,
        output_tokens=count_of(usage.get("completion_tokens")) or 0,
        cached_tokens=count_of(details.get("cached_tokens")),
        first_token=_first_token((choice.get("logprobs") or {}).get("content"), redact),
        model=name_of(answer.get("model"), redact),
        system_fingerprint=name_of(answer.get("system_fingerprint"), redact),
    )


def name_of(name: object, redact: Callable[[str], str]) -> str | None:
    """A name that a server gives itself, for messages and the cache; None for none."""
    return redact(name)[:_MOST_SHOWN] or None if isinstance(name, str) else None


def _said(message: Mapping[str, Any], tool: str | None) -> str:
    """A message's text: the arguments of the tool, else the content, else what stands beside it."""
    content = text_of(message.get("content"))
    called = [mapping_of(call.get("function")) for call in message.get("tool_calls") or ()]
    called += [mapping_of(message["function_call"])] if message.get("function_call") else []
    meant = [one for one in called if one.get("name") == tool] or called
    if meant and (tool is not None or not content.strip()):
        return arguments_of(meant[0].get("arguments") or "")
    if not content.strip():
        # LM Studio and vLLM put a whole reply there, for models whose thoughts they tell apart.
        thoughts = (message.get(name) for name in ("reasoning_content", "reasoning"))
        return next((one for one in thoughts if isinstance(one, str) and is_object(one)), content)
    return content


def count_of(told: object) -> int | None:
    """A count of tokens; None for anything else, for which no reply is thrown away."""
    return int(told) if isinstance(told, (int, float)) and 0 <= told <= _MOST_TOKENS else None


def mapping_of(told: object) -> Mapping[str, Any]:
    """A JSON object; an empty one for anything else."""
    return told if isinstance(told, dict) else {}


def _first_token(listed: Any, redact: Callable[[str], str]) -> tuple[tuple[str, float], ...] | None:
    """The alternatives for the first token; () for an empty reply, None if none are listed."""
    if not listed:
        return None if listed is None else ()
    alternatives = listed[0].get("top_logprobs") or [listed[0]]
    # The log of zero comes as null, as -Infinity or not at all.
    logs = (-inf if one.get("logprob") is None else float(one["logprob"]) for one in alternatives)
    return tuple(
        (redact(str(one["token"])), log) for one, log in zip(alternatives, logs, strict=True)
    )


def parsed(body: bytes) -> Any:
    """The JSON of a body, in which a log-probability may be -Infinity."""
    return json.loads(body) if b"-Infinity" in body else orjson.loads(body)


def thought(answer: Mapping[str, Any]) -> bool:
    """Whether a reply that was cut off holds thoughts, or nothing, as where they took it all."""
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
