"""Cohen's kappa: agreement of two raters beyond chance, plain or weighted by distance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Literal

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
