"""The client of one model: checks each reply, and asks again while it is invalid.

instructor tells the model what is wrong with a reply
(docs/decisions/0002-instructor-around-one-create.md).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from pydantic import ValidationError

from judge.backends.base import (
    Backend,
    Call,
    Completion,
    HiddenState,
    Message,
    Mode,
    Prompt,
    unpacked,
)
from judge.backends.reading import cut
from judge.cache import MemoryCache, ReplyCache
from judge.errors import BadRequest, ServerFault, Trouble, Unread, UsageError, after
from judge.judging.completions import Attempts, Completions
from judge.judging.first_token import added_up
from judge.judging.limits import Budget
from judge.judging.modes import Modes
from judge.judging.negotiation import Negotiation
from judge.judging.served_model import ServedModel
from judge.judging.transport import CANARY, IS_WATER_WET, Counters, Transport
from judge.model_tables import Price
from judge.questions.evidence import ReplyContext
from judge.questions.replies import Reply, held_against, schema_of
from judge.verdict import Usage

R = TypeVar("R", bound=Reply)

_log = logging.getLogger(__name__)

_FLOATING = re.compile(r"^~|-latest$")

_TOKEN_CANARY = Call(
    messages=Prompt.of(
        [*CANARY.messages[:1], {"role": "user", "content": "Is water wet? Yes or No?"}],
        IS_WATER_WET,
    ),
    seed=0,
    max_tokens=1,
    logprobs=20,
    role="canary",
)


class Client:
    """One model behind its cache.

    Args:
        spec: the model as the user named it, `provider:model`.
        cache: None for no cache beyond this run.
        limit: most concurrent calls.
        price: the model's (None: unknown); an engine of our own is free.
        reasks: how often an invalid reply is asked for again.
        max_tokens: most tokens of every reply (None: as the call says).
        backoff: seconds before the first retry.
        timeout: seconds until a call is given up; an engine in this process has none.

    `remote`: calls go to a server. `decides`: it is a decision model. `floating`: it is a decision
    model named by an alias whose version changes. `counters`: what the client did in this run.
    `served`: which model answers. `negotiation`: how it is asked.
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
        max_tokens: int | None = None,
        backoff: float = 0.5,
        timeout: float | None = None,
    ) -> None:
        self.spec, self.backend = spec, backend
        identity = dict(backend.identity())
        self.remote, self.decides = not backend.in_process, backend.decides
        self.floating = self.decides and bool(_FLOATING.search(spec.partition(":")[2]))
        # A `vllm:` server at an address may be anyone's.
        ours = not self.remote or (spec.startswith("vllm:") and "server" not in identity)
        self.price = Price(input=0.0, output=0.0) if ours else price
        transport = Transport(
            backend,
            budget=budget,
            limit=limit,
            price=self.price,
            backoff=backoff,
            timeout=timeout,
        )
        self.limit, self.counters = transport.limit, transport.counters
        store = cache if cache is not None else MemoryCache()
        self.served = ServedModel(
            spec, backend, store, self.counters, identity, transport.canary, own=ours
        )
        self.negotiation = Negotiation(spec, backend, store, identity)
        self._completions = Completions(
            backend, transport, store, self.negotiation, self.served, identity
        )
        self._modes = Modes(spec, backend.modes, self._completions, self.negotiation)
        self._reasks, self._max_tokens = reasks, max_tokens
        self._widths: dict[int | None, int] = {}

    # ------------------------------------------------------------ asking

    async def ask(self, call: Call, reply_model: type[R], context: ReplyContext) -> tuple[R, Usage]:
        """Ask for a reply, and again while it is invalid, at most `reasks` times.

        The first call with a schema runs alone and tests the mode: if the server refuses or ignores
        a mode, the same call is made in the next one.

        Raises:
            Unread: no reply was valid, or the prompt was refused or cut, or the reply was cut off.
            BackendError: the model gave no reply at all.
        """
        call = replace(
            call,
            schema=schema_of(reply_model),
            schema_name=reply_model.__name__,
            max_tokens=self._max_tokens or call.max_tokens,
        )
        with Attempts() as attempts:
            if proven := self._modes.proven(call):
                mode, first = proven, await self._completions.get(call, proven, attempts)
            else:
                await self._modes.prepare()
                mode, first = await self._modes.test(call, attempts)
            try:
                reply = await self._valid(call, mode, first, reply_model, context, attempts)
            except Unread as error:
                self._completions.drop_at_end(attempts)
                if error.trouble == "invalid" and proven is not None:
                    self._modes.note_text(attempts.text)
                raise
            if proven is None:
                self.negotiation.settle(call, mode)
            else:
                self._modes.note_text(attempts.text)
            return reply

    def _problem(self, call: Call, completion: Completion) -> tuple[Trouble, str] | None:
        """Why a completion has no answer, so that it is not asked again; None if it may have."""
        if completion.finish_reason == "refusal":
            return "refused", completion.text[:200] or "no explanation"
        if completion.finish_reason == "invalid":
            return "invalid", completion.text[:200]
        if completion.finish_reason == "length" and call.schema is not None:
            limit = self.negotiation.limit(call)
            detail = f"the reply was cut off at {limit} tokens"
            if not completion.text:
                detail = f"the reply has no text: thoughts may have taken its {limit} tokens"
            return "truncated", f"{detail}; --max-tokens N allows more"
        loss = cut(call.sent(decides=self.decides), completion)
        return ("the prompt was cut", loss) if loss else None

    async def _valid(
        self,
        call: Call,
        mode: Mode,
        first: Completion,
        reply_model: type[R],
        context: ReplyContext,
        attempts: Attempts,
    ) -> tuple[R, Usage]:
        """The reply in `first`, or in a later attempt; raises Unread."""
        if problem := self._problem(call, first):
            raise Unread(*problem, self._usage(first))
        # As strict as instructor is.
        with held_against(context), suppress(ValidationError):
            return reply_model.model_validate_json(first.text, strict=True), self._usage(first)
        # Imported here: most runs need none of it, and instructor takes a second to load.
        from judge.judging.reask import Invalid, Withheld, reask

        completions = [first]

        async def attempt(messages: Sequence[Message]) -> Completion:
            again = replace(call, messages=messages)
            with after(sum(map(self._usage, completions), Usage())):
                completion = await self._completions.get(again, mode, attempts)
            completions.append(completion)
            return completion

        # A model that has only sent empty replies would send another one.
        reasks = 0 if self._modes.silent else self._reasks
        try:
            with held_against(context):
                reply = await reask(first, attempt, call.messages, reply_model, reasks)
        except Withheld:
            problem = self._problem(call, completions[-1])
            assert problem is not None, "a completion that is withheld says why"
        except Invalid as error:
            text = completions[-1].text.strip()
            problem = "invalid", str(error) if text else "the reply holds no text"
        finally:
            self.counters.reasks += len(completions) - 1
        usage = sum(map(self._usage, completions), Usage())
        if problem is not None:
            raise Unread(*problem, usage)
        return reply, usage

    async def first_token(
        self, call: Call, usable: Callable[[Mapping[str, float]], bool] = bool
    ) -> tuple[dict[str, float], Usage]:
        """Log-probabilities of the first token's alternatives, by token text.

        A server's reply is cached only if `usable`.

        Raises:
            UsageError: the model gives no log-probabilities.
            Unread: the server refused or cut the prompt, or lists no valid distribution.
            BackendError: as `ask`.
        """
        with Attempts() as attempts:
            completion = await self._completions.get(call, Mode.JSON_SCHEMA, attempts)
            await self._refuse_unread(call, completion, attempts)
            try:
                tokens = added_up(completion.first_token or ())
            except ValueError as problem:
                await self._completions.drop(attempts)
                usage = self._usage(completion)
                raise Unread("no distribution", str(problem), usage) from None
            # An engine of our own would reply the same again; a server's fault may pass.
            if not tokens or not (self.served.own or usable(tokens)):
                await self._completions.drop(attempts)
        if completion.first_token is None:
            raise UsageError(
                f"{self.spec} gives no log-probabilities, which the `logprobs` method needs; "
                "use --method structured"
            )
        return tokens, self._usage(completion)

    async def state(self, call: Call, width: int | None = None) -> tuple[HiddenState, Usage]:
        """The hidden state of the call's prompt, after the call's layer.

        Args:
            width: numbers that it must have (None: as many as this layer's first state).

        Raises:
            UsageError: the model gives no hidden states.
            Unread: the server refused or cut the prompt.
            BackendError: as `ask`, and for a state of another width, which is not cached.
        """
        if not self.backend.gives_states:
            raise UsageError(
                f"{self.spec} gives no hidden states, which the `probe` method needs; use "
                "--method structured or logprobs"
            )
        with Attempts() as attempts:
            completion = await self._completions.get(call, Mode.JSON_SCHEMA, attempts)
            await self._refuse_unread(call, completion, attempts)
            state = unpacked(completion.text, "e")
            width = width or self._widths.setdefault(call.layer, len(state))
            if len(state) != width:
                await self._completions.drop(attempts)
                raise ServerFault(f"the state has {len(state)} numbers, not {width}")
        return state, self._usage(completion)

    async def write(self, call: Call) -> tuple[Completion, Usage]:
        """One completion in free text, even if truncated or refused; raises as `ask`."""
        call = replace(call, max_tokens=self._max_tokens or call.max_tokens)
        with Attempts() as attempts:
            completion = await self._completions.get(call, Mode.JSON_SCHEMA, attempts)
            if completion.finish_reason != "refusal":
                await self._refuse_unread(call, completion, attempts)
            if completion.finish_reason != "stop" or not completion.text.strip():
                await self._completions.drop(attempts)
        return completion, self._usage(completion)

    async def _refuse_unread(self, call: Call, completion: Completion, attempts: Attempts) -> None:
        if problem := self._problem(call, completion):
            await self._completions.drop(attempts)
            raise Unread(*problem, self._usage(completion))

    async def drop_unusable(self) -> None:
        """Remove the replies of asks without a valid one from the cache."""
        await self._completions.drop_unusable()

    async def aclose(self) -> None:
        await self.backend.aclose()
        await self.drop_unusable()

    # ------------------------------------------------------------ what the model can do

    async def prove_logprobs(self, flag: str) -> None:
        """Check with one small question that a server gives log-probabilities.

        Args:
            flag: the option that named the model, such as `--cheap-model`; errors begin with it.

        A decision model on a server is always asked, to learn which version answers.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: it gives none, or is not the model that its profile is bound to.
        """
        if not (self.decides and self.remote) and len(self.backend.modes) == 1:
            return
        if self.floating:
            _log.warning(
                "judge: %s means the newest version; each line notes the version that answered. "
                "Name a version for repeatable verdicts",
                self.spec,
            )
        try:
            await self.first_token(_TOKEN_CANARY)
        except (BadRequest, Unread, UsageError) as error:
            if self.decides:
                raise UsageError(f"{flag} {self.spec}: {error}") from error
            remedy = "leave it out" if flag == "--cheap-model" else "use --method structured"
            if not isinstance(error, UsageError):
                raise UsageError(
                    f"{flag} {self.spec}: {error}. If it gives no log-probabilities: {remedy}"
                ) from error
            raise UsageError(
                f"{flag} {self.spec}: this model gives no log-probabilities; {remedy}, or name a "
                "model that gives them, such as local:... or a server with logprobs"
            ) from error

    async def prepare(self) -> None:
        """Find the best mode for JSON with one small question, unless an earlier run found it.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no mode gave valid JSON.
        """
        await self._modes.prepare()

    def add(self, counters: Counters, adaptations: Mapping[str, str | int]) -> None:
        """Add the traffic of another process's client of this model; warns as that client does."""
        self.served.answered_elsewhere(counters)
        self.counters.add(counters)
        self.negotiation.report({**self.negotiation.adaptations, **adaptations})

    # ------------------------------------------------------------ what it costs

    def most_tokens(self, call: Call) -> int:
        """Token limit of the call's reply: the user's or the call's, with any room for thoughts."""
        limited = replace(call, max_tokens=self._max_tokens or call.max_tokens)
        return self.negotiation.limit(limited)

    def estimate(self, input_tokens: int, output_tokens: int) -> Usage:
        """The usage of a call with this many tokens."""
        cost = None if self.price is None else self.price.of(input_tokens, output_tokens)
        return Usage(1, input_tokens, output_tokens, cost)

    def _usage(self, completion: Completion) -> Usage:
        usage = self.estimate(completion.input_tokens, completion.output_tokens)
        name = completion.model or self.spec.partition(":")[2]
        return replace(usage, models=(name,)) if self.decides else usage
