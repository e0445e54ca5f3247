"""The replies that go with a record from one stage of a run to the next.

A record's run sets a carrier; the client hands it every reply that the record asks for, by the
reply's cache key. `Recorder` notes the replies of the stage that makes them, `Brought` answers from
those that an earlier stage noted. Without a carrier, the usual case, nothing is noted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from judge.backends.base import Completion
from judge.errors import BackendError

KEY_DIGITS = 16
"""Hex digits of a reply's key that tell it from the few dozen others of its record."""

Heard = Completion | BackendError
"""What a call brought: its reply, or why there is none."""

Make = Callable[[], Awaitable[Completion]]


class Carrier(Protocol):
    """Stands between a record's calls and the client that makes them."""

    async def reply(self, key: str, make: Make) -> Completion:
        """The reply with this cache key; `make` gets it as it is got without a carrier.

        Raises:
            BackendError: as `make`, or as the call did when it was noted.
        """
        ...


class Recorder:
    """Notes what a record's calls bring, also that one brought no reply.

    Two rubrics may put the same question. It is asked once, as with a cache: a model that would
    say something else the second time must not settle one by a reply that is not carried.
    """

    def __init__(self) -> None:
        self.heard: dict[str, Heard] = {}

    async def reply(self, key: str, make: Make) -> Completion:
        short = key[:KEY_DIGITS]
        if short not in self.heard:
            try:
                made: Heard = await make()
            except BackendError as error:
                made = error
            # Another task of this record may have asked at the same time, and been heard first.
            self.heard.setdefault(short, made)
        return _given(self.heard[short])


class Brought:
    """Answers from replies that were noted; what was not noted is asked."""

    def __init__(self, heard: Mapping[str, Heard]) -> None:
        self._heard = heard

    async def reply(self, key: str, make: Make) -> Completion:
        heard = self._heard.get(key[:KEY_DIGITS])
        return await make() if heard is None else _given(heard)


def _given(heard: Heard) -> Completion:
    if isinstance(heard, BackendError):
        raise heard
    return heard


_carrier: ContextVar[Carrier | None] = ContextVar("carrier", default=None)


def carrier() -> Carrier | None:
    """The carrier of the record that is worked on here; None for most."""
    return _carrier.get()


@contextmanager
def carrying(carrier: Carrier) -> Iterator[None]:
    """Have the calls made in here, and in tasks begun in here, go through this carrier."""
    token = _carrier.set(carrier)
    try:
        yield
    finally:
        _carrier.reset(token)
