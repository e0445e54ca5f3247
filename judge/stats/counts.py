"""Ratings as a table of counts: what the measures of agreement among many raters start from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def count_table(
    ratings: Sequence[Sequence[Hashable]], classes: Sequence[Hashable]
) -> NDArray[np.int64]:
    """How many raters put each item (row) in each class (column, in the order of `classes`).

    Items may have different numbers of ratings, also none. A rating that is not among the classes
    is left out: name every class that shall count.

    Raises:
        ValueError: a class is named twice.
    """
    import numpy as np

    columns = {name: number for number, name in enumerate(classes)}
    if len(columns) != len(classes):
        raise ValueError(f"classes are named once each, not {list(classes)}")
    table = np.zeros((len(ratings), len(classes)), dtype=np.int64)
    for row, answers in enumerate(ratings):
        for answer in answers:
            if answer in columns:
                table[row, columns[answer]] += 1
    return table
