"""`judge label --sheet`, filled in by scripted people, and read back by `judge agreement`."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from judge.cli.label import announce

from .conftest import cells
from .typed import Typed

MAILS = [
    {"id": f"m{n}", "mail": f"{text} {n}", "label": "yes", "judge": {"verdict": "pass"}}
    for n, text in enumerate(["Dear Ann", "Fool", "Kind regards", "=1+1, go away"], 1)
]
GOLD = [
    {"id": f"c{n}", "mail": f"{'Thank you' if polite == 'yes' else 'Idiot'} {n}"}
    | {"labels": {"polite": polite}}
    for n, polite in enumerate(["yes", "no", "yes"], 1)
]
ASK = ("--ask", "Is it polite?", "--controls", "gold.jsonl", "--control-share", "0.5")


@pytest.fixture
def mails(typed: Typed) -> Typed:
    typed.write("mails.jsonl", MAILS)
    typed.write("gold.jsonl", GOLD)
    return typed


def rows(typed: Typed, name: str) -> list[dict[str, str]]:
    with (typed.folder / name).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(typed: Typed, name: str, answer: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """As a person's spreadsheet saves it."""
    table = [{**row, **answer(row)} for row in rows(typed, name)]
    with (typed.folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*table[0]], delimiter=";")
        writer.writeheader()
        writer.writerows(table)


def polite(row: dict[str, str]) -> dict[str, str]:
    """annotator-3 is careless; two of three find m4 polite."""
    right = "no" if any(word in row["mail"] for word in ("Fool", "Idiot", "go away")) else "yes"
    careless = row["annotator"] == "annotator-3"
    wrong = "yes" if right == "no" else "no"
    generous = row["item"] == "m4" and row["annotator"] == "annotator-2"
    return {"label": wrong if careless or generous else right, "group": "x", "why": "so"}


def test_a_sheet_shows_records_as_judges_see_them_and_nothing_that_would_tell(mails: Typed) -> None:
    words = ("label", "mails.jsonl", *ASK, "--sheet", "s.csv", "--opt-out", "unsure")
    code, out, told = mails.text(*words)
    sheet = rows(mails, "s.csv")
    assert (code, out) == (0, "") and "21 rows about 4 records and 3 controls" in told
    assert "--control-share 0.5 asks for 4 controls, and --controls holds 3\n" in told
    assert "judge agreement s.csv --controls gold.jsonl --opt-out unsure\n" in told
    assert [*sheet[0]] == [
        *("item", "check", "annotator", "group", "mail", "question", "answers", "label", "why")
    ]
    assert {row["answers"] for row in sheet} == {"yes / no / unsure"}
    assert {row["label"] for row in sheet} == {""} and "pass" not in mails.read("s.csv").decode()
    assert {row["mail"] for row in sheet if row["item"] == "m4"} == {"'=1+1, go away 4"}
    orders = [[r["item"] for r in sheet if r["annotator"] == f"annotator-{n}"] for n in (1, 2, 3)]
    assert len({*map(tuple, orders)}) > 1 and {*map(len, orders)} == {7}
    code, _, told = mails.text(*words)
    assert code == 2 and "s.csv exists" in told and "with --sheet" in told
    assert "name a .csv file" in mails.text(*words[:-3], "s.xlsx")[2]
    again = mails.read("s.csv")
    assert mails.text(*words, "--overwrite")[0] == 0 and mails.read("s.csv") == again


