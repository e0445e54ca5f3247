"""A model that is only planned with: what its provider says of all its models, and no answers."""

from __future__ import annotations

from collections.abc import Mapping

from judge.backends.base import Call, Completion, Mode, Reading, parse_model
from judge.errors import Denied

ELSEWHERE = ("langchain", "openai", "transformers", "vllm")
"""Providers whose models may need a key, a library or a card that this machine lacks."""


class Unasked:
    """Stands for a model that is not set up here, which a plan need not reach.

    Args:
        spec: provider:model.
        reading: the reading that suits the provider.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None = None
    seeded: bool = False

    def __init__(self, spec: str, reading: Reading) -> None:
        self._provider, self._model = parse_model(spec)
        self.reading: Reading = reading

    def identity(self) -> Mapping[str, str]:
        return {"provider": self._provider, "model": self._model}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        """Refuses.

        Raises:
            Denied: always.
        """
        raise Denied(f"{self._provider}:{self._model} is not set up here")

    async def aclose(self) -> None:
        """Nothing is held."""
