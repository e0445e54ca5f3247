"""`judge export` as a user types it: the content of each form, and refusals."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from judge.judgement import Judgement
from judge.verdict import Verdict
from tests.report.pages import check, judged, record

from .typed import Typed

HOSTILE = "=cmd|' /C calc'!A0 <b>|x|</b> `y` \x07\ud800 é"


@pytest.fixture
def judge(typed: Typed) -> Typed:
    vote = {
        "model": "m",
        "verdict": "fail",
        "evidence": [{"verdict": "fail", "quote": HOSTILE, "reason": "It is rude."}],
    }
    failed = judged("fail", check("polite", "fail", votes=[vote]), reason="polite: rude")
    # As of a judge that gives probabilities, and neither quotes nor gives reasons.
    bare = [{"verdict": "abstain"}]
    unsure = check("polite", "abstain", answer="curt", score=2.5, evidence=bare)
    lost = judged("error", error={"type": "denied", "message": "no key"})
    typed.write(
        "out.jsonl",
        [
            record(id="a"),
            {"id": "b", "email": HOSTILE, "judge": failed},
            {"id": 3, "judge": judged("abstain", unsure, reason="polite: curt (P(pass) 0.46)")},
            {"judge": judged("unreadable", check("polite", "unreadable"))},
            {"id": "e", "judge": lost},
        ],
    )
    return typed


def export(judge: Typed, name: str, source: str = "out.jsonl") -> bytes:
    code, out, told = judge.text("export", source, "-o", name)
    assert (code, out) == (0, ""), told
    return judge.read(name)


@pytest.mark.parametrize(
    "text", ["=1+1", "＝1+1", "\t=1", "a;=1+1", "a; ＠SUM(A1)", "a\n-1+2", "+1"]
)
def test_no_cell_is_a_formula_by_any_separator_or_script(judge: Typed, text: str) -> None:
    """A spreadsheet cuts at the separator of its own locale, knows full-width signs, and drops a
    byte-order mark at the beginning of a file."""
    name = f"\ufeff{text}"
    judge.write("f.jsonl", [{name: "x", "id": text, "judge": judged("pass", reason=text)}])
    table = export(judge, "f.csv", "f.jsonl").decode("utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    cells = [
        part.strip(" ")
        for cell in (next(iter(row)), row["id"])
        for part in re.split("[;\t\n]", cell)
    ]
    assert not any(cell[:1] in tuple("=+-@＝＋－＠") for cell in cells if cell)
    assert row["id"].replace("'", "") == text


def test_negative_numbers_of_a_table_stay_numbers_in_csv(judge: Typed) -> None:
    """A CSV file's cells are all texts, and `'-5` is no number to pandas."""
    texts = ["-5", "-0.5", "-1e-3", "- 5", "-5-3", "-A1"]
    judge.write("n.jsonl", [{"n": text, "judge": judged("pass")} for text in texts])
    rows = csv.DictReader(io.StringIO(export(judge, "n.csv", "n.jsonl").decode(), newline=""))
    assert [row["n"] for row in rows] == ["-5", "-0.5", "-1e-3", "'- 5", "'-5-3", "'-A1"]


def test_markdown_has_no_control_characters(judge: Typed) -> None:
    text = export(judge, "o.md").decode()
    assert "\\u0007" in text and not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_markdown_shows_the_first_twenty_failures(judge: Typed) -> None:
    lines = [{"id": f"r{n:02}", "judge": judged("fail", check("tone", "fail"))} for n in range(30)]
    judge.write("many.jsonl", lines)
    text = export(judge, "many.md", "many.jsonl").decode()
    assert [n for n in range(30) if f"r{n:02}" in text] == [*range(20)]


def test_csv_has_a_row_a_record_and_runs_in_no_spreadsheet(judge: Typed) -> None:
    rows = list(csv.DictReader(io.StringIO(export(judge, "o.csv").decode(), newline="")))
    assert [(row["judge.id"], row["judge.verdict"]) for row in rows] == [
        ("a", "pass"),
        ("b", "fail"),
        ("3", "abstain"),
        ("line 4", "unreadable"),
        ("e", "error"),
    ]
    failed = rows[1]
    hostile = "'" + HOSTILE.replace("\ud800", "\\ud800")
    assert (failed["email"], failed["judge.quote"], failed["polite.quote"]) == (hostile,) * 3
    assert (failed["judge.check"], failed["polite.reason"], failed["judge.failed"]) == (
        *("polite", "It is rude.", "polite"),
    )
    parts = ("verdict", "answer", "score")
    assert [[row[f"polite.{part}"] for part in parts] for row in rows[:3]] == [
        *(["", "", ""], ["fail", "", ""], ["abstain", "", "2.5"])
    ]
    assert rows[2]["judge.reason"] == "polite: curt (P(pass) 0.46)"
    assert rows[2]["judge.undecided"] == "polite" and rows[4]["judge.error"] == "no key"


def test_every_table_names_the_models_of_the_votes(judge: Typed) -> None:
    import pyarrow.parquet as pq
    from openpyxl import load_workbook

    b, a, c = ({"model": model, "verdict": "pass"} for model in "bac")
    checks = check("x", votes=[b, a]), check("y", votes=[b, c])
    lines = [{"judge": judged("pass", *checks)}, {"judge": judged("error")}]
    judge.write("m.jsonl", lines)
    (row, bare) = csv.DictReader(io.StringIO(export(judge, "m.csv", "m.jsonl").decode()))
    assert (row["judge.models"], bare["judge.models"]) == ("b, a, c", "")
    assert row["judge.input_tokens"] == "10"
    export(judge, "m.parquet", "m.jsonl")
    table: Any = pq.read_table(judge.folder / "m.parquet")
    assert table.column("judge.models").to_pylist() == ["b, a, c", None]
    export(judge, "m.xlsx", "m.jsonl")
    head, first, _ = load_workbook(judge.folder / "m.xlsx").active.iter_rows(values_only=True)
    assert dict(zip(head, first, strict=True))["judge.models"] == "b, a, c"


OWN = [
    {"id": 1, "n": 1, "b": True, "mix": "x", "list": ["a"], "big": 2**70, "judge.votes": "mine"},
    {"id": 2, "n": 2.5, "b": None, "mix": 7, "list": None, "big": 1, "late": "z"},
]


def test_the_records_own_columns_keep_their_names_and_types(judge: Typed) -> None:
    import pyarrow.parquet as pq

    judge.write("own.jsonl", [{**row, "judge": judged("pass")} for row in OWN])
    export(judge, "own.parquet", "own.jsonl")
    table: Any = pq.read_table(judge.folder / "own.parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert [*kinds][:8] == ["id", "n", "b", "mix", "list", "big", "judge.votes", "late"]
    assert [kinds[name] for name in ("id", "n", "b", "mix", "list", "big")] == [
        *("int64", "double", "bool", "string", "string", "string")
    ]
    assert table.column("mix").to_pylist() == ["x", "7"]
    assert table.column("list").to_pylist() == ['["a"]', None]
    assert table.column("big").to_pylist() == [str(2**70), "1"]
    assert table.column("judge.votes").to_pylist() == ["mine", None]
    assert table.column("judge.judge.votes").to_pylist() == [0, 0]


def test_columns_whose_names_are_alike_in_utf8_are_two(judge: Typed) -> None:
    """A lone surrogate in a name is written as its escape, which another name may have."""
    row = {"a\ud83d": "one", "a\\ud83d": "two", "z": 3, "judge": judged("pass")}
    judge.write("alike.jsonl", [row])
    (found,) = csv.DictReader(io.StringIO(export(judge, "alike.csv", "alike.jsonl").decode()))
    assert [*found.values()][:4] == ["one", "two", "3", "pass"]
    assert [*found][:4] == ["a\\ud83d", "a\\ud83d_", "z", "judge.verdict"]


def test_excel_has_the_same_table_and_runs_nothing(judge: Typed) -> None:
    from openpyxl import load_workbook

    export(judge, "o.xlsx")
    head, *rows = load_workbook(judge.folder / "o.xlsx").active.iter_rows()
    names = [cell.value for cell in head]
    email = rows[1][names.index("email")]
    assert email.data_type == "s" and email.value.startswith("=cmd|") and "\\u0007" in email.value
    assert [row[names.index("judge.verdict")].value for row in rows] == [
        *("pass", "fail", "abstain", "unreadable", "error")
    ]
    assert rows[2][names.index("polite.score")].value == 2.5
    judge.write("literal.jsonl", [{"text": "_x0041_ _x41_", "judge": judged("pass")}])
    export(judge, "literal.xlsx", "literal.jsonl")
    _, (shown, *_) = load_workbook(judge.folder / "literal.xlsx").active.iter_rows(values_only=True)
    assert shown == "_x005F_x0041_ _x41_"  # Excel would show _x0041_ as A.
    # Excel keeps fifteen digits of a number: 4111111111111111 would become ...110.
    ids = [{"id": n, "judge": judged("pass")} for n in (999_999_999_999_999, 4_111_111_111_111_111)]
    judge.write("ids.jsonl", ids)
    export(judge, "ids.xlsx", "ids.jsonl")
    _, *kept = load_workbook(judge.folder / "ids.xlsx").active.iter_rows(values_only=True)
    assert [row[0] for row in kept] == [999_999_999_999_999, "4111111111111111"]


def test_parquet_has_the_same_columns_and_types_whatever_it_holds(judge: Typed) -> None:
    import pyarrow.parquet as pq

    judge.write("empty.jsonl", [])
    judge.write("one.jsonl", [{"judge": judged("pass")}])
    schemas = []
    for name in ("out", "empty", "one"):
        export(judge, f"{name}.parquet", f"{name}.jsonl")
        table: Any = pq.read_table(judge.folder / f"{name}.parquet")
        schemas.append([(field.name, str(field.type)) for field in table.schema])
        if name == "out":
            assert table.column("judge.verdict").to_pylist() == [
                *("pass", "fail", "abstain", "unreadable", "error")
            ]
            assert table.column("id").to_pylist() == ["a", "b", "3", None, "e"]
    judges = [{pair for pair in schema if pair[0].startswith("judge.")} for schema in schemas]
    assert judges[0] == judges[1] == judges[2] and len(judges[0]) > 20


def test_junit_tells_failures_errors_and_skipped_apart(judge: Typed) -> None:
    suite = ElementTree.fromstring(export(judge, "o.xml"))[0]
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["5", "1", "2", "1"]
    cases = {case.get("name"): case for case in suite}
    kinds = {name: [part.tag for part in case] for name, case in cases.items()}
    assert kinds == {
        "a": [],
        "b": ["failure"],
        "3": ["skipped"],
        "line 4": ["error"],
        "e": ["error"],
    }
    assert "It is rude. – “=cmd|' /C calc'!A0 <b>" in (cases["b"][0].get("message") or "")
    assert cases["b"][0].get("type") == "polite"
    assert cases["3"][0].get("message") == "abstained – polite: curt (P(pass) 0.46)"
    assert cases["e"][0].get("message") == "denied: no key"


def test_all_checks_that_failed_are_named(judge: Typed) -> None:
    """Also one without evidence, and one about entries; neither those that pass nor abstain."""
    rude = check("polite", "fail", evidence=[{"verdict": "fail", "quote": "Go", "reason": "Rude."}])
    odd = {"value": "Two is odd.", "verdict": "fail", "reason": "Even."}
    bare = check("short", "fail", reason="9 words of 5")
    found = [bare, rude, check("tone"), check("clear", "abstain"), check("facts", "fail")]
    found[-1]["votes"][0]["evidence"] = [odd]
    judge.write("all.jsonl", [record("fail", *found, reason="short: 9 words of 5; polite: fail")])
    failure = ElementTree.fromstring(export(judge, "o.xml", "all.jsonl"))[0][0][0]
    assert failure.get("type") == "polite, facts, short"
    assert failure.get("message") == (
        "polite: Rude. – “Go”; facts: Two is odd. – Even.; short: 9 words of 5"
    )
    rows = export(judge, "o.md", "all.jsonl").decode().splitlines()[-3:]
    assert rows == [
        "| n1 | polite |  | Go | Rude. |",
        "| n1 | facts | Two is odd. |  | Even. |",
        "| n1 | short |  |  | 9 words of 5 |",
    ]
    (row,) = csv.DictReader(io.StringIO(export(judge, "o.csv", "all.jsonl").decode()))
    assert (row["judge.check"], row["judge.quote"]) == ("polite", "Go")
    assert (row["judge.failed"], row["judge.undecided"]) == ("short, polite, facts", "clear")


def test_an_undecided_check_says_why_beside_its_evidence(judge: Typed) -> None:
    """Else the reason of one order, or of one judge, would read as that of the abstention."""
    said = [{"verdict": "abstain", "answer": "new", "reason": "It thanks."}]
    torn = check("better", "abstain", reason="the orders disagree", evidence=said)
    no = [{"verdict": "fail", "answer": "no", "reason": "It is curt."}]
    split = check("kind", "abstain")
    split["votes"] = [
        {"model": "m:a", "verdict": "fail", "evidence": no},
        {"model": "m:b", "verdict": "pass", "evidence": [{"verdict": "pass", "answer": "yes"}]},
    ]
    judge.write("open.jsonl", [record("abstain", torn), record("abstain", split)])
    messages = [
        case[0].get("message")
        for case in ElementTree.fromstring(export(judge, "o.xml", "open.jsonl"))[0]
    ]
    assert messages == [
        "abstained – the orders disagree: It thanks.",
        "abstained – undecided (1 fail, 1 pass): It is curt.",
    ]


def test_the_step_summary_counts_and_quotes_and_renders_no_markup(judge: Typed) -> None:
    text = export(judge, "o.md").decode()
    assert text.startswith("### judge: 1 of 5 records pass (20.0%)\n")
    assert "| **record** | 1 | 1 | 1 | 1 | 1 |" in text
    assert "| polite | 0 | 1 | 1 | 1 | 1 |" in text
    assert "| b | polite | =cmd\\|' /C calc'\\!A0 &lt;b&gt;\\|x\\|&lt;/b&gt; \\`y\\` " in text
    assert "| It is rude. |" in text


def test_the_step_summary_of_no_records_has_no_table(judge: Typed) -> None:
    judge.write("none.jsonl", [])
    judge("export", "none.jsonl", "-o", "none.md")
    assert judge.read("none.md") == b"### judge: 0 of 0 records pass\n"


def test_the_step_summary_says_why_a_record_is_an_error(judge: Typed) -> None:
    words = ("export", "out.jsonl", "-o", "o.md", "--verdicts", "error")
    assert judge.text(*words)[0] == 0
    assert (
        judge.read("o.md")
        .decode()
        .endswith(
            "| id | check | quote | reason |\n"
            "| --- | --- | --- | --- |\n| e |  |  | denied: no key |\n"
        )
    )


def test_the_entry_that_failed_is_in_every_form(typed: Typed) -> None:
    findings = [
        {"value": "The sky is blue.", "verdict": "pass"},
        {"value": "Two is odd.", "verdict": "fail", "quote": "odd", "reason": "It is even."},
    ]
    about = check("claims", "fail", evidence=findings)
    typed.write("out.jsonl", [record("fail", about, reason="claims: 1 of 2 failed: Two is odd.")])
    (row,) = csv.DictReader(io.StringIO(export(typed, "o.csv").decode()))
    deciding = [row[f"judge.{name}"] for name in ("check", "entry", "quote")]
    assert deciding == ["claims", "Two is odd.", "odd"]
    told = json.loads(row["claims.entries"])
    assert told == {"The sky is blue.": "pass", "Two is odd.": "fail"}
    suite = ElementTree.fromstring(export(typed, "o.xml"))[0]
    assert suite[0][0].get("message") == "Two is odd. – It is even. – “odd”"
    text = export(typed, "o.md").decode()
    assert "\nclaims: of 2 entries: 1 pass, 1 fail\n" in text
    assert typed("report", "out.jsonl", "-o", "o.html").returncode == 0
    assert "Of 2 entries: 1 pass, 1 fail." in typed.read("o.html").decode()
    assert "| id | check | entry | quote | reason |\n| --- | --- | --- | --- | --- |\n" in text
    assert "| n1 | claims | Two is odd. | odd | It is even. |" in text


def test_a_repaired_record_is_told_from_one_that_came_so(judge: Typed) -> None:
    edit = {"round": 1, "check": "relevance", "before": "a", "after": "b", "model": "m"}
    repaired = record(original_verdict="fail", edits=[edit], original={"story": "a"})
    judge.write("repaired.jsonl", [record(id="a"), repaired])
    text = export(judge, "r.md", "repaired.jsonl").decode()
    assert text.startswith("### judge: 1 of 2 records pass (50.0%) as they came in\n")
    assert "\n2 of 2 records pass (100.0%) after repair.\n" in text
    rows = list(csv.DictReader(io.StringIO(export(judge, "r.csv", "repaired.jsonl").decode())))
    assert [row["judge.original_verdict"] for row in rows] == ["", "fail"]


def test_only_the_chosen_verdicts_are_exported_and_the_others_counted(judge: Typed) -> None:
    chosen = ("out.jsonl", "--verdicts", "fail, abstain", "-o")
    told = "2 records; left out: 1 pass, 1 unreadable, 1 error"
    for name in ("o.csv", "o.parquet", "o.xlsx", "o.xml", "o.md"):
        code, _, err = judge.text("export", *chosen, name)
        assert (code, " ".join(err.split())) == (0, f"judge: wrote {name}: {told}")
    rows = csv.DictReader(io.StringIO(judge.read("o.csv").decode()))
    assert [row["judge.verdict"] for row in rows] == ["fail", "abstain"]
    suite = ElementTree.fromstring(judge.read("o.xml"))[0]
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["2", "1", "1"]
    text = judge.read("o.md").decode()
    assert text.startswith("### judge: 1 of 5 records pass (20.0%)\n"), "the counts are the run's"
    assert "#### 2 fail or abstain\n\n| id | verdict | check | quote | reason |\n" in text
    assert [line[:7] for line in text.splitlines()[-2:]] == ["| b | f", "| 3 | a"]
    code, _, err = judge.text("export", "out.jsonl", "-o", "p.csv", "--verdicts", "failed")
    assert code == 2 and "--verdicts failed: no such verdict; there are abstain," in err
    assert not (judge.folder / "p.csv").exists()


def test_what_is_refused_and_which_lines_are_left_out(judge: Typed) -> None:
    judge.write("records.jsonl", [{"email": "Hi"}])
    (judge.folder / "mine.csv").write_text("mine")
    for words, told in (
        (("out.jsonl", "-o", "mine.csv"), "mine.csv exists. Replace it (--overwrite)"),
        (("out.jsonl", "-o", "o.tsv"), "ends in .csv, .parquet, .xlsx, .xml, .md"),
        (("records.jsonl", "-o", "o.csv"), "none of the 1 lines was written by judge validate"),
    ):
        code, _, err = judge.text("export", *words)
        assert code == 2 and told in " ".join(err.split())
    assert judge.read("mine.csv") == b"mine" and not (judge.folder / "o.csv").exists()
    with (judge.folder / "out.jsonl").open("ab") as file:
        file.write(b'{"torn')
    code, _, err = judge.text("export", "out.jsonl", "-o", "o.csv")
    assert code == 3 and "1 line could not be read as output of judge; " in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", ["export", "report"])
def test_a_full_disk_ends_with_4(judge: Typed, command: str) -> None:
    (judge.folder / "full.csv").symlink_to("/dev/full")
    code, _, err = judge.text(command, "out.jsonl", "-o", "full.csv")
    assert code == 4 and "full.csv cannot be written" in err


def test_the_answers_of_a_measured_model_are_in_its_table(judge: Typed) -> None:
    """As `judge evaluate` writes them: each condition is a check, and its answer may be a list."""

    def answered(condition: str, answer: Any) -> dict[str, Any]:
        outcome = {"benchmark": "cqbench", "condition": condition, "outcome": "answered"}
        content = {"verdict": "fail", **outcome, "answer": answer, "score": 0.0}
        return {"id": f"1/{condition}", "condition": condition, "gold": "A", "judge": content}

    judge.write("e.jsonl", [answered("attitude", "B"), answered("selection", ["B", "C"])])
    one, two = csv.DictReader(io.StringIO(export(judge, "e.csv", "e.jsonl").decode()))
    assert (one["attitude.answer"], two["selection.answer"]) == ("B", '["B", "C"]')


def test_the_answer_of_scores_is_their_mean(typed: Typed) -> None:
    """Of the votes 5, 5, 1 it is neither the last nor the majority."""
    typed.write("in.jsonl", [{"id": "r", "text": "Hm."}])
    votes = [
        {"when": {"vote": n}, "reply": {"quote": None, "reason": "r", "answer": answer}}
        for n, answer in enumerate("551")
    ]
    model = ("-m", typed.script("j.yaml", votes), "--votes", "3")
    ask = ("--ask", "How good?", "--answers", "1-5", "--pass", ">= 4", "--on", "text", *model)
    assert typed("validate", "in.jsonl", *ask, "-o", "out.jsonl", "-q").returncode == 0
    typed("export", "out.jsonl", "-o", "out.csv")
    (row,) = csv.DictReader(typed.read("out.csv").decode().splitlines())
    cells = [row[f"question.{part}"] for part in ("verdict", "answer", "score")]
    assert cells == ["fail", "3.66667", "3.666667"]


def test_a_table_judged_again_has_the_new_verdict_under_its_name(judge: Typed) -> None:
    """Another check's columns stay; what the record calls its own keeps its name."""
    row = {"id": "a", "judge.votes": 7, "judge.verdict": "pass", "polite.verdict": "pass"}
    row |= {"short.verdict": "pass", "n.b": "mine"}
    judge.write("again.jsonl", [{**row, "judge": judged("fail", check("polite", "fail"))}])
    export(judge, "again.csv", "again.jsonl")
    (cells,) = csv.DictReader(judge.read("again.csv").decode().splitlines())
    names = ("judge.verdict", "polite.verdict", "short.verdict", "n.b", "judge.votes")
    assert [cells[name] for name in names] == ["fail", "fail", "pass", "mine", "1"]
    assert not [name for name in cells if name.startswith("judge.judge.")]
    flat = Judgement(verdict=Verdict.FAIL, record=row).to_dict()
    assert (flat["judge.verdict"], flat["judge.votes"]) == ("fail", 7)