def test_votes_become_records_that_every_command_reads(mails: Typed) -> None:
    mails.text("label", "mails.jsonl", *ASK, "--sheet", "s.csv")
    fill(mails, "s.csv", polite)
    words = ("agreement", "s.csv", "--controls", "gold.jsonl", "--records", "mails.jsonl")
    code, out, told = mails.text(*words, "-o", "majority.jsonl")
    assert code == 0 and "1 of 3 annotators dropped, 33.3% of the labels: annotator-3" in told
    assert "control question" not in told
    # Three of four pairs agree; by chance (5/8)^2 + (3/8)^2 would: (0.75 - 0.53) / 0.47.
    assert cells(out, "question", "all", "8")[0][3].startswith("0.47")
    lines = [json.loads(line) for line in mails.read("majority.jsonl").splitlines()]
    by_id = {line["id"]: line for line in lines}
    labels = {id: line["labels"]["question"] for id, line in by_id.items()}
    assert labels == {"m1": "yes", "m2": "no", "m3": "yes", "m4": None}
    people = {"annotator-1": "no", "annotator-2": "yes"}
    told_by_all = {"group": "x", "why": {"question": "so"}, "asked": {"question": ASK[1]}}
    assert by_id["m4"]["annotators"] == {
        name: {"labels": {"question": label}, **told_by_all} for name, label in people.items()
    }
    assert by_id["m4"]["mail"] == MAILS[3]["mail"] and by_id["m4"]["label"] == "yes"

    def majority(*more: str) -> Any:
        mails.text(*words, "-o", "m.jsonl", "--overwrite", *more)
        found = [json.loads(line) for line in mails.read("m.jsonl").splitlines()]
        return next(line for line in found if line["id"] == "m4")["labels"]["question"]

    assert majority("--least", "0") == "yes"
    assert majority("--break-ties", "--seed", "1") in ("yes", "no")
    assert majority("--least", "0", "--opt-out", "yes") is None
    code, _, told = mails.text("build", "filtered", "majority.jsonl", "-o", "sound.jsonl")
    assert code == 0 and "3 lines; 1 left out" in told and "question: people diverge" in told
    ask = ("--ask", "Is it polite?", "-m", "scripted:yes.yaml")
    code, out, told = mails.text("calibrate", "majority.jsonl", *ask)
    assert code == 0 and "not shown: label (people's answers)" in told
    assert "4 items about 4 records, 3 with a reference" in out
    code, out, _ = mails.text("agreement", "majority.jsonl", "--json")
    figures = json.loads(out)["checks"][0]["overall"]
    assert figures["labels"] == 8 and figures["measures"]["accuracy"]["value"] == 1.0


def test_an_annotator_who_answers_no_control_is_kept_and_named(mails: Typed) -> None:
    mails.text("label", "mails.jsonl", *ASK, "--sheet", "s.csv")

    def evasive(row: dict[str, str]) -> dict[str, str]:
        blank = row["annotator"] == "annotator-2" and row["item"].startswith("c")
        return {**polite(row), **({"label": ""} if blank else {})}

    fill(mails, "s.csv", evasive)
    code, out, told = mails.text("agreement", "s.csv", "--controls", "gold.jsonl", "--all")
    kept = "1 of 3 annotators kept without an answer to a control question: annotator-2"
    assert code == 0 and kept in " ".join(told.split())
    assert cells(out, "annotator-2", "0", "0", "4", "kept") and "annotators dropped" in told
    # Without controls there is none to answer.
    assert "control" not in mails.text("agreement", "s.csv", "--scale", "yes=yes")[2]


def test_a_check_about_values_has_a_row_for_each(mails: Typed) -> None:
    values = ["A--agree", "A--agree", "B--disagree"]
    story = {"story": "Ann: I vote. " * 3, "values": values, "id": "s"}
    mails.write("s.jsonl", [story])
    words = ("label", "s.jsonl", "--check", "implicitness", "--workers", "2", "--sheet", "s.csv")
    assert mails.text(*words)[0] == 0
    assert [row["entry"] for row in rows(mails, "s.csv")] == ["1", "3", "1", "3"], (
        "of equal ones one"
    )
    fill(mails, "s.csv", lambda row: {"label": "yes" if row["entry"] == "1" else "no"})
    assert mails.text("agreement", "s.csv", "--records", "s.jsonl", "-o", "m.jsonl")[0] == 0
    (line,) = map(json.loads, mails.read("m.jsonl").splitlines())
    assert line["labels"] == {"implicitness": ["yes", None, "no"]} and line["values"] == values


def test_a_control_asks_about_the_entries_alone_whose_answer_is_known(mails: Typed) -> None:
    story = {"story": "Ann: I vote. " * 3, "values": ["A--agree", "B--disagree"]}
    mails.write("s.jsonl", [{"id": "s", **story}])
    mails.write("known.jsonl", [{"id": "c", **story, "labels": {"implicitness": [None, "no"]}}])
    words = ("label", "s.jsonl", "--check", "implicitness", "--controls", "known.jsonl")
    code, _, told = mails.text(*words, "--workers", "1", "--sheet", "s.csv")
    assert code == 0, told
    asked = {(row["item"], row["entry"]) for row in rows(mails, "s.csv")}
    assert asked == {("s", "1"), ("s", "2"), ("c", "2")}


