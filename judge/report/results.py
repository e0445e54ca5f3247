"""The folder that `--tables` leaves: every table as CSV, all of them as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.evaluation.tables import Table

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write(tables: Sequence[Table], folder: Path, *, benchmark: str, model: str) -> None:
    """Write tables.json, and for each table NAME.csv.

    Raises:
        UsageError: the folder cannot be written to.
    """
    told = {"benchmark": benchmark, "model": model, "tables": [one.as_json() for one in tables]}
    text = json.dumps(told, ensure_ascii=False, indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Half of a surrogate pair has no UTF-8; so written it is what JSON escapes it to.
        (folder / "tables.json").write_text(text + "\n", "utf-8", "backslashreplace")
        for table in tables:
            path = folder / f"{table.name}.csv"
            with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
                rows = ([inert(cell) for cell in row] for row in table.as_rows())
                csv.writer(file, lineterminator="\n").writerows(rows)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error


def inert(cell: str | float | None) -> str | float | None:
    """A cell that no spreadsheet takes for a formula: such a text gets an apostrophe in front.

    Labels come out of records. Numbers are no texts and stay as they are. A carriage return becomes
    a newline: the csv module does not quote it, and readers would take it for the end of the row.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if cell.startswith(_FORMULA) else text
