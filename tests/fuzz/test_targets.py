"""Random input for every reader of foreign data: the targets of bench/fuzz.py, by hypothesis.
Inputs come from each target's seeds by cutting, joining and overwriting, and from JSON and text
made for it. bench/fuzz.py is guided by coverage, and runs many times the cases."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

BENCH = Path(__file__).parents[2] / "bench"
PIECES = st.sampled_from(
    [
        b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r\n", b"\n", b'"', b"'", b"\\", b"\t",
        b"NaN", b"-Infinity", b"1e999", b"-0", b"9" * 5000, b"0x" + b"f" * 5000, b"[" * 300,
        b"{" * 300, b'{"a":' * 300, b"]" * 300, b"{{ 7*7 }}", b"{% for a in b %}", b"{% endif %}",
        b"{{ ''.__class__ }}", b"&a [*a]", b"<<: *a", b"!!binary x", b"!!python/name:os.system x",
        b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\x00\x58", b"PAR1", b"\\ud800",
        "\u200b\u202e\u0647".encode(), b"\x1b[2J", b"=1+1", b",", b":", b"- ", b"? ", b"#", b"|",
    ]
)  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "story", "values", "rot", "label", "labels", "judge", "verdict"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def fuzz_targets() -> Iterator[Any]:
    sys.path.insert(0, str(BENCH))
    try:
        yield importlib.import_module("fuzz_targets")
    finally:
        sys.path.remove(str(BENCH))


def grown(seeds: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Seeds that were cut, with pieces of rubbish between the parts."""
    base = st.sampled_from(seeds) if seeds else st.just(b"")
    made = st.builds(lambda content: json.dumps(content).encode(), JSON)

    def cut(text: bytes, places: list[int], between: list[bytes]) -> bytes:
        at = sorted(place % (len(text) + 1) for place in places)
        parts = [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
        return b"".join(x for pair in zip(parts, [*between, b""], strict=False) for x in pair)

    places = st.lists(st.integers(0, 10_000), max_size=4)
    between = st.lists(PIECES | st.binary(max_size=6), max_size=4)
    return st.one_of(
        st.builds(cut, base, places, between),
        st.builds(lambda first, text: first + text, st.binary(max_size=1), made),
        st.binary(max_size=64),
    )


NAMES = (
    "jsonl", "json", "csv", "tsv", "gz and zst", "parquet", "labelled", "rubric", "task",
    "template", "script", "profile", "judge.toml", "reply", "answer", "evidence",
    "screening", "resume",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rubbish_is_named_and_nothing_else_happens(fuzz_targets: Any, name: str) -> None:
    target = fuzz_targets.TARGETS[name]
    seeds = fuzz_targets.SEEDS.get(name, ())
    for seed in seeds:
        target(seed)

    @settings(max_examples=60)
    @given(grown(seeds))
    def holds(data: bytes) -> None:
        target(data)

    holds()
