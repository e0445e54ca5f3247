"""The client of a model whose calls go out in batches."""

from __future__ import annotations

from judge.backends.base import Call, Completion, Mode
from judge.backends.batches.backend import BatchBackend
from judge.cache import ReplyCache
from judge.judging.client import Client, _Attempts
from judge.judging.limits import Budget, Price, Unlimited


class BatchClient(Client):
    """A client that holds no call back, gives none up, and waits before none that it repeats.

    The pace is the provider's, and a wave is pause enough. Which replies are in the cache is told
    to the backend, which then keeps them no longer.
    """

    def __init__(
        self,
        spec: str,
        backend: BatchBackend,
        *,
        cache: ReplyCache | None,
        budget: Budget,
        price: Price | None,
        reasks: int,
    ) -> None:
        super().__init__(
            spec,
            backend,
            cache=cache,
            budget=budget,
            limit=1,
            price=price,
            reasks=reasks,
            backoff=0.0,
            timeout=None,
        )
        self.limit = Unlimited()
        self._asked_calls: dict[int, list[Call]] = {}
        self.batches = backend

    async def prepare(self) -> Mode:
        """See that the batch API can be used, before the first record.

        Raises:
            BackendError: no server, no batch API, or the key is refused.
            UsageError: another run works with this model's batches.
        """
        await self.batches.waves.open()
        return await super().prepare()

    async def _complete(self, call: Call, mode: Mode, attempts: _Attempts) -> Completion:
        self._asked_calls.setdefault(id(attempts), []).append(call)
        return await super()._complete(call, mode, attempts)

    def _release(self, attempts: _Attempts) -> None:
        super()._release(attempts)
        kept = self._cache is not None and self._cache.storing
        for call in self._asked_calls.pop(id(attempts), ()):
            self.batches.settle(call, kept=kept)
