"""Kappa for many raters: Fleiss's (fixed marginals), Randolph's (free marginals), and per class."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from judge.stats.pairwise import percent_agreement

if TYPE_CHECKING:
    from judge.stats.pairwise import Counts

R = TypeVar("R", bound=Hashable)

# Sums of shares in floating point miss 1 by less than this.
_ROUNDING = 1e-12


def fleiss_kappa(counts: Counts) -> float | None:
    """Fleiss's kappa, also called fixed-marginal multirater kappa: (P - E) / (1 - E).

    `counts` holds items x classes: how many raters chose the class. P is `percent_agreement`; E is
    the sum of squares of the classes' shares p_k, where p_k is the mean over items of the share of
    an item's raters who chose k. With the same number of raters for every item this is Fleiss
    (1971), "Measuring nominal scale agreement among many raters", Psychological Bulletin 76(5),
    equations 2-7; for different numbers it is Gwet's extension (2014, *Handbook of Inter-Rater
    Reliability*, 4th edition), with one difference: items with a single rating count
    neither in P nor in p_k. NormAd (4.3, table 3) reports it.

    In [-1 / (r - 1), 1] with r the smallest number of raters (from 2) of an item. None where no
    item has two ratings, and where all ratings are of one class (E = 1: there was nothing to
    disagree about).
    """
    import numpy as np

    observed = percent_agreement(counts)
    if observed is None:
        return None
    table = np.asarray(counts, dtype=np.float64)
    raters = table.sum(axis=1)
    paired = raters >= 2
    shares = (table[paired] / raters[paired, None]).mean(axis=0)
    expected = float((shares**2).sum())
    return None if expected > 1 - _ROUNDING else (observed - expected) / (1 - expected)


def randolph_kappa(counts: Counts) -> float | None:
    """Free-marginal multirater kappa: (P - 1/q) / (1 - 1/q) with q classes, the table's columns.

    Randolph (2005), "Free-marginal multirater kappa: an alternative to Fleiss' fixed-marginal
    multirater kappa". P is `percent_agreement`. Chance is one in q, whatever was chosen: so the
    columns are to be all the classes that raters could choose, also those that nobody did.

    In [-1 / (q - 1), 1]; None where no item has two ratings, and with fewer than two classes.
    """
    import numpy as np

    observed = percent_agreement(counts)
    classes: int = np.asarray(counts).shape[-1]
    if observed is None or classes < 2:
        return None
    return (observed - 1 / classes) / (1 - 1 / classes)


def class_kappa(counts: Counts, column: int) -> float | None:
    """Fleiss's kappa of the question "this class or not", for the class in that column.

    CALI (3.6) reports it for entailment, neutral and contradiction, after SNLI (Bowman et al.
    2015). Range and undefined cases as for `fleiss_kappa`; None also where nobody chose the class.

    Raises:
        IndexError: there is no such column.
    """
    import numpy as np

    table = np.asarray(counts, dtype=np.int64)
    chosen = table[:, column]
    return fleiss_kappa(np.stack([chosen, table.sum(axis=1) - chosen], axis=1))


def draw_raters(ratings: Sequence[Sequence[R]], raters: int, *, seed: int = 0) -> list[list[R]]:
    """As many ratings of each item, drawn at random; items with fewer are left with none.

    CALI (3.6) computes kappa with five raters drawn for each question. The draw of an item depends
    on the seed, its place and its ratings only.

    Raises:
        ValueError: fewer than two raters: nobody would be left to agree with.
    """
    if raters < 2:
        raise ValueError(f"{raters} raters cannot agree, draw at least two")
    return [
        random.Random(f"{seed}/{place}").sample(list(answers), raters)
        if len(answers) >= raters
        else []
        for place, answers in enumerate(ratings)
    ]
