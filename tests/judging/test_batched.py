"""The client of a model whose calls go out in batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from judge.backends.base import Call, Completion, Mode
from judge.cache import CacheError, ReplyCache
from judge.judging.batched import BatchClient
from judge.judging.limits import Budget


class Batches:
    """A backend that notes of which calls it is told that their reply is kept elsewhere."""

    modes, slots, seeded, reading = (Mode.JSON_SCHEMA,), None, True, "structured"

    def __init__(self) -> None:
        self.kept: list[bool] = []

    def identity(self) -> Mapping[str, str]:
        return {"model": "m"}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        return Completion("so")

    def settle(self, call: Call, *, kept: bool) -> None:
        self.kept.append(kept)

    async def aclose(self) -> None:
        return None


async def test_a_reply_that_finds_no_room_in_the_cache_stays_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: ReplyCache) -> None:
        raise CacheError("full")

    backend, cache, faults = Batches(), ReplyCache(tmp_path), list[CacheError]()
    cache.on_fault = faults.append
    made: Any = cast(Any, backend)
    client = BatchClient("openai:m", made, cache=cache, budget=Budget(), price=None, reasks=0)
    await client.write(Call([{"role": "user", "content": "1"}]))
    assert backend.kept == [True]
    monkeypatch.setattr(ReplyCache, "_store_waiting", full)
    for number in (2, 3):
        await client.write(Call([{"role": "user", "content": f"{number}"}]))
    assert backend.kept == [True, False, False] and len(faults) == 1
    monkeypatch.undo()
    cache.close()
