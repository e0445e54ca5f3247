"""A browser for tests of pages, if one is installed."""

from tests.web.conftest import browser

__all__ = ["browser"]
