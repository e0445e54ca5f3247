"""`--engine batch`: which models it can ask, how many records are under way, what is left there."""

from __future__ import annotations

from collections.abc import Iterable

from judge.backends.base import parse_model
from judge.cache import ReplyCache
from judge.errors import UsageError
from judge.judging.client import Client
from judge.judging.limits import Budget, Price
from judge.settings import Settings

IN_FLIGHT = 5_000
"""Records under way where the user names no number: each of a record's waves takes as long as a
batch does, and it is the records under way that fill one. A record takes some 60 kB of memory."""

_BATCHED = "openai"
_NO_LIMIT = 1 << 30
_FREE = ("local", "transformers", "vllm", "scripted")
"""Providers whose models are the user's own: they answer at once, whatever the engine."""


def batched(spec: str, settings: Settings) -> bool:
    """Whether this model is asked by batches."""
    return settings.engine == "batch" and parse_model(spec)[0] == _BATCHED


def batch_client(
    spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget, price: Price | None
) -> Client:
    """The client of a model that is asked by batches: the pace is the provider's.

    Raises:
        UsageError: the model cannot be used as named.
    """
    from judge.backends.batch import BatchBackend

    return Client(
        spec,
        BatchBackend(parse_model(spec)[1], cache=cache),
        cache=cache,
        budget=budget,
        limit=_NO_LIMIT,
        price=price,
        reasks=settings.reasks,
        # A batch is pause enough before a call is repeated, and may take a day.
        backoff=0.0,
        timeout=None,
    )


def refuse_unbatched(settings: Settings, models: Iterable[str]) -> None:
    """See that `--engine batch` has something to do, and nothing that it would make dearer.

    Raises:
        UsageError: no model has a batch API, or one without is neither free nor the user's own.
    """
    if settings.engine != "batch":
        return
    specs = list(models)
    dear = [spec for spec in specs if parse_model(spec)[0] not in (_BATCHED, *_FREE)]
    if dear:
        raise UsageError(
            f"--engine batch: {dear[0]} has no batch API that judge knows, and would be asked at "
            "the price of single calls; name a model behind OpenAI's batch format (openai:..., "
            "with OPENAI_BASE_URL), or use --engine local"
        )
    if not any(batched(spec, settings) for spec in specs):
        raise UsageError(
            f"--engine batch: none of the run's models ({', '.join(specs)}) has a batch API; name "
            "one with --model openai:..., or leave --engine out"
        )


def records_in_flight(settings: Settings) -> int:
    """How many records are under way at once: the user's number, else `IN_FLIGHT`."""
    return settings.concurrency if "concurrency" in settings.model_fields_set else IN_FLIGHT


def left_at_provider(settings: Settings, clients: Iterable[Client]) -> int:
    """How many batches the provider works on."""
    if settings.engine != "batch":
        return 0
    from judge.backends.batch import BatchBackend

    backends = [client.backend for client in clients]
    return sum(backend.under_way for backend in backends if isinstance(backend, BatchBackend))
