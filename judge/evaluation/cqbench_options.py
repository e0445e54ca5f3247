"""Attitudes that CQ-Bench takes together: levels of severity, and the neutral stance."""

from __future__ import annotations

from collections.abc import Sequence

from judge.evidence import fold

SEVERITY: tuple[tuple[str, str], ...] = (
    ("very frequently", "quite frequently"),
    ("not frequently", "not at all frequently"),
    ("not often", "not at all often"),
    ("definitely should have the right", "probably should have the right"),
    ("definitely should not have the right", "probably should not have the right"),
)
"""Attitudes that differ only in severity: what the "merged" figures take as one.

CQ-Bench, section 3.2 and table 2, name two of them; the whole list is that of the authors' released
evaluation script. Scales outside it (`very important`, `not at all`) stay apart there and here.
"""

NEUTRAL = frozenset(
    {
        "neither agree nor disagree",
        "neither disagree nor agree",
        "neither agree or disagree",
        "neither agree/disagree",
        "hard to say",
        "neutral",
    }
)
"""The stance between agreeing and disagreeing, in the spellings of the released value files.

CQ-Bench, appendix B.1, speaks of `neither agree nor disagree`; `hard to say` is the middle of the
scale of World Values Survey questions 122 to 129.
"""

_GROUP = {attitude: " / ".join(group) for group in SEVERITY for attitude in group}


def folded(text: str) -> str:
    """A statement or attitude as it is compared: without case, spelling of quotes, final stop."""
    return fold(text).casefold().rstrip(". ")


def merged(attitude: str) -> str:
    """The attitude, folded, or the group of severities that it belongs to."""
    plain = folded(attitude)
    return _GROUP.get(plain, plain)


def is_neutral(attitude: str) -> bool:
    """Whether it is the stance between the two sides."""
    return folded(attitude) in NEUTRAL


def without_neutral(options: Sequence[str]) -> list[str]:
    """The options less the neutral ones, in their order."""
    return [option for option in options if not is_neutral(option)]
