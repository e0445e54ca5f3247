"""Prompts that begin alike, laid out so that what they share is evaluated once.

The prompts of a batch become a tree of segments: a segment holds tokens that some prompts share, a
prompt is the path to its end. All segments lie one behind the other in one packed row. A segment
looks at those above it, as keys and values, and at itself up to each token; that is all that a
prompt's tokens look at when it is evaluated alone. (Prefix trees of this kind: Zheng et al. 2024,
"SGLang: Efficient Execution of Structured Language Model Programs".)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

LEAST_SHARED = 16
"""Tokens. Less in common is evaluated again: a segment of its own would cost more than it saves."""

Span = tuple[int, int]
"""From the first row to behind the last, among the rows of keys: the held ones, then the new."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's tokens; of the first `held` the keys and values are there, in entry `entry`."""

    tokens: Sequence[int]
    held: int = 0
    entry: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """New tokens `first` to `first + length`, and the rows of keys that lie before them."""

    first: int
    length: int
    context: tuple[Span, ...]

    @property
    def before(self) -> int:
        """How many tokens come before the segment's own."""
        return sum(end - begin for begin, end in self.context)


@dataclass(slots=True)
class Layout:
    """A batch of prompts as one packed row.

    `tokens` and `positions` are those to evaluate; `ends` holds, for each prompt, the place of its
    last token among them, and `paths` its rows of keys from the first token to the last. `held` are
    the entries whose keys come first among those rows, as (entry, how many tokens of it).
    """

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    paths: list[tuple[Span, ...]] = field(default_factory=list)
    held: list[tuple[int, int]] = field(default_factory=list)

    @property
    def held_rows(self) -> int:
        return sum(length for _, length in self.held)

    @property
    def pairs(self) -> int:
        """Pairs of a token and one that it looks at, itself included."""
        return sum(s.length * s.before + s.length * (s.length + 1) // 2 for s in self.segments)

    @property
    def shares(self) -> bool:
        """Whether any segment looks at others, so that keys must be gathered."""
        return any(segment.context for segment in self.segments)


def common(one: Sequence[int], other: Sequence[int], begin: int = 0) -> int:
    """How many leading tokens are the same, where the first `begin` are known to be."""
    low, high = begin, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def arrange(prompts: Sequence[Prompt], *, share: bool = True) -> Layout:
    """Lay out a batch; with `share` off every prompt is evaluated whole and alone."""
    layout = Layout(ends=[0] * len(prompts), paths=[()] * len(prompts))
    most: dict[int, int] = {}
    for prompt in prompts:
        if prompt.held:
            most[prompt.entry] = max(most.get(prompt.entry, 0), prompt.held)
    layout.held = list(most.items())
    begins, row = dict[int, int](), 0
    for entry, length in layout.held:
        begins[entry], row = row, row + length
    groups: dict[tuple[int, int], list[int]] = {}
    for number, prompt in enumerate(prompts):
        alone = number if not share else -1
        key = (prompt.entry, prompt.held) if prompt.held else (alone, 0)
        groups.setdefault(key, []).append(number)
    for (entry, held), numbers in groups.items():
        context = ((begins[entry], begins[entry] + held),) if held else ()
        numbers.sort(key=lambda number: list(prompts[number].tokens))
        _grow(layout, prompts, numbers, held, context)
    return layout


def _grow(
    layout: Layout,
    prompts: Sequence[Prompt],
    numbers: Sequence[int],
    depth: int,
    context: tuple[Span, ...],
) -> None:
    """Lay out prompts, sorted by their tokens, that are the same up to `depth`."""
    first, last = prompts[numbers[0]].tokens, prompts[numbers[-1]].tokens
    shared = common(first, last, depth)
    if len(numbers) > 1 and shared - depth < LEAST_SHARED and shared < len(last):
        for run in _runs(prompts, numbers, depth):
            _grow(layout, prompts, run, depth, context)
        return
    path = _segment(layout, first[depth:shared], depth, context)
    going_on = [number for number in numbers if len(prompts[number].tokens) > shared]
    for number in numbers[: len(numbers) - len(going_on)]:
        layout.ends[number] = len(layout.tokens) - 1
        layout.paths[number] = path
    if going_on:
        _grow(layout, prompts, going_on, shared, path)


def _runs(prompts: Sequence[Prompt], numbers: Sequence[int], depth: int) -> list[list[int]]:
    """Neighbours that share enough stay together."""
    runs = [[numbers[0]]]
    for before, number in pairwise(numbers):
        one, other = prompts[before].tokens, prompts[number].tokens
        shared = common(one, other, depth)
        if shared - depth >= LEAST_SHARED or shared == len(one) == len(other):
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _segment(
    layout: Layout, tokens: Sequence[int], depth: int, context: tuple[Span, ...]
) -> tuple[Span, ...]:
    """Add a segment; gives the path to its end."""
    first = len(layout.tokens)
    layout.segments.append(Segment(first, len(tokens), context))
    layout.tokens.extend(tokens)
    layout.positions.extend(range(depth, depth + len(tokens)))
    row = layout.held_rows + first
    return (*context, (row, row + len(tokens)))
