"""Tests of pages have a browser, where there is one."""

from tests.web.conftest import browser

__all__ = ["browser"]