def test_a_control_needs_a_right_answer_in_any_spelling(mails: Typed) -> None:
    words = ("label", "mails.jsonl", *ASK, "--sheet", "s.csv", "--overwrite")
    gold = mails.folder / "gold.jsonl"
    known = gold.read_text()
    gold.write_text(known + '{"id": "c9",\n')
    code, _, told = mails.text(*words)
    assert code == 2 and "gold.jsonl, line 4: a control question needs its right answer" in told
    gold.write_text(known.replace('"yes"', '" YES"').replace('"no"', '"No"'))
    assert mails.text(*words)[0] == 0
    fill(mails, "s.csv", polite)
    code, out, told = mails.text("agreement", "s.csv", "--controls", "gold.jsonl", "--all")
    assert code == 0 and cells(out, "annotator-1", "3", "3", "4", "kept"), out


def test_a_right_answer_that_the_sheet_does_not_offer_is_told(mails: Typed) -> None:
    gold = mails.folder / "gold.jsonl"
    gold.write_text(gold.read_text().replace('"no"', '"maybe"'))
    code, _, told = mails.text("label", "mails.jsonl", *ASK, "--sheet", "s.csv")
    assert code == 0 and "gold.jsonl, line 2: 'maybe' is none of yes, no: map" in told
    gold.write_text(gold.read_text().replace('"maybe"', '"No"'))
    told = mails.text("label", "mails.jsonl", *ASK, "--sheet", "s.csv", "--overwrite")[2]
    assert "is none of" not in told


def test_what_can_have_no_majority_and_who_may_share_a_name_is_told(mails: Typed) -> None:
    assert mails.text("label", "mails.jsonl", *ASK, "--sheet", "s.csv")[0] == 0
    fill(mails, "s.csv", polite)
    words = ("agreement", "s.csv", "--controls", "gold.jsonl", "--majority")
    for rule, least in (("4/5", True), ("80%", False), ("2/3", False)):
        code, _, told = mails.text(*words, rule)
        needs = "--majority 4/5 needs 4 answers to a question, and none has more than 2"
        assert code == 0 and (needs in " ".join(told.split())) == least, told
    other = (
        mails.read("s.csv").decode().replace(";yes;", ";no;").replace("annotator-2", "annotator-1")
    )
    (mails.folder / "t.csv").write_text(other)
    code, _, told = mails.text("agreement", "s.csv", "t.csv")
    assert code == 3 and "of them different from the first" in told and "may share a name" in told
    told = mails.text(*words, "4/5", "--records", "mails.jsonl", "-o", "o.jsonl")[2]
    assert "wrote o.jsonl: 4 records, 4 of them without a majority (null)" in told, told


def test_a_sheet_is_read_back_whatever_fields_its_records_have(typed: Typed) -> None:
    """Fields by the names of the sheet's own columns, and of a published form of labels."""
    pair = {"id": "p", "chosen": "Yes.", "rejected": "No.", "group": "g", "Check": "c"}
    typed.write("p.jsonl", [pair, {**pair, "chosen": "Twice"}])
    code, _, told = typed.text("label", "p.jsonl", "--ask", "Good?", "--sheet", "s.csv")
    assert (
        code == 0 and "1 record left out; line 2 of p.jsonl: an earlier record has id 'p'" in told
    )
    assert {(r["group"], r["text of group"], r["text of Check"]) for r in rows(typed, "s.csv")} == {
        ("", "g", "c")
    }
    fill(typed, "s.csv", lambda row: {"label": "yes"})
    assert typed.text("agreement", "s.csv", "--records", "p.jsonl", "-o", "m.jsonl")[0] == 0
    (line,) = map(json.loads, typed.read("m.jsonl").splitlines())
    assert line["labels"] == {"question": "yes"} and len(line["annotators"]) == 3


LETTERS = [
    {"Body": f"Dear {name},  write soon", "price": f"{n}.0", "memo": "- a\n'=b"}
    for n, name in enumerate(["Ann", "Bo", "Cy"], 1)
]


def votes_on(typed: Typed, records: list[dict[str, str]]) -> tuple[int, str]:
    """The command's messages for the filled sheet with these records."""
    (typed.folder / "s").mkdir(exist_ok=True)
    write_table(typed, "s/mails.csv", records)
    words = ("agreement", "s.csv", "--records", "s/mails.csv", "-o", "m.jsonl", "--overwrite")
    code, _, told = typed.text(*words)
    return code, " ".join(told.split())


