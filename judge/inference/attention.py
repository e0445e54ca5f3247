"""Attention over packed prompts and over replies that grow, in the place of the library's own.

A model is loaded with the attention `judge_packed`. It hands every layer's queries, keys and values
to the `Attending` object that the forward pass was given as `attending`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from judge.inference.prefix import Layout, Span

if TYPE_CHECKING:
    from torch import Tensor

NAME = "judge_packed"
_FLASH_WIDEST = 256
_FLASH_CAPABILITY = (8, 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one layer asks for.

    Queries, keys and values are (batch, heads, tokens, width); keys have one head for each group of
    query heads. `window` is how far back a token sees, itself counted (None: to the beginning).
    """

    layer: int
    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    window: int | None


class Attending(Protocol):
    """What a forward pass looks at, layer by layer."""

    def attend(self, asked: Asked) -> Tensor:
        """The attention's output, as (batch, tokens, heads, width)."""
        ...


def register() -> None:
    """Make the attention known to the library, under `NAME`; more than once does no harm."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _forward)


def _forward(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    attending: Attending,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    if softcap is not None or s_aux is not None:
        raise NotImplementedError("attention with capped scores or sinks")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    asked = Asked(module.layer_idx, query, key, value, scale, sliding_window)
    return attending.attend(asked), None


Layers = Sequence[tuple["Tensor", "Tensor"]]
"""Keys and values by layer, each as (1, heads, tokens, width)."""


class PackedPrompts:
    """One forward pass over a `Layout`: each segment sees those above it, and itself so far.

    On a card the flash kernel for sequences of differing lengths takes all segments at once; a
    segment's queries are a sequence whose keys begin with those of its context, aligned at the end.
    Elsewhere segments are taken one by one.

    Args:
        held: keys and values of the layout's held entries, in its order.
        keep: those of the new tokens stay in `made`.
    """

    def __init__(
        self, layout: Layout, device: Any, *, held: Sequence[Layers] = (), keep: bool = False
    ) -> None:
        import torch

        lengths = [length for _, length in layout.held]
        self._held = list(zip(held, lengths, strict=True))
        self._begins = [0, *accumulate(lengths)]
        self._keep = keep
        self.made: list[tuple[Tensor, Tensor]] = []
        spans: list[Span] = []
        self._counts: list[tuple[int, int]] = []
        for segment in layout.segments:
            first = self._begins[-1] + segment.first
            spans += [*segment.context, (first, first + segment.length)]
            self._counts.append((segment.length, segment.before + segment.length))
        self._rows = None
        if layout.shares:
            ranges = [torch.arange(begin, end) for begin, end in spans]
            self._rows = torch.cat(ranges).to(device)
        queries = [0, *(count for count, _ in self._counts)]
        keys = [0, *(count for _, count in self._counts)]
        self._longest = (max(queries), max(keys))
        ends = torch.tensor([queries, keys]).cumsum(1).to(torch.int32)
        self._ends_of_queries, self._ends_of_keys = ends.to(device)

    def attend(self, asked: Asked) -> Tensor:
        import torch

        key, value = asked.key, asked.value
        if self._keep:
            self.made.append((key, value))
        if self._held:
            parts = [(layers[asked.layer], length) for layers, length in self._held]
            key = torch.cat([*(k[:, :, :length] for (k, _), length in parts), key], 2)
            value = torch.cat([*(v[:, :, :length] for (_, v), length in parts), value], 2)
        if self._rows is not None:
            key, value = key.index_select(2, self._rows), value.index_select(2, self._rows)
        seen = replace(asked, key=key, value=value)
        return self._at_once(seen) if flash_takes(asked.query) else self._one_by_one(seen)

    def rows(self, layer: int, path: Sequence[Span], count: int) -> tuple[Tensor, Tensor]:
        """The keys and values of the first `count` tokens on a prompt's path."""
        import torch

        keys, values = [], []
        for begin, end in path:
            if begin >= self._begins[-1]:
                (key, value), offset = self.made[layer], self._begins[-1]
            else:
                entry = bisect_right(self._begins, begin) - 1
                (key, value), offset = self._held[entry][0][layer], self._begins[entry]
            keys.append(key[:, :, begin - offset : end - offset])
            values.append(value[:, :, begin - offset : end - offset])
        return torch.cat(keys, 2)[:, :, :count], torch.cat(values, 2)[:, :, :count]

    def _at_once(self, asked: Asked) -> Tensor:
        from torch.nn.attention.varlen import varlen_attn

        out = varlen_attn(
            asked.query[0].transpose(0, 1),
            asked.key[0].transpose(0, 1),
            asked.value[0].transpose(0, 1),
            self._ends_of_queries,
            self._ends_of_keys,
            *self._longest,
            scale=asked.scale,
            window_size=(-1, 0) if asked.window is None else (asked.window - 1, 0),
            enable_gqa=True,
        )
        assert not isinstance(out, tuple)
        return out.unsqueeze(0)

    def _one_by_one(self, asked: Asked) -> Tensor:
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        window = asked.window
        outs, q, k = [], 0, 0
        for queries, keys in self._counts:
            mask = None
            if queries < keys or window is not None:
                seen = torch.ones(queries, keys, dtype=torch.bool, device=asked.query.device)
                mask = seen.tril(keys - queries)
                if window is not None:
                    mask = mask.triu(keys - queries - window + 1)
            outs.append(
                scaled_dot_product_attention(
                    asked.query[:, :, q : q + queries],
                    asked.key[:, :, k : k + keys],
                    asked.value[:, :, k : k + keys],
                    attn_mask=mask,
                    is_causal=mask is None,
                    scale=asked.scale,
                    enable_gqa=True,
                )
            )
            q, k = q + queries, k + keys
        return torch.cat(outs, 2).transpose(1, 2)


