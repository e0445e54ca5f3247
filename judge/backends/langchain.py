"""`langchain:PROVIDER:MODEL`: any chat model that LangChain can build.

PROVIDER:MODEL goes to `init_chat_model`; a dotted class name (`langchain:langchain_community.
chat_models.ChatOllama:llama3`) is imported and built with `model=`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from judge import errors
from judge.backends.base import Call, Completion, Mode, Reading
from judge.backends.shape import strip_fence, tool, with_schema_in_words

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage


class LangChainBackend:
    """One LangChain chat model; JSON comes by tool call where the model has them, else in words."""

    modes: tuple[Mode, ...] = (Mode.TOOLS, Mode.JSON)
    slots: int | None = None
    reading: Reading = "structured"

    def __init__(self, name: str) -> None:
        self._name = name
        self._model = _build(name)

    def identity(self) -> Mapping[str, str]:
        return {"provider": "langchain", "model": self._name}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        runnable: Any = self._model
        messages = [dict(message) for message in call.messages]
        if call.logprobs is not None:
            raise errors.BadRequest(
                "LangChain gives no log-probabilities; use --reading structured"
            )
        settings = {"temperature": call.temperature, "max_tokens": call.max_tokens}
        if call.schema is not None and mode is Mode.TOOLS:
            try:
                runnable = self._model.bind_tools([tool(call)], tool_choice="any")
            except NotImplementedError as error:
                raise errors.BadRequest(f"{self._name} has no tool calls") from error
        elif call.schema is not None:
            messages = with_schema_in_words(call)
        try:
            answer = await runnable.bind(**settings).ainvoke(messages)
        except Exception as error:
            raise _translated(error) from error
        return _completion(answer)

    async def aclose(self) -> None:
        return None


def _build(name: str) -> BaseChatModel:
    head, _, model = name.partition(":")
    try:
        if "." in head:
            module, _, symbol = head.rpartition(".")
            built: BaseChatModel = getattr(import_module(module), symbol)(
                **({"model": model} if model else {})
            )
            return built
        from langchain.chat_models import init_chat_model

        return init_chat_model(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise errors.UsageError(f"langchain:{name}: cannot be built: {error}") from error


def _translated(error: Exception) -> errors.BackendError:
    status = getattr(error, "status_code", None)
    said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if status == 429:
        return errors.RateLimited(said)
    if status in (401, 403, 404):
        return errors.Denied(said)
    if isinstance(status, int) and 400 <= status < 500:
        return errors.BadRequest(said)
    if isinstance(error, (NotImplementedError, TypeError)):
        return errors.BadRequest(said)
    if isinstance(error, ConnectionError) or "Connection" in type(error).__name__:
        return errors.Unreachable(said)
    return errors.ServerFault(said)


def _completion(answer: AIMessage) -> Completion:
    text = answer.content if isinstance(answer.content, str) else str(answer.text)
    if answer.tool_calls:
        text = json.dumps(answer.tool_calls[0]["args"], ensure_ascii=False)
    reason = answer.response_metadata.get("finish_reason") or answer.response_metadata.get(
        "stop_reason"
    )
    usage = answer.usage_metadata
    return Completion(
        text=strip_fence(text),
        finish_reason="length" if reason in ("length", "max_tokens") else "stop",
        input_tokens=usage["input_tokens"] if usage else 0,
        output_tokens=usage["output_tokens"] if usage else 0,
    )
