"""What holds for all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# Test processes share the cores: an engine's threads that spin while they wait keep others waiting.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A machine that does something else meanwhile must not fail a property.
settings.register_profile("judge", deadline=None)
settings.load_profile("judge")

# A script's `&` leaves Ctrl-C ignored, and what is started here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
