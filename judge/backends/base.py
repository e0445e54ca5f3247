"""The contract of a backend: the call it gets, the completion it returns."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypedDict

from pydantic import ConfigDict, TypeAdapter, ValidationError

from judge.digest import digest
from judge.errors import BadRequest, ServerFault, UsageError, install_hint

LAST_LAYER = -1

Method = Literal["structured", "logprobs", "probe"]


class Message(TypedDict):
    """One chat message in OpenAI's form."""

    role: Literal["system", "user", "assistant"]
    content: str


QuestionKind = Literal["yes-no", "choice", "score"]


class Choice(NamedTuple):
    """One answer of a typed question: its word in the prompt, its name, and its meaning (None: the
    name says it)."""

    word: str
    name: str
    meaning: str | None = None


@dataclass(frozen=True, slots=True)
class TypedQuestion:
    """A prompt's question, split into parts for decision models.

    The record's text is only in `state`, by field. The choices of a `score` are its levels, the
    lowest first.
    """

    state: Mapping[str, str]
    instructions: str
    kind: QuestionKind
    choices: tuple[Choice, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of its parts."""
        meanings = (choice.meaning or "" for choice in self.choices)
        names = (choice.name for choice in self.choices)
        return (*self.state, *self.state.values(), self.instructions, *names, *meanings)


class Prompt(tuple[Message, ...]):
    """Chat messages with the hash of their text, computed once: many calls share a prompt.

    `typed` is the same question for a decision model (None: there is none).
    """

    typed: TypedQuestion | None = None

    @classmethod
    def of(cls, messages: Iterable[Message], typed: TypedQuestion) -> Self:
        """The prompt of these messages, which ask the typed question."""
        prompt = cls(messages)
        prompt.typed = typed
        return prompt

    @cached_property
    def digest(self) -> str:
        """40 hex digits."""
        return digest(list(self))


class Mode(StrEnum):
    """How a server is asked for a reply of a JSON schema."""

    JSON_SCHEMA = "json_schema"
    TOOLS = "tools"
    JSON = "json"
    WORDS = "words"
    """In words alone; `JSON` also sets the server's option for a JSON object."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from, for scripted judges and for engines that keep a record's calls
    together. It is neither sent to a server nor part of a cache key."""

    rubric: str = ""
    record: str = ""
    round: int = 0
    vote: int = 0
    fields: Callable[[], Mapping[str, Any]] = dict


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model.

    `schema`: the reply's JSON schema (None: free text). `logprobs`: number of alternatives wanted
    for the first token. `temperature`: None leaves it to the server; above 0, calls with different
    `seed` or `vote` never share a reply. `role`: the asking judge's; calls that differ only in it
    share a reply. `layer`: asks for the hidden state of the prompt's last token after this layer
    instead of a reply (`Completion.of_state`): 0 are the embeddings, -1 is the last layer, the only
    one of some backends.
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

    @property
    def prompt(self) -> Prompt:
        return self.messages if isinstance(self.messages, Prompt) else Prompt(self.messages)

    def sent(self, *, decides: bool) -> tuple[str, ...]:
        """The texts that a model gets: a decision model's are those of the typed question."""
        if decides and (question := self.prompt.typed) is not None:
            return question.texts
        return tuple(message["content"] for message in self.messages)

    @property
    def steady(self) -> bool:
        """Whether calls that differ only in `seed` or `vote` get the same reply."""
        return self.temperature == 0 or self.logprobs is not None or self.layer is not None


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model returned for one call.

    A reply that is `invalid` has no answer; its text says why. `first_token`: alternatives for the
    first token with their natural log-probabilities. `cached_tokens`: prompt tokens that the engine
    did not evaluate again (None: unknown). `model`: the server's name of the model that answered.
    `system_fingerprint`: the server's id of weights and software. Both are None if not given.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    text: str
    finish_reason: Literal["stop", "length", "refusal", "invalid"] = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None
    first_token: tuple[tuple[str, float], ...] | None = None
    model: str | None = None
    system_fingerprint: str | None = None

    def as_text(self) -> str:
        """As JSON, for the cache; a log-probability in it may be infinite."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def of_state(cls, state: Sequence[float], layer: int | None, tokens: int) -> Completion:
        """The completion of a call for a hidden state: its numbers as text, so that it is cached as
        replies are. `tokens` were read for it; a server may normalise the numbers.

        Raises:
            ServerFault, BadRequest: the numbers are infinite or none, or too large.
        """
        what = f"the state after layer {layer}"
        if not state or not all(map(math.isfinite, state)):
            raise ServerFault(f"{what} holds no numbers, or infinite ones", tokens=(tokens, 0))
        try:
            return cls(packed(state, "e"), input_tokens=tokens)
        except OverflowError as error:
            raise BadRequest(f"{what} is too large: {error}", tokens=(tokens, 0)) from error

    @classmethod
    def restored(cls, plain: Mapping[str, Any]) -> Completion | None:
        """The completion of `as_text`; None for any other JSON object."""
        try:
            return _COMPLETION.validate_python(plain)
        except ValidationError:
            return None


_COMPLETION = TypeAdapter(Completion)


class Backend(ABC):
    """A way to reach one model. Built as `Backend(name)` from the text behind `provider:`.

    A backend has `identity` and `complete`; whatever else it does differently replaces a default
    of this class.

    Attributes:
        modes: ways to ask for JSON that may work, best first; a single one is not tested.
        slots: most records in progress at once (None: no limit).
        seeded: whether a call's seed reaches the model; if not, none is recorded.
        method: the default method.
        in_process: the model is in this process: its calls cost nothing and have no time-out.
        decides: it is a decision model, which answers only a prompt's typed question.
        gives_states: whether it gives hidden states (`Call.layer`).
        states_beside_replies: whether it gives replies as well; a server gives one or the other.
        speaks_openai: it takes `request`, the settings of an OpenAI server.
        adaptations: parts of a request that the server refuses, and what is sent instead (after
            `errors.Adapted` the call is made again); replaced when they change.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None = None
    seeded: bool = True
    method: Method = "structured"
    in_process: bool = False
    decides: bool = False
    gives_states: bool = False
    states_beside_replies: bool = False
    speaks_openai: bool = False
    adaptations: Mapping[str, str | int] = MappingProxyType({})

    @abstractmethod
    def __init__(self, name: str) -> None: ...

    @abstractmethod
    def identity(self) -> Mapping[str, str]:
        """What replies depend on: model, server (without secrets), hash of the weights."""

    @classmethod
    def identity_of(cls, name: str) -> Mapping[str, str] | None:
        """The identity that a model will have once it is fetched; None if it is not known."""
        return None

    @abstractmethod
    async def complete(self, call: Call, mode: Mode) -> Completion:
        """One reply to one call, or the hidden state of its prompt, neither retried nor cached;
        raises a `BackendError` for any fault of a server or engine."""

    @property
    def batches_under_way(self) -> int:
        """How many batches the provider is working on."""
        return 0

    def key_parts(self, call: Call) -> object:
        """What replies depend on beside messages, schema and sampling, for the cache key."""
        return None

    def limit(self, call: Call) -> int:
        """Token limit of the reply, as sent to the server."""
        return call.max_tokens

    async def ready(self) -> None:  # noqa: B027 - most are ready
        """Wait until calls can be answered; not part of their time-outs. Raises Denied if never."""

    async def listed(self) -> str | None:
        """The entry of the server's list of models that calls go to, with what tells it from others
        of its name; None if there is no such list, or it does not show it."""
        return None

    async def models(self) -> Collection[str]:
        """The names in the server's list of models."""
        return ()

    @staticmethod
    def installed() -> Sequence[str] | None:
        """The names of models on this machine; None if the provider's are elsewhere."""
        return None

    def taught_by(self) -> frozenset[str]:
        """Keys of the labelled items that the model was taught by (`judge.calibration.labels`)."""
        return frozenset()

    def taught_rubric(self) -> str | None:
        """The digest of the rubric that the model was taught; None if there is none."""
        return None

    async def aclose(self) -> None:  # noqa: B027 - most hold none
        """Free the backend's resources."""


def refuse_inner_layer(call: Call) -> None:
    """Raise BadRequest for any layer but the last."""
    if call.layer != LAST_LAYER:
        message = f"the server gives the state of the last layer only, not of layer {call.layer}"
        raise BadRequest(message)


def refuse_half_pairs(call: Call) -> None:
    """Raise BadRequest for a prompt with a lone surrogate, which a JSON file may hold."""
    try:
        "".join(message["content"] for message in call.messages).encode()
    except UnicodeEncodeError as error:
        message = "the prompt has a lone surrogate, which cannot be sent"
        raise BadRequest(message) from error


_SUCH_AS = "openai:gpt-4o, local:qwen2.5-coder-1.5b or scripted:judge.yaml"
_LIKELY = (
    (r"(chat)?gpt-|o\d", "openai"),
    (r"claude-", "anthropic"),
    (r"gemini-", "google"),
    (r"jev-", "systemone"),
    (r".*\.gguf$|qwen2\.5-coder-1\.5b$|smollm2-135m$", "local"),
    (r".*\.ya?ml$", "scripted"),
)
"""Providers that a bare model name suggests: pattern, provider."""

_LANGCHAIN = {
    "anthropic": ("anthropic", "langchain-anthropic", "ANTHROPIC_API_KEY"),
    **dict.fromkeys(
        ("google", "gemini"), ("google_genai", "langchain-google-genai", "GOOGLE_API_KEY")
    ),
    "mistral": ("mistralai", "langchain-mistralai", "MISTRAL_API_KEY"),
}
"""By common names of providers: LangChain's name, its package, the variable of the key."""


def parse_model(spec: str) -> tuple[str, str]:
    """`provider:model` -> (provider, model), split at the first colon.

    Raises:
        UsageError: no colon, an empty side, or a name that begins with `-`, which a server started
            for it would read as an option.
    """
    provider, colon, name = spec.partition(":")
    if not colon or not provider or not name:
        likely = next((p for form, p in _LIKELY if not colon and re.match(form, spec)), "")
        folder, slash, model = spec.partition("/")
        meant = what_to_type(folder, model) if slash else None
        meant = meant or (what_to_type(likely, spec) if likely else f"such as {_SUCH_AS}")
        raise UsageError(f"model {spec!r} is not of the form provider:model, {meant}")
    if name.startswith("-"):
        raise UsageError(f"model {spec!r}: the name of a model cannot begin with -")
    return provider, name


def what_to_type(provider: str, name: str) -> str | None:
    """For an error message: what to type instead of `provider:name`, and what that needs. None for
    an unknown provider."""
    if provider in ("openai", "local", "scripted"):
        return f"did you mean {provider}:{name}?"
    if provider == "ollama":
        return f"did you mean openai:{name}, with OPENAI_BASE_URL=http://localhost:11434/v1?"
    if provider not in _LANGCHAIN:
        return None
    known_as, package, key = _LANGCHAIN[provider]
    needs = f"It needs {key}, and {install_hint('langchain')} {package}"
    return f"did you mean langchain:{known_as}:{name}? {needs}"


HiddenState = Sequence[float]
"""The numbers of a prompt's last token after a layer of the model; as many as the layer's width."""


def packed(numbers: Sequence[float], width: Literal["e", "f"]) -> str:
    """Numbers as base64 of little-endian floats: "e" of 2 bytes (11 significant bits), "f" of 4.

    Raises:
        OverflowError: a number is too large, in 2 bytes above 65,504.
    """
    return base64.b64encode(struct.pack(f"<{len(numbers)}{width}", *numbers)).decode()


def unpacked(text: str, width: Literal["e", "f"]) -> tuple[float, ...]:
    """The numbers in a text of `packed`; raises ValueError for any other text."""
    try:
        plain = base64.b64decode(text, validate=True)
        return struct.unpack(f"<{len(plain) // struct.calcsize(width)}{width}", plain)
    except (binascii.Error, struct.error) as error:
        raise ValueError(f"not base64 of floats: {error}") from error
