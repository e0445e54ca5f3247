"""Holm's adjustment: p-values of several tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value as it has to be read among the others, in the order given.

    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6: the k-th smallest of m (from 1) becomes the largest of (m - i + 1) p_i over i up
    to k, and at most 1. To call those at most alpha real is wrong about any of them with a
    probability of at most alpha, however the tests depend on one another.

    Raises:
        ValueError: a p-value outside [0, 1].
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise ValueError("a p-value lies outside [0, 1]")
    adjusted = [0.0] * len(p_values)
    least = 0.0
    ordered = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, place in enumerate(ordered):
        least = max(least, min(1.0, (len(ordered) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted
