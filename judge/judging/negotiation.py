"""How one model is asked: the mode of each schema, and what its server does not accept.

Both are found by trial and stored in the reply cache by the model's identity: a later run asks in
the same way, and so finds the replies of this one (docs/decisions/0039-adaptations.md).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from judge.backends.adaptations import LEFT_OUT
from judge.backends.base import Backend, Call, Mode
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest

_log = logging.getLogger(__name__)

_WORDS = {
    "mode": "JSON asked for by mode {1}",
    "most_tokens": "replies limited to {1} tokens",
    "schema": "schema reduced to {1}",
    "system": "system message {1}",
    "thinking_tokens": "{1} tokens more for thoughts",
    "top_logprobs": "{1} alternatives of the first token",
}


class Negotiation:
    """The modes and adaptations of one model.

    `mode`: to start with (None: not known). `adaptations`: what is sent differently from usual, by
    name; also `mode`, if it is not the best.
    """

    def __init__(
        self,
        spec: str,
        backend: Backend,
        cache: ReplyCache | MemoryCache,
        identity: Mapping[str, Any],
    ) -> None:
        self._spec, self._cache, self._backend = spec, cache, backend
        self._usual = dict(backend.adaptations)
        self._key = digest({"kind": "mode", "identity": dict(identity)})
        self.mode: Mode | None = backend.modes[0] if len(backend.modes) == 1 else None
        self._modes: dict[str, Mode] = {}
        self._remember(cache.get(self._key) or {})
        self._saved = self._entry()
        self._reported: Mapping[str, str | int] = {}
        self._noted: Mapping[str, str | int] | None = None
        self.adaptations: Mapping[str, str | int] = self._changes()

    def _remember(self, entry: Mapping[str, Any]) -> None:
        """Restore what an earlier run learnt; an entry of another form is ignored."""
        names = {str(mode): mode for mode in self._backend.modes}
        modes, adaptations = entry.get("modes"), entry.get("adaptations")
        if not isinstance(modes, dict) or not isinstance(adaptations, dict):
            return
        self.mode = names.get(str(entry.get("mode"))) or self.mode
        self._modes = {name: names[mode] for name, mode in modes.items() if mode in names}
        self._backend.adaptations = adaptations

    def _entry(self) -> dict[str, Any]:
        return {
            "mode": self.mode and str(self.mode),
            "modes": {name: str(mode) for name, mode in sorted(self._modes.items())},
            "adaptations": dict(self._backend.adaptations),
        }

    def mode_for(self, call: Call) -> Mode | None:
        """The mode to start with for the call's schema."""
        return self._modes.get(call.schema_name or "", self.mode)

    def start_with(self, mode: Mode) -> None:
        """Start with this mode for every schema."""
        self.mode = mode
        self._save()

    def settle(self, call: Call, mode: Mode) -> None:
        """Use this mode for the call's schema, and start with it for others."""
        if self._modes.get(call.schema_name or "") != mode:
            self._modes[call.schema_name or ""] = mode
            self.start_with(mode)

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

    def note_changes(self) -> None:
        """Store and report new adaptations; called after each reply."""
        if self._backend.adaptations is not self._noted:
            self._save()

    def _save(self) -> None:
        self._noted = self._backend.adaptations
        if (entry := self._entry()) != self._saved:
            self._cache.set(self._key, entry)
            self._saved = entry
        self.report(self._changes())

    def _changes(self) -> dict[str, str | int]:
        state, best = self._backend.adaptations, str(self._backend.modes[0])
        changes = {name: way for name, way in state.items() if self._usual.get(name) != way}
        modes = {str(mode) for mode in (*self._modes.values(), self.mode) if mode is not None}
        if modes - {best}:
            changes["mode"] = ", ".join(sorted(modes))
        return changes

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
