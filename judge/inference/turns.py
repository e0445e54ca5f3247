"""Which of several models has the device, so that no two are on it and none waits for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PATIENCE_SECONDS = 0.2
"""A model without calls keeps its turn so long, since records that it answered may ask again."""

LONGEST_TURN_SECONDS = 300.0
"""While another model waits; enough that loading, some seconds, is a small part of it."""


@dataclass(slots=True)
class Turns:
    """Whose turn it is.

    The loaded model goes on while it has calls. When it has none, or has had its longest turn, the
    model that has waited longest is next. Times are seconds of one clock.
    """

    patience: float = PATIENCE_SECONDS
    longest: float = LONGEST_TURN_SECONDS
    holder: str | None = None
    _since: float = 0.0
    _busy: float = 0.0

    def next(self, waiting: Mapping[str, float], now: float) -> str | None:
        """The model to serve now; None: wait a little and ask again.

        Args:
            waiting: models with calls, and since when each has had some.
        """
        if not waiting:
            return None
        others = {name: since for name, since in waiting.items() if name != self.holder}
        if self.holder in waiting:
            # Only what others have waited counts: a turn that nobody minds has no end.
            minded = max(self._since, min(others.values())) if others else now
            if now - minded < self.longest:
                self._busy = now
                return self.holder
        elif self.holder is not None and now - self._busy < self.patience:
            return None
        return self._give(min(others, key=lambda name: others[name]), now)

    def worked(self, now: float) -> None:
        """The holder has just finished a batch."""
        self._busy = now

    def gone(self, name: str) -> None:
        """A model is closed."""
        if self.holder == name:
            self.holder = None

    def _give(self, name: str, now: float) -> str:
        self.holder, self._since, self._busy = name, now, now
        return name
