"""Kish's design effect: how many independent items a clustered one is worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass


def design_effect(outcomes: Iterable[tuple[Hashable, bool]]) -> float | None:
    """By how much clustering widens the variance of a share, at least 1.

    `outcomes` holds (cluster, outcome): the values of one story, say, whose verdicts go together.
    n outcomes in clusters are worth n / deff independent ones. deff = 1 + (m - 1) r (Kish 1965,
    Survey Sampling), with m = sum of squared cluster sizes / n and r the intraclass correlation
    from the analysis of variance (Donner & Klar 2000): (MSB - MSW) / (MSB + (m0 - 1) MSW), with
    m0 = (n - m) / (clusters - 1). A negative r counts as 0: an interval is never narrowed by it.

    1 where every cluster holds one outcome. None where r is undefined: no outcome, one cluster
    only, or all outcomes alike. Such data cannot tell the design effect; between 1 and m all fit.
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
    def design_effect(self) -> float | None:
        """See `design_effect`."""
        if self.n and self.clusters == self.n:
            return 1.0
        if self.clusters < 2 or self.passed in (0, self.n):
            return None
        mean = self.passed / self.n
        between = self.squared_passes - self.n * mean**2
        within = self.n * mean * (1 - mean) - between
        mean_between = between / (self.clusters - 1)
        mean_within = max(0.0, within) / (self.n - self.clusters)
        size = self.squared_sizes / self.n
        usual_size = (self.n - size) / (self.clusters - 1)
        correlation = (mean_between - mean_within) / (mean_between + (usual_size - 1) * mean_within)
        return 1 + (size - 1) * max(0.0, correlation)

    @property
    def largest_effect(self) -> float:
        """What clusters of these sizes could bring at most: their mean size, weighted by size."""
        return self.squared_sizes / self.n if self.n else 1.0
