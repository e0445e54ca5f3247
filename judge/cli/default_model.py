"""The judge when none is named: fetched if it is not there yet, and named for what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.settings import Settings

KNOWN_FOR = (
    "a 1.5B model. With people it agrees at AUC 0.86, kappa 0.34 on 100 Moral Stories items and at "
    "kappa 0.47 on 60 NormAd rows (bench/local_judge.py); do not rely on it for whole stories"
)


def announce(settings: Settings, *, quiet: bool) -> None:
    """Say on standard error who judges by default, and fetch that model where it is missing.

    Raises:
        UsageError: the local engine is not installed.
        JudgeError: the model cannot be fetched.
    """
    from judge.run.setup import DEFAULT_MODEL

    if settings.model:
        return
    _need_engine()
    name = DEFAULT_MODEL.partition(":")[2]
    from judge.weights.store import path

    if path(name) is None:
        from judge.cli.models import fetch

        typer.echo(f"judge: no --model named; fetching the default judge {name} once", err=True)
        fetch(name)
    if not quiet:
        typer.echo(f"judge: no --model named; {DEFAULT_MODEL} judges, {KNOWN_FOR}", err=True)


def _need_engine() -> None:
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        raise UsageError(
            "no --model named, and the embedded engine is not installed. Either "
            "pip install 'judge[local]', or name a model: --model openai:gpt-4o "
            "(with OPENAI_API_KEY, or OPENAI_BASE_URL for your own server)"
        )
