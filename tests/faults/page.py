"""docs/reliability.md: its tables hold what these tests saw, row by row.

A test says `outcome("network", "connection refused", "...")`; the row must stand in the table of
that name. `pytest tests/faults -n 0 --update-reliability` writes the rows of the tests that ran.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
HEAD = "| fault | what came of it |\n|---|---|\n"

Outcome = Callable[[str, str, str], None]
"""Called with table, fault and what came of it."""


def rows(table: str) -> dict[str, str]:
    """Fault -> what came of it, as the page has it.

    Raises:
        AssertionError: the page has no such table.
    """
    found = _between(table).search(PAGE.read_text(encoding="utf-8"))
    assert found, f"{PAGE.name} has no table {table}"
    cells = (line.strip("| ").split(" | ", 1) for line in found[2].splitlines()[2:])
    return dict(cells)


def write(seen: Mapping[str, Iterable[tuple[str, str]]]) -> None:
    """Write the rows of each table that is named; its other rows go."""
    text = PAGE.read_text(encoding="utf-8")
    for table, pairs in seen.items():
        body = HEAD + "".join(f"| {fault} | {what} |\n" for fault, what in pairs)
        text, count = _between(table).subn(lambda m, body=body: m[1] + body + m[3], text)
        assert count == 1, f"{PAGE.name} has {count} tables {table}"
    PAGE.write_text(text, encoding="utf-8")


def _between(table: str) -> re.Pattern[str]:
    name = re.escape(table)
    return re.compile(rf"(<!-- table: {name} -->\n)(.*?)(<!-- /table -->)", re.DOTALL)
