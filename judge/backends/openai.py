"""`openai:MODEL`: any server with OpenAI's chat protocol (OPENAI_BASE_URL, OPENAI_API_KEY)."""

from __future__ import annotations

import asyncio
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
    State,
    complaint_text,
    thinks,
)
from judge.backends.base import (
    LAST_LAYER,
    Call,
    Completion,
    Message,
    Method,
    Mode,
    refuse_half_pairs,
    refuse_inner_layer,
)
from judge.backends.chat_reply import completion, count_of, mapping_of, parsed, thought
from judge.backends.chat_request import openai_arguments
from judge.backends.faults import complaint, error_within, scrubbed, status_error
from judge.backends.wire import Answered, Wire
from judge.redact import reply_redactor, without_secrets

_log = logging.getLogger(__name__)

OWN_URL = "https://api.openai.com/v1"
"""Where models are asked if $OPENAI_BASE_URL names no other server."""

_AZURE = re.compile(r"^https?://[^/?#]*\.azure(-api)?\.(com|net|us|cn)\b|/openai/deployments/")

_MOST_SHOWN = 120
"""Characters shown of an answer that is not a completion."""

_LIST_SECONDS = 10.0
"""For a server's list of models, which a run can go without."""

_VERSIONED = re.compile(r"/v\d|/openai/deployments/")
_NO_SUCH_WAY = re.compile(r"endpoints|provider|support|tool|parameter|response_format|schema")
"""How proxies that look for a provider say (HTTP 404) that none takes such a request."""

_ADAPTABLE = frozenset((400, 404, 405, 415, 422, 500, 501))
"""Statuses by which servers refuse a part of a request; llama.cpp's templates raise 500."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user wants in every request to one server.

    Args:
        omit: parameters that are not sent; `system` puts the system's text into the user's message.
        mode: the only way to ask for JSON (None: the best that works).
        effort: `reasoning_effort` (None: not sent).
        exact: a reply gets the tokens that a call allows, and no room for thoughts besides.
        identity: what else of a request replies depend on, such as headers.
    """

    omit: tuple[str, ...] = ()
    mode: Mode | None = None
    effort: str | None = None
    exact: bool = False
    identity: str = ""

    @property
    def told(self) -> dict[str, str]:
        """What replies depend on, for the backend's identity."""
        parts = {
            "omit": ",".join(self.omit),
            "mode": self.mode or "",
            "reasoning_effort": self.effort or "",
            "request": self.identity,
        }
        return {name: part for name, part in parts.items() if part}


