"""Tables in, tables out: the record types of notebooks, and the results in them."""

from __future__ import annotations

import json
from collections import UserList, deque
from collections.abc import Callable, Iterator
from dataclasses import make_dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.errors import JudgeError, UsageError
from judge.records.values import from_memory
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
        "datasets.format": lambda: library.Dataset.from_list(ROWS).with_format("pandas"),
        "datasets.stream": lambda: library.Dataset.from_list(ROWS).to_iterable_dataset(),
    }
    return made[name]()


TABLES = (
    "pandas polars polars.lazy pyarrow pyarrow.batch pyarrow.reader "
    "datasets datasets.format datasets.stream"
)


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


@pytest.mark.parametrize("labels", ["numbers", "texts", "repeated", "levels"])
def test_a_frame_of_results_has_the_index_of_the_records(
    asked: dict[str, Any], labels: str
) -> None:
    pandas = pytest.importorskip("pandas")
    index = {
        "numbers": pandas.RangeIndex(4, name="n"),
        "texts": pandas.Index(list("dcba")),
        "repeated": pandas.Index(list("aabb")),
        "levels": pandas.MultiIndex.from_product([[1, 2], ["x", "y"]], names=["of", "at"]),
    }[labels]
    mails = pandas.Series(["thanks", "go", "", "thanks"], index=index, name="mail")
    expected = ["pass", "fail", "abstain", "pass"]
    # A frame whose rows were chosen has neither 0, 1, 2 nor the order of the list.
    chosen = mails.to_frame().iloc[[3, 1, 2]]
    frame = judge.validate(chosen, **asked).to_pandas()
    assert frame.index.equals(chosen.index) and frame.index.names == chosen.index.names
    assert [*frame["judge.verdict"]] == [expected[n] for n in (3, 1, 2)]
    assert [*frame["mail"]] == [*chosen["mail"]]
    assert frame["question.reason"].iloc[2] == "the record has no text in mail"
    on_text = {**asked, "on": "text"}
    assert judge.validate(mails.iloc[::-1], **on_text).to_pandas().index.equals(index[::-1])
    run = judge.validate(mails.to_frame(), **asked)
    next(run)
    found = run.all()
    assert found.to_pandas().index.equals(index[1:])
    assert found[1:].to_pandas().index.equals(index[2:])
    assert judge.Judgements(reversed(found)).to_pandas().index.equals(index[:0:-1])
    drawn = judge.validate(mails.to_frame(), sample=2, **asked).to_pandas()
    places = [place for place, mail in enumerate(mails) if mail in [*drawn["mail"]]]
    assert {*drawn.index} <= {*index[places]} and len(drawn) == 2
    none = mails.to_frame().iloc[:0].copy()
    none["polite"] = judge.validate(none, **asked).to_pandas()["judge.verdict"]
    assert len(none) == 0
    both = judge.Judgements([*found, *judge.validate(chosen, **asked)]).to_pandas()
    assert both.index.equals(index[1:].append(chosen.index))
    mixed = judge.Judgements([*found, *judge.validate(ROWS, **asked)]).to_pandas()
    assert [*mixed.index] == [0, 1, 2, 3, 4]


async def test_asynchronous_results_have_the_index_too(asked: dict[str, Any]) -> None:
    frame = _table("pandas").set_index("id", drop=False)
    found = judge.Judgements([one async for one in judge.avalidate(frame, **asked)])
    assert [*found.to_pandas().index] == ["m1", "m2"]


@pytest.mark.parametrize("name", ["polars", "pyarrow", "datasets"])
def test_a_table_without_an_index_gives_a_frame_with_none(asked: dict[str, Any], name: str) -> None:
    pytest.importorskip("pandas")
    assert [*judge.validate(_table(name), **asked).to_pandas().index] == [0, 1]


