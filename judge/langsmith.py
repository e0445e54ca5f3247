"""Keeps LangSmith's tracing, which uploads record texts, off for judge's calls by default.

LangChain and LangGraph trace as soon as LANGSMITH_TRACING, or an older name of it, is set.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TOLD = "JUDGE_TRACING"
"""Environment variable that, if 1 or true, leaves tracing as the environment sets it."""

SWITCHES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
"""The variables that LangSmith reads."""

_log = logging.getLogger(__name__)
_warned = False


def tracing() -> bool:
    """Whether the environment asks for traces and JUDGE_TRACING allows them; if so, warns once
    where the records go."""
    global _warned
    if not _asking() or os.environ.get(TOLD, "").strip().lower() not in ("1", "true"):
        return False
    if not _warned:
        _warned = True
        _log.warning("judge: tracing is on (%s): record texts go to LangSmith", TOLD)
    return True


def _asking() -> list[str]:
    return [name for name in SWITCHES if os.environ.get(name, "").strip().lower() == "true"]


@contextmanager
def guarded() -> Iterator[dict[str, Any]]:
    """A context for a call into LangChain without traces, unless `tracing`; yields its `config`.

    Only this call is affected: a program that uses judge keeps its own traces. Its callbacks, which
    may send traces, too, are not passed on.
    """
    if tracing():
        yield {}
        return
    from langsmith import tracing_context

    with tracing_context(enabled=False):
        yield {"callbacks": []}


def guard_tracing() -> None:
    """Switch tracing off in one of judge's own processes, before the first record."""
    if not tracing():
        for name in _asking():
            os.environ[name] = "false"
