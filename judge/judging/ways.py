"""How one model is asked: the mode of each schema, and what its server does not take.

Remembered in the reply cache by the model's identity, so that a later run asks in the same way, and
finds the replies of this one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from judge.backends.adaptations import LEFT_OUT
from judge.backends.base import Adapting, Backend, Call, Completion, Mode
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest

_log = logging.getLogger(__name__)

_MOST_SEARCHES = 2
"""Times that every mode is tried with a call in vain; more would double the cost of a bad model."""


_SENT = {
    "mode": "JSON asked for by mode {1}",
    "most_tokens": "replies limited to {1} tokens",
    "schema": "schema reduced to {1}",
    "system": "system message {1}",
    "thinking_tokens": "{1} tokens more for thoughts",
    "top_logprobs": "{1} alternatives of the first token",
}


def _sent(name: str, way: str | int) -> str:
    """How a request is sent otherwise, in words: seed left out, max_tokens as another name."""
    return _SENT.get(name, "{0} {1}" if way == LEFT_OUT else "{0} as {1}").format(name, way)


class Ways:
    """The modes and adaptations of one model. A backend with a single mode has nothing to test."""

    def __init__(
        self,
        spec: str,
        backend: Backend,
        cache: ReplyCache | MemoryCache,
        identity: Mapping[str, Any],
    ) -> None:
        self._spec, self._backend, self._cache = spec, backend, cache
        self._adapting = backend if isinstance(backend, Adapting) else None
        self._usual = dict(self._adapting.adaptations) if self._adapting else {}
        self._key = digest({"kind": "mode", "identity": dict(identity)})
        self._single = len(backend.modes) == 1
        self._mode: Mode | None = backend.modes[0] if self._single else None
        self._modes: dict[str, Mode] = {}
        self._proven: set[str] = set()
        self._searches = 0
        self._saved = self._entry()
        self._remember(cache.get(self._key) or {})
        self._said: dict[str, str | int] = {}

    def _remember(self, entry: Mapping[str, Any]) -> None:
        """Take over what an earlier run learnt; whatever else stands there counts as nothing."""
        known = {str(mode): mode for mode in self._backend.modes}
        modes, adapted = entry.get("modes"), entry.get("adaptations")
        if not isinstance(modes, dict) or not isinstance(adapted, dict):
            return
        self._mode = known.get(str(entry.get("mode"))) or self._mode
        self._modes = {name: known[mode] for name, mode in modes.items() if mode in known}
        if self._adapting is not None:
            self._adapting.adaptations = adapted
        self._saved = self._entry()

    def _entry(self) -> dict[str, Any]:
        return {
            "mode": self._mode and str(self._mode),
            "modes": {name: str(mode) for name, mode in sorted(self._modes.items())},
            "adaptations": dict(self._adapting.adaptations) if self._adapting else {},
        }

    # ------------------------------------------------------------ modes

    @property
    def ready(self) -> bool:
        """Whether a mode is there to begin with."""
        return self._mode is not None

    def start(self, mode: Mode) -> None:
        """Begin with this mode, which a small question was answered by."""
        self._mode = mode
        self.learnt()

    def mode(self, call: Call) -> Mode:
        """The mode for the call's schema."""
        mode = self._modes.get(call.schema_name or "", self._mode)
        assert mode is not None, "prepare() comes first"
        return mode

    def proven(self, call: Call) -> bool:
        """Whether no further mode is to be tried with the call: what it meets is its own."""
        return self._single or call.schema_name in self._proven

    def candidates(self, call: Call) -> Sequence[Mode]:
        """The modes to try with the call, in this order."""
        first, modes = self.mode(call), self._backend.modes
        if self._searches >= _MOST_SEARCHES:
            return (first,)
        return (first, *modes[modes.index(first) + 1 :])

    def tested(self, call: Call, mode: Mode, completion: Completion, *, paid: bool) -> None:
        """A reply of the call's schema came, or one that says nothing about the mode."""
        if completion.finish_reason == "stop":
            self.settle(call, mode)
            if paid:
                self._proven.add(call.schema_name or "")

    def settle(self, call: Call, mode: Mode) -> None:
        """Keep to this mode for the call's schema, and begin with it for others."""
        if not self._single and self._modes.get(call.schema_name or "") != mode:
            self._modes[call.schema_name or ""] = self._mode = mode
            self.learnt()

    def failed(self) -> None:
        """No mode brought a reply of the call's schema."""
        self._searches += 1

    # ------------------------------------------------------------ adaptations

    def limit(self, call: Call) -> int:
        """Most tokens of the call's reply, as the server is told."""
        if self._adapting is None or call.logprobs is not None:
            return call.max_tokens
        return self._adapting.limit(call)

    def sent(self, call: Call) -> Call:
        """The call with the temperature and the seed that the server is sent, if any."""
        state = self._adapting.adaptations if self._adapting else {}
        temperature = None if "temperature" in state else call.temperature
        return replace(call, temperature=temperature, seed=None if "seed" in state else call.seed)

    @property
    def adaptations(self) -> dict[str, str | int]:
        """What is sent otherwise than usual, by what it concerns; `mode` where not the best."""
        state = dict(self._adapting.adaptations) if self._adapting else {}
        told = {name: way for name, way in state.items() if self._usual.get(name) != way}
        others = {str(mode) for mode in (*self._modes.values(), self._mode) if mode is not None}
        if not self._single and others - {str(self._backend.modes[0])}:
            told["mode"] = ", ".join(sorted(others))
        return told

    def learnt(self) -> None:
        """Write down and say what is new, after an answer."""
        if (entry := self._entry()) == self._saved and not self._unsaid():
            return
        if entry != self._saved:
            self._cache.set(self._key, entry)
            self._saved = entry
        if new := self._unsaid():
            told = "; ".join(_sent(name, way) for name, way in sorted(new.items()))
            _log.warning("judge: %s: requests adapted to its server: %s", self._spec, told)
            self._said |= new

    def _unsaid(self) -> dict[str, str | int]:
        return {n: way for n, way in self.adaptations.items() if self._said.get(n) != way}


def conforms(text: str, call: Call) -> bool:
    """Whether a reply is a JSON object with names of the call's schema."""
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return False
    properties = (call.schema or {}).get("properties", {})
    return isinstance(reply, dict) and not reply.keys().isdisjoint(properties)
