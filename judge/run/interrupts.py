"""Signals that end a run: once to finish what is under way, twice to stop, thrice to be gone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from judge.errors import Exit

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_ALWAYS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While in use, calls `interrupt(again)` for the first (False) and the second signal (True).

    The third ends the process on the spot, for a run that hangs in the second. Off the main thread,
    where Python allows no signal handlers, signals are left alone.
    """

    def __init__(self, interrupt: Callable[[bool], None]) -> None:
        self._interrupt = interrupt
        self._count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # `nohup` ignores the hang-up for us. A script's `&` ignores Ctrl-C, and so what
                # somebody sends by hand to end the run in good order: that is heard.
                if number in _ALWAYS or signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._came)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _came(self, *_: object) -> None:
        self._count += 1
        if self._count > 2:
            os._exit(int(Exit.INTERRUPTED))
        self._interrupt(self._count > 1)
