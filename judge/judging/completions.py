"""One model's completions, from the reply cache or else its server; each is requested once.

A reply is stored immediately, so that a kill loses only the calls under way, and a rerun takes the
same path at no cost. If an ask got no valid reply, its replies are removed when the run ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from weakref import WeakValueDictionary

from judge import traces
from judge.backends.base import Backend, Call, Completion, Mode
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest
from judge.judging.negotiation import Negotiation
from judge.judging.served_model import ServedModel
from judge.judging.transport import CANARY, Transport


class Attempts(ExitStack):
    """The completions of one ask: `entries`, their cache keys; `fresh`, whether the last came from
    the server; `text`, the last that is not empty. Other asks for the same completions wait until
    it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[str] = []
        self.fresh, self.text = False, ""


class Completions:
    """The completions of one model.

    Args:
        negotiation: notes after each reply what the server does not accept.
        served: which model answers, part of a reply's key.
        identity: the backend's; passed in because it is slow to compute.
    """

    def __init__(
        self,
        backend: Backend,
        transport: Transport,
        cache: ReplyCache | MemoryCache,
        negotiation: Negotiation,
        served: ServedModel,
        identity: Mapping[str, Any],
    ) -> None:
        self._transport, self._cache = transport, cache
        self._negotiation, self._served = negotiation, served
        self._identity, self._backend = identity, backend
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unusable: set[str] = set()

    async def get(self, call: Call, mode: Mode, attempts: Attempts) -> Completion:
        """The completion from the cache or the backend, once no other ask is getting the same one;
        raises as `Transport.send`."""
        key = self._key(call, mode)
        lock = self._locks.setdefault(key, asyncio.Lock())
        await lock.acquire()
        attempts.callback(lock.release)
        if not self._served.ready:
            await self._served.look()
        completion = self._cached(key, call)
        attempts.fresh = completion is None

        async def keep(completion: Completion) -> None:
            """Note a reply, fresh or cached, and store a fresh one."""
            self._served.replied(completion)
            entry = self._served.key(key)
            attempts.entries.append(entry)
            attempts.text = completion.text.strip() or attempts.text
            if attempts.fresh:
                await self._cache.store({entry: completion.as_text()})

        sent, cached = self._negotiation.sent, completion is not None
        with traces.of_call(self._identity, call, sent, cached=cached) as span:
            if completion is not None:
                await keep(completion)
                return span.ends(completion)
            completion = span.ends(await self._transport.send(call, mode, keep))
        self._negotiation.note_changes()
        return completion

    async def probe(self, mode: Mode) -> Completion:
        """The reply to a small question, never from the cache."""
        await self._served.look()
        completion = await self._transport.send(CANARY, mode)
        self._served.replied(completion)
        return completion

    def stored(self, call: Call, mode: Mode) -> bool:
        """Whether the call's reply in this mode is in the cache."""
        return self._cache.get(self._served.key(self._key(call, mode))) is not None

    async def drop(self, attempts: Attempts) -> None:
        """Remove unusable replies from the cache."""
        await self._cache.store(dict.fromkeys(attempts.entries))

    def drop_at_end(self, attempts: Attempts) -> None:
        """Remove these replies from the cache when the run ends; until then, and after a kill,
        they are reused."""
        self._unusable.update(attempts.entries)

    async def drop_unusable(self) -> None:
        """Remove the replies of `drop_at_end`."""
        unusable, self._unusable = self._unusable, set()
        await self._cache.store(dict.fromkeys(unusable))

    def _key(self, call: Call, mode: Mode) -> str:
        """The cache key, without the model. Seed and vote are in it only if replies are sampled."""
        return digest(
            {
                "identity": self._identity,
                "mode": str(mode),
                "messages": call.prompt.digest,
                "schema": call.schema,
                "schema_name": call.schema_name,
                "temperature": call.temperature,
                "max_tokens": call.max_tokens,
                "logprobs": call.logprobs,
                "draw": None if call.steady else (call.seed, call.vote),
                "backend": self._backend.key_parts(call),
                **({} if call.layer is None else {"layer": call.layer}),
            }
        )

    def _cached(self, key: str, call: Call) -> Completion | None:
        text = self._cache.get(self._served.key(key))
        completion = None if text is None else Completion.restored(text)
        if completion is None or (call.logprobs and not completion.first_token):
            return None
        self._transport.counters.cache_hits += 1
        return completion
