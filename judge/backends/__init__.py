"""Ways to reach a model. Each is one file and one entry point in the group `judge.backends`."""

from __future__ import annotations

from judge import plugins
from judge.backends.base import Backend, parse_model
from judge.errors import UsageError

_GROUP = "judge.backends"


def providers() -> tuple[str, ...]:
    """The providers installed, sorted by name."""
    return plugins.names(_GROUP)


def build(spec: str) -> Backend:
    """The backend for `provider:model`.

    Raises:
        UsageError: unknown provider, or one whose library is not installed.
    """
    provider, name = parse_model(spec)
    try:
        factory = plugins.load(_GROUP, provider)
    except ImportError as error:
        raise UsageError(f"{spec}: {error}; the provider's library is missing") from error
    if factory is None:
        known = ", ".join(providers())
        raise UsageError(f"{spec}: unknown provider {provider!r}; known are {known}")
    backend: Backend = factory(name)
    return backend
