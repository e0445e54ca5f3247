"""Models in this process: GGUF weights run by llama.cpp (package xllamacpp)."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from judge import errors
from judge.backends.base import (
    Call,
    Completion,
    Message,
    Mode,
    refuse_inner_layer,
)
from judge.backends.chat import openai_arguments
from judge.local import store
from judge.local.in_process import InProcess

_CONTEXT_TOKENS = 8192
_MAX_CONTEXT = 2**31 - 1
_BATCH_TOKENS = 256
_PROMPT_CACHE_MIB = 512

# Smaller batches use other kernels, which round differently (measured: P(yes) changes by up to
# 0.015). With larger ones a question has the same probability whatever was asked before it.
_LEAST_TOKENS = 8
_REWOUND_CHARACTERS = 80

_WHOLE = frozenset(("laya", "clef"))
"""Decision models that read a prompt in one batch."""

_TEMPLATE_SECONDS = 30

# The first token of a thinking model's thoughts says neither yes nor no.
_NO_THINKING: Mapping[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}

TAUGHT, RUBRIC = "judge.taught", "judge.rubric"
"""The keys in an adapter's header: the items it was taught by, and the digest of their rubric."""


def _identity(file: str, sha256: str, adapter: Path | None) -> dict[str, str]:
    return {
        "provider": "local",
        "model": file,
        "sha256": sha256,
        **({"adapter": store.sha256_of(adapter)} if adapter else {}),
        "engine": f"llama.cpp/xllamacpp {version('xllamacpp')}",
    }


