"""Keys and values of prompts' beginnings, held for the questions that are yet to come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judge.inference.prefix import LEAST_SHARED, common

if TYPE_CHECKING:
    from torch import Tensor

_WORTH_KEEPING = 0.5
"""A held beginning stays while it covers this share of what is asked about the record."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The first tokens of a record's prompts, with their keys and values by layer."""

    tokens: Sequence[int]
    layers: list[tuple[Tensor, Tensor]]


class HeldPrefixes:
    """One beginning for each record, those used longest ago let go first.

    Args:
        most_tokens: how many tokens may be held altogether; 0 holds nothing.
    """

    def __init__(self, most_tokens: int) -> None:
        self._most = most_tokens
        self._entries: OrderedDict[str, Held] = OrderedDict()
        self._tokens = 0

    @property
    def tokens(self) -> int:
        """How many are held."""
        return self._tokens

    def match(self, record: str, tokens: Sequence[int]) -> tuple[Held, int] | None:
        """What is held for the record, and how many of the prompt's tokens it covers.

        The last token is never covered, because its output is what is wanted. None where it is too
        little to be of use.
        """
        held = self._entries.get(record)
        if held is None:
            return None
        covered = min(common(held.tokens, tokens), len(tokens) - 1)
        if covered < LEAST_SHARED:
            return None
        self._entries.move_to_end(record)
        return held, covered

    def wants(self, record: str, tokens: Sequence[int], covered: int) -> bool:
        """Whether this beginning is to be held, where `covered` of it are held already."""
        if not record or not LEAST_SHARED <= len(tokens) <= self._most:
            return False
        return covered < _WORTH_KEEPING * len(tokens)

    def put(self, record: str, held: Held) -> None:
        """Hold a beginning, and let others go for it."""
        self._drop(record)
        while self._entries and self._tokens + len(held.tokens) > self._most:
            self._drop(next(iter(self._entries)))
        self._entries[record] = held
        self._tokens += len(held.tokens)

    def give_up(self) -> bool:
        """Let everything go, and hold half as much from now on; whether there was anything."""
        had = bool(self._entries)
        self._entries.clear()
        self._tokens = 0
        self._most //= 2
        return had

    def _drop(self, record: str) -> None:
        gone = self._entries.pop(record, None)
        self._tokens -= len(gone.tokens) if gone else 0
