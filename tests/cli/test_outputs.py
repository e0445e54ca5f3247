"""`judge validate -o FILE` by FILE's ending, and what a terminal shows without it."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import judge

from .conftest import COMMAND, Shell, lines
from .typed import Typed

MAILS = [{"id": "a", "mail": "Thanks."}, {"id": "b", "mail": "Go."}, {"id": "c", "mail": "Bye."}]
RUN = ("validate", "in.jsonl", "--ask", "Polite?", "--on", "mail", "-m", "scripted:judge.yaml")
SHORT = tuple("Short?" if word == "Polite?" else word for word in RUN)


@pytest.fixture
def mails(typed: Typed) -> Typed:
    replies = [
        {"when": {"contains": "Go"}, "reply": {"quote": "Go.", "reason": "Bare.", "answer": "no"}},
        {"reply": {"quote": None, "reason": "Kind.", "answer": "yes"}},
    ]
    typed.script("judge.yaml", replies)
    typed.write("in.jsonl", MAILS)
    return typed


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx", ".jsonl.gz"])
def test_a_file_has_the_form_of_its_name(mails: Typed, ending: str) -> None:
    assert mails.text(*RUN, "-o", "plain.jsonl")[0] == 0
    plain = mails.read("plain.jsonl")
    code, out, told = mails.text(
        *RUN, "-o", f"in{ending}" if ending != ".jsonl.gz" else "z.jsonl.gz"
    )
    name, beside = (f"in{ending}", f"in{ending}.jsonl")
    if ending == ".jsonl.gz":
        name, beside = "z.jsonl.gz", "z.jsonl"
        assert gzip.decompress(mails.read(name)) == plain
    else:
        # The lines, too, can be read by judge itself.
        mails.text("export", "plain.jsonl", "-o", f"same{ending}")
        if ending != ".xlsx":  # which holds the time
            assert mails.read(name) == mails.read(f"same{ending}")
        rows = mails.text("validate", name, "--limit", "1", *RUN[2:])[1]
        assert json.loads(rows)["question.reason"] == "Kind."
    assert (code, out) == (0, "") and f"output: {name}, made of the lines in {beside}" in told
    assert mails.read(beside) == plain and (mails.folder / f"{beside}.run.json").is_file()
    code, _, told = mails.text(*RUN, "-o", name)
    assert code == 2 and f"{name} exists" in told
    assert mails.text("report", beside, "-o", "page.html")[0] == 0


@pytest.mark.parametrize("name", ["my.csv", "my.jsonl.gz"])
def test_resume_replaces_no_table_whose_lines_are_missing(mails: Typed, name: str) -> None:
    (mails.folder / name).write_bytes(b"id,mail\n1,mine\n")
    code, _, told = mails.text(*RUN, "-o", name, "--resume")
    assert code == 2 and f"{name} exists without its lines" in told, told
    assert mails.read(name) == b"id,mail\n1,mine\n"


def test_a_table_is_made_when_the_lines_are_all_there(mails: Typed) -> None:
    """A run that ends early keeps its lines; --resume goes on with them, and makes the table."""
    few = (*RUN, "-o", "t.csv", "--max-calls", "1", "--concurrency", "1")
    code, _, told = mails.text(*few)
    assert code == 4 and "t.csv.jsonl" in told and not (mails.folder / "t.csv").exists()
    words = " ".join(told.split())
    assert "t.csv, not made yet: --resume finishes it" in words and "made of the lines" not in words
    assert mails.read("t.csv.jsonl").count(b"\n") == 1
    code, _, told = mails.text(*RUN, "-o", "t.csv", "--resume")
    assert code == 0 and "1 kept" in told
    found = re.search(r"2 records in ([\d.]+) s \(([\d.]+)/s\)", told)
    assert found is not None
    seconds, rate = map(float, found.groups())
    # The seconds are shown to one place, the rate to two or none.
    assert 2 / (seconds + 0.05) - 0.5 <= rate <= 2 / max(seconds - 0.05, 1e-9) + 0.5
    rows = list(csv.DictReader(mails.read("t.csv").decode().splitlines()))
    assert [(row["id"], row["question.answer"], row["question.verdict"]) for row in rows] == [
        *(("a", "yes", "pass"), ("b", "no", "fail"), ("c", "yes", "pass"))
    ]
    code, _, told = mails.text(*few, "--overwrite", "--no-cache")
    assert code == 4 and "t.csv, of an earlier run: --resume finishes it" in " ".join(told.split())


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet"])
def test_a_table_of_judged_records_is_no_input_and_the_lines_beside_it_are_named(
    mails: Typed, name: str
) -> None:
    mails.text(*RUN, "-o", name)
    for words in (("report", name, "-o", "p.html"), ("export", name, "-o", "p.md")):
        code, _, told = mails.text(*words)
        assert code == 2 and f"use {name}.jsonl, which is beside it" in " ".join(told.split())
    (mails.folder / f"{name}.jsonl").unlink()
    told = mails.text("report", name, "-o", "p.html")[2]
    assert "name its output file" in " ".join(told.split())


def test_a_table_that_cannot_be_written_is_told_before_and_after(
    mails: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, told in (
        ("no/t.csv", "no/t.csv"),
        ("t.zst", "of validate's -o also"),
        (".", "folder"),
    ):
        code, _, said = mails.text(*RUN, "-o", name)
        assert code == 2 and told in said
    monkeypatch.setattr("judge.run.job.find_spec", lambda _: None)
    code, _, said = mails.text(*RUN, "-o", "t.parquet")
    assert code == 2 and "-o t.parquet needs pyarrow" in said
    assert not list(mails.folder.glob("t.*"))


def test_a_run_whose_table_or_summary_is_not_written_ends_with_4(mails: Typed) -> None:
    (mails.folder / "t.csv").symlink_to("no/t.csv")
    code, _, said = mails.text(*RUN, "-o", "t.csv", "--summary", "s.json")
    assert code == 4 and "t.csv: cannot be written: No such file or directory" in said
    assert json.loads(mails.read("s.json"))["exit_code"] == 4
    (mails.folder / "full").symlink_to("/dev/full")
    code, _, said = mails.text(*RUN, "-q", "-o", "o.jsonl", "--summary", "full")
    assert code == 4 and said.startswith("judge: --summary full cannot be written: No space left")
    again = (*RUN, "-q", "-o", "o.jsonl", "--resume", "--summary", "room.json")
    assert mails(*again).returncode == 0
    assert json.loads(mails.read("room.json"))["resumed"] == len(lines(mails.read("o.jsonl")))


def test_a_disk_without_room_for_a_new_file_is_told_with_its_remedy(
    mails: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mails(*RUN, "-q", "-o", "old.jsonl").returncode == 0
    opened = os.open

    def full(path: Any, flags: int, mode: int = 0o777) -> int:
        if Path(os.fsdecode(path)).name.startswith((".judge-", "new")) and flags & os.O_CREAT:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), path)
        return opened(path, flags, mode)

    monkeypatch.setattr("os.open", full)
    for words in ((*RUN, "-o", "new.jsonl"), ("report", "old.jsonl", "-o", "new.html")):
        code, _, told = mails.text(*words)
        assert code == 4 and f"judge: {words[-1]} cannot be written: Disk quota exceeded; " in told
        assert "make room there" in told
    assert not list(mails.folder.glob("new*"))


def test_a_full_disk_under_a_workbook_is_told_in_one_line(judge: Shell) -> None:
    (judge.folder / "in.jsonl").write_text(json.dumps({"id": "a", "text": "Hi."}) + "\n")
    asked = ("--ask", "Is it?", "-m", "scripted:yes.yaml", "--method", "logprobs")
    assert judge("validate", "in.jsonl", *asked, "-q", "-o", "o.jsonl").returncode == 0
    (judge.folder / "full.xlsx").symlink_to("/dev/full")
    done = judge("export", "o.jsonl", "-o", "full.xlsx")
    told = b"judge: full.xlsx cannot be written: No space left on device; make room there\n"
    assert (done.returncode, done.stderr) == (4, told)


def test_questions_stand_beside_the_output_in_words(mails: Typed) -> None:
    mails.text(*RUN, "-o", "out.jsonl")
    (run,) = json.loads(mails.read("out.jsonl.run.json")).values()
    assert "Polite?" in run["questions"]["question"] and run["rubrics"]["question"]
    # Of an older run they are not there: it goes on all the same.
    del run["questions"]
    mark = lines(mails.read("out.jsonl"))[0]["judge"]["fingerprint"]
    (mails.folder / "out.jsonl.run.json").write_text(json.dumps({mark: run}))
    code, _, told = mails.text(*RUN, "-o", "out.jsonl", "--resume")
    assert code == 0 and "3 kept" in told
    code, _, told = mails.text(*RUN, "-o", "out.jsonl", "--resume", "--votes", "3")
    assert code == 2 and "differs: settings.votes was 1, is 3." in " ".join(told.split())
    code, _, told = mails.text(*SHORT, "-o", "out.jsonl", "--resume")
    assert code == 2 and "differs: rubrics.question was '" in " ".join(told.split())


def test_a_resumed_run_tells_another_question_in_words(mails: Typed) -> None:
    mails.text(*RUN, "-o", "out.jsonl")
    code, _, told = mails.text(*SHORT, "-o", "out.jsonl", "--resume")
    said = " ".join(told.split())
    assert code == 2 and "differs: questions.question was 'Polite?', is 'Short?'." in said
    code, _, told = mails.text(*RUN, "--ask", "Short?", "-o", "out.jsonl", "--resume")
    assert code == 2 and "questions.question_2 was None, is 'Short?'" in " ".join(told.split())


def test_a_resumed_run_tells_once_which_model_was_typed(mails: Typed) -> None:
    mails.text(*RUN, "-o", "out.jsonl")
    mails.script("other.yaml", [{"reply": {"quote": None, "reason": "Kind.", "answer": "yes"}}])
    resumed = ("-o", "out.jsonl", "--resume")
    models = ("scripted:judge.yaml", "scripted:other.yaml")
    for words, option in (
        (("-m", models[1]), "--model"),
        (("-m", models[0], "--final-model", models[1]), "--final-model"),
    ):
        code, _, told = mails.text(*RUN[:-2], *words, *resumed)
        differs = f"{option} was '{models[0]}', is '{models[1]}'"
        assert code == 2 and f"What differs: {differs}. Use" in " ".join(told.split())


@pytest.mark.slow
def test_a_terminal_shows_the_summary_and_a_pipe_gets_lines(judge: Shell) -> None:
    judge.write("in.jsonl", MAILS)
    words = ["validate", "in.jsonl", "--ask", "Polite?", "-m", "scripted:yes.yaml"]
    assert len(lines(judge(*words).stdout)) == 3
    shown = on_terminal(judge, *words)
    assert '"judge"' not in shown and "3 of 3 records pass" in shown
    assert "next: -o judged.jsonl" in shown
    assert on_terminal(judge, *words, "-q").count('"judge"') == 3


def on_terminal(judge: Shell, *words: str) -> str:
    """What stands on a terminal that both streams lead to."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=judge.folder, env=judge.env, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while piece := _read(ours):
        shown += piece
    os.close(ours)
    assert process.wait(60) == 0
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's end of a terminal.
        return b""


