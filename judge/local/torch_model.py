"""A Hugging Face model in torch that answers a batch of calls at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import TYPE_CHECKING, Any

from judge import errors
from judge.backends.base import Call
from judge.backends.chat_template import bounded

if TYPE_CHECKING:
    from torch import Tensor

_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As in the rubrics' examples: a model that may choose can fill its reply with blanks."""


@dataclass(eq=False, slots=True)
class Job:
    """A call under way and its reply so far; `layer`: whose hidden state is wanted."""

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
        """End the call, with its reply or with an error."""
        with suppress(InvalidStateError):  # cancelled meanwhile
            self.future.set_exception(failure) if failure else self.future.set_result(None)


class TorchModel:
    """A loaded model with its tokenizer: batches in; first tokens, replies, hidden states out.

    `kept` has the last prompt about each record, at most `most_kept` tokens in all: its tokens, and
    each layer's keys and values (heads, tokens, head size).
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

        with bounded(str(self.tokenizer.name_or_path)):
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
            # A larger batch may have run out of memory with replies half written.
            job.written, job.whole = [], False
            if job.matcher is not None:
                job.matcher.reset()
            # Without a seed of its own, no two runs would agree.
            job.random.seed(job.call.vote if job.call.seed is None else job.call.seed)

        def choose(_: Any, scores: Tensor) -> Tensor:
            """Rule out all tokens but the next of each reply."""
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
        """Keys and values of the part of the prompt that was evaluated before; sets `cached`."""
        tokens, states = self.kept.get(job.call.origin.record, ([], []))
        # The last token is left, for its scores.
        pairs = zip(tokens, job.tokens[:-1], strict=False)
        job.cached = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return [state[:, : job.cached] for state in states]

    def _keep(self, jobs: Sequence[Job], mask: Tensor, cache: Any) -> None:
        """Keep a prompt of each record; the records asked about longest ago are dropped."""
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
        """Arguments of `generate` for a batch: cached and new tokens, each padded."""
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
            # A record that is new has no tokens, of the same shape.
            none = [state[:, :0] for state in next(filter(None, begun))]
            stacked = [
                torch.stack([pad(state, (0, 0, past - state.shape[1], 0)) for state in states])
                for states in zip(*(states or none for states in begun), strict=True)
            ]
            pairs = list(zip(stacked[::2], stacked[1::2], strict=True))
            inputs["past_key_values"] = DynamicCache(pairs)
        return inputs

    def _next(self, job: Job, scores: Tensor) -> int:
        """The next token of a reply: the likeliest, or one drawn at the temperature.

        A reply that has ended is padded by the end token until the whole batch has ended.
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
