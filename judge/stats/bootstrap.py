"""Bootstrap intervals over clusters: items about one record are drawn together or not at all.

Whole clusters are resampled (Davison and Hinkley 1997, *Bootstrap Methods and their Application*,
section 3.8); the interval is the bias-corrected and accelerated one, BCa (Efron 1987, "Better
Bootstrap Confidence Intervals", JASA 82). Plain percentiles fall short with few clusters: in the
simulation of tests/calibration/test_measures.py with 40 records of 4 items, run 1,000 times, they
held the true accuracy, recall and kappa in 88.2, 95.4 and 89.6 % at nominal 95 %, BCa in 92.1, 97.7
and 92.9 %; with 60 records of 3 items 94.8, 92.2 and 94.7 %, and 94.8, 94.1 and 95.0 %.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from judge.stats.classification import ratio
from judge.stats.intervals import Estimate, exact_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


T = TypeVar("T")

# Above this share of undefined draws an interval would speak of the lucky draws only.
_UNDEFINED_AT_MOST = 0.1
# The acceleration needs the statistic without each cluster; blocks of clusters give the same
# number in expectation, and bound the work where there are thousands.
_BLOCKS_AT_MOST = 400
_SAME = 1e-12


class Resamples:
    """A sample, its bootstrap draws and its jackknife, as how often each cluster is in each.

    Made once for some items and used for every statistic of theirs. The rows of the stack are: the
    sample itself, then the draws, then the sample less one block of clusters at a time. A statistic
    of sums over items (a confusion matrix and all that follows from one) takes them for the whole
    stack from one matrix product, `sums`; one that needs the items themselves takes `weights`.
    `estimate` reads the value and its interval off the statistic's values over the stack.

    Args:
        clusters: one name for each item; items of the same name are drawn together.
        draws: how many resamples, each of as many clusters as there are.
        seed: the same seed and the same order of clusters give the same draws.
        fewest: over fewer clusters than these `estimate` gives no interval.

    Raises:
        ValueError: draws is below 1.
    """

    def __init__(
        self,
        clusters: Sequence[Hashable],
        *,
        draws: int = 1000,
        seed: int = 0,
        fewest: int = 1,
    ) -> None:
        import numpy as np

        if draws < 1:
            raise ValueError(f"draws is {draws}, a bootstrap needs at least one")
        numbers: dict[Hashable, int] = {}
        self.of_item = np.array(
            [numbers.setdefault(name, len(numbers)) for name in clusters], dtype=np.intp
        )
        self.clusters = len(numbers)
        self.fewest = fewest
        self._draws = draws
        self._stack = np.vstack(
            [
                np.ones((1, self.clusters)),
                _multiplicities(self.clusters, draws, seed),
                _blocks_left_out(self.clusters),
            ]
        )

    def sums(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of the items' rows: (items, columns) in, (stack, columns) out."""
        import numpy as np

        by_cluster = np.zeros((self.clusters, rows.shape[1]))
        np.add.at(by_cluster, self.of_item, rows)
        return self._stack @ by_cluster

    def weights(self) -> NDArray[np.float64]:
        """How often each item is in each sample of the stack: (stack, items)."""
        return self._stack[:, self.of_item]

    def estimate(
        self, values: NDArray[np.float64], *, n: int, of: int, level: float = 0.95
    ) -> Estimate:
        """The sample's value and its BCa interval, from a statistic's values over the stack.

        Args:
            values: one for each row of the stack, nan where the statistic is undefined.
            n: over how many items the statistic is taken; `of`, out of how many.
            level: the interval's nominal coverage, in (0, 1).

        Returns:
            `value` is None where the statistic is undefined. `low` and `high` are None where it
            is, where there are fewer clusters than `fewest`, where more than a tenth of the draws
            are undefined, and where all draws give the same value: that is one cluster, or a
            statistic at its limit (all answers right), and an interval of no width would claim
            certainty.

        Raises:
            ValueError: level outside (0, 1).
        """
        import numpy as np

        if not 0 < level < 1:
            raise ValueError(f"level is {level}, it lies between 0 and 1")
        value = float(values[0])
        if np.isnan(value):
            return Estimate(None, n=n, of=of)
        if self.clusters < self.fewest:
            return Estimate(value, n=n, of=of)
        drawn, left_out = values[1 : 1 + self._draws], values[1 + self._draws :]
        defined = drawn[~np.isnan(drawn)]
        if len(drawn) - len(defined) > _UNDEFINED_AT_MOST * len(drawn) or np.ptp(defined) <= _SAME:
            return Estimate(value, n=n, of=of)
        low, high = np.quantile(
            defined, _bca_levels(value, defined, left_out[~np.isnan(left_out)], level)
        )
        return Estimate(value, float(low), float(high), n=n, of=of)


