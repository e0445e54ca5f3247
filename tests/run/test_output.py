"""Where output lines go when OUT, the disk and other runs give trouble."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from judge.errors import Exit, JudgeError, UsageError
from judge.run import output
from judge.run.output import Sink, write_whole

LINE = b'{"id": %d, "judge": {"verdict": "pass"}}\n'


def test_a_line_that_finds_no_room_leaves_no_part_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink(tmp_path / "out")
    sink.write(LINE % 1)
    write = os.write

    def full(descriptor: int, text: bytes) -> int:
        if len(text) < len(LINE % 3):
            raise OSError(28, "No space left on device")
        return write(descriptor, text[:9])

    monkeypatch.setattr(output.os, "write", full)
    with pytest.raises(JudgeError, match="No space left") as caught:
        sink.write(LINE % 3)
    monkeypatch.undo()
    sink.close()
    assert caught.value.exit_code == Exit.UNAVAILABLE
    assert (tmp_path / "out").read_bytes() == LINE % 1


def test_what_another_run_has_finished_meanwhile_is_seen_under_the_lock(tmp_path: Path) -> None:
    """The file was empty when this run looked, and is not when it has the lock."""
    out = tmp_path / "out"
    out.write_bytes(LINE % 1)
    with pytest.raises(UsageError, match="exists"):
        Sink(out, fresh=True)
    assert out.read_bytes() == LINE % 1
    Sink(out).close()


def test_a_lock_on_a_file_that_was_replaced_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run puts OUT in order, and so another file in its place, between open and lock."""
    out = tmp_path / "out"
    out.write_bytes(LINE % 1)

    def replaced(_: int) -> bool:
        (tmp_path / "new").write_bytes(LINE % 2)
        (tmp_path / "new").replace(out)
        return True

    monkeypatch.setattr(output, "lock", replaced)
    with pytest.raises(UsageError, match="another run is writing to"):
        Sink(out)
    assert out.read_bytes() == LINE % 2


def test_a_file_that_is_written_anew_leaves_all_others_alone(tmp_path: Path) -> None:
    """Whatever lies in the folder: a name of the user's, or a link, in the way of ours."""
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / "out.new").symlink_to(tmp_path / "theirs")
    (tmp_path / "out").write_text("old")
    (tmp_path / "link").symlink_to("out")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "out").read_text() == "new" and (tmp_path / "link").is_symlink()
    assert (tmp_path / "theirs").read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "out", "out.new", "theirs"]


def test_a_file_that_a_container_mounts_is_written_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system lets nobody rename over a mount point; without root none can be made here."""
    out = tmp_path / "out"
    out.write_text("old")

    def busy(_: Path, target: Path) -> Path:
        raise OSError(errno.EBUSY, "Device or resource busy", str(target))

    monkeypatch.setattr(Path, "replace", busy)
    write_whole(out, b"new")
    assert out.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_file_that_cannot_be_written_whole_is_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    with pytest.raises(ZeroDivisionError), output.replacing(out) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert out.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["out"]
