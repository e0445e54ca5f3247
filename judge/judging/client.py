"""One model, asked properly: cached, limited, retried within bounds, its replies validated.

Each attempt goes through the cache, then the budget, the limit and the retries, then the backend. A
reply is stored once it has proved valid, together with the attempts that led to it, so a replay
goes the same way and costs nothing; an ask that ends without a valid reply leaves nothing behind.

Only a reply that is not valid at once is handed to instructor, which says what is wrong and asks
again (docs/decisions/0011-valid-at-once.md).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import ValidationError

from judge.backends.base import Backend, Call, Completion, Message, Mode, Prompt, Starting
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest
from judge.errors import (
    BackendError,
    BadRequest,
    ContextExceeded,
    GivenUp,
    JudgeError,
    ServerFault,
    UsageError,
)
from judge.judging.capabilities import PROBE, probe
from judge.judging.limits import AdaptiveLimit, Budget, Outages, Price, pause
from judge.replies import About, Reply, about
from judge.tracing import guard_tracing
from judge.verdict import Usage

MAX_TRIES = 6
"""Attempts at one call that fails with a retryable error."""

MAX_TRIES_UNREACHABLE = 3
"""Attempts where no server answers at all."""

LONGEST_WAIT = 120.0
"""Seconds; a server that asks for a longer pause ends the run (`GivenUp`)."""

CHARACTERS_A_TOKEN = 4
"""What tokens are estimated by where a server reports none."""

Trouble = Literal["truncated", "refused", "invalid"]

_NO_PRICE = Price(0.0, 0.0)
_OWN_ENGINES = ("local:", "scripted:", "transformers:")


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of one ask: a valid reply, or why there is none (`trouble`, `detail`)."""

    reply: Reply | None
    usage: Usage
    trouble: Trouble | None = None
    detail: str | None = None


@dataclass(slots=True)
class Counters:
    """What a client did in this run; differs from run to run and never reaches the output."""

    calls: int = 0
    cache_hits: int = 0
    retries: int = 0
    reasks: int = 0
    refusals: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class _Attempts:
    """The completions of one ask, by key, until the ask has a valid reply or has failed.

    `made` holds those that are not in the cache yet, `own` the keys of the calls made here,
    `cached` the keys of those found there.
    """

    __slots__ = ("cached", "made", "own")

    def __init__(self) -> None:
        self.made: dict[str, Completion] = {}
        self.own: list[str] = []
        self.cached: list[str] = []


