"""The calls to one model: limited, retried, counted, priced, within the run's budget."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import asdict, dataclass, replace

from judge.backends.base import Backend, Call, Completion, HiddenStates, Mode, Starting, packed
from judge.backends.reading import answer_of
from judge.cache import ReplyCache
from judge.errors import (
    Adapted,
    BackendError,
    BadRequest,
    Forbidden,
    GivenUp,
    NoReply,
    Refused,
    ServerFault,
    UsageError,
)
from judge.judging.limits import AdaptiveLimit, Budget, Outages, pause
from judge.judging.served_model import ServedModel
from judge.settings import Price
from judge.verdict import Usage

Keep = Callable[[Completion], Awaitable[None]]

MAX_TRIES = 6
"""Attempts at one call that fails with a retryable error."""

MAX_TRIES_UNREACHABLE = 3
"""Attempts where no server answers at all."""

MAX_TRIES_PAID = 3
"""Attempts that may each be paid (`NoReply`)."""

LONGEST_WAIT = 120.0
"""Seconds; a server that asks for a longer pause ends the run (`GivenUp`)."""

CHARACTERS_A_TOKEN = 4
"""For the estimate of tokens where a server reports none."""

CANARY = Call(
    messages=[
        {"role": "system", "content": "You answer as you are asked."},
        {"role": "user", "content": 'Reply with the JSON object {"ready": "yes"}.'},
    ],
    schema_name="Ready",
    schema={
        "type": "object",
        "properties": {"ready": {"type": "string", "enum": ["yes"]}},
        "required": ["ready"],
        "additionalProperties": False,
    },
    seed=0,
    max_tokens=2000,
)
"""A small call that any model can answer, with all the parts that a judge's call has."""


@dataclass(slots=True)
class Counters:
    """What a client did in this run, and the models that answered; not part of the output."""

    calls: int = 0
    cache_hits: int = 0
    retries: int = 0
    reasks: int = 0
    refusals: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    models: tuple[str, ...] = ()
    system_fingerprints: tuple[str, ...] = ()

    def add(self, other: Counters) -> None:
        """Count what another process did, too."""
        for name, counted in asdict(other).items():
            together = getattr(self, name) + counted
            names = isinstance(counted, tuple)
            setattr(self, name, tuple(dict.fromkeys(together)) if names else together)


