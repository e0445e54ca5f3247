"""Pairwise percent agreement: how often two raters of the same item agree, chance left in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = Sequence[Sequence[int]] | NDArray[np.int64]


def percent_agreement(counts: Counts) -> float | None:
    """The share of agreeing pairs of raters, averaged over items; in [0, 1].

    `counts` holds items x classes: how many raters chose the class. An item with r ratings, n_k of
    them in class k, agrees to sum_k n_k (n_k - 1) / (r (r - 1)); the mean runs over the items with
    two ratings or more, each with the same weight however many raters it has. It is the observed
    agreement of Fleiss (1971), equation 2, and NormAd's PPA (table 3). None where no item has two.
    """
    agreements = item_agreements(counts)
    return float(agreements.mean()) if len(agreements) else None


def item_agreements(counts: Counts) -> NDArray[np.float64]:
    """The share of agreeing pairs of each item that has two ratings or more, in their order."""
    import numpy as np

    table = np.asarray(counts, dtype=np.float64)
    raters = table.sum(axis=-1)
    paired = raters >= 2
    table, raters = table[paired], raters[paired]
    shares: NDArray[np.float64] = (table * (table - 1)).sum(axis=-1) / (raters * (raters - 1))
    return shares


def agreement_across(first: Counts, second: Counts) -> float | None:
    """The share of agreeing pairs of one rater from each of two groups, averaged over items.

    Row i of both tables is the same item, column k the same class; with n_k of r raters of the
    first group and m_k of s of the second in class k, the item agrees to sum_k n_k m_k / (r s).
    In [0, 1]; None where no item was rated by both groups. It is the observed agreement between two
    groups of raters in Vanbelle and Albert (2009), "Agreement between two independent groups of
    raters", Psychometrika 74(3).

    Raises:
        ValueError: the tables differ in shape.
    """
    import numpy as np

    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape:
        raise ValueError(f"tables of the same items and classes, not {one.shape}, {other.shape}")
    pairs = one.sum(axis=-1) * other.sum(axis=-1)
    both = pairs > 0
    if not both.any():
        return None
    return float(((one * other).sum(axis=-1)[both] / pairs[both]).mean())
