"""Sends calls to one model: limited, timed, retried, counted and priced, within the budget.

The retry loop is our own: the next step differs by error, and tenacity's takes 80 us per call
without a retry, a tenth of an HTTP call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace

from judge import traces
from judge.backends.base import (
    Backend,
    Call,
    Choice,
    Completion,
    Mode,
    Prompt,
    TypedQuestion,
)
from judge.backends.faults import MAX_WAIT
from judge.backends.reading import CHARACTERS_PER_TOKEN, answer_of, counted
from judge.errors import (
    Adapted,
    BackendError,
    BadRequest,
    Forbidden,
    GivenUp,
    NoReply,
    Refused,
    Unreachable,
)
from judge.judging.limits import AdaptiveLimit, Budget, Outages, pause
from judge.model_tables import Price

Keep = Callable[[Completion], Awaitable[None]]

MAX_TRIES = 6
"""Attempts at one call that fails with a retryable error."""

MAX_TRIES_UNREACHABLE = 3
"""Attempts where no server answers at all."""

MAX_TRIES_PAID = 3
"""Attempts at one call if each may be charged (`NoReply`)."""

IS_WATER_WET = TypedQuestion(
    {"text": "Water is wet."},
    "Is `text` about water?",
    "yes-no",
    (Choice("yes", "yes"), Choice("no", "no")),
)

CANARY = Call(
    messages=Prompt.of(
        [
            {"role": "system", "content": "You answer as you are asked."},
            {"role": "user", "content": 'Reply with the JSON object {"ready": "yes"}.'},
        ],
        IS_WATER_WET,
    ),
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
"""A small call that any model can answer, with all parts of a judge's call."""


@dataclass(slots=True)
class Counters:
    """What a client did in this run, and the models that answered; not part of the output.

    `cache_hits` counts replies reused: from the cache, or of an equal call of the run.
    """

    calls: int = 0
    cache_hits: int = 0
    retries: int = 0
    reasks: int = 0
    rate_limits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    answered_by: tuple[str, ...] = ()
    system_fingerprints: tuple[str, ...] = ()

    def add(self, counters: Counters) -> None:
        """Add the counts of another process."""
        for name, count in asdict(counters).items():
            total = getattr(self, name) + count
            names = isinstance(count, tuple)
            setattr(self, name, tuple(dict.fromkeys(total)) if names else total)

    def take(self) -> Counters:
        """Return the counts so far, and reset them."""
        counts, fresh = replace(self), Counters()
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
        return counts


class Transport:
    """A backend with retries, limits and counts around each call.

    Args:
        limit: most concurrent calls.
        price: the model's (None: unknown); calls to a free model go on after `--max-cost`.
        backoff: seconds before the first retry.
        timeout: seconds until a call is given up; an engine in this process has none.

    `canary` makes one small call, without retries; None for an engine of our own.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        budget: Budget,
        limit: int,
        price: Price | None,
        backoff: float,
        timeout: float | None,
    ) -> None:
        self.counters = Counters()
        self.limit = AdaptiveLimit(limit, budget.pauses)
        self.price = price
        self._backend, self._budget, self._backoff = backend, budget, backoff
        self._free = price is not None and price.of(1, 1) == 0
        self._timeout = timeout if backend.slots is None else None
        waits = self._timeout is not None and not backend.in_process
        self.canary = self._small_call if waits else None
        self._outages = Outages(self.canary, backoff, budget.pauses)

    async def send(
        self, call: Call, mode: Mode, keep: Keep | None = None, *, once: bool = False
    ) -> Completion:
        """The backend's completion, with bounded retries; a refusal if the server refuses only this
        input.

        Args:
            keep: stores a reply while its call still counts as under way, so that a kill loses only
                calls under way.
            once: without retries.

        Raises:
            BackendError: no reply came.
        """
        tries, failed_at, outage = 0, 0.0, False
        while True:
            era, tries = 0, tries + 1
            try:
                await self._backend.ready()
                async with self.limit.slot() as era:
                    self._budget.take(free=self._free)
                    self.counters.calls += 1
                    try:
                        async with asyncio.timeout(self._timeout) as limit:
                            completion = await self._backend.complete(call, mode)
                    except TimeoutError as error:
                        text = f"no answer within {self._timeout or 0:g} s (--timeout)"
                        raise NoReply(text if limit.expired() else f"timeout: {error}") from error
                    if not isinstance(completion, Completion):
                        what = f"{type(completion).__name__}, not a judge.backends.base.Completion"
                        kind = type(self._backend)
                        raise TypeError(f"{kind.__module__}.{kind.__name__} returned {what}")
                    sent = call.sent(decides=self._backend.decides)
                    completion = answer_of(call, counted(call, completion, sent))
                    if keep is not None:
                        await keep(completion)
                self._succeeded(call, completion, sent)
                return completion
            except BackendError as error:
                self._overspent(*error.tokens)
                self._failed(error, era)
                if isinstance(error, Adapted):
                    tries -= 1  # No failure: the backend leaves out each part of a call once.
                    continue
                if once:
                    raise
                if isinstance(error, Refused):
                    return Completion(str(error), "refusal")
                if isinstance(error, Forbidden) and await self._outages.works():
                    return Completion(str(error), "refusal")
                if not error.retryable:
                    raise
                self._budget.pauses.refuse()
                if tries >= _max_tries(error):
                    unreachable = isinstance(error, Unreachable)
                    if outage or not await self._outages.passed(failed_at, unreachable=unreachable):
                        raise
                    tries, outage = 0, True
                failed_at = time.monotonic()
                self.counters.retries += 1
                self.counters.rate_limits += error.kind == "rate-limited"
                traces.retries(error, tries)
            if tries:
                await self._budget.pauses.take(pause(self._backoff, tries - 1))

    def _succeeded(self, call: Call, completion: Completion, sent: Sequence[str]) -> None:
        self._outages.answered()
        self.limit.succeeded()
        if self.price is not None:
            # By their length in characters, in case the server reports too few tokens.
            half = 2 * CHARACTERS_PER_TOKEN
            prompt = sum(map(len, sent)) // half
            reply = 0 if call.layer is not None else len(completion.text) // half
            tokens = max(completion.input_tokens, prompt), max(completion.output_tokens, reply)
            self._budget.cost += self.price.of(*tokens)
        self.counters.input_tokens += completion.input_tokens
        self.counters.output_tokens += completion.output_tokens
        self.counters.cached_tokens += completion.cached_tokens or 0

    def _overspent(self, input_tokens: int, output_tokens: int) -> None:
        """Count a call that was charged but whose reply cannot be used."""
        if self.price is not None:
            self._budget.cost += self.price.of(input_tokens, output_tokens)
        self.counters.input_tokens += input_tokens
        self.counters.output_tokens += output_tokens

    def _failed(self, error: BackendError, era: int) -> None:
        if isinstance(error, (BadRequest, Refused)):
            self._outages.answered()
        if error.retry_after is not None and error.retry_after > MAX_WAIT:
            text = f"the server asks for a pause of {error.retry_after:.0f} s: {error}"
            raise GivenUp(text) from error
        if error.kind in ("rate-limited", "server-fault"):
            self.limit.refused(error.retry_after, era)

    async def _small_call(self) -> Completion:
        plain = replace(CANARY, schema=None, schema_name=None)
        return await self.send(plain, self._backend.modes[0], once=True)


def _max_tries(error: BackendError) -> int:
    if error.kind == "unreachable":
        return MAX_TRIES_UNREACHABLE
    return MAX_TRIES_PAID if isinstance(error, NoReply) else MAX_TRIES
