from __future__ import annotations

import datetime
import decimal
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from judge.errors import UsageError
from judge.records import dump, read

from .test_jsonl import problem_of


def parquet_bytes(columns: dict[str, Any], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()


def test_what_json_has_no_form_for_becomes_text_or_null(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    moment = datetime.datetime(2026, 11, 21, 10, 30)
    columns = {
        "bytes": [b"caf\xc3\xa9 \xff"],
        "decimal": [decimal.Decimal("1.50")],
        "moment": [moment],
        "day": [moment.date()],
        "missing": [float("nan")],
        "infinite": [float("inf")],
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    path.write_bytes(parquet_bytes(columns))
    (item,) = read(path)
    assert item.fields == {
        "bytes": "café \\xff",
        "decimal": "1.50",
        "moment": "2026-11-21T10:30:00",
        "day": "2026-11-21",
        "missing": None,
        "infinite": None,
        "map": [["k", 1]],
    }
    assert json.loads(dump(item.fields)) == item.fields


def test_a_cell_that_json_cannot_hold_is_a_problem_of_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    days = pa.array([1, 2**40, 2], pa.int64()).cast(pa.timestamp("s"))
    path.write_bytes(parquet_bytes({"id": ["a", "é", "c"], "day": days}))
    first, bad, last = read(path)
    assert first.fields["id"] == "a" and last.fields["id"] == "c"
    assert "column 'day' cannot be read" in problem_of(bad)
    assert bad.problem is not None and bad.problem.field == "day"


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress], ids=["plain", "gzip"])
def test_parquet_from_standard_input(pack: Any) -> None:
    data = pack(parquet_bytes({"n": [1, 2]}))
    assert [item.fields for item in read("-", stdin=io.BytesIO(data))] == [{"n": 1}, {"n": 2}]


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b'{"a": 1}\n')
    with pytest.raises(UsageError, match="not a Parquet file"):
        read(path)
    whole = gzip.compress(parquet_bytes({"n": list(range(1000))}))
    (item,) = read("-", stdin=io.BytesIO(whole[:-20]), format="parquet")
    assert "cut off" in problem_of(item)


BIG = "B" * 3_000_000
SAME = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), pa.array([BIG]))
BOMBS: dict[str, Any] = {
    "dictionary": SAME,
    "within a list": pa.ListArray.from_arrays(pa.array([0, *[300] * 300], pa.int32()), SAME),
    "within objects": pa.StructArray.from_arrays([SAME], ["text"]),
}


def arrow_bytes(columns: dict[str, Any], *, stream: bool = False) -> bytes:
    table, out = pa.table(columns), io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


# A plain page is unpacked whole by pyarrow: 2 GiB at most, by its format.
@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_text_that_every_row_names_is_copied_for_one_row_at_a_time(
    tmp_path: Path, form: str, bomb: str
) -> None:
    columns = {"id": [*map(str, range(300))], "mail": BOMBS[bomb]}
    data = arrow_bytes(columns) if form == "arrow" else parquet_bytes(columns, store_schema=False)
    path = tmp_path / f"a.{form}"
    path.write_bytes(data)
    before = pa.total_allocated_bytes()
    found = read(path, max_line=10_000_000)
    first = next(found)
    if bomb == "within a list":
        assert "more than the limit of 10000000" in problem_of(first)
    else:
        assert BIG in str(first.fields["mail"])
    assert pa.total_allocated_bytes() - before < 100_000_000, "all rows would be 900 MB"


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "map", "struct", "large", "view"])
def test_the_size_of_a_row_counts_its_texts_wherever_they_stand(tmp_path: Path, kind: str) -> None:
    texts = pa.array(["x" * 10, "y" * 1000, None, "z" * 10])
    pairs = {
        "list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 4]), texts),
        "large_list": pa.LargeListArray.from_arrays(pa.array([0, 1, 2, 4]), texts),
        "fixed": pa.FixedSizeListArray.from_arrays(texts[:3], 1),
        "map": pa.MapArray.from_arrays(
            pa.array([0, 1, 2, 3]), pa.array(["a", "b", "c"]), texts[:3]
        ),
        "struct": pa.StructArray.from_arrays([texts[:3], pa.array([1, 2, 3])], ["a", "b"]),
        "large": texts[:3].cast(pa.large_string()),
        "view": texts[:3].cast(pa.string_view()),
    }
    for name, data in (
        ("a.parquet", parquet_bytes({"c": pairs[kind]})),
        ("a.arrow", arrow_bytes({"c": pairs[kind]})),
        ("b.arrow", arrow_bytes({"c": pairs[kind]}, stream=True)),
    ):
        (tmp_path / name).write_bytes(data)
        found = list(read(tmp_path / name, max_line=900))
        assert [item.problem is None for item in found] == [True, False, True], name
        assert "the row has 10" in problem_of(found[1])


