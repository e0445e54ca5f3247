"""Whether the corrected pass rate's intervals and the guarantee hold as often as they promise.

    python bench/coverage.py

Simulates a judge with known error rates on items with a known pass rate, and counts how often the
nominal 95 % interval contains the true rate: `rogan_gladen` (labels apart from the judged items,
drawn at random or half from each class), compared with a percentile bootstrap of only the labelled
sample. Then counts how often a guarantee is given that does not hold (bench/guarantees.py), first
by `threshold_with_guarantee` alone, then by all of `judge calibrate --guarantee`. Last both for
records in groups or copies, and for a judge that abstains (bench/clustered.py).

Every cell is simulated 2,000 times; one below 94 % is simulated again 10,000 times, and only those
count. Refusals are counted separately, neither as hits nor as misses; but a refusal because the two
samples contradict each other is a miss. Takes ten minutes; the figures are the same every time.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from clustered import Covered, clustered_guarantees, clustered_rates
from guarantees import guarantees, whole_ways
from numpy.typing import NDArray

from judge.stats.corrected_rate import rogan_gladen

Counts = NDArray[np.int64]
SEED = 20261122
SUSPECT, SIMULATIONS, AGAIN = 0.94, 2000, 10_000
BOOTSTRAPS, BOOTSTRAP_DRAWS = 200, 200


@dataclass(frozen=True)
class Cell:
    """One cell of the grid; `drawn` says how the labels are drawn."""

    drawn: str
    rate: float
    tpr: float
    tnr: float
    labels: int
    judged: int

    @property
    def passing(self) -> float:
        return self.rate * self.tpr + (1 - self.rate) * (1 - self.tnr)

    def random(self, use: int) -> np.random.Generator:
        place = [round(1000 * share) for share in (self.rate, self.tpr, self.tnr)]
        drawn = ("random", "half").index(self.drawn)
        return np.random.default_rng([SEED, use, drawn, *place, self.labels, self.judged])


def told(found: Covered) -> str:
    share = f"{found.share:7.1%}" if found.share is not None else "      -"
    return f"{share} {found.given:6d} {found.refused:6d}"


def separate(cell: Cell, count: int, use: int = 0) -> Counts:
    """Rows of `rogan_gladen`'s arguments: passed, judged, TP, positives, TN, negatives."""
    random = cell.random(use)
    positives = np.full(count, cell.labels // 2)
    if cell.drawn == "random":
        positives = random.binomial(cell.labels, cell.rate, count)
    negatives = cell.labels - positives
    columns = (
        random.binomial(cell.judged, cell.passing, count),
        np.full(count, cell.judged),
        random.binomial(positives, cell.tpr),
        positives,
        random.binomial(negatives, cell.tnr),
        negatives,
    )
    return np.stack(columns, axis=1)


def covered(cell: Cell, rows: Counts) -> Covered:
    """How often our interval contains the cell's rate; equal rows are computed once."""
    found = Covered()
    unique, times = np.unique(rows, axis=0, return_counts=True)
    for row, often in zip(unique.tolist(), times.tolist(), strict=True):
        found.add(rogan_gladen(*row), cell.rate, often)
    return found


def labelled_bootstrap(cell: Cell, count: int) -> Covered:
    """The competitor: both error rates redrawn from the labels, the judged share taken as exact."""
    rows = separate(cell, count, use=2)
    passed, judged, hits, positives, rejects, negatives = rows.T
    can = (positives > 0) & (negatives > 0)
    can &= hits * negatives + rejects * positives > positives * negatives
    share = (passed / judged)[can, None]
    random = cell.random(3)
    redrawn = []
    for part, whole in ((hits[can], positives[can]), (rejects[can], negatives[can])):
        size = (len(part), BOOTSTRAP_DRAWS)
        drawn = random.binomial(whole[:, None], (part / whole)[:, None], size)
        redrawn.append(drawn / whole[:, None])
    tpr, tnr = redrawn
    with np.errstate(all="ignore"):
        rates = np.clip((share + tnr - 1) / (tpr + tnr - 1), 0, 1)
    low, high = np.nanquantile(rates, (0.025, 0.975), axis=1)
    held = int(((low <= cell.rate) & (cell.rate <= high)).sum())
    return Covered(held, len(low), count - len(low))


def simulated(cell: Cell, count: int, again: int) -> tuple[Covered, Covered]:
    """Our interval and its competitor in one cell."""
    ours = covered(cell, separate(cell, count))
    if again and ours.share is not None and ours.share < SUSPECT:
        ours = covered(cell, separate(cell, again, 1))
    return ours, labelled_bootstrap(cell, min(count, BOOTSTRAPS))


def grid(quick: bool) -> Iterator[Cell]:
    rates = (0.05, 0.5) if quick else (0.05, 0.2, 0.5, 0.8, 0.95)
    errors = (0.8,) if quick else (0.65, 0.8, 0.99)
    labels = (60,) if quick else (60, 200, 1000)
    judged = (100, 1000) if quick else (100, 1000, 10_000)
    for drawn in ("random", "half"):
        for cell in product(rates, errors, errors, labels, judged):
            yield Cell(drawn, *cell)


Found = list[tuple[Cell, Covered, Covered]]


def summary(found: Found) -> Iterator[str]:
    """The worst cell of ours, the spread of the competitor's, and both by the samples' sizes."""
    ours = [(o.share, cell, o) for cell, o, _ in found if o.share is not None]
    worst, cell, least = min(ours, key=lambda one: one[0])
    yield (
        f"Rogan-Gladen: worst cell {worst:.1%} of {least.given}, {len(ours)} cells; "
        f"{len(found) - len(ours)} refused in over 90 %\n  worst: {cell}"
    )
    shares = sorted(c.share for _, _, c in found if c.share is not None)
    yield (
        f"  bootstrap of the labels alone: {shares[0]:.1%} to {shares[-1]:.1%}, median "
        f"{shares[len(shares) // 2]:.1%}, {sum(one < 0.93 for one in shares)} of "
        f"{len(shares)} cells below 93 %"
    )
    yield from by_size(found)


def by_size(found: Found) -> Iterator[str]:
    sizes = defaultdict(list)
    for cell, ours, other in found:
        if ours.share is not None and other.share is not None:
            sizes[cell.labels, cell.judged].append((ours.share, other.share))
    yield "  labels  judged  least ours  mean ours  least other  mean other"
    for (labels, judged), pairs in sorted(sizes.items()):
        ours_here, others_here = zip(*pairs, strict=True)
        yield (
            f"  {labels:6d}  {judged:6d}  {min(ours_here):10.1%}  "
            f"{sum(ours_here) / len(pairs):9.1%}  {min(others_here):11.1%}  "
            f"{sum(others_here) / len(pairs):10.1%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a corner of the grid, roughly")
    parser.add_argument("--clustered", action="store_true", help="the last two tables alone")
    given = parser.parse_args()
    quick = given.quick
    if not given.clustered:
        of_single_records(quick)
    print(*clustered_guarantees(3 if quick else 200), sep="\n")
    print()
    print(*clustered_rates(6 if quick else 300), sep="\n")


def of_single_records(quick: bool) -> None:
    """Print the tables for independent records."""
    count, again = (100, 0) if quick else (SIMULATIONS, AGAIN)
    print(
        f"{'labels':6}  rate  TPR  TNR     n judged  ours    given refused  other   given refused"
    )
    found = []
    for cell in grid(quick):
        ours, other = simulated(cell, count, again)
        found.append((cell, ours, other))
        print(
            f"{cell.drawn:6}  {cell.rate:4.2f} {cell.tpr:4.2f} {cell.tnr:4.2f} {cell.labels:5d} "
            f"{cell.judged:6d} {told(ours)} {told(other)}"
        )
    print()
    print(*summary(found), sep="\n")
    print()
    print(*guarantees(20 if quick else 1000), sep="\n")
    print()
    print(*whole_ways(2 if quick else 300), sep="\n")
    print()


if __name__ == "__main__":
    main()
