"""How to ask one model: the mode of each schema, and what its server does not accept.

Both are found by trial, with one small question and then with the first call of each schema, and
stored in the reply cache by the model's identity: a later run asks in the same way, and so finds
the replies of this one (docs/decisions/0039-adaptations.md).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from judge.backends.adaptations import LEFT_OUT
from judge.backends.base import Backend, Call, Completion, Mode
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest
from judge.errors import BadRequest, ContextExceeded, Denied, UsageError

_log = logging.getLogger(__name__)

_MAX_SEARCHES = 2
"""Calls for which every mode is tried without success; more would double a bad model's cost."""

_MAX_ALONE = 3
"""After this many tests without a reply that fits the schema, tests run concurrently: a model whose
replies are always cut off must not serialise the run."""

_MAX_EMPTY = 3
"""The run ends if the replies to this many first questions hold no text."""

_WORDS = {
    "mode": "JSON asked for by mode {1}",
    "most_tokens": "replies limited to {1} tokens",
    "schema": "schema reduced to {1}",
    "system": "system message {1}",
    "thinking_tokens": "{1} tokens more for thoughts",
    "top_logprobs": "{1} alternatives of the first token",
}

Complete = Callable[[Mode], Awaitable[Completion]]
"""Makes a call in a mode."""


class Negotiation:
    """The modes and adaptations of one model. A backend with a single mode is not tested.

    `adaptations`: what is sent differently from usual, by name; also `mode`, if it is not the best.
    `has_text`: the model has replied with text in this run.
    """

    def __init__(
        self,
        spec: str,
        backend: Backend,
        cache: ReplyCache | MemoryCache,
        identity: Mapping[str, Any],
    ) -> None:
        self._spec, self._cache = spec, cache
        self._all, self._backend = backend.modes, backend
        self._usual = dict(backend.adaptations)
        self._key = digest({"kind": "mode", "identity": dict(identity)})
        self._single = len(backend.modes) == 1
        self._mode: Mode | None = backend.modes[0] if self._single else None
        self._modes: dict[str, Mode] = {}
        self._proven: dict[str | None, Mode] = {}
        self._searches = self._cut = self._empty = 0
        self.has_text = False
        self._testing = asyncio.Lock()
        self._remember(cache.get(self._key) or {})
        self._saved = self._entry()
        self._reported: Mapping[str, str | int] = {}
        self._version = 0
        self._noted: tuple[object, ...] = ()
        self.adaptations: Mapping[str, str | int] = self._changes()

    def _remember(self, entry: Mapping[str, Any]) -> None:
        """Restore what an earlier run learnt; an entry of another form is ignored."""
        names = {str(mode): mode for mode in self._all}
        modes, adaptations = entry.get("modes"), entry.get("adaptations")
        if not isinstance(modes, dict) or not isinstance(adaptations, dict):
            return
        self._mode = names.get(str(entry.get("mode"))) or self._mode
        self._modes = {name: names[mode] for name, mode in modes.items() if mode in names}
        self._backend.adaptations = adaptations

    def _entry(self) -> dict[str, Any]:
        return {
            "mode": self._mode and str(self._mode),
            "modes": {name: str(mode) for name, mode in sorted(self._modes.items())},
            "adaptations": dict(self._backend.adaptations),
        }

    # ------------------------------------------------------------ modes

    @property
    def ready(self) -> bool:
        """Whether there is a mode to start with."""
        return self._mode is not None

    async def prepare(self, complete: Complete) -> None:
        """Find the first mode in which a small question gets the JSON that it asks for.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no mode gave valid JSON.
        """
        async with self._testing:
            if self.ready:
                return
            problems: dict[str, list[Mode]] = {}
            for mode in self._all:
                try:
                    text = (await complete(mode)).text
                except ContextExceeded:
                    raise
                except BadRequest as error:
                    problems.setdefault(str(error), []).append(mode)
                    continue
                with suppress(ValueError, RecursionError):
                    if json.loads(text) == {"ready": "yes"}:
                        self._mode, self._version = mode, self._version + 1
                        self.note_changes()
                        return
                problem = f'replied {text[:80]!r}, not {{"ready": "yes"}}'
                problems.setdefault(problem, []).append(mode)
        said = (f"{', '.join(modes)}: {problem}" for problem, modes in problems.items())
        raise UsageError(f"{self._spec} gave no valid JSON in any mode. {'; '.join(said)}")

    def proven(self, call: Call) -> Mode | None:
        """The mode for the call's schema if it needs no test, else None. A failure in a proven mode
        is the call's own."""
        return self._mode if self._single else self._proven.get(call.schema_name)

    async def test(
        self,
        call: Call,
        complete: Complete,
        fresh: Callable[[], bool],
        stored: Callable[[Mode], bool],
    ) -> tuple[Mode, Completion | None]:
        """Find the mode for a schema's first call; also returns the reply that it got.

        Tests run one at a time until `_MAX_ALONE` have failed. If the server refuses or ignores a
        mode, the next one is tried. The reply is None if another call has proven the mode in the
        meantime.

        Args:
            fresh: whether the last reply came from the server, not from the cache.
            stored: whether the reply of a mode is in the cache.

        Raises:
            BackendError: no mode got a reply, or none of the run's first questions a text.
        """
        async with self._testing:
            if (proven := self.proven(call)) is not None:
                return proven, None
            if self._searches + self._cut < _MAX_ALONE:
                return await self._tried(call, complete, fresh, stored)
        return await self._tried(call, complete, fresh, stored)

    async def _tried(
        self,
        call: Call,
        complete: Complete,
        fresh: Callable[[], bool],
        stored: Callable[[Mode], bool],
    ) -> tuple[Mode, Completion]:
        """The first mode whose reply fits the schema, else the last that got any reply."""
        self._refuse_silent()
        refusal: BadRequest | None = None
        unheeded: tuple[Mode, Completion] | None = None
        for mode in self._candidates(call):
            if unheeded is not None and not fresh() and not stored(mode):
                return unheeded  # The run that stored the reply tried no further mode.
            try:
                completion = await complete(mode)
            except ContextExceeded:
                raise
            except BadRequest as error:
                refusal = refusal or error
                continue
            if completion.finish_reason != "stop":
                self._cut += 1
                return mode, completion  # Such a reply says nothing about the mode.
            self.has_text = self.has_text or bool(completion.text.strip())
            if _conforms(completion.text, call):
                self.settle(call, mode)
                if fresh():
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
        first = self._modes.get(call.schema_name or "", self._mode)
        assert first is not None, "prepare() comes first"
        if self._searches >= _MAX_SEARCHES or self.silent:
            return (first,)
        return (first, *self._all[self._all.index(first) + 1 :])

    def settle(self, call: Call, mode: Mode) -> None:
        """Use this mode for the call's schema, and start with it for others."""
        if not self._single and self._modes.get(call.schema_name or "") != mode:
            self._modes[call.schema_name or ""] = self._mode = mode
            self._version += 1
            self.note_changes()

    # ------------------------------------------------------------ empty replies

    @property
    def silent(self) -> bool:
        """Whether the model has replied, but never with text."""
        return self._empty > 0

    def note_text(self, text: str) -> None:
        """Note the last reply to a question.

        Raises:
            Denied: the replies to the run's first questions hold no text; it ends the run.
        """
        self.has_text = self.has_text or bool(text.strip())
        self._empty = 0 if self.has_text else self._empty + 1
        self._refuse_silent()

    def _refuse_silent(self) -> None:
        if self._empty >= _MAX_EMPTY:
            raise Denied(
                f"{self._spec}: the replies to the first {self._empty} questions hold no text; "
                "check that the server has this model with its chat template, and raise "
                "--max-tokens if the model thinks first"
            )

    # ------------------------------------------------------------ adaptations

    def limit(self, call: Call) -> int:
        """Token limit of the call's reply, as sent to the server."""
        return call.max_tokens if call.logprobs is not None else self._backend.limit(call)

    def sent(self, call: Call) -> Call:
        """The call with the temperature and seed that are sent (None: not sent), and the token
        limit."""
        state = self._backend.adaptations
        temperature = None if "temperature" in state else call.temperature
        seed, limit = None if "seed" in state else call.seed, self.limit(call)
        if (temperature, seed, limit) == (call.temperature, call.seed, call.max_tokens):
            return call
        return replace(call, temperature=temperature, seed=seed, max_tokens=limit)

    def _changes(self) -> dict[str, str | int]:
        state = self._backend.adaptations
        changes = {name: way for name, way in state.items() if self._usual.get(name) != way}
        modes = {str(mode) for mode in (*self._modes.values(), self._mode) if mode is not None}
        if not self._single and modes - {str(self._all[0])}:
            changes["mode"] = ", ".join(sorted(modes))
        return changes

    def note_changes(self) -> None:
        """Store and report new adaptations; called after each reply."""
        noted = (self._backend.adaptations, self._version)
        if noted == self._noted:
            return
        self._noted = noted
        if (entry := self._entry()) != self._saved:
            self._cache.set(self._key, entry)
            self._saved = entry
        self.report(self._changes())

    def report(self, adaptations: Mapping[str, str | int]) -> None:
        """Set the adaptations, and say which are new."""
        self.adaptations = adaptations
        new = {n: way for n, way in adaptations.items() if self._reported.get(n) != way}
        if new:
            text = "; ".join(_described(name, way) for name, way in sorted(new.items()))
            _log.warning("judge: %s: requests adapted to its server: %s", self._spec, text)
            self._reported = {**self._reported, **new}


def _described(name: str, way: str | int) -> str:
    """An adaptation in words: seed left out, max_tokens as another name."""
    return _WORDS.get(name, "{0} {1}" if way == LEFT_OUT else "{0} as {1}").format(name, way)


def _conforms(text: str, call: Call) -> bool:
    """Whether a reply is a JSON object with a name of the call's schema."""
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return False
    properties = (call.schema or {}).get("properties", {})
    return isinstance(reply, dict) and not reply.keys().isdisjoint(properties)
