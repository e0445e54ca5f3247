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

from judge import errors
from judge.backends.base import Call, Completion, Message, Method, Mode, refuse_half_pairs
from judge.weights import store

if TYPE_CHECKING:
    from torch import Tensor

DEVICE = "JUDGE_TORCH_DEVICE"
_LIBRARIES = ("torch", "transformers", "llguidance")
_SLOTS = {"cpu": 32, "cuda": 256}
_BATCH_TOKENS = {"cpu": 16_384, "cuda": 65_536}
"""Prompts with their padding and room for replies; halved where memory runs out."""
_KEPT_TOKENS = {"cpu": 16_384, "cuda": 65_536}
"""Of prompts whose keys and values are kept for the next question about the same record."""
_GATHERING_SECONDS = 0.01
_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As in the rubrics' examples; a model that may choose can fill its reply with blanks."""


@dataclass(eq=False, slots=True)
class Job:
    """A call under way and its reply as it is written; `layer`: the state after it is wanted."""

    call: Call
    layer: int | None = None
    future: Future[None] = field(default_factory=Future)
    tokens: list[int] = field(default_factory=list)
    cached: int = 0
    room: int = 0
    hidden: list[float] = field(default_factory=list)
    matcher: Any = None
    written: list[int] = field(default_factory=list)
    first: tuple[tuple[str, float], ...] | None = None
    whole: bool = False
    random: Random = field(default_factory=Random)

    def settle(self, failure: Exception | None) -> None:
        """Let the call go on, with its reply or with an error."""
        with suppress(InvalidStateError):  # cancelled meanwhile
            self.future.set_exception(failure) if failure else self.future.set_result(None)


