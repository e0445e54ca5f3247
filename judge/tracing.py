"""LangSmith's tracing, which uploads record texts: off in this process unless judge is told.

LangChain and LangGraph trace as soon as LANGSMITH_TRACING, or an older name of it, is set.
"""

from __future__ import annotations

import os
import sys

TOLD = "JUDGE_TRACING"
"""Environment variable that leaves tracing as the environment has it, when it is 1 or true."""

SWITCHES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
"""The variables that LangSmith looks at."""

_said = False


def guard_tracing() -> bool:
    """Switch tracing off for this process, before the first record; whether it is on.

    It is on only where the environment asks for it and judge was told so; then one line on stderr
    says where the records go. May be called again and again.
    """
    global _said
    asking = [name for name in SWITCHES if os.environ.get(name, "").strip().lower() == "true"]
    if not asking:
        return False
    if os.environ.get(TOLD, "").strip().lower() in ("1", "true"):
        if not _said:
            _said = True
            sys.stderr.write(f"judge: tracing is on ({TOLD}): record texts go to LangSmith\n")
        return True
    for name in asking:
        os.environ[name] = "false"
    if (langsmith := sys.modules.get("langsmith")) is not None:
        # It may have read the environment before.
        langsmith.configure(enabled=False)
    return False