class Client:
    """A backend with everything around it.

    Args:
        spec: the model as the user named it, `provider:model`.
        backend: the way to reach it.
        cache: None for no cache.
        limit: most calls under way at once.
        reasks: how often an invalid reply is sent back with what is wrong with it.
        timeout: seconds until a call is given up; an engine in this process has none.

    `remote` says whether calls go to a server, each by a connection of its own.
    """

    def __init__(
        self,
        spec: str,
        backend: Backend,
        *,
        cache: ReplyCache | None,
        budget: Budget,
        limit: int,
        price: Price | None = None,
        reasks: int = 2,
        backoff: float = 0.5,
        timeout: float | None = None,
    ) -> None:
        guard_tracing()
        self.spec = spec
        self.backend = backend
        self.counters = Counters()
        self.limit = AdaptiveLimit(limit)
        self._cache = cache if cache is not None else MemoryCache()
        self._budget = budget
        self._starting = backend if isinstance(backend, Starting) else None
        self._reasks = reasks
        self._backoff = backoff
        self._timeout = timeout if backend.slots is None else None
        self._identity = dict(backend.identity())
        self._price = _NO_PRICE if _of_ours(spec, self._identity) else price
        self._free = self._price is not None and self._price.of(1, 1) == 0
        self._mode = backend.modes[0] if len(backend.modes) == 1 else None
        self.remote = not spec.startswith(_OWN_ENGINES)
        server = self._timeout is not None and self.remote
        self._outages = Outages(self._canary if server else None, backoff)
        self._preparing = asyncio.Lock()
        self._probed_again = False
        self._key_parts = getattr(backend, "key_parts", None)
        self._flights: dict[str, asyncio.Future[Completion]] = {}

    # ------------------------------------------------------------ asking

    async def ask(self, call: Call, reply_model: type[Reply], record: About) -> Asked:
        """One structured reply, re-asked while it is invalid, at most `reasks` times.

        Raises:
            BackendError: the model gave no reply at all.
        """
        mode = self._mode or await self.prepare()
        schema, name = reply_model.model_json_schema(), reply_model.__name__
        call = replace(call, schema=schema, schema_name=name)
        attempts = _Attempts()
        try:
            try:
                completion = await self._complete(call, mode, attempts)
            except BadRequest as error:
                mode = await self._other_mode(mode, error)
                completion = await self._complete(call, mode, attempts)
            asked = await self._asked(call, mode, reply_model, record, completion, attempts)
            await self._settle(attempts, valid=asked.reply is not None)
        finally:
            self._release(attempts)
        return asked

    async def _asked(
        self,
        call: Call,
        mode: Mode,
        reply_model: type[Reply],
        record: About,
        first: Completion,
        attempts: _Attempts,
    ) -> Asked:
        usage = self._usage(first)
        if first.finish_reason != "stop":
            return _withheld(first, call, usage)
        reply = _valid(first.text, reply_model, record)
        if reply is not None:
            return Asked(reply, usage)
        # Imported here: most runs need none of it, and instructor takes a second to load.
        from judge.judging.reask import Invalid, Withheld, reasked

        tries, usage = 0, Usage()

        async def attempt(messages: Sequence[Message]) -> Completion:
            nonlocal usage, tries
            tries += 1
            again = replace(call, messages=messages)
            completion = first if tries == 1 else await self._complete(again, mode, attempts)
            usage += self._usage(completion)
            return completion

        try:
            with about(record):
                reply = await reasked(attempt, call.messages, reply_model, self._reasks)
        except Withheld as withheld:
            return _withheld(withheld.completion, call, usage)
        except Invalid as invalid:
            return Asked(None, usage, "invalid", str(invalid))
        finally:
            self.counters.reasks += tries - 1
        return Asked(reply, usage)

    async def first_token(self, call: Call) -> tuple[dict[str, float], Usage]:
        """Log-probabilities of the first token's alternatives, by token text; none if refused.

        Raises:
            UsageError: the model gives no log-probabilities.
            BackendError: the model gave no reply at all.
        """
        completion = await self._once(call, _read_by_token)
        if completion.finish_reason == "refusal":
            return {}, self._usage(completion)
        if completion.first_token is None:
            raise UsageError(
                f"{self.spec} gives no log-probabilities, so the probability reading cannot be "
                "taken; use --reading structured"
            )
        return dict(completion.first_token), self._usage(completion)

    async def write(self, call: Call) -> tuple[Completion, Usage]:
        """One completion in free text, cut off or refused as it may be.

        Raises:
            BackendError: the model gave no reply at all.
        """
        completion = await self._once(call, _whole)
        return completion, self._usage(completion)

    async def _once(self, call: Call, valid: Callable[[Completion], bool]) -> Completion:
        attempts = _Attempts()
        try:
            completion = await self._complete(call, Mode.JSON_SCHEMA, attempts)
            await self._settle(attempts, valid=valid(completion))
        finally:
            self._release(attempts)
        return completion

    async def aclose(self) -> None:
        await self.backend.aclose()

    # ------------------------------------------------------------ how JSON is asked for

    async def prepare(self) -> Mode:
        """How this model is best asked for JSON; probed once, and remembered in the cache.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no way of asking brought valid JSON.
        """
        if self._mode is not None:
            return self._mode
        async with self._preparing:
            if self._mode is None:
                self._mode = self._remembered_mode() or await self._probe()
            return self._mode

    async def _other_mode(self, mode: Mode, error: BadRequest) -> Mode:
        """Another mode than the one that brought this error; the server is probed once a run.

        Raises:
            BadRequest: `error`, where the mode is not to blame.
        """
        if isinstance(error, ContextExceeded) or len(self.backend.modes) == 1:
            raise error
        async with self._preparing:
            if self._mode == mode and not self._probed_again:
                self._probed_again = True
                # No mode at all may mean that the server refuses everything for a while.
                with suppress(UsageError):
                    self._mode = await self._probe()
        if self._mode is None or self._mode == mode:
            raise error
        return self._mode

    def _remembered_mode(self) -> Mode | None:
        found = self._cache.get(self._mode_key())
        return next((m for m in self.backend.modes if found and found.get("mode") == m), None)

    def _mode_key(self) -> str:
        return digest({"kind": "mode", "identity": self._identity})

    async def _probe(self) -> Mode:
        mode = await probe(self.spec, self.backend.modes, self._paid)
        self._cache.set(self._mode_key(), {"mode": str(mode)}, tag="mode")
        return mode

    # ------------------------------------------------------------ one attempt

    def _key(self, call: Call, mode: Mode) -> str:
        """Of the question as it is put. Where the answer leaves nothing to chance, neither the seed
        nor the vote's number changes it; who asks never does."""
        prompt = call.messages if isinstance(call.messages, Prompt) else Prompt(call.messages)
        steady = call.temperature == 0 or call.logprobs is not None
        return digest(
            {
                "identity": self._identity,
                "mode": str(mode),
                "messages": prompt.digest,
                "schema": call.schema,
                "schema_name": call.schema_name,
                "temperature": call.temperature,
                "max_tokens": call.max_tokens,
                "logprobs": call.logprobs,
                "draw": None if steady else (call.seed, call.vote),
                "backend": self._key_parts(call) if self._key_parts else None,
            }
        )

    async def _complete(self, call: Call, mode: Mode, attempts: _Attempts) -> Completion:
        """The completion from the cache, from the same call under way, or from the backend."""
        key = self._key(call, mode)
        while True:
            if (found := self._cached(key, call)) is not None:
                attempts.cached.append(key)
                return found
            if (flight := self._flights.get(key)) is None:
                break
            try:
                completion = await asyncio.shield(flight)
            except _Abandoned:
                continue
            attempts.made[key] = completion
            return completion
        flight = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            completion = await self._paid(call, mode)
        except BaseException as error:
            del self._flights[key]
            flight.set_exception(error if isinstance(error, JudgeError) else _Abandoned())
            flight.exception()
            raise
        flight.set_result(completion)
        attempts.made[key] = completion
        attempts.own.append(key)
        return completion

    def _cached(self, key: str, call: Call) -> Completion | None:
        found = self._cache.get(key)
        completion = None if found is None else Completion.restored(found)
        if completion is None or (call.logprobs and not completion.first_token):
            return None
        self.counters.cache_hits += 1
        return completion

    async def _settle(self, attempts: _Attempts, *, valid: bool) -> None:
        """Store what led to a valid reply; forget what led to none, so that it is asked anew."""
        if not valid:
            for key in attempts.cached:
                self._cache.remove(key)
        elif attempts.made:
            made = [(key, made.as_text(), "reply") for key, made in attempts.made.items()]
            await self._cache.store(*made)

    def _release(self, attempts: _Attempts) -> None:
        """From here on the same calls are made anew, unless they are stored."""
        for key in attempts.own:
            del self._flights[key]

    async def _paid(self, call: Call, mode: Mode) -> Completion:
        """The backend's completion, after waiting for a place and with bounded retries."""
        tried, failing, again = 0, 0.0, False
        while True:
            tried += 1
            try:
                return await self._tried(call, mode)
            except BackendError as error:
                last = MAX_TRIES_UNREACHABLE if error.kind == "unreachable" else MAX_TRIES
                if not error.retryable:
                    raise
                if tried >= last:
                    if again or not await self._outages.passed(failing, error):
                        raise
                    tried, again = 0, True
                failing = time.monotonic()
                self.counters.retries += 1
                self.counters.refusals += error.kind == "rate-limited"
                if tried:
                    await asyncio.sleep(pause(self._backoff, tried - 1))

    async def _tried(self, call: Call, mode: Mode) -> Completion:
        """One try."""
        era = 0
        try:
            if self._starting is not None:
                await self._starting.ready()
            async with self.limit.slot() as era:
                self._budget.take(free=self._free)
                self.counters.calls += 1
                completion = _counted(call, await self._in_time(call, mode))
        except BackendError as error:
            self._outages.answered(error)
            if _too_long(error.retry_after):
                raise GivenUp(
                    f"the server asks for a pause of {error.retry_after:.0f} s: {error}"
                ) from error
            if error.kind in ("rate-limited", "server-fault"):
                self.limit.refused(error.retry_after, era)
            raise
        self._outages.answered()
        self.limit.succeeded()
        self._spend(completion)
        return completion

    async def _canary(self) -> None:
        await self._tried(PROBE, self._mode or self.backend.modes[0])

    async def _in_time(self, call: Call, mode: Mode) -> Completion:
        try:
            async with asyncio.timeout(self._timeout):
                return await self.backend.complete(call, mode)
        except TimeoutError as error:
            raise ServerFault(f"no answer within {self._timeout:g} s (--timeout)") from error

    # ------------------------------------------------------------ counting

    @property
    def priced(self) -> bool:
        """Whether the cost of a call is known."""
        return self._price is not None

    def estimate(self, input_tokens: int, output_tokens: int) -> Usage:
        """The usage of one reply with so many tokens."""
        price = self._price
        cost = None if price is None else price.of(input_tokens, output_tokens)
        return Usage(1, input_tokens, output_tokens, cost)

    def _usage(self, completion: Completion) -> Usage:
        return self.estimate(completion.input_tokens, completion.output_tokens)

    def _spend(self, completion: Completion) -> None:
        self._budget.spent(self._usage(completion))
        counters = self.counters
        counters.input_tokens += completion.input_tokens
        counters.output_tokens += completion.output_tokens
        counters.cached_tokens += completion.cached_tokens or 0


