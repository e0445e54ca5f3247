"""Names of records, and the choice of input files: `--id`, repeated ids, folders, patterns."""

from __future__ import annotations

import pytest

from tests.report.pages import entries

from .conftest import Typed, lines

NO = {"reply": {"quote": None, "reason": "So.", "answer": "no"}}
ASK = ("--ask", "Is it polite?", "--on", "mail", "-m", "scripted:no.yaml")


@pytest.fixture
def folder(typed: Typed) -> Typed:
    typed.script("no.yaml", [NO])
    (typed.folder / "d").mkdir()
    (typed.folder / "d" / "one.csv").write_text("id,mail\na,Hello\na,Hi\n")
    typed.write("d/two.jsonl", [{"id": "a", "mail": "Yo", "ref": "R1"}, {"mail": "x", "ref": "R2"}])
    (typed.folder / "d" / "notes.md").write_text("no records")
    return typed


def test_a_repeated_id_is_named_by_its_place_with_one_warning(folder: Typed) -> None:
    code, _, told = folder.text("validate", "d", *ASK, "-o", "o.jsonl", "--review", "r.jsonl")
    assert code == 0 and told.count("is repeated: ") == 1, told
    named = [line["judge"].get("name") for line in lines(folder.read("o.jsonl"))]
    assert named == [None, "d/one.csv:3", "d/two.jsonl:1", "d/two.jsonl:2"]
    for name in ("a  ", "d/one.csv:3", "d/two.jsonl:1", "d/two.jsonl:2"):
        assert f"  {name}" in told, "the failures in the closing summary"
    assert folder.text("report", "o.jsonl", "-o", "o.html")[0] == 0
    page = folder.read("o.html").decode()
    assert "d/two.jsonl:2" in [entry["id"] for entry in entries(page)]
    assert folder.text("export", "o.jsonl", "-o", "o.xml")[0] == 0
    assert b'name="d/one.csv:3"' in folder.read("o.xml")


def test_a_column_names_the_records_and_is_not_shown(folder: Typed) -> None:
    ask = ("--ask", "Is it polite?", "-m", "scripted:no.yaml")
    code, out, told = folder.text("validate", "d/two.jsonl", "--id", "ref", *ask)
    assert code == 0 and "not shown: id (the id)" in told
    assert [line["judge"]["name"] for line in lines(out.encode())] == ["R1", "R2"]
    assert lines(out.encode())[1]["ref"] == "R2", "the record's own fields are unchanged"
    code, _, told = folder.text("validate", "d/two.jsonl", "--id", "rfe", *ask)
    assert code == 2 and "--id rfe" in told


@pytest.mark.parametrize(
    ("own", "column", "name", "says"),
    [
        ({"ID": 7, "ref": "R1"}, "ref", "R1", ""),
        ({"_id": "x", "id": "y", "ref": "R1"}, "ref", "R1", "'_id' and 'id' both stand for id"),
        (
            {"_id": {"$oid": "65a"}},
            "_id.$oid",
            "65a",
            "'_id' must be a text or a number",
        ),  # MongoDB
    ],
)
def test_a_column_stands_in_for_a_records_own_id_in_any_spelling(
    folder: Typed, own: dict[str, object], column: str, name: str, says: str
) -> None:
    folder.write("n.jsonl", [{**own, "mail": "Hi"}])
    run = ("validate", "n.jsonl", "--ask", "Is it polite?", "-m", "scripted:no.yaml")
    (line,) = lines(folder.text(*run)[1].encode())
    assert says in (message := line["judge"].get("error", {}).get("message", ""))
    assert not says or "name another with --id" in message
    code, out, told = folder.text(*run, "--id", column)
    (line,) = lines(out.encode())
    assert (code, line["judge"].get("name"), {key: line[key] for key in own}) == (0, name, own)
    assert "fields shown: mail;" in told, "as the column is, the own id is not shown"


def test_patterns_and_folders_are_files(folder: Typed) -> None:
    assert len(lines(folder.text("validate", "d/*.csv", *ASK)[1].encode())) == 2
    assert folder.text("validate", "x/*.csv", *ASK)[::2] == (2, "judge: x/*.csv: no such file\n")
    (folder.folder / "e").mkdir()
    for hidden in ("._mails.csv", ".old.jsonl", "~$book.xlsx"):  # of macOS, an editor, Excel
        folder.write(f"e/{hidden}", [{"text": "no data"}])
    code, _, told = folder.text("validate", "e", *ASK)
    assert code == 2 and "e: no file that ends in .jsonl" in told
    (folder.folder / "e" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    code, _, told = folder.text("validate", "e", "--ask", "Polite?", "-m", "scripted:no.yaml")
    assert (code, told) == (
        2,
        "judge: e holds the splits train, test: name one of them, as in e/train\n",
    )


@pytest.mark.parametrize("out", ["o.jsonl", "o.csv", "o.jsonl.gz"])
@pytest.mark.parametrize("source", ["d", "d/*"])
def test_what_a_run_writes_into_the_folder_of_its_inputs_is_no_input(
    folder: Typed, source: str, out: str
) -> None:
    (folder.folder / "d" / "notes.md").unlink()
    run = ("validate", source, *ASK, "-q", "-o", f"d/{out}", "--review", "d/r.jsonl")
    written = ("--summary", "d/s.json", "--review-verdicts", "fail")
    assert folder.text(*run, *written)[0] == 0
    (folder.folder / "d" / "one.csv").write_text("id,mail\na,Hello\n")
    assert folder.text(*run, *written, "--resume")[0] == 0
    assert folder.text(*run, *written, "--resume")[0] == 0, "beside o.jsonl.unmatched.jsonl"
    mails = [line["mail"] for line in lines(folder.read("d/r.jsonl"))]
    assert mails == ["Hello", "Yo", "x"]


def test_where_every_record_would_be_skipped_nothing_is_asked(folder: Typed) -> None:
    (folder.folder / "r.yaml").write_text("name: r\nquestion: Q?\nfields: [mial]\n")
    run = ("validate", "d/one.csv", "--rubric", "./r.yaml", "-m", "scripted:no.yaml")
    code, out, told = folder.text(*run)
    assert (code, out) == (2, "")
    assert told == "judge: rubric r: mial: no record has this field; did you mean mail?\n"
