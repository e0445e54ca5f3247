"""`--engine batch`: which models are asked in batches."""

from __future__ import annotations

from collections.abc import Iterable

from judge.backends import factory, providers
from judge.backends.base import parse_model
from judge.errors import UsageError
from judge.judging.client import Client
from judge.settings import Settings

_BATCHED = "openai"
"""The provider whose batch format judge writes."""


def batched(spec: str, settings: Settings) -> bool:
    """Whether this model is asked in batches."""
    return settings.engine == "batch" and parse_model(spec)[0] == _BATCHED


def refuse_unbatched(settings: Settings, models: Iterable[str]) -> None:
    """Check that `--engine batch` has a model with a batch API, and no paid one without.

    Raises:
        UsageError: no model has a batch API, or one without is neither free nor the user's own.
    """
    if settings.engine != "batch":
        return
    specs = list(models)
    strange = [spec for spec in specs if not (batched(spec, settings) or _is_own(spec))]
    if strange or not any(batched(spec, settings) for spec in specs):
        raise UsageError(
            f"--engine batch: {(strange or specs)[0]} has no batch API that judge knows; name a "
            "model behind OpenAI's batch format (openai:..., with OPENAI_BASE_URL), or leave "
            "--engine out"
        )


def _is_own(spec: str) -> bool:
    """Whether the model is the user's own (vLLM, or in this process): it answers at once, whatever
    the engine."""
    provider = parse_model(spec)[0]
    exists = provider in providers()
    return provider == "vllm" or (exists and factory(spec).in_process)


def left_at_provider(clients: Iterable[Client]) -> int:
    """How many batches are still at the provider."""
    return sum(client.backend.batches_under_way for client in clients)
