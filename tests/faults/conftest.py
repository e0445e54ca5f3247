"""docs/evidence/reliability.md: its tables hold what these tests saw, row by row.

A test says `outcome("network", "connection refused", "...")`; the row must stand in the table of
that name. `pytest tests/faults -n 0 --update-reliability` writes the tables of the tests that ran.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .forks import Forks

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "reliability.md"
HEAD = "| fault | what came of it |\n|---|---|\n"

Outcome = Callable[[str, str, str], None]
"""Called with table, fault and what came of it."""

_SEEN = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-reliability",
        action="store_true",
        help="write docs/evidence/reliability.md's tables anew",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SEEN] = {}


@pytest.fixture
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """Says what came of a fault: the page's row, which it must equal."""

    def tell(table: str, fault: str, seen: str) -> None:
        assert "|" not in fault + seen and "\n" not in fault + seen
        row = f"| {fault} | {seen} |\n"
        if request.config.getoption("--update-reliability"):
            rows = request.config.stash[_SEEN]
            rows[table] = rows.get(table, HEAD) + row
        else:
            found = _between(table).search(PAGE.read_text(encoding="utf-8"))
            assert found and row in found[2], f"{PAGE.name}, table {table}: {row}"

    return tell


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with Forks(tmp_path_factory.mktemp("warm")) as forks:
        yield forks


def pytest_sessionfinish(session: pytest.Session) -> None:
    for table, body in session.config.stash[_SEEN].items():
        text = PAGE.read_text(encoding="utf-8")
        text = _between(table).sub(lambda found, body=body: found[1] + body + found[3], text)
        PAGE.write_text(text, encoding="utf-8")


def _between(table: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- table: {table} -->\n)(.*?)(<!-- /table -->)", re.DOTALL)
