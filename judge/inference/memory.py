"""Whether a model fits on a device, and what is left to work with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.inference.batching import Room

MOST_TOKENS = 16_384
"""Evaluated in one pass. Rows enough for a 7B model's matrix products (docs/decisions/0019)."""

LEAST_TOKENS = 1_024
"""With room for fewer in one pass a model counts as not fitting."""

MOST_PROMPTS = 256
"""In one pass, because every prompt's logits take the width of the vocabulary."""

_ROWS = 8
"""Of keys that are looked at in a pass, for each token in it; gathered one layer at a time."""

_MARGIN = 0.05
"""Of the whole device: what the driver, kernels' scratch space and fragmentation take."""

_HELD_ON_CPU = 0.25
"""Of what is left in main memory, which belongs to others too."""

_GIB = 1 << 30


class DoesNotFit(Exception):
    """A model is too large for the device; the message has the numbers."""


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of a device: free now, and altogether."""

    device: str
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model takes, in bytes: its weights, each token's keys and values, each token in a
    pass, and the logits of a full pass."""

    weights: int
    kept: int
    working: int
    logits: int


@dataclass(frozen=True, slots=True)
class Fit:
    """How a device's space is divided: tokens in one pass, and tokens whose keys may be kept."""

    batch_tokens: int
    kept_tokens: int


def needs(shape: Any, weights: int, bytes_each: int) -> Needs:
    """What a model of this configuration takes, its weights `weights` bytes, with numbers of
    `bytes_each` bytes.

    A token in a pass: its hidden states and their copies in 32 bits, the three rows of the widest
    layer, queries, and keys gathered for every segment; an estimate from above.
    """
    heads = shape.num_attention_heads
    width = getattr(shape, "head_dim", None) or shape.hidden_size // heads
    groups = getattr(shape, "num_key_value_heads", None) or heads
    inner = getattr(shape, "intermediate_size", None) or 4 * shape.hidden_size
    kept = 2 * shape.num_hidden_layers * groups * width * bytes_each
    row = 6 * shape.hidden_size + 3 * inner + 3 * heads * width + 2 * _ROWS * groups * width
    return Needs(
        weights=weights,
        kept=kept,
        working=row * bytes_each + 3 * 4 * shape.hidden_size + kept,
        logits=3 * 4 * MOST_PROMPTS * shape.vocab_size,
    )


def fit(name: str, wanted: Needs, space: Space) -> Fit:
    """Divide the space.

    Raises:
        DoesNotFit: too little is free.
    """
    margin = int(_MARGIN * space.total)
    least = wanted.weights + wanted.logits + LEAST_TOKENS * wanted.working + margin
    if least > space.free:
        raise DoesNotFit(
            f"{name} does not fit on {space.device}: its weights take {_gib(wanted.weights)}, "
            f"{LEAST_TOKENS:,} tokens at once {_gib(LEAST_TOKENS * wanted.working)}, their logits "
            f"{_gib(wanted.logits)}, and {_gib(margin)} must stay free: {_gib(least)} together. Of "
            f"{_gib(space.total)} only {_gib(space.free)} are free. Free the device, choose "
            "another with JUDGE_TORCH_DEVICE, or take a smaller model"
        )
    left = space.free - wanted.weights - wanted.logits - margin
    batch = min(MOST_TOKENS, max(LEAST_TOKENS, left // 2 // wanted.working))
    spare = max(0, left - batch * wanted.working)
    if space.device == "cpu":
        spare = int(_HELD_ON_CPU * spare)
    return Fit(int(batch), int(spare // wanted.kept))


def held_tokens(fit: Fit) -> int:
    """How many tokens may be held between batches: half of what may be kept."""
    return fit.kept_tokens // 2


def room(fit: Fit) -> Room:
    """What a batch may hold; the other half of what may be kept is for replies."""
    return Room(
        tokens=fit.batch_tokens,
        prompts=MOST_PROMPTS,
        rows=_ROWS * fit.batch_tokens,
        kept=max(LEAST_TOKENS, fit.kept_tokens - held_tokens(fit)),
    )


def space_of(device: str) -> Space:
    """What a torch device has. For "cpu": main memory, as far as the system lets it be known."""
    import torch

    if device == "cpu":
        return _main_memory()
    place = torch.device(device)
    free, total = torch.cuda.mem_get_info(place)
    # What torch holds for later use is free for us.
    idle = torch.cuda.memory_reserved(place) - torch.cuda.memory_allocated(place)
    return Space(f"{device} ({torch.cuda.get_device_name(place)})", free + idle, total)


def _main_memory() -> Space:
    found: dict[str, int] = {}
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name in ("MemTotal", "MemAvailable"):
            found[name] = int(rest.split()[0]) * 1024
    free, total = found["MemAvailable"], found["MemTotal"]
    limit = _limit_of_group()
    if limit is not None:
        free, total = min(free, limit[0]), min(total, limit[1])
    return Space("cpu", free, total)


def _limit_of_group() -> tuple[int, int] | None:
    """(free, altogether) within the control group's limit, as containers have one."""
    group = Path("/sys/fs/cgroup")
    try:
        most = (group / "memory.max").read_text(encoding="ascii").strip()
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return None if most == "max" else (max(0, int(most) - used), int(most))


def _gib(count: int) -> str:
    return f"{count / _GIB:.2f} GiB"