class OpenAIBackend:
    """One model behind an OpenAI-compatible server.

    What the server refuses of a request is sent otherwise from then on (`Adaptations`). `wire` is
    another way to the server than OPENAI_BASE_URL with OPENAI_API_KEY.

    Raises:
        UsageError: OPENAI_API_KEY or OPENAI_BASE_URL is missing or cannot be used.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA, Mode.TOOLS, Mode.JSON, Mode.WORDS)
    slots: int | None = None
    seeded: bool = True
    method: Method = "structured"
    states_beside_replies = False

    def __init__(
        self, name: str, *, wire: Wire | None = None, request: Request | None = None
    ) -> None:
        self._name = name
        self._request = request or Request()
        if self._request.mode is not None:
            self.modes = (self._request.mode,)
        self._wire = wire or _own_wire(name)
        room = 0 if self._request.exact else THINKING_ROOM
        self._adaptations = Adaptations(self._usual(), room)
        self._gave_first_token = False
        self._redact = reply_redactor(self._wire.secrets)

    def _usual(self) -> dict[str, str | int]:
        """What is sent otherwise from the start."""
        usual: dict[str, str | int] = dict.fromkeys(self._request.omit, LEFT_OUT)
        if thinks(self._name) and not self._request.exact:
            usual["thinking_tokens"] = THINKING_ROOM
        return usual

    def identity(self) -> Mapping[str, str]:
        told = {"provider": "openai", "model": self._name, "server": self._wire.server}
        return told | self._request.told

    @property
    def adaptations(self) -> State:
        """What the server does not take as it is usually sent, and what is sent instead."""
        return self._adaptations.kept

    @adaptations.setter
    def adaptations(self, state: State) -> None:
        self._adaptations.state = self._adaptations.kept = dict(state)

    def limit(self, call: Call) -> int:
        """Most tokens of the reply, as the server is told."""
        return self._adaptations.limit(call.max_tokens)

    def arguments(self, call: Call, mode: Mode) -> dict[str, Any]:
        """The request, without the model's name."""
        return openai_arguments(call, mode)

    async def complete(self, call: Call, mode: Mode) -> Completion:
        refuse_half_pairs(call)
        sent = self._adaptations.state
        arguments = {"model": self._name, **self.arguments(call, mode)}
        if self._request.effort is not None:
            arguments["reasoning_effort"] = self._request.effort
        arguments = self._adaptations.applied(arguments)
        answered = await self._answered(orjson.dumps(arguments), call)
        if answered.status >= 300:
            error = unsuccessful(answered, f"{self._name} at {self._wire.server}")
            raise self._refused(error, answered.status, answered.body, call, sent, arguments)
        what = f"the answer of {self._wire.server}"
        wanted_tool = (call.schema_name or "reply") if mode is Mode.TOOLS else None
        try:
            answer = parsed(answered.body)
            if within := error_within(answer, f"{self._name} at {self._wire.server}"):
                status = 400 if isinstance(within, errors.BadRequest) else answered.status
                raise self._refused(within, status, answered.body, call, sent, arguments)
            read = completion(answer, self._redact, wanted_tool)
        except (LookupError, TypeError, AttributeError):
            told = scrubbed(complaint(answered.body)[0])[:_MOST_SHOWN]
            told = f"it lacks what the protocol asks for; it says: {told}"
            raise errors.ServerFault(f"{what} is no chat completion: {told}") from None
        except (ValueError, RecursionError) as error:
            raise errors.ServerFault(f"{what} is no chat completion: {scrubbed(error)}") from None
        if read.finish_reason == "length" and call.logprobs is None and thought(answer):
            self._adaptations.give_room()
        if call.logprobs and read.first_token is None and read.finish_reason != "refusal":
            if self._gave_first_token:
                raise errors.ServerFault(f"{what} lacks the log-probabilities of earlier ones")
        elif call.logprobs:
            self._gave_first_token = True
        self._adaptations.answered(call, sent)
        return read

    def _refused(
        self,
        error: errors.BackendError,
        status: int,
        body: bytes,
        call: Call,
        sent: State,
        request: Mapping[str, Any],
    ) -> errors.BackendError:
        """The error for a request that was refused, `Adapted` where it is to be made again."""
        if status == 404 and not _VERSIONED.search(self._wire.server):
            error = errors.Denied(f"{error}; most addresses end in /v1: {self._wire.server}/v1")
        if status not in _ADAPTABLE or isinstance(error, (errors.Refused, errors.Forbidden)):
            return error
        said = complaint_text(body)
        if "reasoning_effort" in request and re.search(r"reasoning[_.]effort", said):
            return errors.Denied(f"--reasoning-effort {self._request.effort}: {error}")
        if self._adaptations.again(call, sent, request, said):
            return errors.Adapted(str(error))
        by_schema = "response_format" in request or "tools" in request
        if status in (405, 501) or (status == 404 and by_schema and _NO_SUCH_WAY.search(said)):
            return errors.BadRequest(str(error))
        return error

    async def hidden(
        self, messages: Sequence[Message], layer: int = LAST_LAYER
    ) -> tuple[Sequence[float], int]:
        """As `HiddenStates`: the vector of /embeddings, of length one if the server normalises."""
        refuse_inner_layer(layer)
        refuse_half_pairs(Call(messages))
        asked = {"model": self._name, "encoding_format": "float", **self.embedded(messages)}
        answered = await self._wire.request("POST", "/embeddings", data=orjson.dumps(asked))
        if answered.status >= 300:
            raise unsuccessful(answered, f"{self._name} at {self._wire.server}")
        try:
            told = orjson.loads(answered.body)
            state = [float(number) for number in told["data"][0]["embedding"]]
        except (LookupError, TypeError, ValueError) as error:
            what = f"the answer of {self._wire.server}"
            raise errors.ServerFault(f"{what} is no embedding: {scrubbed(error)}") from error
        return state, count_of(mapping_of(told.get("usage")).get("prompt_tokens")) or 0

    async def listed(self) -> str | None:
        """The entry of ours in /models, or the only one; None where there is no such list.

        Raises:
            Unreachable: no server answers.
        """
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                answered = await self._wire.request("GET", "/models")
            listed = orjson.loads(answered.body)["data"]
            entries = {str(entry["id"]): entry for entry in listed}
        except errors.Unreachable:
            raise
        except (errors.BackendError, TimeoutError, LookupError, TypeError, ValueError):
            return None
        name = self._name if len(entries) != 1 else next(iter(entries))
        if answered.status != HTTPStatus.OK or name not in entries:
            return None
        # vLLM and llama-server: what is loaded under the name.
        meta = mapping_of(entries[name].get("meta"))
        parts = [name, entries[name].get("root"), meta.get("n_params"), meta.get("size")]
        return self._redact(" ".join(str(part) for part in parts if part))

    def embedded(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The input to embed: the text of the messages."""
        return {"input": "\n\n".join(message["content"] for message in messages)}

    async def _answered(self, body: bytes, call: Call) -> Answered:
        return await self._wire.post(body)

    async def aclose(self) -> None:
        await self._wire.aclose()


def named_wire(
    url: str,
    key: str,
    url_from: str,
    key_from: str,
    *,
    key_header: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Wire:
    """The way to a server; `url_from` and `key_from` name the settings in messages.

    `key_header` has the key; None is `api-key` for addresses of Azure's form, else the key is a
    bearer's.

    Raises:
        UsageError: the address or the key cannot be used.
    """
    if not (key.isascii() and key.isprintable()):
        raise errors.UsageError(f"{key_from} holds characters that no key can hold")
    name = key_header or ("api-key" if _AZURE.search(url) else "Authorization")
    sent = f"Bearer {key or 'none'}" if name.lower() == "authorization" else key or "none"
    try:
        made = Wire(url, {**(headers or {}), name: sent})
    except errors.UsageError as error:
        raise errors.UsageError(f"{url_from}: {error}") from None
    if made.open_to_all and (key or without_secrets(url) != url.rstrip("/")):
        _warn_of_plain_http(url_from, made.server)
    return made


@cache
def _warn_of_plain_http(url_from: str, server: str) -> None:
    _log.warning(
        "judge: %s: key and records go to %s over http://, where everybody on the way can "
        "read them; use https:// unless the network is your own",
        url_from,
        server,
    )


def _own_wire(name: str) -> Wire:
    url = os.environ.get("OPENAI_BASE_URL", "").strip() or OWN_URL
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and url == OWN_URL:
        raise errors.UsageError(
            f"openai:{name}: OPENAI_API_KEY is not set. Set it, or name another server with "
            "OPENAI_BASE_URL (a local one needs no key)"
        )
    return named_wire(url, key, "OPENAI_BASE_URL", "OPENAI_API_KEY")


def unsuccessful(answered: Answered, what: str) -> errors.BackendError:
    """The error for an answer without success; `what` names model and server."""
    said, code = complaint(answered.body)
    return status_error(answered.status, scrubbed(said), answered.headers, code=code, what=what)
