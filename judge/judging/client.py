"""One model with its cache: replies are validated, and asked for again while they are invalid.

Each reply is stored at once, so that a kill loses only the calls under way, and a replay goes the
same way and costs nothing. Those of an ask without a valid reply are removed when the run ends. An
invalid reply is handed to instructor, which says what is wrong
(docs/decisions/0002-instructor-around-one-create.md).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal
from weakref import WeakValueDictionary

from pydantic import ValidationError

from judge.backends.base import Backend, Call, Completion, Message, Mode, Prompt, State, unpacked
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest
from judge.errors import BackendError, BadRequest, ContextExceeded, ServerFault, UsageError
from judge.evidence import ReplyContext
from judge.judging.calls import CANARY, Calls
from judge.judging.cut import cut
from judge.judging.first_token import added_up
from judge.judging.ways import Ways, conforms
from judge.replies import Reply, held_against, schema_of
from judge.verdict import Usage

Trouble = Literal["truncated", "refused", "invalid", "the prompt was cut"]

_TOKEN_CANARY = Call(
    messages=[*CANARY.messages[:1], {"role": "user", "content": "Is water wet? Yes or No?"}],
    seed=0,
    max_tokens=1,
    logprobs=20,
    role="canary",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of an ask: a valid reply, or why there is none (`trouble`, `detail`)."""

    reply: Reply | None
    usage: Usage
    trouble: Trouble | None = None
    detail: str | None = None


