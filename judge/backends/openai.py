"""`openai:MODEL`: any server with OpenAI's chat protocol (OPENAI_BASE_URL, OPENAI_API_KEY)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

import orjson

from judge import errors
from judge.backends.adaptations import (
    LEFT_OUT,
    THINKING_ROOM,
    Adaptations,
    AdaptationState,
    complaint_text,
    thinks,
)
from judge.backends.base import (
    Backend,
    Call,
    Completion,
    Message,
    Mode,
    refuse_half_pairs,
    refuse_inner_layer,
)
from judge.backends.chat import (
    completion,
    count_of,
    mapping_of,
    openai_arguments,
    thought,
    tokens_of,
)
from judge.backends.faults import complaint, error_within, scrubbed, status_error
from judge.backends.http import CHAT, HttpResponse, HttpServer
from judge.redact import reply_redactor, without_secrets

_log = logging.getLogger(__name__)

DEFAULT_URL = "https://api.openai.com/v1"
"""The server if $OPENAI_BASE_URL names no other."""

_AZURE = re.compile(r"^https?://[^/?#]*\.azure(-api)?\.(com|net|us|cn)\b|/openai/deployments/")

_MAX_SHOWN = 120
"""Most characters shown of an answer that is not a completion."""

_LIST_SECONDS = 10.0
"""Time limit for a server's list of models, which a run can do without."""

_VERSIONED = re.compile(r"/v\d|/openai/deployments/")
_NO_SUCH_WAY = re.compile(r"endpoints|provider|support|tool|parameter|response_format|schema")
"""Words of proxies' HTTP 404 if none of their providers accepts such a request."""

_ADAPTABLE = frozenset((400, 404, 405, 415, 422, 500, 501))
"""Statuses with which servers refuse a part of a request; llama.cpp's templates give 500."""


