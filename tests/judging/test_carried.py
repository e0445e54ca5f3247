"""Replies that go with a record: noted where they are made, given back where they are wanted."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from judge.backends.base import Completion
from judge.errors import BackendError, ContextExceeded
from judge.judging.carried import Brought, Recorder, carrier, carrying

KEY, OTHER = "a" * 40, "b" * 40
READ = Completion("Yes", "length", 7, 1, None, (("Yes", math.log(0.9)),))


class Making:
    """Makes a reply, or fails; counts."""

    def __init__(self, outcome: Completion | BackendError) -> None:
        self.outcome, self.count = outcome, 0

    async def __call__(self) -> Completion:
        self.count += 1
        if isinstance(self.outcome, BackendError):
            raise self.outcome
        return self.outcome


async def test_what_was_noted_is_not_made_again_and_everything_else_is() -> None:
    recorder, made = Recorder(), Making(READ)
    assert await recorder.reply(KEY, made) == READ
    brought = Brought(recorder.heard)
    assert await brought.reply(KEY, made) == READ and made.count == 1
    assert await brought.reply(OTHER, made) == READ
    assert await brought.reply(OTHER, made) == READ and made.count == 3


async def test_a_question_that_is_put_twice_has_one_answer() -> None:
    recorder, other = Recorder(), Making(Completion("No"))
    first, again = Making(READ), Making(Completion("No"))
    assert await recorder.reply(KEY, first) == await recorder.reply(KEY, again) == READ
    assert (first.count, again.count) == (1, 0)
    at_once = await asyncio.gather(recorder.reply(OTHER, other), recorder.reply(OTHER, first))
    assert at_once[0] == at_once[1] == await Brought(recorder.heard).reply(OTHER, again)


async def test_a_call_that_brought_no_reply_brings_none_again() -> None:
    recorder, made = Recorder(), Making(ContextExceeded("too long"))
    for carrying_it in (recorder, Brought(recorder.heard)):
        with pytest.raises(ContextExceeded, match="too long"):
            await carrying_it.reply(KEY, made)
    assert made.count == 1


async def test_each_record_has_its_own_carrier_also_in_tasks_of_its_own() -> None:
    async def seen() -> Any:
        await asyncio.sleep(0)
        return carrier()

    async def record() -> bool:
        mine = Recorder()
        with carrying(mine):
            return all(found is mine for found in await asyncio.gather(seen(), seen()))

    assert await asyncio.gather(record(), record()) == [True, True]
    assert carrier() is None