class Client(Calls):
    """One model behind its cache.

    Args:
        spec, backend, options: as `Calls`.
        cache: None for no cache beyond this run.
        reasks: how often an invalid reply is asked for again.
        max_tokens: most tokens of every reply (None: as the call says).
    """

    def __init__(
        self,
        spec: str,
        backend: Backend,
        *,
        cache: ReplyCache | None,
        reasks: int = 2,
        max_tokens: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(spec, backend, cache=cache, **options)
        self._cache = cache if cache is not None else MemoryCache()
        self._reasks, self._max_tokens = reasks, max_tokens
        self._preparing = asyncio.Lock()
        self._ways = Ways(spec, backend, self._cache, self.identity)
        self._key_parts = getattr(backend, "key_parts", None)
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._widths: dict[int | None, int] = {}
        self._dropped: set[str] = set()

    # ------------------------------------------------------------ asking

    async def ask(self, call: Call, reply_model: type[Reply], record: ReplyContext) -> Asked:
        """One structured reply, re-asked while it is invalid, at most `reasks` times.

        Raises:
            BackendError: the model gave no reply at all.
        """
        await self.prepare()
        call = self._limited(call)
        call = replace(call, schema=schema_of(reply_model), schema_name=reply_model.__name__)
        async with _Attempts() as made:
            mode, first = await self._first(call, made)
            asked = await self._asked(call, mode, reply_model, record, first, made)
            if asked.reply is not None:
                self._ways.settle(call, mode)
            else:
                # When the run ends: until then, and after a kill, these are not asked again.
                self._dropped.update((*made.by_key, *made.found))
        return asked

    async def _first(self, call: Call, made: _Attempts) -> tuple[Mode, Completion]:
        """The first reply, and the mode that it came by.

        The first call with a schema is the test of the mode, and goes alone: what the server
        refuses, or accepts and does not heed, gives way to the next mode with this same call.

        Raises:
            BackendError: as `ask`.
        """
        if not self._ways.proven(call):
            async with self._preparing:
                if not self._ways.proven(call):
                    return await self._tested(call, made)
        mode = self._ways.mode(call)
        return mode, await self._complete(call, mode, made)

    async def _tested(self, call: Call, made: _Attempts) -> tuple[Mode, Completion]:
        refused: BadRequest | None = None
        unheeded: tuple[Mode, Completion] | None = None
        for mode in self._ways.candidates(call):
            try:
                completion = await self._complete(call, mode, made)
            except ContextExceeded:
                raise
            except BadRequest as error:
                refused = refused or error
                continue
            if completion.finish_reason != "stop" or conforms(completion.text, call):
                self._ways.tested(call, mode, completion, paid=made.paid(completion))
                return mode, completion
            unheeded = mode, completion
        self._ways.failed()
        if unheeded is not None:
            return unheeded
        assert refused is not None
        raise refused

    async def _asked(
        self,
        call: Call,
        mode: Mode,
        reply_model: type[Reply],
        record: ReplyContext,
        first: Completion,
        made: _Attempts,
    ) -> Asked:
        if first.finish_reason != "stop":
            return self._withheld(first, call, self._usage(first))
        if loss := cut(call, first):
            return Asked(None, self._usage(first), "the prompt was cut", loss)
        reply = _valid(first.text, reply_model, record)
        if reply is not None:
            return Asked(reply, self._usage(first))
        # Imported here: most runs need none of it, and instructor takes a second to load.
        from judge.judging.reask import Invalid, Withheld, reasked

        said, invalid = [first], None

        async def attempt(messages: Sequence[Message]) -> Completion:
            said.append(await self._complete(replace(call, messages=messages), mode, made))
            return said[-1]

        try:
            with held_against(record):
                reply = await reasked(first, attempt, call.messages, reply_model, self._reasks)
        except Withheld:
            return self._withheld(said[-1], call, sum(map(self._usage, said), Usage()))
        except Invalid as told:
            invalid = str(told) if said[-1].text.strip() else "the reply holds no text"
        finally:
            self.counters.reasks += len(said) - 1
        usage = sum(map(self._usage, said), Usage())
        return Asked(reply, usage, "invalid" if invalid is not None else None, invalid)

    def _withheld(self, completion: Completion, call: Call, usage: Usage) -> Asked:
        """The outcome of a completion that was refused or cut off."""
        if completion.finish_reason == "refusal":
            said = completion.text[:200] or "no words were given"
            return Asked(None, usage, "refused", said)
        limit = self._ways.limit(call)
        detail = f"the reply was cut off at {limit} tokens"
        if not completion.text:
            detail = f"the reply ended in its thoughts ({limit} tokens at most)"
        return Asked(None, usage, "truncated", f"{detail}; --max-tokens N allows more")

    def most_tokens(self, call: Call) -> int:
        """Most tokens of the call's reply: the user's limit, or with room for thoughts."""
        return self._ways.limit(self._limited(call))

    def _limited(self, call: Call) -> Call:
        """The call with the user's limit on its reply, if there is one."""
        return call if self._max_tokens is None else replace(call, max_tokens=self._max_tokens)

    async def first_token(
        self, call: Call, usable: Callable[[Mapping[str, float]], bool] = bool
    ) -> tuple[dict[str, float], Usage]:
        """Log-probabilities of the first token's alternatives, by token text; kept if `usable`.

        Raises:
            UsageError: the model gives no log-probabilities.
            Unread: the server refused the prompt, or cut it, or what it lists is no distribution.
            BackendError: as `ask`.
        """
        async with _Attempts() as made:
            completion = await self._complete(call, Mode.JSON_SCHEMA, made)
            await self._refuse_unread(call, completion, made)
            try:
                tokens = added_up(completion.first_token or ())
            except ValueError as problem:
                await self._drop(made)
                raise Unread(f"no distribution: {problem}", self._usage(completion)) from None
            # An engine of ours says the same again; a server may have stumbled.
            if not tokens or not (self._served is None or usable(tokens)):
                await self._drop(made)
        if completion.first_token is None:
            raise UsageError(
                f"{self.spec} gives no log-probabilities, so the `logprobs` method cannot be "
                "taken; use --method structured"
            )
        return tokens, self._usage(completion)

    async def state(self, call: Call, width: int | None = None) -> tuple[State, Usage]:
        """The hidden state of the call's prompt, after the call's layer.

        Args:
            width: how many numbers it must have (None: as many as the first of this layer).

        Raises:
            UsageError: the model gives no hidden states.
            Unread: the server refused the prompt, or cut it.
            BackendError: as `ask`, and for a state of another width, which is not kept.
        """
        async with _Attempts() as made:
            completion = await self._complete(call, Mode.JSON_SCHEMA, made)
            await self._refuse_unread(call, completion, made)
            state = unpacked(completion.text, "e")
            wanted = width or self._widths.setdefault(call.layer, len(state))
            if len(state) != wanted:
                await self._drop(made)
                raise ServerFault(f"the state has {len(state)} numbers, not {wanted}")
        return state, self._usage(completion)

    async def _refuse_unread(self, call: Call, completion: Completion, made: _Attempts) -> None:
        if completion.finish_reason == "refusal":
            await self._drop(made)
            raise Unread(f"refused: {completion.text[:200]}", self._usage(completion))
        if loss := cut(call, completion):
            await self._drop(made)
            raise Unread(f"the prompt was cut: {loss}", self._usage(completion))

    async def write(self, call: Call) -> tuple[Completion, Usage]:
        """One completion in free text, even if truncated or refused; raises as `ask`."""
        call = self._limited(call)
        async with _Attempts() as made:
            completion = await self._complete(call, Mode.JSON_SCHEMA, made)
            if loss := cut(call, completion):
                await self._drop(made)
                raise Unread(f"the prompt was cut: {loss}", self._usage(completion))
            if completion.finish_reason != "stop" or not completion.text.strip():
                await self._drop(made)
        return completion, self._usage(completion)

    async def aclose(self) -> None:
        await self.backend.aclose()
        await self._cache.store(dict.fromkeys(self._dropped))

    # ------------------------------------------------------------ what the model can do

    async def prove_logprobs(self, named: str) -> None:
        """Check by one small question that a server gives log-probabilities.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: it gives none; the message begins with `named`.
        """
        if len(self.backend.modes) == 1:
            return
        try:
            await self.first_token(_TOKEN_CANARY)
        except (BadRequest, UsageError) as error:
            raise UsageError(
                f"{named}: this model gives no log-probabilities, so it cannot read P(yes) cheaply;"
                " name one that does, such as local:... or a server with logprobs, or leave it out"
            ) from error

    async def prepare(self) -> None:
        """Find the best way to ask this model for JSON by one small question, unless remembered.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no way of asking brought valid JSON.
        """
        if self._ways.ready:
            return
        async with self._preparing:
            if not self._ways.ready:
                await self._try_modes()

    async def _try_modes(self) -> None:
        """Take the first mode in which the model gives the JSON that it was asked for."""
        problems: list[str] = []
        for mode in self.backend.modes:
            try:
                said = (await self._paid(CANARY, mode)).text
            except ContextExceeded:
                raise
            except BadRequest as error:
                problems.append(f"{mode}: {error}")
                continue
            with suppress(ValueError, RecursionError):
                if json.loads(said) == {"ready": "yes"}:
                    self._ways.start(mode)
                    return
            problems.append(f'{mode}: replied {said[:80]!r}, not {{"ready": "yes"}}')
        raise UsageError(f"{self.spec} gave no valid JSON in any mode. " + "; ".join(problems))

    def sent(self, call: Call) -> Call:
        """The call with the temperature and the seed that the model is sent, if any."""
        return self._ways.sent(call)

    @property
    def adaptations(self) -> Mapping[str, str | int]:
        """What the server does not take as it is usually sent, and what is sent instead."""
        return self._ways.adaptations

    # ------------------------------------------------------------ one attempt

    def _key(self, call: Call, mode: Mode) -> str:
        """The cache's key. Seed and vote are part of it only where replies are drawn by chance."""
        prompt = call.messages if isinstance(call.messages, Prompt) else Prompt(call.messages)
        steady = call.temperature == 0 or call.logprobs is not None or call.layer is not None
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
                **({} if call.layer is None else {"layer": call.layer}),
            }
        )

    async def _complete(self, call: Call, mode: Mode, made: _Attempts) -> Completion:
        """The completion from the cache or the backend, while no other ask wants the same one."""
        key = self._key(call, mode)
        await made.enter_async_context(self._asking.setdefault(key, asyncio.Lock()))
        if self._served is not None:
            await self._served.look()
        if (found := self._cached(key, call)) is not None:
            self._note(found)
            made.found.append(self._entry(key))
            return found

        async def keep(completion: Completion) -> None:
            made.by_key[self._entry(key)] = completion
            await self._cache.store({self._entry(key): completion.as_text()})

        limit = self._ways.limit(call)
        completion = await self._paid(call, mode, keep)
        if completion.finish_reason == "length" and self._ways.limit(call) > limit:
            completion = await self._paid(call, mode, keep)  # There is room for its thoughts now.
        self._ways.learnt()
        return completion

    def _entry(self, key: str) -> str:
        """The cache's key of a call, by the model that answers."""
        return key if self._served is None else self._served.key(key)

    def _cached(self, key: str, call: Call) -> Completion | None:
        found = self._cache.get(self._entry(key))
        completion = None if found is None else Completion.restored(found)
        if completion is None or (call.logprobs and not completion.first_token):
            return None
        self.counters.cache_hits += 1
        return completion

    async def _drop(self, made: _Attempts) -> None:
        """Forget a reply that cannot be used."""
        await self._cache.store(dict.fromkeys((*made.by_key, *made.found)))


class Unread(BackendError):
    """A prompt that the server refused or did not read as a whole, or what it lists as first tokens
    is no distribution: there is no reading of it."""

    kind = "unreadable"

    def __init__(self, message: str, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage


class _Attempts(AsyncExitStack):
    """The completions that one ask paid for, by key, and the keys of those that it found; other
    asks for the same wait until it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.by_key: dict[str, Completion] = {}
        self.found: list[str] = []

    def paid(self, completion: Completion) -> bool:
        """Whether a completion is of these, and not from the cache."""
        return any(one is completion for one in self.by_key.values())


def _valid(text: str, reply_model: type[Reply], record: ReplyContext) -> Reply | None:
    """The reply, if it is valid against the record; as strict as instructor is."""
    with held_against(record), suppress(ValidationError):
        return reply_model.model_validate_json(text, strict=True)
    return None
