"""Counts votes: the outcome of opinions, and how many further votes could settle it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

Opinion = tuple[str, str | None]
"""The verdict of a vote, and, if votes are counted by answer, a decided one's answer.

They are apart because an answer can be named like a verdict: `error`.
"""

PASS_OR_FAIL = ("pass", "fail")

_LOST = ("unreadable", "error")
_UNDECIDED = ("abstain", *_LOST)


def decide(opinions: Sequence[Opinion], votes: int) -> Opinion:
    """The outcome of the opinions: that of more than half of the votes, else `abstain`.

    Lost votes count, too. Without a readable vote the outcome is `error` if any vote is, else
    `unreadable`.

    Raises:
        ValueError: fewer than one vote, or more opinions than votes.
    """
    if votes < 1 or len(opinions) > votes:
        raise ValueError(f"{len(opinions)} opinions of {votes} votes")
    if not _readable(opinions):
        return "error" if ("error", None) in opinions else "unreadable", None
    counts = _decided(opinions).items()
    return next((opinion for opinion, n in counts if n > votes // 2), ("abstain", None))


def needed(opinions: Sequence[Opinion], votes: int, choices: int = 2) -> int:
    """The least number of further votes, each for one of so many `choices`, that could settle the
    outcome.

    0 if further votes cannot change it. Asking so many at once never asks a vote too many, unless
    votes abstain.
    """
    counts = _decided(opinions)
    open_votes, majority = votes - len(opinions), votes // 2 + 1
    most = max(counts.values(), default=0)
    for further in range(open_votes):
        # Votes settle it soonest if all are the same, or if no answer can reach a majority.
        evenly = max(most, ceil((counts.total() + further) / choices))
        divided = evenly + open_votes - further < majority
        if most + further >= majority or (divided and (further > 0 or _readable(opinions))):
            return further
    return open_votes


def _decided(opinions: Sequence[Opinion]) -> Counter[Opinion]:
    return Counter(opinion for opinion in opinions if opinion[0] not in _UNDECIDED)


def _readable(opinions: Sequence[Opinion]) -> bool:
    return any(verdict not in _LOST for verdict, _ in opinions)