@dataclass(frozen=True, slots=True)
class Request:
    """The user's settings for every request to one server.

    Args:
        omit: parameters that are not sent; `system` moves the system message's text into the
            user's message.
        mode: the only way to ask for JSON (None: the best that works).
        effort: `reasoning_effort` (None: not sent).
        exact: a reply gets the tokens that a call allows, without extra room for thoughts.
        identity: other parts of a request that replies depend on, such as headers.
    """

    omit: tuple[str, ...] = ()
    mode: Mode | None = None
    effort: str | None = None
    exact: bool = False
    identity: str = ""

    def as_identity(self) -> dict[str, str]:
        """The settings that replies depend on, for the backend's identity."""
        parts = {
            "omit": ",".join(self.omit),
            "mode": self.mode or "",
            "reasoning_effort": self.effort or "",
            "request": self.identity,
        }
        return {name: part for name, part in parts.items() if part}


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request as sent: its call and mode, the state that adapted it, arguments and body."""

    call: Call
    mode: Mode
    state: AdaptationState
    arguments: Mapping[str, Any]
    body: bytes


class OpenAIBackend(Backend):
    """One model behind an OpenAI-compatible server.

    Parts of a request that the server refuses are sent differently from then on (`Adaptations`).
    `server` replaces OPENAI_BASE_URL with OPENAI_API_KEY.

    Raises:
        UsageError: OPENAI_API_KEY or OPENAI_BASE_URL is missing or cannot be used.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA, Mode.TOOLS, Mode.JSON, Mode.WORDS)
    gives_states = speaks_openai = True

    def __init__(
        self, name: str, *, server: HttpServer | None = None, request: Request | None = None
    ) -> None:
        self._name = name
        self._request = request or Request()
        if self._request.mode is not None:
            self.modes = (self._request.mode,)
        self._http = server or environments_server(f"openai:{name}", ["OPENAI"], DEFAULT_URL)
        room = 0 if self._request.exact else THINKING_ROOM
        self._adaptations = Adaptations(self._usual(), room)
        self._gave_first_token = False
        self._redact = reply_redactor(self._http.secrets)

    def _usual(self) -> dict[str, str | int]:
        """Adaptations made from the start."""
        usual: dict[str, str | int] = dict.fromkeys(self._request.omit, LEFT_OUT)
        if thinks(self._name) and not self._request.exact:
            usual["thinking_tokens"] = THINKING_ROOM
        return usual

    def identity(self) -> Mapping[str, str]:
        identity = {"provider": "openai", "model": self._name, "server": self._http.server}
        return identity | self._request.as_identity()

    @property
    def adaptations(self) -> AdaptationState:
        return self._adaptations.kept

    @adaptations.setter
    def adaptations(self, state: AdaptationState) -> None:
        # The state may be of a run with another --max-tokens.
        state = {**self._usual(), **state}
        if self._request.exact:
            state.pop("thinking_tokens", None)
        self._adaptations.state = self._adaptations.kept = state

    def limit(self, call: Call) -> int:
        return self._adaptations.limit(call.max_tokens)

    def arguments(self, call: Call, mode: Mode) -> dict[str, Any]:
        """The request, without the model's name."""
        return openai_arguments(call, mode)

    async def complete(self, call: Call, mode: Mode) -> Completion:
        if call.layer is not None:
            return await self._state(call)
        request = self._prepared(call, mode)
        return self._read(await self._http.request("POST", CHAT, data=request.body), request)

    def _prepared(self, call: Call, mode: Mode) -> _Sent:
        """The request for a call, in the form that this server accepts; raises BadRequest."""
        arguments = {"model": self._name, **self.arguments(call, mode)}
        if self._request.effort is not None:
            arguments["reasoning_effort"] = self._request.effort
        state, arguments = self._adaptations.state, self._adaptations.applied(arguments)
        try:
            return _Sent(call, mode, state, arguments, orjson.dumps(arguments))
        except orjson.JSONEncodeError:
            refuse_half_pairs(call)
            raise

    def _read(self, response: HttpResponse, request: _Sent) -> Completion:
        """The completion in a server's answer; raises BackendError."""
        call, model = request.call, f"{self._name} at {self._http.server}"
        if response.status >= 300:
            raise self._refused(unsuccessful(response, model), response.status, response, request)
        source = f"the answer of {self._http.server}"
        tool = (call.schema_name or "reply") if request.mode is Mode.TOOLS else None
        answer: Any = None
        try:
            # A log-probability in it may be -Infinity.
            loads = json.loads if b"-Infinity" in response.body else orjson.loads
            answer = loads(response.body)
            if error := error_within(answer, model, self._http.redact):
                error.tokens = tokens_of(answer)
                status = 400 if isinstance(error, errors.BadRequest) else response.status
                raise self._refused(error, status, response, request)
            reply = completion(answer, self._redact, tool)
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as problem:
            text = "required fields are missing"
            if isinstance(problem, (ValueError, RecursionError)):
                text = scrubbed(problem)
            if quote := scrubbed(self._http.redact(complaint(response.body)[0]))[:_MAX_SHOWN]:
                text = f"{text}; it says: {quote}"
            text = f"{source} is not a chat completion: {text}"
            raise errors.ServerFault(text, tokens=tokens_of(mapping_of(answer))) from None
        tokens = reply.input_tokens, reply.output_tokens
        thinking = reply.finish_reason == "length" and call.logprobs is None and thought(answer)
        if thinking and self._adaptations.give_room(request.state):
            raise errors.Adapted("the model's thoughts took the tokens of its reply", tokens=tokens)
        if call.logprobs and reply.first_token is None and reply.finish_reason != "refusal":
            if self._gave_first_token:
                text = f"{source} lacks the log-probabilities of earlier ones"
                raise errors.ServerFault(text, tokens=tokens)
        elif call.logprobs:
            self._gave_first_token = True
        self._adaptations.answered(call, request.state)
        return reply

    def _refused(
        self, error: errors.BackendError, status: int, response: HttpResponse, request: _Sent
    ) -> errors.BackendError:
        """The error for a refused request; `Adapted` if it should be made again."""
        if status == 404 and not _VERSIONED.search(self._http.server):
            address = f"{self._http.server}/v1"
            error = errors.Denied(f"{error}; most addresses end in /v1: {address}")
        if status not in _ADAPTABLE or isinstance(error, (errors.Refused, errors.Forbidden)):
            return error
        text, arguments = complaint_text(response.body), request.arguments
        if "reasoning_effort" in arguments and re.search(r"reasoning[_.]effort", text):
            return errors.Denied(f"--reasoning-effort {self._request.effort}: {error}")
        if self._adaptations.again(request.call, request.state, arguments, text):
            return errors.Adapted(str(error))
        by_schema = "response_format" in arguments or "tools" in arguments
        if status == 501 or (status == 404 and by_schema and _NO_SUCH_WAY.search(text)):
            return errors.BadRequest(str(error))
        return error

    async def _state(self, call: Call) -> Completion:
        """The vector of /embeddings, of length one if the server normalises."""
        refuse_inner_layer(call)
        refuse_half_pairs(call)
        request = {"model": self._name, "encoding_format": "float", **self.embedded(call.messages)}
        response = await self._http.request("POST", "/embeddings", data=orjson.dumps(request))
        if response.status >= 300:
            raise unsuccessful(response, f"{self._name} at {self._http.server}")
        try:
            answer = orjson.loads(response.body)
            state = [float(number) for number in answer["data"][0]["embedding"]]
        except (LookupError, TypeError, ValueError) as error:
            source = f"the answer of {self._http.server}"
            raise errors.ServerFault(f"{source} is not an embedding: {scrubbed(error)}") from error
        tokens = count_of(mapping_of(answer.get("usage")).get("prompt_tokens")) or 0
        return Completion.of_state(state, call.layer, tokens)

    async def listed(self) -> str | None:
        """This model's entry in /models, or the only entry; None if there is no such list.

        Raises:
            Unreachable: no server answers.
        """
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                entries = await self.models()
        except errors.Unreachable:
            raise
        except (errors.BackendError, TimeoutError, LookupError, TypeError, ValueError):
            return None
        name = self._name if len(entries) != 1 else next(iter(entries))
        if name not in entries:
            return None
        # vLLM and llama-server say here what is loaded under the name.
        meta = mapping_of(entries[name].get("meta"))
        parts = [name, entries[name].get("root"), meta.get("n_params"), meta.get("size")]
        return self._redact(" ".join(str(part) for part in parts if part))

    async def models(self) -> dict[str, Any]:
        """The entries of /models by name; empty if the status is not 200.

        Raises:
            BackendError, LookupError, TypeError, ValueError: there is no such list.
        """
        response = await self._http.request("GET", "/models")
        entries = {str(entry["id"]): entry for entry in orjson.loads(response.body)["data"]}
        return entries if response.status == HTTPStatus.OK else {}

    def embedded(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The input to embed: the text of the messages."""
        return {"input": "\n\n".join(message["content"] for message in messages)}

    async def aclose(self) -> None:
        await self._http.aclose()


def named_server(
    url: str,
    key: str,
    url_from: str,
    key_from: str,
    *,
    key_header: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpServer:
    """The server at an address; `url_from` and `key_from` are the settings' names, for messages.

    `key_header` holds the key; None is `api-key` for addresses of Azure's form, else
    `Authorization`, with a bearer token.

    Raises:
        UsageError: the address or the key cannot be used.
    """
    if not (key.isascii() and key.isprintable()):
        raise errors.UsageError(f"{key_from} has characters that a key cannot have")
    name = key_header or ("api-key" if _AZURE.search(url) else "Authorization")
    secret = f"Bearer {key or 'none'}" if name.lower() == "authorization" else key or "none"
    try:
        server = HttpServer(url, {**(headers or {}), name: secret})
    except errors.UsageError as error:
        raise errors.UsageError(f"{url_from}: {error}") from None
    if server.open_to_all and (key or without_secrets(url) != url.rstrip("/")):
        _warn_of_plain_http(url_from, server.server)
    return server


@cache
def _warn_of_plain_http(url_from: str, server: str) -> None:
    _log.warning(
        "judge: %s: key and records go to %s over http://, where anyone on the way can read "
        "them; use https:// unless the network is your own",
        url_from,
        server,
    )


def environments_server(spec: str, prefixes: Sequence[str], default: str) -> HttpServer:
    """The server of the first prefix whose variables (..._BASE_URL, ..._API_KEY) name an address or
    hold a key; `default` is the address without one.

    Raises:
        UsageError: the default server's key is missing, or a variable cannot be used.
    """
    names = [(f"{prefix}_BASE_URL", f"{prefix}_API_KEY") for prefix in prefixes]
    settings = [[os.environ.get(name, "").strip() for name in pair] for pair in names]
    place = next((place for place, pair in enumerate(settings) if any(pair)), 0)
    (url_from, key_from), (url, key) = names[place], settings[place]
    if not key and (url or default) == default:
        raise errors.UsageError(
            f"{spec}: {key_from} is not set. Set it, or name another server with {url_from} (a "
            "local one needs no key)"
        )
    return named_server(url or default, key, url_from, key_from)


def unsuccessful(response: HttpResponse, source: str) -> errors.BackendError:
    """The error for an unsuccessful answer; `source` names model and server."""
    text, code = complaint(response.body)
    return status_error(response.status, scrubbed(text), response.headers, code=code, source=source)
