"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A machine that does something else meanwhile must not fail a property.
settings.register_profile("judge", deadline=None)
settings.load_profile("judge")