def saved(folder: Path, *parts: list[str]) -> Path:
    """A folder as `datasets.save_to_disk` writes it."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{len(parts):05}.arrow" for n in range(len(parts))]
    for name, texts in zip(names, parts, strict=True):
        (folder / name).write_bytes(arrow_bytes({"mail": texts}, stream=True))
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": n} for n in names]})
    )
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_a_folder_of_save_to_disk(tmp_path: Path) -> None:
    folder = saved(tmp_path / "mails", ["a", "b"], ["c"])
    assert [(item.source, item.line, item.fields) for item in read(folder)] == [
        ("mails", 1, {"mail": "a"}),
        ("mails", 2, {"mail": "b"}),
        ("mails", 3, {"mail": "c"}),
    ]


def test_no_two_lines_of_a_folder_with_a_damaged_file_have_one_number(tmp_path: Path) -> None:
    folder = saved(tmp_path / "mails", ["a"], ["b" * 1000], ["c"])
    damaged = folder / "data-00001-of-00003.arrow"
    damaged.write_bytes(damaged.read_bytes()[:-600])
    found = list(read(folder))
    assert "cannot be read further" in problem_of(found[1])
    assert [item.line for item in found] == [1, 2, 3]


def test_other_folders_are_refused_with_what_to_type(tmp_path: Path) -> None:
    saved(tmp_path / "splits" / "train", ["a"])
    (tmp_path / "splits" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(UsageError, match=r"splits train, test: name one of them, as in .*train$"):
        read(tmp_path / "splits")
    state = tmp_path / "splits" / "train" / "state.json"
    state.write_text('{"_data_files": [], "_indices_files": [{"filename": "i.arrow"}]}')
    with pytest.raises(UsageError, match="flatten_indices"):
        read(state.parent)
    state.write_text('{"_data_files": [{"filename": "../../../secret.arrow"}]}')
    with pytest.raises(UsageError, match=r"train/secret\.arrow does not exist"):
        read(state.parent)
    with pytest.raises(UsageError, match="is a folder: name the files in it"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["a.arrow", "a.feather"])
def test_what_is_no_arrow_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"a": 1}\n')
    with pytest.raises(UsageError, match="not an Arrow file"):
        read(tmp_path / name)


def test_a_damaged_page_gives_what_came_before_and_a_problem(tmp_path: Path) -> None:
    data = bytearray(
        parquet_bytes(
            {"n": [f"row {n} of the table" for n in range(2000)]},
            row_group_size=1000,
            use_dictionary=False,
            write_page_checksum=True,
            compression="zstd",
        )
    )
    start = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0).data_page_offset
    data[start + 40 : start + 400] = b"\x00" * 360
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    found = list(read(path))
    assert found[0].fields == {"n": "row 0 of the table"}
    assert [item.problem is None for item in found[-2:]] == [True, False]
    assert "cannot be read further" in problem_of(found[-1])
    assert str(tmp_path) not in problem_of(found[-1])
