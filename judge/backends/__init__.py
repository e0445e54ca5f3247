"""Ways to reach a model. Each is one file and one entry point in the group `judge.backends`."""

from __future__ import annotations

from judge import plugins
from judge.backends.base import Backend, parse_model
from judge.errors import UsageError

_GROUP = "judge.backends"


def providers() -> tuple[str, ...]:
    """The providers installed, sorted by name."""
    return plugins.names(_GROUP)


def factory(spec: str) -> type[Backend]:
    """What makes the backend for `provider:model` from the model's name.

    Raises:
        UsageError: unknown provider, or one whose library is not installed.
    """
    provider, _ = parse_model(spec)
    try:
        found: type[Backend] | None = plugins.load(_GROUP, provider)
    except ImportError as error:
        raise UsageError(f"{spec}: {error}; the provider's library is missing") from error
    if found is None:
        known = ", ".join(providers())
        raise UsageError(f"{spec}: unknown provider {provider!r}; known are {known}")
    return found


def build(spec: str) -> Backend:
    """The backend for `provider:model`.

    Raises:
        UsageError: unknown provider, or a model that cannot be used as named.
    """
    return factory(spec)(parse_model(spec)[1])