class Calls:
    """A backend with the retries, limits and counts around it.

    Args:
        spec: the model as the user named it, `provider:model`.
        limit: most calls under way at once.
        backoff: seconds before the first retry.
        timeout: seconds until a call is given up; an engine in this process has none.
        cache: of replies, which are the answering model's (`ServedModel`).

    `remote` says whether calls go to a server.
    """

    def __init__(
        self,
        spec: str,
        backend: Backend,
        *,
        budget: Budget,
        limit: int,
        cache: ReplyCache | None = None,
        price: Price | None = None,
        backoff: float = 0.5,
        timeout: float | None = None,
    ) -> None:
        self.spec = spec
        self.backend = backend
        self.counters = Counters()
        self.limit = AdaptiveLimit(limit)
        self.identity = dict(backend.identity())
        self.remote = not getattr(backend, "in_process", False)
        self._budget = budget
        self._starting = backend if isinstance(backend, Starting) else None
        self._backoff = backoff
        self._timeout = timeout if backend.slots is None else None
        # A `vllm:` server at an address may be anyone's.
        ours = not self.remote or (spec.startswith("vllm:") and "server" not in self.identity)
        self._price = Price(input=0.0, output=0.0) if ours else price
        self._free = self._price is not None and self._price.of(1, 1) == 0
        server = self._timeout is not None and self.remote
        canary = self._canary if server else None
        self._outages = Outages(canary, backoff)
        self._served = None if ours else ServedModel(spec, backend, cache, canary)

    async def _paid(self, call: Call, mode: Mode, keep: Keep | None = None) -> Completion:
        """The backend's completion, with bounded retries; a refusal where the server refuses the
        input alone. `keep` stores a reply while its call still counts as under way, so that a kill
        loses no more calls than that."""
        if self._served is not None:
            await self._served.look()
        tried, failing, again = 0, 0.0, False
        while True:
            tried += 1
            try:
                return await self._tried(call, mode, keep)
            except Adapted:
                tried -= 1  # No failure: the backend leaves out each part of a call once.
            except Refused as error:
                return Completion(str(error), "refusal")
            except Forbidden as error:
                if not await self._outages.works():
                    raise
                return Completion(str(error), "refusal")
            except BackendError as error:
                last = MAX_TRIES_PAID if isinstance(error, NoReply) else MAX_TRIES
                last = MAX_TRIES_UNREACHABLE if error.kind == "unreachable" else last
                if not error.retryable:
                    raise
                if tried >= last:
                    if again or not await self._outages.passed(failing):
                        raise
                    tried, again = 0, True
                failing = time.monotonic()
                self.counters.retries += 1
                self.counters.refusals += error.kind == "rate-limited"
                if tried:
                    await asyncio.sleep(pause(self._backoff, tried - 1))

    async def _tried(self, call: Call, mode: Mode, keep: Keep | None = None) -> Completion:
        era = 0
        try:
            if self._starting is not None:
                await self._starting.ready()
            async with self.limit.slot() as era:
                self._budget.take(free=self._free)
                self.counters.calls += 1
                completion = answer_of(call, _counted(call, await self._in_time(call, mode)))
                self._note(completion)
                if keep is not None:
                    await keep(completion)
        except BackendError as error:
            if isinstance(error, (BadRequest, Refused)):
                self._outages.answered()
            if (wished := error.retry_after) is not None and wished > LONGEST_WAIT:
                raise GivenUp(f"the server asks for a pause of {wished:.0f} s: {error}") from error
            if error.kind in ("rate-limited", "server-fault"):
                self.limit.refused(error.retry_after, era)
            raise
        self._outages.answered()
        self.limit.succeeded()
        self._budget.spent(self._least(call, completion))
        self.counters.input_tokens += completion.input_tokens
        self.counters.output_tokens += completion.output_tokens
        self.counters.cached_tokens += completion.cached_tokens or 0
        return completion

    def _note(self, completion: Completion) -> None:
        """Note who gave a reply, fresh or cached."""
        if self._served is not None:
            self._served.replied(completion)
            self.counters.models = self._served.names
            self.counters.system_fingerprints = self._served.fingerprints

    @property
    def answering(self) -> tuple[str, ...]:
        """The models that answer behind the address, by their names; none for an engine of ours."""
        return self._served.answering if self._served is not None else ()

    def fitted_to(self, models: Collection[str], profile: str) -> None:
        """Tell on stderr where another model answers than those that a profile was fitted to."""
        if self._served is not None:
            self._served.fitted_to(models, profile)

    def answered_before(self, models: Iterable[str], fingerprints: Iterable[str]) -> None:
        """Note who answered in the run that this one goes on with."""
        if self._served is not None:
            self._served.names = tuple(dict.fromkeys((*self._served.names, *models)))
            fingerprints = (*self._served.fingerprints, *fingerprints)
            self._served.fingerprints = tuple(dict.fromkeys(fingerprints))

    async def _canary(self) -> Completion:
        plain = replace(CANARY, schema=None, schema_name=None)
        return await self._tried(plain, self.backend.modes[0])

    async def _in_time(self, call: Call, mode: Mode) -> Completion:
        try:
            async with asyncio.timeout(self._timeout):
                if call.layer is None:
                    return await self.backend.complete(call, mode)
                return await self._state(call, call.layer)
        except TimeoutError as error:
            raise NoReply(f"no answer within {self._timeout:g} s (--timeout)") from error

    async def _state(self, call: Call, layer: int) -> Completion:
        """The hidden state as the text of a completion, so that it is cached as replies are."""
        if not isinstance(self.backend, HiddenStates):
            raise UsageError(
                f"{self.spec} gives no hidden states, so the `probe` method cannot be taken; use "
                "--method structured or logprobs"
            )
        state, tokens = await self.backend.hidden(call.messages, layer)
        if not state or not all(map(math.isfinite, state)):
            raise ServerFault(f"the state after layer {layer} holds no numbers, or infinite ones")
        try:
            return Completion(packed(state, "e"), input_tokens=tokens)
        except OverflowError as error:
            raise BadRequest(f"the state after layer {layer} is too large: {error}") from error

    # ------------------------------------------------------------ counting

    @property
    def priced(self) -> bool:
        """Whether the cost of a call is known."""
        return self._price is not None

    def estimate(self, input_tokens: int, output_tokens: int) -> Usage:
        """The usage of a reply of this size."""
        price = self._price
        cost = None if price is None else price.of(input_tokens, output_tokens)
        return Usage(1, input_tokens, output_tokens, cost)

    def _least(self, call: Call, completion: Completion) -> Usage:
        """What a reply costs at the least, should its server count next to nothing."""
        half = 2 * CHARACTERS_A_TOKEN
        asked = sum(len(message["content"]) for message in call.messages) // half
        said = 0 if call.layer is not None else len(completion.text) // half
        return self.estimate(
            max(completion.input_tokens, asked), max(completion.output_tokens, said)
        )

    def _usage(self, completion: Completion) -> Usage:
        return self.estimate(completion.input_tokens, completion.output_tokens)


def _counted(call: Call, completion: Completion) -> Completion:
    """The completion, with an estimate of the tokens that the server did not report."""
    written = completion.text if call.layer is None else ""
    if completion.input_tokens and (completion.output_tokens or not written):
        return completion
    asked = sum(len(message["content"]) for message in call.messages)
    return replace(
        completion,
        input_tokens=completion.input_tokens or asked // CHARACTERS_A_TOKEN + 1,
        output_tokens=completion.output_tokens or -(-len(written) // CHARACTERS_A_TOKEN),
    )
