"""`langchain:PROVIDER:MODEL`: any chat model that LangChain can build.

PROVIDER:MODEL goes to `init_chat_model`; a dotted class name (`langchain:langchain_community.
chat_models.ChatOllama:llama3`) is imported and built with `model=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from judge import errors
from judge.backends.base import Backend, Call, Completion, Mode
from judge.backends.chat import (
    count_of,
    counted_tokens,
    mapping_of,
    name_of,
    tool,
    with_schema_in_words,
)
from judge.backends.faults import error_within, scrubbed, status_error
from judge.backends.proxies import direct_to_loopback
from judge.backends.reading import arguments_of, ending, text_of
from judge.langsmith import guarded
from judge.redact import reply_redactor, without_secrets

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage

_ADDRESSES = ("openai_api_base", "base_url", "azure_endpoint", "endpoint_url", "anthropic_api_url")
_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""Where integrations tell how a reply ended; OpenAI's Responses API tells it of cut ones alone."""

_NEVER_CONNECTED = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError"})
_TRANSLATIONS: Mapping[str, type[errors.BackendError]] = {
    "ContextOverflowError": errors.ContextExceeded,
    "ModelAuthenticationError": errors.Denied,
    "ModelPermissionDeniedError": errors.Denied,
    "ModelNotFoundError": errors.Denied,
    "ModelRateLimitError": errors.RateLimited,
    "ModelInvalidRequestError": errors.BadRequest,
    "NotImplementedError": errors.BadRequest,
    "TypeError": errors.BadRequest,
    "ValueError": errors.BadRequest,
}
"""By class name: langchain_core's errors, and those of a model for arguments it does not know."""


class LangChainBackend(Backend):
    """One LangChain chat model; JSON by tool call if the model has them, else asked for in words.

    Raises:
        UsageError: the model cannot be built.
    """

    modes = (Mode.TOOLS, Mode.JSON)
    seeded = False

    def __init__(self, name: str) -> None:
        self._name = name
        with direct_to_loopback():
            self._model = _build(name)

    def identity(self) -> Mapping[str, str]:
        identity = {"provider": "langchain", "model": self._name}
        client = getattr(self._model, "root_client", None)
        addresses = [getattr(self._model, name, None) for name in _ADDRESSES]
        address = next((u for u in (*addresses, getattr(client, "base_url", None)) if u), None)
        return identity | ({"server": without_secrets(str(address))} if address else {})

    async def complete(self, call: Call, mode: Mode) -> Completion:
        if call.logprobs is not None:
            raise errors.BadRequest("LangChain gives no log-probabilities; use --method structured")
        runnable: Any = self._model
        messages = [dict(message) for message in call.messages]
        settings: dict[str, Any] = {"max_tokens": call.max_tokens}
        if call.temperature is not None:
            settings["temperature"] = call.temperature
        # Only some integrations raise LangChain's ModelError; the others pass on their provider's
        # errors. So everything is caught, but only around their own calls.
        try:
            if call.schema is not None and mode is Mode.TOOLS:
                runnable = self._model.bind_tools([tool(call)], tool_choice="any")
            elif call.schema is not None:
                messages = with_schema_in_words(call)
            with guarded() as config:
                answer = await runnable.bind(**settings).ainvoke(messages, config)
        except Exception as error:
            raise self._translated(error) from error
        return _completion(answer)

    def _translated(self, error: Exception) -> errors.BackendError:
        message = f"{type(error).__name__}: {scrubbed(error)}"
        # httpx's errors, as some integrations raise them, have the status in the response alone.
        response = getattr(error, "response", None)
        status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
        if isinstance(status, int) and status >= 400:
            headers = getattr(response, "headers", None) or {}
            code = getattr(error, "code", None)
            return status_error(status, message, headers, code=code, source=self._name)
        # langchain-openai's, for an error that a server reports under HTTP 200.
        within = error.args[0] if isinstance(error, ValueError) and error.args else None
        if isinstance(within, dict) and (fault := error_within({"error": within}, self._name, str)):
            return fault
        cause: BaseException | None = error
        while cause is not None:
            if type(cause).__name__ in _NEVER_CONNECTED:
                return errors.Unreachable(message)
            cause = cause.__cause__
        families = (_TRANSLATIONS.get(family.__name__) for family in type(error).__mro__)
        return next(filter(None, families), errors.ServerFault)(message)


def _build(name: str) -> BaseChatModel:
    head, _, model = name.partition(":")
    try:
        if "." in head:
            return _chat_model(head)(**({"model": model} if model else {}))
        from langchain.chat_models import init_chat_model

        try:
            # judge retries itself, if the model's own retries can be turned off.
            return init_chat_model(name, max_retries=0)
        except (TypeError, ValueError):
            return init_chat_model(name)
    except Exception as error:
        if find_spec("langchain") is None:
            message = f"langchain:{name} needs the library langchain"
            raise errors.missing_extra(message, "langchain") from error
        why = f"{type(error).__name__}: {scrubbed(error)}"
        raise errors.UsageError(f"langchain:{name}: cannot be built: {why}") from error


def _chat_model(dotted: str) -> type[BaseChatModel]:
    """A chat model class by its dotted name; raises TypeError, without calling it, if it is
    none."""
    from langchain_core.language_models import BaseChatModel

    module, _, symbol = dotted.rpartition(".")
    factory = getattr(import_module(module), symbol)
    if not (isinstance(factory, type) and issubclass(factory, BaseChatModel)):
        raise TypeError(f"{dotted} is not a LangChain chat model")
    return factory


def _completion(answer: AIMessage) -> Completion:
    text = text_of(answer.content)
    if calls := [*answer.tool_calls, *answer.invalid_tool_calls]:
        text = arguments_of("" if call["args"] is None else call["args"] for call in calls)
    metadata = answer.response_metadata
    reasons = (metadata.get(name) for name in _REASONS)
    reason = next(
        filter(None, reasons), mapping_of(metadata.get("incomplete_details")).get("reason")
    )
    finish, refusal = ending(reason), answer.additional_kwargs.get("refusal")
    usage = mapping_of(answer.usage_metadata)
    tokens = counted_tokens(usage, "input_tokens", "output_tokens")
    if finish == "fault":
        raise errors.NoReply(f"the reply broke off: finish reason {reason!r}", tokens=tokens)
    return Completion(
        text=reply_redactor()(str(refusal) if refusal else text),
        finish_reason="refusal" if refusal else finish,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cached_tokens=count_of(mapping_of(usage.get("input_token_details")).get("cache_read")),
        model=name_of(metadata.get("model_name") or metadata.get("model"), reply_redactor()),
        system_fingerprint=name_of(metadata.get("system_fingerprint"), reply_redactor()),
    )
