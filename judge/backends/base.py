"""What every backend shares: the call it is given, the completion it gives back, its contract."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, TypedDict, runtime_checkable

from pydantic import ConfigDict, TypeAdapter, ValidationError

from judge.digest import digest
from judge.errors import BadRequest, UsageError

LAST_LAYER = -1

Method = Literal["structured", "logprobs", "probe"]


class Message(TypedDict):
    """One chat message in OpenAI's form."""

    role: Literal["system", "user", "assistant"]
    content: str


class Prompt(tuple[Message, ...]):
    """Chat messages that know the hash of their text: the same story is asked about many times."""

    @cached_property
    def digest(self) -> str:
        """40 hex digits."""
        return digest(list(self))


class Mode(StrEnum):
    """How a reply's JSON schema is put to a server."""

    JSON_SCHEMA = "json_schema"
    TOOLS = "tools"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from. Never sent to a server and no part of a cache key.

    Scripted judges match on it, and ask `fields` for the record as plain data; local engines use
    `record` to keep a record's calls together.
    """

    rubric: str = ""
    record: str = ""
    round: int = 0
    vote: int = 0
    fields: Callable[[], Mapping[str, Any]] = dict


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model.

    `schema` is the JSON schema that the reply's text must follow (None: free text); `logprobs` is
    the number of alternatives wanted for the first generated token (None: none); `temperature` None
    leaves it to the server. Above temperature 0 `seed` and `vote` tell calls apart: two such votes
    never share a reply. `role` is the asking judge's, and never tells calls apart. `layer`: no
    reply is wanted but the hidden state of the prompt's last token (`HiddenStates`).
    """

    messages: Sequence[Message]
    schema_name: str | None = None
    schema: Mapping[str, Any] | None = None
    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int = 1024
    logprobs: int | None = None
    layer: int | None = None
    vote: int = 0
    role: str = "judge"
    origin: Origin = field(default_factory=Origin, compare=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model gave back for one call.

    `finish_reason` is "stop", "length" (truncated) or "refusal"; `first_token` lists the
    alternatives for the first generated token as (token text, natural log-probability);
    `cached_tokens` counts prompt tokens that the engine did not evaluate again (None: unknown).
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    text: str
    finish_reason: Literal["stop", "length", "refusal"] = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None
    first_token: tuple[tuple[str, float], ...] | None = None

    def as_text(self) -> str:
        """As JSON, for the cache; a log-probability in it may be infinite."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def restored(cls, plain: Mapping[str, Any]) -> Completion | None:
        """The completion of `as_text`; None for any other JSON object."""
        try:
            return _COMPLETION.validate_python(plain)
        except ValidationError:
            return None


_COMPLETION = TypeAdapter(Completion)


class Backend(Protocol):
    """A way to reach one model. Built as `Backend(name)` from the text behind `provider:`.

    Attributes:
        modes: ways to ask for JSON that may work here, best first; a single one is not tried.
        slots: records that may be worked on at once (None: no limit of its own).
        seeded: whether a call's seed reaches the model; if not, none is recorded.
        method: the method that suits this backend when the user names none.

    `complete` raises the errors of `judge.errors` that derive from `BackendError`, and nothing
    else for anything that a server or an engine does. It neither retries nor caches.

    A backend whose replies depend on more of a call than is sent to a model has a method
    `key_parts(call)`, which returns that as plain data for the cache key.
    """

    modes: tuple[Mode, ...]
    slots: int | None
    seeded: bool
    method: Method

    def __init__(self, name: str) -> None: ...

    def identity(self) -> Mapping[str, str]:
        """What makes two calls the same question: model, server without secrets, weights' hash."""
        ...

    async def complete(self, call: Call, mode: Mode) -> Completion:
        """One reply to one call."""
        ...

    async def aclose(self) -> None:
        """Free what the backend holds."""
        ...


@runtime_checkable
class Starting(Protocol):
    """A backend whose server may have to be started first, which takes minutes."""

    async def ready(self) -> None:
        """Come back when a call can be answered. No call's time-out counts this wait.

        Raises:
            Denied: it never will.
        """
        ...


@runtime_checkable
class HiddenStates(Protocol):
    """A backend that gives a prompt's hidden state, which a probe learns from.

    `states_beside_replies` says that the engine that replies gives states as well; of a server that
    is told by its start.
    """

    states_beside_replies: bool

    async def hidden(
        self, messages: Sequence[Message], layer: int = LAST_LAYER
    ) -> tuple[Sequence[float], int]:
        """The state of the prompt's last token after a layer, and the tokens read.

        The numbers are those of the engine; a server may normalise them. Raises as `complete`.

        Args:
            messages: the very prompt that asks the question.
            layer: 0 for the embeddings, -1 for the last layer; some backends give no other.
        """
        ...


def refuse_inner_layer(layer: int) -> None:
    """Raise BadRequest for a layer that an engine without access to its layers is asked for."""
    if layer != LAST_LAYER:
        raise BadRequest(f"only the last layer's state is given here, not that of layer {layer}")


def refuse_half_pairs(call: Call) -> None:
    """Raise BadRequest for a prompt with half of a surrogate pair, which a JSON file may hold."""
    try:
        "".join(message["content"] for message in call.messages).encode()
    except UnicodeEncodeError as error:
        told = "the prompt holds half of a surrogate pair, which cannot be sent"
        raise BadRequest(told) from error


_SUCH_AS = "openai:gpt-4o, local:qwen2.5-coder-1.5b or scripted:judge.yaml"
_LIKELY = (
    (r"(chat)?gpt-|o\d", "openai"),
    (r"claude-", "langchain:anthropic"),
    (r"gemini-", "langchain:google_genai"),
    (r".*\.gguf$|qwen2\.5-coder-1\.5b$|smollm2-135m$", "local"),
    (r".*\.ya?ml$", "scripted"),
)
"""What a model's name alone tells of its provider: pattern, provider."""


def parse_model(spec: str) -> tuple[str, str]:
    """`provider:model` -> (provider, model), split at the first colon.

    Raises:
        UsageError: no colon, an empty side, or a name that begins with `-`: it would be an option
            of the server that is started for it.
    """
    provider, colon, name = spec.partition(":")
    if not colon or not provider or not name:
        meant = next((p for form, p in _LIKELY if not colon and re.match(form, spec)), None)
        raise UsageError(
            f"model {spec!r} is not of the form provider:model, "
            + (f"did you mean {meant}:{spec}?" if meant else f"such as {_SUCH_AS}")
        )
    if name.startswith("-"):
        raise UsageError(f"model {spec!r}: the name of a model cannot begin with -")
    return provider, name


State = Sequence[float]
"""The numbers of a prompt's last token after a layer of the model, as many as the layer is wide."""


def packed(state: State) -> str:
    """The state as text, each number to 11 significant bits (a share of 0.0005 of it).

    Raises:
        OverflowError: a number is beyond 65,504.
    """
    return base64.b64encode(struct.pack(f"<{len(state)}e", *state)).decode()


def unpacked(text: str) -> tuple[float, ...]:
    """The state that was `packed`; raises ValueError for any other text."""
    try:
        plain = base64.b64decode(text, validate=True)
        return struct.unpack(f"<{len(plain) // 2}e", plain)
    except (binascii.Error, struct.error) as error:
        raise ValueError(f"no state: {error}") from error
