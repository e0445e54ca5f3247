"""What holds for all tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# As many test processes run at once as there are cores: a library that takes a thread for each core
# makes them wait for each other, and spins meanwhile. Libraries read this when they are loaded.
for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Where a proxy leads out of the machine, it does not lead to the servers that tests start on it.
given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
os.environ["no_proxy"] = ",".join(filter(None, (given, "127.0.0.1", "localhost")))

# What somebody has set for a terminal, or for a server of their own, is not what is tested.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)
for name in [name for name in os.environ if name.startswith(("OPENAI_", "VLLM_"))]:
    del os.environ[name]

# A machine that does something else meanwhile must not fail a property, and what one run passes the
# next one does. `.ci/nightly` looks with fresh seeds.
FRESH = os.environ.get("FRESH_SEED")
settings.register_profile("judge", deadline=None, derandomize=FRESH is None)
settings.load_profile("judge")

# A script's `&` leaves Ctrl-C ignored, and what is started here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")
