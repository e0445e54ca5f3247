"""Ways to reach a model. Each is one file and one entry point in the group `judge.backends`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from judge.backends.base import Backend, parse_model
from judge.errors import UsageError


@cache
def providers() -> tuple[str, ...]:
    """The providers installed, sorted by name."""
    return tuple(sorted({point.name for point in entry_points(group="judge.backends")}))


def build(spec: str) -> Backend:
    """The backend for `provider:model`.

    Raises:
        UsageError: unknown provider, or one whose library is not installed.
    """
    provider, name = parse_model(spec)
    for point in entry_points(group="judge.backends", name=provider):
        try:
            factory = point.load()
        except ImportError as error:
            raise UsageError(f"{spec}: {error}; the provider's library is missing") from error
        backend: Backend = factory(name)
        return backend
    raise UsageError(f"{spec}: unknown provider {provider!r}; known are {', '.join(providers())}")
