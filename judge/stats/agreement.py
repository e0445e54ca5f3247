"""Agreement of raters: percent agreement, kappas, Krippendorff's alpha, and their count table."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = Sequence[Sequence[int]] | NDArray[np.int64]


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


Weights = Literal["none", "linear", "quadratic"]


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Weights = "none",
    order: Sequence[Hashable] | None = None,
) -> float | None:
    """1 - O / E: observed over expected disagreement of two raters' answers to the same items.

    O is the mean disagreement of the items' two answers, E that of all answers of the one with all
    of the other. Two answers disagree by 1 if they differ (Cohen 1960); weighted, by their distance
    in `order` (linear) or its square (quadratic), Cohen (1968), "Weighted kappa", Psychological
    Bulletin 70(4).

    In [-1, 1]. None without items, and where both raters gave one and the same answer throughout
    (E = 0). Written out because a bootstrap calls it thousands of times: scikit-learn's
    `cohen_kappa_score`, which the tests hold it against, takes a millisecond a call and seconds to
    import.

    Raises:
        ValueError: the raters' answers differ in number; weights without an order; an order that
            names an answer twice or lacks one.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} answers and {len(second)}: raters answer the same items")
    if weights != "none" and order is None:
        raise ValueError(f"{weights} weights need the order of the answers")
    places = _places(order, {*first, *second})
    if len({*first, *second}) < 2:
        return None

    def distance(one: Hashable, other: Hashable) -> int:
        if weights == "none":
            return int(one != other)
        apart = abs(places[one] - places[other])
        return apart if weights == "linear" else apart**2

    observed = sum(
        count * distance(one, other)
        for (one, other), count in Counter(zip(first, second, strict=True)).items()
    )
    rows, columns = Counter(first), Counter(second)
    expected = sum(
        rows[one] * columns[other] * distance(one, other) for one in rows for other in columns
    )
    return 1 - observed * len(first) / expected


def _places(order: Sequence[Hashable] | None, given: set[Hashable]) -> dict[Hashable, int]:
    if order is None:
        return {}
    places = {answer: place for place, answer in enumerate(order)}
    if len(places) != len(order):
        raise ValueError(f"the order names an answer twice: {list(order)}")
    if missing := sorted(str(answer) for answer in given - set(places)):
        raise ValueError(f"the order {list(order)} lacks {', '.join(missing)}")
    return places


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


Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    counts: Counts, *, level: Level = "nominal", values: Sequence[float] | None = None
) -> float | None:
    """1 - D_o / D_e: observed over expected disagreement within items (package `krippendorff`).

    `counts` holds items x classes: how many raters chose the class; for `ordinal` the columns are
    in the scale's order, for `interval` `values` gives each column's number, rising. Raters that
    are missing from an item are simply not counted; items with fewer than two ratings drop out.
    Krippendorff (2011), "Computing Krippendorff's alpha-reliability"; NormAd (4.4, table 4).

    At most 1, 0 at chance, and below 0 where raters disagree systematically. None where no item has
    two ratings, and where all ratings of such items are of one class (D_e = 0).

    Raises:
        ValueError: `interval` without as many rising values as there are classes.
    """
    import numpy as np
    from krippendorff import alpha

    table = np.asarray(counts, dtype=np.int64)
    domain = list(range(table.shape[1])) if values is None else list(values)
    if level == "interval" and (values is None or domain != sorted(set(domain))):
        raise ValueError(f"interval values rise from class to class, not {values}")
    if len(domain) != table.shape[1]:
        raise ValueError(f"{len(domain)} values for {table.shape[1]} classes")
    paired = table[table.sum(axis=1) >= 2]
    if (paired.sum(axis=0) > 0).sum() < 2:
        return None
    return float(alpha(value_counts=paired, value_domain=domain, level_of_measurement=level))
