"""The base of engines in this process: one model on one thread, one call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

from judge.backends.base import Backend, Call, refuse_half_pairs

T = TypeVar("T")


class InProcess(Backend):
    """A model that is loaded at the first call, as `_engine`. Calls run one at a time on one thread
    with the name `thread`."""

    in_process = gives_states = states_beside_replies = True
    slots = 1
    method = "logprobs"

    def __init__(self, thread: str) -> None:
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=thread)

    async def _on_thread(self, work: Callable[[Call, Event], T], call: Call) -> T:
        """Run `work` on a call; the event is set if the call is cancelled."""
        refuse_half_pairs(call)
        stop = Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._worker, work, call, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def aclose(self) -> None:
        """Wait for the running call, if any, and free the model."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        self.__dict__.pop("_engine", None)
