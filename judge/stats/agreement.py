"""Agreement of raters: percent agreement, kappas, Krippendorff's alpha, and their count table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal

from judge.stats.classification import Weights, counted, defined, kappas

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = Sequence[Sequence[int]] | NDArray[np.int64]

Level = Literal["nominal", "ordinal", "interval", "ratio"]

# Sums of shares in floating point miss 1 by less than this.
_ROUNDING = 1e-12


def count_table(
    ratings: Sequence[Sequence[Hashable]], classes: Sequence[Hashable]
) -> NDArray[np.int64]:
    """How many raters put each item (row) in each class (column, in the order of `classes`).

    Items may have different numbers of ratings, also none. A rating that is not among the classes
    is left out: name every class that shall count.

    Raises:
        ValueError: a class is named twice.
    """
    import numpy as np

    columns = {name: number for number, name in enumerate(classes)}
    if len(columns) != len(classes):
        raise ValueError(f"classes are named once each, not {list(classes)}")
    table = np.zeros((len(ratings), len(classes)), dtype=np.int64)
    for row, answers in enumerate(ratings):
        for answer in answers:
            if answer in columns:
                table[row, columns[answer]] += 1
    return table


def percent_agreement(counts: Counts) -> float | None:
    """The share of agreeing pairs of raters, averaged over items; in [0, 1].

    `counts` holds items x classes: how many raters chose the class. An item with r ratings, n_k of
    them in class k, agrees to sum_k n_k (n_k - 1) / (r (r - 1)); the mean runs over the items with
    two ratings or more, each with the same weight however many raters it has. It is the observed
    agreement of Fleiss (1971), equation 2, and NormAd's PPA (table 3). None where no item has two.
    """
    import numpy as np

    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=-1) >= 2]
    raters = table.sum(axis=-1)
    shares = (table * (table - 1)).sum(axis=-1) / (raters * (raters - 1))
    return float(shares.mean()) if len(shares) else None


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


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Weights = "none",
    order: Sequence[Hashable] | None = None,
) -> float | None:
    """Cohen's kappa of two raters' answers to the same items, in [-1, 1]; see `kappas`.

    None without items, and where both raters gave one and the same answer throughout.

    Args:
        first: one rater's answers.
        second: the other's, to the same items in the same order.
        weights: how much an answer further off in `order` disagrees.
        order: the answers from one end of their scale to the other; weights need it.

    Raises:
        ValueError: the raters' answers differ in number; weights without an order; an order that
            names an answer twice or lacks one.
    """
    if weights != "none" and order is None:
        raise ValueError(f"{weights} weights need the order of the answers")
    classes = list(dict.fromkeys([*first, *second])) if order is None else order
    return defined(kappas(counted(first, second, classes), weights))


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


def krippendorff_alpha(
    counts: Counts, *, level: Level = "nominal", values: Sequence[float] | None = None
) -> float | None:
    """1 - D_o / D_e: observed over expected disagreement within items.

    Krippendorff (2011), "Computing Krippendorff's alpha-reliability", sections C and E, from the
    matrix of coincidences: each ordered pair of an item's m ratings counts 1 / (m - 1). NormAd
    (4.4, table 4) reports it. At most 1, 0 at chance, below 0 where raters disagree systematically.
    None where no item has two ratings, and where all ratings of such items are of one class.

    Args:
        counts: items x classes: how many raters chose the class. An item may lack ratings; one with
            fewer than two drops out.
        level: the scale. For `ordinal` the columns stand in the scale's order.
        values: each column's number, rising; for `interval` and `ratio` (there 0 or more).

    Raises:
        ValueError: `interval` or `ratio` without as many rising values as there are classes, or a
            negative value on a ratio scale.
    """
    import numpy as np

    table = np.asarray(counts, dtype=np.float64)
    if level in ("interval", "ratio"):
        if values is None or list(values) != sorted(set(values)):
            raise ValueError(f"{level} values rise from class to class, not {values}")
        if len(values) != table.shape[1]:
            raise ValueError(f"{len(values)} values for {table.shape[1]} classes")
        if level == "ratio" and values[0] < 0:
            raise ValueError(f"values of a ratio scale start at 0, not at {values[0]}")
    table = table[table.sum(axis=1) >= 2]
    ratings = table.sum(axis=1)
    pairs = table.T @ (table / (ratings - 1)[:, None]) - np.diag(
        (table / (ratings - 1)[:, None]).sum(axis=0)
    )
    totals = table.sum(axis=0)
    apart = _squared_distances(totals, level, values)
    expected = float(totals @ apart @ totals)
    return 1 - (totals.sum() - 1) * float((pairs * apart).sum()) / expected if expected else None


def _squared_distances(
    totals: NDArray[np.float64], level: Level, values: Sequence[float] | None
) -> NDArray[np.float64]:
    """(classes, classes): Krippendorff's squared difference of two classes, 0 on the diagonal."""
    import numpy as np

    if level == "nominal":
        return 1.0 - np.eye(len(totals))
    if level == "ordinal":
        # The ratings between two classes, and half of those in them.
        places = np.cumsum(totals) - totals / 2
    else:
        places = np.asarray(values, dtype=np.float64)
    apart: NDArray[np.float64] = places[:, None] - places
    if level == "ratio":
        sums = places[:, None] + places
        apart = np.divide(apart, sums, out=np.zeros_like(apart), where=sums > 0)
    return apart**2
