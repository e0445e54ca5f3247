"""Tables and reports in files: names that no encoding and no spreadsheet expects."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from judge.evaluation.tables import Row, Table
from judge.report.files import write
from judge.stats.intervals import Estimate

HOSTILE = "a\x00b\x1b[31m\ud800\u202e</text><script>alert(1)</script>"


def test_tables_over_hostile_names_are_whole_files(tmp_path: Path) -> None:
    cells = {HOSTILE: Estimate(0.5, 0.4, 0.6, 10, 10)}
    table = Table(
        name="accuracy",
        title=HOSTILE,
        heads=(HOSTILE,),
        rows=[Row((HOSTILE,), cells)],
        notes=(f"no prediction: {HOSTILE}",),
    )
    write([table], tmp_path, benchmark=HOSTILE, model=HOSTILE)
    told = json.loads((tmp_path / "tables.json").read_text("utf-8"))
    assert told["model"] == HOSTILE
    rows = list(csv.reader((tmp_path / "accuracy.csv").open(encoding="utf-8", newline="")))
    assert rows[1][0] == HOSTILE.replace("\ud800", "\\ud800")


def test_no_spreadsheet_runs_a_cell_of_a_table(tmp_path: Path) -> None:
    labels = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "plain", "a=b"]
    rows = [Row((label,), {"n": -1.5}) for label in labels]
    write([Table("t", "T", ("by",), rows)], tmp_path, benchmark="b", model="m")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.reader(file))[1:]
    assert [row[0] for row in found] == [*(f"'{label}" for label in labels[:5]), "plain", "a=b"]
    assert {row[1] for row in found} == {"-1.5"}
