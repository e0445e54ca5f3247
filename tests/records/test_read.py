from __future__ import annotations

import gzip
import io
import json
import os
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.records import MAX_LINE, read

from .conftest import ReadBack, Written


def test_what_is_not_there_is_refused_at_the_call(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.jsonl does not exist"):
        read(tmp_path / "missing.jsonl")
    with pytest.raises(UsageError, match="is a folder"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["a.jsonl", "A.NDJSON", "a.txt", "a", "a.b.jsonl"])
def test_json_lines_by_name_or_look(items: ReadBack, name: str) -> None:
    assert [item.fields for item in items(name, '{"a": 1}\n{"a": 2}\n')] == [{"a": 1}, {"a": 2}]


def test_the_format_asked_for_wins(items: ReadBack) -> None:
    assert items("a.txt", "a\tb\n1\t2\n", format="tsv")[0].fields == {"a": "1", "b": "2"}
    assert items("a.jsonl", '[{"a": 1}]', format="json")[0].fields == {"a": 1}
    with pytest.raises(UsageError, match="format 'xml' is unknown"):
        items("a.jsonl", "", format="xml")


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_header_of_names_tells_a_table(items: ReadBack, mark: str) -> None:
    text = 'id,"mail_text",note\r\n1,"Hi\nBo",x\n'.replace(",", mark)
    row = {"id": "1", "mail_text": "Hi\nBo", "note": "x"}
    assert [item.fields for item in items("a", text)] == [row]
    assert [item.fields for item in read("-", stdin=io.BytesIO(text.encode()))] == [row]
    # Hindi for text, and an accent of two characters.
    text = f"id{mark}\u092a\u093e\u0920{mark}re\u0301ponse\n1{mark}a{mark}b\n"
    row = {"id": "1", "\u092a\u093e\u0920": "a", "re\u0301ponse": "b"}
    assert [item.fields for item in items("a", text)] == [row]


@pytest.mark.parametrize(
    "text",
    ["Dear Bo, hi\nBye, Ann\n", "mail\nHi\n", "1,Hi\n2,Bye\n", "id,a b\n", "a,b;c\n", "- a: b\n"],
)
def test_what_cannot_be_told_is_refused(write: Written, text: str) -> None:
    says = (
        r"cannot tell the format of {}: .* type --format csv .*; if each line is a text, .* jq -cR "
        r"'\{{text: \.\}}'; or give a file name that ends in \.jsonl, "
    )
    path = write("a.txt", text)
    with pytest.raises(UsageError, match=says.format(path)):
        read(path)
    with pytest.raises(UsageError, match=says.format("standard input")):
        read("-", stdin=io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-16-be without", "utf-16-le", "utf-32"]
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_tells_the_encoding(
    write: Written, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    encoding, without, _ = encoding.partition(" without")
    mark = "\ufeff" if encoding == "utf-16-be" and not without else ""
    rows = [{"a": "é", "b": "😀, x" * 20_000}, {"a": "z", "b": "\u2028"}]
    table = "".join(f'{row["a"]},"{row["b"]}"\r\n' for row in rows)
    objects = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    for name, text in (("a.csv", "a,b\r\n" + table), ("a.jsonl", objects), ("a.json", objects)):
        path = write(name, pack((mark + text).encode(encoding)))
        assert [item.fields for item in read(path)] == rows


def test_a_stream_that_is_not_what_its_mark_says_breaks_off(items: ReadBack) -> None:
    text = '{"a": 1}\n' * 40_000
    *sound, broken = items("a.jsonl", text.encode("utf-16") + b"\x00\xd8\x00\xd8")
    assert len(sound) > 30_000
    assert broken.problem and "not valid UTF-16" in broken.problem.message


def jsonl(count: int) -> str:
    return "".join(f'{{"id": {n}, "story": "A story.", "rot": "x"}}\n' for n in range(count))


def json_list(count: int) -> str:
    return "[" + ",".join(jsonl(count).splitlines()) + "]"


def csv(count: int) -> str:
    return "id,story,rot\n" + "".join(f"{n},A story.,x\n" for n in range(count))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "count"),
    [("a.jsonl", jsonl, 16_000), ("a.json", json_list, 16_000), ("a.csv", csv, 10_000)],
)
def test_memory_does_not_grow_with_the_file(
    write: Written, name: str, content: Callable[[int], str], count: int
) -> None:
    path = write(name, content(count))
    peaks = [peak_of_reading(write("small-" + name, content(2_000))), peak_of_reading(path)]
    assert peaks[1] < peaks[0] + 500_000


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.jsonl", '{"a": "'), ("a.json", '[{"a": "'), ("a.csv", 'id\n"'), ("a.tsv", 'id\n"')],
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_what_is_over_the_limit_is_never_held(
    write: Written, name: str, start: str, end: str
) -> None:
    path = write(name, start + ("x" * 20_000 + end) * 500)
    assert peak_of_reading(path, max_line=50_000, sound=False) < 5_000_000


def peak_of_reading(path: Path, *, max_line: int = MAX_LINE, sound: bool = True) -> int:
    tracemalloc.start()
    try:
        for item in read(path, max_line=max_line):
            assert item.problem is None or not sound
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", [None, "csv"])
@pytest.mark.parametrize("cut", range(1, 24, 4))
def test_a_table_is_read_alike_however_slowly_it_is_written(form: str | None, cut: int) -> None:
    text = b"id\ttext\n1\tAnn, Lee\n2\tBo, Ray\n"
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            for part in (text[:cut], text[cut:]):
                pipe.write(part)
                time.sleep(0.05)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        found = [item.fields for item in read("-", stdin=pipe, format=form)]
    thread.join()
    assert found == [{"id": "1", "text": "Ann, Lee"}, {"id": "2", "text": "Bo, Ray"}]


def test_json_lines_are_passed_on_as_they_come() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as out, os.fdopen(reading, "rb") as pipe:
        out.write(b'{"text": "a"}\n')
        records = read("-", stdin=pipe)
        assert next(records).fields == {"text": "a"}, "before the second was written"
