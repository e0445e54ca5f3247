"""Adapters: low-rank updates of a local model's upper layers, trained on labels, for llama.cpp.

The model learns the rubric's first-token question: after its prompt it should begin with the word
of the label's answer. Each linear map of the upper layers gets a low-rank update (LoRA: Hu et al.
2021, arXiv 2106.09685), trained by the cross-entropy over the question's words. The lower layers'
output for each prompt is computed once and kept; that of the upper layers for the shared prefix of
all prompts is computed once per part of a batch.
"""

from __future__ import annotations

import copy
import io
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.backends.base import Message
from judge.errors import UsageError
from judge.judging.first_token import word_of
from judge.local.chat_template import prompt_tokens
from judge.local.llama import context_tokens

if TYPE_CHECKING:
    from torch import Tensor

RANK = 16
"""Rank of a trained update, which is scaled by 2."""

WRITTEN = 4
"""Rank of a written update: the best approximation of the trained one, at a quarter of its size."""

LOWER = 0.36
"""Share of the layers, from below, that are not trained."""

BATCH = 16
PART = 8
"""Prompts of a batch whose gradients are computed at once; a limit of memory."""

RATE = 2e-4
"""Learning rate of AdamW, reached after a share `_WARM` of the steps; a cosine then lowers it to a
twentieth."""

_WARM = 0.05
_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
_MLP = ("gate_proj", "up_proj", "down_proj")
_ARCHITECTURES = ("llama", "qwen2")
"""GGUF's names of the architectures that can be taught."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A prompt, the number of the word that should answer it, the item's key
    (`judge.calibration.labels.key_of`) and its record's id."""

    messages: Sequence[Message]
    word: int
    key: str
    record: str


