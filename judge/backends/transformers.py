"""Models in this process: Hugging Face weights, run by torch in batches on one device."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from itertools import takewhile
from random import Random
from typing import TYPE_CHECKING, Any

from judge.backends.base import Call, Completion, Message, Mode, Reading
from judge.backends.shape import refuse_half_pairs
from judge.errors import (
    BackendError,
    BadRequest,
    ContextExceeded,
    Denied,
    ServerFault,
    UsageError,
    missing_extra,
)
from judge.weights import store

if TYPE_CHECKING:
    from torch import Tensor

DEVICE = "JUDGE_TORCH_DEVICE"
_LIBRARIES = ("torch", "transformers", "llguidance")
_SLOTS = {"cpu": 32, "cuda": 256}
_BATCH_TOKENS = {"cpu": 16_384, "cuda": 65_536}
"""Prompts with their padding and room for replies; halved where memory runs out."""
_GATHERING_SECONDS = 0.01
_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As in the rubrics' examples; a model that may choose can fill its reply with blanks."""


class TransformersBackend:
    """One Hugging Face model, loaded at the first call; batches run on one thread.

    `name` is a folder with config.json, safetensors and a fast tokenizer with a chat template, or a
    hub's name that the local Hugging Face cache holds; nothing is downloaded. $JUDGE_TORCH_DEVICE
    is cpu or cuda:N; without it the first GPU, else the CPU. Numbers are as wide as in the
    checkpoint on a GPU, and 32 bits wide on a CPU.

    Raises:
        UsageError: a library, the model or the device is not here.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None
    seeded: bool = True
    reading: Reading = "probability"

    def __init__(self, name: str) -> None:
        self._spec = f"transformers:{name}"
        if lacking := [library for library in _LIBRARIES if find_spec(library) is None]:
            raise missing_extra(f"{self._spec} needs {', '.join(lacking)}", "gpu")
        self._folder, self._title = store.hugging_face(name)
        self._device = _device(os.environ.get(DEVICE, "").strip())
        self.slots = _SLOTS[self._device.type]
        self._waiting: list[_Job] = []
        self._serving: asyncio.Task[None] | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="torch")

    def identity(self) -> Mapping[str, str]:
        """Name, SHA-256 of weights, configuration and tokenizer, libraries, numbers, device."""
        return self._identity

    @cached_property
    def _identity(self) -> Mapping[str, str]:
        import torch

        gpu = self._device.type == "cuda"
        return {
            "provider": "transformers",
            "model": self._title,
            "sha256": store.sha256_of_folder(self._folder),
            "engine": " ".join(f"{library}/{version(library)}" for library in _LIBRARIES),
            "numbers": "as in the checkpoint" if gpu else "float32",
            "device": torch.cuda.get_device_name(self._device) if gpu else "cpu",
        }

    async def complete(self, call: Call, mode: Mode) -> Completion:
        """One reply. Cancelled, it is dropped before the next batch or the next token.

        Raises:
            ContextExceeded, BadRequest, ServerFault, Denied: see `judge.errors`.
        """
        if call.schema is not None and mode is not Mode.JSON_SCHEMA:
            raise BadRequest(f"transformers models take JSON schemas only, not {mode.value}")
        return (await self._done(_Job(call))).completion()

    async def hidden(self, messages: Sequence[Message], layer: int = -1) -> Sequence[float]:
        """The state of the prompt's last token after a layer (0: the embeddings, -1: the last).

        Raises:
            ContextExceeded, BadRequest, ServerFault, Denied: see `judge.errors`.
        """
        return (await self._done(_Job(Call(messages, max_tokens=1), layer))).hidden

    async def _done(self, job: _Job) -> _Job:
        refuse_half_pairs(job.call)
        self._waiting.append(job)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        await asyncio.wrap_future(job.future)
        return job

    async def aclose(self) -> None:
        """Wait for the batch that runs, if any, and free the model."""
        if self._serving is not None:
            self._serving.cancel()
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        self.__dict__.pop("_model", None)

    async def _serve(self) -> None:
        """Hand what has been asked to the worker thread, until nothing waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(_GATHERING_SECONDS)
            jobs, self._waiting = self._waiting, []
            await loop.run_in_executor(self._worker, self._answer, jobs)

    # ------------------------------------------------------------ on the worker thread

    def _answer(self, jobs: Sequence[_Job]) -> None:
        ready = []
        for job in jobs:
            try:
                self._model.prepare(job)
                ready.append(job)
            except (BadRequest, Denied) as error:
                job.settle(error)
            except Exception as error:  # noqa: BLE001 - goes to the call; the thread goes on
                job.settle(BadRequest(f"{self._spec} cannot be asked this: {error}"))
        for batch in _batches(ready, _BATCH_TOKENS[self._device.type]):
            self._evaluate(batch)

    def _evaluate(self, jobs: Sequence[_Job]) -> None:
        """Answer a batch; where memory runs out it is halved, down to one call."""
        failure: BackendError | None = None
        try:
            self._model.answer(jobs)
        except Exception as error:  # noqa: BLE001 - goes to the calls; the thread goes on
            told = f"{self._spec} on {self._device}: {type(error).__name__}: {error}"
            failure = BadRequest(told) if _out_of_memory(error) else ServerFault(told)
        if isinstance(failure, BadRequest) and len(jobs) > 1:
            self._evaluate(jobs[: len(jobs) // 2])
            self._evaluate(jobs[len(jobs) // 2 :])
        else:
            for job in jobs:
                job.settle(failure)

    @cached_property
    def _model(self) -> _Model:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        # Code of the model's own is never run; a .bin beside the safetensors is a pickle.
        dtype = "auto" if self._device.type == "cuda" else torch.float32
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False
            )
            model: Any = AutoModelForCausalLM.from_pretrained(
                self._folder,
                use_safetensors=True,
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=False,
            )
            model = model.to(self._device).eval()
        except Exception as error:
            raise Denied(f"{self._spec} cannot be loaded on {self._device}: {error}") from error
        if not tokenizer.is_fast or tokenizer.chat_template is None:
            lacking = "chat template" if tokenizer.is_fast else "tokenizer.json"
            raise Denied(f"{self._spec} has no {lacking}")
        return _Model(model, tokenizer)


class _Model:
    """A loaded model with its tokenizer.

    Args:
        share: evaluate what the prompts about one record have in common once.
    """

    def __init__(self, model: Any, tokenizer: Any, *, share: bool = True) -> None:
        from llguidance import hf
        from transformers import GenerationConfig

        shape = model.config.get_text_config()
        named = model.generation_config.eos_token_id
        ends = {*(named if isinstance(named, list) else [named]), tokenizer.eos_token_id} - {None}
        self.ends, self.tokenizer, self._model = sorted(ends), tokenizer, model
        self._context = int(shape.max_position_embeddings)
        self._guide = hf.from_tokenizer(tokenizer, n_vocab=shape.vocab_size, eos_token=self.ends)
        # A window counts the padding between a shared beginning and the end of a prompt.
        self._share = share and not getattr(shape, "sliding_window", None)
        # The checkpoint's own penalties and temperatures are not what the call asks for.
        model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False, eos_token_id=self.ends, pad_token_id=self.ends[0]
        )

    def prepare(self, job: _Job) -> None:
        """Set a job's tokens and room, and see that its reply can be held to its schema.

        Raises:
            ContextExceeded, ValueError, TemplateError: the call cannot be put to this model.
        """
        text = self.tokenizer.apply_chat_template(
            [dict(message) for message in job.call.messages],
            add_generation_prompt=True,
            tokenize=False,
            # The first token of a thinking model's thoughts says neither yes nor no.
            enable_thinking=False,
        )
        job.tokens = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        job.room = min(job.call.max_tokens, self._context - len(job.tokens))
        if job.room < 1:
            told = f"the prompt has {len(job.tokens)} tokens, the model's context {self._context}"
            raise ContextExceeded(told)
        job.begin(self)
        if job.matcher is not None and job.matcher.is_error():
            raise ValueError(job.matcher.get_error())

    def matcher(self, schema: Mapping[str, Any]) -> Any:
        """llguidance at the beginning of a reply that follows a schema."""
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), defaults=_SPACING)
        return LLMatcher(self._guide, grammar)

    def answer(self, jobs: Sequence[_Job]) -> None:
        """Evaluate a batch: write its replies, and keep the states that were asked for."""
        import torch

        for job in jobs:
            job.begin(self)

        def choose(_: Any, scores: Tensor) -> Tensor:
            """Rule out all tokens but the one that each reply goes on by."""
            chosen = [[job.next(row)] for job, row in zip(jobs, scores, strict=True)]
            ruled = torch.full_like(scores, float("-inf"))
            return ruled.scatter(1, torch.tensor(chosen, device=scores.device), 0.0)

        with torch.inference_mode():
            rows, mask, cache = self._prompted(jobs)
            out = self._model.generate(
                rows,
                attention_mask=mask,
                past_key_values=cache,
                max_new_tokens=max(job.room for job in jobs),
                logits_processor=[choose],
                return_dict_in_generate=True,
                output_hidden_states=any(job.layer is not None for job in jobs),
            )
        for number, job in enumerate(jobs):
            if job.layer is not None:
                job.hidden = out.hidden_states[0][job.layer][number, -1].float().tolist()

    def _prompted(self, jobs: Sequence[_Job]) -> tuple[Tensor, Tensor, Any]:
        """Left-padded prompts, their mask, and the library's cache of how they begin.

        With a cache a row is a shared beginning, padding, and the rest of the prompt; the library
        evaluates what lies behind the cache.
        """
        import torch
        from transformers import DynamicCache

        cache, shared = DynamicCache(), _beginnings(jobs)
        if not self._share or len(shared) == len(jobs) or not all(shared.values()):
            return *self._padded([job.tokens for job in jobs]), cache
        begun, mask = self._padded(list(shared.values()))
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        self._model(begun, attention_mask=mask, position_ids=positions, past_key_values=cache)
        places = {record: place for place, record in enumerate(shared)}
        chosen = torch.tensor([places[job.record] for job in jobs], device=mask.device)
        cache.batch_select_indices(chosen)
        rest, ends = self._padded([job.tokens[len(shared[job.record]) :] for job in jobs])
        for job in jobs:
            # The first prompt about a record is the one that its beginning is counted to.
            job.reused = len(shared[job.record]) if job.record not in places else 0
            places.pop(job.record, None)
        return torch.cat([begun[chosen], rest], 1), torch.cat([mask[chosen], ends], 1), cache

    def _padded(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Token rows and their mask, each (prompts, longest)."""
        import torch

        longest, device = max(map(len, prompts)), self._model.device
        rows = [[self.ends[0]] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
        mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        return torch.tensor(rows, device=device), torch.tensor(mask, device=device)


@dataclass(eq=False, slots=True)
class _Job:
    """A call under way and its reply as it is written; `layer`: the state after it is wanted."""

    call: Call
    layer: int | None = None
    future: Future[None] = field(default_factory=Future)
    tokens: list[int] = field(default_factory=list)
    room: int = 0
    reused: int = 0
    hidden: list[float] = field(default_factory=list)
    model: Any = None
    matcher: Any = None
    written: list[int] = field(default_factory=list)
    first: tuple[tuple[str, float], ...] | None = None
    whole: bool = False
    random: Random = field(default_factory=Random)

    @property
    def record(self) -> str:
        return self.call.origin.record

    def begin(self, model: _Model) -> None:
        """Go to the beginning of the reply."""
        self.model, self.written, self.whole = model, [], False
        self.matcher = None if self.call.schema is None else model.matcher(self.call.schema)
        # Without a seed of its own, no two runs would agree.
        self.random.seed(self.call.vote if self.call.seed is None else self.call.seed)

    def next(self, scores: Tensor) -> int:
        """The token to go on by: the likeliest, or one drawn at the call's temperature.

        The seed and the scores determine what is drawn. A reply that has ended goes on by the end
        until the whole batch has ended.
        """
        import numpy as np

        if self.call.logprobs and not self.written:
            self.first = self._likeliest(scores, self.call.logprobs)
        if self.whole or len(self.written) >= self.room or self.future.cancelled():
            return int(self.model.ends[0])
        row = scores.double().cpu().numpy()
        if self.matcher is not None:
            packed = np.frombuffer(self.matcher.compute_bitmask(), dtype=np.uint8)
            row = np.where(np.unpackbits(packed, bitorder="little")[: len(row)], row, -np.inf)
        token = int(row.argmax())
        heat = 1.0 if self.call.temperature is None else self.call.temperature
        if heat > 0:
            sums = np.exp((row - row[token]) / heat).cumsum()
            token = int(sums.searchsorted(self.random.random() * sums[-1], side="right"))
        if token in self.model.ends:
            self.whole = True
            return token
        self.written.append(token)
        if self.matcher is not None:
            self.matcher.consume_token(token)
            self.whole = self.matcher.is_stopped()
        return token

    def _likeliest(self, scores: Tensor, wanted: int) -> tuple[tuple[str, float], ...]:
        """The likeliest tokens with natural log-probabilities."""
        found = scores.float().log_softmax(-1).topk(min(wanted, len(scores)))
        texts = [self.model.tokenizer.decode([token]) for token in found.indices.tolist()]
        return tuple(zip(texts, found.values.tolist(), strict=True))

    def completion(self) -> Completion:
        """The reply as far as it came."""
        return Completion(
            text=self.model.tokenizer.decode(self.written, skip_special_tokens=True),
            finish_reason="stop" if self.whole else "length",
            input_tokens=len(self.tokens),
            output_tokens=len(self.written),
            cached_tokens=self.reused,
            first_token=self.first,
        )

    def settle(self, failure: Exception | None) -> None:
        """Let the call go on, with its reply or with an error."""
        with suppress(InvalidStateError):  # cancelled meanwhile
            self.future.set_exception(failure) if failure else self.future.set_result(None)


def _batches(jobs: Sequence[_Job], most: int) -> Iterator[list[_Job]]:
    """Batches of at most `most` tokens, single tokens before replies, record by record."""
    order = {job.record: place for place, job in reversed(list(enumerate(jobs)))}
    for writes in (False, True):
        batch, longest = list[_Job](), 0
        kind = [job for job in jobs if (job.call.max_tokens > 1) == writes]
        for job in sorted(kind, key=lambda job: order[job.record]):
            longest = max(longest, len(job.tokens) + job.room)
            if batch and (len(batch) + 1) * longest > most:
                yield batch
                batch, longest = [], len(job.tokens) + job.room
            batch.append(job)
        if batch:
            yield batch


def _beginnings(jobs: Sequence[_Job]) -> dict[str, list[int]]:
    """By record, the tokens that all its prompts begin with; at least one is left of each."""
    found: dict[str, list[int]] = {}
    for job in jobs:
        known = found.get(job.record, job.tokens)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(known, job.tokens[:-1], strict=False))
        found[job.record] = [token for token, _ in same]
    return found


def _out_of_memory(error: Exception) -> bool:
    import torch

    known = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    return known or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def _device(wanted: str) -> Any:
    """A torch device: `wanted`, else the first GPU, else the CPU.

    Raises:
        UsageError: there is no such device.
    """
    import torch

    gpus = torch.cuda.device_count()
    if wanted not in ("", "cpu", *(f"cuda:{number}" for number in range(gpus))):
        raise UsageError(f"{DEVICE} is {wanted!r}; it must be cpu, or cuda:N with N below {gpus}")
    return torch.device(wanted or ("cuda:0" if gpus else "cpu"))
