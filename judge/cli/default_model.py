"""The judge when none is named: fetched if it is not there yet, and named for what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.settings import Settings


def known_for() -> str:
    """What the profile that comes with the default model says of its agreement with labels."""
    from judge.profiles import shipped

    told = []
    for check, judges in sorted(shipped().judges.items()):
        kappa = judges[0].measures["kappa"]["value"]
        told.append(f"{check} {'–' if kappa is None else format(kappa, '.2f')}")
    return f"a 1.5B model; kappa with labels (docs/calibration.md): {', '.join(told)}"


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
        typer.echo(f"judge: no --model named; {DEFAULT_MODEL} judges, {known_for()}", err=True)


def _need_engine() -> None:
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        raise UsageError(
            "no --model named, and the embedded engine is not installed. Either "
            "pip install 'judge[local]', or name a model: --model openai:gpt-4o "
            "(with OPENAI_API_KEY, or OPENAI_BASE_URL for your own server)"
        )
