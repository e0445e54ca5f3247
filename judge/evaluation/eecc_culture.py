"""How far countries are apart in their values: Hofstede's dimensions and the World Values Survey.

Each country is the vector of its values, and two countries are as far apart as their vectors (EECC,
section 4.3.2). Many countries lack values (`#NULL!`), of which the paper says nothing. By the rule
`paper` the sum of squares over the dimensions that both have is scaled up to all dimensions, so
that what is not known does not make countries alike; `released` leaves it as it is, as the authors'
scripts do.

The released file of the WVS has 259 questions, the paper 249: it leaves out those without an order.
It does not name them, but the questionnaire has ten whose answers are neither ordered nor two. One
is the party that people would vote for (Q223), the mean of codes that begin with the country's own
number, up to 804,188 where no other question goes beyond 10: with it the distance between two
countries is that of their numbers. `released` keeps all ten, the other rules leave them out.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import UsageError, why_unread
from judge.stats.text import Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILES = {
    "Hofstede": "distances_hofstede_raw_with_demonymns.csv",
    "WVS": "wvs_250_dims_with_demonyms.csv",
}
"""The measures of culture, and the file of the released folder that each is read from."""

NOMINAL = frozenset(("Q91", "Q92", "Q93", "Q152", "Q153", "Q154", "Q155", "Q156", "Q157", "Q223"))
"""Questions of the WVS (wave 7) about organisations, aims of the country, and the party."""

MISSING = "#NULL!"
_DEMONYM = "Demonym"
_BESIDE_VALUES = ("ctr", "country", _DEMONYM)


@dataclass(frozen=True, slots=True)
class Culture:
    """Countries by demonym, and their distances, (countries, countries); nan where unknown."""

    demonyms: tuple[str, ...]
    distances: NDArray[np.float64]


def read_cultures(folder: Path, *, rule: Rule = "paper") -> dict[str, Culture]:
    """The measures whose files are in the folder. Raises UsageError as `read_vectors`."""
    return {
        name: culture(read_vectors(folder / file, without=_left_out(name, rule)), rule=rule)
        for name, file in FILES.items()
        if (folder / file).is_file()
    }


def _left_out(name: str, rule: Rule) -> frozenset[str]:
    return NOMINAL if name == "WVS" and rule != "released" else frozenset()


def read_vectors(path: Path, *, without: Collection[str] = frozenset()) -> dict[str, list[float]]:
    """Each country's values by its demonym, nan for what is missing.

    Args:
        path: a CSV file with a header.
        without: columns that are not read.

    Raises:
        UsageError: no column Demonym, a line of another length, a demonym that is empty or was
            there before, or a value that is neither a number nor `#NULL!`; with file, line, column.
    """
    vectors: dict[str, list[float]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            if _DEMONYM not in head:
                raise UsageError(f"{path}:1: no column {_DEMONYM!r}")
            for row in rows:
                place = f"{path}:{rows.line_num}"
                if len(row) != len(head):
                    raise UsageError(f"{place}: {len(row)} cells, the header has {len(head)}")
                cells = dict(zip(head, row, strict=True))
                demonym = cells[_DEMONYM].strip()
                if not demonym or demonym in vectors:
                    problem = "was there before" if demonym else "is empty"
                    raise UsageError(f"{place}: column {_DEMONYM!r}: {demonym!r} {problem}")
                vectors[demonym] = [
                    _value(text, f"{place}: column {name!r}")
                    for name, text in cells.items()
                    if name not in _BESIDE_VALUES and name not in without
                ]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {why_unread(error)}") from error
    return vectors


def culture(vectors: Mapping[str, Sequence[float]], *, rule: Rule = "paper") -> Culture:
    """The distances between countries; nan for two that share no dimension."""
    import numpy as np

    values = np.array(list(vectors.values()), dtype=np.float64)
    there = (~np.isnan(values)).astype(np.float64)
    filled = np.nan_to_num(values)
    common = there @ there.T
    squares = np.stack(
        [
            ((row - filled) ** 2 * at * there).sum(axis=1)
            for row, at in zip(filled, there, strict=True)
        ]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = 1.0 if rule == "released" else values.shape[1] / common
        distances = np.sqrt(squares * scale)
    distances[common == 0] = np.nan
    return Culture(tuple(vectors), distances)


def _value(text: str, place: str) -> float:
    if text.strip() == MISSING:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{place}: {text!r} is neither a number nor {MISSING}") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise UsageError(f"{place}: {text!r} is no finite number")
    return value
