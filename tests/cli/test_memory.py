"""Memory does not grow with the number of records (bench/memory.py has the large figures)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_is_bounded() -> None:
    path = Path(__file__).parents[2] / "bench" / "memory.py"
    spec = importlib.util.spec_from_file_location("bench_memory", path)
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    small = bench.measure(200, cached=False).peak_mb
    large = bench.measure(2_500, cached=False).peak_mb
    assert large < 300
    # 2,300 records of 2 kB, held, would be 10 MB and more, beside 8 MB of full queues.
    assert large - small < 15
