"""Krippendorff's alpha: agreement of any number of raters, on any scale, with answers missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from judge.stats.pairwise import Counts

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
