"""Which settings go with which engine."""

from __future__ import annotations

from judge.errors import UsageError
from judge.settings import Settings


def refuse_stray(settings: Settings) -> None:
    """See that nothing is set that only the Ray engine heeds, where another is to work.

    Raises:
        UsageError: naming the flag.
    """
    if settings.engine == "ray":
        return
    for flag, value in (("--address", settings.address), ("--workers", settings.workers)):
        if value is not None:
            raise UsageError(
                f"{flag} {value} speaks of Ray workers, and the engine is {settings.engine}; "
                "add --engine ray"
            )


def refuse_validation_only(settings: Settings, command: str) -> None:
    """See that nothing is set that another command than `judge validate` would not heed.

    Raises:
        UsageError: naming the setting.
    """
    if settings.engine == "ray":
        raise UsageError(
            f"engine = ray is for judge validate, and {command} would not heed it: take "
            "JUDGE_ENGINE out of the environment, or engine out of judge.toml"
        )
    refuse_stray(settings)
