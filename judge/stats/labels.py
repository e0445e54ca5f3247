"""What labels are worth: the design effect of clustered ones, and the width of an interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

from judge.stats.corrected_rate import Share, corrected_limits, youden_limits
from judge.stats.intervals import normal_quantile, score_limits


def design_effect(outcomes: Iterable[tuple[Hashable, bool]]) -> float:
    """By how much clustering widens the variance of a share, at least 1.

    `outcomes` holds (cluster, outcome): the values of one story, say, whose verdicts go together.
    n outcomes in clusters are worth n / deff independent ones. deff = 1 + (m - 1) r (Kish 1965,
    Survey Sampling), with m = sum of squared cluster sizes / n and r the intraclass correlation
    from the analysis of variance (Donner & Klar 2000): (MSB - MSW) / (MSB + (m0 - 1) MSW), with
    m0 = (n - m) / (clusters - 1). A negative r counts as 0: an interval is never narrowed by it.

    1 where every cluster holds one outcome, and without any. Where r is undefined, for one cluster
    only or outcomes that are all alike, it is m: the data cannot tell it, and m is the most that
    clusters of these sizes could bring.
    """
    clusters: dict[Hashable, list[bool]] = defaultdict(list)
    for cluster, outcome in outcomes:
        clusters[cluster].append(bool(outcome))
    sums = ClusterSums()
    for members in clusters.values():
        sums.add(sum(members), len(members))
    return sums.design_effect


@dataclass(slots=True)
class ClusterSums:
    """What the design effect needs of any number of clusters, added up as they come."""

    clusters: int = 0
    n: int = 0
    passed: int = 0
    squared_sizes: int = 0
    squared_passes: float = 0.0

    def add(self, passed: int, size: int) -> None:
        """Count a cluster of `size` outcomes (at least 1) of which `passed` are true."""
        self.clusters += 1
        self.n += size
        self.passed += passed
        self.squared_sizes += size**2
        self.squared_passes += passed**2 / size

    @property
    def design_effect(self) -> float:
        """See the function `design_effect`."""
        if self.clusters == self.n:
            return 1.0
        if self.clusters < 2 or self.passed in (0, self.n):
            return self.squared_sizes / self.n
        mean = self.passed / self.n
        between = self.squared_passes - self.n * mean**2
        within = self.n * mean * (1 - mean) - between
        mean_between = between / (self.clusters - 1)
        mean_within = max(0.0, within) / (self.n - self.clusters)
        size = self.squared_sizes / self.n
        usual_size = (self.n - size) / (self.clusters - 1)
        correlation = (mean_between - mean_within) / (mean_between + (usual_size - 1) * mean_within)
        return 1 + (size - 1) * max(0.0, correlation)


Measure = Literal["accuracy", "kappa", "true-positive-rate", "pass-rate"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True, slots=True)
class Budget:
    """What is expected before labelling, from which the width of an interval follows.

    `expect` is the measure's expected value: agreement or accuracy, true-positive rate and pass
    rate in [0, 1], kappa below 1. `prevalence`, in (0, 1), is the share of labelled items that
    people pass; it matters for kappa and the true-positive rate (None: 0.5), and for the pass rate
    (None: `expect`, as for labels drawn at random). The last three matter for the pass rate only:
    how the judge errs, in [0, 1], and how many items it judges beside the labelled ones.

    Raises:
        ValueError: a value outside its range, a kappa that no table with this prevalence has, or a
            pass rate of a judge no better than chance.
    """

    measure: Measure
    expect: float
    prevalence: float | None = None
    level: float = 0.95
    true_positive_rate: float = 0.9
    true_negative_rate: float = 0.9
    judged: int = 1000

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure is {self.measure}, not one of {', '.join(MEASURES)}")
        if self.prevalence is not None and not 0 < self.prevalence < 1:
            raise ValueError(f"prevalence is {self.prevalence}, a share strictly between 0 and 1")
        if self.measure == "kappa":
            kappa_variance(self.expect, self._prevalence)
        shares = (self.true_positive_rate, self.true_negative_rate)
        if not all(0 <= share <= 1 for share in (abs(self.expect), *shares)):
            raise ValueError("a rate lies outside 0 to 1")
        if self.measure != "kappa" and self.expect < 0:
            raise ValueError(f"expected {self.measure} is {self.expect}, below 0")
        if self.measure == "pass-rate":
            if sum(shares) <= 1:
                raise ValueError("the judge must be better than chance: TPR + TNR above 1")
            if not 0 < self._prevalence < 1:
                raise ValueError("prevalence is needed where the expected pass rate is 0 or 1")
        if self.judged < 1:
            raise ValueError(f"{self.judged} judged items, at least 1 is needed")
        normal_quantile(self.level)

    def width(self, labels: float) -> float | None:
        """The expected full width (high minus low) of the interval with so many labels.

        Wilson's interval for accuracy and the true-positive rate (over the items that people pass),
        the normal one with `kappa_variance` for kappa, `rogan_gladen`'s for the pass rate, each at
        the expected counts, not rounded. None where there would be none: for the pass rate, with so
        few labels that TPR + TNR - 1 would not be clearly above 0.

        Raises:
            ValueError: labels is not above 0.
        """
        if labels <= 0:
            raise ValueError(f"{labels} labels")
        z = normal_quantile(self.level)
        if self.measure == "kappa":
            return 2 * z * sqrt(kappa_variance(self.expect, self._prevalence) / labels)
        if self.measure == "pass-rate":
            return self._pass_rate_width(labels, z)
        share = self._prevalence if self.measure == "true-positive-rate" else 1.0
        low, high = score_limits(self.expect, labels * share, z)
        return high - low

    @property
    def _prevalence(self) -> float:
        if self.prevalence is not None:
            return self.prevalence
        return self.expect if self.measure == "pass-rate" else 0.5

    def _pass_rate_width(self, labels: float, z: float) -> float | None:
        good = self._prevalence
        hit_rate, alarm_rate = self.true_positive_rate, 1 - self.true_negative_rate
        hits = Share.of(hit_rate, labels * good, z)
        alarms = Share.of(alarm_rate, labels * (1 - good), z)
        if youden_limits(hits, alarms).low <= 0:
            return None
        passed = self.expect * hit_rate + (1 - self.expect) * alarm_rate
        low, high = corrected_limits(Share.of(passed, self.judged, z), hits, alarms)
        return min(1.0, high) - max(0.0, low)


def kappa_variance(kappa: float, prevalence: float) -> float:
    """The variance of Cohen's kappa of two raters and two classes, times the number of items.

    Fleiss, Cohen & Everitt (1969), large samples: (A + B - C) / (1 - pe)^2, where A is the sum of
    p_ii (1 - (p_i. + p_.i)(1 - kappa))^2, B is (1 - kappa)^2 times the sum of p_ij (p_.i + p_j.)^2
    over i != j, and C is (kappa - pe (1 - kappa))^2. Both raters are taken to give the first class
    the same share, `prevalence` in (0, 1). With 200 labels and kappa 0.6 it makes a 95 % interval
    of 0.22 at a prevalence of 0.5, 0.24 at 0.3; rarer classes need many more labels.

    Raises:
        ValueError: kappa is not below 1, or lower than any such table's.
    """
    p, q = prevalence, 1 - prevalence
    apart = p * q * (1 - kappa)
    if not (kappa < 1 and apart <= min(p, q)):
        raise ValueError(f"no agreement at prevalence {p:g} has an expected kappa of {kappa:g}")
    by_chance = p * p + q * q
    agreeing = sum((own - apart) * (1 - 2 * own * (1 - kappa)) ** 2 for own in (p, q))
    # For two classes with equal shares, p_.i + p_j. is 1 for i != j, so that B's sum is 2 `apart`.
    disagreeing = (1 - kappa) ** 2 * 2 * apart
    centre = (kappa - by_chance * (1 - kappa)) ** 2
    return (agreeing + disagreeing - centre) / (1 - by_chance) ** 2
