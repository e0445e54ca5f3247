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
