from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from typing import Any

import pytest
from backports import zstd

from judge.errors import UsageError
from judge.records import read

from .conftest import ReadBack, Written
from .test_jsonl import problem_of

Pack = Callable[[bytes], bytes]
LINES = b"".join(b'{"id": %d, "text": "%d"}\n' % (n, n * 7919) for n in range(20_000))
LIST = b"[" + b",\n".join(LINES.splitlines()) + b"]"
TABLE = b"id,text\n" + b"".join(b"%d,%d\n" % (n, n * 7919) for n in range(20_000))


def zstd_in_frames(data: bytes) -> bytes:
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"skip"
    return skippable + b"".join(
        zstd.compress(data[at : at + 9999]) for at in range(0, len(data), 9999)
    )


def gzip_in_members(data: bytes) -> bytes:
    return b"".join(gzip.compress(data[at : at + 9999]) for at in range(0, len(data), 9999))


PACKS = {".gz": gzip.compress, ".zst": zstd.compress}
ALL_PACKS = [gzip.compress, gzip_in_members, zstd.compress, zstd_in_frames]


@pytest.mark.parametrize("pack", ALL_PACKS)
@pytest.mark.parametrize(("name", "data"), [("a.jsonl", LINES), ("a.json", LIST), ("a.csv", TABLE)])
def test_compressed_files(items: ReadBack, pack: Pack, name: str, data: bytes) -> None:
    suffix = ".gz" if pack in (gzip.compress, gzip_in_members) else ".zst"
    found = items(name + suffix, pack(data))
    assert [str(item.fields["id"]) for item in found] == [str(n) for n in range(20_000)]


@pytest.mark.parametrize("suffix", PACKS)
@pytest.mark.parametrize(("name", "data"), [("a.jsonl", LINES), ("a.json", LIST), ("a.csv", TABLE)])
def test_a_cut_off_stream_gives_what_came_before_and_a_problem(
    items: ReadBack, suffix: str, name: str, data: bytes
) -> None:
    packed = PACKS[suffix](data)
    found = items(name + suffix, packed[: len(packed) // 2])
    assert len(found) > 1000
    assert {item.problem for item in found[:-1]} == {None}
    pairs = [(int(item.fields["id"]), int(item.fields["text"])) for item in found[:-1]]
    assert pairs == [(n, n * 7919) for n in range(len(pairs))]
    assert "stream is cut off" in problem_of(found[-1])


@pytest.mark.parametrize("suffix", PACKS)
def test_a_damaged_stream_gives_a_problem(items: ReadBack, suffix: str) -> None:
    packed = bytearray(PACKS[suffix](LINES))
    middle = len(packed) // 2
    packed[middle : middle + 200] = bytes(200)
    found = items("a.jsonl" + suffix, packed)
    assert "stream is damaged" in problem_of(found[-1])
    assert "records before this one may be wrong too" in problem_of(found[-1])
    assert {item.line for item in found} == set(range(1, len(found) + 1))


@pytest.mark.parametrize("suffix", PACKS)
@pytest.mark.parametrize("content", [b"", b'{"a": 1}\n'])
def test_a_name_that_promises_compression_must_keep_it(
    write: Written, suffix: str, content: bytes
) -> None:
    with pytest.raises(UsageError, match=f"ends in {suffix} but is no"):
        read(write("a.jsonl" + suffix, content))


@pytest.mark.parametrize("sound", [0, 2])
def test_a_file_that_cannot_be_read_on_gives_a_problem(sound: int) -> None:
    class Failing(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            if self.tell() >= 9 * sound:
                raise OSError(5, "Input/output error")
            return super().readinto(memoryview(buffer)[: 9 * sound])

    found = list(read("-", stdin=Failing(b'{"a": 1}\n' * 3), format="jsonl"))
    assert [item.fields for item in found] == [{"a": 1}] * sound + [{}]
    assert "Input/output error" in problem_of(found[-1])


@pytest.mark.parametrize("suffix", PACKS)
def test_a_stream_cut_off_in_its_head_is_a_problem_of_line_1(items: ReadBack, suffix: str) -> None:
    (item,) = items("a.jsonl" + suffix, PACKS[suffix](LINES)[:5])
    assert item.line == 1 and "stream is cut off" in problem_of(item)


@pytest.mark.parametrize("name", ["a.parquet.gz", "a.xlsx.zst", "a.arrow.gz"])
def test_a_packed_table_is_unpacked_up_to_a_limit(
    items: ReadBack, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["judge.records.read"], "MAX_RECORD", 100_000)
    with pytest.raises(UsageError, match="has more than 100000 bytes unpacked: unpack it first"):
        items(name, PACKS[f".{name.rpartition('.')[2]}"](bytes(10_000_000)))
