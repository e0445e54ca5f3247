"""The majority of the votes on an item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from judge.errors import UsageError


@dataclass(frozen=True, slots=True)
class Threshold:
    """How many of an item's raters make a majority.

    `share` of them, in (0, 1], and at least `least`; more than the share where `strict`. Shares are
    fractions, so that four of five is 0.8 exactly.
    """

    share: Fraction
    least: int = 1
    strict: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UsageError(f"majority {self.share}: a share lies above 0 and at most at 1")
        if self.least < 1:
            raise UsageError(f"majority {self.least}/...: it takes at least one vote")

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """`0.75`, `75%` (that share or more), `4/5` (at least 4, and at least four fifths), `half`
        (more than half).

        Raises:
            UsageError: none of these, or a share outside (0, 1].
        """
        if text.strip().lower() == "half":
            return MORE_THAN_HALF
        number = text.strip().removesuffix("%")
        percent = number != text.strip()
        try:
            if "/" in number:
                votes, of = (int(part) for part in number.split("/"))
                return cls(Fraction(votes, of), least=votes)
            return cls(Fraction(number) / (100 if percent else 1))
        except (ValueError, ZeroDivisionError):
            raise UsageError(
                f"majority '{text}': give a share (0.75, 75%), votes (4/5), or half"
            ) from None

    def holds(self, votes: int, of: int) -> bool:
        """Whether that many votes out of so many are enough."""
        needed = self.share * of
        return votes >= self.least and (votes > needed if self.strict else votes >= needed)


MORE_THAN_HALF = Threshold(Fraction(1, 2), strict=True)
"""The plain majority of CALI (3.6). A single rater is a majority of one: k of n asks for more."""


def majority(answers: Sequence[str], threshold: Threshold = MORE_THAN_HALF) -> str | None:
    """The one answer that enough raters gave; None (CALI's Diverge) where there is none or several.

    CALI (3.6) takes the majority and keeps the items that 75 % agree on; CulturalBench (3.3)
    requires 4 of 5. The order of the answers never decides.
    """
    winners = majorities([{answer} for answer in answers], threshold)
    return winners[0] if len(winners) == 1 else None


def majorities(
    selections: Sequence[Collection[str]], threshold: Threshold = MORE_THAN_HALF
) -> list[str]:
    """The answers that enough raters selected, sorted, where a rater may select several.

    CulturalBench (3.2, 3.3): one winner makes a single-mode question, several a multi-mode one.
    """
    votes = Counter(answer for selection in selections for answer in set(selection))
    return sorted(a for a, count in votes.items() if threshold.holds(count, len(selections)))
