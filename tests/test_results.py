"""Tables in, tables out: the record types of notebooks, and the results in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.errors import JudgeError, UsageError
from tests.report.pages import entries

SCRIPT = """
replies:
  - when: {contains: thanks}
    reply: {quote: thanks, reason: Courtesy., answer: "yes"}
  - reply: {quote: null, reason: No <b>courtesy</b>., answer: "no"}
"""
ROWS = [{"id": "m1", "mail": "thanks"}, {"id": "m2", "mail": "go"}]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    Path("judge.yaml").write_text(SCRIPT)
    return {"ask": "Polite?", "on": "mail", "model": "scripted:judge.yaml", "cache": False}


def _table(name: str) -> Any:
    library = pytest.importorskip(name.partition(".")[0])
    made: dict[str, Callable[[], Any]] = {
        "pandas": lambda: library.DataFrame(ROWS),
        "polars": lambda: library.DataFrame(ROWS),
        "polars.lazy": lambda: library.LazyFrame(ROWS),
        "pyarrow": lambda: library.Table.from_pylist(ROWS),
        "pyarrow.batch": lambda: library.RecordBatch.from_pylist(ROWS),
        "pyarrow.reader": lambda: library.Table.from_pylist(ROWS).to_reader(),
        "datasets": lambda: library.Dataset.from_list(ROWS),
        "datasets.stream": lambda: library.Dataset.from_list(ROWS).to_iterable_dataset(),
    }
    return made[name]()


TABLES = "pandas polars polars.lazy pyarrow pyarrow.batch pyarrow.reader datasets datasets.stream"


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES.split())
def test_a_table_of_any_library_is_records(asked: dict[str, Any], name: str) -> None:
    found = judge.validate(_table(name), **asked).all()
    assert [one.record for one in found] == ROWS
    assert [str(one.verdict) for one in found] == ["pass", "fail"]


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_column_of_texts_is_records(asked: dict[str, Any], name: str) -> None:
    found = judge.validate(_table(name)["mail"], **{**asked, "on": "text"}).all()
    assert [one.record for one in found] == [{"text": "thanks"}, {"text": "go"}]


def test_splits_are_named(asked: dict[str, Any]) -> None:
    data = pytest.importorskip("datasets")
    splits = data.DatasetDict({"train": _table("datasets"), "test": _table("datasets")})
    with pytest.raises(UsageError, match="one of the splits train, test"):
        judge.validate(splits, **asked)
    with pytest.raises(UsageError, match="put it into a list"):
        judge.validate(ROWS[0], **asked)
    with pytest.raises(UsageError, match="not int"):
        judge.validate(3, **asked)


def test_a_frame_has_the_records_columns_and_those_of_each_check(asked: dict[str, Any]) -> None:
    pytest.importorskip("pandas")
    rows = [{**row, "question.reason": "mine"} for row in ROWS]
    frame = judge.validate(rows, **asked).to_pandas()
    assert list(frame.columns[:3]) == ["id", "mail", "question.reason"]
    told = {"answer": ["yes", "no"], "verdict": ["pass", "fail"], "quote": ["thanks", None]}
    for part, cells in told.items():
        assert [cell if isinstance(cell, str) else None for cell in frame[f"question.{part}"]] == (
            cells
        )
    assert frame["question.score"].isna().all() and frame["question.probability"].isna().all()
    # The record's own column of that name stays.
    assert list(frame["question.reason"]) == ["mine", "mine"]
    assert list(frame["judge.question.reason"]) == ["Courtesy.", "No <b>courtesy</b>."]


def test_a_list_of_results_sums_up_and_is_a_page_a_file_and_a_table(asked: dict[str, Any]) -> None:
    found = judge.validate(ROWS, **asked).all()
    assert isinstance(found, list) and found[1].record["id"] == "m2"
    assert str(found.summary()) == "2 records: 1 pass, 1 fail"
    assert found.summary(by="id").slices == {"m1": {"pass": 1}, "m2": {"fail": 1}}
    said = str(found).splitlines()
    assert said[:2] == ["2 records: 1 pass, 1 fail", "  m1: pass"] and said[2].startswith("  m2: ")
    found.report("page.html")
    found.export("out.csv")
    shown = entries(Path("page.html").read_text())
    assert [entry["id"] for entry in shown] == ["m1", "m2"]
    assert "No <b>courtesy" in shown[1]["judge"]["reason"]
    assert Path("out.csv").read_text().count("\n") == 3
    html = found[1:]._repr_html_()
    assert "<td>m2</td>" in html and "No &lt;b&gt;courtesy" in html and "1 record: 1 fail" in html
    assert "m1" not in html


def test_slices_of_several_fields_are_told_apart(asked: dict[str, Any]) -> None:
    pairs = [("X, Y", "Z"), ("X", "Y, Z"), ('"X', "Z")]
    rows = [{"mail": "go", "a": a, "b": b} for a, b in pairs]
    summary = judge.validate(rows, **asked).all().summary(by=["a", "b"])
    assert [*summary.slices] == ['"X, Y", Z', 'X, "Y, Z"', '"\\"X", Z']


def test_progress_in_a_notebook_knows_the_number_of_records_and_not_that_of_files(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr("judge.results._display", lambda: shown.append)
    for name in ("a", "b"):
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    judge.validate([Path("a.jsonl"), Path("b.jsonl")], **asked).all()
    assert shown[-1] == "judging: 4 fail 2 pass 2"
    judge.validate(ROWS, **asked).all()
    assert shown[-1] == "judging: 2/2 fail 1 pass 1"


def test_results_of_a_file_are_those_of_the_run_and_compare(asked: dict[str, Any]) -> None:
    judge.validate_to("a.jsonl", ROWS, **asked)
    read, found = judge.load_results("a.jsonl"), judge.validate(ROWS, **asked).all()
    assert [one.line for one in read] == [one.line for one in found]
    assert [json.loads(json.dumps(one.line)) for one in found] == [
        json.loads(line) for line in Path("a.jsonl").read_text().splitlines()
    ]
    Path("judge.yaml").write_text(SCRIPT.replace('answer: "no"', 'answer: "yes"'))
    kind = judge.validate(ROWS, **asked)
    comparison = judge.compare(["a.jsonl", kind.all()])
    row = next(row for row in comparison.tables[0].rows if row.labels == ("record",))
    assert (row.cells["A"].value, row.cells["B"].value) == (0.5, 1.0)  # type: ignore[union-attr]
    assert comparison.runs == {"A": "a.jsonl", "B": "run B"}


async def test_labels_in_memory_calibrate(asked: dict[str, Any]) -> None:
    pytest.importorskip("sklearn")
    labels = ["yes", "no", "yes", "no"]
    rows = [
        {"mail": f"{row['mail']} {n}", "labels": {"question": label}}
        for n, (row, label) in enumerate(zip(ROWS * 2, labels, strict=True))
    ]
    found = await judge.acalibrate(rows, controls=False, **asked)
    assert found.checks[0].judges[0].final.accuracy.value == 1.0
    rows[0]["labels"] = {"question": "perhaps"}
    found = await judge.acalibrate(rows, controls=False, **asked)
    (problem,) = found.problems
    assert (problem.source, problem.line) == ("records", 1)


def test_what_ends_a_run_says_that_what_was_judged_is_kept(asked: dict[str, Any]) -> None:
    found = judge.validate(ROWS, max_calls=1, concurrency=1, **asked)
    with pytest.raises(JudgeError, match="max-calls") as ended:
        found.all()
    assert ended.value.__notes__ == ["1 judged before; their replies are in the cache"]


@pytest.mark.slow
def test_a_notebook_shows_progress_and_a_table(asked: dict[str, Any]) -> None:
    client = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        f"import judge\nasked = {asked!r}\nrows = {ROWS!r}\nfound = judge.validate(rows, **asked)",
        "found",
        "results = found.all()\nresults",
        "results.to_pandas()[['id', 'question.answer']]",
        "[str(one.verdict) async for one in judge.avalidate(rows, **asked)]",
        "report = judge.validate_to('out.jsonl', rows, **asked)\nprint(report.exit_code)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    client.NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    shown = [list(_shown(cell)) for cell in notebook.cells]
    assert "take .all()" in shown[1][0]
    assert shown[2][0] == "judging: 2/2 fail 1 pass 1"
    assert shown[2][1].startswith("<p>2 records: 1 pass, 1 fail</p><table>")
    assert "yes" in shown[3][0] and "m2" in shown[3][0]
    assert shown[4] == ["['pass', 'fail']"] and shown[5] == ["0\n"]


def _shown(cell: Any) -> Iterator[str]:
    for output in cell.outputs:
        data = output.get("data", {})
        yield data.get("text/html") or data.get("text/plain") or output.get("text", "")
