"""Which model answers at an address: part of the cache key, and recorded by a run.

Local servers accept any name and answer with the model that they have loaded; routers fall back to
another model. So the model that answers is determined before any cached reply is used: from the
server's list of models, which costs nothing, else from the reply to a small call. The system
fingerprint, which changes with a provider's machines, is only recorded
(docs/decisions/0040-who-answered.md).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from judge.backends.base import Backend, Completion
from judge.cache import MemoryCache, ReplyCache
from judge.digest import digest
from judge.errors import BackendError, Denied, UsageError
from judge.judging.transport import Counters

_log = logging.getLogger(__name__)

_MAX_NAMES = 20
"""Most names, and most fingerprints, that are recorded of a run."""

_VERSION = re.compile(r"(?:[-@:](?:latest|v?\d[\d.-]*))?\Z")
"""What a provider adds to an alias: a date, a version, `latest`."""


class ServedModel:
    """The model that answers one client's calls.

    Args:
        spec, backend: as the client's.
        cache: stores the model for later runs.
        counters: the client's; they record the models that answered.
        identity: the backend's; passed in because it is slow to compute.
        small_call: makes one small call (None: none can be made).
        own: whether the engine is our own, so that the model is known, and nothing is asked.

    `names` and `fingerprints`: of the replies used so far, in order of appearance. `ready`: it is
    known which model answers, or that the server does not say.
    """

    def __init__(
        self,
        spec: str,
        backend: Backend,
        cache: ReplyCache | MemoryCache,
        counters: Counters,
        identity: Mapping[str, Any],
        small_call: Callable[[], Awaitable[Completion]] | None,
        *,
        own: bool = False,
    ) -> None:
        self.names: tuple[str, ...] = ()
        self.fingerprints: tuple[str, ...] = ()
        self.own, self.ready, self._counters = own, own, counters
        self._spec, self._alias = spec, str(identity.get("model", ""))
        self._backend, self._cache, self._small_call = backend, cache, small_call
        self._entry = digest({"kind": "served model", "identity": dict(identity)})
        self._model: str | None = None
        self._fitted: tuple[Collection[str], str] = ((), "")
        self._looking = asyncio.Lock()

    def key(self, call_key: str) -> str:
        """The cache key of a call, with the model that answers."""
        return call_key if self._model is None else digest([call_key, self._model])

    @property
    def answering(self) -> tuple[str, ...]:
        """Names of the model that answers: the one in the server's list, then those in replies;
        none for an engine of our own."""
        if self.own:
            return ()
        return tuple(dict.fromkeys((*([self._model] if self._model else []), *self.names)))

    def answered_before(self, models: Iterable[str], fingerprints: Iterable[str]) -> None:
        """Note which models answered in the run that this one resumes."""
        self.names = tuple(dict.fromkeys((*self.names, *models)))
        self.fingerprints = tuple(dict.fromkeys((*self.fingerprints, *fingerprints)))

    def answered_elsewhere(self, counters: Counters) -> None:
        """Note which models answered another process's client of this model."""
        for name in counters.answered_by:
            self.replied(Completion("", model=name))
        for fingerprint in counters.system_fingerprints:
            self.replied(Completion("", system_fingerprint=fingerprint))

    def fitted_to(self, models: Collection[str], profile: str) -> None:
        """Expect one of these models, to whose answers `profile` was fitted. Another one is warned
        about; for a decision model it is an error (`Denied`, or UsageError before any answer)."""
        self._fitted = models, profile

    def _compare(self, name: str) -> None:
        models, profile = self._fitted
        if models and name not in models and self._backend.decides:
            raise (Denied if self.names else UsageError)(
                f"{profile} was calibrated on {', '.join(models)}, and {name} answers now: "
                "calibrate again, or name the version"
            )
        if models and name not in models:
            _log.warning(
                "judge: %s was fitted to the answers of %s; %s answers now, for which its "
                "thresholds and error rates may not hold: calibrate again",
                profile, ", ".join(models), name,
            )  # fmt: skip
            self._fitted = (), ""

    async def look(self) -> None:
        """Find out once which model answers, before a reply of an earlier run may be used.

        If the server cannot be asked, the model of the last run is assumed.
        """
        async with self._looking:
            if self.ready:
                return
            model, earlier = None, (self._cache.get(self._entry) or {}).get("model")
            earlier = earlier if isinstance(earlier, str) else None
            try:
                model = await self._backend.listed()
                if model is None and earlier is not None and self._small_call is not None:
                    model = (await self._small_call()).model
                    model = earlier if self._stays(earlier, model) else model
            except BackendError as error:
                if earlier is not None:
                    _log.warning(
                        "judge: %s does not say which model answers; the cache's replies of %s are "
                        "used. The reason: %s", self._spec, earlier, error,
                    )  # fmt: skip
            if (model := model or earlier) is not None:
                self._take(model, stored=model == earlier)
            self.ready = True

    def _stays(self, earlier: str, named: str | None) -> bool:
        """Whether a small call's reply names the model of the last run, which the list may have
        named without a version, and with what tells it from others."""
        name = earlier.partition(" ")[0]
        return name == named or (name == self._alias and is_same(name, named or ""))

    def _take(self, model: str, *, stored: bool = False) -> None:
        self._model = model
        self._compare(model)
        if not stored:
            self._cache.set(self._entry, {"model": model})

    def replied(self, completion: Completion) -> None:
        """Note which model replied; the first reply identifies it if the server's list does not.

        Warns if it is not the model asked for, or if a second model answers.
        """
        if self.own:
            return
        fingerprint, name = completion.system_fingerprint, completion.model
        if fingerprint and fingerprint not in self.fingerprints:
            self.fingerprints = (*self.fingerprints, fingerprint)[:_MAX_NAMES]
        if name and self.ready and self._model is None:
            self._take(name)
        if name and name not in self.names:
            self._compare(name)
            if len(self.names) == 1:
                _log.warning(
                    "judge: %s: the model that answers has changed: %s, then %s",
                    self._spec, self.names[0], name,
                )  # fmt: skip
            elif not self.names and not is_same(self._alias, name):
                _log.warning("judge: %s: the model that answers is %s", self._spec, name)
            self.names = (*self.names, name)[:_MAX_NAMES]
        self._counters.answered_by = self.names
        self._counters.system_fingerprints = self.fingerprints


def is_same(alias: str, answering: str) -> bool:
    """Whether the model that answers is the one asked for: its name, or an alias of it."""
    alias, name = (text.rpartition("/")[2].lower() for text in (alias, answering))
    alias = alias.removesuffix("-latest")
    # LangChain's names begin with their provider's.
    return any(
        name.startswith(prefix) and _VERSION.match(name[len(prefix) :])
        for prefix in (alias, alias.partition(":")[2])
        if prefix
    )
