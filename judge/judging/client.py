"""One model, asked properly: its replies are validated, re-asked within bounds, and cached.

A reply is stored once it has proved valid, together with the attempts that led to it, so a replay
goes the same way and costs nothing; an ask that ends without a valid reply leaves nothing behind.

Only a reply that is not valid at once is handed to instructor, which says what is wrong and asks
again (docs/decisions/0011-valid-at-once.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from judge.backends.base import Backend, Call, Completion, Message, Mode, Prompt
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest
from judge.errors import BadRequest, ContextExceeded, JudgeError, UsageError
from judge.judging.calls import Calls
from judge.judging.capabilities import probe
from judge.replies import About, Reply, about
from judge.verdict import Usage

Trouble = Literal["truncated", "refused", "invalid"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of one ask: a valid reply, or why there is none (`trouble`, `detail`)."""

    reply: Reply | None
    usage: Usage
    trouble: Trouble | None = None
    detail: str | None = None


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


class Client(Calls):
    """One model: what it is asked is cached and validated.

    Args:
        spec, backend, options: as `Calls`.
        cache: None for no cache beyond this run.
        reasks: how often an invalid reply is sent back with what is wrong with it.
    """

    def __init__(
        self,
        spec: str,
        backend: Backend,
        *,
        cache: ReplyCache | None,
        reasks: int = 2,
        **options: Any,
    ) -> None:
        super().__init__(spec, backend, **options)
        self._cache = cache if cache is not None else MemoryCache()
        self._reasks = reasks
        self._mode = backend.modes[0] if len(backend.modes) == 1 else None
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
        return digest({"kind": "mode", "identity": self.identity})

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
                "identity": self.identity,
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
        completion = await self._first(key, call, mode)
        attempts.made[key] = completion
        attempts.own.append(key)
        return completion

    async def _first(self, key: str, call: Call, mode: Mode) -> Completion:
        """Make a call that others, who want the very same, can wait for until it is settled."""
        flight: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            completion = await self._paid(call, mode)
        except BaseException as error:
            del self._flights[key]
            flight.set_exception(error if isinstance(error, JudgeError) else _Abandoned())
            flight.exception()
            raise
        flight.set_result(completion)
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


def _withheld(completion: Completion, call: Call, usage: Usage) -> Asked:
    """Why a completion that did not end as it should holds no reply."""
    if completion.finish_reason == "refusal":
        said = completion.text[:200] or "no words were given"
        return Asked(None, usage, "refused", said)
    detail = f"the reply was cut off at {call.max_tokens} tokens"
    return Asked(None, usage, "truncated", detail)
