"""The clients of a run's models, as its settings and its engine want them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from judge.backends import build
from judge.backends.base import parse_model
from judge.cache import ReplyCache
from judge.errors import UsageError
from judge.judging.client import Client
from judge.judging.limits import Budget, Price
from judge.settings import Settings, user_file

try:
    import resource
except ImportError:  # Windows has no limit on open files.
    resource = None  # type: ignore[assignment]

ClientBuilder = Callable[[str, Settings, ReplyCache | None, Budget], Client]
"""Makes the client of the model that is named."""

RESERVE = 128
"""Open files beside the connections: inputs, OUT, cache, modules being loaded, pipes."""

BATCH_RECORDS = 5_000
"""Records under way with `--engine batch` where the user names no number: a batch takes as long
whatever is in it. A record takes some 60 kB of memory."""

_NO_LIMIT = 1 << 30
_BATCHED = "openai"
_FREE = ("local", "transformers", "vllm", "scripted")
"""Providers whose models are the user's own: they answer at once, whatever the engine."""


def build_client(spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget) -> Client:
    """The client of one model, with the run's cache, budget, price and limits around it.

    Raises:
        UsageError: the model cannot be used as named.
    """
    price = price_of(spec, settings)
    if batched(spec, settings):
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


def records_at_once(settings: Settings, clients: Iterable[Client]) -> int:
    """Records worked on at once: the user's wish, within what every engine can hold.

    Without a wish, as many as the engines in this process ask for, to fill their batches.
    """
    if settings.engine == "batch":
        chosen = "concurrency" in settings.model_fields_set
        return settings.concurrency if chosen else BATCH_RECORDS
    own = [client.backend.slots for client in clients if client.backend.slots is not None]
    return min([calls_at_once(settings, max(own, default=None)), *own])


# ---------------------------------------------------------------- what does not fit


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


def allow_open_files(connections: int) -> None:
    """Raise the soft limit on open files to what so many connections take.

    Raises:
        UsageError: the hard limit is too low; with the numbers.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + RESERVE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError) as error:
        # macOS says that there is no hard limit, and has one all the same.
        most = soft if hard == resource.RLIM_INFINITY else hard
        fewer = max(0, most - RESERVE)
        raise UsageError(
            f"{connections} calls at once need {needed} open files, and this system allows {most}: "
            + (f"ask for at most {fewer} with --concurrency, or raise" if fewer else "raise")
            + " the limit (ulimit -n)"
        ) from error


def refuse_stray(settings: Settings) -> None:
    """Raises UsageError for a setting that only the Ray engine heeds, where another is to work."""
    if settings.engine == "ray":
        return
    for flag, value in (("--address", settings.address), ("--workers", settings.workers)):
        if value is not None:
            raise UsageError(
                f"{flag} {value} speaks of Ray workers, and the engine is {settings.engine}; "
                "add --engine ray"
            )


def refuse_validation_only(settings: Settings, command: str) -> None:
    """Raises UsageError for a setting that `judge validate` alone heeds."""
    if settings.engine == "ray":
        raise UsageError(
            f"engine = ray is for judge validate, and {command} would not heed it: take "
            "JUDGE_ENGINE out of the environment, or engine out of judge.toml"
        )
    refuse_stray(settings)


# ---------------------------------------------------------------- --engine batch


def batched(spec: str, settings: Settings) -> bool:
    """Whether this model is asked by batches."""
    return settings.engine == "batch" and parse_model(spec)[0] == _BATCHED


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


def left_at_provider(settings: Settings, clients: Iterable[Client]) -> int:
    """How many batches the provider works on."""
    if settings.engine != "batch":
        return 0
    from judge.backends.batch import BatchBackend

    backends = [client.backend for client in clients]
    return sum(backend.under_way for backend in backends if isinstance(backend, BatchBackend))
