"""bench/calls.py counts what is asked: small runs whose figures can be worked out by hand."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def calls() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("calls")
        for name in ("calls", "planted", "simulated"):
            sys.modules.pop(name, None)


async def test_without_noise_every_verdict_suits_the_planted_truth(calls: Any) -> None:
    noise = calls.Noise(flip=0.0, auc=1 - 1e-9)
    assert calls.STORY_PROTOCOLS and calls.NORM_PROTOCOLS
    for protocol in calls.STORY_PROTOCOLS:
        records = calls.stories(8, 3)[8:]
        assert records
        assert (await calls.count(protocol, records, noise=noise)).right == len(records)
    for protocol in calls.NORM_PROTOCOLS:
        records = calls.norms(8, 3)
        assert records
        counted = await calls.count(protocol, records, noise=noise, check=calls.NORM_CHECKS)
        assert counted.right == len(records)


def test_the_engine_evaluates_what_no_block_holds(calls: Any) -> None:
    engine = calls.Engine()
    words = [f"w{n}" for n in range(48)]
    assert engine.take(" ".join(words), "a b.") == (48, 0)
    # All is known, but the last token is always evaluated, and with it its block.
    assert engine.take(" ".join(words), "") == (48, 32)
    # One word changed in the second block: only the first is found.
    assert engine.take(" ".join([*words[:20], "new", *words[21:]]), "") == (48, 16)
    # Words before the record spoil every block.
    assert engine.take(" ".join(["new", *words]), "") == (49, 0)
    assert (engine.calls, engine.prompt, engine.output) == (4, 193, 3)
    assert engine.evaluated == 48 + 16 + 32 + 49