def test_python_writes_the_same_table(mails: Typed) -> None:
    import judge

    settings = {"ask": "Polite?", "on": "mail", "model": "scripted:judge.yaml"}
    judge.validate_to("py.csv", MAILS, **settings)
    mails.text(*RUN, "-o", "cli.csv")
    assert mails.read("py.csv") == mails.read("cli.csv") and Path("py.csv.jsonl").is_file()


def test_a_description_with_a_wrong_form_is_told_and_ends_no_command(mails: Typed) -> None:
    """Each key that is read, as an edit by hand or another program could leave it."""
    mails.text(*RUN, "-o", "out.jsonl")
    mails.text(*RUN, "-o", "whole.jsonl")
    beside = mails.folder / "out.jsonl.run.json"
    ((mark, run),) = json.loads(beside.read_bytes()).items()
    # A package's model may be identified by numbers.
    beside.write_text(json.dumps({mark: run | {"identities": {"corp:m": {"revision": 3}}}}))
    assert "is damaged" not in mails.text("report", "out.jsonl", "-o", "out.html")[2]
    wrong: list[object] = [None, ["x"], {"x": None}, {"x": ["y"]}]
    names = ("questions", "rubrics", "own_rubrics", "identities")
    parts = [{name: form} for name in names for form in wrong]
    parts += [{"rankings": form} for form in (*wrong, {"x": {"y": ["a", "b", "c"]}})]
    parts += [{"settings": form} for form in (None, {"map": None}, {"map": ["x"]})]
    for part in parts:
        beside.write_text(json.dumps({mark: run | part}))
        for command in (
            ("report", "out.jsonl", "-o", "out.html", "--overwrite"),
            ("export", "out.jsonl", "-o", "out.md", "--overwrite"),
            ("compare", "out.jsonl", "whole.jsonl"),
        ):
            code, _, told = mails.text(*command)
            known = "out.jsonl.run.json is damaged" not in " ".join(told.split())
            assert code == 0 and not known, (part, told)
        judge.load_results(mails.folder / "out.jsonl").summary()


