"""Agreement of raters: percent agreement, Fleiss's kappa, Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from judge.stats.classification import ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from judge.stats.bootstrap import Resamples
    from judge.stats.intervals import Estimate

# Sums of shares in floating point miss 1 by less than this.
_ROUNDING = 1e-12


def count_table(
    ratings: Sequence[Sequence[Hashable]], classes: Sequence[Hashable]
) -> NDArray[np.int64]:
    """How many raters put each item (row) in each class (column, in the order of `classes`)."""
    import numpy as np

    rows = [[answers.count(name) for name in classes] for answers in ratings]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(classes))


def rater_agreement(
    counts: NDArray[np.int64], resamples: Resamples, *, of: int
) -> dict[str, Estimate]:
    """`pairwise`, `fleiss` and `alpha` of items that two raters or more have rated, with intervals.

    `counts` holds items x classes: how many raters chose the class; `resamples` is over the same
    items, `of` how many items there are with those of a single rater. An item has r ratings, n_k of
    them in class k.

    - `pairwise`, in [0, 1]: the mean over items of sum_k n_k (n_k - 1) / (r (r - 1)), the share of
      agreeing pairs of raters: the observed agreement P of Fleiss (1971), equation 2, and NormAd's
      PPA (table 3). None without an item.
    - `fleiss`: (P - E) / (1 - E), with E the sum of squares of the classes' shares, each the mean
      over items of n_k / r. With the same r for every item this is Fleiss (1971), "Measuring
      nominal scale agreement among many raters", Psychological Bulletin 76(5), equations 2-7; for
      different ones Gwet's extension (2014, *Handbook of Inter-Rater Reliability*, 4th edition).
      NormAd (4.3, table 3) reports it. None also where all ratings are of one class.
    - `alpha`: 1 - observed / expected disagreement, for nominal classes, from the matrix of
      coincidences, in which each ordered pair of an item's ratings counts 1 / (r - 1):
      Krippendorff (2011), "Computing Krippendorff's alpha-reliability", sections B and C; NormAd
      (4.4, table 4). At most 1, 0 at chance. None also where all ratings are of one class.
    """
    import numpy as np

    table = counts.astype(np.float64)
    raters, classes = table.sum(axis=1), table.shape[1]
    alike = (table * (table - 1)).sum(axis=1) / (raters - 1)
    columns = [np.ones(len(table)), alike / raters, raters - alike, table / raters[:, None], table]
    sums = resamples.sums(np.column_stack(columns))
    items, shares, totals = sums[:, 0], sums[:, 3 : 3 + classes], sums[:, 3 + classes :]
    pairwise = ratio(sums[:, 1], items)
    room = 1 - (ratio(shares, items[:, None]) ** 2).sum(axis=1)
    ratings = totals.sum(axis=1)
    stacks = {
        "fleiss": ratio(pairwise - 1 + room, np.where(room > _ROUNDING, room, 0.0)),
        "pairwise": pairwise,
        "alpha": 1 - ratio((ratings - 1) * sums[:, 2], ratings**2 - (totals**2).sum(axis=1)),
    }
    return {name: resamples.estimate(one, n=len(table), of=of) for name, one in stacks.items()}


def coincidences(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(items, K) in, (items, K, K) out: each ordered pair of an item's r ratings, 1 / (r - 1) each.

    Krippendorff's (2011) matrix, item by item; `counts` as for `rater_agreement`. Their sum is
    symmetric, and counts every rating once. Its quadratic-weighted kappa is Krippendorff's alpha
    for interval data but for the factor (n - 1) / n of n ratings in its expected disagreement.
    """
    import numpy as np

    table = counts.astype(np.float64)
    own = table[:, :, None] * np.eye(table.shape[1])
    others = (table.sum(axis=1) - 1)[:, None, None]
    pairs: NDArray[np.float64] = (table[:, :, None] * table[:, None, :] - own) / others
    return pairs
