"""Backends: ways to reach a model. Each is one file and one entry point in `judge.backends`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from judge import plugins
from judge.backends.base import Backend, parse_model, what_to_type
from judge.errors import UsageError, nearest

BACKENDS = "judge.backends"
"""The entry-point group of backends."""

MODEL_HINT = (
    "name a model: --model openai:gpt-4o "
    "(with OPENAI_API_KEY, or OPENAI_BASE_URL for your own server)"
)

FetchProgress = Callable[[int, int, str], None]
"""Called with the bytes fetched, the total bytes, and the current step."""


@dataclass(frozen=True, slots=True)
class DefaultModel:
    """The model that judges if none is named: the entry point `default` in `judge.models`.

    `about` describes it; `profile` is its profile's file. `is_missing` says whether `fetch` must
    download it first, and raises UsageError if its engine is not installed.
    """

    spec: str
    about: str
    profile: Path
    is_missing: Callable[[], bool]
    fetch: Callable[[FetchProgress], None]


def default_model() -> DefaultModel | None:
    """The default model; None if this installation has none."""
    model: DefaultModel | None = plugins.load("judge.models", "default")
    return model


def default_judge() -> DefaultModel:
    """The default model, for a run that names none.

    Raises:
        UsageError: this installation has none.
    """
    if (model := default_model()) is None:
        raise UsageError(f"no --model named: {MODEL_HINT}")
    return model


def providers() -> tuple[str, ...]:
    """The providers installed, sorted by name."""
    return plugins.names(BACKENDS)


def factory(spec: str, servers: Collection[str] = ()) -> type[Backend]:
    """The class that makes the backend for `provider:model` from the model's name.

    Args:
        servers: other names that are valid as a provider, for the error message.

    Raises:
        UsageError: unknown provider, or one whose library is not installed.
    """
    provider, name = parse_model(spec)
    try:
        backend: type[Backend] | None = plugins.load(BACKENDS, provider, Backend)
    except ImportError as error:
        raise UsageError(f"{spec}: {error}; the provider's library is missing") from error
    if backend is None:
        names = sorted((*providers(), *servers))
        if (meant := what_to_type(provider, name)) is None:
            near = nearest(provider, names)
            meant = f"did you mean {near}:{name}? " if near else ""
            meant += f"known are {', '.join(names)}; another server needs its url under "
            meant += f"[servers.{provider}] in judge.toml"
        raise UsageError(f"{spec}: unknown provider {provider!r}; {meant}")
    return backend
