"""Flip rate: how often a judge answers otherwise when it is asked again with another seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from judge.stats.bootstrap import Resamples
from judge.stats.interval import Estimate
from judge.stats.mean import share_estimate


def flip_rate(
    answers: Sequence[Sequence[str | None]],
    clusters: Sequence[Hashable],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Mean over items of the share of pairs of seeds whose answers differ, in [0, 1].

    That is the chance that two askings differ, whatever the number of seeds; the share of items
    whose answers are not all the same would grow with it. No answer (None) is an answer of its own:
    a judge that now answers and now does not has changed its mind for the user.

    Args:
        answers: each item's answers, one for each seed; an item with fewer than two is left out.
        clusters: one name for each item; items of the same name are drawn together.
        draws: how many resamples.
        seed: of the bootstrap.

    Returns:
        `n` items with two answers or more, out of `of`; `value` is None where there is none.

    Raises:
        ValueError: answers and clusters differ in length.
    """
    rates = [_differing_pairs(given) for given in answers]
    return share_estimate(rates, Resamples(clusters, draws=draws, seed=seed))


def _differing_pairs(answers: Sequence[str | None]) -> float | None:
    pairs = len(answers) * (len(answers) - 1)
    if not pairs:
        return None
    return 1.0 - sum(count * (count - 1) for count in Counter(answers).values()) / pairs
