"""Fixtures and settings for all tests."""

from __future__ import annotations

import os
import signal
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import settings

from tests.collector import Collector
from tests.warm import warm_judge

# As many test processes run at once as there are cores: a library that takes a thread for each core
# makes them wait for each other, and spins meanwhile. Libraries read this when they are loaded.
for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Where a proxy leads out of the machine, it does not lead to the servers that tests start on it.
given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
os.environ["no_proxy"] = ",".join(filter(None, (given, "127.0.0.1", "localhost")))

# What somebody has set for a terminal or for a server of their own is not what is tested.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)
for name in [name for name in os.environ if name.startswith(("JUDGE_", "OPENAI_", "VLLM_"))]:
    if name != "JUDGE_MODELS_DIR":
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


def pytest_configure() -> None:
    """Fail if the installed entry points are not those of pyproject.toml: the install is too
    old."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    project = tomllib.loads(text)["project"]
    listed = {(g, n, v) for g, d in project["entry-points"].items() for n, v in d.items()}
    installed = distribution(project["name"]).entry_points
    if listed != {(p.group, p.name, p.value) for p in installed if p.group != "console_scripts"}:
        command = "pip install -e . --no-deps --no-build-isolation"
        pytest.exit(f"pyproject.toml lists other entry points than are installed: {command}", 2)


@pytest.fixture(scope="session", autouse=True)
def _options_of_this_run_alone() -> None:
    """Tests that start a pytest of their own start a plain one. Not earlier: pytest's workers read
    the variable when they begin, and would else leave out what it asks for (`-m ''`)."""
    os.environ.pop("PYTEST_ADDOPTS", None)


@pytest.fixture(scope="session")
def judge_path() -> Iterator[str]:
    """A PATH with a `judge` on it that costs a fork instead of a start."""
    with warm_judge() as path:
        yield path


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