def write_table(typed: Typed, name: str, table: list[dict[str, str]]) -> None:
    with (typed.folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*table[0]])
        writer.writeheader()
        writer.writerows(table)


@pytest.mark.parametrize("mapping", [(), ("--map", "mail=Body")])
def test_labels_go_to_no_record_with_another_text(typed: Typed, mapping: tuple[str, ...]) -> None:
    write_table(typed, "mails.csv", LETTERS)
    words = ("label", "mails.csv", "--ask", "Polite?", *mapping, "--sheet", "s.csv")
    assert typed.text(*words)[0] == 0
    # A spreadsheet writes numbers anew, and people add columns.
    filled = {"label": "yes", "seen": "Monday"}
    write_table(
        typed, "s.csv", [row | filled | {"price": row["price"][0]} for row in rows(typed, "s.csv")]
    )
    assert votes_on(typed, LETTERS)[0] == 0
    field = "mail" if mapping else "Body"
    for wrong in (LETTERS[::-1], [LETTERS[0] | {"Body": "Dear Al"}, *LETTERS[1:]]):
        code, told = votes_on(typed, wrong)
        assert code == 2 and "s.csv, line " in told and f"in field '{field}'" in told
        assert "item 'mails.csv#" in told and "mails.csv, line " in told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("mails.jsonl",), "name the questions"),
        (("mails.jsonl", "--ask", "Q?", "--controls", "plain.jsonl"), "what these labels are"),
        (("gold.jsonl", *ASK), "c1 is also a record"),
        (("mails.jsonl", "--ask", "Q?", "--on", "letter"), "--on letter: no record has this field"),
        (("mails.jsonl", "--ask", "Q?", "--on", "mial"), "did you mean mail?"),
        (("mails.jsonl", *ASK, "--by", "mail"), "--by needs --sample"),
        (("mails.jsonl", *ASK[:2], *ASK[4:]), "--control-share needs --controls"),
        (("mails.jsonl", "--rubric", "on_topic"), "rubric on_topic: topic: no record has this"),
        (("plain.jsonl", *ASK), "field 'mail' would give the controls away"),
    ],
)
def test_bad_usage(mails: Typed, words: tuple[str, ...], says: str) -> None:
    mails.write("plain.jsonl", [{"id": "p", "text": "Hi."}])
    code, out, told = mails.text("label", *words, "--sheet", "s.csv")
    assert (code, out) == (2, "") and says in told and not (mails.folder / "s.csv").exists()


def test_a_line_that_cannot_be_read_is_named_first_and_ends_with_3(typed: Typed) -> None:
    typed.write("in.jsonl", [{"id": "a", "mail": "Hi."}, {"id": "b"}], '{"id": "c", "mai')
    words = ("label", "in.jsonl", "--ask", "Polite?", "--on", "mail", "--sheet", "s.csv")
    code, _, told = typed.text(*words, "--workers", "1")
    assert code == 3 and "2 records left out; the first: line 3 of in.jsonl: not JSON" in told
    assert [row["item"] for row in rows(typed, "s.csv")] == ["a"]


def test_a_page_whose_answers_could_not_be_kept_is_not_opened(mails: Typed) -> None:
    (mails.folder / "null.jsonl").symlink_to("/dev/null")
    (mails.folder / "lost.jsonl").symlink_to("no/lost.jsonl")
    for out in ("null.jsonl", "lost.jsonl"):
        code, _, told = mails.text("label", "mails.jsonl", "--ask", "Q?", "-o", out)
        assert code == 2 and told.startswith(f"judge: {out}: answers cannot be kept there")


def test_an_id_that_a_spreadsheet_would_run_comes_back_as_it_was(typed: Typed) -> None:
    records = [{"id": "@ann/1", "text": "hello"}, {"id": "-2", "text": "bye"}]
    typed.write("in.jsonl", records)
    typed.text("label", "in.jsonl", "--ask", "Polite?", "--on", "text", "--sheet", "s.csv")
    assert {row["item"] for row in rows(typed, "s.csv")} == {"'@ann/1", "'-2"}
    fill(typed, "s.csv", lambda row: {"label": "yes"})
    words = ("agreement", "s.csv", "--records", "in.jsonl", "-o", "m.jsonl")
    assert typed.text(*words)[0] == 0
    assert [json.loads(line)["id"] for line in typed.read("m.jsonl").splitlines()] == [
        "@ann/1",
        "-2",
    ]


