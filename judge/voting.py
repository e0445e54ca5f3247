"""Counts votes: the outcome of opinions, and how many further votes could settle it.

An opinion is `pass` or `fail`, or one of a rubric's answers (from best to worst) if votes are
counted by answer; or it is undecided: `abstain`, `unreadable`, `error`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

PASS_OR_FAIL = ("pass", "fail")


def decide(opinions: Sequence[str], votes: int, answers: Sequence[str] = PASS_OR_FAIL) -> str:
    """The outcome of the opinions: the answer of more than half of the votes, else `abstain`.

    Lost votes count, too. Without a readable vote the outcome is `error` if any vote is, else
    `unreadable`.

    Raises:
        ValueError: fewer than one vote, or more opinions than votes.
    """
    if votes < 1 or len(opinions) > votes:
        raise ValueError(f"{len(opinions)} opinions of {votes} votes")
    if not _readable(opinions):
        return "error" if "error" in opinions else "unreadable"
    return next((answer for answer in answers if opinions.count(answer) > votes // 2), "abstain")


def needed(opinions: Sequence[str], votes: int, answers: Sequence[str] = PASS_OR_FAIL) -> int:
    """The least number of further votes, each one of `answers`, that could settle the outcome.

    0 if further votes cannot change it. Asking so many at once never asks a vote too many, unless
    votes abstain.
    """
    counts = [opinions.count(answer) for answer in answers]
    open_votes, majority, most = votes - len(opinions), votes // 2 + 1, max(counts)
    for further in range(open_votes):
        # Votes settle it soonest if all are the same, or if no answer can reach a majority.
        evenly = max(most, ceil((sum(counts) + further) / len(counts)))
        divided = evenly + open_votes - further < majority
        if most + further >= majority or (divided and (further > 0 or _readable(opinions))):
            return further
    return open_votes


def _readable(opinions: Sequence[str]) -> bool:
    return any(opinion not in ("unreadable", "error") for opinion in opinions)
