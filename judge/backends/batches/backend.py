"""`openai:MODEL` under `--engine batch`: the same requests, answered by the server's batch API."""

from __future__ import annotations

import hashlib
from pathlib import Path

from judge.backends.base import Call, Mode
from judge.backends.batches.api import BatchAPI
from judge.backends.batches.carrying import Pace
from judge.backends.batches.waves import Wave, Waves
from judge.backends.openai import OWN_URL, OpenAIBackend, openai_wire
from judge.backends.wire import Answered
from judge.digest import digest


class BatchBackend(OpenAIBackend):
    """One model behind a batch API. It asks just what `OpenAIBackend` asks, and is the same model.

    Args:
        folder: where the journals of batches lie; this model's is a folder in it.

    Raises:
        UsageError: as `OpenAIBackend`, or a JUDGE_BATCH_... variable that is no positive number.
    """

    # Trying out other ways could take a day each.
    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)

    def __init__(self, name: str, *, folder: Path) -> None:
        way = openai_wire(name)
        super().__init__(name, way=way)
        own = folder / digest(dict(self.identity()))[:16]
        self.waves = Waves(BatchAPI(way, name), own, Pace.of_environment())
        # There every model takes the newer name, and finding out by a refusal could take a day.
        self._counts_completion = way.server == OWN_URL
        self._unsettled: dict[int, list[Wave]] = {}

    async def _answered(self, body: bytes, call: Call) -> Answered:
        answered, wave = await self.waves.ask(_key(body, call), body)
        if answered.status < 300:
            self._unsettled.setdefault(id(call), []).append(wave)
        return answered

    def settle(self, call: Call, *, kept: bool) -> None:
        """The very call is done with; `kept`: its reply is in the cache, and not needed here."""
        for wave in self._unsettled.pop(id(call), ()):
            if kept:
                self.waves.settled(wave)

    async def aclose(self) -> None:
        await self.waves.aclose()
        await super().aclose()


def _key(body: bytes, call: Call) -> str:
    """What is asked and by whose vote: two votes never share a reply."""
    hashed = hashlib.blake2b(body, digest_size=20)
    hashed.update(f"\0{call.vote}\0{call.role}".encode())
    return hashed.hexdigest()
