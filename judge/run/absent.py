"""A model that is not on this machine, known from what other lines say of it."""

from __future__ import annotations

from collections.abc import Mapping

from judge.backends.base import Call, Completion, Mode, Reading
from judge.errors import NotHere
from judge.judging.client import Client


class AbsentModel:
    """The backend of such a model: it has an identity and gives no reply.

    Args:
        spec: the model as the user named it.
        identity: what the lines of an earlier stage say.
        why: why it cannot be used here.

    `seeded` is what the same lines say, once one has been read that says it.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None = None
    seeded: bool = True
    reading: Reading = "probability"

    def __init__(self, spec: str, identity: Mapping[str, str], why: str) -> None:
        self._identity = dict(identity)
        self._told = (
            f"an edited text has to be read by {spec} again, which is not here ({why}). Go on with "
            "--resume where it is"
        )

    def identity(self) -> Mapping[str, str]:
        return self._identity

    async def complete(self, call: Call, mode: Mode) -> Completion:
        raise NotHere(self._told)

    async def aclose(self) -> None:
        return None


class AbsentClient(Client):
    """Gives the replies that were carried or cached; a call that is not made is not counted."""

    async def _paid(self, call: Call, mode: Mode) -> Completion:
        return await self.backend.complete(call, mode)