class GrowingReplies:
    """One token of each reply at a time. Every reply has rows of its own for all it will see."""

    def __init__(
        self,
        prompts: PackedPrompts,
        paths: Sequence[Sequence[Span]],
        room: int,
        layers: int,
        device: Any,
    ) -> None:
        """Begin where prompts ended.

        Args:
            paths: each prompt's rows of keys.
            room: tokens that a reply may come to have.
        """
        import torch

        lengths = [sum(end - begin for begin, end in path) for path in paths]
        self.lengths = torch.tensor(lengths, device=device)
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        for layer in range(layers):
            key = prompts.made[layer][0]
            shape = (len(paths), key.shape[1], max(lengths) + room, key.shape[3])
            keys, values = key.new_zeros(shape), key.new_zeros(shape)
            for number, (path, length) in enumerate(zip(paths, lengths, strict=True)):
                k, v = prompts.rows(layer, path, length)
                keys[number, :, :length], values[number, :, :length] = k[0], v[0]
            self._keys.append(keys)
            self._values.append(values)

    def attend(self, asked: Asked) -> Tensor:
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        query, window = asked.query, asked.window
        keys, values = self._keys[asked.layer], self._values[asked.layer]
        each = torch.arange(len(self.lengths), device=query.device)
        keys[each, :, self.lengths] = asked.key[:, :, 0]
        values[each, :, self.lengths] = asked.value[:, :, 0]
        places = torch.arange(keys.shape[2], device=query.device)
        last = self.lengths[:, None]
        mask = places <= last
        if window is not None:
            mask &= places > last - window
        # The heads of a group ask for the same keys: as rows of one query these need no repeating.
        grouped = query.reshape(query.shape[0], keys.shape[1], -1, query.shape[3])
        out = scaled_dot_product_attention(
            grouped, keys, values, attn_mask=mask[:, None, None], scale=asked.scale
        )
        return out.reshape(query.shape).transpose(1, 2)

    def grown(self) -> None:
        """Every reply has one token more."""
        self.lengths += 1

    def only(self, places: Tensor) -> None:
        """Go on with some of the replies."""
        self.lengths = self.lengths[places]
        self._keys = [keys[places] for keys in self._keys]
        self._values = [values[places] for values in self._values]


def flash_takes(query: Tensor) -> bool:
    """Whether the flash kernel for differing lengths takes queries of this kind on this device."""
    import torch

    width = query.shape[-1]
    if not query.is_cuda or query.dtype not in (torch.bfloat16, torch.float16):
        return False
    if width > _FLASH_WIDEST or width % 8:
        return False
    if torch.cuda.get_device_capability(query.device) < _FLASH_CAPABILITY:
        return False
    try:
        from torch.nn.attention import varlen  # noqa: F401 - only newer versions have it
    except ImportError:
        return False
    return True
