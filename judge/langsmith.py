"""LangSmith's tracing, which uploads record texts: off for judge's calls unless it is told.

LangChain and LangGraph trace as soon as LANGSMITH_TRACING, or an older name of it, is set.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TOLD = "JUDGE_TRACING"
"""Environment variable that leaves tracing as the environment has it, when it is 1 or true."""

SWITCHES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
"""The variables that LangSmith looks at."""

_log = logging.getLogger(__name__)
_warned = False


def tracing() -> bool:
    """Whether the environment asks for traces and judge was told so too; then one warning says
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
    """Around a call into LangChain: without traces, unless `tracing`; gives the call's `config`.

    Only here: a program that uses judge goes on with its own traces. Its callbacks, which may send
    them too, are not handed on.
    """
    if tracing():
        yield {}
        return
    from langsmith import tracing_context

    with tracing_context(enabled=False):
        yield {"callbacks": []}


def guard_tracing() -> None:
    """Switch tracing off in a process of judge's own, before the first record."""
    if not tracing():
        for name in _asking():
            os.environ[name] = "false"
