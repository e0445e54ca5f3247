"""The models of a run: makes clients from the names in the settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from judge import plugins
from judge.backends import BACKENDS, default_judge, factory, providers
from judge.backends.base import Backend, Method, Mode, parse_model
from judge.cache import ReplyCache, cache_dir
from judge.configuration import user_file
from judge.errors import JudgeError, UsageError
from judge.judging.client import Client
from judge.judging.limits import Budget
from judge.model_tables import Server, price_of, priced_models
from judge.settings import IN_PROCESS, Settings

if TYPE_CHECKING:
    from judge.backends.openai import Request

try:
    import resource
except ImportError:  # Windows has no limit on open files.
    resource = None  # type: ignore[assignment]

ClientBuilder = Callable[[str, Settings, ReplyCache | None, Budget], Client]
"""Makes the client of a model."""

RESERVE = 128
"""Open files besides the connections: inputs, OUT, cache, modules being loaded, pipes."""

BATCH_RECORDS = 5_000
"""Default number of records under way with `--engine batch`.

A batch's duration does not depend on its size. A record takes some 60 kB of memory."""

_NO_LIMIT = 1 << 30


@dataclass(slots=True)
class Models:
    """The models of a run: a client for each, built once, which share one budget and one cache.

    `settings` name the models, their servers, prices and limits; `build` makes a client. An `idle`
    run asks no model.
    """

    settings: Settings
    budget: Budget
    cache: ReplyCache | None = None
    build: ClientBuilder | None = None
    clients: dict[str, Client] = field(default_factory=dict)
    idle: bool = False

    @classmethod
    def of(
        cls,
        settings: Settings,
        specs: Sequence[str] | None = None,
        *,
        budget: Budget | None = None,
        build: ClientBuilder | None = None,
        idle: bool = False,
    ) -> Self:
        """Build the clients of the models `specs`, else of all that the settings name.

        Args:
            budget: a budget shared with others (None: one made from the settings).
            idle: whether the run asks no model, whatever the settings name.

        Raises:
            UsageError: a model or the cache cannot be used, or the system does not allow enough
                open files.
        """
        # On another engine each worker has a cache; one here would never be used.
        caches = settings.cache and settings.engine in IN_PROCESS and not idle
        cache = ReplyCache(cache_dir(settings.cache_dir)) if caches else None
        budget = budget or Budget(settings.max_calls, settings.max_cost)
        models = cls(settings, budget, cache, build, idle=idle)
        if idle:
            return models
        specs = models.names if specs is None else specs
        _refuse_unbatched(settings, specs)
        for spec in specs:
            models.client(spec)
        refuse_unfit(settings, models.clients.values())
        distant = (
            c for c in models.clients.values() if c.remote and not _batched(c.spec, settings)
        )
        if calls := sum(client.limit.most for client in distant):
            _allow_open_files(calls + RESERVE)
        return models

    @property
    def judges(self) -> tuple[str, ...]:
        return () if self.idle else self.settings.model or (default_judge().spec,)

    @property
    def final(self) -> tuple[str, ...]:
        """The models that decide at the end."""
        return () if self.idle else self.settings.final_model or self.judges

    @property
    def rewriter(self) -> str:
        rewriter = self.settings.rewrite_model if self.settings.repair else None
        return "" if self.idle else rewriter or self.judges[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Every model of the run, once; a cascade's cheap model and the explaining one come
        last."""
        explains = () if self.idle else (self.settings.explain_with,)
        specs = (*self.of_steps(self.settings.model_for), *explains)
        return tuple(dict.fromkeys(spec for spec in specs if spec))

    def of_steps(self, steps: Iterable[str]) -> tuple[str, ...]:
        """The models that judge, accept and, with --repair, rewrite, those of these steps, and the
        cheap one."""
        if self.idle:
            return ()
        step_models = (self.settings.model_for[name].model for name in steps)
        cheap = self.settings.cheap_model
        rewriter = self.rewriter if self.settings.repair else None
        specs = (*self.judges, *self.final, rewriter, *step_models, cheap)
        return tuple(dict.fromkeys(spec for spec in specs if spec))

    @property
    def slots(self) -> int:
        """How many records are worked on concurrently, by one process or several: what the user
        sets, within each engine's slots; by default as many as engines in this process have slots,
        to fill their batches."""
        settings = self.settings
        if settings.engine == "batch":
            explicit = "concurrency" in settings.model_fields_set
            return settings.concurrency if explicit else BATCH_RECORDS
        all_slots = (client.backend.slots for client in self.clients.values())
        slots = [count for count in all_slots if count is not None]
        return min([_calls_at_once(settings, max(slots, default=None)), *slots])

    def client(self, spec: str) -> Client:
        if spec not in self.clients:
            build = self.build or build_client
            self.clients[spec] = build(spec, self.settings, self.cache, self.budget)
        return self.clients[spec]

    def identity(self, spec: str) -> dict[str, Any]:
        """What distinguishes this model from others of the same name."""
        return dict(self.client(spec).backend.identity())

    @property
    def batches(self) -> int:
        """How many batches are still at the provider."""
        return sum(client.backend.batches_under_way for client in self.clients.values())

    async def prepare(self, methods: Callable[[str], Method]) -> None:
        """Reach every model before the first record, by the method that it will be asked by.

        Raises:
            BackendError: a model is unreachable, or refuses the key.
            UsageError: no way of asking a model gives valid JSON, or it has no log-probabilities.
        """
        if not self.idle and (explains := self.settings.explain_with) is not None:
            await self.client(explains).prepare()
        for spec in self.of_steps(self.settings.model_for):
            method = methods(spec)
            rewrites = self.settings.repair and not self.client(spec).decides
            if spec == self.settings.cheap_model:
                await self.client(spec).prove_logprobs("--cheap-model")
            elif method == "structured" or rewrites:
                await self.client(spec).prepare()
            elif method == "logprobs":
                await self.client(spec).prove_logprobs("--model")

    async def aclose(self) -> None:
        for client in self.clients.values():
            await client.aclose()
        if self.cache is not None:
            self.cache.close()


def build_client(spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget) -> Client:
    """The client of one model, with the run's cache, budget, price and limits around it.

    Raises:
        UsageError: the model cannot be used as named.
    """
    if not _batched(spec, settings):
        return client_of(spec, backend_of(spec, settings), settings, cache, budget)
    from judge.backends.batch import BatchBackend

    backend = BatchBackend(parse_model(spec)[1], cache=cache, request=_request(settings))
    # No backoff: a batch is pause enough before a retry. No timeout: it may take a day.
    patient: dict[str, Any] = {"limit": _NO_LIMIT, "backoff": 0.0, "timeout": None}
    return client_of(spec, backend, settings, cache, budget, **patient)


def client_of(
    spec: str,
    backend: Backend,
    settings: Settings,
    cache: ReplyCache | None,
    budget: Budget,
    **limits: Any,
) -> Client:
    """The client around a model's backend; `limits` replace those of the settings."""
    if _batched(spec, settings):  # Price lists lack the discount for batches.
        price = settings.prices.get(spec)
    else:
        price = price_of(spec, settings.prices, backend.identity().get("server"))
    usual = {"limit": _calls_at_once(settings, backend.slots), "timeout": settings.timeout}
    return Client(
        spec,
        backend,
        cache=cache,
        budget=budget,
        price=price,
        reasks=settings.reasks,
        max_tokens=settings.max_tokens,
        **{**usual, **limits},
    )


def _batched(spec: str, settings: Settings) -> bool:
    """Whether this model is asked in batches: judge writes OpenAI's batch format."""
    return settings.engine == "batch" and parse_model(spec)[0] == "openai"


def backend_of(spec: str, settings: Settings) -> Backend:
    """A model's backend: that of a server named in the settings, else its provider's.

    Raises:
        UsageError: the model cannot be used as named.
    """
    provider, name = parse_model(spec)
    server = settings.servers.get(provider)
    if server is None:
        kind = factory(spec, settings.servers)
        more: dict[str, Any] = {"request": _request(settings)} if kind.speaks_openai else {}
        try:
            return kind(name, **more)
        except JudgeError:
            raise
        except Exception as error:
            if not plugins.packages(BACKENDS, [provider]):
                raise
            why = f"{type(error).__name__}: {error}"
            raise plugins.unusable(BACKENDS, provider, why) from error
    from judge.backends.openai import OpenAIBackend, named_server

    table, variable = f"[servers.{provider}]", server.key_env or "no variable"
    if provider in providers():
        raise UsageError(f"{table}: {provider} is a built-in provider; rename the server")
    key = os.environ.get(variable, "").strip()
    if server.key_env and not key:
        raise UsageError(f"{spec}: {variable} is not set; {table} takes the key from it")
    address = named_server(
        f"{server.url}{'&' if '?' in server.url else '?'}{urlencode(server.query)}".rstrip("?&"),
        key,
        f"{table} url",
        variable,
        key_header=server.key_header,
        headers=server.headers,
    )
    if server.protocol != "openai":
        from judge.backends.decision_models import DecisionBackend, QuestionMap, dialect_at

        systemone = server.protocol == "systemone"
        dialect = QuestionMap() if systemone else dialect_at(address.server)
        return DecisionBackend(provider, name, address, dialect, server.identity)
    return OpenAIBackend(name, server=address, request=_request(settings, server))


def model_names(provider: str, settings: Settings, seconds: float) -> list[str]:
    """A provider's models: those on this machine, or those that its server lists within `seconds`;
    else those with a list price.

    Raises:
        UsageError: the provider is unknown.
    """
    spec = f"{provider}:any"
    kind = None if provider in settings.servers else factory(spec)
    if kind is not None and (names := kind.installed()) is not None:
        return list(names)
    if kind is not None and not kind.speaks_openai:
        return []

    async def listed() -> list[str]:
        backend = backend_of(spec, settings)
        try:
            async with asyncio.timeout(seconds):
                return sorted(await backend.models())
        finally:
            await backend.aclose()

    try:
        return asyncio.run(listed())
    except (JudgeError, TimeoutError, LookupError, TypeError, ValueError):
        return priced_models(provider)


def _request(settings: Settings, server: Server | None = None) -> Request:
    """The settings' part of every request, for `OpenAIBackend`."""
    from judge.backends.openai import Request

    common: dict[str, Any] = {
        "effort": settings.reasoning_effort,
        "exact": settings.max_tokens is not None,
    }
    if server is None:
        return Request(**common)
    return Request(
        omit=server.omit,
        mode=Mode(server.mode) if server.mode else None,
        identity=server.identity,
        **common,
    )


def _calls_at_once(settings: Settings, slots: int | None) -> int:
    """--concurrency if given; else its default or the engine's slots, whichever is more.

    Args:
        slots: the engine's slots (None: it has no limit of its own).
    """
    if "concurrency" in settings.model_fields_set or slots is None:
        return settings.concurrency
    return max(settings.concurrency, slots)


# ---------------------------------------------------------------- what does not fit


def refuse_unfit(settings: Settings, clients: Collection[Client]) -> None:
    """Check that the models fit the settings.

    Raises:
        UsageError: cost is limited and a model has no price (says what to write where), decision
            models alone are asked for several votes, or no model takes --reasoning-effort.
    """
    _refuse_for_decisions(settings, clients)
    unpriced = [client.spec for client in clients if client.price is None]
    if unpriced and settings.max_cost is not None:
        raise UsageError(
            f"--max-cost needs the price of {unpriced[0]}; put it in {user_file()}:\n"
            f'[prices."{unpriced[0]}"]\ninput = 1.0   # USD for a million tokens\noutput = 2.0'
        )
    if settings.typed("reasoning_effort") and not any(
        client.backend.speaks_openai for client in clients
    ):
        raise UsageError(
            "--reasoning-effort needs a model behind OpenAI's protocol (openai:..., or a server of "
            "judge.toml)"
        )


def _refuse_unbatched(settings: Settings, models: Iterable[str]) -> None:
    """Check that `--engine batch` has a model with a batch API, and no paid one without.

    Raises:
        UsageError: no model has a batch API, or one without is neither free nor the user's own.
    """
    if settings.engine != "batch":
        return
    specs = list(models)
    strange = [spec for spec in specs if not (_batched(spec, settings) or _is_own(spec))]
    if strange or not any(_batched(spec, settings) for spec in specs):
        raise UsageError(
            f"--engine batch: {(strange or specs)[0]} has no batch API that judge knows; name a "
            "model behind OpenAI's batch format (openai:..., with OPENAI_BASE_URL), or leave "
            "--engine out"
        )


def _is_own(spec: str) -> bool:
    """Whether the model is the user's own (vLLM, or in this process): it answers at once, whatever
    the engine."""
    provider = parse_model(spec)[0]
    exists = provider in providers()
    return provider == "vllm" or (exists and factory(spec).in_process)


def _refuse_for_decisions(settings: Settings, clients: Collection[Client]) -> None:
    """Refuse several votes if all judges are decision models, which repeat their answer."""
    names = {client.spec for client in clients if client.decides}
    judges, votes = settings.model, settings.votes if settings.typed("votes") else None
    if (votes or 1) > 1 and judges and names.issuperset(judges):
        raise UsageError(
            f"--votes {settings.votes}: {judges[0]} is a decision model, which answers the same "
            "question the same way; leave --votes out, or name another model beside it"
        )


def _allow_open_files(count: int) -> None:
    """Raise this process's limit on open files to `count`; UsageError if the system refuses."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    except (ValueError, OSError) as error:
        # macOS reports no hard limit, but enforces one.
        most = soft if hard == resource.RLIM_INFINITY else hard
        fewer = f", or --concurrency {most - RESERVE}" if most > RESERVE else ""
        raise UsageError(
            f"the run needs {count} open files, {count - RESERVE} for calls at once and "
            f"{RESERVE} for the rest, and this system allows {most}: raise the limit "
            f"(ulimit -n){fewer}"
        ) from error
