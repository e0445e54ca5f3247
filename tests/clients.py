"""Clients of scripted models, and the result of a call: a reply, or the reason for none."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.backends.scripted import ScriptedBackend
from judge.errors import Unread
from judge.judging.client import Client
from judge.judging.limits import Budget
from judge.questions.replies import YesNo
from judge.verdict import Usage


def scripted(folder: Path, *replies: Mapping[str, Any], name: str = "a", **more: Any) -> Client:
    """A client whose model's script is in the folder; it does not re-ask."""
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({"replies": replies}), "utf-8")
    given = {"cache": None, "budget": Budget(), "limit": 8, "reasks": 0, "backoff": 0, **more}
    return Client(f"scripted:{name}", ScriptedBackend(str(path)), **given)


@dataclass(frozen=True)
class Outcome:
    """What came of an ask."""

    reply: YesNo | None
    usage: Usage
    trouble: str | None = None
    detail: str | None = None


async def outcome_of(asking: Awaitable[tuple[YesNo, Usage]]) -> Outcome:
    try:
        return Outcome(*await asking)
    except Unread as error:
        return Outcome(None, error.usage, error.trouble, error.detail)