class Trainer:
    """Trains low-rank updates of a model's upper layers.

    Args:
        weights: a .gguf file of llama.cpp.
        seed: the updates start from random numbers of this seed.

    Raises:
        UsageError: the file cannot be read, or the model's architecture cannot be taught.
    """

    def __init__(self, weights: Path, seed: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        fast = torch.cuda.is_available() or torch.ops.mkldnn._is_mkldnn_bf16_supported()
        try:
            # The library draws progress bars of its own, also under --quiet.
            with redirect_stderr(io.StringIO()):
                self.tokenizer = AutoTokenizer.from_pretrained(
                    weights.parent, gguf_file=weights.name, trust_remote_code=False
                )
                model: Any = AutoModelForCausalLM.from_pretrained(
                    weights.parent,
                    gguf_file=weights.name,
                    trust_remote_code=False,
                    dtype=torch.bfloat16 if fast else torch.float32,
                    quantization_config=GgufConfig(dequantize=True),
                )
        except Exception as error:
            message = f"{weights} cannot be taught: transformers does not read it: {error}"
            raise UsageError(message) from error
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        model = model.to(self.device).eval().requires_grad_(False)
        self.architecture = str(model.config.model_type)
        if self.architecture not in _ARCHITECTURES:
            architectures = ", ".join(_ARCHITECTURES)
            raise UsageError(
                f"{weights}: {self.architecture} cannot be taught; known are {architectures}"
            )
        self.config, self.head = model.config, model.lm_head.weight
        inner = model.model
        self.first = int(LOWER * len(inner.layers))
        self.lower = _part(inner, inner.layers[: self.first], torch.nn.Identity())
        self.upper = _part(inner, inner.layers[self.first :], inner.norm)
        torch.manual_seed(seed)
        self.added: dict[tuple[int, str], Any] = {}
        for number, layer in enumerate(self.upper.layers, self.first):
            for part, names in ((layer.self_attn, _ATTENTION), (layer.mlp, _MLP)):
                for name in names:
                    addition = _beside(getattr(part, name))
                    setattr(part, name, addition)
                    self.added[number, name] = addition
        self.prefix: list[int] = []
        self._low: list[Tensor] = []

    def read(self, examples: Sequence[TrainingExample], words: Sequence[str]) -> Iterator[int]:
        """Run every prompt through the lower layers; yields how many are done.

        Raises:
            UsageError: the file has no chat template, or a prompt does not fit into the context in
                which the model judges.
        """
        import torch

        if self.tokenizer.chat_template is None:
            raise UsageError("the model cannot be taught: its file has no chat template")
        self.words = self._tokens(words)
        prompts = [prompt_tokens(self.tokenizer, example.messages) for example in examples]
        context = min(context_tokens(), self.config.max_position_embeddings)
        for example, prompt in zip(examples, prompts, strict=True):
            if len(prompt) >= context:
                raise UsageError(
                    f"record {example.record}: the prompt has {len(prompt)} tokens, the model's "
                    f"context {context}: leave it out, or shorten it"
                )
        columns = zip(*prompts, strict=False)
        equal = takewhile(lambda column: len({*column}) == 1, columns)
        # At least one token of each prompt is its own.
        length = min(sum(1 for _ in equal), min(map(len, prompts)) - 1)
        self.prefix = prompts[0][:length]
        self._low = [torch.empty(0)] * len(prompts)
        order = sorted(range(len(prompts)), key=lambda n: len(prompts[n]))
        embed = self.lower.embed_tokens
        with torch.no_grad():
            start = embed(self._ids([self.prefix]))
            self._start = self.lower(inputs_embeds=start, use_cache=False).last_hidden_state
            for at in range(0, len(order), BATCH):
                places = order[at : at + BATCH]
                embeddings = [embed(self._ids(prompts[n][length:])) for n in places]
                states = self._through(self.lower, start, embeddings)
                for n, state, before in zip(places, states, embeddings, strict=True):
                    self._low[n] = state[: len(before)].clone()
                yield at + len(places)

    def teach(
        self, examples: Sequence[TrainingExample], epochs: float, seed: int
    ) -> Iterator[tuple[int, int, float]]:
        """Train the updates, in batches of prompts of similar length. After each step yields the
        steps done, all steps, and the running mean of the loss in nats."""
        import torch

        generator = random.Random(seed)
        parameters = [x for addition in self.added.values() for x in (addition.down, addition.up)]
        optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01)
        steps, loss_of_late = max(1, round(epochs * len(examples) / BATCH)), math.nan
        batches: list[list[int]] = []
        for step in range(steps):
            if not batches:
                batches = self._batches(generator)
            places = batches.pop()
            warm = min(1.0, (step + 1) / (_WARM * steps))
            rate = RATE * warm * (0.05 + 0.475 * (1 + math.cos(math.pi * step / steps)))
            for group in optimizer.param_groups:
                group["lr"] = rate
            total = 0.0
            for at in range(0, len(places), PART):
                part = places[at : at + PART]
                right = torch.tensor([examples[n].word for n in part], device=self.device)
                part_loss = torch.nn.functional.cross_entropy(
                    self._logits(part), right, reduction="sum"
                )
                loss = part_loss / len(places)
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            loss_of_late = total if step == 0 else 0.95 * loss_of_late + 0.05 * total
            yield step + 1, steps, loss_of_late

    def _batches(self, generator: random.Random) -> list[list[int]]:
        order = sorted(
            range(len(self._low)), key=lambda n: len(self._low[n]) + generator.random() * 8
        )
        batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        generator.shuffle(batches)
        return batches

    def _logits(self, places: Sequence[int]) -> Tensor:
        """(prompts, words): the logit of each word as the answer to each prompt."""
        import torch

        states = [self._low[n] for n in places]
        outputs = self._through(self.upper, self._start, states)
        last = torch.stack(
            [output[len(state) - 1] for output, state in zip(outputs, states, strict=True)]
        )
        heads = (self.head[ids].float() for ids in self.words)
        return torch.stack([torch.logsumexp(last.float() @ head.T, dim=1) for head in heads], dim=1)

    def _through(self, part: Any, start: Tensor, embeddings: Sequence[Tensor]) -> Tensor:
        """(prompts, tokens, width): the layers' output for prompts after their shared prefix."""
        import torch
        from transformers import DynamicCache

        cache = DynamicCache()
        part(inputs_embeds=start, cache=cache, use_cache=True)
        cache.batch_repeat_interleave(len(embeddings))
        padded = torch.nn.utils.rnn.pad_sequence(list(embeddings), batch_first=True)
        length = start.shape[1]
        mask = torch.ones(
            len(embeddings), length + padded.shape[1], dtype=torch.long, device=self.device
        )
        for row, embedding in enumerate(embeddings):
            mask[row, length + len(embedding) :] = 0
        output: Tensor = part(
            inputs_embeds=padded, attention_mask=mask, cache=cache, use_cache=True
        ).last_hidden_state
        return output

    def _ids(self, rows: Sequence[Any]) -> Tensor:
        import torch

        return torch.tensor(rows, device=self.device)

    def _tokens(self, words: Sequence[str]) -> list[list[int]]:
        """The tokens that count as each word when first tokens are read (`word_of`)."""
        tokens: dict[str, list[int]] = {word: [] for word in words}
        for token in range(len(self.tokenizer)):
            if (word := word_of(str(self.tokenizer.decode([token])))) in tokens:
                tokens[word].append(token)
        return list(tokens.values())

    def write(self, file: Path, notes: Mapping[str, str]) -> None:
        """Write the updates as a GGUF adapter, 2 bytes per number, with `notes` in its header."""
        import gguf

        names = gguf.get_tensor_name_map(
            next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == self.architecture),
            self.config.num_hidden_layers,
        )
        writer = gguf.GGUFWriter(file, self.architecture)
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, 2.0 * WRITTEN)
        for name, text in notes.items():
            writer.add_string(name, text)
        for (layer, name), addition in self.added.items():
            part = "self_attn" if name in _ATTENTION else "mlp"
            whole = f"model.layers.{layer}.{part}.{name}.weight"
            name_in_file = names.get_name(whole, try_suffixes=(".weight",))
            down, up = _shortened(addition.down.detach().cpu(), addition.up.detach().cpu(), WRITTEN)
            if self.architecture == "llama":
                up = self._turned(up, name)
            for side, data in (("lora_a", down), ("lora_b", up)):
                writer.add_tensor(f"{name_in_file}.{side}", data.half().contiguous().numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def _turned(self, data: Tensor, linear: str) -> Tensor:
        """Rows in llama.cpp's order: for llama it interleaves the two halves of a head's rotary
        dimensions."""
        heads = {
            "q_proj": self.config.num_attention_heads,
            "k_proj": self.config.num_key_value_heads,
        }.get(linear)
        if heads is None:
            return data
        halves = data.reshape(heads, 2, data.shape[0] // heads // 2, -1)
        return halves.swapaxes(1, 2).reshape(data.shape)


def _beside(linear: Any) -> Any:
    """A linear map plus a trained update, up(down(x)), which starts at 0."""
    import torch

    class Added(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            wide, out, device = linear.in_features, linear.out_features, linear.weight.device
            weights = torch.randn(RANK, wide, device=device) / math.sqrt(wide)
            self.linear, self.down = linear, torch.nn.Parameter(weights)
            self.up = torch.nn.Parameter(torch.zeros(out, RANK, device=device))

        def forward(self, x: Tensor) -> Tensor:
            addition = x @ self.down.to(x.dtype).T @ self.up.to(x.dtype).T
            result: Tensor = self.linear(x) + 2.0 * addition
            return result

    return Added()


def _shortened(down: Tensor, up: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """(rank, in) and (out, rank): the best approximation of `up @ down` (Eckart and Young)."""
    import torch

    q, inner = torch.linalg.qr(up)
    right, outer = torch.linalg.qr(down.T)
    u, sizes, v = torch.linalg.svd(inner @ outer.T)
    root = sizes[:rank].sqrt()
    return root[:, None] * (v[:rank] @ right.T), (q @ u[:, :rank]) * root


def _part(inner: Any, layers: Any, norm: Any) -> Any:
    """The model with only these layers, renumbered so that a cache has one place for each."""
    part = copy.copy(inner)
    part._modules = dict(inner._modules)
    part.layers, part.norm = layers, norm
    for number, layer in enumerate(layers):
        layer.self_attn.layer_idx = number
    return part
