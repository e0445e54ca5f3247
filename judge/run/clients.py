"""The clients of a run's models, as its settings want them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from judge.backends import build
from judge.cache import ReplyCache
from judge.errors import UsageError
from judge.judging.client import Client
from judge.judging.limits import Budget, Price
from judge.run.batching import batch_client, batched
from judge.run.openfiles import allow_open_files
from judge.settings import Settings, user_file

ClientBuilder = Callable[[str, Settings, ReplyCache | None, Budget], Client]
"""Makes the client of the model that is named."""


def build_client(spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget) -> Client:
    """The client of one model, with the run's cache, budget, price and limits around it.

    Raises:
        UsageError: the model cannot be used as named.
    """
    price = price_of(spec, settings)
    if batched(spec, settings):
        return batch_client(spec, settings, cache, budget, price)
    backend = build(spec)
    return Client(
        spec,
        backend,
        cache=cache,
        budget=budget,
        limit=calls_at_once(settings, backend.slots),
        price=price,
        reasks=settings.reasks,
        timeout=settings.timeout,
    )


def price_of(spec: str, settings: Settings) -> Price | None:
    """What a model's tokens cost, as the settings have it; None where they do not say."""
    price = settings.prices.get(spec)
    return Price(price.input, price.output) if price else None


def calls_at_once(settings: Settings, slots: int | None) -> int:
    """--concurrency where it is given; else its default, or an engine's slots where they are more.

    Args:
        slots: of the engine (None: it has no number of its own).
    """
    if "concurrency" in settings.model_fields_set or slots is None:
        return settings.concurrency
    return max(settings.concurrency, slots)


def refuse_unfit(settings: Settings, clients: Collection[Client]) -> None:
    """See that every model has a price where cost is limited, and every call its connection.

    Raises:
        UsageError: one has no price (says what to write where), or the system does not allow so
            many open files.
    """
    unpriced = [client.spec for client in clients if not client.priced]
    if unpriced and settings.max_cost is not None:
        raise UsageError(
            f"--max-cost needs the price of {unpriced[0]}; put it in {user_file()}:\n"
            f'[prices."{unpriced[0]}"]\ninput = 1.0   # USD for a million tokens\noutput = 2.0'
        )
    distant = [c for c in clients if c.remote and not batched(c.spec, settings)]
    if distant:
        allow_open_files(sum(client.limit.most for client in distant))
