"""`pytest tests/faults -n 0 --update-reliability` writes the tables of docs/reliability.md anew."""

from __future__ import annotations

import pytest

from . import page

_SEEN = pytest.StashKey[dict[str, list[tuple[str, str]]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-reliability", action="store_true", help="write docs/reliability.md's tables anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SEEN] = {}


@pytest.fixture
def outcome(request: pytest.FixtureRequest) -> page.Outcome:
    """Says what came of a fault: the page's row, which it must equal."""
    updating = request.config.getoption("--update-reliability")

    def tell(table: str, fault: str, seen: str) -> None:
        assert "|" not in fault + seen and "\n" not in fault + seen
        if updating:
            request.config.stash[_SEEN].setdefault(table, []).append((fault, seen))
        else:
            assert page.rows(table).get(fault) == seen, f"{page.PAGE.name}, table {table}: {fault}"

    return tell


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--update-reliability"):
        page.write(session.config.stash[_SEEN])
