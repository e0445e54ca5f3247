"""`openai:MODEL`: any server with OpenAI's chat protocol (OPENAI_BASE_URL, OPENAI_API_KEY)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judge import errors
from judge.backends.base import Call, Completion, Mode, Reading
from judge.backends.faults import scrubbed, status_error, without_secrets
from judge.backends.shape import openai_arguments, strip_fence

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion
    from openai.types.chat.chat_completion import Choice

_OWN_URL = "https://api.openai.com/v1"
_CONNECT_TIMEOUT = 10.0
_OUTER_TIMEOUT = 3600.0
"""Seconds; the run's own --timeout counts, this only ends what nobody waits for."""

_NEVER_CONNECTED = frozenset(
    {"ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ProxyError"}
)
"""Names of the errors of httpx and httpx2 alike that mean: no server was spoken to."""


class OpenAIBackend:
    """One model behind an OpenAI-compatible server. `http_client` replaces the client's own.

    Raises:
        UsageError: OPENAI_API_KEY or OPENAI_BASE_URL is missing or cannot be used.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA, Mode.TOOLS, Mode.JSON)
    slots: int | None = None
    seeded: bool = True
    reading: Reading = "structured"

    def __init__(self, name: str, *, http_client: Any = None) -> None:
        from httpx2 import InvalidURL
        from openai import AsyncOpenAI, Timeout

        self._name = name
        # OpenAI's reasoning models refuse the older name of the limit, other servers the newer.
        self._counts_completion = False
        url = os.environ.get("OPENAI_BASE_URL", "").strip() or _OWN_URL
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and url == _OWN_URL:
            raise errors.UsageError(
                f"openai:{name}: OPENAI_API_KEY is not set. Set it, or name another server with "
                "OPENAI_BASE_URL (a local one needs no key)"
            )
        if not (key.isascii() and key.isprintable()):
            raise errors.UsageError("OPENAI_API_KEY holds characters that no key can hold")
        if not url.startswith(("http://", "https://")):
            raise errors.UsageError("OPENAI_BASE_URL does not begin with http:// or https://")
        try:
            self._client = AsyncOpenAI(
                api_key=key or "none",
                base_url=url,
                max_retries=0,
                timeout=Timeout(_OUTER_TIMEOUT, connect=_CONNECT_TIMEOUT),
                http_client=http_client,
            )
            self._server = without_secrets(url)
        except (InvalidURL, ValueError) as error:
            raise errors.UsageError(f"OPENAI_BASE_URL cannot be used: {scrubbed(error)}") from None

    def identity(self) -> Mapping[str, str]:
        return {"provider": "openai", "model": self._name, "server": self._server}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        import openai

        arguments = openai_arguments(call, mode)
        if self._counts_completion:
            arguments["max_completion_tokens"] = arguments.pop("max_tokens")
        try:
            answer = await self._client.chat.completions.create(model=self._name, **arguments)
        except openai.APIConnectionError as error:
            raise self._connection_error(error) from error
        except openai.APIStatusError as error:
            if "max_completion_tokens" in str(error.message) and not self._counts_completion:
                self._counts_completion = True
                return await self.complete(call, mode)
            raise self._status_error(error) from error
        except UnicodeEncodeError as error:
            raise errors.BadRequest(
                "the prompt holds half of a surrogate pair, which cannot be sent"
            ) from error
        except (openai.APIError, ValueError) as error:
            raise self._no_completion(error) from error
        try:
            read = completion(answer)
        except (AttributeError, TypeError) as error:
            raise self._no_completion("it lacks what the protocol asks for") from error
        return replace(read, text=strip_fence(read.text)) if mode is Mode.JSON else read

    async def aclose(self) -> None:
        await self._client.close()

    def _connection_error(self, error: Exception) -> errors.BackendError:
        import openai

        cause = error.__cause__ or error
        if type(cause).__name__ in _NEVER_CONNECTED:
            return errors.Unreachable(f"{self._server}: {scrubbed(cause)}")
        if isinstance(error, openai.APITimeoutError):
            return errors.ServerFault(f"{self._server} did not answer in time")
        kind = scrubbed(cause) or type(cause).__name__
        return errors.ServerFault(f"{self._server}: the connection was lost: {kind}")

    def _status_error(self, error: Any) -> errors.BackendError:
        body = error.body if isinstance(error.body, dict) else {}
        return status_error(
            int(error.status_code),
            scrubbed(body.get("message") or error.message),
            error.response.headers,
            code=error.code,
            what=f"{self._name} at {self._server}",
        )

    def _no_completion(self, why: object) -> errors.ServerFault:
        return errors.ServerFault(
            f"the answer of {self._server} is no chat completion: {scrubbed(why)}"
        )


def completion(answer: ChatCompletion) -> Completion:
    """What a chat completion says, whichever way its JSON came.

    Raises:
        ServerFault: the server sent no choice.
    """
    if not answer.choices:
        raise errors.ServerFault("the server's answer holds no choice")
    choice = answer.choices[0]
    message = choice.message
    text = message.content or ""
    if message.tool_calls and (called := getattr(message.tool_calls[0], "function", None)):
        text = called.arguments or ""
    if not isinstance(text, str):
        raise TypeError("the content is no text")
    refused = bool(message.refusal) or choice.finish_reason == "content_filter"
    usage = answer.usage
    details = usage.prompt_tokens_details if usage else None
    return Completion(
        text=message.refusal or text if refused else text,
        finish_reason="refusal"
        if refused
        else "length"
        if choice.finish_reason == "length"
        else "stop",
        input_tokens=(usage.prompt_tokens or 0) if usage else 0,
        output_tokens=(usage.completion_tokens or 0) if usage else 0,
        cached_tokens=details.cached_tokens if details else None,
        first_token=_first_token(choice),
    )


def _first_token(choice: Choice) -> tuple[tuple[str, float], ...] | None:
    """The alternatives for the first token; none for an empty reply, None without any listing."""
    listed = choice.logprobs.content if choice.logprobs else None
    if not listed:
        return None if listed is None else ()
    first = listed[0]
    if not first.top_logprobs:
        return ((first.token, first.logprob),)
    return tuple((t.token, t.logprob) for t in first.top_logprobs)
