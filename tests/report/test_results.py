"""Tables and reports in files: names that no encoding and no spreadsheet expects."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from judge.evaluation.tables import Row, Table
from judge.report.results import write
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
