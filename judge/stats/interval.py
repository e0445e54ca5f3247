"""A number with its interval: what every measure of this room is given out as."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, over how many items (`n`), out of how many (`of`).

    `value` is None where the statistic is undefined; `low` and `high` are None where no interval
    could be had.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    of: int = 0

    def as_json(self) -> dict[str, Any]:
        """The fields, numbers rounded to 6 places."""
        return {
            name: round(number, 6) if isinstance(number, float) else number
            for name, number in asdict(self).items()
        }
