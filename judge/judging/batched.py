"""The client of a model whose calls go out in batches."""

from __future__ import annotations

from judge.backends.base import Call, Completion, Mode
from judge.backends.batches.backend import BatchBackend
from judge.cache import ReplyCache
from judge.judging.budget import Budget, Price
from judge.judging.client import Client
from judge.judging.limiter import Unlimited


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
        self.batches = backend

    async def prepare(self) -> Mode:
        """See that the batch API can be used, before the first record.

        Raises:
            BackendError: no server, no batch API, or the key is refused.
            UsageError: another run works with this model's batches.
        """
        await self.batches.waves.open()
        return await super().prepare()

    async def _first(self, key: str, call: Call, mode: Mode) -> Completion:
        kept = False
        try:
            completion = await super()._first(key, call, mode)
            kept = self._cache is not None and self._cache.storing
        finally:
            self.batches.settle(call, kept=kept)
        return completion
