"""A torch model on its device: batches of prompts in; first tokens, replies, hidden states out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import TYPE_CHECKING, Any

from judge.backends.base import Call, Completion
from judge.errors import ContextExceeded

if TYPE_CHECKING:
    from torch import Tensor

_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As in the rubrics' examples; a model that may choose can fill its reply with blanks."""


class TorchModel:
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

    def prepare(self, job: Job) -> None:
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

    def answer(self, jobs: Sequence[Job]) -> None:
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

    def _prompted(self, jobs: Sequence[Job]) -> tuple[Tensor, Tensor, Any]:
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
class Job:
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

    def begin(self, model: TorchModel) -> None:
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


def _beginnings(jobs: Sequence[Job]) -> dict[str, list[int]]:
    """By record, the tokens that all its prompts begin with; at least one is left of each."""
    found: dict[str, list[int]] = {}
    for job in jobs:
        known = found.get(job.record, job.tokens)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(known, job.tokens[:-1], strict=False))
        found[job.record] = [token for token, _ in same]
    return found