class TransformersBackend:
    """One Hugging Face model, loaded at the first call; batches run on one thread.

    `name` is a folder or a name in the local Hugging Face cache; nothing is downloaded.
    $JUDGE_TORCH_DEVICE is cpu or cuda:N; without it the first GPU, else the CPU.

    Raises:
        UsageError: a library, the model or the device is not here.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None
    seeded: bool = True
    method: Method = "logprobs"

    def __init__(self, name: str) -> None:
        self._spec = f"transformers:{name}"
        if lacking := [library for library in _LIBRARIES if find_spec(library) is None]:
            raise errors.missing_extra(f"{self._spec} needs {', '.join(lacking)}", "gpu")
        self._folder, self._title = store.hugging_face(name)
        self._device = _device(os.environ.get(DEVICE, "").strip())
        self.slots = _SLOTS[self._device.type]
        self._waiting: list[Job] = []
        self._serving: asyncio.Task[None] | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="torch")

    def identity(self) -> Mapping[str, str]:
        """Name, SHA-256 of weights, configuration and tokenizer, libraries, numbers, device."""
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
        """One reply. Cancelled, it is dropped before the next batch or the next token."""
        if call.schema is not None and mode is not Mode.JSON_SCHEMA:
            raise errors.BadRequest(f"transformers models take JSON schemas only, not {mode.value}")
        job = await self._done(Job(call))
        return Completion(
            text=self._model.tokenizer.decode(job.written, skip_special_tokens=True),
            finish_reason="stop" if job.whole else "length",
            input_tokens=len(job.tokens),
            output_tokens=len(job.written),
            cached_tokens=job.cached,
            first_token=job.first,
        )

    async def hidden(self, messages: Sequence[Message], layer: int = -1) -> Sequence[float]:
        """The state of the prompt's last token after a layer (0: the embeddings, -1: the last)."""
        return (await self._done(Job(Call(messages, max_tokens=1), layer))).hidden

    async def _done(self, job: Job) -> Job:
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

    def _answer(self, jobs: Sequence[Job]) -> None:
        ready = []
        for job in jobs:
            try:
                self._model.prepare(job)
                ready.append(job)
            except errors.BackendError as error:
                job.settle(error)
            except Exception as error:  # noqa: BLE001 - goes to the call; the thread goes on
                job.settle(errors.BadRequest(f"{self._spec} cannot be asked this: {error}"))
        # What questions about a record share is evaluated with the first of them.
        new = [job for job in ready if job.call.origin.record not in self._model.kept]
        firsts = list({job.call.origin.record: job for job in new}.values())
        for together in (firsts, [job for job in ready if job not in firsts]):
            for batch in _batches(together, _BATCH_TOKENS[self._device.type]):
                self._evaluate(batch)

    def _evaluate(self, jobs: Sequence[Job]) -> None:
        """Answer a batch; where memory runs out it is halved, down to one call."""
        import torch

        failure: errors.BackendError | None = None
        try:
            self._model.answer(jobs)
        except Exception as error:  # noqa: BLE001 - goes to the calls; the thread goes on
            told = f"{self._spec} on {self._device}: {type(error).__name__}: {error}"
            self._model.kept.clear()
            # A CPU's is a RuntimeError like any other.
            short = isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)
            failure = errors.BadRequest(told) if short else errors.ServerFault(told)
        if isinstance(failure, errors.BadRequest) and len(jobs) > 1:
            self._evaluate(jobs[: len(jobs) // 2])
            self._evaluate(jobs[len(jobs) // 2 :])
        else:
            for job in jobs:
                job.settle(failure)

    @cached_property
    def _model(self) -> TorchModel:
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
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=dtype,
            )
            model = model.to(self._device).eval()
        except Exception as error:
            told = f"{self._spec} cannot be loaded on {self._device}: {error}"
            raise errors.Denied(told) from error
        if not tokenizer.is_fast or tokenizer.chat_template is None:
            lacking = "chat template" if tokenizer.is_fast else "tokenizer.json"
            raise errors.Denied(f"{self._spec} has no {lacking}")
        return TorchModel(model, tokenizer, _KEPT_TOKENS[self._device.type])


def _batches(jobs: Sequence[Job], most: int) -> Iterator[list[Job]]:
    """Batches of at most `most` tokens, single tokens before replies."""
    batch, longest = list[Job](), 0
    for job in sorted(jobs, key=lambda job: job.call.max_tokens > 1):
        longest = max(longest, len(job.tokens) + job.room)
        if batch and (len(batch) + 1) * longest > most:
            yield batch
            batch, longest = [], len(job.tokens) + job.room
        batch.append(job)
    if batch:
        yield batch


def _device(wanted: str) -> Any:
    """A torch device: `wanted`, else the first GPU, else the CPU; raises UsageError."""
    import torch

    gpus = torch.cuda.device_count()
    if wanted not in ("", "cpu", *(f"cuda:{number}" for number in range(gpus))):
        raise errors.UsageError(f"{DEVICE} is {wanted!r}; write cpu, or cuda:N with N below {gpus}")
    return torch.device(wanted or ("cuda:0" if gpus else "cpu"))


# ---------------------------------------------------------------- the model itself


class TorchModel:
    """A loaded model with its tokenizer: batches in; first tokens, replies, hidden states out.

    `kept` has the prompt that was evaluated last about each record, at most `most_kept` tokens
    together: its tokens, and each layer's keys and values (heads, tokens, head size).
    """

    def __init__(self, model: Any, tokenizer: Any, most_kept: int) -> None:
        from llguidance import hf
        from transformers import DynamicCache, GenerationConfig
        from transformers.cache_utils import DynamicLayer

        shape = model.config.get_text_config()
        named = model.generation_config.eos_token_id
        ends = {*(named if isinstance(named, list) else [named]), tokenizer.eos_token_id} - {None}
        self.tokenizer, self._model, self._most_kept = tokenizer, model, most_kept
        self._ends: list[int] = sorted(ends)
        self._context = int(shape.max_position_embeddings)
        self._guide = hf.from_tokenizer(tokenizer, n_vocab=shape.vocab_size, eos_token=self._ends)
        # Sliding windows and recurrent states cannot be cut where a question begins.
        layers = DynamicCache(config=model.config).layers
        self._shares = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
        self.kept: dict[str, tuple[list[int], list[Tensor]]] = {}
        # The checkpoint's own penalties and temperatures are not what the call asks for.
        model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False, eos_token_id=self._ends, pad_token_id=self._ends[0]
        )

    def prepare(self, job: Job) -> None:
        """Set a job's tokens, room and grammar; raises ValueError for a schema without one."""
        from llguidance import LLMatcher

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
            raise errors.ContextExceeded(told)
        if job.call.schema is not None:
            schema = json.dumps(job.call.schema)
            grammar = LLMatcher.grammar_from_json_schema(schema, defaults=_SPACING)
            job.matcher = LLMatcher(self._guide, grammar)
            if job.matcher.is_error():
                raise ValueError(job.matcher.get_error())

    def answer(self, jobs: Sequence[Job]) -> None:
        """Evaluate a batch: write its replies, and keep the states that were asked for."""
        import torch

        for job in jobs:
            # Memory may have run out in a larger batch, with replies half written.
            job.written, job.whole = [], False
            if job.matcher is not None:
                job.matcher.reset()
            # Without a seed of its own, no two runs would agree.
            job.random.seed(job.call.vote if job.call.seed is None else job.call.seed)

        def choose(_: Any, scores: Tensor) -> Tensor:
            """Rule out all tokens but the one that each reply goes on by."""
            chosen = [[self._next(job, row)] for job, row in zip(jobs, scores, strict=True)]
            ruled = torch.full_like(scores, float("-inf"))
            return ruled.scatter(1, torch.tensor(chosen, device=scores.device), 0.0)

        with torch.inference_mode():
            inputs = self._inputs(jobs)
            out = self._model.generate(
                **inputs,
                max_new_tokens=max(job.room for job in jobs),
                logits_processor=[choose],
                return_dict_in_generate=True,
                output_hidden_states=any(job.layer is not None for job in jobs),
            )
        for number, job in enumerate(jobs):
            if job.layer is not None:
                job.hidden = out.hidden_states[0][job.layer][number, -1].float().tolist()
        if self._shares:
            self._keep(jobs, inputs["attention_mask"], out.past_key_values)

    def _known(self, job: Job) -> list[Tensor]:
        """The states of the beginning of a prompt that was evaluated before; sets their number."""
        tokens, states = self.kept.get(job.call.origin.record, ([], []))
        # The last token is left, for its scores.
        pairs = zip(tokens, job.tokens[:-1], strict=False)
        job.cached = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return [state[:, : job.cached] for state in states]

    def _keep(self, jobs: Sequence[Job], mask: Tensor, cache: Any) -> None:
        """Keep a prompt of each record, of the records that were asked about last."""
        places = {job.call.origin.record: place for place, job in enumerate(jobs)}
        for record, place in places.items():
            wanted = mask[place].nonzero().flatten()
            states = [
                state[place].index_select(1, wanted)
                for layer in cache.layers
                for state in (layer.keys, layer.values)
            ]
            self.kept.pop(record, None)
            self.kept[record] = jobs[place].tokens, states
        while sum(len(tokens) for tokens, _ in self.kept.values()) > self._most_kept:
            del self.kept[next(iter(self.kept))]

    def _inputs(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """Arguments of `generate` for a batch: what is evaluated and what is not, each padded."""
        import torch
        from torch.nn.functional import pad
        from transformers import DynamicCache

        begun = [self._known(job) for job in jobs]
        past = max(job.cached for job in jobs)
        new = max(len(job.tokens) - job.cached for job in jobs)
        rows, mask = [], []
        for job in jobs:
            before, between = past - job.cached, new - len(job.tokens) + job.cached
            seen, row, blank = job.tokens[: job.cached], job.tokens[job.cached :], [self._ends[0]]
            rows.append(blank * before + seen + blank * between + row)
            mask.append([0] * before + [1] * len(seen) + [0] * between + [1] * len(row))
        inputs: dict[str, Any] = {
            "input_ids": torch.tensor(rows, device=self._model.device),
            "attention_mask": torch.tensor(mask, device=self._model.device),
        }
        if past:
            # Records that were not asked about before have no tokens of the same shape.
            none = [state[:, :0] for state in next(filter(None, begun))]
            stacked = [
                torch.stack([pad(state, (0, 0, past - state.shape[1], 0)) for state in states])
                for states in zip(*(states or none for states in begun), strict=True)
            ]
            pairs = list(zip(stacked[::2], stacked[1::2], strict=True))
            inputs["past_key_values"] = DynamicCache(pairs)
        return inputs

    def _next(self, job: Job, scores: Tensor) -> int:
        """The token that a reply goes on by: the likeliest, or one drawn at the temperature.

        A reply that has ended goes on by the end until the whole batch has ended.
        """
        import numpy as np

        if job.call.logprobs and not job.written:
            found = scores.float().log_softmax(-1).topk(min(job.call.logprobs, len(scores)))
            texts = [self.tokenizer.decode([token]) for token in found.indices.tolist()]
            job.first = tuple(zip(texts, found.values.tolist(), strict=True))
        if job.whole or len(job.written) >= job.room or job.future.cancelled():
            return self._ends[0]
        row = scores.double().cpu().numpy()
        if job.matcher is not None:
            packed = np.frombuffer(job.matcher.compute_bitmask(), dtype=np.uint8)
            row = np.where(np.unpackbits(packed, bitorder="little")[: len(row)], row, -np.inf)
        token = int(row.argmax())
        heat = 1.0 if job.call.temperature is None else job.call.temperature
        if heat > 0:
            sums = np.exp((row - row[token]) / heat).cumsum()
            token = int(sums.searchsorted(job.random.random() * sums[-1], side="right"))
        if token in self._ends:
            job.whole = True
            return token
        job.written.append(token)
        if job.matcher is not None:
            job.matcher.consume_token(token)
            job.whole = job.matcher.is_stopped()
        return token