def test_of_records_with_one_id_the_first_is_asked_about_and_gets_the_labels(typed: Typed) -> None:
    texts = {"text": "Hello there."}, {"text": "Go away."}
    typed.write("in.jsonl", [{"id": "a", **text} for text in texts])
    told = typed.text("label", "in.jsonl", "--ask", "Polite?", "--sheet", "s.csv")[2]
    assert "1 record left out; line 2 of in.jsonl: an earlier record has id 'a'" in told
    fill(typed, "s.csv", lambda row: {"label": "yes"})
    words = ("agreement", "s.csv", "--records", "in.jsonl", "-o", "m.jsonl")
    code, _, told = typed.text(*words)
    line = json.loads(typed.read("m.jsonl"))
    assert (line["text"], line["labels"]) == ("Hello there.", {"question": "yes"}), (code, told)


def test_a_question_that_records_lack_is_told_and_refused_if_all_lack_it(typed: Typed) -> None:
    """With a third record: three mails and two claims, for three people."""
    typed.write("said.yaml", [], "name: said\nquestion: Is it?\nfields: [text]\neach: claims\n")
    records = [{"id": "a", "mail": "Hello."}, {"id": "b", "mail": "Bye."}]
    asked = ("--ask", "Polite?", "--on", "mail", "--rubric", "./said.yaml")
    typed.write("r.jsonl", records)
    code, _, told = typed.text("label", "r.jsonl", *asked, "--sheet", "s.csv")
    assert code == 2 and "rubric said: text: no record has this field" in told
    typed.write("r.jsonl", [*records, {"mail": "Hi.", "text": "One.", "claims": ["one", "two"]}])
    code, _, told = typed.text("label", "r.jsonl", *asked, "--sheet", "s.csv")
    assert code == 0 and "15 rows about 3 records" in told
    assert "said is not asked about 2 records; the first: line 1 of r.jsonl: the record" in told


def test_controls_have_the_names_of_the_column_that_names_records(typed: Typed) -> None:
    """A place, gold.csv#2, would give a control question away."""
    typed.write("in.jsonl", [{"nr": f"m{n}", "mail": f"Mail {n}."} for n in range(6)])
    typed.write("gold.csv", [], "nr,mail,label\nm6,Thanks.,yes\n")
    words = ("in.jsonl", "--ask", "Polite?", "--on", "mail", "--id", "nr", "--workers", "1")
    told = typed.text("label", *words, "--controls", "gold.csv", "--sheet", "s.csv")[2]
    assert told.endswith("  judge agreement s.csv --controls gold.csv --id nr\n")
    assert {row["item"] for row in rows(typed, "s.csv")} == {f"m{n}" for n in range(7)}
    fill(typed, "s.csv", lambda row: {"label": "yes"})
    back = ("agreement", "s.csv", "--controls", "gold.csv", "--id", "nr", "--json")
    code, out, told = typed.text(*back, "--records", "in.jsonl", "-o", "m.jsonl")
    assert code == 0 and "wrote m.jsonl: 6 records" in told, told
    ((_, about),) = json.loads(out)["annotators"].items()
    assert (about["controls"], about["right"], about["labels"]) == (1, 1, 6)


def test_a_sheet_is_calibrated_with_the_options_that_made_it(typed: Typed) -> None:
    typed.write("in.jsonl", [{"nr": n, "body": mail} for n, mail in (("a", "Hi."), ("b", "Go!"))])
    ask = ("--ask", "Polite?", "--on", "mail", "--map", "mail=body", "--id", "nr")
    typed.text("label", "in.jsonl", *ask, "--workers", "1", "--sheet", "s.csv")
    fill(typed, "s.csv", lambda row: {"label": "yes" if row["item"] == "a" else "no"})
    judge = typed.script("j.yaml", [{"reply": {"quote": None, "reason": "", "answer": "yes"}}])
    code, out, told = typed.text("calibrate", "s.csv", *ask, "-m", judge, "--no-controls")
    assert code == 0 and "agrees with the labels in 1 of 2" in out, told
    assert "b: says yes, the label is no" in out


