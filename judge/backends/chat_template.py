"""A bound for chat templates, which are programs that come with a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from judge.errors import Denied

MAX_STEPS = 100_000
"""Lines of a template's code that one prompt may take; the usual ones take some hundred."""

_FILE = "<template>"
"""How Jinja names compiled templates."""


@contextmanager
def bounded(model: str) -> Iterator[None]:
    """End a template that goes on for too long; nothing else could, since it runs on a thread.

    Raises:
        Denied: it took more than `MAX_STEPS`; names the `model`.
    """
    steps = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != _FILE:
            return None
        steps += 1
        if steps > MAX_STEPS:
            raise Denied(f"{model}: the chat template takes more than {MAX_STEPS:,} steps")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
