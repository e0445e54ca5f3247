"""What came of a client's ask: a reply, or why there is none."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

from judge.judging.client import Unread
from judge.replies import YesNo
from judge.verdict import Usage


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
