"""`judge` as a user types it, as in tests/cli."""

from tests.cli.conftest import judge, typed

__all__ = ["judge", "typed"]
