"""Waiting for what other processes and threads do, for a minute at most."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> None:
    """Return when the condition holds; `what` is the error message if it never does."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def wait_for_lines(path: Path, count: int, seconds: float = 60.0) -> None:
    def written() -> bool:
        return path.exists() and path.read_bytes().count(b"\n") >= count

    wait_for(written, f"{path.name} has too few lines", seconds)