def test_no_output_replaces_what_the_run_reads_or_writes_besides(mails: Typed) -> None:
    (mails.folder / "rules").mkdir()
    (mails.folder / "rules/kind.yaml").write_text("name: kind\nquestion: Kind?\n")
    (mails.folder / "fun.py").write_text("def short(record):\n    return True\n")
    (mails.folder / "calibrated").mkdir()
    (mails.folder / "calibrated/profile.json").write_text("{}")
    (mails.folder / "judge.toml").write_text("concurrency = 2\n")
    rules = ("--rubric", "rules/kind.yaml", "--rubric", "rules", "--test", "fun.py:short")
    for name, words in (
        ("judge.yaml", ()),
        ("judge.toml", ()),
        ("rules/kind.yaml", rules[:2]),
        ("rules/kind.yaml", rules[2:4]),
        ("fun.py", rules[4:]),
        ("calibrated/profile.json", ("--profile", "calibrated")),
        ("o.jsonl.unmatched.jsonl", ()),
        ("o.jsonl.decisions.jsonl", ()),
    ):
        run = (*RUN, *words, "-o", "o.jsonl", "--summary", name, "--overwrite")
        code, _, told = mails.text(*run)
        assert code == 2 and f"--summary {name} is " in " ".join(told.split()), told
    assert not (mails.folder / "o.jsonl").exists()
    run = (*RUN, "--rubric", "./rules", "-o", "rules/o.jsonl")
    assert mails.text(*run)[0] == mails.text(*run, "--overwrite")[0] == 0, "beside rubrics, too"
