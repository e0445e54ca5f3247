"""Sheets as tasks of Label Studio and Argilla, and their exports read back. The tools' own code
made the files in `exports/` from what judge wrote (`exports/make.py`): it imported the tasks,
checked answers against them, and exported both as people download them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from .typed import Typed

EXPORTS = Path(__file__).with_name("exports")
MAILS = [
    {"id": "m1", "E-mail": "Dear Ann, <b>thanks</b>.", "judge": {"verdict": "pass"}},
    {"id": "m2", "E-mail": "Fool! Read\nit.", "label": "secret"},
]
GOLD = [{"id": "m9", "E-mail": "Kind regards.", "labels": {"question": "yes"}}]
ASK = ("--ask", "Is it polite?", "--on", "E-mail", "--opt-out", "unsure")
ASK += ("--controls", "gold.jsonl", "--control-share", "0.3", "--instructions", "how.txt")


@pytest.fixture
def mails(typed: Typed) -> Typed:
    typed.write("mails.jsonl", MAILS)
    typed.write("gold.jsonl", GOLD)
    (typed.folder / "how.txt").write_text("Polite: nobody minds.\nIt costs $email <0>.")
    return typed


def test_tasks_for_label_studio(mails: Typed) -> None:
    words = ("label", "mails.jsonl", *ASK, "--sheet", "label-studio:tasks.json")
    code, out, told = mails.text(*words)
    assert (code, out) == (0, "") and "wrote tasks.json and tasks.xml: 3 rows" in told
    assert "judge agreement EXPORT.json --controls gold.jsonl" in told
    assert mails.read("tasks.xml") == (EXPORTS / "label-studio.xml").read_bytes()
    assert b"$email &lt;" not in mails.read("tasks.xml"), "instructions name no field of a task"
    tasks = [task["data"] for task in json.loads(mails.read("tasks.json"))]
    exported = json.loads((EXPORTS / "label-studio.json").read_text())
    assert tasks == [task["data"] for task in exported]
    assert b"secret" not in mails.read("tasks.json") and b"pass" not in mails.read("tasks.json")
    code, _, told = mails.text(*words)
    assert code == 2 and "tasks.json exists" in told and mails.text(*words, "--overwrite")[0] == 0


def test_a_full_disk_leaves_no_part_of_a_sheet(mails: Typed) -> None:
    (mails.folder / "tasks.json").symlink_to("/dev/full")
    code, _, told = mails.text("label", "mails.jsonl", *ASK, "--sheet", "label-studio:tasks.json")
    assert code == 4 and "tasks.json cannot be written: No space left on device" in told
    assert not (mails.folder / "tasks.xml").exists()


def test_a_sheet_that_is_drawn_evenly_says_that_it_keeps_no_weights(mails: Typed) -> None:
    mails.write("many.jsonl", [{"E-mail": f"Hi {n}.", "team": "ab"[n < 5]} for n in range(6)])
    words = ("label", "many.jsonl", "--ask", "Is it polite?", "--on", "E-mail", "--sample", "2")
    assert "weights" not in mails.text(*words, "--sheet", "plain.csv")[2]
    code, _, told = mails.text(*words, "--sheet", "sheet.csv", "--by", "team")
    assert code == 0 and "a sheet keeps no weights" in told


def test_a_folder_for_argilla(mails: Typed) -> None:
    code, _, told = mails.text("label", "mails.jsonl", *ASK, "--sheet", "argilla:sheet")
    assert code == 0 and "wrote sheet: 3 rows about 2 records and 1 control, for 3" in told
    settings = json.loads(mails.read("sheet/.argilla/settings.json"))
    assert settings == json.loads((EXPORTS / "argilla-settings.json").read_text())
    records = json.loads(mails.read("sheet/records.json"))
    exported = json.loads((EXPORTS / "argilla-nested.json").read_text())
    assert [r["fields"] for r in records] == [r["fields"] for r in exported]
    assert not any(record["suggestions"] or record["responses"] for record in records)
    two = (*ASK[:4], "--rubric", "scale.yaml")
    (mails.folder / "scale.yaml").write_text("name: s\nquestion: How?\nanswers: [a, b, c]\n")
    code, _, told = mails.text("label", "mails.jsonl", *two, "--sheet", "argilla:other")
    assert code == 2 and "write a folder for each question" in told
    assert not (mails.folder / "other").exists()
    assert mails.text("label", "mails.jsonl", *two, "--sheet", "label-studio:two.json")[0] == 0
    choices = [t["data"]["choices"] for t in json.loads(mails.read("two.json"))]
    assert [{"value": "a"}, {"value": "b"}, {"value": "c"}] in choices
    assert b'value="$choices"' in mails.read("two.xml")


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        *((f"label-studio{kind}", 8) for kind in (".json", "-min.json", "-table.csv")),
        ("argilla.json", 8),
        ("argilla-nested.json", 9),  # Argilla leaves out here that one is discarded.
    ],
)
def test_exports_are_sheets_again(mails: Typed, name: str, labels: int) -> None:
    """The control drops a careless annotator; a cancelled annotation is no label."""
    form = name.partition("-min")[0].partition("-table")[0].partition("-nested")[0].split(".")[0]
    words = ("agreement", f"{form}:{EXPORTS / name}", "--controls", "gold.jsonl")
    words += ("--records", "mails.jsonl", "-o", "m.jsonl")
    code, out, told = mails.text(*words, "--json")
    assert code == 0 and "1 of 3 annotators dropped" in told, told
    report = json.loads(out)
    assert sum(one["labels"] + one["controls"] for one in report["annotators"].values()) == labels
    lines = [json.loads(line) for line in mails.read("m.jsonl").splitlines()]
    assert [line["labels"] for line in lines] == [{"question": "yes"}, {"question": "no"}]
    assert [line["E-mail"] for line in lines] == [mail["E-mail"] for mail in MAILS]
    words = ("calibrate", str(EXPORTS / name), "--ask", "Is it polite?", "--on", "e_mail")
    code, out, _ = mails.text(*words, "-m", "scripted:yes.yaml")
    assert code == 0 and "beside 3 people on 3 items" in out
    mails.write("mails.jsonl", [MAILS[0], {**MAILS[1], "E-mail": "Fool? Read\nit."}])
    words = ("agreement", str(EXPORTS / name), "--records", "mails.jsonl", "-o", "other.jsonl")
    code, _, told = mails.text(*words)
    assert code == 2 and "item m2 shows another text" in told.replace("'", "")


def test_a_damaged_export_is_named_and_the_rest_is_read(mails: Typed) -> None:
    tasks = json.loads((EXPORTS / "label-studio.json").read_text())
    tasks[0]["annotations"][0]["result"][0]["value"] = "yes"
    tasks[1]["annotations"][1]["completed_by"] = [1]
    tasks[2]["annotations"][0]["result"][0]["value"]["choices"] = ["perhaps"]
    (mails.folder / "bad.json").write_text(json.dumps(tasks))
    code, out, told = mails.text("agreement", "bad.json", "--json")
    assert code == 3 and json.loads(out)["checks"][0]["overall"]["labels"] == 4
    assert "field 'value'" in told and "perhaps is none of the answers" in told.replace("'", "")
    assert "3 lines could not be read" in told and "annotator" in told


def test_who_answers_a_task_twice_is_told_and_the_first_answer_holds(mails: Typed) -> None:
    tasks = json.loads((EXPORTS / "label-studio.json").read_text())[:1]
    (first, *_), data = tasks[0]["annotations"], tasks[0]["data"]
    answers = [dict(first, result=[_chosen(answer)]) for answer in ("yes", "no")]
    (mails.folder / "twice.json").write_text(json.dumps([{**tasks[0], "annotations": answers}]))
    code, out, told = mails.text("agreement", "twice.json", "--json")
    assert code == 3 and f"labelled item '{data['item']}' on an earlier line" in told
    assert json.loads(out)["checks"][0]["overall"]["labels"] == 1


def _chosen(answer: str) -> dict[str, object]:
    return {"from_name": "label", "type": "choices", "value": {"choices": [answer]}}


def test_a_spreadsheet_takes_any_text_and_runs_none(mails: Typed) -> None:
    mails.write("odd.jsonl", [{"id": "o", "=HYPER()": "half \ud800 of a pair", "x\udc00": "y"}])
    code, _, told = mails.text("label", "odd.jsonl", "--ask", "Is it so?", "--sheet", "odd.csv")
    assert code == 0, told
    text = mails.read("odd.csv").decode("utf-8-sig")
    assert "half \\ud800 of a pair" in text and ",'=HYPER()," in text
    rude = ("--ask", "How rude?", "--answers=-1,0,1", "--workers", "2", "--sheet", "rude.csv")
    assert mails.text("label", "mails.jsonl", *rude)[0] == 0
    rows = [*csv.DictReader(io.StringIO(mails.read("rude.csv").decode("utf-8-sig")))]
    mails.write("filled.jsonl", [{**row, "label": "-1"} for row in rows])
    code, out, told = mails.text("agreement", "filled.jsonl", "--json")
    assert code == 0, told
    assert json.loads(out)["checks"][0]["overall"]["answers"] == {"-1": 4}


@pytest.mark.parametrize(
    "words",
    [
        ("agreement", "SHEET"),
        ("calibrate", "SHEET", "--ask", "Is it polite?"),
        ("calibrate", "mails.jsonl", "--ask", "Is it polite?", "--labels", "SHEET"),
        ("score", "normad", "SHEET"),
        ("build", "filtered", "SHEET", "-o", "sound.jsonl"),
        ("report", "SHEET", "-o", "page.html"),
    ],
)
def test_a_sheet_that_was_sent_is_no_file_of_answers(mails: Typed, words: tuple[str, ...]) -> None:
    """Every command that takes labels says what the file is, and what to give instead."""
    assert mails.text("label", "mails.jsonl", *ASK[:4], "--sheet", "s.html")[0] == 0
    code, out, told = mails.text(*(word.replace("SHEET", "s.html") for word in words))
    what = "s.html is a sheet to answer in a browser: give the file that it saves, s.NAME.jsonl"
    assert (code, out) == (2, "") and what in " ".join(told.split())
    (mails.folder / "s.html").write_text("<!DOCTYPE html><title>Elsewhere</title>")
    _, _, told = mails.text(*(word.replace("SHEET", "s.html") for word in words))
    assert "s.html is a web page: name the file with the records it was made of" in told


def test_a_sheet_that_came_back_empty_is_told(mails: Typed) -> None:
    mails.text("label", "mails.jsonl", *ASK[:4], "--sheet", "s.csv")
    mails.text("label", "mails.jsonl", *ASK[:4], "--sheet", "label-studio:tasks.json")
    for command in (("agreement",), ("calibrate", "--ask", "Is it polite?")):
        code, _, told = mails.text(*command, "s.csv")
        assert code == 2 and "; 6 rows have no label: people answer in the column label" in told
        code, _, told = mails.text(*command, "tasks.json")
        assert code == 2 and "give its JSON export" in told


def test_bad_usage(mails: Typed) -> None:
    (mails.folder / "file").write_text("mine")
    for sheet, says in (
        ("s.xlsx", "name a .csv file for spreadsheets, a .html file"),
        ("label-studio:tasks.xml", "Label Studio imports a .json file"),
        ("s.argilla", "name a .csv file"),
        ("s.csv", "a .csv file has no place for them"),
        ("argilla:", "name a .csv file"),
        ("argilla:file", "argilla:file: cannot be written: Not a directory"),
    ):
        code, _, told = mails.text("label", "mails.jsonl", *ASK, "--sheet", sheet)
        assert code == 2 and says in told, told
    code, _, told = mails.text("label", "mails.jsonl", *ASK[:-1], "no.txt", "--sheet", "s.html")
    assert code == 2 and "no.txt" in told
    code, _, told = mails.text("label", "mails.jsonl", *ASK, "--workers", "2", "--sheet", "s.html")
    assert code == 2 and "any number of people can answer a sheet of form html" in told
    for answer in ("", "a / b"):
        words = ("label", "mails.jsonl", *ASK[:4], "--opt-out", answer, "--sheet", "s.html")
        code, _, told = mails.text(*words)
        assert code == 2 and f"answer {answer!r}: on a sheet" in told
    assert not [*mails.folder.glob("s.*")]
    code, _, told = mails.text("label", "mails.jsonl", *ASK[:4], "--sheet", "C:s.csv")
    assert code == 0 and "wrote C:s.csv" in told, "as Windows has it"
