"""A mean over items, or a share of them, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from judge.stats.bootstrap import Resamples
from judge.stats.confusion import ratio
from judge.stats.exact_binomial import exact_interval
from judge.stats.interval import Estimate


def mean_estimate(
    values: Sequence[float | None], resamples: Resamples, *, level: float = 0.95
) -> Estimate:
    """The mean of the values that are there, with a BCa interval over clusters.

    Args:
        values: one for each item of `resamples`, None for an item that the mean leaves out.
        resamples: the items' clusters and draws.
        level: the interval's nominal coverage, in (0, 1).

    Returns:
        `n` values out of `of` items; `value` is None where there is no value, the interval as in
        `Resamples.estimate`, clusters without a value being none.

    Raises:
        ValueError: not one value for each item, or level outside (0, 1).
    """
    import numpy as np

    if len(values) != len(resamples.of_item):
        raise ValueError(f"{len(values)} values for {len(resamples.of_item)} items")
    rows = np.array([(value or 0.0, float(value is not None)) for value in values])
    sums = resamples.sums(rows.reshape(len(values), 2))
    present = [value is not None for value in values]
    n = sum(present)
    found = resamples.estimate(ratio(sums[:, 0], sums[:, 1]), n=n, of=len(values), level=level)
    # Clusters of which the mean leaves every item out are none of its own.
    few = len(set(resamples.of_item[present].tolist())) < resamples.fewest
    return Estimate(found.value, n=n, of=found.of) if few else found


def share_estimate(
    values: Sequence[float | None], resamples: Resamples, *, level: float = 0.95
) -> Estimate:
    """`mean_estimate` of hits and misses (1 and 0) or of shares, each in [0, 1].

    Where all are 0, or all are 1, no draw differs from the sample and a bootstrap has no interval;
    it is then the exact binomial one of as many trials as there are clusters, the fewest that the
    items can be worth.

    Raises:
        ValueError: as `mean_estimate`, and for a value outside [0, 1].
    """
    present = [
        (value, cluster)
        for value, cluster in zip(values, resamples.of_item.tolist(), strict=True)
        if value is not None
    ]
    if any(not 0 <= value <= 1 for value, _ in present):
        raise ValueError("a share lies outside [0, 1]")
    estimate = mean_estimate(values, resamples, level=level)
    kinds = {value for value, _ in present}
    if kinds not in ({0.0}, {1.0}):
        return estimate
    trials = len({cluster for _, cluster in present})
    low, high = exact_interval(trials if estimate.value else 0, trials, level=level) or (None, None)
    return Estimate(estimate.value, low, high, n=estimate.n, of=estimate.of)
