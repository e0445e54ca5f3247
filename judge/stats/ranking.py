"""Ranks several fields by pairwise comparisons.

Bradley and Terry (1952), "Rank analysis of incomplete block designs: I. The method of paired
comparisons", Biometrika 39: with strengths t, field i is chosen over j with probability
1 / (1 + exp(t_j - t_i)). A tie counts as half a win for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log, sqrt, tanh

from judge.stats.intervals import Z_95, Estimate

PairOutcome = tuple[int, int, float]
"""Two fields by number, and the result of the first: 1 (it is better), 0.5 (a tie), 0."""

_MAX_STEPS = 10_000
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Ranked:
    """A field in a ranking.

    `strength` is the probability that it is chosen over a field of average strength, in [0, 1];
    undefined if `Ranking.undefined` says why.
    """

    field: str
    strength: Estimate
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked fields.

    Args:
        fields: the strongest first; by share of wins if strengths are undefined.
        comparisons: how many comparisons were decided.
        undecided: how many were not; `disagreed` of these because the two orders disagreed.
        undefined: why there are no strengths.
    """

    fields: tuple[Ranked, ...]
    comparisons: int
    undecided: int = 0
    disagreed: int = 0
    undefined: str | None = None

    def __str__(self) -> str:
        """The meaning of strength, or why there is none, and how often the orders disagreed."""
        meaning = "strength is the chance to be chosen over a field of average strength"
        if self.undefined:
            meaning = f"no strengths, because {self.undefined}"
        made = self.comparisons + self.undecided
        return f"{meaning}; the orders disagreed in {self.disagreed} of {made} comparisons"


def ranking(
    names: Sequence[str],
    records: Mapping[tuple[PairOutcome, ...], int],
    *,
    undecided: int = 0,
    disagreed: int = 0,
) -> Ranking:
    """The fields ranked by decided comparisons.

    `records` maps the decided comparisons of a record to the number of records that have these.

    Strengths maximise the likelihood, by Hunter (2004), "MM algorithms for generalized
    Bradley-Terry models", Annals of Statistics 32, section 3. The maximum does not exist if some
    fields never win, nor tie, against the others (Ford 1957, "Solution of a ranking problem from
    binary comparisons", American Mathematical Monthly 64): strengths are then undefined.

    The 95 % intervals are from the infinitesimal jackknife over records (Efron 1982, *The
    Jackknife, the Bootstrap and Other Resampling Plans*, chapter 6), the bootstrap's limit for many
    records, because comparisons of one record are dependent. With A the information and s_r a
    record's score, t has the variance n / (n - 1) A^-1 (sum of s_r s_r') A^-1. There is no interval
    for fewer than two records, or if the variance is 0.
    """
    size = len(names)
    wins = [[0.0] * size for _ in names]
    results = [[0, 0, 0] for _ in names]
    comparisons = 0
    for compared, count in records.items():
        for i, j, share in compared:
            wins[i][j] += share * count
            wins[j][i] += (1 - share) * count
            for field, own in ((i, share), (j, 1 - share)):
                results[field][2 if own == 0.5 else 1 - int(own)] += count
            comparisons += count
    weak = _never_win(wins)
    undefined = "there is no decided comparison" if not comparisons else None
    if comparisons and weak:
        strong = [number for number in range(size) if number not in weak]
        single = len(weak) == 1
        fails = f"never {'wins' if single else 'win'} against"
        if not any(wins[i][j] for i in strong for j in weak):
            fails = f"{'is' if single else 'are'} never compared with"
        losers, others = (", ".join(map(names.__getitem__, n)) for n in (sorted(weak), strong))
        undefined = f"{losers} {fails} {others}"
    estimates = [Estimate(None)] * size if undefined else _strengths(wins, records)
    rows = [
        Ranked(name, estimate, *counts)
        for name, estimate, counts in zip(names, estimates, results, strict=True)
    ]

    def place(row: Ranked) -> tuple[float, float]:
        made = row.wins + row.losses + row.ties
        return -(row.strength.value or 0.0), -((row.wins + row.ties / 2) / made if made else 0.0)

    fields = tuple(sorted(rows, key=place))
    return Ranking(fields, comparisons, undecided, disagreed, undefined)


def _never_win(wins: Sequence[Sequence[float]]) -> set[int]:
    """The smallest set of fields that neither win nor tie against any field outside it.

    It is empty if there is no such set: every field then beats every other, directly or through
    third fields.
    """
    smallest: set[int] = set()
    for start in range(len(wins)):
        reached, waiting = {start}, [start]
        while waiting:
            beaten = {j for j, won in enumerate(wins[waiting.pop()]) if won} - reached
            reached |= beaten
            waiting += beaten
        if len(reached) < len(wins) and (not smallest or len(reached) < len(smallest)):
            smallest = reached
    return smallest


def _strengths(
    wins: Sequence[Sequence[float]], records: Mapping[tuple[PairOutcome, ...], int]
) -> list[Estimate]:
    size = len(wins)
    made = [[wins[i][j] + wins[j][i] for j in range(size)] for i in range(size)]
    worth = [1.0] * size
    for _ in range(_MAX_STEPS):
        before = worth
        worth = [
            sum(wins[i]) / sum(made[i][j] / (worth[i] + worth[j]) for j in range(size) if j != i)
            for i in range(size)
        ]
        mean = exp(sum(map(log, worth)) / size)
        worth = [w / mean for w in worth]
        if max(abs(a - b) / b for a, b in zip(worth, before, strict=True)) < _SAME:
            break
    chance = [[worth[i] / (worth[i] + worth[j]) for j in range(size)] for i in range(size)]
    # Adding 1 / size to every cell fixes the sum of the strengths at 0, so the solution is unique.
    information = [[1 / size] * size for _ in range(size)]
    for i, j in combinations(range(size), 2):
        weight = made[i][j] * chance[i][j] * chance[j][i]
        for row, column, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            information[row][column] += sign * weight
    inverse = _inverted(information)
    variances, count = [0.0] * size, 0
    for compared, times in records.items():
        score = [0.0] * size
        for i, j, share in compared:
            score[i] += share - chance[i][j]
            score[j] -= share - chance[i][j]
        count += times if compared else 0
        for field, cells in enumerate(inverse):
            influence = sum(a * b for a, b in zip(cells, score, strict=True))
            variances[field] += times * influence**2
    return [
        _estimate(log(w), sqrt(v * count / (count - 1)) if count > 1 else 0.0, count)
        for w, v in zip(worth, variances, strict=True)
    ]


def _estimate(strength: float, error: float, count: int) -> Estimate:
    """A strength as the probability to be chosen over average strength, over `count` records."""

    def chance(t: float) -> float:
        return (1 + tanh(t / 2)) / 2

    if error <= _SAME:
        return Estimate(chance(strength), n=count, of=count)
    low, high = strength - Z_95 * error, strength + Z_95 * error
    return Estimate(chance(strength), chance(low), chance(high), n=count, of=count)


def _inverted(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """The inverse of a positive definite matrix, by Gauss-Jordan elimination."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for pivot in range(size):
        scale = rows[pivot][pivot]
        rows[pivot] = [cell / scale for cell in rows[pivot]]
        for other in range(size):
            if other != pivot and (factor := rows[other][pivot]):
                pairs = zip(rows[other], rows[pivot], strict=True)
                rows[other] = [cell - factor * own for cell, own in pairs]
    return [row[size:] for row in rows]
