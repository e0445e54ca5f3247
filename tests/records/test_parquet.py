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
    assert (first.fields or {})["id"] == "a" and (last.fields or {})["id"] == "c"
    assert "column 'day' holds what cannot be read" in problem_of(bad)
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