@pytest.mark.parametrize("name", ["pandas", "pyarrow", "pyarrow.batch", "pyarrow.reader"])
def test_two_columns_of_one_name_are_refused_as_in_a_file(asked: dict[str, Any], name: str) -> None:
    rows = {"mail": "thanks", "mail2": "go"}
    library = pytest.importorskip(name.partition(".")[0])
    table = library.DataFrame([rows]) if name == "pandas" else library.Table.from_pylist([rows])
    if name == "pandas":
        table.columns = ["mail", "mail"]
    else:
        table = table.rename_columns(["mail", "mail"])
        if name == "pyarrow.batch":
            (table,) = table.to_batches()
        elif name == "pyarrow.reader":
            table = table.to_reader()
    with pytest.raises(UsageError, match="records: the header names a column twice: mail"):
        judge.validate(table, **asked)


def test_a_missing_value_abstains_in_a_column_as_in_a_frame(asked: dict[str, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(["thanks", None, float("nan"), pandas.NA, pandas.NaT], dtype=object)
    on_text = {**asked, "on": "text"}
    found = [
        [(one.name, str(one.verdict), one.reason, dict(one.record)) for one in run]
        for run in (
            judge.validate(texts, **on_text),
            judge.validate(texts.to_frame("text"), **on_text),
            judge.validate([*texts], **on_text),
        )
    ]
    reason = "question: the record has no text in text"
    assert found[0][1:] == [
        (f"records:{n}", "abstain", reason, {"text": None}) for n in (2, 3, 4, 5)
    ]
    assert found[0] == found[1] == found[2]


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
    assert [*frame["judge.models"]] == [asked["model"]] * 2
    assert frame["question.score"].isna().all() and frame["question.probability"].isna().all()
    # The record's own column of that name stays.
    assert list(frame["question.reason"]) == ["mine", "mine"]
    assert list(frame["judge.question.reason"]) == ["Courtesy.", "No <b>courtesy</b>."]


def test_a_list_of_results_sums_up_and_is_a_page_a_file_and_a_table(asked: dict[str, Any]) -> None:
    found = judge.validate(ROWS, **asked).all()
    assert isinstance(found, list) and found[1].record["id"] == "m2"
    assert str(found.summary()) == "2 records: 1 pass, 1 fail"
    by_id = found.summary(by="id").as_json()["by"]
    assert by_id == {"id": {"m1": {"pass": 1}, "m2": {"fail": 1}}}
    with pytest.raises(UsageError, match="--by idd: no record has this field"):
        found.summary(by=["id", "idd"])
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
    assert [*summary.slices.by_value] == ['"X, Y", Z', 'X, "Y, Z"', '"\\"X", Z']


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
    report = judge.validate_to("a.jsonl", ROWS, **asked)
    assert str(report) == "2 records: 1 pass, 1 fail\nexit code: 0"
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
    judge.validate_to("b.jsonl", ROWS, **asked)
    of_files = judge.compare([*map(judge.load_results, ("a.jsonl", "b.jsonl"))])
    assert of_files.runs == {"A": "a.jsonl", "B": "b.jsonl"}
    with pytest.raises(UsageError, match="27 runs: 26 can be compared at most"):
        judge.compare(["a.jsonl"] * 27)


def test_lines_that_judge_did_not_write_are_left_out_with_a_warning(
    asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    judge.validate_to("a.jsonl", ROWS, **asked)
    assert len(judge.load_results("a.jsonl")) == 2 and not caplog.messages
    whole = Path("a.jsonl").read_text()
    Path("a.jsonl").write_text(whole + whole[: len(whole) // 3])
    assert len(judge.load_results("a.jsonl")) == 2
    (warning,) = caplog.messages
    assert "1 of 3 lines could not be read as output of judge; the first: line 3" in warning


def test_a_message_that_every_user_needs_is_a_warning_unless_a_watcher_takes_it(
    asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    Path("people.jsonl").write_text('{"id": "other", "mail": "x", "labels": {"question": "no"}}\n')
    judge.validate_to("o.jsonl", ROWS, decisions="people.jsonl", **asked)
    told = "--decisions: 1 decided record is not among the input"
    assert [entry.getMessage() for entry in caplog.records] == [f"judge: {told}"]

    class Taking(judge.Watcher):
        def say(self, message: str) -> None:
            taken.append(message)

    taken: list[str] = []
    caplog.clear()
    options = {"decisions": "people.jsonl", "overwrite": True, "watcher": Taking()}
    judge.validate_to("o.jsonl", ROWS, **options, **asked)
    assert (taken, caplog.records) == ([told], [])


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


def test_labels_of_people_in_memory_are_those_of_a_file(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    rows = [
        {"item": f"m{item}", "annotator": person, "label": answer}
        for item, answers in enumerate(["yes yes no", "no no no", "yes no no"])
        for person, answer in zip(("ann", "bo", "cy"), answers.split(), strict=True)
    ]
    file = tmp_path / "people.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = judge.agreement(file).as_json()
    assert found["checks"][0]["overall"]["answers"] == {"no": 6, "yes": 3}
    for labels in (rows, pandas.DataFrame(rows)):
        assert judge.agreement(labels).as_json() == found


def test_what_ends_a_run_says_that_what_was_judged_is_kept(asked: dict[str, Any]) -> None:
    found = judge.validate(ROWS, max_calls=1, concurrency=1, **asked)
    with pytest.raises(JudgeError, match="max-calls") as ended:
        found.all()
    assert ended.value.__notes__ == ["1 judged before: .all() of the same run returns them"]
    assert [str(one.verdict) for one in found.all()] == ["pass"]
    with pytest.raises(UsageError, match="scripted:nowhere") as broken:
        judge.validate(ROWS, **{**asked, "model": "scripted:nowhere.yaml"}).all()
    assert not hasattr(broken.value, "__notes__"), "there is nothing that .all() could return"


def test_judgements_taken_one_by_one_are_not_silently_an_empty_table(asked: dict[str, Any]) -> None:
    run = judge.validate(ROWS, **asked)
    assert [str(one.verdict) for one in run] == ["pass", "fail"]
    for take in (run.all, run.to_pandas):
        with pytest.raises(UsageError, match=r"all 2 judgements .* taken one by one.* \.all\(\)"):
            take()
    run = judge.validate(ROWS, **asked)
    assert run.all() == run.all() and len(run.all()) == len(run.to_pandas()) == 2
    assert judge.validate([], **asked).all() == []
    run = judge.validate(ROWS, **asked)
    run.close()
    with pytest.raises(UsageError, match="ended before its first judgement"):
        run.all()


def test_an_interrupt_keeps_what_was_judged(asked: dict[str, Any]) -> None:
    found = judge.validate(ROWS, **asked).all()

    def interrupted() -> Iterator[judge.Judgement]:
        yield from found
        raise KeyboardInterrupt

    run = judge.Results(interrupted(), None)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt) as ended:
        run.all()
    assert ended.value.__notes__ == ["2 judged before: .all() of the same run returns them"]
    assert run.all() == found and len(run.to_pandas()) == 2


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


def test_results_in_memory_know_their_question_and_scale(asked: dict[str, Any]) -> None:
    """A mean of 4.67 with a half interval of 2.57 x 0.82 / sqrt(6) = 0.86 ends at the scale's 5."""
    reply = {"quote": None, "reason": "", "answer": "5"}
    script = {"replies": [{"when": {"contains": "low"}, "reply": {**reply, "answer": "3"}}]}
    script["replies"].append({"reply": reply})
    Path("score.yaml").write_text(json.dumps(script))
    rows = [{"id": n, "mail": "high" if n else "low"} for n in range(6)]
    asked |= {"ask": "How kind?", "answers": "1-5", "model": "scripted:score.yaml"}
    judge.validate_to("out.jsonl", rows, **asked)
    for found in (judge.validate(rows, **asked).all(), judge.load_results("out.jsonl")):
        mean = "mean score 4.67, 95% interval 3.81 to 5.00 (6 of 6 scored)"
        assert str(found.summary()) == f"6 records: 6 answered\nquestion: {mean}"
        found.export("o.md", overwrite=True)
        found.report("o.html", overwrite=True)
        assert mean in Path("o.md").read_text("utf-8")
        assert "How kind?" in Path("o.html").read_text("utf-8")


def test_message_objects_are_shown_as_turns(asked: dict[str, Any]) -> None:
    """Pydantic's, as an app of LangChain or OpenAI's client keeps them, and dataclasses."""
    messages = pytest.importorskip("langchain_core.messages")
    call = {"name": "track", "args": {"n": 1}, "id": "t1"}
    of_langchain = [
        messages.HumanMessage("Where is it?"),
        messages.AIMessage("", tool_calls=[call]),
        messages.AIMessage("thanks for waiting"),
    ]
    turn = make_dataclass("Turn", ["role", "content"])
    of_dataclass = [turn("user", "Where is it?"), turn("assistant", "go")]
    row = make_dataclass("Row", ["mail"])
    rows = [{"mail": of_langchain}, row(of_dataclass)]
    first, second = judge.validate(rows, **asked)
    assert [str(one.verdict) for one in (first, second)] == ["pass", "fail"]
    with pytest.raises(UsageError, match="put it into a list"):
        judge.validate(of_langchain[0], **asked)
    shown = from_memory([first.record, second.record])
    assert [record.texts["mail"] for record in shown] == [
        "1. user: Where is it?\n2. assistant:\n   tool call track (t1):\n      n: 1\n"
        "3. assistant: thanks for waiting",
        "1. user: Where is it?\n2. assistant: go",
    ]


def test_dates_of_numpy_are_dates_and_sets_have_an_order(asked: dict[str, Any]) -> None:
    numpy = pytest.importorskip("numpy")
    days = numpy.array(["2026-11-02T10:00", "NaT"], dtype="datetime64[ns]")
    row = {"mail": "thanks", "day": days[0], "days": days, "took": days[0] - days[0], "in": {8, 1}}
    row |= {"long": numpy.longdouble(1.5), "none": [Decimal("NaN"), Decimal("2.50")]}
    (judgement,) = judge.validate([row], **asked)
    assert dict(judgement.record) == {
        "mail": "thanks",
        "day": "2026-11-02T10:00:00",
        "days": ["2026-11-02T10:00:00", None],
        "took": "0:00:00",
        "in": [1, 8],
        "long": 1.5,
        "none": [None, "2.50"],
    }


def test_what_is_judged_is_what_the_line_holds_of_a_value_of_python(asked: dict[str, Any]) -> None:
    kinds = {
        "mail": StrEnum("Tone", {"KIND": "thanks"}).KIND,
        "was": Enum("Tone", {"KIND": "thanks"}, type=str)["KIND"],
        "n": Enum("Number", {"ONE": 1}).ONE,
        "turns": deque([{"role": "user", "content": "Hi"}], maxlen=9),
        "parts": [range(2), {"a": 1}.values(), UserList("x"), bytearray(b"y")],
        "of": {Enum("Tone", {"KIND": "thanks"}, type=str)["KIND"]: object()},
    }
    (judgement,) = judge.validate([kinds], **asked)
    expected = {
        "mail": "thanks",
        "was": "thanks",
        "n": 1,
        "turns": [{"role": "user", "content": "Hi"}],
        "parts": [[0, 1], [1], ["x"], "y"],
        "of": {"thanks": "<object object>"},
    }
    assert judgement.record == expected
    (shown,) = from_memory([kinds])
    assert {name: shown.texts[name] for name in ("mail", "was", "n", "turns")} == {
        "mail": "thanks",
        "was": "thanks",
        "n": "1",
        "turns": "1. user: Hi",
    }


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({1: "a", "1": "b"}, "two keys of one object are '1' as text"),
        ((word for word in ["a"]), "holds a generator, which can be read once only"),
    ],
)
def test_a_value_that_json_would_lose_is_an_error(
    asked: dict[str, Any], value: object, told: str
) -> None:
    (judgement,) = judge.validate([{"mail": "thanks", "value": value}], **asked)
    assert judgement.error is not None
    assert told in judgement.error.message


def test_a_resumed_run_knows_its_records_with_images(asked: dict[str, Any]) -> None:
    """As `datasets` decodes them; the text of one has its address in memory."""
    pillow = pytest.importorskip("PIL.Image")
    for _ in range(2):
        records = [{"mail": "thanks", "scan": pillow.new("RGB", (2, 2))}]
        report = judge.validate_to("o.jsonl", records, resume=True, **asked)
        assert dict(report.summary.verdicts) == {"pass": 1}
    assert not Path("o.jsonl.unmatched.jsonl").exists()
    assert judge.load_results("o.jsonl")[0].record["scan"] == {"type": "image"}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda **k: judge.validate(ROWS, limit=-1, **k), "^limit: must be at least 0"),
        (lambda **k: judge.validate(ROWS, limit="2", **k), "^limit: must be a whole number"),
        (lambda **k: judge.validate(ROWS, sample=1.5, **k), "^sample: must be a whole number"),
        (lambda **k: judge.calibrate(ROWS, guarantee="0.9", **k), "^guarantee: must be a number"),
        (lambda **_: judge.agreement("l.jsonl", seed=-1), "^seed: must be at least 0"),
        (lambda **k: judge.validate_to("o.jsonl", ROWS, sample=-3, **k), "^sample: .* at least 1"),
        (lambda **k: judge.plan(ROWS, sample=0, **k), "^sample: must be at least 1"),
        (lambda **k: judge.calibrate(ROWS, guarantee=95, **k), "^guarantee: must be at most 0.999"),
        (lambda **k: judge.calibrate(ROWS, folds=1, **k), "^folds: must be at least 2"),
        (lambda **k: judge.calibrate(ROWS, sample=0, **k), "^sample: must be at least 1"),
        (lambda **_: judge.agreement("l.jsonl", raters=1), "^raters: must be at least 2"),
        (lambda **_: judge.agreement("l.jsonl", controls="c.jsonl", least=60), "^least: .* 1$"),
        (lambda **_: judge.agreement("l.jsonl", least=0.7), "--least needs --controls"),
        (lambda **_: judge.agreement("l.jsonl", records="r.jsonl"), "--records needs -o"),
    ],
)
def test_a_number_out_of_bounds_is_refused_as_on_the_command_line(
    asked: dict[str, Any], call: Callable[..., Any], told: str
) -> None:
    Path("l.jsonl").write_text('{"item": "a", "annotator": "x", "label": "yes"}\n')
    with pytest.raises(UsageError, match=told):
        call(**asked)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda **_: judge.compare("o.jsonl"), r"^runs: name at least two in a list"),
        (lambda **_: judge.compare(["o.jsonl"]), r"^runs: name at least two in a list"),
        (lambda **k: judge.compare(judge.validate(ROWS, **k).all()), "^runs: name at least two"),
        (lambda **k: judge.compare([judge.validate(ROWS, **k), []]), "^run B: .* not 0 files"),
        (lambda **_: judge.compare([["o", "o"], "o"]), "^run A: .* not 2 files"),
        (
            lambda **_: judge.compare([judge.Judgement(verdict="pass")] * 2),
            "^run A: .* into a list",
        ),
        (lambda **k: judge.calibrate(ROWS, fail_under=0.9, **k), "^fail_under: judge.validate_to "),
        (lambda **_: judge.agreement("l.jsonl", votes=3), "^votes: unknown .* answers, .* id, map"),
    ],
)
def test_what_has_no_effect_is_refused(
    asked: dict[str, Any], call: Callable[..., Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        call(**asked)


def test_a_frame_holds_what_utf8_cannot(asked: dict[str, Any]) -> None:
    """A lone surrogate, as a text cut in the middle of an emoji has, also in a column's name."""
    pytest.importorskip("pandas")
    rows = [{"mail": "thanks \ud83d", "\ud83d": "go", "\\ud83d": "stay"}]
    found = judge.validate(rows, **asked).to_pandas()
    assert found.loc[0, "mail"] == "thanks \\ud83d"
    assert found.loc[0, ["\\ud83d", "\\ud83d_"]].to_list() == ["go", "stay"]


def test_sums_are_plain_data_that_any_writer_takes(asked: dict[str, Any]) -> None:
    import yaml

    found = judge.validate(ROWS, **asked).all()
    sums = yaml.safe_load(yaml.safe_dump(found.summary().as_json()))
    assert sums["checks"] == {"question": {"pass": 1, "fail": 1}}
    line = yaml.safe_load(yaml.safe_dump(found[0].line))["judge"]
    assert (line["verdict"], line["checks"][0]["votes"][0]["verdict"]) == ("pass", "pass")
    compared = yaml.safe_load(yaml.safe_dump(judge.compare([found, found]).as_json()))
    assert compared["runs"] == {"A": "run A", "B": "run B"}