class _Abandoned(Exception):
    """The call that this one waited for was cancelled; those that wait make it themselves."""


def _valid(text: str, reply_model: type[Reply], record: About) -> Reply | None:
    """The reply, where it holds against the record; as strict as instructor is."""
    with about(record), suppress(ValidationError):
        return reply_model.model_validate_json(text, strict=True)
    return None


def _read_by_token(completion: Completion) -> bool:
    return bool(completion.first_token) and completion.finish_reason != "refusal"


def _whole(completion: Completion) -> bool:
    return completion.finish_reason == "stop" and bool(completion.text.strip())


def _counted(call: Call, completion: Completion) -> Completion:
    """The completion with an estimate for the tokens that the server did not report."""
    if completion.input_tokens and (completion.output_tokens or not completion.text):
        return completion
    asked = sum(len(message["content"]) for message in call.messages)
    return replace(
        completion,
        input_tokens=completion.input_tokens or asked // CHARACTERS_A_TOKEN + 1,
        output_tokens=completion.output_tokens or -(-len(completion.text) // CHARACTERS_A_TOKEN),
    )


def _withheld(completion: Completion, call: Call, usage: Usage) -> Asked:
    """Why a completion that did not end as it should holds no reply."""
    if completion.finish_reason == "refusal":
        said = completion.text[:200] or "no words were given"
        return Asked(None, usage, "refused", said)
    detail = f"the reply was cut off at {call.max_tokens} tokens"
    return Asked(None, usage, "truncated", detail)


def _of_ours(spec: str, identity: Mapping[str, str]) -> bool:
    """Whether a call costs nothing; a `vllm:` server at an address may be anyone's."""
    own_server = spec.startswith("vllm:") and "server" not in identity
    return own_server or spec.startswith(_OWN_ENGINES)


def _too_long(seconds: float | None) -> bool:
    return seconds is not None and seconds > LONGEST_WAIT
