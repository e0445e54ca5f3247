"""Finds the mode in which one model gives JSON: by one small question, then by the first call of
each schema (docs/decisions/0039-adaptations.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from judge.backends.base import Call, Completion, Mode
from judge.errors import BadRequest, ContextExceeded, Denied, UsageError
from judge.judging.completions import Attempts, Completions
from judge.judging.negotiation import Negotiation

_MAX_SEARCHES = 2
"""Calls for which every mode is tried without success; more would double a bad model's cost."""

_MAX_ALONE = 3
"""After this many tests without a reply that fits the schema, tests run concurrently: a model whose
replies are always cut off must not serialise the run."""

_MAX_EMPTY = 3
"""The run ends if the replies to this many first questions hold no text."""


class Modes:
    """Tests the modes of one model; a backend with a single mode is not tested."""

    def __init__(
        self, spec: str, modes: Sequence[Mode], completions: Completions, negotiation: Negotiation
    ) -> None:
        self._spec, self._all = spec, modes
        self._completions, self._negotiation = completions, negotiation
        self._proven: dict[str | None, Mode] = {}
        self._searches = self._cut = self._empty = 0
        self._has_text = False
        self._testing = asyncio.Lock()

    async def prepare(self) -> None:
        """Find the first mode in which a small question gets the JSON that it asks for, unless
        there is a mode to start with.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no mode gave valid JSON.
        """
        if self._negotiation.mode is not None:
            return
        async with self._testing:
            if self._negotiation.mode is not None:
                return
            problems: dict[str, list[Mode]] = {}
            for mode in self._all:
                try:
                    text = (await self._completions.probe(mode)).text
                except ContextExceeded:
                    raise
                except BadRequest as error:
                    problems.setdefault(str(error), []).append(mode)
                    continue
                with suppress(ValueError, RecursionError):
                    if json.loads(text) == {"ready": "yes"}:
                        self._negotiation.start_with(mode)
                        return
                problem = f'replied {text[:80]!r}, not {{"ready": "yes"}}'
                problems.setdefault(problem, []).append(mode)
        said = (f"{', '.join(modes)}: {problem}" for problem, modes in problems.items())
        raise UsageError(f"{self._spec} gave no valid JSON in any mode. {'; '.join(said)}")

    def proven(self, call: Call) -> Mode | None:
        """The mode for the call's schema if it needs no test, else None. A failure in a proven mode
        is the call's own."""
        return self._all[0] if len(self._all) == 1 else self._proven.get(call.schema_name)

    async def test(self, call: Call, attempts: Attempts) -> tuple[Mode, Completion]:
        """Find the mode for a schema's first call: the first whose reply fits the schema, else the
        last that got any reply. Also returns that reply.

        Tests run one at a time until `_MAX_ALONE` have failed.

        Raises:
            BackendError: no mode got a reply, or none of the run's first questions a text.
        """
        async with AsyncExitStack() as alone:
            await alone.enter_async_context(self._testing)
            proven = self.proven(call)
            if proven is not None or self._searches + self._cut >= _MAX_ALONE:
                await alone.aclose()
            if proven is not None:
                return proven, await self._completions.get(call, proven, attempts)
            self._refuse_silent()
            refusal: BadRequest | None = None
            unheeded: tuple[Mode, Completion] | None = None
            for mode in self._candidates(call):
                if unheeded and not (attempts.fresh or self._completions.stored(call, mode)):
                    return unheeded  # The run that stored the reply tried no further mode.
                try:
                    completion = await self._completions.get(call, mode, attempts)
                except ContextExceeded:
                    raise
                except BadRequest as error:
                    refusal = refusal or error
                    continue
                if completion.finish_reason != "stop":
                    self._cut += 1
                    return mode, completion  # Such a reply says nothing about the mode.
                self._has_text = self._has_text or bool(completion.text.strip())
                if _conforms(completion.text, call):
                    self._negotiation.settle(call, mode)
                    if attempts.fresh:
                        self._proven[call.schema_name] = mode
                    return mode, completion
                unheeded = mode, completion
            self._searches += 1
            if unheeded is not None:
                self.note_text(unheeded[1].text)
                return unheeded
            assert refusal is not None
            raise refusal

    def _candidates(self, call: Call) -> Sequence[Mode]:
        """The modes to try with the call, in this order."""
        first = self._negotiation.mode_for(call)
        assert first is not None, "prepare() comes first"
        if self._searches >= _MAX_SEARCHES or self.silent:
            return (first,)
        return (first, *self._all[self._all.index(first) + 1 :])

    # ------------------------------------------------------------ empty replies

    @property
    def silent(self) -> bool:
        """Whether the model has replied, but never with text."""
        return self._empty > 0 and not self._has_text

    def note_text(self, text: str) -> None:
        """Note the last reply to a question.

        Raises:
            Denied: the replies to the run's first questions hold no text; it ends the run.
        """
        self._has_text = self._has_text or bool(text.strip())
        self._empty += not self._has_text
        self._refuse_silent()

    def _refuse_silent(self) -> None:
        if self.silent and self._empty >= _MAX_EMPTY:
            raise Denied(
                f"{self._spec}: the replies to the first {self._empty} questions hold no text; "
                "check that the server has this model with its chat template, and raise "
                "--max-tokens if the model thinks first"
            )


def _conforms(text: str, call: Call) -> bool:
    """Whether a reply is a JSON object with a name of the call's schema."""
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return False
    properties = (call.schema or {}).get("properties", {})
    return isinstance(reply, dict) and not reply.keys().isdisjoint(properties)
