"""The default model, which judges if none is named, and its profile."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from judge.backends import MODEL_HINT, DefaultModel, FetchProgress
from judge.errors import UsageError, install_hint
from judge.local import DEFAULT_NAME


def _missing() -> bool:
    if find_spec("xllamacpp") is None:
        raise UsageError(
            "no --model named, and the embedded engine is not installed. Either "
            f"{install_hint('local')}, or {MODEL_HINT}"
        )
    from judge.local import store

    return store.entry(DEFAULT_NAME).here is None


def _fetch(progress: FetchProgress) -> None:
    from judge.local.fetch import pull

    pull(DEFAULT_NAME, progress=progress)


DEFAULT = DefaultModel(
    f"local:{DEFAULT_NAME}",
    "a 1.5B model",
    Path(__file__).with_name(f"{DEFAULT_NAME}.json"),
    _missing,
    _fetch,
)