def test_an_entry_that_nobody_answers_has_no_label_in_its_place(typed: Typed) -> None:
    typed.write("in.jsonl", [{"id": "d", "contexts": ["c1"], "claims": ["x", "y"]}])
    typed.text("label", "in.jsonl", "--rubric", "faithful", "--sheet", "s.csv")
    # A column of whole numbers with a gap, as pandas writes it.
    fill(
        typed, "s.csv", lambda r: {"label": "no" * (r["entry"] == "2"), "entry": r["entry"] + ".0"}
    )
    words = ("agreement", "s.csv", "--records", "in.jsonl", "-o", "m.jsonl")
    code, _, told = typed.text(*words)
    assert code == 0, told
    assert json.loads(typed.read("m.jsonl"))["labels"] == {"faithful": [None, "no"]}


def test_hypotheses_of_a_premise_stand_together(typed: Typed) -> None:
    """CALI 3.5: three at once, in an order of its own for each annotator; controls look alike."""
    pairs = [
        {"id": f"{p}{n}", "premise": f"{p}.", "hypothesis": str(n)} for n in "123" for p in "abcd"
    ]
    golds = [{"id": f"g{n}", "premise": "g.", "hypothesis": n} for n in "123"]
    typed.write("pairs.jsonl", pairs)
    typed.write("gold.jsonl", [{**gold, "labels": {"question": "yes"}} for gold in golds])
    on = ("--on", "premise", "--on", "hypothesis", "--together", "premise", "--sheet", "s.csv")
    words = ("label", "pairs.jsonl", "--ask", "Likely?", *on)
    code, _, told = typed.text(*words, "--controls", "gold.jsonl")
    assert code == 0 and "45 rows about 12 records and 1 control, for 3 annotators" in told
    orders = [[row["item"] for row in rows(typed, "s.csv")][n : n + 15] for n in (0, 15, 30)]
    for order in orders:
        units = [order[n : n + 3] for n in range(0, 15, 3)]
        assert sorted(units) == [[f"{p}{n}" for n in "123"] for p in "abcdg"]
    assert len({*map(tuple, orders)}) > 1
    typed.write("gold.jsonl", [{**golds[0], "labels": {"question": "yes"}}])
    code, _, told = typed.text(*words, "--controls", "gold.jsonl", "--overwrite")
    assert code == 2 and "1 rows of the same premise would give the controls away" in told
    code, _, told = typed.text(*words[:-3], "topic", "--sheet", "t.csv")
    assert code == 2 and "--together topic: record 'a1' shows no such field" in told


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("screen", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_the_page_opens_by_itself_only_on_a_screen_and_from_a_terminal(
    terminal: bool, screen: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if screen:
        monkeypatch.setenv("DISPLAY", ":0")
    announce("http://127.0.0.1:1/", "ann", open_page=wanted)
    assert opened == ["http://127.0.0.1:1/"] * (terminal and screen and wanted)


def test_the_share_of_controls_is_as_typed(mails: Typed) -> None:
    mails.write("three.jsonl", MAILS[:3])
    words = ("label", "three.jsonl", *ASK[:-1], "0.4", "--sheet", "s.csv", "--workers", "1")
    assert mails(*words).returncode == 0
    assert len(rows(mails, "s.csv")) == 5, "two in five"


QUESTIONS = (
    ("--rubric", "./kind.yaml"),
    ("--ask", "Is it kind?", "--on", "mail", "--answers", "kind,rude", "--pass", "kind"),
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_command_after_one_persons_sheet_measures_a_judge_as_it_is_printed(
    mails: Typed, question: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the model in its place; a model of the environment needs none."""
    words = (
        "name: nice\nquestion: Is it kind?\nfields: [mail]\nanswers: [kind, rude]\npass: [kind]\n"
    )
    mails.write("kind.yaml", [], words)
    reply = {"quote": None, "reason": "So.", "answer": "kind"}
    model = mails.script("j.yaml", [{"reply": reply}])
    sheet = ("label", "mails.jsonl", *question, "--workers", "1", "--sheet", "a b.csv")
    told = mails.text(*sheet)[2]
    command = told.splitlines()[-1].strip()
    fill(mails, "a b.csv", lambda row: {"label": "kind" if row["item"] == "m1" else "rude"})
    printed = shlex.split(command.replace("PROVIDER:MODEL", model))
    code, out, told = mails.text(*printed[1:])
    assert code == 0 and "agrees with the labels in 1 of 4" in out, (command, told)
    monkeypatch.setenv("JUDGE_MODEL", model)
    told = mails.text(*sheet, "--overwrite")[2]
    assert told.endswith(" -o calibrated\n") and "PROVIDER" not in told
