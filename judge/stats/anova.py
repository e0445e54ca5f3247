"""One-way analysis of variance: do groups of values have the same mean?

F = (B / (k - 1)) / (W / (N - k)) for k groups of N values in all, with B the sum of squares of the
groups' means about the overall mean, each as often as its group has values, and W that of the
values about their group's mean. F is 0 or more; p is the share of the F distribution with (k - 1,
N - k) degrees of freedom above it, in [0, 1] (Fisher 1925, *Statistical Methods for Research
Workers*, chapter VII). The values are taken as independent, of equal variance in all groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Anova:
    """F and p, None where they are undefined, and the degrees of freedom between and within."""

    f: float | None
    p: float | None
    between: int
    within: int


def one_way_anova(groups: Sequence[Sequence[float]]) -> Anova:
    """Compare the groups' means; a group without values is left out.

    F and p are None for fewer than two groups, for groups of one value each, and where no value
    differs from its group's mean.
    """
    from scipy.stats import f_oneway

    there = [list(group) for group in groups if group]
    between = len(there) - 1
    within = sum(len(group) for group in there) - len(there)
    spread = any(min(group) < max(group) for group in there)
    if between < 1 or within < 1 or not spread:
        return Anova(None, None, max(between, 0), max(within, 0))
    found = f_oneway(*there)
    return Anova(float(found.statistic), float(found.pvalue), between, within)
