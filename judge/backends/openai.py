"""`openai:MODEL`: any server that speaks OpenAI's chat protocol (OPENAI_BASE_URL, OPENAI_API_KEY)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from judge import errors
from judge.backends.base import Call, Completion, Mode, Reading
from judge.backends.shape import openai_arguments

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

_OWN_URL = "https://api.openai.com/v1"
_CONNECT_TIMEOUT = 10.0
_OUTER_TIMEOUT = 3600.0
"""Seconds; the run's own --timeout is the one that counts, this only ends what nobody waits for."""


def without_secrets(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    place = f"{host}:{parts.port}" if parts.port else host
    return urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))


class OpenAIBackend:
    """One model behind an OpenAI-compatible server. `http_client` replaces the client's own."""

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA, Mode.TOOLS, Mode.JSON)
    slots: int | None = None
    reading: Reading = "structured"

    def __init__(self, name: str, *, http_client: Any = None) -> None:
        from openai import AsyncOpenAI, Timeout

        self._name = name
        self._url = os.environ.get("OPENAI_BASE_URL") or _OWN_URL
        key = os.environ.get("OPENAI_API_KEY")
        if not key and self._url == _OWN_URL:
            raise errors.UsageError(
                f"openai:{name}: OPENAI_API_KEY is not set. Set it, or name another server with "
                "OPENAI_BASE_URL (a local one needs no key)"
            )
        self._client = AsyncOpenAI(
            api_key=key or "none",
            base_url=self._url,
            max_retries=0,
            timeout=Timeout(_OUTER_TIMEOUT, connect=_CONNECT_TIMEOUT),
            http_client=http_client,
        )

    def identity(self) -> Mapping[str, str]:
        url = without_secrets(self._url)
        return {"provider": "openai", "model": self._name, "server": url}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        import openai

        try:
            answer = await self._client.chat.completions.create(
                model=self._name, **openai_arguments(call, mode)
            )
        except openai.APITimeoutError as error:
            raise errors.ServerFault("the server did not answer in time") from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise errors.Unreachable(f"{without_secrets(self._url)}: {cause}") from error
        except openai.APIStatusError as error:
            raise _status_error(error, self._name) from error
        except (openai.APIError, ValueError) as error:
            raise errors.ServerFault(
                f"the server's answer is no chat completion: {error}"
            ) from error
        return completion(answer)

    async def aclose(self) -> None:
        await self._client.close()


def _status_error(error: Any, model: str) -> errors.BackendError:
    status = int(error.status_code)
    said = " ".join(str(error.message).split())[:300]
    if status == 429:
        return errors.RateLimited(said, retry_after=_retry_after(error.response.headers))
    if status in (401, 403):
        return errors.Denied(f"the server refuses the key (HTTP {status})")
    if status == 404:
        return errors.Denied(f"the server does not have the model {model!r} (HTTP 404: {said})")
    if status >= 500 or status in (408, 409):
        wait = _retry_after(error.response.headers)
        return errors.ServerFault(f"HTTP {status}: {said}", retry_after=wait)
    if "context" in said.lower() and ("length" in said.lower() or "exceed" in said.lower()):
        return errors.ContextExceeded(f"HTTP {status}: {said}")
    return errors.BadRequest(f"HTTP {status}: {said}")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        seconds = headers.get("retry-after")
        return None if seconds is None else max(0.0, float(seconds))
    except ValueError:
        return None


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
        text = called.arguments
    refused = bool(message.refusal) or choice.finish_reason == "content_filter"
    usage = answer.usage
    details = usage.prompt_tokens_details if usage else None
    first = choice.logprobs.content if choice.logprobs else None
    return Completion(
        text=message.refusal or text if refused else text,
        finish_reason="refusal"
        if refused
        else "length"
        if choice.finish_reason == "length"
        else "stop",
        input_tokens=usage.prompt_tokens if usage else 0,
        output_tokens=usage.completion_tokens if usage else 0,
        cached_tokens=details.cached_tokens if details else None,
        first_token=tuple((t.token, t.logprob) for t in first[0].top_logprobs) if first else None,
    )
