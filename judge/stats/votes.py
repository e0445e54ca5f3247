"""Votes on an item: majorities, effective votes of a panel, flips over seeds, position effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from judge.errors import UsageError
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.intervals import Estimate


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
    requires 4 of 5. An answer such as "unanswerable" can win as any other. The order of the
    answers never decides.
    """
    winners = majorities([{answer} for answer in answers], threshold)
    return winners[0] if len(winners) == 1 else None


def majorities(
    selections: Sequence[Collection[str]], threshold: Threshold = MORE_THAN_HALF
) -> list[str]:
    """The answers that enough raters selected, sorted, where a rater may select several.

    Each selection is one rater's; a rater counts once for an answer. CulturalBench (3.2, 3.3): one
    winner makes a single-mode question, several a multi-mode one, none drops the question.
    """
    votes = Counter(answer for selection in selections for answer in set(selection))
    return sorted(a for a, count in votes.items() if threshold.holds(count, len(selections)))


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """Shares of the items that were answered in both orders.

    `changed`: another alternative was chosen. `first`: the alternative named first was chosen in
    both orders, `last`: the one named last. Noise without a leaning gives as many `first` as
    `last`; consistent answers to two alternatives give neither.
    """

    changed: Estimate
    first: Estimate
    last: Estimate


def position_effect(
    answers: Sequence[tuple[str | None, str | None]],
    order: Sequence[str],
    clusters: Sequence[Hashable],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> PositionEffect:
    """What turning the order round did; for two alternatives `changed` is the conflict rate of Wang
    et al. (2024), "Large Language Models are not Fair Evaluators", ACL 2024.

    Args:
        answers: each item's answer in the order given and in the order turned round, both by the
            alternative's own name; None for no answer, and the item is left out.
        order: the alternatives in the order given, two or more.
        clusters: one name for each item; items of the same name are drawn together.
        draws: how many resamples.
        seed: the same seed gives the same intervals.

    Returns:
        Each share over `n` items answered in both orders, out of `of`; `value` is None where there
        is none.

    Raises:
        ValueError: lengths differ, fewer than two alternatives, or an answer is none of them.
    """
    if len(order) < 2:
        raise ValueError(f"{len(order)} alternatives have no order")
    places = {name: place for place, name in enumerate(order)}
    both: list[tuple[int, int] | None] = []
    for given, turned in answers:
        for answer in (given, turned):
            if answer is not None and answer not in places:
                raise ValueError(f"answer {answer!r} is none of {', '.join(order)}")
        both.append(None if given is None or turned is None else (places[given], places[turned]))
    resamples = Resamples(clusters, draws=draws, seed=seed)
    last = len(order) - 1

    def share(hit: tuple[int, int]) -> Estimate:
        hits = [None if pair is None else float(pair == hit) for pair in both]
        return share_estimate(hits, resamples)

    changed = [None if pair is None else float(pair[0] != pair[1]) for pair in both]
    return PositionEffect(
        changed=share_estimate(changed, resamples), first=share((0, last)), last=share((last, 0))
    )
