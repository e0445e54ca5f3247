"""From votes to what they come to, and when no further vote can change it.

A vote says `pass` or `fail`, or one of a rubric's answers (from the best to the worst) where those
count for themselves; or it is undecided: `abstain`, `unreadable`, `error`.
"""

from __future__ import annotations

from collections.abc import Sequence

PASS_OR_FAIL = ("pass", "fail")


def decide(said: Sequence[str], asked: int, answers: Sequence[str] = PASS_OR_FAIL) -> str:
    """What `said` comes to, out of `asked` votes: one of `answers`, or one of the undecided.

    It is what more than half of the votes asked say, else `abstain`; lost votes count as asked.
    With no readable vote at all it is `error` if any vote is, else `unreadable`.

    Raises:
        ValueError: fewer than one vote asked, or more said than that.
    """
    if asked < 1 or len(said) > asked:
        raise ValueError(f"{len(said)} opinions of {asked} votes asked")
    if not _readable(said):
        return "error" if "error" in said else "unreadable"
    return next((one for one in answers if said.count(one) > asked // 2), "abstain")


def settled(said: Sequence[str], asked: int, answers: Sequence[str] = PASS_OR_FAIL) -> bool:
    """Whether the votes still to come give the same outcome whatever they say."""
    return _settled([said.count(one) for one in answers], asked - len(said), asked, _readable(said))


def needed(said: Sequence[str], asked: int, answers: Sequence[str] = PASS_OR_FAIL) -> int:
    """The least number of further votes, each one of `answers`, that could settle the matter.

    0 when it is settled. Asking so many at once never asks a vote too many, unless votes abstain.
    """
    missing = asked - len(said)
    alike, apart = ([said.count(one) for one in answers] for _ in range(2))
    for more in range(missing):
        readable = more > 0 or _readable(said)
        if any(_settled(counts, missing - more, asked, readable) for counts in (alike, apart)):
            return more
        # Soonest, votes settle it by all saying the same, or by leaving no answer a majority.
        alike[alike.index(max(alike))] += 1
        apart[apart.index(min(apart))] += 1
    return missing


def _settled(counts: Sequence[int], missing: int, asked: int, readable: bool) -> bool:
    most = max(counts)
    return missing == 0 or most > asked // 2 or (readable and most + missing <= asked // 2)


def _readable(said: Sequence[str]) -> bool:
    return any(one not in ("unreadable", "error") for one in said)