class LocalBackend(InProcess):
    """One GGUF model.

    `name` is one of `judge models list`, ORG/REPO:FILE of a hub, or the path of a .gguf file;
    `+ADAPTER` after it loads an adapter that `judge teach` made. $JUDGE_LOCAL_CTX is the context in
    tokens (8192), at most that of the model's training. If other processes keep the cores busy,
    OMP_WAIT_POLICY=passive in the environment makes calls several times faster; on idle cores it
    slows replies down.

    A decision model (the file's header has `ARCHITECTURE.decision.type`) answers through
    llama.cpp's own System One. The last digits of its probabilities depend on what was asked before
    (docs/explain/decision-models.md); the reply cache makes a run repeatable.

    Raises:
        UsageError: the weights or the adapter are not here or do not belong together, xllamacpp is
            not installed, or $JUDGE_LOCAL_CTX is not a positive number.
    """

    def __init__(self, name: str) -> None:
        self.weights, self.adapter = store.with_adapter(name)
        if find_spec("xllamacpp") is None:
            raise errors.missing_extra("local models need xllamacpp", "local")
        self._context = context_tokens()
        self._decision = store.decision_type(self.weights)
        if self._decision is not None:
            self.decides, self.states_beside_replies = True, False
        self._key = secrets.token_urlsafe(32)
        super().__init__("llama.cpp")

    @staticmethod
    def installed() -> Sequence[str]:
        return [weights.short for weights in store.known().values() if weights.here]

    def identity(self) -> Mapping[str, str]:
        """File name, SHA-256 of the weights and of the adapter, and the engine's version."""
        return _identity(self.weights.name, store.sha256_of(self.weights), self.adapter)

    @classmethod
    def identity_of(cls, name: str) -> Mapping[str, str] | None:
        base, plus, title = name.partition("+")
        weights, adapter = store.find(base), store.shipped_adapter(title)
        if weights is None or (plus and adapter is None) or find_spec("xllamacpp") is None:
            return None
        return _identity(weights.path.name, weights.sha256, adapter)

    def key_parts(self, call: Call) -> object:
        if not self.decides:
            return None
        from judge.backends.decision_models import key_parts

        return key_parts(call)

    async def complete(self, call: Call, mode: Mode) -> Completion:
        """One reply; cancelling stops the engine within one batch of prompt or one token. For a
        hidden state the prompt is always evaluated anew, not taken from the cache."""
        if call.layer is not None:
            refuse_inner_layer(call)
            return await self._on_thread(self._state, call)
        return await self._on_thread(self._answer if self._decision is None else self._decide, call)

    def taught_by(self) -> frozenset[str]:
        """The keys of the items that the adapter was taught by; none if its file has none.

        Raises:
            UsageError: the library that reads it is missing.
        """
        if self.adapter is None:
            return frozenset()
        if find_spec("gguf") is None:
            message = f"{self.adapter}: reading what it was taught by needs gguf"
            raise errors.missing_extra(message, "calibrate")
        from gguf import GGUFReader

        field = GGUFReader(self.adapter).get_field(TAUGHT)
        return frozenset(str(field.contents()).split()) if field else frozenset()

    def taught_rubric(self) -> str | None:
        return store.noted(self.adapter, RUBRIC) if self.adapter else None

    @cached_property
    def _engine(self) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self.weights)
        if self.adapter is not None:
            adapter = xllamacpp.CommonAdapterLoraInfo()
            adapter.path, adapter.scale = str(self.adapter), 1.0
            params.lora_adapters = [adapter]
        params.warmup = params.fit_params = params.ui = False
        params.n_ctx = self._context
        whole = self._decision in _WHOLE
        params.n_batch = params.n_ubatch = self._context if whole else _BATCH_TOKENS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _physical_cores()
        params.cache_ram_mib = _PROMPT_CACHE_MIB
        # Flash attention and repacked weights round differently for a prompt that is half cached.
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.no_extra_bufts = True
        params.verbosity = 0
        params.n_parallel = 1
        # The engine also listens on a loopback port, which every web page and user can reach.
        params.api_keys = [self._key]
        params.embedding = self._decision is None
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_LAST
        params.embd_normalize = -1
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise errors.Denied(self._why_not()) from error

    def _why_not(self) -> str:
        """Why the weights may not load: llama.cpp itself does not say."""
        files = [file for file in (self.weights, self.adapter) if file]
        for file in files:
            with file.open("rb") as stream:
                if stream.read(4) != b"GGUF":
                    return f"{file} is not a GGUF file"
        why = "it is damaged or cut off, of a kind that this release does not know, or needs more "
        why += f"memory than there is (JUDGE_LOCAL_CTX, here {self._context}, less)"
        why += ", or the adapter is of another model" if self.adapter else ""
        return f"llama.cpp cannot load {' with '.join(map(str, files))}: {why}"

    def _state(self, call: Call, stop: threading.Event) -> Completion:
        if stop.is_set():
            raise errors.ServerFault("the call was cancelled")
        reply = self._engine.handle_embeddings({"input": self._templated(call.messages)})
        if "error" in reply:
            raise _error(reply["error"])
        state, tokens = reply["data"][0]["embedding"], reply["usage"]["prompt_tokens"]
        return Completion.of_state(state, call.layer, tokens)

    def _templated(self, messages: Sequence[Message]) -> str:
        """The prompt by the model's chat template, which only the engine has."""
        request = Request(
            f"{self._engine.listening_address}/apply-template",
            json.dumps({"messages": list(messages), **_NO_THINKING}).encode(),
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        try:
            # No proxy: prompt and key must not leave this machine.
            direct = build_opener(ProxyHandler({}))
            with direct.open(request, timeout=_TEMPLATE_SECONDS) as answer:
                return str(json.load(answer)["prompt"])
        except (OSError, ValueError, KeyError) as error:
            raise errors.ServerFault(f"llama.cpp did not apply its template: {error}") from error

    def _answer(self, call: Call, stop: threading.Event) -> Completion:
        body = openai_arguments(call, Mode.JSON_SCHEMA) | {
            "id_slot": 0,
            # Without one llama.cpp draws its own, and no two runs would agree.
            "seed": call.vote if call.seed is None else call.seed,
            **_NO_THINKING,
        }
        events = self._events(body, stop, careful=True)
        if not events and not stop.is_set():
            self._events(_rewound(body), stop)
            events = self._events(body, stop)
        if stop.is_set():
            raise errors.ServerFault("the call was cancelled")
        return _completion(events)

    def _decide(self, call: Call, stop: threading.Event) -> Completion:
        from judge.backends.decision_models import QuestionMap, answered, typed

        question, dialect = typed(call, f"local:{self.weights.name}"), QuestionMap()
        if stop.is_set():
            raise errors.ServerFault("the call was cancelled")
        request = {"model": self.weights.name, **dialect.request(question)}
        reply = self._engine.handle_systemone(request)
        if "error" in reply:
            raise _error(reply["error"])
        tokens = reply["usage"]["input_tokens"]
        completion = Completion("", input_tokens=tokens, model=self.weights.name)
        return answered(completion, question, dialect.answer(reply), dialect)

    def _events(
        self, body: Mapping[str, Any], stop: threading.Event, *, careful: bool = False
    ) -> list[dict[str, Any]]:
        """The stream's events; if `careful`, none if a batch would be too small."""
        events: list[dict[str, Any]] = []
        too_small = False

        def heard(event: dict[str, Any]) -> bool:
            nonlocal too_small
            progress = event.get("prompt_progress")
            if careful and not events and progress:
                rest_tokens = (progress["total"] - progress["cache"]) % _BATCH_TOKENS
                too_small = 0 < rest_tokens < _LEAST_TOKENS
            events.append(event)
            return too_small or stop.is_set()

        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        try:
            self._engine.handle_chat_completions(
                {**body, **streamed, "return_progress": True}, heard
            )
        except ValueError as error:
            raise errors.BadRequest(str(error)) from error
        except RuntimeError as error:
            raise errors.ServerFault(str(error)) from error
        return [] if too_small else events


def _rewound(body: Mapping[str, Any]) -> dict[str, Any]:
    """A call that rewinds the engine's cache to before the end of the prompt in `body`."""
    messages = [dict(message) for message in body["messages"]]
    messages[-1]["content"] = messages[-1]["content"][:-_REWOUND_CHARACTERS]
    return {"messages": messages, "max_tokens": 1, "temperature": 0, "id_slot": 0}


def _completion(events: list[dict[str, Any]]) -> Completion:
    """The completion of a whole stream of events."""
    for event in events:
        if "error" in event:
            raise _error(event["error"])
    choices = [choice for event in events for choice in event.get("choices", ())]
    timings = next((event["timings"] for event in reversed(events) if "timings" in event), None)
    if timings is None:
        raise errors.ServerFault("llama.cpp ended its reply early")
    logprobs = next((choice["logprobs"] for choice in choices if choice.get("logprobs")), None)
    tokens = logprobs["content"][0]["top_logprobs"] if logprobs else None
    reasons = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    return Completion(
        text="".join(choice["delta"].get("content") or "" for choice in choices),
        finish_reason="length" if reasons[-1:] == ["length"] else "stop",
        input_tokens=timings["cache_n"] + timings["prompt_n"],
        output_tokens=timings["predicted_n"],
        cached_tokens=timings["cache_n"],
        first_token=tuple((t["token"], t["logprob"]) for t in tokens) if tokens else None,
    )


def _error(reply: Mapping[str, Any]) -> errors.BackendError:
    if reply.get("type") == "exceed_context_size_error":
        tokens, context = reply["n_prompt_tokens"], reply["n_ctx"]
        return errors.ContextExceeded(
            f"the prompt has {tokens} tokens, the model's context {context}"
        )
    bad_call = 400 <= int(reply.get("code", 500)) < 500
    kind = errors.BadRequest if bad_call else errors.ServerFault
    return kind(str(reply.get("message", reply)))


def context_tokens() -> int:
    """$JUDGE_LOCAL_CTX, or its default; raises UsageError if it is no number of tokens."""
    text = os.environ.get("JUDGE_LOCAL_CTX", str(_CONTEXT_TOKENS))
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= _MAX_CONTEXT:
        raise errors.UsageError(
            f"JUDGE_LOCAL_CTX is {text!r}, not a number of tokens from 1 to {_MAX_CONTEXT}"
        )
    return int(text)


def _physical_cores() -> int:
    """Cores that this process may run on; two hardware threads of one core count once."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text("ascii").strip() if siblings.is_file() else str(cpu))
    return len(cores)