def bootstrap(
    statistic: Callable[[Sequence[T]], float | None],
    items: Sequence[T],
    clusters: Sequence[Hashable],
    *,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The statistic of the items with a BCa interval from a cluster bootstrap.

    It calls the statistic once for each draw and each cluster; a statistic of sums is far faster
    through `Resamples`.

    Args:
        statistic: called with all items, then with each resample's; None says it is undefined.
        items: what the statistic is computed of.
        clusters: one name for each item; items of the same name are drawn together.
        draws: how many resamples, each of as many clusters as there are.
        level: the interval's nominal coverage, in (0, 1).
        seed: the same seed gives the same interval.

    Returns:
        As `Resamples.estimate`; `n` and `of` are the number of items.

    Raises:
        ValueError: items and clusters differ in length, draws is below 1, level outside (0, 1).
    """
    import numpy as np

    if len(items) != len(clusters):
        raise ValueError(f"{len(items)} items and {len(clusters)} clusters")
    resamples = Resamples(clusters, draws=draws, seed=seed)
    if statistic(items) is None:
        return Estimate(None, n=len(items), of=len(items))
    values = [
        statistic([items[index] for index in np.repeat(np.arange(len(items)), times).tolist()])
        for times in resamples.weights().astype(np.intp)
    ]
    return resamples.estimate(
        np.array(values, dtype=np.float64), n=len(items), of=len(items), level=level
    )


def _multiplicities(clusters: int, draws: int, seed: int) -> NDArray[np.float64]:
    """(draws, clusters): how often each cluster is drawn; every row adds up to `clusters`."""
    import numpy as np

    if not clusters:
        return np.zeros((draws, 0))
    picks = np.random.default_rng(seed).integers(clusters, size=(draws, clusters))
    picks += np.arange(draws)[:, None] * clusters
    counts = np.bincount(picks.ravel(), minlength=draws * clusters)
    return counts.reshape(draws, clusters).astype(np.float64)


def _blocks_left_out(clusters: int) -> NDArray[np.float64]:
    """(blocks, clusters): 0 for the block's own clusters, 1 for the others."""
    import numpy as np

    blocks = min(clusters, _BLOCKS_AT_MOST)
    block_of = np.arange(clusters) % max(blocks, 1)
    kept: NDArray[np.float64] = (block_of != np.arange(blocks)[:, None]).astype(np.float64)
    return kept


def _bca_levels(
    value: float, draws: NDArray[np.float64], left_out: NDArray[np.float64], level: float
) -> NDArray[np.float64]:
    """The two percentiles (in [0, 1]) of the draws that BCa takes (Efron 1987)."""
    import numpy as np
    from scipy.stats import norm

    # Statistics of counts take few values: draws equal to the sample's are half below it.
    below = (draws < value - _SAME).sum() + (np.abs(draws - value) <= _SAME).sum() / 2
    bias = norm.ppf((below + 0.5) / (len(draws) + 1))
    influence = left_out.mean() - left_out if len(left_out) else np.zeros(1)
    spread = float((influence**2).sum())
    acceleration = float((influence**3).sum()) / (6 * spread**1.5) if spread > _SAME else 0.0
    z = bias + norm.ppf([(1 - level) / 2, (1 + level) / 2])
    levels: NDArray[np.float64] = norm.cdf(bias + z / np.maximum(1 - acceleration * z, _SAME))
    return levels


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


def paired_difference(
    first: Sequence[float | None],
    second: Sequence[float | None],
    resamples: Resamples,
    *,
    level: float = 0.95,
) -> Estimate:
    """Mean of second minus first over the items that both have a score for, with a BCa interval.

    The paired bootstrap (Efron and Tibshirani 1993, *An Introduction to the Bootstrap*, chapters 8
    and 14): an item is drawn with both its scores, so that what makes it hard for both cancels out;
    items of one cluster are drawn together. With scores in [0, 1] it lies in [-1, 1].

    Args:
        first: one score for each item of `resamples`, None where it has none.
        second: the same of the other.
        resamples: the items' clusters and draws.
        level: the interval's nominal coverage, in (0, 1).

    Returns:
        `n` items with both scores out of `of`; `value` is None where there is none. `low` and
        `high` are None where every draw gives the same difference (`Resamples.estimate`), as for
        two that never differ: that shows no difference, and not that there is none.

    Raises:
        ValueError: not one score of each for each item, or level outside (0, 1).
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} scores and {len(second)}: both are of the same items")
    differences = [
        None if a is None or b is None else b - a for a, b in zip(first, second, strict=True)
    ]
    return mean_estimate(differences, resamples, level=level)
