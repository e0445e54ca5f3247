"""What every backend shares: the call it is given, the completion it gives back, its contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

from judge.digest import digest
from judge.errors import UsageError

Reading = Literal["structured", "probability"]


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
    leaves it to the server. `vote` is part
    of the call's identity: two votes never share a cache entry.
    """

    messages: Sequence[Message]
    schema_name: str | None = None
    schema: Mapping[str, Any] | None = None
    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int = 1024
    logprobs: int | None = None
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

    text: str
    finish_reason: Literal["stop", "length", "refusal"] = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None
    first_token: tuple[tuple[str, float], ...] | None = None


class Backend(Protocol):
    """A way to reach one model. Built as `Backend(name)` from the text behind `provider:`.

    Attributes:
        modes: ways to ask for JSON that may work here, best first; with one there is no probe.
        slots: records that may be worked on at once (None: no limit of its own).
        seeded: whether a call's seed reaches the model; if not, none is recorded.
        reading: the reading that suits this backend when the user names none.

    `complete` raises the errors of `judge.errors` that derive from `BackendError`, and nothing
    else for anything that a server or an engine does. It neither retries nor caches.
    """

    modes: tuple[Mode, ...]
    slots: int | None
    seeded: bool
    reading: Reading

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
    """What a backend is besides whose server may have to be started first, which takes minutes."""

    async def ready(self) -> None:
        """Come back when a call can be answered. No call's time-out counts this wait.

        Raises:
            Denied: it never will.
        """
        ...


def parse_model(spec: str) -> tuple[str, str]:
    """`provider:model` -> (provider, model), split at the first colon.

    Raises:
        UsageError: no colon, or an empty side.
    """
    provider, colon, name = spec.partition(":")
    if not colon or not provider or not name:
        raise UsageError(
            f"model {spec!r} is not of the form provider:model, such as openai:gpt-4o, "
            "local:qwen2.5-coder-1.5b or scripted:judge.yaml"
        )
    return provider, name
