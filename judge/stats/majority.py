"""The majority of an item's raters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from judge.errors import UsageError


@dataclass(frozen=True, slots=True)
class MajorityRule:
    """How many of an item's raters make a majority.

    A majority is `share` of them, in (0, 1] (more than that if `strict`), and at least `least`.
    Shares are fractions, so that four of five is exactly 0.8.
    """

    share: Fraction
    least: int = 1
    strict: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UsageError(f"majority {self.share}: a share is above 0 and at most 1")
        if self.least < 1:
            raise UsageError(f"majority {self.least}/...: it takes at least one vote")

    @classmethod
    def parse(cls, text: str) -> MajorityRule:
        """Parses `0.75` and `75%` (that share or more), `4/5` (at least 4, and at least four
        fifths), and `half` (more than half).

        Raises:
            UsageError: none of these, or a share outside (0, 1].
        """
        if text.strip().lower() == "half":
            return MORE_THAN_HALF
        number = text.strip().removesuffix("%")
        percent = number != text.strip()
        try:
            if "/" in text:
                votes, of = (int(part) for part in text.split("/"))
                return cls(Fraction(votes, of), least=votes)
            return cls(Fraction(number) / (100 if percent else 1))
        except (ValueError, ZeroDivisionError):
            raise UsageError(
                f"majority '{text}': give a share (0.75, 75%), votes (4/5), or half"
            ) from None

    def holds(self, votes: int, of: int) -> bool:
        """Whether `votes` out of `of` are enough."""
        minimum = self.share * of
        return votes >= self.least and (votes > minimum if self.strict else votes >= minimum)


MORE_THAN_HALF = MajorityRule(Fraction(1, 2), strict=True)
"""The plain majority. A single rater is a majority of one; to require more raters, use `k/n`."""


def majority(answers: Sequence[str], threshold: MajorityRule = MORE_THAN_HALF) -> str | None:
    """The one answer that enough raters gave; None if there is none, or several.

    The order of the answers never decides.
    """
    winners = majorities([{answer} for answer in answers], threshold)
    return winners[0] if len(winners) == 1 else None


def majorities(
    selections: Sequence[Collection[str]], threshold: MajorityRule = MORE_THAN_HALF
) -> list[str]:
    """The answers that enough raters selected, sorted. A rater can select several."""
    votes = Counter(answer for selection in selections for answer in set(selection))
    return sorted(a for a, count in votes.items() if threshold.holds(count, len(selections)))
