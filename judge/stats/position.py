"""Position effect: whether an answer depends on the order in which alternatives were named."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from judge.stats.bootstrap import Resamples
from judge.stats.interval import Estimate
from judge.stats.mean import share_estimate


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
